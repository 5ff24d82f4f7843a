package notebook

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// Argument is what a fence declares that it takes: by a name, and if nobody says
// it, with a value of its own.
type Argument struct {
	Name     string
	Optional bool
	Default  string // where it is left out; only of an optional one
}

// MaxArguments is how many a fence declares: more than a person fills in.
const MaxArguments = 32

// argumentSigns are written %20, %22 and %25 in a default.
const argumentSigns = ` "%`

// String is the argument as a fence declares it.
func (a Argument) String() string {
	if !a.Optional {
		return a.Name
	}
	return a.Name + "=" + strings.NewReplacer(" ", "%20", `"`, "%22", "%", "%25").Replace(a.Default)
}

// Arguments are what the fence takes, as args="name age=30" in its attributes, in
// order. A name is a lower-case letter and then letters, digits, - and _; in the
// value that stands for one that is left out a blank is written %20, a quote
// %22 and a percent sign %25. A fence that declares none takes none.
func (p Part) Arguments() ([]Argument, error) {
	attributes, err := p.Attributes()
	if err != nil {
		return nil, err
	}
	var all []Argument
	for _, word := range wordsOf(attributes["args"]) {
		name, value, optional := strings.Cut(word, "=")
		given, ok := unescape(value, argumentSigns)
		switch {
		case !isName(name):
			return nil, badArguments("%s is not a name of small letters, digits, - and _", quoted(name))
		case !ok || !utf8.ValidString(given):
			return nil, badArguments("in %s a blank is %%20, a quote %%22 and a percent sign %%25", quoted(word))
		case slices.ContainsFunc(all, func(a Argument) bool { return a.Name == name }):
			return nil, badArguments("%s is there twice", name)
		case len(all) == MaxArguments:
			return nil, badArguments("more than %d are too many", MaxArguments)
		}
		all = append(all, Argument{Name: name, Optional: optional, Default: given})
	}
	return all, nil
}

func badArguments(format string, args ...any) error {
	return Errorf(CodeInvalid, "the arguments that the fence takes cannot be read: %s", fmt.Sprintf(format, args...)).
		With(`write them as args="name age=30"`)
}
