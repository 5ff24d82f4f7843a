package trust

import (
	"encoding/binary"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/pelletier/go-toml/v2/unstable"

	"noted/notebook"
)

// Bounds of what runs by itself.
const (
	maxAuto = 32 // rules: more than a person remembers to have written

	// MinPeriod is the least time between two runs on a schedule. Each run adds
	// two records of some 400 bytes to a ledger that is never shortened: at this
	// period some 30 MB a year for each fence.
	MinPeriod = 15 * time.Minute
	maxPeriod = 24 * time.Hour

	// Quiet is how long the bytes of a fence have to stay as they are before it
	// runs by itself, so that nobody's half a sentence does.
	Quiet = 30 * time.Second
)

// AutoRule lets one fence run by itself. Pages and fences are named by their
// ids: a title may be another page's tomorrow.
type AutoRule struct {
	Page    notebook.PageID
	Fence   string        // as [notebook.FenceID.Short] has it
	Trigger string        // "open", "daily", "every N minutes"
	Period  time.Duration // of a schedule; 0 for open
}

// TriggerOpen runs a fence when a person first opens its page after noted started.
const TriggerOpen = "open"

func (a AutoRule) key() string { return "=" + a.Page.String() + "#" + a.Fence }

// Slot numbers the periods of a schedule, from 1970 on. In each it runs once.
func (a AutoRule) Slot(now time.Time) int64 {
	if a.Period <= 0 {
		return 0
	}
	return now.Unix() / int64(a.Period/time.Second)
}

// Next is when the period after the one of now begins.
func (a AutoRule) Next(now time.Time) time.Time {
	return time.Unix((a.Slot(now)+1)*int64(a.Period/time.Second), 0)
}

// Auto are the rules by which fences run by themselves, sorted; none by default.
func (p *Policy) Auto() []AutoRule {
	var rules []AutoRule
	for _, key := range slices.Sorted(maps.Keys(p.auto)) {
		rules = append(rules, p.auto[key])
	}
	return rules
}

func (p *Policy) setAuto(key string, value *unstable.Node, shown string, line int) error {
	rule := AutoRule{Trigger: text(value)}
	page, fence, found := strings.Cut(strings.TrimPrefix(key, "="), "#")
	id, err := notebook.ParsePageID(page)
	if !strings.HasPrefix(key, "=") || !found || err != nil || !isFenceRef(fence) {
		return policyError(line, `unknown key %s: a fence is named "=PAGEID#fXXXXXXXXX", with the whole id of its page`, shown)
	}
	rule.Page, rule.Fence = id, fence
	wrong := policyError(line, `%s has an unknown value: it is "open", "daily" or "every N minutes", with %d to %d minutes`,
		shown, MinPeriod/time.Minute, maxPeriod/time.Minute)
	switch minutes, every := strings.CutPrefix(rule.Trigger, "every "); {
	case rule.Trigger == TriggerOpen:
	case rule.Trigger == "daily":
		rule.Period = maxPeriod
	case every:
		digits, ok := strings.CutSuffix(minutes, " minutes")
		n, err := strconv.ParseUint(digits, 10, 16)
		rule.Period = time.Duration(n) * time.Minute
		if !ok || err != nil || rule.Trigger != fmt.Sprintf("every %d minutes", n) || rule.Period < MinPeriod || rule.Period > maxPeriod {
			return wrong
		}
	default:
		return wrong
	}
	if p.auto[rule.key()] = rule; len(p.auto) > maxAuto {
		return policyError(line, "more than %d fences would run by themselves", maxAuto)
	}
	return nil
}

func isFenceRef(s string) bool {
	return len(s) == 10 && s[0] == 'f' && strings.Trim(s[1:], "abcdefghijklmnopqrstuvwxyz234567") == ""
}

// roleAuto is the requester of what runs by itself; its name is the trigger. No
// token has this role: the daemon alone makes such requests.
const roleAuto = "auto"

// Automatic is the requester of a run that a rule's trigger causes.
func (a AutoRule) Automatic() Requester { return Requester{Role: roleAuto, Name: a.Trigger} }

func (r Requester) auto() bool { return r.Role == roleAuto }

// automatic refuses what may not run by itself: whatever no rule of the policy
// names for this trigger, whatever this person did not type here, and whatever
// takes more than policy grants.
func (r *Request) automatic(o outcome) *Refusal {
	rule, named := r.policy().auto[AutoRule{Page: r.Page, Fence: r.Fence.Short()}.key()]
	no := func(reason string) *Refusal {
		return &Refusal{Code: notebook.CodeRefused, Reason: reason, Hint: "run it yourself: noted fence run " + r.reference(), Rule: o.line}
	}
	switch {
	case !named || rule.Trigger != r.By.Name:
		return no("no rule of the policy lets the fence run by itself at this trigger")
	case !o.local:
		return no(fmt.Sprintf("the fence stands %v, and only what was typed here runs by itself", r.Standing()))
	case len(r.Args) > 0:
		return no("nothing runs by itself with arguments")
	case o.refusal != nil:
		return no("it does not run by itself: " + o.refusal.Reason)
	}
	for _, c := range o.capabilities {
		// Only a query gets here with others' text: nothing else that is granted has any.
		if foreign := r.foreign(c); len(foreign) > 0 {
			return no(fmt.Sprintf("it does not run by itself: %s holds text by %v", c, Standing{foreign: foreign}))
		}
	}
	return nil
}

// Fired keeps which period or opening a rule's trigger was last used for, so
// that nothing runs twice at one trigger, also after a restart.
type Fired struct {
	at      map[string]FiredAt
	changed map[string]bool
}

// FiredAt is the last use of a rule's trigger.
type FiredAt struct {
	Trigger string
	Slot    int64
	Closure notebook.Hash // that ran, or was to
}

const keyFired = 'u' // page, fence's short form

type firedRecord struct {
	_       struct{} `cbor:",toarray"`
	Trigger string
	Slot    int64
	Closure notebook.Hash
}

// OpenFired reads what [Fired.Flush] returned.
func OpenFired(records iter.Seq2[[]byte, []byte]) (*Fired, error) {
	f := &Fired{at: make(map[string]FiredAt), changed: make(map[string]bool)}
	for key, value := range records {
		var r firedRecord
		if len(key) < 2 || key[0] != keyFired {
			return nil, fmt.Errorf("auto-run: unknown key %x", key)
		}
		if err := readRecord(value, &r); err != nil {
			return nil, fmt.Errorf("auto-run: %w", err)
		}
		f.at[string(key[1:])] = FiredAt{Trigger: r.Trigger, Slot: r.Slot, Closure: r.Closure}
	}
	return f, nil
}

// Flush returns the records that changed since the last flush.
func (f *Fired) Flush() []Record {
	var records []Record
	for _, name := range slices.Sorted(maps.Keys(f.changed)) {
		key := append([]byte{keyFired}, name...)
		at, kept := f.at[name]
		if !kept {
			records = append(records, Record{Key: key})
			continue
		}
		r, err := newRecord(key, &firedRecord{Trigger: at.Trigger, Slot: at.Slot, Closure: at.Closure})
		if err != nil {
			panic("trust: the name of a trigger does not encode: " + err.Error())
		}
		records = append(records, r)
	}
	f.changed = make(map[string]bool)
	return records
}

// At is the last use of the rule, and whether there was one with its trigger.
func (f *Fired) At(rule AutoRule) (FiredAt, bool) {
	at, known := f.at[rule.key()]
	return at, known && at.Trigger == rule.Trigger
}

// Use notes that a rule's trigger is used for a closure.
func (f *Fired) Use(rule AutoRule, slot int64, closure notebook.Hash) {
	f.at[rule.key()] = FiredAt{Trigger: rule.Trigger, Slot: slot, Closure: closure}
	f.changed[rule.key()] = true
}

// Keep forgets the uses of rules that are not among those of the policy.
func (f *Fired) Keep(p *Policy) {
	for key := range f.at {
		if _, named := p.auto[key]; !named {
			delete(f.at, key)
			f.changed[key] = true
		}
	}
}

// OpenSlot numbers the openings of the store, for the trigger open.
func OpenSlot(e notebook.Epoch) int64 { return int64(binary.BigEndian.Uint64(e[:8]) >> 1) }
