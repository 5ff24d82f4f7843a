package trust

import (
	"fmt"
	"slices"
	"strings"

	"noted/notebook"
)

// Languages are those that a policy can name, by their [notebook.Canonical]
// names; a fence of another does not run.
var Languages = []string{"lua", "python", "javascript", "sh", "wasm", "query"}

// doors are the kinds of capabilities that a fence of a language can be given,
// in the order in which a person is told. What is not here nobody can grant.
var doors = map[string][]notebook.Capability{
	"lua":        {notebook.CapPage, notebook.CapClock, notebook.CapArgs, notebook.CapSeed, notebook.CapQuery, notebook.CapDir, notebook.CapNet},
	"python":     {notebook.CapPage, notebook.CapClock, notebook.CapArgs, notebook.CapSeed, notebook.CapQuery, notebook.CapDir},
	"javascript": {notebook.CapPage, notebook.CapClock, notebook.CapArgs, notebook.CapSeed, notebook.CapQuery, notebook.CapDir},
	"sh":         {notebook.CapPage, notebook.CapClock, notebook.CapArgs, notebook.CapSeed, notebook.CapQuery, notebook.CapDir, notebook.CapProgram},
	"wasm":       {notebook.CapPage, notebook.CapClock, notebook.CapArgs, notebook.CapSeed, notebook.CapQuery, notebook.CapDir},
	"query":      {notebook.CapQuery},
}

// essence is the capability without which a fence of a language is nothing:
// it has it whether or not it says so. What it finds is all that it shows, so
// who wrote that has no hand in what it does.
func essence(language string, c notebook.Capability) bool {
	return language == "query" && c == notebook.CapQuery
}

// language is the name by which policy knows the closure's language.
func (r *Request) language() string { return notebook.Canonical(r.Closure.Main().Language) }

// wanted are the capabilities that the fence asks for, and what its language is
// nothing without.
func (r *Request) wanted() ([]notebook.Capability, error) {
	wants, err := r.Closure.Main().Wants()
	if err == nil && essence(r.language(), notebook.CapQuery) && !slices.Contains(wants, notebook.CapQuery) {
		wants = slices.Sorted(slices.Values(append(wants, notebook.CapQuery)))
	}
	return wants, err
}

// shut refuses what a language has no door for. No policy and no approval opens
// one.
func (r *Request) shut(all []notebook.Capability) *Refusal {
	language := r.language()
	for _, c := range all {
		if kind := c.Kind(); !slices.Contains(doors[language], kind) {
			return &Refusal{
				Code:   notebook.CodeRefused,
				Reason: fmt.Sprintf("the fence wants %s, and %s here has no way to be given it", c, language),
				Hint:   language + " can be given " + strings.Join(kinds(language), ", "),
			}
		}
	}
	return nil
}

// kinds are the forms of the capabilities that a language can be given.
func kinds(language string) []string {
	var forms []string
	for _, kind := range doors[language] {
		switch kind {
		case notebook.CapDir:
			forms = append(forms, "dir:PATH", "dir:PATH:rw")
		case notebook.CapProgram:
			forms = append(forms, "program:PATH")
		case notebook.CapNet:
			forms = append(forms, "net:HOST:PORT")
		default:
			forms = append(forms, string(kind))
		}
	}
	return forms
}

// ambient reports whether a local fence of a language is handed c without asking
// for it, where policy grants it: what is a value of its own run and reaches
// nothing. A directory, a host and the notebook's other pages are for the fences
// that name them.
func ambient(language string, c notebook.Capability) bool {
	switch c {
	case notebook.CapPage, notebook.CapClock, notebook.CapArgs, notebook.CapSeed:
		return slices.Contains(doors[language], c)
	}
	return false
}
