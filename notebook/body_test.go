package notebook

import (
	"bytes"
	"slices"
	"strings"
	"testing"
)

func titleSet() *Set   { return &Set{Register: RegisterTitle, Text: "Groceries"} }
func deletedSet() *Set { return &Set{Register: RegisterDeleted, Flag: true} }

func result() *Result {
	return &Result{
		Fence: FenceID(page(0xf1)), Closure: hash(0xc1), Inputs: hash(0x11), Rung: Strict, Verdict: OK,
		Output: "begin…end\n", Dropped: 70000, Head: 5, Started: 1796000000000, Took: 1500, Peak: 30 << 20,
		Limits: DefaultLimits, Layers: []string{"seccomp", "landlock"},
	}
}

func genesis() *RosterChange {
	return &RosterChange{Act: RosterGenesis, Device: device(0xd1), Name: "laptop", Role: RoleMember, Salt: [16]byte(page(0x5a))}
}

func add() *RosterChange {
	return &RosterChange{Act: RosterAdd, Device: device(0xd2), Name: "phone", Role: RoleMember, Number: 1, Joiner: bytes.Repeat([]byte{0x51}, 64)}
}

func remove() *RosterChange {
	return &RosterChange{
		Act: RosterRemove, Device: device(0xd2), Keep: []DeviceID{device(0xd3), device(0xd4)},
		Cut: []Head{head(0xd2, 0xe1, 9, 1), head(0xd2, 0xe2, 4, 2)},
	}
}

func cut() *RosterChange {
	return &RosterChange{Act: RosterCut, Device: device(0xd2), Cut: []Head{head(0xd2, 0xe1, 9, 1)}}
}

func rename() *RosterChange {
	return &RosterChange{Act: RosterRename, Device: device(0xd1), Name: "old laptop"}
}

// roundTrip encodes v, compares it with its golden file, and reads it back.
func roundTrip[T any](t *testing.T, name string, v *T, encode func(*T) ([]byte, error), decode func([]byte) (*T, error)) {
	t.Helper()
	b, err := encode(v)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	golden(t, name, b)
	back, err := decode(b)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	if again, err := encode(back); err != nil || !bytes.Equal(again, b) {
		t.Errorf("%s: decoded and encoded again: %x, %v", name, again, err)
	}
	if back, err := decode(append(b, 0)); err == nil || back != nil {
		t.Errorf("%s: a byte more is accepted", name)
	}
}

func TestBodyBytesAreForEver(t *testing.T) {
	roundTrip(t, "set-title", titleSet(), EncodeSet, DecodeSet)
	roundTrip(t, "set-deleted", deletedSet(), EncodeSet, DecodeSet)
	roundTrip(t, "result", result(), EncodeResult, DecodeResult)
	roundTrip(t, "roster-genesis", genesis(), EncodeRosterChange, DecodeRosterChange)
	roundTrip(t, "roster-add", add(), EncodeRosterChange, DecodeRosterChange)
	roundTrip(t, "roster-remove", remove(), EncodeRosterChange, DecodeRosterChange)
	roundTrip(t, "roster-cut", cut(), EncodeRosterChange, DecodeRosterChange)
	roundTrip(t, "roster-rename", rename(), EncodeRosterChange, DecodeRosterChange)
}

// change is one change of a body that is accepted.
type change[T any] struct {
	name string
	from func() *T
	edit func(*T)
	want string // part of the error; empty where it stays accepted
}

func checkChanges[T any](t *testing.T, changes []change[T], encode func(*T) ([]byte, error), decode func([]byte) (*T, error)) {
	t.Helper()
	for _, c := range changes {
		v := c.from()
		if _, err := encode(v); err != nil {
			t.Fatalf("%s: the body it starts from: %v", c.name, err)
		}
		c.edit(v)
		_, err := encode(v)
		hostile, failed := encoding.Marshal(v) // a peer does not use our encoder
		if failed != nil {
			t.Fatalf("%s: %v", c.name, failed)
		}
		back, derr := decode(hostile)
		if c.want == "" {
			if err != nil || derr != nil {
				t.Errorf("%s: %v, %v", c.name, err, derr)
			}
			continue
		}
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: encoded: error %v, want one with %q", c.name, err, c.want)
		}
		if derr == nil || back != nil {
			t.Errorf("%s: decoded to %+v", c.name, back)
		}
	}
}

func TestSetFieldsGoTogether(t *testing.T) {
	checkChanges(t, []change[Set]{
		{"no register", titleSet, func(s *Set) { s.Register = 0 }, "unknown register"},
		{"register of the future", titleSet, func(s *Set) { s.Register = 4 }, "unknown register"},
		{"purge that is none", titleSet, func(s *Set) { *s = Set{Register: RegisterPurged} }, "another register"},
		{"purge with a text", titleSet, func(s *Set) { *s = Set{Register: RegisterPurged, Flag: true, Text: "x"} }, "another register"},
		{"purge", titleSet, func(s *Set) { *s = Set{Register: RegisterPurged, Flag: true} }, ""},
		{"empty title", titleSet, func(s *Set) { s.Text = "" }, "empty"},
		{"title of two lines", titleSet, func(s *Set) { s.Text = "a\nb" }, "one line"},
		{"title too long", titleSet, func(s *Set) { s.Text = strings.Repeat("x", MaxTitle+1) }, "longer"},
		{"title with a flag", titleSet, func(s *Set) { s.Flag = true }, "other register"},
		{"deletion with a text", deletedSet, func(s *Set) { s.Text = "x" }, "other register"},
		{"longest title", titleSet, func(s *Set) { s.Text = strings.Repeat("x", MaxTitle) }, ""},
		{"undeleted", deletedSet, func(s *Set) { s.Flag = false }, ""},
	}, EncodeSet, DecodeSet)
}

func TestResultFieldsGoTogether(t *testing.T) {
	checkChanges(t, []change[Result]{
		{"no fence", result, func(r *Result) { r.Fence = FenceID{} }, "no fence"},
		{"no closure", result, func(r *Result) { r.Closure = Hash{} }, "no closure"},
		{"rung none", result, func(r *Result) { r.Rung = NoRung }, "rung"},
		{"rung of the future", result, func(r *Result) { r.Rung = Host + 1 }, "rung"},
		{"no verdict", result, func(r *Result) { r.Verdict = NoVerdict }, "outcome"},
		{"verdict of the future", result, func(r *Result) { r.Verdict = Cancelled + 1 }, "outcome"},
		{"output not UTF-8", result, func(r *Result) { r.Output = "begin\xff" }, "UTF-8"},
		{"head before the output", result, func(r *Result) { r.Head = -1 }, "head"},
		{"head behind the output", result, func(r *Result) { r.Head = len(r.Output) + 1 }, "head"},
		{"head within a character", result, func(r *Result) { r.Head = 6 }, "head"},
		{"negative drop", result, func(r *Result) { r.Dropped = -1 }, "negative"},
		{"negative time taken", result, func(r *Result) { r.Took = -1 }, "negative"},
		{"negative peak", result, func(r *Result) { r.Peak = -1 }, "negative"},
		{"before 1970", result, func(r *Result) { r.Started = -1 }, "years"},
		{"after 9999", result, func(r *Result) { r.Started = MaxTime + 1 }, "years"},
		{"long error", result, func(r *Result) { r.Error = strings.Repeat("x", maxError+1) }, "error message"},
		{"error not UTF-8", result, func(r *Result) { r.Error = "\xff" }, "UTF-8"},
		{"no time limit", result, func(r *Result) { r.Limits.Time = 0 }, "without a limit"},
		{"no memory limit", result, func(r *Result) { r.Limits.Memory = 0 }, "without a limit"},
		{"no output limit", result, func(r *Result) { r.Limits.Output = 0 }, "without a limit"},
		{"negative source limit", result, func(r *Result) { r.Limits.Source = -1 }, "without a limit"},
		{"too many layers", result, func(r *Result) { r.Layers = slices.Repeat([]string{"x"}, maxLayers+1) }, "layers"},
		{"layer with an escape", result, func(r *Result) { r.Layers[0] = "\x1b[2J" }, "layer"},
		{"larger than a result may be", result, func(r *Result) { r.Output += strings.Repeat("x", MaxResult) }, "at most"},
		{"largest kept output", result, func(r *Result) { r.Output = strings.Repeat("x", DefaultLimits.Output); r.Head = len(r.Output) / 2 }, ""},
		{"nothing but a failure", result, func(r *Result) { r.Output, r.Head, r.Dropped, r.Verdict, r.Error = "", 0, 0, Failed, "line 3: boom" }, ""},
		{"no layers", result, func(r *Result) { r.Layers = nil }, ""},
	}, EncodeResult, DecodeResult)
}

func TestRosterFieldsGoTogether(t *testing.T) {
	checkChanges(t, []change[RosterChange]{
		{"no act", genesis, func(c *RosterChange) { c.Act = 0 }, "unknown roster act"},
		{"act of the future", genesis, func(c *RosterChange) { c.Act = 6 }, "unknown roster act"},
		{"no device", add, func(c *RosterChange) { c.Device = DeviceID{} }, "no device"},
		{"nameless", add, func(c *RosterChange) { c.Name = "" }, "empty"},
		{"name with a newline", rename, func(c *RosterChange) { c.Name = "a\nb" }, "control"},
		{"name too long", rename, func(c *RosterChange) { c.Name = strings.Repeat("x", MaxLabel+1) }, "97 bytes"},
		{"name not UTF-8", rename, func(c *RosterChange) { c.Name = "\xff" }, "UTF-8"},
		{"founded by a hub", genesis, func(c *RosterChange) { c.Role = RoleHub }, "founded by a member"},
		{"founded without role", genesis, func(c *RosterChange) { c.Role = 0 }, "founded by a member"},
		{"founded with a number", genesis, func(c *RosterChange) { c.Number = 1 }, "no use for"},
		{"founded with a signature", genesis, func(c *RosterChange) { c.Joiner = make([]byte, 64) }, "no use for"},
		{"added without role", add, func(c *RosterChange) { c.Role = 0 }, "unknown role"},
		{"added with the role of the future", add, func(c *RosterChange) { c.Role = 3 }, "unknown role"},
		{"added for the 0th time", add, func(c *RosterChange) { c.Number = 0 }, "counted from 1"},
		{"added without consent", add, func(c *RosterChange) { c.Joiner = nil }, "signature"},
		{"added with half a signature", add, func(c *RosterChange) { c.Joiner = c.Joiner[:32] }, "signature"},
		{"added with salt", add, func(c *RosterChange) { c.Salt[0] = 1 }, "no use for"},
		{"added with a cut", add, func(c *RosterChange) { c.Cut = []Head{head(0xd2, 1, 1, 1)} }, "no use for"},
		{"added and kept", add, func(c *RosterChange) { c.Keep = []DeviceID{device(9)} }, "no use for"},
		{"removed with a name", remove, func(c *RosterChange) { c.Name = "x" }, "no use for"},
		{"removed with a role", remove, func(c *RosterChange) { c.Role = RoleMember }, "no use for"},
		{"keeps whom it removes", remove, func(c *RosterChange) { c.Keep = []DeviceID{c.Device} }, "kept devices"},
		{"keeps nobody", remove, func(c *RosterChange) { c.Keep[0] = DeviceID{} }, "kept devices"},
		{"keeps one twice", remove, func(c *RosterChange) { c.Keep[1] = c.Keep[0] }, "kept devices"},
		{"keeps in any order", remove, func(c *RosterChange) { slices.Reverse(c.Keep) }, "kept devices"},
		{"cut in any order", remove, func(c *RosterChange) { slices.Reverse(c.Cut) }, "sorted"},
		{"cut of another device", cut, func(c *RosterChange) { c.Cut[0].Position.Device = device(0xd3) }, "another device"},
		{"cut at place 0", cut, func(c *RosterChange) { c.Cut[0].Position.Seq = 0 }, "counts from 1"},
		{"cut without hash", cut, func(c *RosterChange) { c.Cut[0].Hash = Hash{} }, "no hash"},
		{"cut and kept", cut, func(c *RosterChange) { c.Keep = []DeviceID{device(9)} }, "no use for"},
		{"renamed with a cut", rename, func(c *RosterChange) { c.Cut = []Head{head(0xd1, 1, 1, 1)} }, "no use for"},
		{"larger than a body may be", remove, func(c *RosterChange) {
			c.Cut = nil
			for i := range 100 {
				c.Cut = append(c.Cut, head(0xd2, byte(i+1), 1, 1))
			}
		}, "at most"},
		{"a hub is added", add, func(c *RosterChange) { c.Role = RoleHub }, ""},
		{"paired again", add, func(c *RosterChange) { c.Number = 2 }, ""},
		{"removed with all that it added", remove, func(c *RosterChange) { c.Keep = nil }, ""},
		{"nothing was taken of it", cut, func(c *RosterChange) { c.Cut = nil }, ""},
	}, EncodeRosterChange, DecodeRosterChange)
}

func FuzzDecodeBodies(f *testing.F) {
	seed := func(b []byte, err error) {
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	seed(EncodeSet(titleSet()))
	seed(EncodeSet(deletedSet()))
	seed(EncodeResult(result()))
	seed(EncodeRosterChange(genesis()))
	seed(EncodeRosterChange(add()))
	seed(EncodeRosterChange(remove()))
	f.Fuzz(func(t *testing.T, b []byte) {
		if v, err := DecodeSet(b); err == nil {
			again, err := EncodeSet(v)
			same(t, b, again, err)
		}
		if v, err := DecodeResult(b); err == nil {
			again, err := EncodeResult(v)
			same(t, b, again, err)
		}
		if v, err := DecodeRosterChange(b); err == nil {
			again, err := EncodeRosterChange(v)
			same(t, b, again, err)
		}
		var e Entry
		if err := Unmarshal(b, &e, MaxEntry); err == nil {
			again, err := Marshal(e)
			same(t, b, again, err)
		}
	})
}

func same(t *testing.T, b, again []byte, err error) {
	t.Helper()
	if err != nil || !bytes.Equal(again, b) {
		t.Errorf("%x is accepted and encoded again as %x, %v", b, again, err)
	}
}
