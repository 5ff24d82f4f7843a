package main

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/google/go-cmp/cmp"

	"noted/notebook"
)

var update = flag.Bool("update", false, "write the golden files and docs/cli.md anew")

// golden compares got with testdata/name.
func golden(t *testing.T, path, got string) {
	t.Helper()
	if *update {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("%v (write it with go test ./cmd/noted -update)", err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s differs (write it anew with go test ./cmd/noted -update):\n%s", path, diff)
	}
}

// hostile is a title, name, reason or output that wants to be more than that.
const hostile = "a\x1b[31mred\x1b]0;title\x07\u202ebidi\u200bzero\u2066iso\u2069\ufeff\u0085\u2028\r\x00\x7f\nSPOOFED\tend\U000e0041\xff"

// fill sets every field of v to something: strings to s, numbers to n, times to
// a fixed one, and every list to one element.
func fill(v reflect.Value, s string, n int64, depth int) {
	switch {
	case v.Type() == reflect.TypeFor[time.Time]():
		v.Set(reflect.ValueOf(time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)))
		return
	case v.Type() == reflect.TypeFor[time.Duration]():
		v.Set(reflect.ValueOf(5 * time.Second))
		return
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString(s)
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int64:
		v.SetInt(n)
	case reflect.Uint8, reflect.Uint32, reflect.Uint64:
		v.SetUint(1)
	case reflect.Array:
		for i := range v.Len() {
			if v.Index(i).Kind() == reflect.Uint8 {
				v.Index(i).SetUint(uint64(i + 1))
			}
		}
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fill(v.Index(0), s, n, depth)
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		k, e := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		fill(k, s, n, depth)
		fill(e, s, n, depth)
		v.SetMapIndex(k, e)
	case reflect.Pointer:
		if depth > 3 {
			return
		}
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem(), s, n, depth+1)
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				fill(v.Field(i), s, n, depth)
			}
		}
	}
}

func filled[T any](s string) T {
	var v T
	fill(reflect.ValueOf(&v).Elem(), s, 1, 0)
	return v
}

// renderers writes, as text, everything that noted shows of a notebook, with
// every string set to s.
func renderers(s string) map[string]func(*text) {
	page := filled[notebook.PageView](s)
	page.Body = "before\n\n```lua\n" + strings.ReplaceAll(s, "\n", "\n") + "\n```\nafter\n"
	page.Fences = []notebook.FenceInfo{filled[notebook.FenceInfo](s)}
	run := filled[notebook.RunInfo](s)
	run.Result.Dropped = 0
	return map[string]func(*text){
		"page list":  func(t *text) { pageTable(t, []notebook.PageInfo{page.PageInfo}) },
		"page show":  func(t *text) { renderPage(t, &page) },
		"fence list": func(t *text) { fenceTable(t, []*notebook.PageView{&page}) },
		"fence show": func(t *text) {
			renderFence(t, s, &page.Fences[0], notebook.Closure{filled[notebook.Part](s), filled[notebook.Part](s)})
		},
		"fence why": func(t *text) { e := filled[notebook.Explanation](s); renderWhy(t, s, &e) },
		"proposal": func(t *text) {
			p := filled[notebook.Proposal](s)
			p.AnyArgs, p.Closure = false, append(p.Closure, p.Closure...)
			renderProposal(t, s, &p)
		},
		"run list":    func(t *text) { runTable(t, []notebook.RunInfo{run}) },
		"run show":    func(t *text) { renderRun(t, &run) },
		"ask list":    func(t *text) { askTable(t, []notebook.Ask{filled[notebook.Ask](s)}) },
		"device list": func(t *text) { deviceTable(t, []notebook.DeviceInfo{filled[notebook.DeviceInfo](s)}) },
		"policy":      func(t *text) { p := filled[notebook.PolicyView](s); renderPolicy(t, &p) },
		"policy test": func(t *text) { policyCases(t, []notebook.PolicyCase{filled[notebook.PolicyCase](s)}) },
		"agents":      func(t *text) { agentTable(t, []agentJSON{filled[agentJSON](s)}) },
		"engines":     func(t *text) { engineTable(t, []notebook.EngineInfo{filled[notebook.EngineInfo](s)}) },
		"import":      func(t *text) { r := filled[notebook.ImportReport](s); renderImport(t, &r) },
		"status":      func(t *text) { v := filled[notebook.Status](s); renderStatus(t, &v) },
		"watch":       func(t *text) { eventLine(t, filled[notebook.Event](s)) },
	}
}

// Whatever pages, peers, agents and fences are called or say, a terminal gets
// visible characters and line ends, and nothing that it acts on.
func TestHostileTextIsShownAndNotObeyed(t *testing.T) {
	// Text of these is several lines by nature; everywhere else a line end in a
	// value must not begin a line of its own.
	manyLines := map[string]bool{"page show": true, "fence show": true, "proposal": true, "run show": true}
	for name, render := range renderers(hostile) {
		tx := &text{}
		render(tx)
		out := tx.buf.String()
		for i, r := range out {
			if r != '\n' && !(r == '\t' && manyLines[name]) && (r == unicode.ReplacementChar || !unicode.IsGraphic(r)) {
				t.Errorf("%s: %U at byte %d of %q", name, r, i, out)
				break
			}
		}
		if !strings.Contains(out, `\u{202e}`) || !strings.Contains(out, `\u{1b}`) {
			t.Errorf("%s: the escapes are not shown: %q", name, out)
		}
		for line := range strings.SplitSeq(out, "\n") {
			if strings.HasPrefix(line, "SPOOFED") && !manyLines[name] {
				t.Errorf("%s: a value began a line of its own: %q", name, out)
			}
		}
	}
	// The control: plain text is shown as it is.
	for name, render := range renderers("plain words, ünïcode 漢字") {
		tx := &text{}
		render(tx)
		if !strings.Contains(tx.buf.String(), "ünïcode 漢字") || strings.Contains(tx.buf.String(), `\u{`) {
			t.Errorf("%s: %q", name, tx.buf.String())
		}
	}
}

func TestHostileErrorsAndNotesAreEscaped(t *testing.T) {
	var out, errs bytes.Buffer
	a := newApp(nil, strings.NewReader(""), &out, &errs)
	a.finish(notebook.Errorf(notebook.CodeNotFound, "no page %s", hostile).With("look for %s", hostile))
	a.note("%v and %s", notebook.Errorf(notebook.CodeFailed, hostile), notebook.PairState(hostile))
	for _, r := range errs.String() {
		if r != '\n' && !unicode.IsGraphic(r) {
			t.Fatalf("%U in %q", r, errs.String())
		}
	}
	if got := strings.Count(errs.String(), "\n"); got != 3 {
		t.Errorf("%d lines, want 3: %q", got, errs.String())
	}
}

// A result is never the text of a fence, also where all that page show wrote is
// pasted into a page: its lines stand behind a bar.
func TestShownResultsDoNotBecomeFences(t *testing.T) {
	page := notebook.PageView{Body: "```lua\nreturn 1\n```\n"}
	page.Fences = []notebook.FenceInfo{{Number: 1, Language: "lua", Last: &notebook.RunInfo{State: "done", Result: notebook.Result{
		Verdict: notebook.OK, Output: "```\n```lua\nos.exit()\n```\n~~~sh\nrm -rf /\n~~~\n",
	}}}}
	tx := &text{}
	renderPage(tx, &page)
	if !strings.Contains(tx.buf.String(), "rm -rf /") {
		t.Fatalf("the output is not shown: %q", tx.buf.String())
	}
	fences, err := notebook.Fences(tx.buf.String())
	if err != nil || len(fences) != 1 {
		t.Errorf("what page show writes has %d fences, %v:\n%s", len(fences), err, tx.buf.String())
	}
}

func TestPageShowKeepsTheBody(t *testing.T) {
	body := "# Title\n\n\n```lua\nreturn 1\n```\n\n\ntext\n~~~\nx\n~~~\n"
	page := notebook.PageView{Body: body, Fences: []notebook.FenceInfo{{Number: 1}, {Number: 2}}}
	tx := &text{}
	renderPage(tx, &page)
	var kept strings.Builder
	for line := range strings.Lines(tx.buf.String()) {
		if !strings.HasPrefix(line, bar) {
			kept.WriteString(line)
		}
	}
	if diff := cmp.Diff(body, kept.String()); diff != "" {
		t.Error(diff)
	}
}

// TestEnvelopes pins the JSON of every form of data: scripts are written against it.
func TestEnvelopes(t *testing.T) {
	var out bytes.Buffer
	a := newApp(nil, strings.NewReader(""), &out, &out)
	a.json = true
	page, proposal, explanation := filled[notebook.PageView]("text"), filled[notebook.Proposal]("text"), filled[notebook.Explanation]("text")
	ask, event, run := filled[notebook.Ask]("text"), filled[notebook.Event]("text"), filled[notebook.RunInfo]("text")
	report, policy, ledger, status := filled[notebook.ImportReport]("text"), filled[notebook.PolicyView]("text"), filled[notebook.LedgerReport]("text"), filled[notebook.Status]("text")
	contradiction := filled[notebook.Contradiction]("text")
	device, quarantine := filled[notebook.DeviceInfo]("text"), filled[notebook.QuarantineReport]("text")
	for _, data := range []any{
		shape([]notebook.PageInfo{page.PageInfo}, pageShape), pageViewShape(&page), fenceShape(page.Fences[0]), whyShape(&explanation),
		proposalShape(&proposal), approvalShape(filled[notebook.Approval]("text")), runShape(run), askShape(ask),
		deviceShape(device), quarantineShape(&device, &quarantine), contradictionShape(&contradiction), quotaShape(filled[notebook.DeviceQuota]("text")), pairShape(filled[notebook.PairEvent]("text")),
		agentShape(filled[notebook.AgentInfo]("text")), importShape(&report), policyShape(&policy), ledgerShape(&ledger),
		statusShape(&status), eventShape(event), shape([]notebook.PageInfo(nil), pageShape), fenceShape(notebook.FenceInfo{}), nil,
	} {
		if err := a.answer(data, nil); err != nil {
			t.Fatal(err)
		}
	}
	a.finish(notebook.Errorf(notebook.CodeStale, "it changed").With("look again"))
	a.finish(&outcome{data: ledgerShape(&ledger), err: notebook.Errorf(notebook.CodeFailed, "broken")})

	var pretty bytes.Buffer
	for line := range strings.Lines(out.String()) {
		if err := json.Indent(&pretty, []byte(line), "", "  "); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
	}
	golden(t, "testdata/envelopes.json", pretty.String())
}

// JSON holds the exact text, and a terminal that shows it is not harmed.
func TestJSONIsExactAndPlain(t *testing.T) {
	var out bytes.Buffer
	a := newApp(nil, strings.NewReader(""), &out, &out)
	a.json = true
	exact := strings.ToValidUTF8(hostile, "?") + "漢字 <&> \U0001f600"
	if err := a.answer(pageViewShape(&notebook.PageView{Body: exact}), nil); err != nil {
		t.Fatal(err)
	}
	for _, r := range strings.TrimSuffix(out.String(), "\n") {
		if !unicode.IsGraphic(r) {
			t.Fatalf("%U in %s", r, out.String())
		}
	}
	var back struct{ Data struct{ Body string } }
	if err := json.Unmarshal(out.Bytes(), &back); err != nil {
		t.Fatal(err)
	}
	if back.Data.Body != exact {
		t.Errorf("got %q, want %q", back.Data.Body, exact)
	}
}

func TestColourOnlyWhereItIsWanted(t *testing.T) {
	tx := &text{colour: true}
	tx.line("%s", tx.paint(red, "x\x1b[0m"))
	if got, want := tx.buf.String(), "\x1b[31mx\\u{1b}[0m\x1b[0m\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	plain := newApp(nil, nil, &bytes.Buffer{}, nil).text()
	plain.line("%s", plain.paint(red, "x"))
	if got := plain.buf.String(); got != "x\n" {
		t.Errorf("without a terminal: %q", got)
	}
}

// On a terminal a fence is shown with its characters in their authors' colours,
// what was deleted struck through; whatever they are, nothing else reaches it.
func TestWhyShowsCharactersInTheirAuthorsColours(t *testing.T) {
	why := filled[notebook.Explanation]("x")
	why.Ranges = []notebook.Range{
		{Text: "```lua\nprint(", Name: "local"},
		{Text: "4", Name: "device:phone"},
		{Text: "2\x1b[2J", Name: "device:phone", Deleted: true},
		{Text: "2)\n```\n", Name: "local"},
	}
	for _, colours := range []bool{true, false} {
		tx := &text{colour: colours}
		renderWhy(tx, "page", &why)
		got := tx.buf.String()
		for piece, painted := range map[string]bool{
			"\x1b[32m```lua\x1b[0m\n": true,
			"\x1b[32mprint(\x1b[0m\x1b[33m4\x1b[0m\x1b[33;9m2\\u{1b}[2J\x1b[0m\x1b[32m2)\x1b[0m\n": true,
			"deleted": false,
		} {
			if want := colours || !painted; strings.Contains(got, piece) != want {
				t.Errorf("colours %v: %q: want %v, in\n%q", colours, piece, want, got)
			}
		}
		if rest := sgr.ReplaceAllString(got, ""); strings.Contains(rest, "\x1b") || !colours && rest != got {
			t.Errorf("colours %v: the terminal acts on %q", colours, got)
		}
	}
}

var sgr = regexp.MustCompile("\x1b\\[[0-9]+(;9)?m")

func TestReadAllBoundsAndNames(t *testing.T) {
	if got, err := readAll(strings.NewReader("a\r\nb\rc\n"), 100); err != nil || got != "a\nb\nc\n" {
		t.Errorf("line ends: %q, %v", got, err)
	}
	if got, err := readAll(strings.NewReader(strings.Repeat("a", 100)), 100); err != nil || len(got) != 100 {
		t.Errorf("exactly the most: %d bytes, %v", len(got), err)
	}
	for name, s := range map[string]string{"too large": strings.Repeat("a", 101), "not UTF-8": "a\xff", "control": "a\x1b[31m", "byte order mark": "\ufeffa"} {
		if got, err := readAll(strings.NewReader(s), 100); exitCode(err) != 2 {
			t.Errorf("%s: %q, %v, want a usage error", name, got, err)
		}
	}
}
