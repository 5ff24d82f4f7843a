package daemon

import (
	"testing"
	"testing/synctest"
	"time"

	"noted/notebook"
)

// What is outside and does not answer holds nobody up twice: the next question is
// refused at once, until the answer has come.
func TestOutsideThatDoesNotAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		answers := make(chan struct{})
		o := newOutside(Home{Config: "/c", Data: "/d", State: "/s", Cache: "/k", Runtime: "/r"})
		o.find = func(c notebook.Capability, own []string) ([]byte, error) {
			if len(own) != 5 {
				t.Errorf("noted's own are %q", own)
			}
			if c == "dir:/hangs" {
				<-answers
			}
			return []byte(c), nil
		}
		asks := func(c notebook.Capability, want string, least, most time.Duration) {
			t.Helper()
			start := time.Now()
			in := o.input(c, lookAll)
			if took := time.Since(start); took < least || took > most {
				t.Errorf("%s took %s", c, took)
			}
			if string(in.Value) != want || (in.Refusal == nil) != (want != "") {
				t.Errorf("%s: %q, %+v", c, in.Value, in.Refusal)
			}
			if in.Refusal != nil && (in.Refusal.Code != notebook.CodeUnavailable || in.Refusal.Hint == "") {
				t.Errorf("%s: %+v", c, in.Refusal)
			}
		}
		asks("dir:/a", "dir:/a", 0, 0)
		asks("dir:/hangs", "", lookOutside, lookOutside)
		asks("dir:/a", "", 0, 0)
		asks("dir:/hangs", "", 0, 0)
		close(answers)
		synctest.Wait()
		asks("dir:/a", "dir:/a", 0, 0)
		asks("dir:/hangs", "dir:/hangs", 0, 0)
	})
}
