package notebook

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// shelf is a notebook of a few pages.
var shelf = []struct{ title, body string }{
	{"Garden", "# Plan\n- [ ] buy Seeds #garden/spring 2026-03-01\n- [x] dig #garden\n- TODO water\n\nThe STRASSE and the straße.\n"},
	{"2026-11-30", "- [ ] call Ann\n- wrote to Bob about 2026-12-24\n- DONE paid\n"},
	{"2026-12-01", "a quiet day\n"},
	{"Tagged", "tags:: project, [[big plan]]\n\nfirst thing\n\n```lua\nreturn 'seeds'\n```\n"},
	{"Empty seeds", ""},
}

func ask(t interface{ Fatalf(string, ...any) }, query string) *Rows {
	q, err := ParseQuery(query)
	if err != nil {
		t.Fatalf("%s: %+v", query, err)
	}
	s := q.Select()
	for i, p := range shelf {
		s.Look(PageID{byte(i)}, p.title, p.body, func([]Span) (Origin, error) { return nil, nil })
	}
	return s.Rows()
}

func TestQueries(t *testing.T) {
	for _, c := range []struct {
		query string
		want  []string
	}{
		{"seeds", []string{"Garden:2 buy Seeds #garden/spring 2026-03-01", "Tagged:5 ```lua\nreturn 'seeds'\n```"}},
		{"SEEDS -lua", []string{"Garden:2 buy Seeds #garden/spring 2026-03-01"}},
		{"-seeds page:garden -dig -water", []string{"Garden:1 Plan", "Garden:6 The STRASSE and the straße."}},
		{"straSSE", []string{"Garden:6 The STRASSE and the straße."}},
		{"straße", []string{"Garden:6 The STRASSE and the straße."}},
		{`"the strasse"`, []string{"Garden:6 The STRASSE and the straße."}},
		{`'the strasse' "and the"`, []string{"Garden:6 The STRASSE and the straße."}},
		{`"strasse the"`, nil},
		{"garden water", []string{"Garden:4 water"}},
		{"#garden", []string{"Garden:2 buy Seeds #garden/spring 2026-03-01", "Garden:3 dig #garden"}},
		{"#garden -#garden/spring", []string{"Garden:3 dig #garden"}},
		{"tag:#Garden/Spring", []string{"Garden:2 buy Seeds #garden/spring 2026-03-01"}},
		{"#gard", nil},
		{"#project -lua", []string{"Tagged:1 tags:: project, [[big plan]]", "Tagged:3 first thing"}},
		{`tag:"big plan" first`, []string{"Tagged:3 first thing"}},
		{"task:todo", []string{"2026-11-30:1 call Ann", "Garden:2 buy Seeds #garden/spring 2026-03-01", "Garden:4 water"}},
		{"task:done", []string{"2026-11-30:3 paid", "Garden:3 dig #garden"}},
		{"task:any -task:todo page:garden", []string{"Garden:3 dig #garden"}},
		{"date:2026-11-30", []string{"2026-11-30:1 call Ann", "2026-11-30:3 paid"}},
		{"date:2026-12-24", []string{"2026-11-30:2 wrote to Bob about 2026-12-24"}},
		{"after:2026-11-30", []string{"2026-11-30:2 wrote to Bob about 2026-12-24", "2026-12-01:1 a quiet day"}},
		{"after:2026-11-30 before:2026-12-24", []string{"2026-12-01:1 a quiet day"}},
		{"before:2026-11-30", []string{"Garden:2 buy Seeds #garden/spring 2026-03-01"}},
		{"task:any -after:2026-01-01", []string{"Garden:3 dig #garden", "Garden:4 water"}},
		{"after:9999-12-31", nil},
		{"before:0000-01-01", nil},
		{"task:any sort:date limit:3", []string{"Garden:2 buy Seeds #garden/spring 2026-03-01", "2026-11-30:1 call Ann", "2026-11-30:3 paid"}},
		{"task:any limit:1", []string{"2026-11-30:1 call Ann"}},
		{"show:pages", []string{"2026-11-30:0 ", "2026-12-01:0 ", "Empty seeds:0 ", "Garden:0 ", "Tagged:0 "}},
		{"show:pages seeds", []string{"Empty seeds:0 ", "Garden:0 ", "Tagged:0 "}},
		{"show:pages seeds water", []string{"Garden:0 "}},
		{"show:pages seeds -water -lua", []string{"Empty seeds:0 "}},
		{"show:pages date:2026-11-30", []string{"2026-11-30:0 "}},
		{"show:pages -task:any sort:date", []string{"2026-12-01:0 ", "Empty seeds:0 ", "Tagged:0 "}},
		{"show:pages before:2026-11-30", []string{"Garden:0 "}},
		{"show:pages #project", []string{"Tagged:0 "}},
	} {
		var got []string
		for _, r := range ask(t, c.query).List {
			got = append(got, fmt.Sprintf("%s:%d %s", r.Title, r.Line, r.Text))
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s\nfinds %q\n want %q", c.query, got, c.want)
		}
	}
}

func TestRowsSayWhatTheyHold(t *testing.T) {
	rows := ask(t, "task:todo date:2026-03-01").List
	if len(rows) != 1 || rows[0].Task != Todo || rows[0].Date != "2026-03-01" || !slices.Equal(rows[0].Tags, []string{"garden/spring"}) || rows[0].Page != (PageID{0}) {
		t.Errorf("rows: %+v", rows)
	}
	rows = ask(t, "show:pages page:garden").List
	if len(rows) != 1 || rows[0].Task != Todo || rows[0].Date != "2026-03-01" || !slices.Equal(rows[0].Tags, []string{"garden/spring", "garden"}) {
		t.Errorf("pages: %+v", rows)
	}
	rows = ask(t, "quiet").List
	if len(rows) != 1 || rows[0].Date != "2026-12-01" {
		t.Errorf("of a journal page: %+v", rows)
	}
}

func TestMalformedQueries(t *testing.T) {
	many := strings.Repeat("a ", 33)
	for _, c := range []struct{ query, why string }{
		{"", "it is empty"},
		{" \n\t", "it is empty"},
		{strings.Repeat("a", MaxQuery+1), "1025 bytes"},
		{many, "more than 32 terms"},
		{"a\xff", "not UTF-8"},
		{"-", "no value"},
		{"- a", "no value"},
		{"#", "no value"},
		{"tag:", "no value"},
		{`""`, "no value"},
		{`"  "`, "no value"},
		{`"a`, "not closed"},
		{`tag:"a`, "not closed"},
		{`'a`, "not closed"},
		{`"a"b`, "follows a closing quote"},
		{`a"b`, "within"},
		{"https://example.org", `key "https":`},
		{"task:open", "no state"},
		{"date:today", "no day"},
		{"date:2026-02-30", "no day"},
		{"date:2026-1-1", "no day"},
		{"after:2026-11-30 before:2026-11-30", "no day meets"},
		{"date:2026-11-30 date:2026-12-01", "no day meets"},
		{"a limit:0", "from 1 to 1000"},
		{"a limit:1001", "from 1 to 1000"},
		{"a limit:x", "from 1 to 1000"},
		{"a limit:1 limit:2", "not a condition"},
		{"a -limit:1", "not a condition"},
		{"a sort:size", "not known"},
		{"a show:fences", "not known"},
	} {
		_, err := ParseQuery(c.query)
		e, ours := errors.AsType[*Error](err)
		if !ours || e.Code != CodeInvalid || e.Hint == "" || !strings.Contains(e.Error(), c.why) {
			t.Errorf("%q: %+v, want a refusal that says %q and what to do", clip(c.query), err, c.why)
		}
	}
	if _, err := ParseQuery(many[:63]); err != nil {
		t.Errorf("32 terms: %v", err)
	}
	if _, err := ParseQuery(strings.Repeat("a", MaxQuery)); err != nil {
		t.Errorf("%d bytes: %v", MaxQuery, err)
	}
}

// TestAnswersAreBounded: in rows, in bytes, and in what is kept meanwhile; which
// rows they are does not depend on the order of the pages.
func TestAnswersAreBounded(t *testing.T) {
	line := "- x " + strings.Repeat("ö", 2000) + "\n"
	for _, c := range []struct {
		query string
		body  string
		most  int
	}{
		{"x", "- x\n", MaxRows},
		{"x limit:7", "- x\n", 7},
		{"x", line, MaxRowsOut / maxRowText},
		{"show:pages x", line, MaxRows},
	} {
		q, err := ParseQuery(c.query)
		if err != nil {
			t.Fatal(err)
		}
		answer := func(step int) *Rows {
			s := q.Select()
			for i := range 3000 {
				i = i * step % 3000
				s.Look(PageID{byte(i >> 8), byte(i)}, fmt.Sprintf("Page %04d", i), c.body, func([]Span) (Origin, error) { return nil, nil })
				if len(s.kept) >= 2*q.limit {
					t.Fatalf("%s: %d rows are kept", c.query, len(s.kept))
				}
			}
			return s.Rows()
		}
		rows := answer(1)
		b := EncodeRows(rows)
		if len(rows.List) > c.most || len(rows.List) < c.most*9/10 || rows.Found != 3000 || len(b) > MaxRowsOut {
			t.Errorf("%s: %d of %d rows, in %d bytes", c.query, len(rows.List), rows.Found, len(b))
		}
		if other := answer(1777); string(EncodeRows(other)) != string(b) {
			t.Errorf("%s: the order of the pages makes another answer", c.query)
		}
	}
}

// TestWhatPagesSayOfThemselvesIsReadOnce: however many tags a page gives itself,
// terms a query has and blocks follow, a block costs what is in it.
func TestWhatPagesSayOfThemselvesIsReadOnce(t *testing.T) {
	const blocks = 500
	look := func(tags, terms int, output string) (perBlock float64, asked int) {
		front, query := "---\ntags: last", output
		for i := range tags {
			front += fmt.Sprintf(", tag%d", i)
		}
		for i := range terms {
			query += fmt.Sprintf(" -#other%d", i)
		}
		q, err := ParseQuery(query)
		if err != nil {
			t.Fatal(err)
		}
		body := front + "\n---\n" + strings.Repeat("a\n\n", blocks)
		found := 0
		allocated := testing.AllocsPerRun(1, func() {
			asked = 0
			s := q.Select()
			s.Look(PageID{1}, "Page", body, func(spans []Span) (Origin, error) {
				for _, span := range spans {
					if span.From == 0 {
						asked++
					}
				}
				return nil, nil
			})
			found = s.Rows().Found
		})
		if found == 0 {
			t.Errorf("%s finds nothing", query)
		}
		return allocated / blocks, asked
	}
	for _, output := range []string{"limit:9", "limit:9 show:pages"} {
		few, _ := look(1, 1, output)
		many, asked := look(60, 30, output)
		if many > few+20 { // the rows that are kept have the tags
			t.Errorf("%s: a block takes %.1f allocations, and %.1f where there are many tags and terms", output, few, many)
		}
		if asked != 1 {
			t.Errorf("%s: who gave the page its tags is asked %d times", output, asked)
		}
	}
}

// TestAPageThatCannotBeReadIsNotThere: where nobody can tell who wrote some row of
// a page, the answer is that of the other pages alone, whatever was found and
// dropped before that came out.
func TestAPageThatCannotBeReadIsNotThere(t *testing.T) {
	damaged := errors.New("damaged")
	undone := 0
	rapid.Check(t, func(rt *rapid.T) {
		q, err := ParseQuery(rapid.SampledFrom([]string{"x limit:1", "x limit:3", "x sort:date limit:4", "x sort:date limit:1", "x sort:date limit:2", "x -y limit:50", "x show:pages limit:2", "#t limit:3"}).Draw(rt, "query"))
		if err != nil {
			rt.Fatal(err)
		}
		all, sound := q.Select(), q.Select()
		for i := range rapid.IntRange(1, 12).Draw(rt, "pages") {
			id, title := PageID{byte(i)}, rapid.StringMatching("[a-f]{1,2}").Draw(rt, "title")
			body := rapid.SampledFrom([]string{"", "tags:: t\n\n"}).Draw(rt, "tags") +
				strings.Join(rapid.SliceOfN(rapid.SampledFrom([]string{"x\n\n", "x y\n\n", "z\n\n", "x 2026-01-02\n\n", "x 2026-01-01\n\n"}), 0, 12).Draw(rt, "blocks"), "")
			fails, asked := rapid.IntRange(-5, 8).Draw(rt, "fails"), 0
			found := all.found
			err := all.Look(id, title, body, func([]Span) (Origin, error) {
				if asked++; asked == fails {
					return nil, damaged
				}
				return nil, nil
			})
			if (err != nil) != (fails > 0 && asked >= fails) || err != nil && (asked > fails || all.found != found) {
				rt.Fatalf("%v, asked %d of %d times, found %d and %d", err, asked, fails, found, all.found)
			}
			if err != nil {
				if undone++; len(all.kept) == 0 && all.last != nil {
					rt.Fatal("something is behind nothing")
				}
				all.Missed(id)
				continue
			}
			if err := sound.Look(id, title, body, func([]Span) (Origin, error) { return nil, nil }); err != nil {
				rt.Fatal(err)
			}
		}
		got, want := all.Rows(), sound.Rows()
		if got.Unread != len(got.Damaged) {
			rt.Fatalf("%d unread, %d named", got.Unread, len(got.Damaged))
		}
		got.Unread, got.Damaged = 0, nil
		if string(EncodeRows(got)) != string(EncodeRows(want)) {
			rt.Fatalf("\n%s\nand without the damaged pages\n%s", EncodeRows(got), EncodeRows(want))
		}
	})
	if undone == 0 {
		t.Error("no page was damaged")
	}
}

func TestDamagedPagesAreNamedUpToABound(t *testing.T) {
	q, err := ParseQuery("x")
	if err != nil {
		t.Fatal(err)
	}
	s := q.Select()
	for i := range 3 * MaxDamaged {
		s.Missed(PageID{byte(i)})
	}
	if rows := s.Rows(); rows.Unread != 3*MaxDamaged || len(rows.Damaged) != MaxDamaged || rows.Damaged[1] != (PageID{1}) {
		t.Errorf("%+v", rows)
	}
}

func TestRowsAsJSON(t *testing.T) {
	rows := &Rows{Found: 3, Unread: 2, Damaged: []PageID{{7}, {8}}, List: []Row{
		{Page: PageID{1}, Title: `a "b"`, Line: 2, Text: "x <y>\n\u202e", Tags: []string{"t"}, Task: Done, Date: "2026-11-30"},
		{Page: PageID{2}, Title: "c"},
	}}
	want := `{"found":3,"unread":2,"rows":[{"title":"a \"b\"","page":"01000000000000000000000000000000","line":2,"text":"x <y>\n` + "\u202e" + `","tags":["t"],"task":"done","date":"2026-11-30"},` +
		`{"title":"c","page":"02000000000000000000000000000000","line":0,"text":"","tags":[],"task":null,"date":null}]}`
	b := EncodeRows(rows)
	if string(b) != want {
		t.Errorf("\n%s, want\n%s", b, want)
	}
	back, err := DecodeRows(b)
	if err != nil || string(EncodeRows(back)) != want {
		t.Errorf("read back: %+v, %v", back, err)
	}
	for _, bad := range []string{"", "{}x", `{"rows":[{"page":"1"}],"found":1}`, `{"found":0,"rows":[{"page":"01000000000000000000000000000000"}]}`, `{"found":0,"more":1}`, `{"found":0,"unread":-1}`, want + "{}", strings.Repeat(" ", MaxRowsOut+1)} {
		if _, err := DecodeRows([]byte(bad)); err == nil {
			t.Errorf("%.60q is read as rows", bad)
		}
	}
}

// naive is what a query means, said in another way: all blocks of all pages, and
// every word looked for in each.
func naive(query string) (found []string) {
	for _, p := range shelf {
		for b, tags := range Outline(p.body) {
			all := true
			for _, word := range strings.Fields(query) {
				word, not := strings.CutPrefix(word, "-")
				var holds bool
				switch key, value, _ := strings.Cut(word, ":"); key {
				case "tag":
					for _, tag := range slices.Concat(b.Tags, tags.Tags) {
						holds = holds || strings.EqualFold(tag, value) || strings.HasPrefix(strings.ToLower(tag), strings.ToLower(value)+"/")
					}
				case "task":
					holds = string(b.Task) == value || value == "any" && b.Task != NoTask
				default:
					holds = strings.Contains(strings.ToLower(p.title), word) || strings.Contains(strings.ToLower(b.Text), word)
				}
				all = all && holds != not
			}
			if all {
				found = append(found, fmt.Sprintf("%s:%d", p.title, b.Line))
			}
		}
	}
	slices.Sort(found)
	return found
}

func TestQueriesMeanWhatTheySay(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		words := rapid.SliceOfN(rapid.SampledFrom([]string{"seeds", "the", "a", "e", "2026", "garden", "task:todo", "task:done", "task:any", "tag:garden", "tag:project"}), 1, 4).Draw(rt, "words")
		for i := range words {
			if rapid.Bool().Draw(rt, "not") {
				words[i] = "-" + words[i]
			}
		}
		query := strings.Join(words, " ")
		var got []string
		for _, r := range ask(rt, query).List {
			got = append(got, fmt.Sprintf("%s:%d", r.Title, r.Line))
		}
		slices.Sort(got)
		if want := naive(query); !slices.Equal(got, want) {
			rt.Fatalf("%s finds %q, want %q", query, got, want)
		}
	})
}

// FuzzQuery: whatever is asked of whatever page, the answer holds to its bounds,
// and its authors were asked for what it shows.
func FuzzQuery(f *testing.F) {
	f.Add("a -b #c task:todo", "T", "- [ ] a #c\n")
	f.Add(`show:pages "x y" before:2026-01-01 sort:date limit:2`, "2025-01-01", "x y\n")
	f.Fuzz(func(t *testing.T, query, title, body string) {
		q, err := ParseQuery(query)
		if err != nil {
			if e, ours := errors.AsType[*Error](err); !ours || e.Hint == "" {
				t.Fatalf("%q: %+v", query, err)
			}
			return
		}
		s := q.Select()
		asked := 0
		s.Look(PageID{1}, title, body, func(spans []Span) (Origin, error) {
			asked++
			for _, x := range spans {
				if x.From < 0 || x.To > len(body) || x.From > x.To {
					t.Fatalf("authors of %v in %d bytes", x, len(body))
				}
			}
			return nil, nil
		})
		rows := s.Rows()
		if len(rows.List) > q.limit || rows.Found < len(rows.List) || asked < len(rows.List) || len(EncodeRows(rows)) > MaxRowsOut {
			t.Fatalf("%q of %q: %d rows of %d, authors of %d", query, body, len(rows.List), rows.Found, asked)
		}
	})
}

func BenchmarkLook(b *testing.B) {
	body := strings.Repeat("- [ ] something that is to be done #project by 2026-11-30 or so\n", 32)
	for _, query := range []string{"nothing-of-it", "something sort:date", "task:done", "#project"} {
		b.Run(query, func(b *testing.B) {
			q, err := ParseQuery(query)
			if err != nil {
				b.Fatal(err)
			}
			b.SetBytes(int64(len(body)))
			s := q.Select()
			for b.Loop() {
				s.Look(PageID{1}, "A page", body, func([]Span) (Origin, error) { return nil, nil })
			}
		})
	}
}
