package trust

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/pelletier/go-toml/v2"
	"github.com/pelletier/go-toml/v2/unstable"

	"noted/notebook"
)

// rule is what a policy says of a language, from the least to the most.
type rule uint8

const (
	ruleRefuse rule = iota // not even approved
	ruleAsk                // approved only
	ruleStrict
	ruleGranted
)

var ruleNames = []string{"refuse", "ask", "strict", "granted"}

func (r rule) String() string { return ruleNames[r] }

// Bounds of what a policy may set as limits.
var (
	leastLimits = notebook.Limits{Time: 10 * time.Millisecond, Memory: 16 << 20, Output: 1 << 10, Source: 1 << 10}
	mostLimits  = notebook.Limits{
		Time:   10 * time.Minute, // nobody waits longer at a page
		Memory: 1 << 30,          // one run does not take the machine
		Output: 80 << 10,         // fits a result entry with its fields
		Source: 2 << 20,          // a page of the largest size, and the fence
	}
)

const maxPolicy = 64 << 10 // bytes of a policy file

// Policy is this device's own rules: what a fence of a standing and a language
// may do. It is never changed once parsed.
type Policy struct {
	digest       notebook.Hash
	local        map[string]rule
	foreign      map[string]rule
	devices      map[notebook.DeviceID]map[string]rule
	capabilities []notebook.Capability
	limits       notebook.Limits
	auto         map[string]AutoRule
	lines        map[string]int // of the keys that the file sets
}

// DefaultPolicy is the policy where there is no file: what was typed here is
// granted page, clock, args and seed; Lua of others runs strict when a person
// asks for it, and their other languages ask.
func DefaultPolicy() *Policy {
	local, foreign := make(map[string]rule), make(map[string]rule)
	for _, language := range Languages {
		local[language], foreign[language] = ruleGranted, ruleAsk
	}
	foreign["lua"] = ruleStrict
	return &Policy{
		digest:       policyDigest(nil),
		local:        local,
		foreign:      foreign,
		devices:      make(map[notebook.DeviceID]map[string]rule),
		capabilities: []notebook.Capability{notebook.CapArgs, notebook.CapClock, notebook.CapPage, notebook.CapSeed},
		limits:       notebook.DefaultLimits,
		auto:         make(map[string]AutoRule),
		lines:        make(map[string]int),
	}
}

func policyDigest(text []byte) notebook.Hash { return notebook.Digest("noted/policy/v1", text) }

// ParsePolicy reads the text of a policy file:
//
//	[local]                  # what this person typed here
//	lua = "granted"          # granted, strict, ask or refuse; so each of [Languages]
//	capabilities = ["page", "clock", "args", "seed"]   # what granted means: these, query, dir:… and net:…
//	[foreign]                # everything else
//	lua = "strict"           # strict, ask or refuse
//	[device.FINGERPRINT]     # text of one other device, instead of [foreign]
//	lua = "refuse"
//	[limits]
//	time = "5s"              # to the end of the run
//	memory = "128 MiB"
//	output = "64 KiB"
//	source = "64 KiB"        # of the fence and what it is given
//	[auto]                   # what runs by itself, of what this person typed here
//	"=PAGEID#fXXXXXXXXX" = "daily"   # open, daily or every N minutes
//
// What the file does not set keeps its default. An unknown key or value is an
// error that names its line: a rule that is not understood is not skipped.
func ParsePolicy(text []byte) (*Policy, error) {
	if len(text) > maxPolicy {
		return nil, policyError(0, "a policy of %d bytes is longer than the %d that are allowed", len(text), maxPolicy)
	}
	// The whole file first, for what only the decoder checks: keys and tables given twice.
	var all map[string]any
	if err := toml.Unmarshal(text, &all); err != nil {
		var at *toml.DecodeError
		if errors.As(err, &at) {
			line, _ := at.Position()
			return nil, policyError(line, "%s", strings.TrimPrefix(at.Error(), "toml: "))
		}
		return nil, policyError(0, "%s", strings.TrimPrefix(err.Error(), "toml: "))
	}
	p := DefaultPolicy()
	p.digest = policyDigest(text)
	var parser unstable.Parser
	parser.Reset(text)
	var table []string
	for parser.NextExpression() {
		node := parser.Expression()
		switch node.Kind {
		case unstable.Table:
			table = keyOf(node)
			if line := lineOf(&parser, node); !knownTable(table) {
				return nil, policyError(line, "unknown table [%s]", notebook.EscapeLine(strings.Join(table, "."))).
					With("the tables are [local], [foreign], [device.FINGERPRINT], [limits] and [auto]")
			}
		case unstable.KeyValue:
			line := lineOf(&parser, node)
			if err := p.set(slices.Concat(table, keyOf(node)), node.Value(), line); err != nil {
				return nil, err
			}
		case unstable.ArrayTable:
			return nil, policyError(lineOf(&parser, node), "a policy has no lists of tables")
		}
	}
	if err := parser.Error(); err != nil {
		return nil, policyError(0, "%s", err.Error())
	}
	return p, nil
}

func policyError(line int, format string, args ...any) *notebook.Error {
	what := fmt.Sprintf(format, args...)
	if line > 0 {
		what = fmt.Sprintf("line %d: %s", line, what)
	}
	return notebook.Errorf(notebook.CodeInvalid, "policy.toml: %s", what).With("correct it; until then the accepted policy stays in force")
}

func keyOf(n *unstable.Node) (key []string) {
	for it := n.Key(); it.Next(); {
		key = append(key, string(it.Node().Data))
	}
	return key
}

func lineOf(p *unstable.Parser, n *unstable.Node) int {
	it := n.Key()
	it.Next()
	return p.Shape(it.Node().Raw).Start.Line
}

func knownTable(key []string) bool {
	switch {
	case len(key) == 1:
		return slices.Contains([]string{"local", "foreign", "limits", "device", "auto"}, key[0])
	case len(key) == 2 && key[0] == "device":
		_, err := notebook.ParseDeviceID(key[1])
		return err == nil
	}
	return false
}

// set takes one key of the file.
func (p *Policy) set(key []string, value *unstable.Node, line int) error {
	name := strings.Join(key, ".")
	shown := notebook.EscapeLine(name)
	known := func(rules map[string]rule, language string, most rule) error {
		if !slices.Contains(Languages, language) {
			return policyError(line, "unknown key %s: noted runs %s", shown, strings.Join(Languages, ", "))
		}
		r := slices.Index(ruleNames[:most+1], text(value))
		if value.Kind != unstable.String || r < 0 {
			return policyError(line, "%s has an unknown value: it is %s", shown, oneOf(ruleNames[:most+1]))
		}
		rules[language] = rule(r)
		return nil
	}
	var err error
	switch {
	case len(key) == 2 && key[0] == "local" && key[1] == "capabilities":
		p.capabilities, err = capabilities(value, shown, line)
	case len(key) == 2 && key[0] == "local":
		err = known(p.local, key[1], ruleGranted)
	case len(key) == 2 && key[0] == "foreign":
		err = known(p.foreign, key[1], ruleStrict)
	case len(key) == 3 && key[0] == "device":
		d, wrong := notebook.ParseDeviceID(key[1])
		if wrong != nil {
			return policyError(line, "unknown key %s: %v", shown, wrong)
		}
		if p.devices[d] == nil {
			p.devices[d] = make(map[string]rule)
		}
		name = "device." + d.String() + "." + key[2]
		err = known(p.devices[d], key[2], ruleStrict)
	case len(key) == 2 && key[0] == "auto":
		err = p.setAuto(key[1], value, shown, line)
	case len(key) == 2 && key[0] == "limits":
		err = p.setLimit(key[1], value, line)
	default:
		err = policyError(line, "unknown key %s", shown)
	}
	if before := p.lines[name]; err == nil && before > 0 {
		return policyError(line, "%s is set on line %d already", shown, before)
	}
	p.lines[name] = line
	return err
}

// text is the value of a string, and nothing else's.
func text(n *unstable.Node) string {
	if n.Kind != unstable.String {
		return ""
	}
	return string(n.Data)
}

func oneOf(words []string) string {
	if len(words) == 1 {
		return words[0]
	}
	return strings.Join(words[:len(words)-1], ", ") + " or " + words[len(words)-1]
}

// capabilities reads what granted means: anything that a fence can want but
// programs.
func capabilities(value *unstable.Node, shown string, line int) ([]notebook.Capability, error) {
	var words []string
	if value.Kind != unstable.Array || !each(value, func(s string) bool {
		repeated := slices.Contains(words, s)
		words = append(words, s)
		return !repeated
	}) {
		return nil, policyError(line, "%s has an unknown value: it is a list of capabilities, each once", shown)
	}
	list, err := notebook.ParseCapabilities(words)
	var e *notebook.Error
	if errors.As(err, &e) {
		return nil, policyError(line, "%s has an unknown value: %s", shown, notebook.EscapeLine(e.Message)).With("%s", e.Hint)
	}
	for _, c := range list {
		if c.Kind() == notebook.CapProgram {
			return nil, policyError(line, "%s names %s: no policy grants a program, which can do more than its name says", shown, notebook.EscapeLine(string(c))).
				With("take it out, and approve the fences that start it: noted fence approve")
		}
	}
	return list, nil
}

// grants reports whether granted means c: itself, or the same directory to
// write to as well.
func (p *Policy) grants(c notebook.Capability) bool {
	return slices.Contains(p.capabilities, c) || c.Kind() == notebook.CapDir && slices.Contains(p.capabilities, notebook.Dir(c.Path(), true))
}

func names(list []notebook.Capability) []string {
	words := make([]string, len(list))
	for i, c := range list {
		words[i] = string(c)
	}
	return words
}

func (p *Policy) setLimit(key string, value *unstable.Node, line int) error {
	given := text(value)
	var outside bool
	var err error
	switch key {
	case "time":
		p.limits.Time, err = time.ParseDuration(given)
		outside = p.limits.Time < leastLimits.Time || p.limits.Time > mostLimits.Time
	case "memory":
		p.limits.Memory, err = parseSize(given)
		outside = p.limits.Memory < leastLimits.Memory || p.limits.Memory > mostLimits.Memory
	case "output":
		p.limits.Output, outside, err = boundedSize(given, leastLimits.Output, mostLimits.Output)
	case "source":
		p.limits.Source, outside, err = boundedSize(given, leastLimits.Source, mostLimits.Source)
	default:
		return policyError(line, "unknown key limits.%s: the limits are time, memory, output and source", notebook.EscapeLine(key))
	}
	if err != nil {
		return policyError(line, `limits.%s has an unknown value: a time is like "5s", a size like "64 KiB"`, key)
	}
	if outside {
		return policyError(line, "limits.%s is outside %s", key, limitRange(key))
	}
	return nil
}

func boundedSize(s string, least, most int) (n int, outside bool, err error) {
	size, err := parseSize(s)
	if err != nil || size < int64(least) || size > int64(most) {
		return 0, true, err
	}
	return int(size), false, nil
}

func limitRange(key string) string {
	least, most := limitWords(leastLimits), limitWords(mostLimits)
	return least[key] + " to " + most[key]
}

func limitWords(l notebook.Limits) map[string]string {
	return map[string]string{
		"time": l.Time.String(), "memory": formatSize(l.Memory),
		"output": formatSize(int64(l.Output)), "source": formatSize(int64(l.Source)),
	}
}

var sizes = []struct {
	suffix string
	bytes  int64
}{{"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}, {"B", 1}}

func parseSize(s string) (int64, error) {
	for _, unit := range sizes {
		if digits, ok := strings.CutSuffix(s, unit.suffix); ok {
			n, err := strconv.ParseUint(strings.TrimRight(digits, " "), 10, 31)
			return int64(n) * unit.bytes, err
		}
	}
	return 0, errors.New("no unit")
}

func formatSize(n int64) string {
	for _, unit := range sizes {
		if n%unit.bytes == 0 && n >= unit.bytes {
			return strconv.FormatInt(n/unit.bytes, 10) + " " + unit.suffix
		}
	}
	return "0 B"
}

// Digest names the bytes of the file that the policy was parsed from.
func (p *Policy) Digest() notebook.Hash { return p.digest }

// Limits bound every run.
func (p *Policy) Limits() notebook.Limits { return p.limits }

// Lines is the policy rule by rule; the source is "default" or the file's line.
func (p *Policy) Lines() []notebook.PolicyLine {
	var lines []notebook.PolicyLine
	put := func(key, value string) {
		lines = append(lines, notebook.PolicyLine{Rule: key, Value: value, Source: p.source(key)})
	}
	rules := func(table string, rules map[string]rule) {
		for _, language := range slices.Sorted(maps.Keys(rules)) {
			put(table+"."+language, rules[language].String())
		}
	}
	rules("local", p.local)
	put("local.capabilities", strings.Join(names(p.capabilities), " "))
	rules("foreign", p.foreign)
	devices := slices.SortedFunc(maps.Keys(p.devices), func(a, b notebook.DeviceID) int { return slices.Compare(a[:], b[:]) })
	for _, d := range devices {
		rules("device."+d.String(), p.devices[d])
	}
	limits := limitWords(p.limits)
	for _, key := range []string{"time", "memory", "output", "source"} {
		put("limits."+key, limits[key])
	}
	for _, rule := range p.Auto() {
		put("auto."+rule.key(), rule.Trigger)
	}
	return lines
}

// of is the rule for a language and a standing, and the line that says so. Of
// a foreign fence it is the least of what the policy says of each author, and
// never more than of this person's own text: no author more makes it wider.
func (p *Policy) of(s Standing, language string) (rule, string) {
	own := p.local[language]
	if s.local {
		return own, p.line("local."+language, own)
	}
	least, line := ruleStrict, ""
	lower := func(table string, r rule) {
		if r < least || line == "" {
			least, line = r, p.line(table+"."+language, r)
		}
	}
	for _, f := range s.parties() {
		if r, set := p.devices[f.device][language]; set && f.kind == "device" {
			lower("device."+f.device.String(), r)
		} else {
			lower("foreign", p.foreign[language])
		}
	}
	if s.mixed { // own text beside others stands no higher than by itself, where it is structure
		lower("foreign", p.foreign[language])
	}
	if own < least {
		least, line = own, p.line("local."+language, own)
	}
	return least, line
}

// line is a rule with where it stands.
func (p *Policy) line(key string, r rule) string {
	return fmt.Sprintf("%s = %q (%s)", key, r, p.source(key))
}

func (p *Policy) source(key string) string {
	if n := p.lines[key]; n > 0 {
		return fmt.Sprintf("policy.toml:%d", n)
	}
	return "default"
}
