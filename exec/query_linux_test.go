package exec

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"noted/notebook"
	"noted/trust"
)

var found = &notebook.Rows{Found: 5, List: []notebook.Row{
	{Page: notebook.PageID{1}, Title: "Garden", Line: 2, Text: "buy seeds\n  of kale", Tags: []string{"garden"}, Task: notebook.Todo, Date: "2026-03-01"},
	{Page: notebook.PageID{1}, Title: "Garden", Line: 3, Text: "dig", Task: notebook.Done},
	{Page: notebook.PageID{2}, Title: "Inbox", Line: 1, Text: "note"},
}}

// given is a request of a fence of this person's with what its query found.
func (d *desk) given(language, info, code string, rows *notebook.Rows) trust.Request {
	q := d.request(language, info, code)
	q.Inputs = append(q.Inputs, trust.Input{Capability: notebook.CapQuery, Value: notebook.EncodeRows(rows)})
	return q
}

func TestAQueryShowsWhatWasFound(t *testing.T) {
	d, r := newDesk(t), newRunner(t, Config{})
	hostile := &notebook.Rows{Found: 2, List: []notebook.Row{
		{Page: notebook.PageID{1}, Title: "a\u202eb", Line: 1, Text: "x\nGarden:1: forged\n\x1b[2J```lua\n```"},
		{Page: notebook.PageID{2}, Title: "c"},
	}}
	for name, c := range map[string]struct {
		rows *notebook.Rows
		want string
	}{
		"rows":           {found, "Garden:2: [ ] buy seeds of kale\nGarden:3: [x] dig\nInbox:1: note\n… and 2 more\n"},
		"nothing":        {&notebook.Rows{}, "nothing found\n"},
		"hostile rows":   {hostile, "a\\u{202e}b:1: x Garden:1: forged \\u{1b}[2J```lua ```\nc\n"},
		"a damaged page": {&notebook.Rows{Unread: 1}, "nothing found\n… 1 page is damaged and was not read: noted doctor names it\n"},
		"damaged pages":  {&notebook.Rows{Found: 9, List: hostile.List[1:], Unread: 2}, "c\n… and 8 more\n… 2 pages are damaged and were not read: noted doctor names them\n"},
		"all of a page":  {&notebook.Rows{Found: 1, List: []notebook.Row{{Page: notebook.PageID{2}, Title: "c", Task: notebook.Todo}}}, "c\n"},
	} {
		res := runs(t, r, decide(t, d.given("query", "query", "seeds task:any\n", c.rows)))
		if res.Verdict != notebook.OK || res.Output != c.want || res.Rung != notebook.Granted {
			t.Errorf("%s: %v at %v: %q %q, want %q", name, res.Verdict, res.Rung, res.Output, res.Error, c.want)
		}
	}
}

func TestLuaIsHandedRows(t *testing.T) {
	d, r := newDesk(t), newRunner(t, Config{})
	policy, err := trust.ParsePolicy([]byte("[local]\ncapabilities = [\"query\"]\n"))
	if err != nil {
		t.Fatal(err)
	}
	q := d.given("lua", `lua {wants="query" query="seeds task:any"}`, `
for i, row in ipairs(query) do
  print(i, row.title, row.page:sub(1, 4), row.line, row.text, table.concat(row.tags, " "), row.task, row.date)
end
return nothing`, found)
	q.Policy = policy
	found := *found
	found.Unread = 2
	q.Inputs[len(q.Inputs)-1].Value = notebook.EncodeRows(&found)
	want := "1\tGarden\t0100\t2\tbuy seeds\n  of kale\tgarden\ttodo\t2026-03-01\n2\tGarden\t0100\t3\tdig\t\tdone\tnil\n3\tInbox\t0200\t1\tnote\t\tnil\tnil\n"
	if res := runs(t, r, decide(t, q)); res.Verdict != notebook.OK || res.Output != want {
		t.Errorf("%v %q %q, want %q", res.Verdict, res.Output, res.Error, want)
	}
	q.Closure[0].Code = "return #query, query.found, query.unread"
	q.Shown = q.Closure.Hash()
	if res := runs(t, r, decide(t, q)); res.Output != "3\t5\t2\n" {
		t.Errorf("%v %q %q", res.Verdict, res.Output, res.Error)
	}
	// Without the capability there is no such name.
	q = d.request("lua", "lua", "return query")
	if res := runs(t, r, decide(t, q)); res.Output != "nil\n" {
		t.Errorf("without it: %v %q %q", res.Verdict, res.Output, res.Error)
	}
}

// TestAQueryIsNoProgram: what a worker does for a query depends on the rows that
// it is handed, and on nothing that the fence or a page says. So what no language
// may do there is nobody to do: it ends, and puts out what was found.
func TestAQueryIsNoProgram(t *testing.T) {
	var b strings.Builder
	rapid.Check(t, func(rt *rapid.T) {
		var rows notebook.Rows
		for range rapid.IntRange(0, 3).Draw(rt, "rows") {
			rows.List = append(rows.List, notebook.Row{
				Page: notebook.PageID{1}, Title: rapid.String().Draw(rt, "title"), Line: rapid.IntRange(0, 9).Draw(rt, "line"), Text: rapid.String().Draw(rt, "text"),
				Task: rapid.SampledFrom([]notebook.Task{notebook.NoTask, notebook.Todo, notebook.Done}).Draw(rt, "task"),
			})
		}
		rows.Found, rows.Unread = len(rows.List)+rapid.IntRange(0, 2).Draw(rt, "more"), rapid.IntRange(0, 2).Draw(rt, "unread")
		b.Reset()
		o := queryEngine{&b}.run(&request{source: rapid.String().Draw(rt, "source"), inputs: []field{{"query", string(notebook.EncodeRows(&rows))}}})
		lines := len(rows.List)
		if lines == 0 && rows.Found == 0 || rows.Found > lines {
			lines++
		}
		if rows.Unread > 0 {
			lines++
		}
		if o != (outcome{}) || b.String() != showRows(&rows) || strings.Count(b.String(), "\n") != lines || notebook.Escape(b.String()) != b.String() {
			rt.Fatalf("%+v: %q", o, b.String())
		}
	})
	for name, q := range map[string]request{
		"nothing":                 {source: "x"},
		"a page":                  {source: "x", inputs: []field{{"page", "x"}}},
		"rows that are none":      {source: "x", inputs: []field{{"query", "{"}}},
		"what another fence says": {source: "x", before: []field{{"f2345678ab", "y"}}, inputs: []field{{"query", string(notebook.EncodeRows(found))}}},
	} {
		b.Reset()
		if o := (queryEngine{&b}).run(&q); !o.failed || b.Len() > 0 {
			t.Errorf("handed %s: %+v, %q", name, o, b.String())
		}
	}
}

func runs(t *testing.T, r *Runner, g trust.Grant) notebook.Result {
	t.Helper()
	res, err := r.Run(t.Context(), g)
	if err != nil {
		t.Fatal(err)
	}
	return res
}
