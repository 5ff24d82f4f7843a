//go:build cgo

package crdt

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/automerge/automerge-go"

	"noted/notebook"
)

// What the gate admits goes to automerge in a process of its own, since
// automerge ends the process on what it cannot bear: that is what is tested for.

const victimVariable = "NOTED_CRDT_VICTIM"

func TestMain(m *testing.M) {
	if os.Getenv(victimVariable) != "" {
		if limit := (syscall.Rlimit{Cur: 4 << 30, Max: 4 << 30}); !raceDetector { // a bomb ends the victim and not the machine
			if err := syscall.Setrlimit(syscall.RLIMIT_AS, &limit); err != nil {
				fmt.Fprintln(os.Stderr, err)
				os.Exit(1)
			}
		}
		suffer(os.Stdin, os.Stdout)
		return
	}
	os.Exit(m.Run())
}

// verdict is what came of giving changes to automerge.
type verdict byte

const (
	taken   verdict = iota + 1 // and what automerge saves loads as the same
	ignored                    // automerge does not take the changes
	bricked                    // what automerge saved does not load, or as something else
	aborted                    // the process died, or did not answer in time
)

func (v verdict) String() string {
	return [...]string{"nothing", "taken", "ignored", "bricked", "aborted"}[v]
}

// answer is what a victim says of a history: its text and its heads, or why not.
type answer struct {
	verdict verdict
	text    string // or the reason
	heads   notebook.Revision
}

func (a answer) equal(b answer) bool {
	return a.verdict == b.verdict && a.text == b.text && slices.Equal(a.heads, b.heads)
}

// comesTo is what automerge should answer of the changes that a page has taken.
func comesTo(p *Page) answer { return answer{taken, p.Text(), p.Revision()} }

// suffer answers questions until its input ends. A question is a base, which is
// remembered, or changes on top of one.
func suffer(in io.Reader, out io.Writer) {
	var bases []*automerge.Doc
	for n := 0; ; n++ {
		frames, err := readFrames(in)
		if err != nil {
			return
		}
		if n%200 == 0 {
			runtime.GC() // gives the documents' C memory back
		}
		doc := automerge.New()
		base := int(binary.BigEndian.Uint32(frames[0]))
		if base < len(bases) {
			if doc, err = bases[base].Fork(); err != nil {
				fmt.Fprintln(os.Stderr, err)
				os.Exit(1)
			}
		} else {
			bases = append(bases, doc)
		}
		a := outcome(doc, frames[1:], n%4 == 0)
		reply := [][]byte{{byte(a.verdict)}, []byte(a.text)}
		for _, h := range a.heads {
			reply = append(reply, h[:])
		}
		if err := writeFrames(out, reply); err != nil {
			return
		}
	}
}

// outcome gives changes to a document, one after the other, and then sees
// whether that can still be saved and loaded; and, where write says so, written
// and saved and loaded again, which takes as long as all else.
func outcome(doc *automerge.Doc, changes [][]byte, write bool) answer {
	failed := func(v verdict, format string, args ...any) answer {
		return answer{verdict: v, text: fmt.Sprintf(format, args...)}
	}
	for i, c := range changes {
		before := fmt.Sprint(doc.Heads())
		if err := doc.LoadIncremental(c); err != nil {
			return failed(ignored, "change %d: %v", i, err)
		}
		if fmt.Sprint(doc.Heads()) == before {
			return failed(ignored, "change %d came to nothing", i)
		}
	}
	state := func(doc *automerge.Doc) (answer, error) {
		text, err := doc.Path(bodyKey).Text().Get()
		a := answer{verdict: taken, text: text}
		for _, h := range doc.Heads() {
			a.heads = append(a.heads, notebook.Hash(h))
		}
		slices.SortFunc(a.heads, compareHashes)
		return a, err
	}
	want, err := state(doc)
	if err != nil {
		return failed(bricked, "read: %v", err)
	}
	again, err := automerge.Load(doc.Save())
	if err != nil {
		return failed(bricked, "load what was saved: %v", err)
	}
	got, err := state(again)
	if err != nil || !got.equal(want) {
		return failed(bricked, "what was saved loads as something else: %v", err)
	}
	if !write {
		return want
	}
	if err := again.Path(bodyKey).Text().Insert(0, "q"); err != nil {
		return failed(bricked, "write after load: %v", err)
	}
	if _, err := again.Commit(""); err != nil {
		return failed(bricked, "commit after load: %v", err)
	}
	if _, err := automerge.Load(again.Save()); err != nil {
		return failed(bricked, "load what was saved after a write: %v", err)
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

// question is changes on top of a victim's base.
type question struct {
	base    int
	changes [][]byte
}

func (q *question) frames() [][]byte {
	return append([][]byte{binary.BigEndian.AppendUint32(nil, uint32(q.base))}, q.changes...)
}

// victim is automerge in another process, begun again whenever it dies.
type victim struct {
	patience time.Duration // for one answer
	bases    [][][]byte    // histories
	cmd      *exec.Cmd
	in, out  *os.File
	stderr   *bytes.Buffer
}

func newVictim(t testing.TB) *victim {
	v := &victim{patience: time.Minute}
	t.Cleanup(v.end)
	return v
}

func (v *victim) begin() error {
	theirIn, in, err := os.Pipe()
	if err != nil {
		return err
	}
	out, theirOut, err := os.Pipe()
	if err != nil {
		return err
	}
	defer theirIn.Close()
	defer theirOut.Close()
	v.cmd, v.in, v.out, v.stderr = exec.Command(os.Args[0]), in, out, new(bytes.Buffer)
	v.cmd.Env = append(os.Environ(), victimVariable+"=1")
	v.cmd.Stdin, v.cmd.Stdout, v.cmd.Stderr = theirIn, theirOut, v.stderr
	if err := v.cmd.Start(); err != nil {
		return err
	}
	for i, b := range v.bases {
		a, err := v.exchange(question{i, b})
		if err != nil || a.verdict != taken {
			return fmt.Errorf("base %d of a new victim is %s: %s %v", i, a.verdict, a.text, err)
		}
	}
	return nil
}

// end also gives up the bases.
func (v *victim) end() {
	v.bury()
	v.bases = nil
}

func (v *victim) bury() {
	if v.cmd == nil {
		return
	}
	_ = v.in.Close()
	_ = v.out.Close()
	_ = v.cmd.Process.Kill()
	_ = v.cmd.Wait()
	v.cmd = nil
}

func (v *victim) exchange(q question) (answer, error) {
	answers, err := v.exchangeAll([]question{q})
	if err != nil {
		return answer{}, err
	}
	return answers[0], nil
}

// exchangeAll asks all at once, so that nobody waits for the other, and returns
// what was answered before the victim died.
func (v *victim) exchangeAll(questions []question) (answers []answer, err error) {
	go func(in *os.File) { // ends when all is written or the victim's end of the pipe is closed
		for i := range questions {
			if writeFrames(in, questions[i].frames()) != nil {
				return
			}
		}
	}(v.in)
	for range questions {
		if err := v.out.SetReadDeadline(time.Now().Add(v.patience)); err != nil {
			return answers, err
		}
		frames, err := readFrames(v.out)
		if err != nil {
			return answers, err
		}
		a := answer{verdict: verdict(frames[0][0]), text: string(frames[1])}
		for _, h := range frames[2:] {
			a.heads = append(a.heads, notebook.Hash(h))
		}
		answers = append(answers, a)
	}
	return answers, nil
}

// base gives the victim a history that later questions build on.
func (v *victim) base(history [][]byte) (number int, a answer, err error) {
	q := question{len(v.bases), history}
	answers, err := v.ask([]question{q})
	if err != nil {
		return 0, answer{}, err
	}
	if a = answers[0]; a.verdict == taken {
		v.bases = append(v.bases, history)
		return q.base, a, nil
	}
	v.bury() // it remembers what failed
	return 0, a, nil
}

// ask gives changes to automerge, each on a copy of its base. A death is the
// answer to the first question that was not answered; the rest asks a new process.
func (v *victim) ask(questions []question) (answers []answer, err error) {
	for len(answers) < len(questions) {
		if v.cmd == nil {
			if err := v.begin(); err != nil {
				return nil, err
			}
		}
		more, err := v.exchangeAll(questions[len(answers):])
		answers = append(answers, more...)
		if err == nil {
			continue
		}
		why := "it ended"
		if errors.Is(err, os.ErrDeadlineExceeded) {
			why = fmt.Sprintf("it did not answer in %v", v.patience)
		}
		v.bury()
		answers = append(answers, answer{verdict: aborted, text: fmt.Sprintf("%s: %.300s", why, v.stderr)})
	}
	return answers, nil
}
