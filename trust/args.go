package trust

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"noted/notebook"
)

// Bounds of what a run is given as arguments, defaults included.
const (
	maxArgs      = 64
	maxArgsBytes = 16 << 10 // names and values together
)

func checkArgs(args map[string]string) *Refusal {
	size := 0
	for name, value := range args {
		size += len(name) + len(value)
		if notebook.CheckLabel(name) != nil || !utf8.ValidString(value) {
			return &Refusal{Code: notebook.CodeInvalid, Reason: fmt.Sprintf("the argument %s is not NAME=TEXT", quote(name)), Hint: "arguments are text"}
		}
	}
	if len(args) > maxArgs || size > maxArgsBytes {
		return &Refusal{
			Code: notebook.CodeExhausted, Reason: fmt.Sprintf("%d arguments of %d bytes are more than %d of %d", len(args), size, maxArgs, maxArgsBytes),
			Hint: "pass less",
		}
	}
	return nil
}

// takeArgs holds the arguments of the request against those that the fence
// declares, and fills in what was left out. What an included fence takes the
// fence itself has to declare: only it is called.
func (r *Request) takeArgs() *Refusal {
	declared, err := r.Closure.Main().Arguments()
	if err != nil {
		return unreadable(err)
	}
	if len(declared) > 0 && !slices.Contains(doors[r.language()], notebook.CapArgs) {
		return &Refusal{
			Code: notebook.CodeRefused, Reason: fmt.Sprintf("the fence takes arguments, and %s here has no way to be given any", r.language()),
			Hint: "take args out of its words",
		}
	}
	takes := func(name string) bool {
		return slices.ContainsFunc(declared, func(a notebook.Argument) bool { return a.Name == name })
	}
	for i, in := range r.Included {
		parts, err := r.Closure[i].Arguments()
		if err != nil {
			no := unreadable(err)
			no.Reason = fmt.Sprintf("of the included fence %v: %s", address{in.Page, in.Fence}, no.Reason)
			return no
		}
		for _, a := range parts {
			if !takes(a.Name) {
				return &Refusal{
					Code: notebook.CodeRefused, Reason: fmt.Sprintf("the included fence %v takes the argument %s, which the fence itself does not declare", address{in.Page, in.Fence}, a.Name),
					Hint: "write it into the args of the fence that includes it",
				}
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(r.Args)) {
		if !takes(name) {
			return &Refusal{
				Code: notebook.CodeInvalid, Reason: fmt.Sprintf("the fence takes no argument %s", quote(name)),
				Hint: taken(declared),
			}
		}
	}
	r.args = maps.Clone(r.Args)
	for _, a := range declared {
		switch _, given := r.args[a.Name]; {
		case given:
		case a.Optional:
			if r.args == nil {
				r.args = make(map[string]string)
			}
			r.args[a.Name] = a.Default
		default:
			return &Refusal{
				Code: notebook.CodeInvalid, Reason: fmt.Sprintf("the fence needs the argument %s", a.Name),
				Hint: taken(declared),
			}
		}
	}
	return checkArgs(r.args)
}

// taken says what a fence declares that it takes.
func taken(declared []notebook.Argument) string {
	if len(declared) == 0 {
		return `it takes none; a fence that does says so in its words: {args="name age=30"}`
	}
	var words []string
	for _, a := range declared {
		if a.Optional {
			words = append(words, fmt.Sprintf("%s (%s where left out)", a.Name, quote(a.Default)))
		} else {
			words = append(words, a.Name)
		}
	}
	return "it takes " + strings.Join(words, ", ") + ": --arg NAME=VALUE"
}

// Suppose gives the request an empty value for each argument that the fence
// needs and nobody said, to tell what would be decided once somebody does.
func (r *Request) Suppose() {
	if len(r.Closure) == 0 {
		return
	}
	declared, err := r.Closure.Main().Arguments()
	if err != nil {
		return
	}
	args := make(map[string]string, len(declared))
	for _, a := range declared {
		if !a.Optional {
			args[a.Name] = ""
		}
	}
	maps.Copy(args, r.Args)
	r.Args = args
}
