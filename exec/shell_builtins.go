package exec

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strconv"
	"strings"

	"mvdan.cc/sh/v3/expand"
	"mvdan.cc/sh/v3/interp"
	"mvdan.cc/sh/v3/syntax"
)

// shellBuiltins are the commands of the shell that are here, by the name with
// which they are called in the end, however that was spelled. Where there is a
// function it says what is wrong with the arguments. Of all others that the
// interpreter knows none is called: those that run text (eval, source, trap,
// alias), that call what is not checked (command, builtin, exec), that look at
// the machine (type, hash, times), that wait (wait), or that only half exist.
var shellBuiltins = map[string]func(args []string, variables expand.Environ) error{
	":": nil, "true": nil, "false": nil, "echo": nil, "printf": nil, "read": nil, "exit": nil, "return": nil,
	"set": nil, "shopt": nil, "cd": nil, "break": loops, "continue": loops,
	"test": nil, "[": nil, // both are answered by call itself
	"pwd": func(args []string, _ expand.Environ) error {
		if slices.ContainsFunc(args, func(a string) bool { return a != "-L" }) {
			return errors.New("pwd tells where the shell is, and takes no argument but -L")
		}
		return nil
	},
	"shift": func(args []string, _ expand.Environ) error {
		if len(args) > 1 || len(args) == 1 && strings.Trim(args[0], "0123456789") != "" {
			return errors.New("shift takes a number that is not negative")
		}
		return nil
	},
	"unset": func(args []string, variables expand.Environ) error {
		for _, a := range args {
			name, subscript, _ := strings.Cut(a, "[")
			if a != "-v" && a != "-f" && (!syntax.ValidName(name) || slices.Contains(ownNames, name)) {
				return fmt.Errorf("unset: %s is not the name of a variable or a function", inWords(a))
			}
			// The interpreter reads the place in a list as arithmetic, which runs commands.
			if strings.Trim(subscript, "-0123456789@*]") != "" && variables.Get(name).Kind != expand.Associative {
				return fmt.Errorf("unset: the place in %s is written as a number", name)
			}
		}
		return nil
	},
}

func loops(args []string, _ expand.Environ) error {
	if len(args) > 1 || len(args) == 1 && (strings.Trim(args[0], "0123456789") != "" || len(args[0]) > 4 || strings.Trim(args[0], "0") == "") {
		return errors.New("break and continue take a number of loops")
	}
	return nil
}

// call sees every command before it is called: a builtin, a function of the
// fence, or what exec has to say no to.
func (e *shellEngine) call(ctx context.Context, args []string) ([]string, error) {
	hc := interp.HandlerCtx(ctx)
	line := hc.Pos.Line()
	e.line.Store(uint64(line))
	name := args[0]
	if !interp.IsBuiltin(name) {
		return args, nil
	}
	check, here := shellBuiltins[name]
	if !here {
		return nil, e.deny(line, "the command %s is not here", name)
	}
	if check != nil {
		if err := check(args[1:], hc.Env); err != nil {
			return nil, e.deny(line, "%v", err)
		}
	}
	if name == "test" || name == "[" {
		t := shellTest{env: hc.Env, dir: hc.Dir, files: e.files}
		holds, err := t.eval(name, args[1:])
		switch {
		case err != nil:
			return nil, e.deny(line, "%s: %v", name, err)
		case holds:
			return []string{"true"}, nil
		}
		return []string{"false"}, nil
	}
	return args, nil
}

// exec is asked for every command that is neither a builtin nor a function, and
// is the end of its chain: the interpreter's own way to start a program is never
// reached.
func (e *shellEngine) exec(ctx context.Context, args []string) error {
	hc := interp.HandlerCtx(ctx)
	switch {
	case args[0] == rollCommand && e.seed != nil:
		_, _ = fmt.Fprintln(hc.Stdout, e.roll())
		return nil
	case args[0] == copyCommand && hc.Stdin != nil:
		if _, err := io.Copy(hc.Stdout, hc.Stdin); err != nil {
			return interp.ExitStatus(1)
		}
		return nil
	}
	program, ok := e.program(args[0])
	if !ok {
		return e.deny(hc.Pos.Line(), "there is no command %s here: only those of the shell, its functions, and programs that are granted", inWords(args[0]))
	}
	err := e.start(ctx, program, args[1:], hc.Stdin, hc.Stdout, hc.Stderr)
	var status exitStatus
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return err // the run is over, for another reason
	case errors.As(err, &status):
		return interp.ExitStatus(status)
	}
	return e.deny(hc.Pos.Line(), "%s: %v", inWords(args[0]), err)
}

// program is the granted program that a word names: by its path, or by its last
// part where no slash is written.
func (e *shellEngine) program(word string) (string, bool) {
	i := slices.IndexFunc(e.programs, func(p string) bool { return p == word || path.Base(p) == word })
	if i < 0 || e.start == nil {
		return "", false
	}
	return e.programs[i], true
}

// roll is the next $RANDOM.
func (e *shellEngine) roll() string {
	e.rolling.Lock()
	defer e.rolling.Unlock()
	return strconv.Itoa(e.seed.IntN(1 << 15))
}
