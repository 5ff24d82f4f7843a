package trust

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/pelletier/go-toml/v2"
	"github.com/pelletier/go-toml/v2/unstable"

	"noted/notebook"
)

// Bounds of a file of fixtures.
const (
	maxFixtures     = 1000
	maxFixtureBytes = 256 << 10
)

// fixture is a request that somebody could make, and what is to be decided on it.
type fixture struct {
	line         int
	name         string
	language     string
	standing     []party // nil: local
	page, query  []party // who wrote the page, or what a query finds, beside this person
	by           Requester
	wants        []notebook.Capability
	args         bool
	decision     string
	capabilities []notebook.Capability // nil: any
	set          map[string]bool
}

// TryPolicy decides on the fixtures of a file as the daemon would under p, and
// tells what came of each:
//
//	[[fixture]]
//	name = "the phone asks"               # for the report; may be left out
//	standing = "device:FINGERPRINT"       # local, or foreign: device:FINGERPRINT, agent:NAME, import:SOURCE, structure; several in a list
//	language = "lua"
//	decision = "ask"                      # expected: granted, strict, ask or refuse
//	by = "agent:scribe"                   # who asks to run it: owner (where left out), browser or agent:NAME
//	wants = ["page", "clock"]             # what the fence asks for; nothing where left out
//	args = true                           # it takes an argument and is run with one
//	page = ["device:FINGERPRINT"]         # who else wrote in its page
//	query = ["import:vault"]              # who else wrote what its query finds
//	capabilities = ["clock"]              # expected: exactly these are handed in
//
// There is no approval and no device in quarantine. An unknown key or value is
// an error that names its line.
func TryPolicy(p *Policy, text []byte) ([]notebook.PolicyCase, error) {
	fixtures, err := readFixtures(text)
	if err != nil {
		return nil, err
	}
	var cases []notebook.PolicyCase
	for _, f := range fixtures {
		grant, refusal := Decide(f.request(p))
		c := notebook.PolicyCase{Name: f.name, Line: f.line, Expected: f.decision}
		c.Decided, c.Reason = Decision(grant, refusal)
		if c.Rule = grant.Rule(); refusal != nil {
			c.Rule = refusal.Rule
		}
		c.Passed = c.Decided == f.decision
		if f.capabilities != nil {
			c.Expected += with(f.capabilities)
			c.Decided += with(grant.Capabilities())
			c.Passed = c.Passed && slices.Equal(grant.Capabilities(), f.capabilities)
		}
		cases = append(cases, c)
	}
	return cases, nil
}

func with(c []notebook.Capability) string {
	if len(c) == 0 {
		return " with nothing"
	}
	return " with " + strings.Join(names(c), " ")
}

// Decision is what was decided as one word, a rung, "ask" or "refuse", and why.
func Decision(g Grant, no *Refusal) (word, why string) {
	switch {
	case no == nil:
		return g.Rung().String(), g.Rule()
	case no.Ask:
		return "ask", no.Reason
	}
	return "refuse", no.Reason
}

// request is the fence of a fixture on a device and a page that there is nowhere.
func (f *fixture) request(p *Policy) Request {
	self := notebook.DeviceID(notebook.Digest("noted/policy-test/v1"))
	typed := notebook.Author{Device: self, Class: notebook.Typed}
	authors := func(by []party) (o notebook.Origin) {
		for _, a := range by {
			switch a.kind {
			case "device":
				o = append(o, notebook.Author{Device: a.device, Class: notebook.Typed})
			case "agent":
				o = append(o, notebook.Author{Device: self, Class: notebook.Agent, Label: a.name})
			case "import":
				o = append(o, notebook.Author{Device: self, Class: notebook.Import, Label: a.name})
			case "local":
				o = append(o, typed)
			}
		}
		return notebook.NewOrigin(o...)
	}
	info := f.language
	var words []string
	if len(f.wants) > 0 {
		words = append(words, fmt.Sprintf(`wants="%s" query="x"`, strings.Join(names(f.wants), " ")))
	}
	if f.args {
		words = append(words, `args="name"`)
	}
	if words != nil {
		info += " {" + strings.Join(words, " ") + "}"
	}
	r := Request{
		Notebook: notebook.NotebookID{1}, Self: self, Page: notebook.PageID{1}, Fence: notebook.FenceID{1},
		Closure: notebook.Closure{{Delimiter: "```", Language: f.language, Info: info, Code: "return 1\n"}},
		Origin:  authors(f.standing), Own: true, Closed: !slices.Contains(f.standing, structure),
		By: f.by, Policy: p, Now: time.Unix(0, 0),
		Inputs: []Input{
			{Capability: notebook.CapPage, Authors: notebook.NewOrigin(append(authors(f.page), typed)...)},
			{Capability: notebook.CapClock},
			{Capability: notebook.CapSeed},
			{Capability: notebook.CapQuery, Authors: notebook.NewOrigin(append(authors(f.query), typed)...)},
		},
	}
	for _, c := range f.wants {
		if _, known := r.input(c); !known && c != notebook.CapArgs {
			r.Inputs = append(r.Inputs, Input{Capability: c})
		}
	}
	if f.args {
		r.Args = map[string]string{"name": "value"}
	}
	r.Shown = r.Closure.Hash()
	return r
}

func fixtureError(line int, format string, args ...any) *notebook.Error {
	what := fmt.Sprintf(format, args...)
	if line > 0 {
		what = fmt.Sprintf("line %d: %s", line, what)
	}
	return notebook.Errorf(notebook.CodeInvalid, "fixtures: %s", what).With("noted policy test --help tells what a fixture says")
}

func readFixtures(text []byte) ([]*fixture, error) {
	if len(text) > maxFixtureBytes {
		return nil, fixtureError(0, "%d bytes are more than the %d that are allowed", len(text), maxFixtureBytes)
	}
	var all map[string]any // for what only the decoder checks
	if err := toml.Unmarshal(text, &all); err != nil {
		var at *toml.DecodeError
		line := 0
		if errors.As(err, &at) {
			line, _ = at.Position()
		}
		return nil, fixtureError(line, "%s", strings.TrimPrefix(err.Error(), "toml: "))
	}
	var parser unstable.Parser
	parser.Reset(text)
	var fixtures []*fixture
	for parser.NextExpression() {
		node := parser.Expression()
		line := lineOf(&parser, node)
		key := notebook.EscapeLine(strings.Join(keyOf(node), "."))
		switch {
		case node.Kind == unstable.ArrayTable && key == "fixture":
			if len(fixtures) == maxFixtures {
				return nil, fixtureError(line, "more than %d fixtures", maxFixtures)
			}
			fixtures = append(fixtures, &fixture{line: line, name: fmt.Sprintf("line %d", line), by: Requester{Role: roleOwner}, set: map[string]bool{}})
		case node.Kind != unstable.KeyValue:
			return nil, fixtureError(line, "unknown table %s: a fixture begins with [[fixture]]", key)
		case len(fixtures) == 0:
			return nil, fixtureError(line, "%s stands in no fixture: one begins with [[fixture]]", key)
		default:
			f := fixtures[len(fixtures)-1]
			if wrong := f.read(keyOf(node), node.Value()); wrong != "" {
				return nil, fixtureError(line, "%s: %s", key, wrong)
			}
			f.set[key] = true
		}
	}
	if err := parser.Error(); err != nil {
		return nil, fixtureError(0, "%s", err.Error())
	}
	if len(fixtures) == 0 {
		return nil, fixtureError(0, "there is none: one begins with [[fixture]]")
	}
	for _, f := range fixtures {
		for _, key := range []string{"standing", "language", "decision"} {
			if !f.set[key] {
				return nil, fixtureError(f.line, "the fixture does not say its %s", key)
			}
		}
		if f.capabilities != nil && f.decision != "granted" {
			return nil, fixtureError(f.line, "the fixture expects capabilities, and they are handed in where it is granted only")
		}
	}
	return fixtures, nil
}

var languageWord = regexp.MustCompile(`^[a-z0-9+#-]{1,32}$`)

// read takes one key of a fixture, and says what is wrong with it.
func (f *fixture) read(key []string, value *unstable.Node) (wrong string) {
	switch given := text(value); strings.Join(key, ".") {
	case "name":
		f.name, wrong = given, unless(value.Kind == unstable.String && notebook.CheckLabel(given) == nil, "it is a line of text")
	case "language":
		f.language, wrong = given, unless(languageWord.MatchString(given), "it is a word such as lua")
	case "decision":
		f.decision, wrong = given, unless(slices.Contains(ruleNames, given), "it is "+oneOf(ruleNames)+"; no policy decides more")
	case "args":
		f.args, wrong = string(value.Data) == "true", unless(value.Kind == unstable.Bool, "it is true or false")
	case "by":
		f.by, wrong = requester(given)
	case "standing":
		f.standing, wrong = readParties(value)
	case "page":
		f.page, wrong = readParties(value)
	case "query":
		f.query, wrong = readParties(value)
	case "wants":
		f.wants, wrong = readCapabilities(value)
	case "capabilities":
		f.capabilities, wrong = readCapabilities(value)
	default:
		wrong = "unknown key: the keys are name, standing, language, decision, by, wants, args, page, query and capabilities"
	}
	return wrong
}

func unless(right bool, wrong string) string {
	if right {
		return ""
	}
	return wrong
}

func requester(s string) (Requester, string) {
	if s == roleOwner || s == roleBrowser {
		return Requester{Role: s}, ""
	}
	name, agent := strings.CutPrefix(s, "agent:")
	return Requester{Role: roleAgent, Name: name}, unless(agent && notebook.CheckLabel(name) == nil, "it is owner, browser or agent:NAME")
}

// each calls f for every text of a list, or for a single one.
func each(value *unstable.Node, f func(string) bool) bool {
	if value.Kind != unstable.Array {
		return value.Kind == unstable.String && f(text(value))
	}
	for it := value.Children(); it.Next(); {
		if n := it.Node(); n.Kind != unstable.Comment && (n.Kind != unstable.String || !f(text(n))) {
			return false
		}
	}
	return true
}

func readParties(value *unstable.Node) (list []party, wrong string) {
	ok := each(value, func(s string) bool {
		p := party{}
		p.kind, p.name, _ = strings.Cut(s, ":")
		switch p.kind {
		case "local", "structure":
			list = append(list, p)
			return s == p.kind
		case "device":
			id, err := notebook.ParseDeviceID(p.name)
			list = append(list, party{kind: p.kind, device: id})
			return err == nil && !id.IsZero()
		case "agent", "import":
			list = append(list, p)
			return notebook.CheckLabel(p.name) == nil
		}
		return false
	})
	return list, unless(ok && len(list) > 0, "it is local, device:FINGERPRINT (all of it), agent:NAME, import:SOURCE or structure, or a list of them")
}

func readCapabilities(value *unstable.Node) ([]notebook.Capability, string) {
	var words []string
	if value.Kind != unstable.Array || !each(value, func(s string) bool {
		repeated := slices.Contains(words, s)
		words = append(words, s)
		return !repeated
	}) {
		return nil, "it is a list of capabilities, each once"
	}
	list, err := notebook.ParseCapabilities(words)
	if err != nil {
		return nil, "it is a list of capabilities, and " + notebook.EscapeLine(err.Error())
	}
	return append([]notebook.Capability{}, list...), ""
}
