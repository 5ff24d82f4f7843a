package main

import (
	"context"
	"fmt"
	"os"
	osexec "os/exec"
	"os/signal"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// asker is a program that asks one question on its terminal, for the tests of this file.
const asker = "noted-asks"

func askMain() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	a := newApp(nil, os.Stdin, os.Stdout, os.Stderr)
	fmt.Println("ready")
	time.Sleep(200 * time.Millisecond) // in which an impatient person types
	tty, err := a.person()
	if err != nil {
		fmt.Println("nobody:", err)
		os.Exit(exitCode(err))
	}
	defer tty.close()
	var answer string
	switch os.Args[1] {
	case "ask":
		answer, err = tty.ask(ctx, "question? ")
	case "secret":
		answer, err = tty.secret(ctx, "secret? ")
	case "confirm":
		var yes bool
		yes, err = tty.confirm(ctx, "sure?")
		answer = fmt.Sprint(yes)
	}
	state, serr := unix.IoctlGetTermios(int(tty.f.Fd()), unix.TCGETS)
	if serr != nil {
		panic(serr)
	}
	fmt.Printf("answer %q of %d bytes, error %v, echo %v\n", strings.Repeat("*", len(answer)/2)+answer[len(answer)/2:], len(answer), err, state.Lflag&unix.ECHO != 0)
}

func asks(t *testing.T, kind, dialog string) (screen string) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := osexec.Command(self, kind)
	cmd.Args[0] = asker
	screen, err = converse(cmd, dialog)
	if err != nil {
		t.Fatalf("%v\n%s", err, screen)
	}
	return screen
}

func TestAskedOnATerminal(t *testing.T) {
	for _, tt := range []struct{ name, kind, dialog, want string }{
		{"an answer", "ask", "? question?\n> blue\n", `answer "**ue" of 4 bytes, error <nil>, echo true`},
		{"what was typed before the question is no answer", "ask", "? ready\n> early\n? question?\n> late\n", `"**te"`},
		{"a PIN typed before its question is no PIN", "secret", "? ready\n> 0000\n? secret?\n> 271828\n", `"***828" of 6 bytes, error <nil>, echo true`},
		{"yes", "confirm", "? sure? [y/N]\n> y\n", `"**ue"`},
		{"only yes is yes", "confirm", "? sure? [y/N]\n> sure\n", `"**lse"`},
		{"nothing is no", "confirm", "? sure? [y/N]\n> \n", `"**lse"`},
		{"a yes before the question is none", "confirm", "? ready\n> y\n? sure? [y/N]\n> \n", `"**lse"`},
		{"interrupted, the terminal is as it was", "secret", "? secret?\n^ C\n", `of 0 bytes, error context canceled, echo true`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if screen := asks(t, tt.kind, tt.dialog); !strings.Contains(screen, tt.want) {
				t.Errorf("want %s on the screen:\n%s", tt.want, screen)
			}
		})
	}
}

func TestSecretIsNotShown(t *testing.T) {
	if screen := asks(t, "secret", "? secret?\n> 271828\n"); strings.Contains(screen, "271") {
		t.Errorf("the secret is on the screen:\n%s", screen)
	}
	// The control: a plain answer is echoed.
	if screen := asks(t, "ask", "? question?\n> 271828\n"); !strings.Contains(screen, "271828") {
		t.Errorf("the answer is not on the screen:\n%s", screen)
	}
}

// A program without a terminal is told so, and waits for nobody.
func TestNobodyIsAsked(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := osexec.Command(self, "ask")
	cmd.Args[0] = asker
	out, err := cmd.Output()
	if cmd.ProcessState.ExitCode() != 4 || !strings.Contains(string(out), "nobody") {
		t.Errorf("%v, %s", err, out)
	}
}
