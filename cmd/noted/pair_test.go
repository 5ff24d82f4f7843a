package main

import (
	"bytes"
	"context"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"noted/notebook"
)

var (
	waiting  = notebook.PairEvent{Session: "s", State: notebook.PairWaiting, Invitation: "noted:1?n=x", Expires: time.Now().Add(time.Minute)}
	compared = notebook.PairEvent{Session: "s", State: notebook.PairCompare, Name: "phone", Peer: notebook.DeviceID{1}, Code: "123456"}
	paired   = notebook.PairEvent{Session: "s", State: notebook.PairDone, Name: "phone", Peer: notebook.DeviceID{1}}
	unpaired = notebook.PairEvent{Session: "s", State: notebook.PairFailed, Reason: "the codes differ"}
)

// follow plays the steps of a daemon to the command and returns what it ends with.
func follow(t *testing.T, asJSON bool, confirm func(context.Context, notebook.PairEvent) error,
	steps func(ctx context.Context, tell func(notebook.PairEvent) error) error,
) (stdout string, err error) {
	t.Helper()
	var out bytes.Buffer
	a := newApp(nil, strings.NewReader(""), &out, &bytes.Buffer{})
	a.json = asJSON
	ended := make(chan error, 1)
	go func() { ended <- a.pairing(t.Context(), steps, confirm) }()
	select {
	case err := <-ended:
		return out.String(), err
	case <-time.After(patience):
		t.Fatal("the command does not end")
		return "", nil
	}
}

func TestPairingToItsEnd(t *testing.T) {
	for _, asJSON := range []bool{false, true} {
		confirmed := make(chan string, 1)
		out, err := follow(t, asJSON, func(_ context.Context, e notebook.PairEvent) error {
			confirmed <- e.Code
			return nil
		}, func(_ context.Context, tell func(notebook.PairEvent) error) error {
			return errors.Join(tell(waiting), tell(compared), func() error { confirmed <- <-confirmed; return nil }(), tell(paired))
		})
		if err != nil || <-confirmed != "123456" {
			t.Errorf("%v", err)
		}
		for _, want := range []string{"noted:1?n=x", "123456", "phone"} {
			if !strings.Contains(out, want) {
				t.Errorf("%q is not in %s", want, out)
			}
		}
		if asJSON && strings.Count(out, `{"ok":true,"data":{"session":"s"`) != 3 {
			t.Errorf("not one envelope for each step:\n%s", out)
		}
	}
}

func TestPairingThatFails(t *testing.T) {
	never := func(context.Context, notebook.PairEvent) error { t.Error("nobody was to be asked"); return nil }
	person := notebook.Errorf(notebook.CodeRefused, "the codes differ").With("try again")
	for name, tt := range map[string]struct {
		confirm func(context.Context, notebook.PairEvent) error
		steps   func(context.Context, func(notebook.PairEvent) error) error
		exit    int
		says    string
	}{
		"refused before anything": {never, func(context.Context, func(notebook.PairEvent) error) error { return person }, 4, "the codes differ"},
		"failed with a reason": {never, func(_ context.Context, tell func(notebook.PairEvent) error) error {
			return errors.Join(tell(waiting), tell(unpaired), person)
		}, 4, "the codes differ"},
		"failed, and the call knows nothing of it": {never, func(_ context.Context, tell func(notebook.PairEvent) error) error {
			return errors.Join(tell(waiting), tell(unpaired))
		}, 1, "the codes differ"},
		"ended without an end": {never, func(_ context.Context, tell func(notebook.PairEvent) error) error { return tell(waiting) }, 1, "before it was done"},
		"the person says no": {
			func(context.Context, notebook.PairEvent) error { return notebook.Errorf(notebook.CodeRefused, "no") },
			func(ctx context.Context, tell func(notebook.PairEvent) error) error {
				err := tell(compared)
				<-ctx.Done() // the daemon would wait; the command ends the call
				return err
			}, 4, "no",
		},
		"over while the person still looks": {
			func(ctx context.Context, _ notebook.PairEvent) error { <-ctx.Done(); return ctx.Err() },
			func(_ context.Context, tell func(notebook.PairEvent) error) error {
				return errors.Join(tell(compared), tell(unpaired), person)
			}, 4, "the codes differ",
		},
	} {
		_, err := follow(t, false, tt.confirm, tt.steps)
		if exitCode(err) != tt.exit || !strings.Contains(failure(err).Error(), tt.says) {
			t.Errorf("%s: %v, want exit %d and %q", name, err, tt.exit, tt.says)
		}
	}
}

// descriptor is the number of a descriptor from which s can be read.
func descriptor(t *testing.T, s string) int {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.WriteString(s); err != nil {
		t.Fatal(err)
	}
	w.Close()
	// A descriptor of its own: who reads it may close it.
	fd, err := unix.Dup(int(r.Fd()))
	if err := errors.Join(err, r.Close()); err != nil {
		t.Fatal(err)
	}
	return fd
}

func TestCodesAreCompared(t *testing.T) {
	a := newApp(nil, strings.NewReader(""), &bytes.Buffer{}, &bytes.Buffer{})
	for _, code := range []string{"123456\n", "123456", "  123456  \n"} {
		if err := a.sameCode(t.Context(), compareFlags{fd: descriptor(t, code)}, compared); err != nil {
			t.Errorf("%q: %v", code, err)
		}
	}
	for code, exit := range map[string]int{"123457\n": 4, "12345\n": 4, "\n": 4, "": 2, "123456 123456\n": 4} {
		if err := a.sameCode(t.Context(), compareFlags{fd: descriptor(t, code)}, compared); exitCode(err) != exit {
			t.Errorf("%q: %v, want exit %d", code, err, exit)
		}
	}
	// Without a word from the person or a program, nothing is the same.
	if err := a.sameCode(t.Context(), compareFlags{fd: -1}, compared); exitCode(err) != 4 {
		t.Errorf("nobody compared, and the answer is %v", err)
	}
}

func TestReadPIN(t *testing.T) {
	a := newApp(nil, nil, nil, nil)
	for in, want := range map[string]string{"271828\n": "271828", "271828": "271828", "a b\r\nrest\n": "a b"} {
		a.pinFD = descriptor(t, in)
		if got, err := a.readPIN(); err != nil || got != want {
			t.Errorf("%q is read as %q, %v", in, got, err)
		}
	}
	a.pinFD = descriptor(t, "")
	if _, err := a.readPIN(); exitCode(err) != 2 {
		t.Errorf("an empty descriptor: %v", err)
	}
	a.pinFD = 987
	if _, err := a.readPIN(); exitCode(err) != 2 {
		t.Errorf("a closed descriptor: %v", err)
	}
	a.pinFD = descriptor(t, strings.Repeat("1", 2000))
	if _, err := a.readPIN(); exitCode(err) != 2 {
		t.Errorf("an endless line: %v", err)
	}
}
