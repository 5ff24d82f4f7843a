package exec

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"mvdan.cc/sh/v3/expand"
	"mvdan.cc/sh/v3/interp"
	"mvdan.cc/sh/v3/syntax"
)

// shellLanguage is sh, with the parts of bash that the interpreter knows.
var shellLanguage = language{
	name:    "sh",
	version: "mvdan.cc/sh/v3 v3.14.1",
	open:    func(w *workspace) (engine, error) { return openShellFor(w) },
	warm:    warmShell,
	pipes:   shellPipes,
}

// maxShell is the most that the shell parses, in bytes, with what is included,
// whatever the limits allow: its parser is recursive and asks no deadline.
const maxShell = 64 << 10

// maxNesting is how many brackets of a source may be open at once.
const maxNesting = 256

// shellPipes is how many descriptors a shell may have open as pipes. A pipe and a
// here-document take two each.
const shellPipes = 128

// shellEngine is one shell, for one fence. Whatever the interpreter would ask of
// the process it asks of this engine, which answers from what was granted. What
// is not granted is a denial: it is recorded here, where the fence cannot reach
// it, and ends the run at once, in whatever the fence wrapped it.
type shellEngine struct {
	runner   *interp.Runner
	names    shellNames
	files    shellFiles
	programs []string // absolute paths that may be started

	// start runs a granted program until it ends or ctx does; an [exitStatus] is
	// one that ended by itself, with that.
	start func(ctx context.Context, path string, args []string, stdin io.Reader, stdout, stderr io.Writer) error

	seed    *rand.Rand // nil where it was not granted
	rolling sync.Mutex

	out     *shellOutput
	denials *denials
	cancel  context.CancelFunc
	chunks  []shellChunk
	places  []shellPlace
	line    atomic.Uint64 // of the command that was called last
}

// shellOutput is where a fence writes, until something is denied: what the
// interpreter still says then depends on how far it has come.
type shellOutput struct {
	io.Writer
	closed atomic.Bool
}

func (o *shellOutput) Write(p []byte) (int, error) {
	if o.closed.Load() {
		return len(p), nil
	}
	return o.Writer.Write(p)
}

// exitStatus is how a program ended that did not succeed.
type exitStatus uint8

func (s exitStatus) Error() string { return fmt.Sprintf("exit status %d", uint8(s)) }

// shellNames are the variables that a shell begins with; nothing is inherited.
type shellNames map[string]expand.Variable

func (n shellNames) Get(name string) expand.Variable { return n[name] }

func (n shellNames) Each(f func(string, expand.Variable) bool) {
	for name, v := range n {
		if !f(name, v) {
			return
		}
	}
}

func (n shellNames) set(name, value string) {
	n[name] = expand.Variable{Set: true, Kind: expand.String, Str: value}
}

func (n shellNames) list(name string, values []string) {
	n[name] = expand.Variable{Set: true, Kind: expand.Indexed, List: append([]string{}, values...)}
}

// tempDir is where the interpreter would put its named pipes, and takes names for
// its own: below what is no directory, and under a name that no word can spell.
const tempDir = "/dev/null/none\x00"

const nobody = "65534"

// openShell, where a test sets it, leaves out the check of programs and every
// handler, to show that the jail alone holds. No code of the program sets it.
var openShell bool

// openShellFor is a shell with what the run was granted.
func openShellFor(w *workspace) (engine, error) {
	e, err := newShell(w.out, w.dirs)
	if err == nil && w.programs != nil {
		e.programs = w.programs.names()
		e.start = func(ctx context.Context, path string, args []string, stdin io.Reader, stdout, stderr io.Writer) error {
			status, err := w.programs.run(ctx, path, args, stdin, stdout, stderr)
			if err == nil && status != 0 {
				err = exitStatus(status)
			}
			return err
		}
	}
	return e, err
}

func newShell(out io.Writer, dirs []*dirGrant) (*shellEngine, error) {
	e := &shellEngine{names: shellNames{}, files: dirs, out: &shellOutput{Writer: out}, denials: newDenials(), cancel: func() {}}
	for name, value := range map[string]string{"TMPDIR": tempDir, "HOME": "/", "PATH": ""} {
		e.names.set(name, value)
	}
	for _, name := range []string{"UID", "EUID", "GID"} {
		e.names[name] = expand.Variable{Set: true, ReadOnly: true, Kind: expand.String, Str: nobody}
	}
	options := []interp.RunnerOption{
		interp.Env(e.names),
		interp.Dir("/"),
		interp.Params("--"),
		interp.StdIO(nil, e.out, e.out),
		interp.CallHandler(e.call),
		interp.ExecHandlers(func(interp.ExecHandlerFunc) interp.ExecHandlerFunc { return e.exec }),
		interp.OpenHandler(e.openFile),
		interp.ReadDirHandler2(e.readDir),
		interp.StatHandler(e.stat),
		interp.AccessHandler(e.access),
	}
	if openShell {
		options = options[:4]
	}
	var err error
	e.runner, err = interp.New(options...)
	if err != nil {
		return nil, err
	}
	e.runner.Reset() // it reads TMPDIR here, and never again
	delete(e.names, "TMPDIR")
	return e, nil
}

// warmShell touches what a fence is going to touch, in a shell that is thrown away.
func warmShell() {
	e, err := newShell(io.Discard, nil)
	if err == nil {
		e.run(&request{source: `f() { local x=$1; printf '%s\n' "${x%.*}"; }; for i in 1 2; do f "$i.$((i + 1))"; done | while read -r l; do [ "$l" ] && case $l in *) ;; esac; done`})
	}
}

// run runs what the fence includes, in order, and then the fence, in one shell.
// Nothing runs before all of it could be read. The answer does not wait for the
// interpreter where something was denied.
func (e *shellEngine) run(r *request) outcome {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	e.cancel = cancel
	ended := make(chan outcome, 1)
	go func() { ended <- e.interpret(ctx, r) }()
	var o outcome
	select {
	case o = <-ended:
	case <-e.denials.first:
	}
	if text := e.denials.text(); text != "" {
		return outcome{failed: true, text: clipError(text)}
	}
	return o
}

func (e *shellEngine) interpret(ctx context.Context, r *request) (o outcome) {
	defer func() {
		if v := recover(); v != nil {
			o = failed("the shell engine gave up: %v", v)
		}
	}()
	if err := e.grant(r); err != nil {
		return failed("%v", err)
	}
	parts := slices.Concat(r.before, []field{{chunk, r.source}})
	programs, err := e.parse(parts)
	if err != nil {
		return failed("%v", err)
	}
	for i, p := range programs {
		if err := e.runner.Run(ctx, p); err != nil {
			if i < len(programs)-1 {
				return failed("%s: %v", parts[i].name, err)
			}
			return failed("%v", err)
		}
		if e.runner.Exited() {
			break
		}
	}
	return outcome{}
}

// deny records that something was asked for that is not here, and ends the run.
// The line is that of the command that was called last where it is not known
// better.
func (e *shellEngine) deny(line uint, format string, args ...any) error {
	if line == 0 {
		line = uint(e.line.Load())
	}
	err := errors.New(e.at(line) + ": " + fmt.Sprintf(format, args...))
	e.out.closed.Store(true)
	e.denials.add(err.Error())
	e.cancel()
	return err
}

// inWords is a word of the fence as a message shows it.
func inWords(text string) string {
	const most = 200
	if len(text) > most {
		text = text[:most] + "…"
	}
	return strconv.Quote(strings.ToValidUTF8(text, "?"))
}

// shellChunk is where a part is in the numbers of lines that the parser gives:
// each part goes on where the one before it ended.
type shellChunk struct {
	name  string
	first uint // its line 1
}

// local is a line in its own part.
func (e *shellEngine) local(line uint) (part string, local uint) {
	for _, c := range slices.Backward(e.chunks) {
		if line >= c.first {
			return c.name, line - c.first + 1
		}
	}
	return chunk, line
}

// at is a line as a message shows it: "fence:3".
func (e *shellEngine) at(line uint) string {
	if line == 0 {
		return chunk
	}
	part, local := e.local(line)
	return fmt.Sprintf("%s:%d", part, local)
}

// parse reads all parts and checks them.
func (e *shellEngine) parse(parts []field) ([]*syntax.File, error) {
	n := 0
	for _, p := range parts {
		n += len(p.value)
	}
	if n > maxShell {
		return nil, fmt.Errorf("%d bytes of shell where %d can be read", n, maxShell)
	}
	var programs []*syntax.File
	line := uint(1)
	for _, p := range parts {
		e.chunks = append(e.chunks, shellChunk{p.name, line})
		if deep := nesting(p.value); deep > maxNesting {
			return nil, fmt.Errorf("%s: %d brackets are open at once where %d may be", p.name, deep, maxNesting)
		}
		source := strings.Repeat("\n", int(line-1)) + p.value
		program, err := syntax.NewParser(syntax.Variant(syntax.LangBash)).Parse(strings.NewReader(source), p.name)
		if err != nil {
			return nil, errors.New(e.syntaxError(err))
		}
		programs = append(programs, program)
		line += uint(strings.Count(p.value, "\n")) + 1
	}
	if openShell {
		return programs, nil
	}
	c := shellCheck{seeded: e.seed != nil, files: len(e.files) > 0, keyed: map[string]bool{}, local: e.local}
	if _, ok := e.names["args"]; ok {
		c.keyed["args"] = true
	}
	for _, p := range programs {
		c.keys(p)
	}
	for _, p := range programs {
		if line, reason := c.check(p); reason != "" {
			return nil, errors.New(e.at(line) + ": " + reason)
		}
	}
	e.places = c.places
	return programs, nil
}

// nesting is how deep the brackets of a source go, without knowing which of them
// are text.
func nesting(source string) int {
	open, deepest := 0, 0
	for _, c := range []byte(source) {
		switch c {
		case '(', '{', '[':
			open++
			deepest = max(deepest, open)
		case ')', '}', ']':
			open = max(0, open-1)
		}
	}
	return deepest
}

func (e *shellEngine) syntaxError(err error) string {
	var parse syntax.ParseError
	var other syntax.LangError
	switch {
	case errors.As(err, &parse):
		return e.at(parse.Pos.Line()) + ": " + parse.Text
	case errors.As(err, &other):
		return e.at(other.Pos.Line()) + ": " + other.Feature + ": not in this shell"
	}
	return err.Error()
}
