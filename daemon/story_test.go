package daemon_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"noted/daemon/daemontest"
	"noted/notebook"
)

// lua is a page with one fence.
func lua(code string) string { return "# Sums\n\n```lua\n" + code + "\n```\n" }

const sums = "# Sums\n\n```lua\nreturn 6*7\n```\n"

func TestTwoDevicesShareAPage(t *testing.T) {
	w := daemontest.Loopback(t, "laptop", "phone")
	w.Pair("laptop", "phone")
	laptop, phone := w.As("laptop"), w.As("phone")

	laptop.Types("Sums", sums)
	w.Settle()
	phone.Sees("Sums", sums)
	laptop.Stands("Sums", 1, "local")
	phone.Stands("Sums", 1, "device:laptop")
	if run := phone.Runs("Sums", 1); run.Result.Output != "42\n" {
		t.Errorf("%+v", run.Result)
	}

	// Across restarts of both, each finds the other again.
	w.Device("laptop").Restarts()
	w.Device("phone").Restarts()
	w.As("phone").Edits("Sums", "# Sums", "# Our sums")
	w.Settle()
	w.As("laptop").Sees("Sums", strings.Replace(sums, "# Sums", "# Our sums", 1))
	w.As("laptop").Stands("Sums", 1, "local")
	w.Same("laptop", "phone")
}

// TestI12OfflineEditsConverge has three devices edit one page while none hears
// of another, and then the same again at once, and compares all that they keep.
func TestI12OfflineEditsConverge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		names := []string{"laptop", "phone", "tablet"}
		w := daemontest.Bubble(t, names...)
		w.Pair("laptop", "phone", "tablet")
		w.As("laptop").Types("Plan", "# Plan\n\none\ntwo\nthree\n")
		w.Settle()

		cut := func(each func(x, y string)) {
			each("laptop", "phone")
			each("laptop", "tablet")
			each("phone", "tablet")
		}
		cut(w.Cut)
		w.As("laptop").Edits("Plan", "one\n", "one, says laptop\n")
		w.As("phone").Edits("Plan", "two\n", "")
		w.As("phone").Types("Sums", sums)
		w.As("tablet").Edits("Plan", "two\n", "two, says tablet\n")
		w.As("tablet").Types("Sums", lua("return 'the same title'"))
		if w.As("laptop").Body("Sums") != "" || strings.Contains(w.As("phone").Body("Plan"), "says") {
			t.Fatal("the devices were not apart")
		}
		cut(w.Heal)
		w.Settle()
		plan := w.As("laptop").Body("Plan")
		for _, line := range []string{"one, says laptop\n", ", says tablet"} {
			if !strings.Contains(plan, line) {
				t.Errorf("%q is lost: %q", line, plan)
			}
		}
		w.Same(names...)

		// Now all at once, online.
		done := make(chan struct{})
		for i, name := range names {
			go func() {
				defer func() { done <- struct{}{} }()
				for n := range 10 {
					h := w.As(name)
					p := h.Page("Plan")
					_, err := h.Client.Append(context.Background(), p.ID, fmt.Sprintf("%s %d %d", name, i, n), "")
					if err != nil {
						t.Errorf("%s: %v", name, err)
					}
				}
			}()
		}
		for range names {
			<-done
		}
		w.Settle()
		for _, name := range names {
			if got := strings.Count(w.As("laptop").Body("Plan"), name+" "); got != 10 {
				t.Errorf("%d of the 10 lines of %s are there", got, name)
			}
		}
		w.Same(names...)
	})
}

// TestDeletedAndEditedAtOnce: text that a deletion had not seen brings the page
// back, and says so on both devices.
func TestDeletedAndEditedAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := daemontest.Bubble(t, "laptop", "phone")
		w.Pair("laptop", "phone")
		laptop, phone := w.As("laptop"), w.As("phone")
		laptop.Types("Plan", "one\n")
		laptop.Types("Gone", "one\n")
		w.Settle()
		plan, gone := laptop.Page("Plan").ID, laptop.Page("Gone").ID

		w.Cut("laptop", "phone")
		for _, id := range []notebook.PageID{plan, gone} {
			if err := laptop.Client.Delete(context.Background(), id); err != nil {
				t.Fatal(err)
			}
		}
		phone.Edits("Plan", "one", "two")
		w.Heal("laptop", "phone")
		w.Settle()
		for _, h := range []*daemontest.Hand{laptop, phone} {
			if p := h.Page("Plan"); p.Body != "two\n" || len(p.Notes) == 0 || !strings.Contains(p.Notes[0], "deleted on one device") {
				t.Errorf("%s: %q %q", h.Name, p.Body, p.Notes)
			}
			if _, err := h.Client.Page(context.Background(), "Gone"); daemontest.CodeOf(err) != notebook.CodeNotFound {
				t.Errorf("%s: the deleted page: %v", h.Name, err)
			}
		}
		w.Same("laptop", "phone")
	})
}

// within is what comes through c, if it comes in time.
func within[T any](t *testing.T, c <-chan T) T {
	t.Helper()
	select {
	case v := <-c:
		return v
	case <-time.After(daemontest.Patience):
		t.Fatal("nothing came")
		panic("unreachable")
	}
}
