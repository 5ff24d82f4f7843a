package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/term"

	"noted/notebook"
)

// terminal is where a person is asked: the controlling terminal, whatever
// stdin and stdout are connected to.
type terminal struct {
	f    *os.File
	left bool // a question was given up, and is still being read
}

// person finds the terminal of the person who started the command. Without a
// stream on a terminal nobody would see the question, and it is not asked.
func (a *app) person() (*terminal, error) {
	nobody := notebook.Errorf(notebook.CodeRefused, "this needs a person at a terminal, and there is none")
	if !isTerminal(a.stdin) && !isTerminal(a.stdout) && !isTerminal(a.stderr) {
		return nil, nobody.With("run it in a terminal, or give the PIN on a file descriptor with --pin-fd")
	}
	f, err := os.OpenFile("/dev/tty", os.O_RDWR|noCTTY, 0)
	if err != nil {
		return nil, nobody.With("run it in a terminal, or give the PIN on a file descriptor with --pin-fd")
	}
	return &terminal{f: f}, nil
}

// close gives the terminal back. One that is still being read is left to the
// end of the process, which is near.
func (t *terminal) close() {
	if !t.left {
		_ = t.f.Close()
	}
}

// ask reads one line.
func (t *terminal) ask(ctx context.Context, question string) (string, error) {
	return t.read(ctx, question, func() (string, error) { return readLine(t.f) })
}

// secret reads one line that is not shown.
func (t *terminal) secret(ctx context.Context, question string) (string, error) {
	fd := int(t.f.Fd())
	s, err := t.read(ctx, question, func() (string, error) {
		b, err := term.ReadPassword(fd)
		return string(b), err
	})
	_, _ = fmt.Fprintln(t.f) // the line end was not echoed
	return s, err
}

// confirm asks a question that only y or yes answers with yes.
func (t *terminal) confirm(ctx context.Context, question string) (bool, error) {
	s, err := t.ask(ctx, question+" [y/N] ")
	if err != nil {
		return false, err
	}
	s = strings.ToLower(strings.TrimSpace(s))
	return s == "y" || s == "yes", nil
}

// read asks a question and reads its answer. What was typed before the question
// was there is thrown away: it cannot be an answer to it. When ctx ends the
// terminal is put back as it was.
func (t *terminal) read(ctx context.Context, question string, read func() (string, error)) (string, error) {
	fd := int(t.f.Fd())
	before, err := term.GetState(fd)
	if err != nil {
		return "", fmt.Errorf("the terminal cannot be used: %w", err)
	}
	if err := flushInput(fd); err != nil {
		return "", fmt.Errorf("the terminal cannot be flushed: %w", err)
	}
	if _, err := io.WriteString(t.f, notebook.EscapeLine(question)); err != nil {
		return "", err
	}
	type answer struct {
		line string
		err  error
	}
	answers := make(chan answer, 1)
	go func() {
		line, err := read()
		answers <- answer{line, err}
	}()
	select {
	case got := <-answers:
		if ctx.Err() != nil {
			return "", ctx.Err() // the person left; an empty line on the way out is no answer
		}
		return got.line, got.err
	case <-ctx.Done():
		t.left = true
		_ = term.Restore(fd, before)
		_, _ = fmt.Fprintln(t.f)
		return "", ctx.Err()
	}
}

// readLine reads up to a line end, byte by byte, so that what follows stays unread.
func readLine(r io.Reader) (string, error) {
	const most = 1 << 10
	var line []byte
	for b := make([]byte, 1); ; {
		n, err := r.Read(b)
		if n == 1 {
			if b[0] == '\n' {
				return strings.TrimSuffix(string(line), "\r"), nil
			}
			if line = append(line, b[0]); len(line) > most {
				return "", notebook.Errorf(notebook.CodeInvalid, "a line of more than %d bytes cannot be an answer", most)
			}
			continue
		}
		if errors.Is(err, io.EOF) && len(line) > 0 {
			return string(line), nil
		}
		if err != nil {
			return "", err
		}
	}
}
