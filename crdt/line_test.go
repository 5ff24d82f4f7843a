package crdt

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"noted/notebook"
)

func linesSince(p *Page, since Mark) (all []string) {
	for l := range p.Lines(since) {
		all = append(all, l.Text)
	}
	return all
}

// TestLines: which lines a change touches.
func TestLines(t *testing.T) {
	const text = "one\ntwo\nthree\nfour\n"
	for _, c := range []struct {
		name string
		edit []notebook.Splice
		want string // with a | behind each line
	}{
		{"a character in a line", []notebook.Splice{{At: 5, Insert: "x"}}, "txwo|"},
		{"the end of a line", []notebook.Splice{{At: 7, Insert: "x"}}, "twox|"},
		{"a character less", []notebook.Splice{{At: 4, Delete: 1}}, "wo|"},
		{"a line end less", []notebook.Splice{{At: 7, Delete: 1}}, "twothree|"},
		{"a line end more", []notebook.Splice{{At: 5, Insert: "\n"}}, "t|wo|"},
		{"a line end before a line", []notebook.Splice{{At: 4, Insert: "\n"}}, "|two|"},
		{"lines in between", []notebook.Splice{{At: 8, Insert: "a\nb\n"}}, "a|b|three|"},
		{"a line less", []notebook.Splice{{At: 4, Delete: 4}}, "three|"},
		{"two places", []notebook.Splice{{At: 0, Insert: "x"}, {At: 14, Insert: "y"}}, "xone|yfour|"},
		{"two places in one line", []notebook.Splice{{At: 8, Insert: "x"}, {At: 13, Insert: "y"}}, "xthreey|"},
		{"the end of the text", []notebook.Splice{{At: 19, Insert: "five"}}, "five|"},
		{"the last lines", []notebook.Splice{{At: 8, Delete: 11}}, "|"},
		{"all", []notebook.Splice{{At: 0, Delete: 19, Insert: "a\nb"}}, "a|b|"},
	} {
		t.Run(c.name, func(t *testing.T) {
			v := devices(t, "v")[0]
			v.change(v.author(), []notebook.Splice{{Insert: text}})
			since := v.page.Mark()
			v.change(v.author(), c.edit)
			if got := strings.Join(append(linesSince(v.page, since), ""), "|"); got != c.want {
				t.Errorf("%q, not %q", got, c.want)
			}
			if got := linesSince(v.page, v.page.Mark()); got != nil {
				t.Errorf("nothing was changed since, but %q", got)
			}
		})
	}
}

// byHand reads the lines of a page character by character, with who has a hand
// in each but for whole lines that were deleted before it.
func byHand(p *Page) (lines []string) {
	var text strings.Builder
	hands := map[string]bool{}
	name := func(actor uint16) string {
		return fmt.Sprint(p.actors[actor].author.Device.Short(), p.actors[actor].author.Class)
	}
	end := func() {
		var who []string
		for h := range hands {
			who = append(who, h)
		}
		slices.Sort(who)
		lines = append(lines, text.String()+" by "+strings.Join(who, ","))
		text.Reset()
		clear(hands)
	}
	for r := range p.seq.each {
		for k := range int32(r.n) {
			char := p.chars[r.op+k]
			switch {
			case r.deleted == 0 && char == '\n':
				hands[name(r.actor)] = true
				end()
			case r.deleted == 0:
				hands[name(r.actor)] = true
				text.WriteRune(char)
			case char == '\n' && text.Len() == 0:
				clear(hands)
			default:
				for d := r.deleted; d > 0; d = p.deletions[d-1].before {
					hands[name(p.changes[p.deletions[d-1].change].actor)] = true
				}
			}
		}
	}
	if text.Len() > 0 {
		end()
	}
	return lines
}

// TestLinesMissNothing: what is told of changes, added up, is at every time all
// that reading the whole page by hand finds.
func TestLinesMissNothing(t *testing.T) {
	for seed := range uint64(40) {
		rng := rand.New(rand.NewPCG(seed, 1))
		group := devices(t, "v", "m")
		v, m := group[0], group[1]
		told := map[string]bool{}
		since := v.page.Mark()
		for step := range 30 {
			d := group[rng.IntN(2)]
			at := rng.IntN(d.page.Len() + 1)
			s := notebook.Splice{At: at, Insert: []string{"", "\n", "a", "bc\n", "\nd", "e\n\nf"}[rng.IntN(6)]}
			s.Delete = rng.IntN(min(d.page.Len()-at, 5) + 1)
			if s.Delete > 0 || s.Insert != "" {
				d.change(d.author(), []notebook.Splice{s})
			}
			if rng.IntN(3) > 0 {
				continue
			}
			m.pull(v)
			v.pull(m)
			for l := range v.page.Lines(since) {
				var who []string
				for _, a := range l.Origin {
					who = append(who, fmt.Sprint(a.Device.Short(), a.Class))
				}
				slices.Sort(who)
				told[l.Text+" by "+strings.Join(who, ",")] = true
			}
			since = v.page.Mark()
			for _, line := range byHand(v.page) {
				if !told[line] {
					t.Fatalf("seed %d, step %d: %q was not told, of %q", seed, step, line, v.page.Text())
				}
			}
		}
	}
}
