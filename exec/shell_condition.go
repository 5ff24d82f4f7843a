package exec

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strconv"
	"strings"

	"mvdan.cc/sh/v3/expand"
	"mvdan.cc/sh/v3/interp"
	"mvdan.cc/sh/v3/syntax"
)

// shellTest answers test and [. It goes by the number of its arguments, so that
// what they hold is never mistaken for what they mean; more than four are read as
// such tests between -a and -o, of which -a binds tighter.
type shellTest struct {
	env   expand.Environ
	dir   string
	files shellFiles
}

var errTest = errors.New("these words are not a test")

func (t shellTest) eval(name string, args []string) (bool, error) {
	if name == "[" {
		if len(args) == 0 || args[len(args)-1] != "]" {
			return false, errors.New(`there is no "]" at the end`)
		}
		args = args[:len(args)-1]
	}
	if len(args) <= 4 {
		if holds, err := t.simple(args); !errors.Is(err, errTest) {
			return holds, err
		}
	}
	return t.alternatives(args)
}

func (t shellTest) simple(args []string) (bool, error) {
	switch len(args) {
	case 0:
		return false, nil
	case 1:
		return args[0] != "", nil
	case 2:
		if args[0] == "!" {
			return args[1] == "", nil
		}
		return t.unary(args[0], args[1])
	case 3:
		holds, err := t.binary(args[0], args[1], args[2])
		switch {
		case !errors.Is(err, errTest):
			return holds, err
		case args[0] == "!":
			holds, err = t.simple(args[1:])
			return !holds, err
		case args[0] == "(" && args[2] == ")":
			return args[1] != "", nil
		}
	case 4:
		switch {
		case args[0] == "!":
			holds, err := t.simple(args[1:])
			return !holds, err
		case args[0] == "(" && args[3] == ")":
			return t.simple(args[1:3])
		}
	}
	return false, errTest
}

// alternatives splits at -o, and what is between at -a.
func (t shellTest) alternatives(args []string) (bool, error) {
	or := false
	for _, a := range split(args, "-o") {
		and := true
		for _, b := range split(a, "-a") {
			if len(b) == 0 {
				return false, errTest
			}
			holds, err := t.simple(b)
			if err != nil {
				return false, err
			}
			and = and && holds
		}
		or = or || and
	}
	return or, nil
}

func split(args []string, at string) [][]string {
	var parts [][]string
	for {
		i := slices.Index(args, at)
		if i < 0 {
			return append(parts, args)
		}
		parts, args = append(parts, args[:i]), args[i+1:]
	}
}

func (t shellTest) unary(op, x string) (bool, error) {
	switch op {
	case "-z":
		return x == "", nil
	case "-n":
		return x != "", nil
	case "-t":
		return false, nil // there is no terminal
	case "-v":
		if !syntax.ValidName(x) || slices.Contains(ownNames, x) {
			return false, fmt.Errorf("-v takes the name of a variable, not %s", inWords(x))
		}
		return t.env.Get(x).IsSet(), nil
	}
	if len(op) != 2 || !strings.Contains("efdhLsrwx", op[1:]) || op[0] != '-' {
		return false, errTest
	}
	if x == "" {
		return false, nil
	}
	name := from(t.dir, x)
	if access := strings.Index("xwr", op[1:]); access >= 0 {
		err := t.files.access(name, interp.AccessMode(1<<access))
		return err == nil, ungranted(x, err)
	}
	info, err := t.files.stat(name, op != "-h" && op != "-L")
	if err != nil {
		return false, ungranted(x, err)
	}
	switch op {
	case "-f":
		return info.Mode().IsRegular(), nil
	case "-d":
		return info.IsDir(), nil
	case "-h", "-L":
		return info.Mode()&fs.ModeSymlink != 0, nil
	case "-s":
		return info.Size() > 0, nil
	}
	return true, nil
}

// ungranted is err if it is a denial: that a file is not there is an answer.
func ungranted(name string, err error) error {
	if denial(err) {
		return fmt.Errorf("%s: %w", inWords(name), err)
	}
	return nil
}

func (t shellTest) binary(x, op, y string) (bool, error) {
	switch op {
	case "=", "==":
		return x == y, nil
	case "!=":
		return x != y, nil
	case "<":
		return x < y, nil
	case ">":
		return x > y, nil
	case "-a":
		return x != "" && y != "", nil
	case "-o":
		return x != "" || y != "", nil
	case "-nt", "-ot":
		if op == "-ot" {
			x, y = y, x
		}
		a, err1 := t.files.stat(from(t.dir, x), true)
		b, err2 := t.files.stat(from(t.dir, y), true)
		if err := errors.Join(ungranted(x, err1), ungranted(y, err2)); err != nil {
			return false, err
		}
		return err1 == nil && (err2 != nil || a.ModTime().After(b.ModTime())), nil
	}
	i := slices.Index([]string{"-eq", "-ne", "-lt", "-le", "-gt", "-ge"}, op)
	if i < 0 {
		return false, errTest
	}
	a, err1 := strconv.ParseInt(strings.TrimSpace(x), 10, 64)
	b, err2 := strconv.ParseInt(strings.TrimSpace(y), 10, 64)
	if err1 != nil || err2 != nil {
		return false, fmt.Errorf("%s compares whole numbers, not %s with %s", op, inWords(x), inWords(y))
	}
	return []bool{a == b, a != b, a < b, a <= b, a > b, a >= b}[i], nil
}
