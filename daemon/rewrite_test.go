package daemon_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	osexec "os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"noted/daemon"
	"noted/daemon/daemontest"
	"noted/exec"
	"noted/notebook"
	"noted/store"
)

// betrayedVariable names the home that this program serves as another process,
// which is given the entry in a file of that home, to be killed.
const (
	betrayedVariable = "NOTED_TEST_BETRAYED"
	betrayal         = "betrayal.json"
)

type betrayalFile struct {
	Peer  notebook.DeviceID
	Entry notebook.Entry
}

// beBetrayed serves a home, takes an entry if there is one, and says on stdout
// when something of the log was committed.
func beBetrayed(dir string) {
	must := func(err error) {
		if err != nil {
			fmt.Println("error", err)
			os.Exit(1)
		}
	}
	home := daemon.Home{Config: dir, Data: dir, State: dir, Cache: dir, Runtime: dir}
	d, err := daemon.Open(daemon.Config{Home: home, Listen: []string{}, Exec: exec.Config{Slots: 2}})
	must(err)
	before := d.Heads()
	go func() { must(d.Serve(context.Background())) }()
	if file, err := os.ReadFile(filepath.Join(dir, betrayal)); err == nil {
		var b betrayalFile
		must(json.Unmarshal(file, &b))
		go func() { must(d.Accept(context.Background(), b.Peer, []notebook.Entry{b.Entry})) }()
	}
	for reflect.DeepEqual(d.Heads(), before) {
		time.Sleep(100 * time.Microsecond)
	}
	fmt.Println("committed")
	select {}
}

// betrayed are a laptop and what a tablet signed: on each page the tablet wrote
// first and the laptop after it, and two lets all of that fall.
func betrayed(t *testing.T, pages int) (w *daemontest.World, thief *daemontest.Thief, two notebook.Entry) {
	t.Helper()
	w = daemontest.Loopback(t, "laptop", "tablet")
	w.Pair("laptop", "tablet")
	laptop := w.As("laptop")
	for i := range pages {
		laptop.Types(fmt.Sprint("Page ", i), "page\n")
	}
	w.Settle()
	thief = w.Device("tablet").Stolen()
	id := func(i int) notebook.PageID { return laptop.Page(fmt.Sprint("Page ", i)).ID }
	one, two := twoFaced(thief, id(0), false, "page\ntheirs\n", "page\nother\n")
	thief.Keeps(one)
	entries := []notebook.Entry{one}
	for i := 1; i < pages; i++ {
		entries = append(entries, thief.Types(id(i), "page\ntheirs\n"))
	}
	if err := thief.Gives(w.Device("laptop"), entries...); err != nil {
		t.Fatal(err)
	}
	for i := range pages {
		laptop.Types(fmt.Sprint("Page ", i), "page\ntheirs\nand mine\n")
	}
	return w, thief, two
}

// lostPages are the pages of which something is to be written again.
func lostPages(t *testing.T, d *daemontest.Device) (n int) {
	t.Helper()
	err := d.Reads(func(tx *store.Tx) error {
		for _, err := range tx.All(store.Lost, nil) {
			if err != nil {
				return err
			}
			n++
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// TestI12LostTextSurvivesKill kills a daemon right after a history fell, and
// again while it writes what it had lost by that: in the end all of it is
// there, once.
func TestI12LostTextSurvivesKill(t *testing.T) {
	const pages = 24
	w, thief, two := betrayed(t, pages)
	d := w.Device("laptop")
	d.Stops()
	file, err := json.Marshal(betrayalFile{Peer: thief.ID, Entry: two})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(d.Home.Data, betrayal), file, 0o600); err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	left := []int{}
	for range 2 { // it takes the entry; it writes the first page again
		cmd := osexec.Command(self)
		cmd.Env = append(os.Environ(), betrayedVariable+"="+d.Home.Data)
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		said, err := bufio.NewReader(out).ReadString('\n')
		if said != "committed\n" {
			t.Errorf("it says %q, %v", said, err)
		}
		if err := cmd.Process.Kill(); err != nil {
			t.Error(err)
		}
		_ = cmd.Wait() // it was killed
		left = append(left, lostPages(t, d))
		for err := range daemon.Check(d.Home) {
			t.Errorf("with %v pages to be written again: %v", left, err)
		}
	}
	if left[0] == 0 || left[1] == 0 || left[1] == left[0] {
		t.Errorf("after each kill %v pages were to be written again: nothing was tested", left)
	}
	d.Starts()
	everythingOnce(t, w, pages)
}

// everythingOnce waits until what the laptop had lost is written again.
func everythingOnce(t *testing.T, w *daemontest.World, pages int) {
	t.Helper()
	laptop := w.As("laptop")
	w.Eventually("all is written again", func() bool {
		for i := range pages {
			if !strings.Contains(laptop.Body(fmt.Sprint("Page ", i)), "mine") {
				return false
			}
		}
		return true
	})
	w.Device("laptop").Stops()
	if n := lostPages(t, w.Device("laptop")); n != 0 {
		t.Errorf("%d pages are to be written again", n)
	}
	w.Device("laptop").Starts()
	laptop = w.As("laptop")
	for i := range pages {
		if body := laptop.Body(fmt.Sprint("Page ", i)); strings.Count(body, "mine") != 1 || strings.Contains(body, "theirs") {
			t.Errorf("page %d reads %q", i, body)
		}
	}
}

// TestLostTextIsWrittenOnce: that it is asked for again while it is being
// written writes nothing twice.
func TestLostTextIsWrittenOnce(t *testing.T) {
	const pages = 24
	w, thief, two := betrayed(t, pages)
	laptop := w.As("laptop")
	given := make(chan error, 2)
	go func() { given <- thief.Gives(w.Device("laptop"), two) }()
	w.Eventually("something is written again", func() bool {
		return strings.Contains(strings.Join(laptop.Status().Notes, "\n"), "written again")
	})
	w.Device("laptop").Daemon.Rewrite()
	if err := within(t, given); err != nil {
		t.Error(err)
	}
	everythingOnce(t, w, pages)
}

// TestLostTextOfAPageThatIsNotWritten: where a page cannot be written, the
// person is told, its text is kept, and other pages do not wait for it.
func TestLostTextOfAPageThatIsNotWritten(t *testing.T) {
	const pages = 8
	w, thief, two := betrayed(t, pages)
	laptop := w.As("laptop")
	w.Device("laptop").Daemon.Unwritable(laptop.Page("Page 0").ID)
	if err := thief.Gives(w.Device("laptop"), two); err != nil {
		t.Fatal(err)
	}
	for i := 1; i < pages; i++ {
		laptop.Sees(fmt.Sprint("Page ", i), "page\nand mine\n")
	}
	laptop.Sees("Page 0", "page\nother\n")
	if notes := strings.Join(laptop.Status().Notes, "\n"); !strings.Contains(notes, `"Page 0" rested on a history`) || !strings.Contains(notes, "tried again at the next start") {
		t.Errorf("the person is told %q", notes)
	}
	w.Device("laptop").Restarts()
	everythingOnce(t, w, pages)
}
