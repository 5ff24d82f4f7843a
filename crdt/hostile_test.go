//go:build cgo

package crdt

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"math/rand"
	"runtime"
	"runtime/metrics"
	"slices"
	"strings"
	"testing"
	"time"

	"noted/notebook"
	"noted/trust"
)

// The hostile campaign goes in rounds. Each has its own random numbers, made of
// the seed and its number, so that a finding can be had again alone. `make
// hostile` is a hundred rounds.
var (
	campaignSeed   = flag.Int64("seed", 1, "of the hostile campaign")
	campaignRounds = flag.Int("rounds", 1, "of the hostile campaign")
	campaignFirst  = flag.Int("first", 0, "the first round of the hostile campaign, to repeat a finding")
)

const (
	roundMutants   = 1000 // of the bytes, and as many of what they say
	roundSequences = 50
	sequenceLength = 40

	// What the gate may need for one change of a few hundred bytes on a small
	// page, far above what it needs (microseconds, and less than 100 KiB), so that
	// only a bomb reaches it.
	mostTime  = 10 * time.Second
	mostBytes = 64 << 20
)

// tally is what a campaign comes to.
type tally struct {
	bytes, semantic, sequences                           int
	accepted, aborts, bricked, mismatches, honestRefused int
	honest, dear                                         int           // honest changes; changes that took too much time or memory
	slowest                                              time.Duration // of a change at the gate
	largest                                              uint64        // bytes allocated for a change at the gate
	findings                                             []string
}

func (t *tally) add(u *tally) {
	t.bytes += u.bytes
	t.semantic += u.semantic
	t.sequences += u.sequences
	t.accepted += u.accepted
	t.aborts += u.aborts
	t.bricked += u.bricked
	t.mismatches += u.mismatches
	t.honestRefused += u.honestRefused
	t.honest += u.honest
	t.dear += u.dear
	t.slowest = max(t.slowest, u.slowest)
	t.largest = max(t.largest, u.largest)
	t.findings = append(t.findings, u.findings...)
}

func (t *tally) String() string {
	return fmt.Sprintf("hostile: %d byte + %d semantic + %dx%d sequences, %d accepted, %d aborts, %d bricked, %d mismatches, honest refused %d",
		t.bytes, t.semantic, t.sequences, sequenceLength, t.accepted, t.aborts, t.bricked, t.mismatches, t.honestRefused)
}

// TestHostile is the campaign: whatever a hostile device writes is refused by
// the gate or borne by automerge, with the shadow's text, now and after it was
// saved; and what honest devices write is never refused.
func TestHostile(t *testing.T) {
	rounds := make(chan int64)
	type result struct {
		*round
		err error
	}
	results := make(chan result, *campaignRounds)
	for range min(runtime.GOMAXPROCS(0), *campaignRounds) {
		v := newVictim(t)
		go func() {
			for n := range rounds {
				r, err := newRound(v, *campaignSeed, n)
				if err == nil {
					err = r.run()
				}
				v.end()
				results <- result{r, err}
			}
		}()
	}
	for n := range *campaignRounds {
		rounds <- int64(*campaignFirst + n)
	}
	close(rounds)
	var total tally
	for range *campaignRounds {
		r := <-results
		must(t, r.err)
		total.add(&r.tally)
	}
	fmt.Printf("%s\nhostile: seed %d, %d honest changes; dearest change %.1f ms, %d KiB\n", &total,
		*campaignSeed, total.honest, float64(total.slowest.Microseconds())/1000, total.largest>>10)
	for _, f := range total.findings[:min(20, len(total.findings))] {
		t.Log(f)
	}
	if total.aborts+total.bricked+total.mismatches+total.honestRefused+total.dear > 0 {
		t.Fail()
	}
	if total.accepted < 200**campaignRounds || total.honest < 100**campaignRounds {
		t.Fatalf("%d accepted and %d honest changes test nothing", total.accepted, total.honest)
	}
}

// round is a thousandth part of what there is to try, on pages of its own.
type round struct {
	tally
	*rand.Rand
	name    string
	victim  *victim
	targets []*target
	asked   []asked
}

// target is a page with its history, and the next change of that history: what
// a hostile change pretends to be.
type target struct {
	base   int // the victim's
	record []byte
	page   *Page // as in the record
	next   written
}

// written is a change with its author.
type written struct {
	author notebook.Author
	epoch  notebook.Epoch
	body   []byte
}

// asked is a question to the victim with the answer that the shadow gives.
type asked struct {
	what string
	question
	want answer
}

func newRound(v *victim, seed, n int64) (*round, error) {
	r := &round{
		Rand:   rand.New(rand.NewSource(seed<<20 + n)),
		name:   fmt.Sprintf("seed %d round %d", seed, n),
		victim: v,
	}
	for i := range 5 {
		if err := r.honestHistory(10 + r.Intn(30) + i/4*40); err != nil {
			return nil, err
		}
	}
	return r, nil
}

// honestHistory lets devices write a page together, gives all of it to the gate
// and to the victim, and keeps two moments of it as targets.
func (r *round) honestHistory(changes int) error {
	log, err := r.scribble(1+r.Intn(6), changes)
	if err != nil {
		return err
	}
	cuts := []int{len(log) / 2, len(log) - 1}
	p := NewPage(notebook.PageID{7})
	history := [][]byte{firstChange}
	for i, w := range log {
		if slices.Contains(cuts, i) {
			base, a, err := r.victim.base(slices.Clone(history))
			if err != nil {
				return err
			}
			r.judge(asked{what: "honest history", question: question{base, history}, want: comesTo(p)}, a)
			record := p.Record()
			page, err := OpenPage(p.id, record)
			if err != nil {
				return err
			}
			r.targets = append(r.targets, &target{base, record, page, w})
		}
		r.honest++
		if err := r.admit(p, w); err != nil {
			r.honestRefused++
			r.find("honest change refused (%v)", w.body, err)
			return nil
		}
		history = append(history, w.body)
	}
	return nil
}

func (r *round) find(what string, body []byte, args ...any) {
	r.findings = append(r.findings, fmt.Sprintf("%s: %s: %x", r.name, fmt.Sprintf(what, args...), body))
}

// writer is a device that writes a page, with either write model.
type writer struct {
	*hand
	page  *Page
	model Model
	taken int // of the log
}

// take gives an honest change to the writer.
func (r *round) take(d *writer, w written, own bool) error {
	if err := r.admit(d.page, w); err != nil {
		return err
	}
	if own {
		return nil // the model that made it has it
	}
	_, err := d.model.Load(w.body)
	return err
}

// scribble is an honest history: devices that write a page, each through two
// doors, and take from each other what they please. What the gate refuses is
// its end.
func (r *round) scribble(devices, changes int) (log []written, err error) {
	group := make([]*writer, devices)
	for i := range group {
		d := &writer{hand: newHand(byte(i+1), 0), page: NewPage(notebook.PageID{7})}
		if d.model = Native(d.page); r.Intn(2) == 0 {
			d.model = Automerge()
		}
		if _, err := d.model.Load(firstChange); err != nil {
			return nil, err
		}
		group[i] = d
	}
	pieces := []string{"a", "é", "漢字", "😀", "\n", "```lua\nprint(1)\n```\n", "# title\n", "a line of text that goes on\n", strings.Repeat("long ", 20)}
	for len(log) < changes {
		d := group[r.Intn(devices)]
		if r.Intn(3) == 0 {
			for upTo := d.taken + r.Intn(len(log)-d.taken+1); d.taken < upTo; d.taken++ {
				if w := log[d.taken]; w.author.Device != d.author.Device {
					if err := r.take(d, w, false); err != nil {
						return nil, fmt.Errorf("a change that its writer took: %w", err)
					}
				}
			}
			continue
		}
		w := written{author: d.author, epoch: d.epoch}
		if r.Intn(5) > 0 {
			w.author.Class, w.author.Label = notebook.Typed, ""
		}
		w.body, err = d.model.Splice(w.author.Actor(w.epoch), r.Int63n(maxTime+1), r.splices(d.page.Len(), pieces))
		if err != nil {
			return nil, err
		}
		log = append(log, w)
		if err := r.take(d, w, true); err != nil {
			r.honestRefused++
			r.find("honest change refused (%v)", w.body, err)
			return log, nil
		}
	}
	return log, nil
}

// splices is an edit of a text: up to four places, one of them an insert.
func (r *round) splices(length int, pieces []string) (edit []notebook.Splice) {
	at := 0
	for n := 1 + r.Intn(4); n > 0 && (at < length || len(edit) == 0); n-- {
		x := notebook.Splice{At: at + r.Intn(length-at+1)}
		if x.Delete = r.Intn(min(length-x.At, 12) + 1); r.Intn(20) == 0 {
			x.Delete = length - x.At
		}
		if len(edit) == 0 || r.Intn(3) > 0 {
			x.Insert = pieces[r.Intn(len(pieces))]
		}
		edit = append(edit, x)
		at = x.At + x.Delete + 1
	}
	return edit
}

// admit gives a change to the gate, and to the page if that admits it.
func (r *round) admit(p *Page, w written) error {
	before, began := allocated(), time.Now()
	a, err := p.check(w.body, w.author, w.epoch, sawAll)
	took, grew := time.Since(began), allocated()-before
	r.slowest, r.largest = max(r.slowest, took), max(r.largest, grew)
	if took > mostTime || grew > mostBytes {
		r.dear++
		r.find("a change that costs %v and %d bytes", w.body, took, grew)
	}
	if err == nil {
		p.take(a, a.change.seq)
		return nil
	}
	var void *trust.Void
	if !errors.As(err, &void) {
		return fmt.Errorf("not void: %w", err)
	}
	return err
}

// allocated is what the process has allocated so far, in bytes: by everybody,
// but only a bomb is sought.
func allocated() uint64 {
	s := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
	metrics.Read(s)
	return s[0].Value.Uint64()
}

// judge compares what automerge came to with what the shadow did.
func (r *round) judge(q asked, got answer) {
	switch {
	case got.verdict == aborted:
		r.aborts++
	case got.verdict == bricked:
		r.bricked++
	case !got.equal(q.want):
		r.mismatches++
	default:
		return
	}
	r.find("%s: %s: automerge has %q, the shadow %q", q.changes[len(q.changes)-1], q.what, got.verdict, got.text, q.want.text)
}

// ask has the victim judge what the gate admitted, many at once.
func (r *round) ask(q asked) error {
	r.asked = append(r.asked, q)
	if len(r.asked) < 64 {
		return nil
	}
	return r.flush()
}

func (r *round) flush() error {
	questions := make([]question, len(r.asked))
	for i := range r.asked {
		questions[i] = r.asked[i].question
	}
	answers, err := r.victim.ask(questions)
	if err != nil {
		return err
	}
	for i := range answers {
		r.judge(r.asked[i], answers[i])
	}
	r.asked = r.asked[:0]
	return nil
}

func (r *round) run() error {
	for range roundMutants {
		r.bytes++
		t := r.targets[r.Intn(len(r.targets))]
		if err := r.try(t, "damaged", chunk(mutate(r.Rand, content(t.next.body)))); err != nil {
			return err
		}
		r.semantic++
		t = r.targets[r.Intn(len(r.targets))]
		if err := r.try(t, "distorted", r.distorted(t)); err != nil {
			return err
		}
	}
	for range roundSequences {
		r.sequences++
		if err := r.sequence(); err != nil {
			return err
		}
	}
	for _, t := range r.targets {
		if !bytes.Equal(t.page.Record(), t.record) {
			r.mismatches++
			r.find("a refused change left something behind in a page", nil)
		}
	}
	return r.flush()
}

// distorted is the target's next change as it was not meant.
func (r *round) distorted(t *target) []byte {
	if r.Intn(3) == 0 {
		c := rawOf(t.next.body)
		c.warp(r.Rand)
		return c.encode()
	}
	c := new(change)
	if err := c.decode(t.next.body, new(encoder)); err != nil {
		panic(err) // an honest change, which the gate took
	}
	distort(r.Rand, t.page, c)
	return encoded(c)
}

// try gives one hostile change to the gate, and to the victim if that admits it.
func (r *round) try(t *target, what string, body []byte) error {
	err := r.admit(t.page, written{t.next.author, t.next.epoch, body})
	if err != nil {
		return nil
	}
	r.accepted++
	want := comesTo(t.page)
	if t.page, err = OpenPage(t.page.id, t.record); err != nil {
		return err
	}
	return r.ask(asked{what, question{t.base, [][]byte{body}}, want})
}

// sequence lets up to six devices write whatever the gate admits on top of
// whatever is there. The opened record of what comes of it is the same page.
func (r *round) sequence() error {
	t := r.targets[r.Intn(len(r.targets))]
	p, err := OpenPage(t.page.id, t.record)
	if err != nil {
		return err
	}
	var history [][]byte
	devices := 1 + r.Intn(6)
	for range sequenceLength {
		w := t.next
		w.author.Device = notebook.DeviceID{byte(1 + r.Intn(devices))}
		w.epoch = notebook.Epoch{w.author.Device[0]}
		c := craft(r.Rand, p, w.author.Actor(w.epoch))
		if r.Intn(4) == 0 {
			distort(r.Rand, p, c)
		}
		w.body = encoded(c)
		if r.admit(p, w) == nil {
			r.accepted++
			history = append(history, w.body)
		}
	}
	if len(history) == 0 {
		return nil
	}
	if opened, err := OpenPage(p.id, p.Record()); err != nil || !comesTo(opened).equal(comesTo(p)) {
		r.mismatches++
		r.find("the record of a page opens as another one (%v)", history[len(history)-1], err)
	}
	return r.ask(asked{"sequence", question{t.base, history}, comesTo(p)})
}

// TestCampaignNotices lets hostile changes past the gate and has the shadow
// lie: what the campaign counts, it can see.
func TestCampaignNotices(t *testing.T) {
	v := newVictim(t)
	v.patience = 5 * time.Second // some bombs take minutes
	r, err := newRound(v, 1, 0)
	must(t, err)
	if r.aborts+r.bricked+r.mismatches+r.honestRefused > 0 || r.honest == 0 {
		t.Fatalf("the honest part of a round: %s", &r.tally)
	}
	for range 400 {
		target := r.targets[r.Intn(len(r.targets))]
		must(t, r.ask(asked{"distorted", question{target.base, [][]byte{r.distorted(target)}}, answer{verdict: ignored}}))
	}
	must(t, r.flush())
	t.Logf("without the gate: %s", &r.tally)
	if r.aborts == 0 || r.bricked == 0 {
		t.Errorf("without the gate %d aborts and %d bricked pages were counted", r.aborts, r.bricked)
	}
	r.tally = tally{}
	target := r.targets[0]
	must(t, r.admit(target.page, target.next))
	want := comesTo(target.page)
	must(t, r.ask(asked{"honest", question{target.base, [][]byte{target.next.body}}, want}))
	must(t, r.flush())
	if r.mismatches > 0 {
		t.Errorf("the next change of a history: %s", r.findings)
	}
	want.text += "!"
	must(t, r.ask(asked{"a lie", question{target.base, [][]byte{target.next.body}}, want}))
	must(t, r.flush())
	if r.mismatches != 1 {
		t.Errorf("a text that is not automerge's counts as %d mismatches", r.mismatches)
	}
	if err := r.admit(NewPage(notebook.PageID{7}), written{target.next.author, target.next.epoch, []byte("nothing")}); err == nil {
		t.Error("a change that is none was admitted")
	}
}

// FuzzGate gives the gate the content of a change, with a correct checksum.
func FuzzGate(f *testing.F) {
	v := newVictim(f)
	r, err := newRound(v, 1, 0)
	must(f, err)
	target := r.targets[len(r.targets)-1]
	for range 40 {
		f.Add(mutate(r.Rand, content(target.next.body)))
		f.Add(content(r.distorted(target)))
	}
	f.Add(content(target.next.body))
	f.Add(content(firstChange))
	f.Fuzz(func(t *testing.T, body []byte) {
		p, err := OpenPage(target.page.id, target.record)
		must(t, err)
		change := chunk(body)
		if r.admit(p, written{target.next.author, target.next.epoch, change}) != nil {
			if !bytes.Equal(p.Record(), target.record) {
				t.Fatal("a refused change left something behind")
			}
			return
		}
		answers, err := v.ask([]question{{target.base, [][]byte{change}}})
		must(t, err)
		if !answers[0].equal(comesTo(p)) {
			t.Fatalf("automerge has %s %q, the shadow %q", answers[0].verdict, answers[0].text, p.Text())
		}
	})
}
