package exec

import (
	"context"
	"encoding/binary"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
	"unicode/utf8"

	"golang.org/x/sys/unix"

	"noted/notebook"
)

// flooder is a worker that was taken over and writes without end. It keeps in a
// file how many blocks it has written.
const flooder = "noted-test-flooder"

// floodBlock is what a pipe takes in one piece or not at all.
const floodBlock = 4096

func beFlooder() int {
	f, err := os.OpenFile(os.Args[1], os.O_RDWR, 0)
	if err != nil {
		return 1
	}
	said, err := unix.Mmap(int(f.Fd()), 0, 8, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return 1
	}
	block := []byte(strings.Repeat("\x00\xff\x1b[2J", floodBlock))[:floodBlock]
	for n := uint64(1); ; n++ {
		if _, err := unix.Write(fdOutput, block); err != nil {
			return 1
		}
		binary.LittleEndian.PutUint64(said, n)
	}
}

// peakSince sets back what this process is said to have needed at most; the
// function tells how much more than now it needed since.
func peakSince(t *testing.T) func() int64 {
	t.Helper()
	if err := os.WriteFile("/proc/self/clear_refs", []byte("5"), 0); err != nil {
		t.Fatal(err)
	}
	peak := func() int64 {
		v, err := readStatus("/proc/self/status", "VmHWM")
		if err != nil {
			t.Fatal(err)
		}
		return int64(v[0])
	}
	before := peak()
	return func() int64 { return peak() - before }
}

// floodMemory is what floods may cost the process that takes them.
const floodMemory = 4 << 20

// TestCase36AFloodIsCountedToTheByte: of a worker that writes without end the head
// and the tail are kept, every byte that it got rid of is counted, and it is
// killed.
func TestCase36AFloodIsCountedToTheByte(t *testing.T) {
	limits := notebook.Limits{Time: time.Minute, Memory: 1 << 30, Output: 80 << 10, Source: 1 << 10}
	grown := peakSince(t)
	for range 3 {
		file := filepath.Join(t.TempDir(), "count")
		if err := os.WriteFile(file, make([]byte, 8), 0o600); err != nil {
			t.Fatal(err)
		}
		w := fake(t, limits, "/proc/self/exe", flooder, file)
		answered := make(chan ran, 1)
		go func() { answered <- w.run(context.Background(), &request{source: "x"}) }()
		select {
		case r := <-answered:
			b, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			wrote := int64(binary.LittleEndian.Uint64(b)) * floodBlock
			text, head, dropped := r.output.text()
			// A block may be in the pipe that was not counted any more.
			if all := int64(len(text)) + dropped; r.verdict != notebook.Output || all != wrote && all != wrote+floodBlock {
				t.Errorf("%v: %d kept and %d dropped of %d", r.verdict, len(text), dropped, wrote)
			}
			if len(text) != limits.Output || head != limits.Output/2 || !utf8.ValidString(text) || dropped < (floodFactor-1)*int64(limits.Output) {
				t.Errorf("%d kept, %d of them the head, %d dropped", len(text), head, dropped)
			}
			if err := syscall.Kill(r.pid, 0); err == nil {
				t.Error("it is there when the answer is")
			}
		case <-time.After(30 * time.Second):
			t.Fatal("no answer")
		}
	}
	if n := grown(); n > floodMemory && !raceDetector {
		t.Errorf("it took %d KiB", n>>10)
	}
}

// TestCase39WhatIsWrittenIsKeptOrCounted: a fence of each language counts what it
// writes, and so does noted, however little of it is kept.
func TestCase39WhatIsWrittenIsKeptOrCounted(t *testing.T) {
	for _, l := range programs() {
		a := conformance[l.name]
		limits := a.limits
		limits.Time = 20 * time.Second
		r := newRunner(t, Config{Limits: limits})
		for _, most := range []int{maxOutput, 64 << 10, 40_001} {
			j := strictJob(limits, a.counts)
			j.language, j.limits.Output = l.name, most
			res := runJob(t, r, j)
			lines := strings.Split(strings.TrimSuffix(res.Output, "\n"), "\n")
			wrote, err := strconv.ParseInt(lines[len(lines)-1], 10, 64)
			if res.Verdict != notebook.OK || err != nil || int64(len(res.Output))+res.Dropped != wrote || wrote <= int64(most) {
				t.Errorf("%s: %v %q: %d kept of at most %d, %d dropped, %d written (%v)", l.name, res.Verdict, res.Error, len(res.Output), most, res.Dropped, wrote, err)
			}
			if len(res.Output) != most || res.Head != most/2 {
				t.Errorf("%s: %d kept and %d of them the head, of %d", l.name, len(res.Output), res.Head, most)
			}
		}
	}
	// To the byte of the most that a fence may write.
	l := quick
	l.Output = 32 << 10
	r := newRunner(t, Config{Limits: l})
	res := runSource(t, r, l, `for i = 1, 524288 / 64 do print(("x"):rep(63)) end`)
	if res.Verdict != notebook.OK || int64(len(res.Output))+res.Dropped != 524288 {
		t.Errorf("%v: %d kept and %d dropped", res.Verdict, len(res.Output), res.Dropped)
	}
	if res := runSource(t, r, l, `for i = 1, 524288 / 64 do print(("x"):rep(63)) end print()`); res.Verdict != notebook.Output && res.Verdict != notebook.OK {
		t.Errorf("%v", res.Verdict)
	} else if int64(len(res.Output))+res.Dropped != 524289 {
		t.Errorf("%v: %d kept and %d dropped", res.Verdict, len(res.Output), res.Dropped)
	}
}

// TestCase36NoiseIsReadable: whatever bytes a fence writes, what is kept of them
// is text, the head and the tail are where they were, and taking it costs this
// process no memory.
func TestCase36NoiseIsReadable(t *testing.T) {
	l := quick
	l.Time = time.Minute
	r := newRunner(t, Config{Limits: l})
	grown := peakSince(t)
	for _, c := range []struct {
		name, source string
		verdict      notebook.Verdict
		head, tail   string
	}{
		{"one line of a gigabyte", `print(("x"):rep(100)) while true do print(("a"):rep(3e7)) end`, notebook.Output, strings.Repeat("x", 100) + "\naaaa", "aaaa"},
		{"every byte there is", `local t = {} for i = 0, 255 do t[i + 1] = string.char(i) end local s = table.concat(t) for i = 1, 2000 do print(s) end print("end")`, notebook.OK, "\x00\x01\x02", "end\n"},
		{"what terminals obey", `for i = 1, 50000 do print("\27[2J\27]0;owned\7\27[31m") end print("end")`, notebook.OK, "\x1b[2J", "end\n"},
		{"characters cut in half", `for i = 1, 50000 do print("€") end print("end")`, notebook.OK, "€\n", "end\n"},
		{"nothing but line ends", `for i = 1, 4e5 do print() end`, notebook.OK, "\n\n", "\n\n"},
	} {
		res := runSource(t, r, l, c.source)
		if res.Verdict != c.verdict || !utf8.ValidString(res.Output) || !strings.HasPrefix(res.Output, c.head) || !strings.HasSuffix(res.Output, c.tail) {
			t.Errorf("%s: %v %q: %.40q … %q", c.name, res.Verdict, res.Error, res.Output, res.Output[max(0, len(res.Output)-20):])
		}
		if n := len(res.Output); n > l.Output || n < l.Output-2*utf8.UTFMax || res.Dropped == 0 {
			t.Errorf("%s: %d kept and %d dropped", c.name, n, res.Dropped)
		}
	}
	if n := grown(); n > floodMemory && !raceDetector {
		t.Errorf("it took %d KiB", n>>10)
	}
}
