package crdt

import (
	"testing"

	"noted/notebook"
)

// What a device had done on top of a change that is gone is found again, at the
// place where it stood; what others had done is not.
func TestLost(t *testing.T) {
	tablet, laptop := newReplica(t, 1), newReplica(t, 2)
	shared := laptop.edit(t, func(text editor) { must(t, text.Splice(0, 0, "one two three")) })
	tablet.pull(t, laptop, shared)
	gone := tablet.edit(t, func(text editor) { must(t, text.Splice(4, 0, "lie ")) })
	laptop.pull(t, tablet, gone)
	laptop.edit(t, func(text editor) {
		must(t, text.Splice(0, 4, ""))       // one
		must(t, text.Splice(4, 0, "and "))   // between lie and two
		must(t, text.Splice(17, 0, " four")) // at the end
	})
	after := NewPage(laptop.page.id)
	arrival, err := after.check(shared, laptop.author, laptop.epoch, sawAll)
	must(t, err)
	after.take(arrival, 1)
	losses := laptop.page.Lost(after, laptop.author.Device)
	if len(losses) != 1 || losses[0].Author != laptop.author || losses[0].Chars != len("and  four") {
		t.Fatalf("lost is %+v, of %q", losses, laptop.page.Text())
	}
	if got := apply(after.Text(), losses[0].Splices); got != "and two three four" {
		t.Errorf("done again it reads %q", got)
	}
	if losses := laptop.page.Lost(after, notebook.DeviceID{9}); len(losses) != 0 {
		t.Errorf("somebody else lost %+v", losses)
	}
	if losses := laptop.page.Lost(laptop.page, laptop.author.Device); len(losses) != 0 {
		t.Errorf("of what is there is lost %+v", losses)
	}
	if got := Inserted(gone); got != "lie " {
		t.Errorf("the change inserts %q", got)
	}
	if got := Inserted([]byte("noise")); got != "" {
		t.Errorf("noise inserts %q", got)
	}
}
