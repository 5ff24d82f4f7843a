package notebook

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
)

func TestArguments(t *testing.T) {
	for info, want := range map[string][]Argument{
		"lua":                                 nil,
		`lua {args=""}`:                       nil,
		`lua {arg=name}`:                      nil,
		"lua {args=name}":                     {{Name: "name"}},
		`lua {args="name age=30"}`:            {{Name: "name"}, {Name: "age", Optional: true, Default: "30"}},
		`lua {args="b	a= c=x=y"}`:             {{Name: "b"}, {Name: "a", Optional: true}, {Name: "c", Optional: true, Default: "x=y"}},
		`lua {args="a=%20%22%25{}: b-2_c=ü"}`: {{Name: "a", Optional: true, Default: ` "%{}:`}, {Name: "b-2_c", Optional: true, Default: "ü"}},
	} {
		got, err := Part{Info: info}.Arguments()
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("%q: %+v, %v; want %+v", info, got, err, want)
		}
	}
	var many []string
	for n := range MaxArguments + 1 {
		many = append(many, fmt.Sprint("a", n))
	}
	if got, err := (Part{Info: `lua {args="` + strings.Join(many[1:], " ") + `"}`}).Arguments(); err != nil || len(got) != MaxArguments {
		t.Errorf("%d, %v", len(got), err)
	}
	for info, want := range map[string]string{
		"lua {args=":                                   "no value",
		`lua {args="Name"}`:                            "not a name",
		`lua {args="1"}`:                               "not a name",
		`lua {args="=30"}`:                             "not a name",
		`lua {args="a,b"}`:                             "not a name",
		`lua {args="a b a=1"}`:                         "a is there twice",
		`lua {args="a=% b"}`:                           "a blank is %20",
		`lua {args="a=%2"}`:                            "a blank is %20",
		`lua {args="a=%41"}`:                           "a blank is %20",
		`lua {args="a=%3A"}`:                           "a blank is %20",
		"lua {args=\"a=\xff\"}":                        "a blank is %20",
		"lua {args=\"a\u00a0b\"}":                      "not a name",
		`lua {args="` + strings.Join(many, " ") + `"}`: "too many",
	} {
		got, err := Part{Info: info}.Arguments()
		var e *Error
		if got != nil || !errors.As(err, &e) || !strings.Contains(e.Message, want) || e.Hint == "" {
			t.Errorf("%q: %+v, %v; want an error with %q", info, got, err, want)
		}
	}
}

func FuzzArguments(f *testing.F) {
	for _, s := range []string{"name", "name age=30", "a=%20%25", "a= b=="} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		all, err := Part{Info: `lua {args="` + s + `"}`}.Arguments()
		if err != nil {
			return
		}
		var words []string
		for _, a := range all {
			words = append(words, a.String())
		}
		again, err := Part{Info: `lua {args="` + strings.Join(words, " ") + `"}`}.Arguments()
		if err != nil || !slices.Equal(again, all) {
			t.Errorf("%q is %+v, and %q is %+v, %v", s, all, words, again, err)
		}
	})
}
