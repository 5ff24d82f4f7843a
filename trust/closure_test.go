package trust

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"noted/notebook"
)

// shelf is the fences that a request's own can include, by where they are.
type shelf map[address]shelved

type shelved struct {
	Included
	part notebook.Part
}

// fenceID is the nth fence of a test; its first nine letters differ.
func fenceID(n int) notebook.FenceID { return notebook.FenceID{byte(n >> 8), byte(n), 1} }

// put puts a fence on the shelf and returns the include that names it.
func (s shelf) put(page byte, n int, author notebook.Author, info, code string) string {
	at := address{notebook.PageID{page}, fenceID(n)}
	s[at] = shelved{
		Included{Page: at.page, Title: "Lib", Fence: at.fence, Origin: notebook.NewOrigin(author), Own: true, Closed: true},
		notebook.Part{Delimiter: "```", Language: "lua", Info: info, Code: code},
	}
	return notebook.Include{Page: at.page, Fence: at.fence.Short()}.String()
}

// find looks through the shelf. A short id that two fences have is ambiguous.
func (s shelf) find(page notebook.PageID, short string) (Included, notebook.Part, *Refusal) {
	var found []address
	for at := range s {
		if at.page == page && at.fence.Short() == short {
			found = append(found, at)
		}
	}
	if len(found) != 1 {
		return Included{}, notebook.Part{}, &Refusal{Code: notebook.CodeRefused, Reason: fmt.Sprintf("there are %d such fences", len(found)), Hint: "look"}
	}
	return s[found[0]].Included, s[found[0]].part, nil
}

// including makes a request's fence include what refs name.
func including(r Request, s shelf, refs ...string) Request {
	info := `lua {include="` + strings.Join(refs, " ") + `"`
	if wants, _ := r.Closure.Main().Wants(); len(wants) > 0 {
		info += ` wants="` + strings.Join(names(wants), " ") + `" query="x"`
	}
	if attributes, err := r.Closure.Main().Attributes(); err == nil && attributes["args"] != "" {
		info += ` args="` + attributes["args"] + `"`
	}
	info += "}"
	r.Closure = notebook.Closure{r.Closure.Main()}
	r.Closure[0].Info = info
	r.Include(s.find)
	r.Shown = r.Closure.Hash()
	return r
}

func codes(c notebook.Closure) string {
	var all []string
	for _, p := range c {
		all = append(all, strings.TrimSpace(p.Code))
	}
	return strings.Join(all, " ")
}

func TestIncludeOrder(t *testing.T) {
	sc := newScene(t)
	me := sc.typed(sc.self)
	s := shelf{}
	a := s.put(2, 1, me, "lua", "a")
	b := s.put(4, 2, me, `lua {include="`+a+`"}`, "b")
	c := s.put(4, 3, me, `lua {include="`+a+" #"+fenceID(2).Short()+`"}`, "c") // #… is of its own page
	d := s.put(5, 4, me, "lua", "d")
	own := "#" + fenceID(1).Short() // of the page of the request, where a is
	for _, x := range []struct {
		name string
		refs []string
		want string
	}{
		{"one", []string{a}, "a return 1"},
		{"of the same page", []string{own}, "a return 1"},
		{"in the order of mention", []string{d, a}, "d a return 1"},
		{"what is included comes before what includes it", []string{b}, "a b return 1"},
		{"a diamond has its point once", []string{b, c}, "a b c return 1"},
		{"and at its first place", []string{c, a, b}, "a b c return 1"},
		{"named twice, there once", []string{a, own, a}, "a return 1"},
		{"in depth before in breadth", []string{c, d}, "a b c d return 1"},
	} {
		r := including(sc.local("lua"), s, x.refs...)
		if got := codes(r.Closure); r.Broken != nil || got != x.want || len(r.Included) != len(r.Closure)-1 {
			t.Errorf("%s: %q with %d included, %v; want %q", x.name, got, len(r.Included), r.Broken, x.want)
			continue
		}
		for i, in := range r.Included {
			if s[address{in.Page, in.Fence}].part != r.Closure[i] {
				t.Errorf("%s: part %d is not the fence that it is said to be", x.name, i)
			}
		}
		g, no := Decide(r)
		if no != nil || g.Rung() != notebook.Granted || !g.Local() || codes(g.Closure()) != x.want || len(g.Included()) != len(r.Included) {
			t.Errorf("%s: %v %v", x.name, g.Rung(), no)
		}
		// A request that is completed again is the same.
		again := r
		again.Include(s.find)
		if !slices.Equal(again.Closure, r.Closure) {
			t.Errorf("%s: completed again it is %q", x.name, codes(again.Closure))
		}
	}
}

func TestIncludesThatCannotBe(t *testing.T) {
	sc := newScene(t)
	me := sc.typed(sc.self)
	s := shelf{}
	a := s.put(4, 1, me, "lua", "a")
	self := notebook.Include{Page: notebook.PageID{2}, Fence: notebook.FenceID{3}.Short()}.String()
	main := sc.local("lua")
	s[address{main.Page, main.Fence}] = shelved{Included{Page: main.Page, Fence: main.Fence, Origin: main.Origin, Own: true, Closed: true}, main.Closure[0]}

	ping := "#" + fenceID(11).Short()
	s.put(4, 10, me, `lua {include="`+ping+`"}`, "ping")
	pong := s.put(4, 11, me, `lua {include="#`+fenceID(10).Short()+`"}`, "pong")
	back := s.put(4, 12, me, `lua {include="`+self+`"}`, "back")
	bad := s.put(4, 13, me, `lua {include="Lib#1"}`, "bad")
	worse := s.put(4, 14, me, `lua {include=`, "worse")
	python := s.put(4, 15, me, "python", "python")
	at := address{notebook.PageID{4}, fenceID(15)}
	p := s[at]
	p.part.Language = "python"
	s[at] = p
	twin := s.put(4, 16, me, "lua", "twin")
	other := notebook.FenceID(fenceID(16))
	other[15] = 9 // the same first 45 bits
	s[address{notebook.PageID{4}, other}] = shelved{Included{Page: notebook.PageID{4}, Fence: other}, notebook.Part{Language: "lua", Info: "lua"}}
	lost := s.put(4, 17, me, `lua {include="#faaaaaaaaa"}`, "lost")
	wants := s.put(4, 18, me, "lua {wants=clock}", "wants")
	unknown := s.put(4, 19, me, "lua {wants=net}", "unknown")
	big := s.put(4, 20, me, "lua", strings.Repeat("x", notebook.MaxClosureBytes-100))

	var chain, wide []string
	for n := range 40 {
		info := "lua"
		if n > 0 {
			info = `lua {include="#` + fenceID(100+n-1).Short() + `"}`
		}
		chain = append(chain, s.put(6, 100+n, me, info, "x"))
		wide = append(wide, s.put(7, 200+n, me, "lua", "x"))
	}
	for _, x := range []struct {
		name  string
		refs  []string
		code  notebook.Code
		words string
	}{
		{"what is not there", []string{a, "=" + strings.Repeat("0a", 16) + "#faaaaaaaaa"}, notebook.CodeRefused, "includes =0a0a0a0a0a0a#faaaaaaaaa, and there are 0"},
		{"what is not on its own page", []string{"#faaaaaaaaa"}, notebook.CodeRefused, "there are 0"},
		{"what an included one misses", []string{lost}, notebook.CodeRefused, "#faaaaaaaaa, and there are 0"},
		{"two of one short id", []string{twin}, notebook.CodeRefused, "there are 2"},
		{"itself", []string{self}, notebook.CodeRefused, "in turn"},
		{"itself, through another", []string{back}, notebook.CodeRefused, "in turn"},
		{"two that include each other", []string{pong}, notebook.CodeRefused, "in turn"},
		{"a title", []string{"Lib#1"}, notebook.CodeRefused, "cannot be read"},
		{"one that includes a title", []string{bad}, notebook.CodeRefused, "of the included fence"},
		{"one that is malformed", []string{worse}, notebook.CodeRefused, "of the included fence"},
		{"another language", []string{python}, notebook.CodeRefused, `is "python" and not "lua"`},
		{"one that wants more", []string{wants}, notebook.CodeRefused, "wants clock, which the fence itself does not ask for"},
		{"one that wants what there is not", []string{unknown}, notebook.CodeRefused, "net"},
		{"a chain of 33", []string{chain[31]}, notebook.CodeExhausted, "32 fences"},
		{"33 in two layers", append(slices.Clone(wide[:30]), chain[1]), notebook.CodeExhausted, "32 fences"},
		{"65 KiB", []string{a, big, wide[0], wide[1], wide[2], wide[3], wide[4], wide[5], wide[6], wide[7]}, notebook.CodeExhausted, "65536 bytes"},
	} {
		r := including(main, s, x.refs...)
		g, no := Decide(r)
		if no == nil {
			t.Errorf("%s: runs %v", x.name, g.Rung())
			continue
		}
		if no.Code != x.code || !strings.Contains(no.Reason, x.words) || no.Hint == "" || no.Ask {
			t.Errorf("%s: refused %s: %s (%s)", x.name, no.Code, no.Reason, no.Hint)
		}
		if r.Broken != nil && (len(r.Closure) != 1 || len(r.Included) > 0) {
			t.Errorf("%s: there are %d parts of what cannot be", x.name, len(r.Closure))
		}
		if _, no := Propose(r, notebook.ProposalRequest{FenceRef: notebook.FenceRef{Page: r.Page, Fence: r.Fence, Shown: r.Shown}, Rung: notebook.Granted}); no == nil {
			t.Errorf("%s: can be approved", x.name)
		}
	}
	// The controls: as much as there may be, and wants that are asked for.
	for name, r := range map[string]Request{
		"a chain of 32": including(main, s, chain[30]),
		"31 beside":     including(main, s, wide[:31]...),
		"31 and once":   including(main, s, append(slices.Clone(wide[:30]), chain[0])...),
		"64 KiB":        including(main, s, big),
		"wants":         including(sc.local("lua {wants=clock}"), s, wants, a),
		"wants more":    including(sc.local(`lua {wants="page clock"}`), s, wants),
	} {
		if _, no := Decide(r); no != nil {
			t.Errorf("%s: %v", name, no)
		}
	}
}

// A request whose parts are not what the fence includes is refused, however it came about.
func TestAClosureIsWhole(t *testing.T) {
	sc := newScene(t)
	s := shelf{}
	a := s.put(4, 1, sc.typed(sc.self), "lua", "a")
	b := s.put(4, 2, sc.typed(sc.self), "lua", "b")
	for name, change := range map[string]func(*Request){
		"a part is missing": func(r *Request) { r.Closure, r.Included = r.Closure[1:], r.Included[1:] },
		"all are missing":   func(r *Request) { r.Closure, r.Included = r.Closure[2:], nil },
		"one nobody mentioned": func(r *Request) {
			r.Closure, r.Included = append(r.Closure[:1:1], r.Closure...), append(r.Included[:1:1], r.Included...)
		},
		"another order":         func(r *Request) { slices.Reverse(r.Closure[:2]); slices.Reverse(r.Included) },
		"another page":          func(r *Request) { r.Included[0].Page[0]++ },
		"another fence":         func(r *Request) { r.Included[0].Fence[0]++ },
		"an author is missing":  func(r *Request) { r.Included = r.Included[1:] },
		"an author too many":    func(r *Request) { r.Included = append(r.Included, r.Included[0]) },
		"other bytes were read": func(r *Request) { r.Closure[2].Info = "lua" },
	} {
		r := including(sc.local("lua"), s, a, b)
		if _, no := Decide(r); no != nil {
			t.Fatal(no)
		}
		r.Closure, r.Included = slices.Clone(r.Closure), slices.Clone(r.Included)
		change(&r)
		r.Shown = r.Closure.Hash()
		if g, no := Decide(r); no == nil || !strings.Contains(no.Reason, "not the fence and what it includes") {
			t.Errorf("%s: %v %v", name, g.Rung(), no)
		}
	}
}

func TestStandingOfIncludes(t *testing.T) {
	sc := newScene(t)
	me, laptop := sc.typed(sc.self), sc.typed(sc.laptop)
	clerk := notebook.Author{Device: sc.self, Class: notebook.Agent, Label: "clerk"}
	s := shelf{}
	own, theirs, agents := s.put(4, 1, me, "lua", "a"), s.put(4, 2, laptop, "lua", "b"), s.put(5, 3, clerk, "lua", "c")
	through := s.put(5, 4, me, `lua {include="`+theirs+`"}`, "d")
	variant := func(n int, change func(*Included)) string {
		ref := s.put(6, n, me, "lua", "e")
		at := address{notebook.PageID{6}, fenceID(n)}
		x := s[at]
		change(&x.Included)
		s[at] = x
		return ref
	}
	example := variant(5, func(in *Included) { in.Own = false })
	open := variant(6, func(in *Included) { in.Closed = false })
	nobodys := variant(7, func(in *Included) { in.Origin = nil })
	for _, x := range []struct {
		name string
		r    Request
		want string
	}{
		{"own fences of own", including(sc.local("lua"), s, own), "local"},
		{"with one of another device", including(sc.local("lua"), s, own, theirs), "device:laptop"},
		{"through an own one", including(sc.local("lua"), s, through), "device:laptop"},
		{"with an agent's", including(sc.local("lua"), s, agents), "agent:clerk"},
		{"with both", including(sc.local("lua"), s, agents, through), "agent:clerk device:laptop"},
		{"with what was only an example", including(sc.local("lua"), s, example), "structure"},
		{"with one that is not closed", including(sc.local("lua"), s, open), "structure"},
		{"with nobody's", including(sc.local("lua"), s, nobodys), "structure"},
		{"with nobody's among others'", including(sc.local("lua"), s, theirs, nobodys), "device:laptop structure"},
		{"a foreign fence of own ones", including(sc.foreign("lua"), s, own), "device:laptop"},
		{"nobody's of own ones", func() Request { r := including(sc.local("lua"), s, own); r.Origin = nil; return r }(), "structure"},
	} {
		if got := x.r.Standing().String(); got != x.want {
			t.Errorf("%s: stands %s, want %s", x.name, got, x.want)
		}
		g, no := Decide(x.r)
		if no != nil || (g.Rung() == notebook.Granted) != (x.want == "local") || g.Local() != (x.want == "local") {
			t.Errorf("%s: %v %v", x.name, g.Rung(), no)
		}
	}
	// Each part is shown as it stands by itself, and text of this person beside
	// that of others is held to the rule for others.
	r := including(sc.local("lua"), s, own, through)
	var stand []string
	for _, p := range r.Parts() {
		stand = append(stand, p.Standing)
	}
	if got := strings.Join(stand, " "); got != "local device:laptop local" {
		t.Errorf("the parts stand %s", got)
	}
	r.Policy = policyOf(t, "[foreign]\nlua=\"ask\"\n[device."+sc.laptop.String()+"]\nlua=\"strict\"")
	if g, no := Decide(r); no == nil || !no.Ask {
		t.Errorf("own text beside that of a trusted device: %v %v", g.Rung(), no)
	}
	r.Policy = nil
	r.Quarantine = NewQuarantine()
	if g, no := Decide(r); no != nil {
		t.Errorf("with nobody in quarantine: %v %v", g.Rung(), no)
	}
	r.Quarantine.Hold(sc.laptop, noon)
	if g, no := Decide(r); no == nil || !no.Ask || !strings.Contains(no.Reason, "quarantine") {
		t.Errorf("a device in quarantine wrote a part: %v %v", g.Rung(), no)
	}
	r.Policy = policyOf(t, "[device."+sc.laptop.String()+"]\nlua=\"refuse\"")
	if g, no := Decide(r); no == nil || no.Ask {
		t.Errorf("a refused device wrote a part: %v %v", g.Rung(), no)
	}
}

// TestMoreIncludesNeverGrantMore: whatever a fence includes, it does not get more
// than alone, and never above strict unless all of it stands local.
func TestMoreIncludesNeverGrantMore(t *testing.T) {
	sc := newScene(t)
	devices := []notebook.DeviceID{sc.self, sc.self, sc.laptop, {}, {9}}
	rapid.Check(t, func(t *rapid.T) {
		s := shelf{}
		var refs []string
		for n := range rapid.IntRange(1, 4).Draw(t, "parts") {
			author := sc.typed(sc.self)
			if rapid.Bool().Draw(t, "by another") {
				author = drawAuthor(t, devices)
			}
			info := rapid.SampledFrom([]string{"lua", "lua", "lua {wants=page}", "lua {wants=clock}", "lua {wants=net}"}).Draw(t, "info")
			if len(refs) > 0 && rapid.Bool().Draw(t, "nested") {
				info = `lua {include="` + rapid.SampledFrom(refs).Draw(t, "of") + `"}`
			}
			ref := s.put(byte(4+n%2), n, author, info, "x")
			at := address{notebook.PageID{byte(4 + n%2)}, fenceID(n)}
			x := s[at]
			x.Own, x.Closed = rapid.IntRange(0, 3).Draw(t, "own") > 0, rapid.IntRange(0, 3).Draw(t, "closed") > 0
			if rapid.IntRange(0, 9).Draw(t, "nobody") == 0 {
				x.Origin = nil
			}
			s[at] = x
			refs = append(refs, ref)
		}
		alone := drawRequest(t, sc)
		if p := alone.Closure.Main(); p.Language != "lua" {
			return
		} else if i, err := p.Includes(); err != nil || i != nil {
			return
		} else if _, err := p.Wants(); err != nil {
			return // with other words it would be another fence
		} else if _, err := p.Arguments(); err != nil {
			return
		}
		before, _ := Decide(alone)
		few := including(alone, s, refs[:len(refs)-1]...)
		more := including(alone, s, refs...)
		if len(refs) == 1 {
			few = alone
		}
		if alone.Shown.IsZero() {
			few.Shown, more.Shown = alone.Shown, alone.Shown
		}
		middle, _ := Decide(few)
		after, no := Decide(more)
		if after.Valid() == (no != nil) {
			t.Fatal("neither or both of a grant and a refusal")
		}
		if wider(before, middle) || wider(middle, after) || wider(before, after) {
			t.Fatalf("%v %v became %v %v and then %v %v", before.Rung(), before.Capabilities(), middle.Rung(), middle.Capabilities(), after.Rung(), after.Capabilities())
		}
		if !after.Valid() || after.Rung() <= notebook.Strict {
			return
		}
		for i, in := range more.Included {
			if !Stand(sc.self, sc.roster, in.Origin, in.Own, in.Closed).Local() {
				t.Fatalf("%v with part %d by %v", after.Rung(), i, in.Origin)
			}
		}
	})
}

// An approval is of all parts: of their bytes, their places and their authors.
func TestApprovalOfIncludes(t *testing.T) {
	sc := newScene(t)
	theirs := address{notebook.PageID{4}, fenceID(2)}
	base := func() (Request, shelf, []string) {
		s := shelf{}
		refs := []string{s.put(4, 1, sc.typed(sc.self), "lua", "a"), s.put(4, 2, sc.typed(sc.laptop), "lua", "b")}
		return including(sc.local("lua {wants=clock}"), s, refs...), s, refs
	}
	for name, change := range map[string]func(s shelf, x *shelved){
		"a byte of the code":   func(_ shelf, x *shelved) { x.part.Code += " " },
		"its info string":      func(_ shelf, x *shelved) { x.part.Info += " {}" },
		"its delimiter":        func(_ shelf, x *shelved) { x.part.Delimiter = "~~~" },
		"its author":           func(_ shelf, x *shelved) { x.Origin = notebook.NewOrigin(sc.typed(notebook.DeviceID{9})) },
		"one author more":      func(_ shelf, x *shelved) { x.Origin = append(x.Origin, sc.typed(sc.self)) },
		"its own closing line": func(_ shelf, x *shelved) { x.Closed = false },
		"its record":           func(_ shelf, x *shelved) { x.Own = false },
		"what it includes":     func(_ shelf, x *shelved) { x.part.Info = `lua {include="#` + fenceID(1).Short() + `"}` },
		"that it is there":     func(s shelf, x *shelved) { x.Fence[0]++ },
	} {
		r, s, refs := base()
		if _, no := Decide(r); no == nil || !no.Ask {
			t.Fatalf("before the approval: %v", no)
		}
		a := give(t, r, forContent)
		if g, no := Decide(r); no != nil || g.Approval() != a.ID || codes(g.Closure()) != "a b return 1" {
			t.Fatalf("%s: before the change: %v", name, no)
		}
		x := s[theirs]
		change(s, &x)
		delete(s, theirs)
		s[address{x.Page, x.Fence}] = x
		changed := including(r, s, refs...)
		if g, no := Decide(changed); no == nil {
			t.Errorf("%s changed: still runs %v by %s", name, g.Rung(), g.Rule())
		}
		changed.Shown = r.Shown
		if g, no := Decide(changed); no == nil {
			t.Errorf("%s changed, as it was shown: still runs %v by %s", name, g.Rung(), g.Rule())
		}
	}
	r, s, refs := base()
	give(t, r, forContent)
	x := s[theirs]
	x.Title = "renamed"
	s[theirs] = x
	if g, no := Decide(including(r, s, refs...)); no != nil || g.Approval() == 0 {
		t.Errorf("a title decides: %v", no)
	}
	if gone := r.Approvals.VoidDevice(sc.laptop, "removed"); len(gone) != 1 {
		t.Errorf("%d approvals rest on the device that wrote a part", len(gone))
	}

	r, s, refs = base()
	view := propose(t, r, nil).View()
	if codes(view.Closure) != "a b return 1" || len(view.Included) != 2 || view.Included[0].Standing != "local" ||
		view.Included[1].Standing != "device:laptop" || view.Included[1].Title != "Lib" || view.Standing != "device:laptop" || view.Previous != "" {
		t.Errorf("%+v", view)
	}
	give(t, r, forContent)
	was := r.Closure.Text()
	x = s[theirs]
	x.part.Code, x.Closed = "changed\n", false
	s[theirs] = x
	view = propose(t, including(r, s, refs...), nil).View()
	if view.Previous != was || !strings.Contains(strings.Join(view.Notes, "; "), "ends the included fence =040000000000#"+fenceID(2).Short()) {
		t.Errorf("previous %q, notes %q", view.Previous, view.Notes)
	}
}

// An approval ends when something that the fence includes is another.
func TestApprovalEndsWhenAPartChanges(t *testing.T) {
	sc := newScene(t)
	s := shelf{}
	refs := []string{s.put(4, 1, sc.typed(sc.self), "lua", "a"), s.put(5, 2, sc.typed(sc.laptop), "lua", "b"), s.put(5, 3, sc.typed(sc.laptop), "lua", "c")}
	r := including(sc.foreign(wantsPage), s, refs...)
	a := give(t, r, forContent)
	records := r.Approvals.Flush()
	opened, err := OpenApprovals(func(yield func([]byte, []byte) bool) {
		for _, x := range records {
			if !yield(x.Key, x.Value) {
				return
			}
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	for name, approvals := range map[string]*Approvals{"given": r.Approvals, "opened": opened} {
		now := func(h notebook.Hash) func(notebook.PageID, notebook.FenceID) notebook.Hash {
			return func(page notebook.PageID, fence notebook.FenceID) notebook.Hash {
				if page != r.Page || fence != r.Fence {
					t.Errorf("%s: %v of %v is looked at", name, fence, page)
				}
				return h
			}
		}
		for n := range byte(8) {
			if got := approvals.VoidIncluding(notebook.PageID{n}, now(r.Closure.Hash())); len(got) > 0 {
				t.Errorf("%s: %v are void for nothing", name, got)
			}
			if got := approvals.VoidIncluding(notebook.PageID{n}, now(notebook.Hash{1})); n < 4 && len(got) > 0 || n == 4 && !slices.Equal(got, []uint64{a.ID}) || n > 4 && len(got) > 0 {
				t.Errorf("%s: %v are void with page %d", name, got, n)
			}
		}
	}
	if list := r.Approvals.Of(r.Page, r.Fence, noon); len(list) != 1 || list[0].Void != changed {
		t.Errorf("%+v", list)
	}
	if r.Approvals.drop(a.ID); len(r.Approvals.byIncluded) != 0 {
		t.Errorf("%d pages are remembered for nothing", len(r.Approvals.byIncluded))
	}
}
