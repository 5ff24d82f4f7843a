package crdt

import (
	"strings"
	"testing"

	"noted/notebook"
)

// tour is a page that V typed: two fences, prose, and a fence that is only an
// example inside a longer one.
const tour = "# Notes\n\nrm -rf build is what I never run\n\n```lua one\nprint('one')\n```\n\ntext\n\n```lua two\nprint('two')\n```\n\n" +
	"Example:\n\n````md\n```lua three\nos.execute('x')\n```\n````\n\ninline ```lua four\nboom()\n\nend\n"

const tourStands = "lua one=local lua two=local md=local"

// typedTour is V and M, who both have the page that V typed.
func typedTour(t *testing.T) (v, m *device) {
	t.Helper()
	group := devices(t, "V", "M")
	v, m = group[0], group[1]
	v.types("", tour)
	m.pull(v)
	if got := v.stands(); got != tourStands {
		t.Fatalf("the page that was typed here stands %q", got)
	}
	if got := m.stands(); got != "lua one=foreign lua two=foreign md=foreign" {
		t.Fatalf("the page that was typed elsewhere stands %q", got)
	}
	return v, m
}

// TestForeignChangesLowerAFence has M change V's page in every way that was
// found to change what is live, and looks at it on V.
func TestForeignChangesLowerAFence(t *testing.T) {
	for _, c := range []struct {
		name  string
		by    func(m *device)
		stand string
	}{
		{"nothing", func(m *device) {}, tourStands},
		{"prose before, between and after", func(m *device) {
			m.types("# Notes", "# Our notes")
			m.types("text", "more text")
			m.types("end\n", "the end\n\n")
		}, tourStands},
		{"a new line below a fence", func(m *device) { m.types("\ntext", "\n\ntext") }, tourStands},
		{"one character of the code", func(m *device) { m.types("'one'", "'One'") }, "lua one=foreign lua two=local md=local"},
		{"one deleted character of the code", func(m *device) { m.types("'one'", "'on'") }, "lua one=foreign lua two=local md=local"},
		{"an inserted word of the info string", func(m *device) { m.types("lua one", "lua one auto") }, "lua one auto=foreign lua two=local md=local"},
		{"a deleted word of the info string", func(m *device) { m.types("lua one", "lua") }, "lua=foreign lua two=local md=local"},
		{"a character of the delimiter", func(m *device) { m.types("```lua one\nprint('one')\n```", "````lua one\nprint('one')\n````") }, "lua one=foreign lua two=local md=local"},
		{"a fence split in two", func(m *device) { m.types("print('one')", "print(\n```\n```sh\n'one')") }, "lua one=foreign sh=foreign lua two=local md=local"},
		{"two fences merged", func(m *device) { m.types("```\n\ntext\n\n```lua two\n", "") }, "lua one=foreign md=local"},
		{"the closing line deleted", func(m *device) { m.types("```\n\ntext", "\ntext") }, "lua one=foreign md=local"},
		{"prose wrapped", func(m *device) { m.types("rm -rf build", "```sh\nrm -rf build\n```\n") }, "sh=foreign " + tourStands},
		{"the example unwrapped", func(m *device) { m.types("````md\n", ""); m.types("````\n", "") }, "lua one=local lua two=local lua three=foreign"},
		{"the example unwrapped from further away", func(m *device) { m.types("Example:\n\n````md\n", ""); m.types("````\n", "") }, "lua one=local lua two=local lua three=foreign"},
		{"an inline literal made live by a new line", func(m *device) { m.types("inline ```lua four", "inline \n```lua four") }, tourStands + " lua four=structure"},
		{"an inline literal made live by a deletion", func(m *device) { m.types("inline ", "") }, tourStands + " lua four=foreign"},
		{"an unclosed fence above all", func(m *device) { m.types("# Notes", "```x\n# Notes") }, "x=foreign lua two=local md=local"},
		{"a comment opened above all", func(m *device) { m.types("# Notes", "<!--\n# Notes") }, ""},
		{"a comment opened and closed again", func(m *device) { m.types("# Notes", "<!--\n# Notes"); m.types("<!--\n", "") }, "lua one=structure lua two=structure md=structure"},
		{"a copy elsewhere", func(m *device) { m.types("end\n", "```lua one\nprint('one')\n```\n") }, tourStands + " lua one=foreign"},
		{"deleted and inserted again, as undo does", func(m *device) { m.types("print('one')", ""); m.types("lua one\n", "lua one\nprint('one')") }, "lua one=foreign lua two=local md=local"},
		{"the delimiter deleted and inserted again", func(m *device) { m.types("```lua one", "lua one"); m.types("lua one", "```lua one") }, "lua one=foreign lua two=structure md=local"},
	} {
		t.Run(c.name, func(t *testing.T) {
			v, m := typedTour(t)
			c.by(m)
			v.pull(m)
			if got := v.stands(); got != c.stand {
				t.Errorf("stands %q, want %q\n%s", got, c.stand, v.page.Text())
			}
		})
	}
}

// TestOwnDoorsAreNotTheKeys has V's own agent and importer do what M did.
func TestOwnDoorsAreNotTheKeys(t *testing.T) {
	v, _ := typedTour(t)
	v.as(notebook.Agent, "helper", "", "```lua five\nagent()\n```\n")
	v.as(notebook.Import, "notes", "", "```lua six\nimported()\n```\n")
	v.as(notebook.Agent, "helper", "'one'", "'1'")
	if got, want := v.stands(), "lua one=agent lua two=local md=local lua five=agent lua six=import"; got != want {
		t.Fatalf("stands %q, want %q", got, want)
	}
	v, _ = typedTour(t)
	v.as(notebook.Agent, "helper", "inline ```lua four", "inline \n```lua four")
	if got := v.stands(); got != tourStands+" lua four=structure" {
		t.Fatalf("an own agent's new line made a fence that stands %q", got)
	}
}

// TestEditingDoesNotLaunder has V type into what others touched or made.
func TestEditingDoesNotLaunder(t *testing.T) {
	t.Run("a character in a fence that M touched", func(t *testing.T) {
		v, m := typedTour(t)
		m.types("'one'", "'EVIL'")
		v.pull(m)
		v.types("EVIL", "LEVIL")
		v.types("LEVIL", "one")
		if got := v.stands(); got != "lua one=foreign lua two=local md=local" {
			t.Fatalf("stands %q", got)
		}
	})
	t.Run("a character of the opening line of a fence that M's new line made", func(t *testing.T) {
		v, m := typedTour(t)
		m.types("inline ```lua four", "inline \n```lua four")
		v.pull(m)
		v.types("lua four", "lua four!")
		v.types("boom()\n", "boom()\n```\n")
		if got := v.stands(); got != tourStands+" lua four!=structure" {
			t.Fatalf("stands %q", got)
		}
		v.types("```lua four", "````lua four") // another first character, so another fence
		v.types("boom()\n```\n", "boom()\n````\n")
		if got := v.stands(); got != tourStands+" lua four!=structure" {
			t.Fatalf("stands %q", got)
		}
	})
	t.Run("a fence that M had made and killed again", func(t *testing.T) {
		v, m := typedTour(t)
		m.types("inline ```lua four", "inline \n```lua four")
		v.pull(m)
		v.types("boom()\n", "boom()\n```\n")
		shown := v.page.Revision()
		m.types("# Notes", "<!--\n# Notes")
		v.pull(m)
		// V still sees the fence, ends the comment that it does not see, and
		// writes a character of the opening line.
		text, err := v.page.TextAt(shown)
		must(t, err)
		inline := strings.Index(text, "inline")
		v.typesAt(shown, notebook.Splice{At: inline, Insert: "-->\n\n"}, notebook.Splice{At: strings.Index(text, "lua four"), Insert: " "})
		if got := v.stands(); got != "lua four=structure" {
			t.Fatalf("stands %q in %q", got, v.page.Text())
		}
	})
}

// TestMadeLiveByBothAtOnce: the fence was live by M's doing before V's commit
// came, so V's commit does not make it V's, although V saw it become live by it.
func TestMadeLiveByBothAtOnce(t *testing.T) {
	for _, first := range []bool{true, false} {
		v, m := typedTour(t)
		shown := v.page.Revision()
		m.types("inline ```lua four", "inline \n```lua four")
		want := tourStands + " lua four=local"
		if first {
			v.pull(m)
			want = tourStands + " lua four=structure"
		}
		v.typesAt(shown,
			notebook.Splice{At: strings.Index(tour, "```lua four"), Insert: "\n"},
			notebook.Splice{At: strings.Index(tour, "\nboom()"), Insert: " "},
			notebook.Splice{At: strings.Index(tour, "\nend"), Insert: "```\n"})
		if !first {
			v.pull(m)
		}
		if got := v.stands(); got != want {
			t.Errorf("M first %v: stands %q in %q", first, got, v.page.Text())
		}
	}
}

// TestOwnFencesFollowThePerson is what has to stay local.
func TestOwnFencesFollowThePerson(t *testing.T) {
	v, m := typedTour(t)
	v.types("'one'", "'uno'")
	v.types("lua two", "lua zwei")
	v.types("inline ```lua four", "inline:\n\n```lua four") // V wrote no character of its opening line
	v.types("boom()\n", "boom()\n```\n")
	v.types("end\n", "```lua five\nx\n```\n")
	if got, want := v.stands(), "lua one=local lua zwei=local md=local lua four=structure lua five=local"; got != want {
		t.Fatalf("stands %q, want %q", got, want)
	}
	m.pull(v)
	m.types("# Notes", "# Notes of V and M")
	v.pull(m)
	v.types("'uno'", "'one'")
	v.types("```lua five", "````lua five") // a new first character: another fence, of the same line
	v.types("x\n```\n", "x\n````\n")
	if got, want := v.stands(), "lua one=local lua zwei=local md=local lua four=structure lua five=local"; got != want {
		t.Fatalf("stands %q, want %q", got, want)
	}
}

// TestSuspension takes a fence apart and puts it together again.
func TestSuspension(t *testing.T) {
	apart := func(v *device) {
		v.t.Helper()
		v.types("# Notes", "<!--\n# Notes")
		if got := v.stands(); got != "" {
			v.t.Fatalf("inside a comment stands %q", got)
		}
	}
	t.Run("by nobody else in between", func(t *testing.T) {
		v, _ := typedTour(t)
		apart(v)
		v.types("end", "the end")
		v.types("<!--\n", "")
		if got := v.stands(); got != tourStands {
			t.Fatalf("stands %q", got)
		}
	})
	t.Run("through the record", func(t *testing.T) {
		v, _ := typedTour(t)
		apart(v)
		record, err := v.own.Record()
		must(t, err)
		v.own, err = OpenOwnFences(record)
		must(t, err)
		v.types("<!--\n", "")
		if got := v.stands(); got != tourStands {
			t.Fatalf("stands %q", got)
		}
	})
	t.Run("with M's prose in between", func(t *testing.T) {
		v, m := typedTour(t)
		apart(v)
		m.types("end", "the end")
		v.pull(m)
		v.types("<!--\n", "")
		if got := v.stands(); got != "lua one=structure lua two=structure md=structure" {
			t.Fatalf("stands %q", got)
		}
	})
	t.Run("by M", func(t *testing.T) {
		v, m := typedTour(t)
		apart(v)
		m.pull(v)
		m.types("<!--\n", "")
		v.pull(m)
		if got := v.stands(); got != "lua one=structure lua two=structure md=structure" {
			t.Fatalf("stands %q", got)
		}
		if n := len(v.own.fences); n != 0 {
			t.Fatalf("%d fences are still on record", n)
		}
	})
	t.Run("with the agent in between", func(t *testing.T) {
		v, _ := typedTour(t)
		apart(v)
		v.as(notebook.Agent, "helper", "end", "the end")
		v.types("<!--\n", "")
		if got := v.stands(); got != "lua one=structure lua two=structure md=structure" {
			t.Fatalf("stands %q", got)
		}
	})
	t.Run("more than may come back", func(t *testing.T) {
		v := devices(t, "V")[0]
		v.types("", "top\n\n"+strings.Repeat("```lua\nx\n```\n", maxSuspended+1))
		v.types("top", "<!--")
		v.types("<!--", "top")
		if got := v.stands(); strings.Contains(got, "local") {
			t.Fatalf("stands %q", got)
		}
	})
}

// TestTypedAtOnceWithM lets V type while M's change is under way: what V saw
// and what the page became differ.
func TestTypedAtOnceWithM(t *testing.T) {
	t.Run("a new fence into M's open comment", func(t *testing.T) {
		v, m := typedTour(t)
		shown := v.page.Revision()
		m.types("# Notes", "<!--\n# Notes")
		v.pull(m)
		text, err := v.page.TextAt(shown)
		must(t, err)
		v.typesAt(shown, notebook.Splice{At: len(text), Insert: "-->\n\n```lua five\nx\n```\n"})
		// What V saw has the fence as well, with the same text; it is V's.
		if got := v.stands(); got != "lua five=local" {
			t.Fatalf("stands %q", got)
		}
	})
	t.Run("a new fence inside M's open one", func(t *testing.T) {
		v, m := typedTour(t)
		shown := v.page.Revision()
		m.types("# Notes", "`````sh\n# Notes")
		v.pull(m)
		v.typesAt(shown, notebook.Splice{At: len(tour), Insert: "```lua five\nx\n```\n"})
		if got := v.stands(); got != "sh=foreign" {
			t.Fatalf("stands %q", got)
		}
		m.types("`````sh\n", "")
		v.pull(m)
		if got := v.stands(); got != "lua one=structure lua two=structure md=structure lua five=structure" {
			t.Fatalf("stands %q", got)
		}
	})
	t.Run("a new fence that M's list cuts", func(t *testing.T) {
		v, m := typedTour(t)
		shown := v.page.Revision()
		m.types("end\n", "- end\n")
		v.pull(m)
		v.typesAt(shown, notebook.Splice{At: len(tour), Insert: "  ```lua five\nx\n  ```\n"})
		unrecorded := func() {
			t.Helper()
			fences, err := v.page.Fences()
			must(t, err)
			if f := &fences[3]; f.Part.Info != "lua five" || v.own.Has(f) {
				t.Fatalf("%q is on record in %q", f.Part, v.page.Text())
			}
		}
		unrecorded()
		m.pull(v)
		m.types("- end\n", "end\n")
		v.pull(m)
		unrecorded()
	})
	t.Run("an edit of an own fence, and M edits the same fence", func(t *testing.T) {
		v, m := typedTour(t)
		v.types("'one'", "'uno'")
		m.types("'one'", "'one', 'evil'")
		v.pull(m)
		m.pull(v)
		if v.page.Text() != m.page.Text() {
			t.Fatalf("%q and %q", v.page.Text(), m.page.Text())
		}
		if got := v.stands(); got != "lua one=foreign lua two=local md=local" {
			t.Fatalf("stands %q", got)
		}
	})
	t.Run("V's character and M's make a comment", func(t *testing.T) {
		v, m := typedTour(t)
		shown := v.page.Revision()
		m.types("text\n", "!--text\n")
		v.pull(m)
		v.typesAt(shown, notebook.Splice{At: strings.Index(tour, "text\n"), Insert: "<"})
		if got := v.stands(); got != "lua one=local" {
			t.Fatalf("stands %q in %q", got, v.page.Text())
		}
		v.types("<!--", "!--") // not V alone had taken the fences apart
		if got := v.stands(); got != "lua one=local lua two=structure md=structure" {
			t.Fatalf("stands %q", got)
		}
	})
}

// TestOwnFencesRefuseWhatIsNotTyped guards the caller against a mistake.
func TestOwnFencesRefuseWhatIsNotTyped(t *testing.T) {
	v, _ := typedTour(t)
	before, err := v.page.Fences()
	must(t, err)
	base, mark := v.page.Revision(), v.page.Mark()
	agent := notebook.Author{Device: v.signer.Device(), Class: notebook.Agent, Label: "helper"}
	v.change(agent, []notebook.Splice{v.splice("'one'", "'1'"), v.splice("end\n", "```lua five\nx\n```\n")})
	if err := v.recordsTyped(before, base, mark); err == nil {
		t.Fatal("an agent's commit was recorded as typed")
	}
	if got := v.stands(); got != "lua one=agent lua two=local md=local lua five=agent" {
		t.Fatalf("stands %q", got)
	}
	fences, err := v.page.Fences()
	must(t, err)
	if v.own.Has(&fences[0]) || !v.own.Has(&fences[1]) || v.own.Has(&fences[3]) {
		t.Fatal("the refused commit left the wrong fences on record")
	}
}

// TestOwnFencesRefuseTwoAuthors: M's typing is no less foreign for being typed.
func TestOwnFencesRefuseTwoAuthors(t *testing.T) {
	v, m := typedTour(t)
	m.types("'two'", "'2'")
	before, err := v.page.Fences()
	must(t, err)
	base, mark := v.page.Revision(), v.page.Mark()
	v.change(v.author(), []notebook.Splice{v.splice("'one'", "'1'")})
	taken, err := v.log.Take(notebook.DeviceID{}, m.entries)
	must(t, err)
	must(t, v.page.Apply(taken[len(taken)-1]))
	if err := v.recordsTyped(before, base, mark); err == nil {
		t.Fatal("M's change was recorded as typed here")
	}
	if got := v.stands(); got != "lua one=structure lua two=foreign md=local" {
		t.Fatalf("stands %q", got)
	}
}

// TestOwnFencesThatWereNotTold: a commit that the record was not told of, as
// after an error half-way, does not become the person's by the next keystroke.
func TestOwnFencesThatWereNotTold(t *testing.T) {
	v, _ := typedTour(t)
	agent := notebook.Author{Device: v.signer.Device(), Class: notebook.Agent, Label: "helper"}
	v.change(agent, []notebook.Splice{v.splice("# Notes", "<!--\n# Notes")})
	v.types("end", "the end")
	v.types("<!--\n", "")
	if got := v.stands(); got != "lua one=structure lua two=structure md=structure" {
		t.Fatalf("stands %q", got)
	}
}

func TestOwnFencesRecord(t *testing.T) {
	v, _ := typedTour(t)
	record, err := v.own.Record()
	must(t, err)
	again, err := OpenOwnFences(record)
	must(t, err)
	v.own = again
	if got := v.stands(); got != tourStands {
		t.Fatalf("stands %q", got)
	}
	second, err := again.Record()
	must(t, err)
	if string(second) != string(record) {
		t.Fatal("two records of the same fences differ")
	}
	for i := range record {
		if _, err := OpenOwnFences(record[:i]); err == nil {
			t.Fatalf("a record cut at byte %d of %d was read", i, len(record))
		}
	}
	future := append([]byte(nil), record...)
	future[1] = ownVersion + 1
	if _, err := OpenOwnFences(future); err == nil || !strings.Contains(err.Error(), "version") {
		t.Fatalf("a record of a later version: %v", err)
	}
}
