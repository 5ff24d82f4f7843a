package exec

import (
	"testing"
	"time"

	"noted/notebook"
)

// TestASpareOfAnEngineIsDropped: a worker with an engine file waits only after its
// language was used, only one, and not for long.
func TestASpareOfAnEngineIsDropped(t *testing.T) {
	r := newRunner(t, Config{Limits: quick, Spares: 2})
	r.idle = time.Second
	spares := func() (n int) {
		r.mu.Lock()
		defer r.mu.Unlock()
		for _, s := range r.spares {
			if s.kind.language == "javascript" {
				n++
			}
		}
		return n
	}
	r.refillAll()
	if n := spares(); n != 0 {
		t.Fatalf("%d spares of a language that was never used", n)
	}
	j := strictJob(quick, "6 * 7")
	j.language = "javascript"
	if res := runJob(t, r, j); res.Verdict != notebook.OK {
		t.Fatal(res.Verdict, res.Error)
	}
	r.refillAll()
	if n := spares(); n != 1 {
		t.Errorf("%d spares after it was used", n)
	}
	pid := warmed(t, r, j)
	for end := time.Now().Add(30 * time.Second); spares() > 0 || processState(pid) != ""; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("it waits for ever")
		}
	}
	r.refillAll()
	if n := spares(); n != 0 {
		t.Errorf("%d spares of a language that was not used for long", n)
	}
	if res := runJob(t, r, j); res.Verdict != notebook.OK || res.Output != "42\n" {
		t.Errorf("afterwards it runs as %v %q", res.Verdict, res.Error)
	}
}
