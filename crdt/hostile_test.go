package crdt

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"math/rand"
	"os"
	"os/exec"
	"slices"
	"testing"

	"github.com/automerge/automerge-go"

	"noted/notebook"
)

// What the gate admits goes to automerge in a process of its own, since
// automerge ends the process on what it cannot bear: that is what is tested for.

const oracleVariable = "NOTED_CRDT_ORACLE"

func TestMain(m *testing.M) {
	if os.Getenv(oracleVariable) != "" {
		answer(os.Stdin, os.Stdout)
		return
	}
	os.Exit(m.Run())
}

// answer loads histories until its input ends, and says what they come to.
func answer(in io.Reader, out io.Writer) {
	for {
		history, err := readFrames(in)
		if err != nil {
			return
		}
		if err := writeFrames(out, outcome(history)); err != nil {
			return
		}
	}
}

// outcome is the text and the heads of a history, or why automerge does not
// take it, now or after it has saved it.
func outcome(history [][]byte) [][]byte {
	failed := func(format string, args ...any) [][]byte { return [][]byte{fmt.Appendf(nil, format, args...)} }
	doc := automerge.New()
	for i, c := range history {
		before := fmt.Sprint(doc.Heads())
		if err := doc.LoadIncremental(c); err != nil {
			return failed("change %d: %v", i, err)
		}
		if fmt.Sprint(doc.Heads()) == before {
			return failed("change %d was ignored", i)
		}
	}
	state := func(doc *automerge.Doc) ([][]byte, error) {
		text, err := doc.Path(bodyKey).Text().Get()
		out := [][]byte{nil, []byte(text)}
		var heads notebook.Revision
		for _, h := range doc.Heads() {
			heads = append(heads, notebook.Hash(h))
		}
		slices.SortFunc(heads, compareHashes)
		for _, h := range heads {
			out = append(out, h[:])
		}
		return out, err
	}
	want, err := state(doc)
	if err != nil {
		return failed("read: %v", err)
	}
	again, err := automerge.Load(doc.Save())
	if err != nil {
		return failed("load what was saved: %v", err)
	}
	got, err := state(again)
	if err != nil || !slices.EqualFunc(got, want, bytes.Equal) {
		return failed("what was saved loads as something else: %v", err)
	}
	if err := again.Path(bodyKey).Text().Insert(0, "q"); err != nil {
		return failed("write after load: %v", err)
	}
	if _, err := again.Commit(""); err != nil {
		return failed("commit after load: %v", err)
	}
	if _, err := automerge.Load(again.Save()); err != nil {
		return failed("load what was saved after a write: %v", err)
	}
	return want
}

func writeFrames(w io.Writer, frames [][]byte) error {
	b := binary.BigEndian.AppendUint32(nil, uint32(len(frames)))
	for _, f := range frames {
		b = binary.BigEndian.AppendUint32(b, uint32(len(f)))
		b = append(b, f...)
	}
	_, err := w.Write(b)
	return err
}

func readFrames(r io.Reader) ([][]byte, error) {
	number := func() (uint32, error) {
		var b [4]byte
		_, err := io.ReadFull(r, b[:])
		return binary.BigEndian.Uint32(b[:]), err
	}
	n, err := number()
	var frames [][]byte
	for range n {
		var size uint32
		if size, err = number(); err != nil {
			break
		}
		f := make([]byte, size)
		if _, err = io.ReadFull(r, f); err != nil {
			break
		}
		frames = append(frames, f)
	}
	return frames, err
}

// oracle is automerge in another process.
type oracle struct {
	cmd    *exec.Cmd
	in     io.WriteCloser
	out    io.ReadCloser
	stderr *bytes.Buffer
}

func newOracle(t testing.TB) *oracle {
	t.Helper()
	o := &oracle{cmd: exec.Command(os.Args[0]), stderr: new(bytes.Buffer)}
	o.cmd.Env = append(os.Environ(), oracleVariable+"=1")
	o.cmd.Stderr = o.stderr
	var err error
	o.in, err = o.cmd.StdinPipe()
	must(t, err)
	o.out, err = o.cmd.StdoutPipe()
	must(t, err)
	must(t, o.cmd.Start())
	t.Cleanup(func() {
		_ = o.in.Close()
		_ = o.cmd.Wait()
	})
	return o
}

// agrees holds a page that took a history against automerge.
func (o *oracle) agrees(t testing.TB, p *Page, history [][]byte) {
	t.Helper()
	must(t, writeFrames(o.in, history))
	got, err := readFrames(o.out)
	if err != nil {
		t.Fatalf("automerge died of a change that the gate admitted (%v): %x\n%s", err, history[len(history)-1], o.stderr)
	}
	want := [][]byte{nil, []byte(p.Text())}
	for _, h := range p.Revision() {
		want = append(want, h[:])
	}
	if !slices.EqualFunc(got, want, bytes.Equal) {
		t.Fatalf("automerge comes to %q, the shadow to %q, by %x", got, want, history[len(history)-1])
	}
}

// TestOracleNotices makes sure that the oracle would say so.
func TestOracleNotices(t *testing.T) {
	_, m, next := couple(t)
	if got := outcome([][]byte{firstChange, next}); len(got) != 1 {
		t.Fatalf("a change without what it rests on comes to %q", got)
	}
	c := decoded(t, next)
	c.ops[0].counter = 999 // a deletion or an insert at an element that is not there
	o := newOracle(t)
	must(t, writeFrames(o.in, append(history(m), encoded(c))))
	if got, err := readFrames(o.out); err == nil && len(got) > 1 {
		t.Fatalf("automerge bears the unknown element, so the oracle proves nothing: %q", got)
	}
}

// history is all that a replica of a couple has before its last change.
func history(m *replica) [][]byte {
	h := [][]byte{firstChange}
	for body := range m.had {
		h = append(h, []byte(body))
	}
	return append(h, m.made[:len(m.made)-1]...)
}

// hostileSeeds are changes that mutations begin with: typed, deleted, both, on
// top of everything and beside it.
func hostileSeeds(t testing.TB) (p *Page, base [][]byte, by *replica, seeds [][]byte) {
	t.Helper()
	v, m := newReplica(t, 1), newReplica(t, 2)
	for i := range 3 {
		body := v.edit(t, func(text *automerge.Text) { must(t, text.Splice(0, i, "# hi\n\n```lua\nprint(1)\n```\n")) })
		m.pull(t, v, body)
		body = m.edit(t, func(text *automerge.Text) { must(t, text.Splice(3+i, 1, "é漢")) })
		v.pull(t, m, body)
	}
	record := m.page.Record()
	p, err := OpenPage(m.page.id, record)
	must(t, err)
	base = [][]byte{firstChange}
	for i := range 3 {
		base = append(base, v.made[i], m.made[i])
	}
	for i := range 6 {
		scratch := newReplica(t, 2)
		for j, b := range base[1:] {
			must(t, scratch.doc.LoadIncremental(b))
			from := []*replica{v, m}[j%2]
			a, err := scratch.page.check(b, from.author, from.epoch, sawAll)
			must(t, err)
			scratch.page.take(a, uint64(j/2+1))
		}
		scratch.seq = 3
		seeds = append(seeds, scratch.edit(t, func(text *automerge.Text) {
			for k := range i + 1 {
				must(t, text.Splice(2*k, k%3, []string{"x", "yz`", "", "\n"}[(i+k)%4]))
			}
			must(t, text.Insert(0, "w"))
		}))
	}
	return p, base, m, seeds
}

// mutate damages bytes in the ways that decoders stumble over.
func mutate(r *rand.Rand, b []byte) []byte {
	values := [][]byte{{0}, {1}, {0x7f}, {0x80}, {0xff}, {0xff, 0xff, 0xff, 0xff, 0x0f}, {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01}, {0x80, 0x80, 0x80, 0x80, 0x08}, {0x7e}, {0x40}, {0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x7f}}
	b = slices.Clone(b)
	for range 1 + r.Intn(3) {
		if len(b) == 0 {
			return b
		}
		i := r.Intn(len(b))
		j := min(len(b), i+r.Intn(16))
		v := values[r.Intn(len(values))]
		switch r.Intn(6) {
		case 0:
			b[i] ^= 1 << r.Intn(8)
		case 1:
			b[i] += byte(r.Intn(5)) - 2
		case 2:
			b = slices.Insert(b, i, v...)
		case 3:
			copy(b[i:], v)
		case 4:
			b = slices.Delete(b, i, j)
		case 5:
			b = slices.Insert(b, j, b[i:j]...)
		}
	}
	return b
}

// distort changes what a change says, and leaves how it says it correct.
func distort(r *rand.Rand, p *Page, c *change) {
	element := func() (uint32, uint16) {
		counter := []uint32{0, 1, 2, uint32(r.Intn(200)), c.start, c.start + 1, maxCounter}[r.Intn(7)]
		return counter, uint16(r.Intn(len(c.actors) + 1))
	}
	for range 1 + r.Intn(3) {
		var o *op
		if len(c.ops) > 0 {
			o = &c.ops[r.Intn(len(c.ops))]
		} else {
			o = new(op)
		}
		switch r.Intn(12) {
		case 0:
			c.seq = []uint64{0, 1, c.seq + 1, c.seq - 1, 1 << 63}[r.Intn(5)]
		case 1:
			c.start = []uint32{0, 1, c.start + 1, c.start - 1, maxCounter}[r.Intn(5)]
		case 2:
			c.deps = []notebook.Hash{p.changes[r.Intn(len(p.changes))].hash}
		case 3:
			c.deps = append(c.deps, p.changes[r.Intn(len(p.changes))].hash)
			c.sortDeps()
		case 4:
			o.counter, o.actor = element()
		case 5:
			o.char = []rune{deleting, 'a', '\n', '漢', '😀', 0, '\r', '\ufeff'}[r.Intn(8)]
		case 6:
			c.ops = append(c.ops, *o)
		case 7:
			i, j := r.Intn(max(1, len(c.ops))), r.Intn(max(1, len(c.ops)))
			if j < len(c.ops) {
				c.ops[i], c.ops[j] = c.ops[j], c.ops[i]
			}
		case 8:
			c.ops = c.ops[:r.Intn(len(c.ops)+1)]
		case 9:
			c.actor = p.seq.ids[r.Intn(len(p.seq.ids))]
		case 10:
			c.time = []int64{0, -1, 1, maxTime, maxTime + 1, 1 << 62, -1 << 63}[r.Intn(7)]
		case 11:
			counter, actor := element()
			c.ops = append(c.ops, op{counter: counter, actor: actor, char: 'n'})
		}
	}
}

// TestHostileChanges gives the gate damaged and distorted changes. It admits
// few; those automerge takes, with the shadow's text.
func TestHostileChanges(t *testing.T) {
	p, base, m, seeds := hostileSeeds(t)
	record := p.Record()
	o := newOracle(t)
	r := rand.New(rand.NewSource(1))
	admitted := 0
	for range 20_000 {
		seed := seeds[r.Intn(len(seeds))]
		var body []byte
		if r.Intn(2) == 0 {
			body = chunk(mutate(r, content(seed)))
		} else {
			c := decoded(t, seed)
			distort(r, p, c)
			body = encoded(c)
		}
		a, err := p.check(body, m.author, m.epoch, sawAll)
		if err != nil {
			continue
		}
		admitted++
		p.take(a, 4)
		o.agrees(t, p, append(slices.Clone(base), body))
		p, err = OpenPage(p.id, record)
		must(t, err)
	}
	if admitted < 100 {
		t.Fatalf("the gate admitted %d, which tests nothing", admitted)
	}
	if !bytes.Equal(p.Record(), record) {
		t.Fatal("refused changes left something behind")
	}
	t.Logf("%d of 20000 admitted", admitted)
}

// TestHostileHistories lets four actors write whatever the gate admits on top
// of whatever is there, and gives the whole history to automerge.
func TestHostileHistories(t *testing.T) {
	o := newOracle(t)
	r := rand.New(rand.NewSource(2))
	admitted := 0
	for range 150 {
		p := NewPage(notebook.PageID{7})
		history := [][]byte{firstChange}
		for range 40 {
			author := notebook.Author{Device: notebook.DeviceID{byte(1 + r.Intn(4))}, Class: notebook.Typed}
			epoch := notebook.Epoch{1}
			c := craft(r, p, author.Actor(epoch))
			if r.Intn(4) == 0 {
				distort(r, p, c)
			}
			body := encoded(c)
			a, err := p.check(body, author, epoch, sawAll)
			if err != nil {
				continue
			}
			admitted++
			p.take(a, c.seq)
			history = append(history, body)
		}
		o.agrees(t, p, history)
		opened, err := OpenPage(p.id, p.Record())
		must(t, err)
		samePage(t, opened, p)
	}
	if admitted < 1000 {
		t.Fatalf("the gate admitted %d, which tests nothing", admitted)
	}
	t.Logf("%d admitted", admitted)
}

// craft makes a change with dependencies and references from all over a page.
func craft(r *rand.Rand, p *Page, id notebook.ActorID) *change {
	c := &change{actor: id, seq: 1, actors: slices.Clone(p.seq.ids)}
	deps := map[int32]bool{}
	if own, known := p.actorOf[id]; known {
		chain := p.actors[own].changes
		c.seq = uint64(len(chain)) + 1
		deps[chain[len(chain)-1]] = true
		c.actors = slices.Delete(c.actors, int(own), int(own)+1)
	}
	for n := r.Intn(3); n > 0 || len(deps) == 0; n-- {
		deps[int32(r.Intn(len(p.changes)))] = true
	}
	for k := range deps {
		c.deps = append(c.deps, p.changes[k].hash)
		c.start = max(c.start, p.changes[k].last()+1)
	}
	slices.SortFunc(c.deps, compareHashes)
	elements := elementsOf(p)
	for range 1 + r.Intn(6) {
		o := op{char: []rune("aé\n`😀")[r.Intn(5)]}
		if len(elements) > 0 && r.Intn(8) > 0 {
			e := elements[r.Intn(len(elements))].id
			o.counter = uint32(e.Counter)
			if i := slices.Index(c.actors, e.Actor); i >= 0 {
				o.actor = uint16(i + 1)
			}
			if r.Intn(3) == 0 {
				o.char = deleting
			}
		} else if n := len(c.ops); n > 0 && c.ops[n-1].inserts() {
			o.counter = c.start + uint32(n-1)
		}
		c.ops = append(c.ops, o)
	}
	c.prune()
	return c
}

// prune leaves the actors that the operations name.
func (c *change) prune() {
	for i := len(c.actors) - 1; i >= 0; i-- {
		n := uint16(i + 1)
		if c.actors[i] == firstActor || slices.ContainsFunc(c.ops, func(o op) bool { return o.actor == n }) {
			continue
		}
		c.actors = slices.Delete(c.actors, i, i+1)
		for k := range c.ops {
			if c.ops[k].actor > n {
				c.ops[k].actor--
			}
		}
	}
	c.sort()
}

// FuzzGate gives the gate the content of a change, with a correct checksum.
func FuzzGate(f *testing.F) {
	p, base, m, seeds := hostileSeeds(f)
	record := p.Record()
	for _, s := range append(seeds, base...) {
		f.Add(content(s))
	}
	r := rand.New(rand.NewSource(3))
	for _, s := range seeds {
		for range 5 {
			f.Add(mutate(r, content(s)))
			c := decoded(f, s)
			distort(r, p, c)
			f.Add(new(encoder).encode(c))
		}
	}
	o := newOracle(f)
	f.Fuzz(func(t *testing.T, body []byte) {
		p, err := OpenPage(p.id, record)
		must(t, err)
		change := chunk(body)
		a, err := p.check(change, m.author, m.epoch, sawAll)
		if err != nil {
			if !bytes.Equal(p.Record(), record) {
				t.Fatal("a refused change left something behind")
			}
			return
		}
		p.take(a, 4)
		o.agrees(t, p, append(slices.Clone(base), change))
	})
}
