package daemon_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"noted/daemon/daemontest"
	"noted/notebook"
)

// TestRoute02Disguises: text that the phone prepared so that a copy of it, after
// what editors, web pages and persons do to text, is taken for another one.
func TestRoute02Disguises(t *testing.T) {
	const evil = "os.remove(everything)"
	for _, c := range []struct{ name, text, paste, stands string }{
		{"with variation selectors", "os\ufe0f.remove(every\U000e0101thing)\n", lua("return\n" + evil), "device:phone"},
		{"with fillers and joiners", "os.\u3164remove(\u034fevery\u180bthing)\n", lua("return\n" + evil), "device:phone"},
		{"with a delete character", "os.re\x7fmove(everything)\n", lua("return\n" + evil), "device:phone"},
		{"with braille blanks", "os.remove\u2800(everything)\n", lua("return\n" + evil), "device:phone"},
		{"in wide characters", "ｏｓ．ｒｅｍｏｖｅ（ｅｖｅｒｙｔｈｉｎｇ）\n", lua("return\n" + evil), "device:phone"},
		{"in bold characters", "𝐨𝐬.remove(everything)\n", lua("return\n" + evil), "device:phone"},
		{"behind a blank that makes no marker", "local x = 1\n-\u00a0remove(everything)\n", lua("local y = 2\n- remove(everything)"), "device:phone"},
		{"behind a marker that one cannot see", "\u2060> remove(everything)\n", lua("local y = 2\n> remove(everything)"), "device:phone"},
		{"like the delimiter of a fence", "~~~os.remove(everything)\n", lua("local x =\n~~~os.remove(everything)"), "device:phone"},
		{"like a delimiter, all of a body", "~~~f(x)\n", lua("~~~f(x)"), "device:phone"},
		{"with line ends of another kind", strings.Repeat("local a = 1\u2028", 6) + evil + "\u2028end\n", lua("return\n" + evil), "device:phone"},
		{"wrapped before a minus", "return count(things) - remove(all)\n", lua("local own = 1\nreturn count(things)\n  - remove(all)"), "device:phone"},
		{"wrapped before two", "return 100 - count(things) - remove(all)\n", lua("local own = 1\nreturn 100\n- count(things)\n- remove(all)"), "device:phone"},
		{"wrapped, with blank lines between", "return count(things, and, more)\n", lua("local own = 1\nreturn\n\n\ncount(things,\n\n\n\nand,\n\nmore)"), "device:phone"},

		// What another one is.
		{"with a letter of another script", "os.remоve(everything)\n", lua("return\n" + evil), "local"},
		{"a delimiter and its language", "```javascript\n1\n```\n", "````markdown\n```javascript\nmine\n```\n````\n", "local"},
		{"two of its lines as one", "local a1 = 1\nlocal b1 = 2\n", lua("local a1 = 1 local b1 = 2"), "local"},
		{"one of its lines as five", "return a(1) + b(2) + c(3) + d(4)\n", lua("local own = 1\nreturn\na(1) +\nb(2) +\nc(3) +\nd(4)"), "local"},
	} {
		t.Run(c.name, func(t *testing.T) {
			facing(t, c.text, func(_ *daemontest.World, laptop, _ *daemontest.Hand) {
				laptop.Types("Mine", c.paste)
				laptop.Stands("Mine", 1, c.stands)
			})
		})
	}
}

// TestRoute02SameCharactersOtherLines: a remark of the person's is no excuse for
// a body of the phone's in which the same characters are no remark any more; that
// a text was indented or spaced anew makes it nobody else's.
func TestRoute02SameCharactersOtherLines(t *testing.T) {
	facing(t, "nothing\n", func(w *daemontest.World, laptop, phone *daemontest.Hand) {
		sh := func(code string) string { return "```sh\n" + code + "\n```\n" }
		laptop.Types("Remark", "Never do this:\n\n# rm *\n\n"+sh("cd x\n\nls"))
		w.Settle()
		phone.Types("Theirs", sh("#\nrm *")+"\n"+sh("# rm *")+"\n"+sh("cd x\nls"))
		w.Settle()
		laptop.Types("Copy", sh("#\nrm *"))
		laptop.Stands("Copy", 1, "device:phone")
		laptop.Types("Mine", sh("# rm *")+"\n"+sh("  cd x\n\n  ls"))
		laptop.Stands("Mine", 1, "local")
		laptop.Stands("Mine", 2, "local")
	})
}

// TestRoute02OutputOfOtherSystems: a line of output ends where a terminal ends it.
func TestRoute02OutputOfOtherSystems(t *testing.T) {
	_, laptop, _ := paired(t, map[string]string{
		"Printer": lua(`return 'os.' .. 'remove(everything)\r\nx\ros.' .. 'rename(everything)\rx\vos.' .. 'tmpname(everything)'`),
	})
	laptop.Runs("Printer", 1)
	for _, line := range []string{"os.remove(everything)", "os.rename(everything)", "os.tmpname(everything)"} {
		laptop.Types(line[:9], lua("local mine = 1\n"+line))
		laptop.Stands(line[:9], 1, "device:phone")
	}
}

// TestRoute02Attempts: ways round the comparison that are none.
func TestRoute02Attempts(t *testing.T) {
	const evil = "os.remove(everything)"
	ctx := context.Background()
	edit := func(t *testing.T, h *daemontest.Hand, p *notebook.PageView, splices ...notebook.Splice) {
		t.Helper()
		if _, err := h.Client.Edit(ctx, notebook.Edit{Page: p.ID, Base: p.Revision, Splices: splices}); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		name, stands string
		story        func(t *testing.T, w *daemontest.World, laptop, phone *daemontest.Hand)
	}{
		{"from a page that was shown before the text came", "device:phone", func(t *testing.T, w *daemontest.World, laptop, phone *daemontest.Hand) {
			laptop.Types("Mine", lua("return 1"))
			stale := laptop.Page("Mine")
			phone.Types("Other", evil+"\n")
			w.Settle()
			edit(t, laptop, stale, notebook.Splice{At: len(stale.Body) - len("return 1\n```\n"), Insert: evil + "\n"})
		}},
		{"by two clients, each of which writes half", "device:phone", func(t *testing.T, w *daemontest.World, laptop, phone *daemontest.Hand) {
			phone.Types("Other", evil+"\n")
			w.Settle()
			laptop.Types("Mine", lua("return 1\nx"))
			one, two := laptop.Page("Mine"), w.As("laptop").Page("Mine")
			at := strings.Index(one.Body, "x\n")
			edit(t, laptop, one, notebook.Splice{At: at, Delete: 1, Insert: "os.remove("})
			edit(t, w.As("laptop"), two, notebook.Splice{At: at + 1, Insert: "everything)"})
		}},
		{"an agent's, deleted and typed again in one edit", "agent:scribe", func(t *testing.T, w *daemontest.World, laptop, _ *daemontest.Hand) {
			w.Device("laptop").Agent("scribe").Types("Mine", lua(evil))
			p := laptop.Page("Mine")
			edit(t, laptop, p, notebook.Splice{Delete: len(p.Body), Insert: p.Body})
		}},
		{"an agent's, appended to a fence that is open", "agent:scribe structure", func(t *testing.T, w *daemontest.World, laptop, _ *daemontest.Hand) {
			laptop.Types("Mine", "```lua\nreturn 1\n")
			scribe := w.Device("laptop").Agent("scribe")
			if _, err := scribe.Client.Append(ctx, laptop.Page("Mine").ID, evil+"\n", ""); err != nil {
				t.Fatal(err)
			}
			laptop.Edits("Mine", evil, "nothing") // a copy of which
			laptop.Types("Mine", "```lua\nreturn 1\n"+evil+"\n")
		}},
		{"that the person vouches for", "device:phone", func(t *testing.T, w *daemontest.World, laptop, phone *daemontest.Hand) {
			phone.Types("Other", evil+"\n")
			w.Settle()
			laptop.Types("Mine", "")
			p := laptop.Page("Mine")
			put := notebook.Put{Page: p.ID, Base: p.Revision, Body: lua("return 1\n" + evil), AsTyped: true, Presence: laptop.Presence("take it as typed")}
			if _, err := laptop.Client.Put(ctx, put); err != nil {
				t.Fatal(err)
			}
		}},
		{"from the new name of a page", "device:phone", func(t *testing.T, w *daemontest.World, laptop, phone *daemontest.Hand) {
			if _, err := phone.Client.Rename(ctx, phone.Page("Theirs").ID, evil); err != nil {
				t.Fatal(err)
			}
			w.Settle()
			laptop.Types("Mine", lua("return 1\n"+evil))
		}},
		{"first in prose, by the phone made a fence, by the person closed", "device:phone", func(_ *testing.T, w *daemontest.World, laptop, phone *daemontest.Hand) {
			phone.Types("Other", evil+"\n")
			w.Settle()
			laptop.Types("Mine", "See\n\n"+evil+"\n")
			w.Settle()
			phone.Edits("Mine", "See\n", "See\n```lua\n")
			w.Settle()
			laptop.Edits("Mine", evil+"\n", evil+"\n```\n")
		}},
		{"a line that was there for a moment", "device:phone", func(_ *testing.T, w *daemontest.World, laptop, phone *daemontest.Hand) {
			phone.Types("Other", evil+"\n")
			w.Settle()
			phone.Types("Other", "")
			laptop.Types("Other", "") // both at once
			w.Settle()
			laptop.Types("Mine", lua("return 1\n"+evil))
		}},
		{"a title in the front matter", "device:phone", func(_ *testing.T, w *daemontest.World, laptop, phone *daemontest.Hand) {
			phone.Types("Other", "---\n"+evil+"\n---\n[x]: y\n")
			w.Settle()
			laptop.Types("Mine", lua("return 1\n"+evil))
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			facing(t, "nothing\n", func(w *daemontest.World, laptop, phone *daemontest.Hand) {
				c.story(t, w, laptop, phone)
				laptop.Stands("Mine", 1, c.stands)
				w.Device("laptop").Restarts()
				w.As("laptop").Stands("Mine", 1, c.stands)
			})
		})
	}
}

// TestRecordOfForeignTextCounts: what the record of foreign text grows of a
// device's entries counts on its quota: lines of a few bytes, and fences that
// one character makes other ones.
func TestRecordOfForeignTextCounts(t *testing.T) {
	w := daemontest.Loopback(t, "laptop", "phone")
	w.Pair("laptop", "phone")
	laptop, phone := w.As("laptop"), w.As("phone")
	used := func() (bytes uint64) {
		quotas, err := laptop.Client.Quotas(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		for _, q := range quotas {
			if q.Name == "phone" {
				bytes = q.Used.Bytes
			}
		}
		return bytes
	}
	var lines, fences strings.Builder
	for i := range 1000 {
		fmt.Fprintf(&lines, "%03x\n", i)
		fmt.Fprintf(&fences, "```\nx%03x\n", i)
	}
	phone.Types("Lines", "")
	w.Settle()
	before := used()
	phone.Types("Lines", lines.String())
	w.Settle()
	if grown := used() - before; grown < 16*1000+3000 || grown > 16*1000+30_000 {
		t.Errorf("a thousand lines count as %d bytes", grown)
	}
	phone.Types("Fences", fences.String())
	w.Settle()
	before = used()
	phone.Edits("Fences", "```\nx000\n", "```\n```\nx000\n")
	w.Settle()
	flipped := used() - before
	if flipped < 16*500 {
		t.Errorf("500 other fences count as %d bytes", flipped)
	}
	whole := used()
	w.Device("laptop").Restarts()
	laptop = w.As("laptop")
	if used() != whole {
		t.Errorf("after a restart %d bytes are used, and were %d", used(), whole)
	}
	if err := setQuota(t, laptop, "phone", notebook.Quota{Bytes: whole + 100}); err != nil {
		t.Fatal(err)
	}
	phone.Types("Lines", "more than there is room for\n")
	w.Eventually("the phone is paused", func() bool { return paused(laptop, "phone") != "" })
}

// TestRoute02MoreThanIsMoved: one character makes fences of more of the phone's
// text than is written again for it. None of them stands local, and the person is told.
func TestRoute02MoreThanIsMoved(t *testing.T) {
	var prose, copied strings.Builder
	for i := range 2000 {
		fmt.Fprintf(&prose, "remove(%04d)\n\n", i)
		fmt.Fprintf(&copied, "```lua\nremove(%04d)\n```\n", i)
	}
	facing(t, prose.String(), func(_ *daemontest.World, laptop, _ *daemontest.Hand) {
		laptop.Types("Mine", "<!--\n"+copied.String())
		told := laptop.Watches()
		laptop.Edits("Mine", "<!--\n", "")
		told.Has("note", "reads like that of others")
		stands := map[string]int{}
		for _, f := range laptop.Page("Mine").Fences {
			stands[f.Standing]++
		}
		if stands["local"] > 0 || stands["device:phone"] == 0 {
			t.Errorf("the fences stand %v", stands)
		}
	})
}

// TestRoute02IncludedPartThatIsPastedInto: a fence of the person's stands with
// its parts, also where one is their own and the text in it was moved; and the
// quarantine of whom it was moved from reaches it.
func TestRoute02IncludedPartThatIsPastedInto(t *testing.T) {
	facing(t, "os.remove(everything)\n", func(w *daemontest.World, laptop, phone *daemontest.Hand) {
		laptop.Types("Part", lua("local own = 1"))
		laptop.Types("Mine", including("return 1", ref(laptop.Fence("Part", 1))))
		laptop.Stands("Mine", 1, "local")
		laptop.Edits("Part", "own = 1\n", "own = 1\nos.remove(everything)\n")
		laptop.Stands("Mine", 1, "device:phone")
		laptop.Edits("Part", "os.remove(everything)\n", "")
		laptop.Stands("Mine", 1, "device:phone") // its part is no own fence any more
		laptop.Edits("Part", "own = 1\n", "own = 1\nos.remove(everything)\n")
		if _, err := laptop.Client.Quarantine(context.Background(), phone.ID); err != nil {
			t.Fatal(err)
		}
		laptop.Decides("Mine", 1, "ask")
		laptop.Refused("Mine", 1, notebook.CodeRefused, "quarantine")
	})
}
