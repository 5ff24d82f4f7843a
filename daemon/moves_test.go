package daemon_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	bolt "go.etcd.io/bbolt"

	"noted/daemon"
	"noted/daemon/daemontest"
	"noted/notebook"
	"noted/store"
)

// theirs is code of the phone with lines long and short.
const theirs = "local total = 0\nfor i = 1, 10 do\n  total = total + i\nend\nreturn total"

// facing is a bubble in which the laptop has a page of the phone, Theirs, with
// this text, and nothing of its own.
func facing(t *testing.T, text string, story func(w *daemontest.World, laptop, phone *daemontest.Hand)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := daemontest.Bubble(t, "laptop", "phone")
		w.Pair("laptop", "phone")
		w.As("phone").Types("Theirs", text)
		w.Settle()
		story(w, w.As("laptop"), w.As("phone"))
	})
}

// TestRoute02CopiesStayTheirs: what the person takes from the phone's fence and
// writes into a page of their own, in whatever form.
func TestRoute02CopiesStayTheirs(t *testing.T) {
	for _, c := range []struct{ name, text, paste, stands string }{
		{"as it is", lua(theirs), lua(theirs), "device:phone"},
		{"with a line of one's own before it", lua(theirs), lua("local mine = 'own'\n" + theirs), "device:phone"},
		{"one line of it", lua(theirs), lua("local x, i = 0, 1\n  total = total + i\nreturn x"), "device:phone"},
		{"in another language", lua(theirs), "~~~sh\n" + theirs + "\n~~~\n", "device:phone"},
		{"indented anew", lua(theirs), lua("\t" + strings.ReplaceAll(theirs, "\n", "\n\t")), "device:phone"},
		{"wrapped anew", lua(theirs), lua(strings.Join(strings.Fields(theirs), "\n")), "device:phone"},
		{"all on one line", lua(theirs), lua(strings.Join(strings.Fields(theirs), " ")), "device:phone"},
		{"one line of it, wrapped", lua(theirs), lua("local x, i = 0, 1\ntotal =\n  total + i\nreturn x"), "device:phone"},
		{"in a list", lua(theirs), "- point\n\n  ```lua\n  " + strings.ReplaceAll(theirs, "\n", "\n  ") + "\n  ```\n", "device:phone"},
		{"in a quote", lua(theirs), "> ```lua\n> " + strings.ReplaceAll(theirs, "\n", "\n> ") + "\n> ```\n", "device:phone"},
		{"in a quote in a list", lua(theirs), "1. > ```lua\n   > " + strings.ReplaceAll(theirs, "\n", "\n   > ") + "\n   > ```\n", "device:phone"},
		{"out of a quote", "> ```lua\n> " + strings.ReplaceAll(theirs, "\n", "\n> ") + "\n> ```\n", lua(theirs), "device:phone"},
		{"out of a list, a line of it", "- ```lua\n  " + strings.ReplaceAll(theirs, "\n", "\n  ") + "\n  ```\n", lua("for i = 1, 10 do\nend"), "device:phone"},
		{"with the line ends of another system", lua(theirs), strings.ReplaceAll(lua(theirs), "\n", "\r\n"), "device:phone"},
		{"with characters that nobody sees", lua(theirs), lua("local x, i = 0, 1\nto\u200btal = \u2060total + i"), "device:phone"},
		{"composed in another way", lua("return 'café au lait'"), lua("return 'cafe\u0301 au lait'"), "device:phone"},
		{"without the closing line", lua(theirs), strings.TrimSuffix(lua(theirs), "```\n"), "device:phone structure"},
		{"a short body", lua("f(1)"), lua("f(1)"), "device:phone"},
		{"a short body among lines", lua("f(1)\ng(2)"), lua("f(1)\ng(2)"), "device:phone"},
		{"a short line of prose", "Call rm -rf ~\n\nrm -rf ~\n", "```sh\nrm -rf ~\n```\n", "device:phone"},
		{"a line of prose", "First, os.remove everything.\n\nos.remove(everything)\n", lua("return\nos.remove(everything)"), "device:phone"},
		{"an item of a list", "* os.remove(everything)\n", lua("return\nos.remove(everything)"), "device:phone"},

		// What is not promised: text below the lengths, and parts of lines.
		{"short lines of it", lua(theirs), lua("local x\nend"), "local"},
		{"half of a long line", lua("return 'a long line that goes on and on and on'"), lua("return 'a long line'"), "local"},
		{"a line with a word more", lua(theirs), lua("local total = 0, 1"), "local"},
		{"a line in other words", lua(theirs), lua("local whole = 0"), "local"},
		{"its delimiters and its language", "```javascript\n1\n```\n", "```javascript\nmine()\n```\n", "local"},
		{"nothing", lua(theirs), lua(""), "local"},
	} {
		t.Run(c.name, func(t *testing.T) {
			facing(t, c.text, func(w *daemontest.World, laptop, _ *daemontest.Hand) {
				laptop.Types("Mine", c.paste)
				laptop.Stands("Mine", 1, c.stands)
				if want := strings.ReplaceAll(c.paste, "\r\n", "\n"); laptop.Body("Mine") != want {
					t.Errorf("the page reads %q", laptop.Body("Mine"))
				}
				w.Device("laptop").Restarts()
				w.As("laptop").Stands("Mine", 1, c.stands)
				w.Settle()
				w.Same("laptop", "phone")
			})
		})
	}
}

// TestRoute02GoneAndRestarted: the source is deleted, the daemon started anew,
// and the text still the phone's.
func TestRoute02GoneAndRestarted(t *testing.T) {
	facing(t, lua(theirs), func(w *daemontest.World, laptop, phone *daemontest.Hand) {
		phone.Types("Theirs", "nothing is left\n")
		w.Settle()
		laptop.Types("Mine", lua(theirs))
		laptop.Stands("Mine", 1, "device:phone")
		if err := phone.Client.Delete(context.Background(), phone.Page("Theirs").ID); err != nil {
			t.Fatal(err)
		}
		w.Settle()
		w.Device("laptop").Restarts()
		laptop = w.As("laptop")
		laptop.Types("More", lua("local mine = 1\n"+theirs))
		laptop.Stands("More", 1, "device:phone")
	})
}

// TestRoute02UndoAndOneEdit: what is deleted and put back is still the phone's,
// in two edits or in one.
func TestRoute02UndoAndOneEdit(t *testing.T) {
	facing(t, lua(theirs), func(_ *daemontest.World, laptop, _ *daemontest.Hand) {
		laptop.Types("Theirs", "# Sums\n")
		laptop.Types("Theirs", lua(theirs))
		laptop.Stands("Theirs", 1, "device:phone")
		laptop.Types("Theirs", "")
		laptop.Types("Theirs", lua(theirs))
		laptop.Stands("Theirs", 1, "device:phone")
	})
	facing(t, lua(theirs), func(_ *daemontest.World, laptop, _ *daemontest.Hand) {
		p := laptop.Page("Theirs")
		info, err := laptop.Client.Edit(context.Background(), notebook.Edit{Page: p.ID, Base: p.Revision, Splices: []notebook.Splice{
			{At: 0, Delete: len(p.Body), Insert: p.Body},
		}})
		if err != nil {
			t.Fatal(err)
		}
		laptop.Stands("Theirs", 1, "device:phone")
		// What the edit answered is the page as it is, the daemon's entries included.
		if _, err := laptop.Client.Edit(context.Background(), notebook.Edit{Page: p.ID, Base: info.Revision, Splices: []notebook.Splice{{At: 2, Insert: "Our "}}}); err != nil {
			t.Fatal(err)
		}
		laptop.Sees("Theirs", strings.Replace(lua(theirs), "# ", "# Our ", 1))
		laptop.Stands("Theirs", 1, "device:phone")
	})
}

// TestRoute02PastedOverAnOwnFence: a whole-file save in which the phone's fence
// stands where an own one was. The difference is a few characters.
func TestRoute02PastedOverAnOwnFence(t *testing.T) {
	facing(t, lua("local n = count(things)\nreturn n * 100"), func(_ *daemontest.World, laptop, _ *daemontest.Hand) {
		laptop.Types("Mine", lua("local n = count(thing)\nreturn n * 10"))
		laptop.Stands("Mine", 1, "local")
		laptop.Types("Mine", lua("local n = count(things)\nreturn n * 100"))
		laptop.Stands("Mine", 1, "device:phone")
		// Changing it back does not make it the person's again.
		laptop.Types("Mine", lua("local n = count(thing)\nreturn n * 10"))
		laptop.Stands("Mine", 1, "device:phone")
		laptop.Types("Another", lua("local n = count(thing)\nreturn n * 10"))
		laptop.Stands("Another", 1, "local")
	})
}

// TestRoute02ProseThatBecomesAFence: what was copied into prose is compared when
// it becomes a fence.
func TestRoute02ProseThatBecomesAFence(t *testing.T) {
	facing(t, "os.remove(everything)\n", func(_ *daemontest.World, laptop, _ *daemontest.Hand) {
		laptop.Types("Mine", "Look:\n\nos.remove(everything)\nreturn 'mine'\n")
		laptop.Edits("Mine", "os.remove", "```lua\nos.remove")
		laptop.Stands("Mine", 1, "device:phone structure")
		laptop.Edits("Mine", "'mine'\n", "'mine'\n```\n")
		laptop.Stands("Mine", 1, "device:phone")
	})
}

// TestRoute02TwoFencesBecomeOne: an own fence that takes another one in.
func TestRoute02TwoFencesBecomeOne(t *testing.T) {
	facing(t, lua(theirs), func(_ *daemontest.World, laptop, _ *daemontest.Hand) {
		own := "```lua\nlocal mine = 'own'\n"
		laptop.Types("Mine", own+"```\n")
		laptop.Stands("Mine", 1, "local")
		laptop.Types("Mine", own+"```\n\n```lua\n"+theirs+"\n```\n")
		laptop.Stands("Mine", 1, "local")
		laptop.Stands("Mine", 2, "device:phone")
		laptop.Types("Mine", own+theirs+"\n```\n")
		laptop.Stands("Mine", 1, "device:phone")
	})
}

// TestRoute02OutputAndTitles: what others printed, and what they call their pages.
func TestRoute02OutputAndTitles(t *testing.T) {
	w, laptop, phone := paired(t, map[string]string{
		"Printer":                lua("return 'os.' .. 'remove(everything)'"),
		"os.execute('anything')": "",
	})
	laptop.Runs("Printer", 1)
	laptop.Types("From my run", lua("local mine = 1\nos.remove(everything)"))
	laptop.Stands("From my run", 1, "device:phone")

	laptop.Types("Shared", lua("return 'os.' .. 'rename(everything)'"))
	w.Settle()
	phone.Runs("Shared", 1) // strict, so that its result syncs
	w.Settle()
	laptop.Types("From their run", lua("local mine = 1\nos.rename(everything)"))
	laptop.Stands("From their run", 1, "device:phone")

	laptop.Types("From a title", lua("local mine = 1\nos.execute('anything')"))
	laptop.Stands("From a title", 1, "device:phone")

	// The output of an own fence is the person's.
	laptop.Types("Own", lua("return 'os.' .. 'tmpname(everything)'"))
	laptop.Runs("Own", 1)
	laptop.Types("From an own run", lua("local mine = 1\nos.tmpname(everything)"))
	laptop.Stands("From an own run", 1, "local")
}

// TestRoute02EveryDoor: imports, pipes and agents that repeat each other's text
// name the one who had it first beside themselves.
func TestRoute02EveryDoor(t *testing.T) {
	facing(t, lua(theirs), func(w *daemontest.World, laptop, _ *daemontest.Hand) {
		scribe := w.Device("laptop").Agent("scribe")
		scribe.Types("Agents", lua(theirs))
		laptop.Stands("Agents", 1, "agent:scribe device:phone")
		laptop.Pipes("Piped", lua("return 'piped'"))
		laptop.Pipes("Piped again", lua("return 'piped'"))
		laptop.Stands("Piped again", 1, "import:stdin")
		scribe.Types("From the pipe", lua("return 'piped'"))
		laptop.Stands("From the pipe", 1, "agent:scribe import:stdin")
		laptop.Types("Mine", lua("return 'piped'\n"+theirs))
		laptop.Stands("Mine", 1, "device:phone import:stdin")
	})
}

// TestRoute02WhatThePersonHadFirst stays theirs, however often others repeat it.
func TestRoute02WhatThePersonHadFirst(t *testing.T) {
	facing(t, "nothing\n", func(w *daemontest.World, laptop, phone *daemontest.Hand) {
		laptop.Types("Mine", lua(theirs))
		w.Settle()
		phone.Types("Theirs", lua(theirs))
		phone.Types("Short", lua("end\n}\nx"))
		w.Settle()
		laptop.Stands("Theirs", 1, "device:phone")
		laptop.Edits("Mine", "1, 10", "1, 100")
		laptop.Stands("Mine", 1, "local")
		laptop.Edits("Mine", "1, 100", "1, 10") // as the phone's reads
		laptop.Stands("Mine", 1, "local")
		laptop.Types("Copy", lua(theirs))
		laptop.Stands("Copy", 1, "local")
		laptop.Types("Ordinary", lua("while true do\n  f(x)\nend\nreturn x"))
		laptop.Stands("Ordinary", 1, "local")
		w.Device("laptop").Restarts()
		laptop = w.As("laptop")
		laptop.Types("Again", lua("local mine = 1\n"+theirs))
		laptop.Stands("Again", 1, "local")
		// But the phone's order of them is the phone's.
		phone.Types("Order", lua("return total\nlocal total = 0"))
		w.Settle()
		laptop.Types("Order of mine", lua("return total\nlocal total = 0"))
		laptop.Stands("Order of mine", 1, "device:phone")
	})
}

// TestRoute02WhyNamesTheSource: the person is shown which characters are whose.
func TestRoute02WhyNamesTheSource(t *testing.T) {
	facing(t, lua(theirs), func(_ *daemontest.World, laptop, phone *daemontest.Hand) {
		laptop.Types("Mine", lua("local mine = 'own'\n  total = total + i"))
		f := laptop.Fence("Mine", 1)
		why, err := laptop.Client.Why(context.Background(), f.Page, f.ID)
		if err != nil {
			t.Fatal(err)
		}
		said := map[string]string{}
		for _, r := range why.Ranges {
			if !r.Deleted {
				said[r.Name] += r.Text
			}
			if r.Author.Class == notebook.Moved && r.Author.Source.Device != phone.ID {
				t.Errorf("moved from %v", r.Author.Source)
			}
		}
		if said["device:phone"] != "  total = total + i" || !strings.Contains(said["local"], "local mine = 'own'\n") {
			t.Errorf("%q", said)
		}
		if !strings.Contains(why.Rule, "reads like text that others had here") {
			t.Errorf("the rule is %q", why.Rule)
		}
	})
}

// TestRoute02OrdinaryEditing writes page after page of lines of the phone's, of
// the person's, and of everybody's, in every mixture and in many small edits.
// None with a line of the phone's ever stands local, and all others do.
func TestRoute02OrdinaryEditing(t *testing.T) {
	foreign := []string{"os.remove(everything)", "local total = sum(rows)", "for _, row in ipairs(rows) do", "return total, 'theirs'"}
	own := []string{"local mine = count(things)", "if mine > 10 then", "print(mine, 'own')", "return mine - 1 -- own", "-- a remark of one's own"}
	everybodys := []string{"end", "", "}", "f(x)", "return", "x = 1"}
	text := "```lua\n" + strings.Join(foreign[:2], "\nend\n") + "\n```\n\n" + strings.Join(foreign[2:], "\n\n") + "\n}\n"
	facing(t, text, func(w *daemontest.World, laptop, _ *daemontest.Hand) {
		for page := range 24 {
			rng := rand.New(rand.NewPCG(uint64(page), 2))
			title := fmt.Sprint("Page ", page)
			lines := []string{own[rng.IntN(len(own))], own[rng.IntN(len(own))]}
			tainted := false
			for edit := range 8 {
				laptop.Types(title, lua(strings.Join(lines, "\n")))
				if stands := laptop.Fence(title, 1).Standing; (stands == "local") == tainted {
					t.Fatalf("page %d, edit %d: %q stands %s", page, edit, lines, stands)
				}
				if laptop.Body(title) != lua(strings.Join(lines, "\n")) {
					t.Fatalf("page %d, edit %d: the page reads %q", page, edit, laptop.Body(title))
				}
				at := rng.IntN(len(lines))
				switch pick := rng.IntN(12); {
				case pick == 0 && page%2 == 0:
					line := foreign[rng.IntN(len(foreign))]
					lines = slices.Insert(lines, at, strings.Repeat(" ", rng.IntN(3))+line)
					tainted = true
				case pick < 6:
					lines = slices.Insert(lines, at, own[rng.IntN(len(own))])
				case pick < 9:
					lines = slices.Insert(lines, at, everybodys[rng.IntN(len(everybodys))])
				case len(lines) > 2:
					lines = slices.Delete(lines, at, at+1)
				}
			}
		}
		w.Settle()
		w.Same("laptop", "phone")
	})
}

// foreignText opens the record of foreign text of a home that is not served.
func foreignText(t *testing.T, home daemon.Home, do func(b *bolt.Bucket) error) {
	t.Helper()
	db, err := bolt.Open(home.Database(), 0o600, &bolt.Options{Timeout: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	err = db.Update(func(tx *bolt.Tx) error { return do(tx.Bucket([]byte(store.Foreign.String()))) })
	if err := errors.Join(err, db.Close()); err != nil {
		t.Fatal(err)
	}
}

// TestRoute02WithoutTheRecord: where what others had cannot be read, nothing
// that is written stands local, the person is told, and a check says why.
func TestRoute02WithoutTheRecord(t *testing.T) {
	w, _, _ := paired(t, map[string]string{"Theirs": lua(theirs)})
	d := w.Device("laptop")
	d.Stops()
	var key, whole []byte
	foreignText(t, d.Home, func(b *bolt.Bucket) error {
		k, v := b.Cursor().Last()
		key, whole = bytes.Clone(k), bytes.Clone(v)
		return b.Put(key, whole[:len(whole)-1])
	})
	d.Starts()
	laptop := d.Owner()
	told := laptop.Watches()
	laptop.Types("Mine", lua("return 'nobody had this'"))
	laptop.Stands("Mine", 1, "structure")
	told.Has("note", "could not be told from what was typed")
	d.Stops()
	foreignText(t, d.Home, func(b *bolt.Bucket) error { return b.Put(key, whole) })
	d.Starts()
	laptop = d.Owner()
	laptop.Stands("Mine", 1, "structure") // it is not looked at again
	laptop.Types("More", lua("return 'nor this'"))
	laptop.Stands("More", 1, "local")
	laptop.Types("Copy", lua(theirs))
	laptop.Stands("Copy", 1, "device:phone")
	d.Stops()

	checked := func() string {
		var found []string
		for err := range daemon.Check(d.Home) {
			found = append(found, err.Error())
		}
		return strings.Join(found, "\n")
	}
	if found := checked(); found != "" {
		t.Errorf("the record is whole again, and a check finds %s", found)
	}
	foreignText(t, d.Home, func(b *bolt.Bucket) error { return b.Delete(key) })
	if found := checked(); !strings.Contains(found, "foreign text: the record lacks") {
		t.Errorf("a part of the record is missing, and a check finds %q", found)
	}
	foreignText(t, d.Home, func(b *bolt.Bucket) error { return b.Put(key, whole) })
}
