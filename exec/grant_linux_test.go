package exec

import (
	"crypto/ed25519"
	"errors"
	"strings"
	"testing"
	"time"

	"noted/notebook"
	"noted/trust"
)

// desk is a person's device with a notebook, from which grants are asked.
type desk struct {
	self notebook.DeviceID
	log  *trust.Log
}

func newDesk(t *testing.T) *desk {
	t.Helper()
	s := trust.NewSigner(ed25519.NewKeyFromSeed([]byte(strings.Repeat("d", ed25519.SeedSize))))
	log, _, err := trust.Found(s, notebook.Epoch{1}, "desk", [16]byte{2}, 3)
	if err != nil {
		t.Fatal(err)
	}
	return &desk{s.Device(), log}
}

// request asks for a fence that this person typed here.
func (d *desk) request(language, info, code string) trust.Request {
	closure := notebook.Closure{{Delimiter: "```", Language: language, Info: info, Code: code}}
	return trust.Request{
		Notebook: d.log.Notebook(), Self: d.self, Roster: d.log.Roster(),
		Page: notebook.PageID{4}, Fence: notebook.FenceID{5}, Closure: closure,
		Origin: notebook.NewOrigin(notebook.Author{Device: d.self, Class: notebook.Typed}), Own: true, Closed: true,
		Shown: closure.Hash(), By: trust.Requester{Role: "owner"},
		Inputs: []trust.Input{
			{Capability: notebook.CapPage, Value: []byte("# A page\n")},
			{Capability: notebook.CapClock, Value: []byte("1796137982123")},
			{Capability: notebook.CapSeed, Value: []byte("seed")},
		},
		Now: time.UnixMilli(1796137982123),
	}
}

func decide(t *testing.T, q trust.Request) trust.Grant {
	t.Helper()
	g, no := trust.Decide(q)
	if no != nil {
		t.Fatal(no)
	}
	return g
}

// TestADecidedFenceRuns: a local fence gets what policy grants; the same text
// from somewhere else runs with nothing but the arguments that it declares.
func TestADecidedFenceRuns(t *testing.T) {
	d := newDesk(t)
	r := newRunner(t, Config{})
	const code = `return page and page.lines[1], clock and clock.date, args and args.who, type(math.random)`
	local := d.request("lua", "lua {args=\"who=nobody\"}", code)
	local.Args = map[string]string{"who": "Ada"}
	g := decide(t, local)
	res, err := r.Run(t.Context(), g)
	if err != nil {
		t.Fatal(err)
	}
	if res.Verdict != notebook.OK || res.Rung != notebook.Granted || res.Output != "# A page\t2026-12-01\tAda\tfunction\n" {
		t.Errorf("local: %v at %v: %q %q", res.Verdict, res.Rung, res.Output, res.Error)
	}
	if res.Fence != local.Fence || res.Closure != local.Closure.Hash() || res.Limits != g.Limits() {
		t.Errorf("the result is of something else: %+v", res)
	}
	foreign := local
	foreign.Args = nil
	foreign.Origin = notebook.NewOrigin(notebook.Author{Device: d.self, Class: notebook.Agent, Label: "helper"})
	foreign.Own = false
	if res, err = r.Run(t.Context(), decide(t, foreign)); err != nil {
		t.Fatal(err)
	}
	if res.Verdict != notebook.OK || res.Rung != notebook.Strict || res.Output != "nil\tnil\tnobody\tnil\n" {
		t.Errorf("foreign: %v at %v: %q %q", res.Verdict, res.Rung, res.Output, res.Error)
	}
}

func TestGrantsThatCannotRunHere(t *testing.T) {
	d := newDesk(t)
	r := newRunner(t, Config{})
	if _, err := r.Run(t.Context(), decide(t, d.request("lua", "lua", "return 1"))); err != nil {
		t.Fatalf("the control: %v", err)
	}
	var e *notebook.Error
	if _, err := r.Run(t.Context(), trust.Grant{}); !errors.As(err, &e) || e.Code != notebook.CodeRefused {
		t.Errorf("the zero grant: %v", err)
	}
	large := d.request("lua", "lua", "return #page.text")
	large.Inputs[0].Value = []byte(strings.Repeat("x", notebook.MaxBody))
	if res, err := r.Run(t.Context(), decide(t, large)); err != nil || res.Output != "1048576\n" {
		t.Errorf("a page of the largest size: %q %v", res.Output, err)
	}
	large.Inputs[0].Value = []byte(strings.Repeat("x", maxInputs))
	if _, err := r.Run(t.Context(), decide(t, large)); !errors.As(err, &e) || e.Code != notebook.CodeExhausted {
		t.Errorf("a larger one: %v", err)
	}
	long := d.request("lua", "lua {args=a}", strings.Repeat("-", 60<<10))
	long.Args = map[string]string{"a": strings.Repeat("x", 8<<10)}
	if _, err := r.Run(t.Context(), decide(t, long)); !errors.As(err, &e) || e.Code != notebook.CodeExhausted {
		t.Errorf("a source and args beyond the limit: %v", err)
	}
}
