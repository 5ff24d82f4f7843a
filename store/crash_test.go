package store_test

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"noted/notebook"
	"noted/store"
	"noted/store/storetest"
)

// The test binary started with this variable is a child of a test: "role path".
const childVariable = "NOTED_STORE_TEST_CHILD"

func TestMain(m *testing.M) {
	role, path, ok := strings.Cut(os.Getenv(childVariable), " ")
	if !ok {
		os.Exit(m.Run())
	}
	if err := map[string]func(string) error{"write": childWrites, "hold": childHolds, "fill": childFills}[role](path); err != nil {
		fmt.Println("error", err)
		os.Exit(1)
	}
	os.Exit(0)
}

// child starts this test binary in a role. The test's end kills it.
func child(t *testing.T, role, path string) (*exec.Cmd, *bufio.Scanner) {
	t.Helper()
	exe, err := os.Executable()
	must(t, err)
	cmd := exec.CommandContext(t.Context(), exe)
	cmd.Env = append(os.Environ(), childVariable+"="+role+" "+path)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	must(t, err)
	must(t, cmd.Start())
	return cmd, bufio.NewScanner(out)
}

// childWrites writes from several goroutines until it is killed, and says
// what was acknowledged only after it was.
func childWrites(path string) error {
	db, err := store.Open(path, store.Options{Timeout: 5 * time.Second})
	if err != nil {
		return err
	}
	fmt.Println("open")
	errs := make(chan error)
	for w := range byte(4) {
		go func() {
			epoch := rand.Uint64()
			for seq := uint64(1); ; seq++ {
				pos, e := entry(w+1, seq, strings.Repeat("body ", rand.IntN(1000)))
				binary.BigEndian.PutUint64(pos.Position.Epoch[:], epoch)
				var n uint64
				err := db.Update(func(tx *store.Tx) (err error) {
					if n, err = tx.PutEntry(pos, notebook.PageID{w}, e, ""); err != nil {
						return err
					}
					if seq > 3 {
						old := pos
						old.Position.Seq -= 3
						err = tx.DropBody(old)
					}
					return errors.Join(err, tx.Put(store.Infos, page(int(w)), store.Number(n)))
				})
				if err != nil {
					errs <- err
					return
				}
				if _, err := os.Stdout.WriteString(fmt.Sprintf("ack %d %d\n", w, n)); err != nil {
					errs <- err
					return
				}
			}
		}()
	}
	return <-errs
}

func TestKill9LosesNothingAcknowledged(t *testing.T) {
	path := filepath.Join(t.TempDir(), "noted.db")
	newest := map[int]uint64{} // ordinals that were acknowledged, by writer
	acknowledged := 0
	for kill := range 12 {
		cmd, lines := child(t, "write", path)
		timer := time.AfterFunc(time.Duration(rand.IntN(120))*time.Millisecond, func() { _ = cmd.Process.Kill() })
		for lines.Scan() {
			switch f := strings.Fields(lines.Text()); {
			case len(f) == 3 && f[0] == "ack":
				w, err := strconv.Atoi(f[1])
				n, err2 := strconv.ParseUint(f[2], 10, 64)
				must(t, errors.Join(err, err2))
				newest[w] = n
				acknowledged++
			case lines.Text() != "open":
				t.Fatalf("the child says %q", lines.Text())
			}
		}
		timer.Stop()
		if err := cmd.Wait(); err == nil || cmd.ProcessState.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
			t.Fatalf("the child ended by itself: %v", err)
		}

		db, err := store.Open(path, store.Options{})
		must(t, err)
		storetest.Check(t, db)
		must(t, db.View(func(tx *store.Tx) error {
			for w, n := range newest {
				info, err := tx.Get(store.Infos, page(w))
				if err != nil || len(info) != 8 || binary.BigEndian.Uint64(info) < n {
					t.Errorf("kill %d: writer %d was told that entry %d is kept; its info is of %x, %v", kill, w, n, info, err)
				}
				if last := tx.LastOrdinal(); last < n {
					t.Errorf("kill %d: entry %d was acknowledged, the last is %d", kill, n, last)
				}
				for s, err := range tx.Entries(n) {
					if err != nil || s.Ordinal != n || s.Page != (notebook.PageID{byte(w)}) {
						t.Errorf("kill %d: entry %d came back as %v, %v", kill, n, s.Position, err)
					}
					break
				}
			}
			return nil
		}))
		must(t, db.Close())
	}
	if acknowledged < 100 {
		t.Errorf("only %d writes were acknowledged: the test proved nothing", acknowledged)
	}
	t.Logf("12 kills, %d acknowledged writes", acknowledged)
}

// childHolds holds the store until its standard output is closed.
func childHolds(path string) error {
	db, err := store.Open(path, store.Options{})
	if err != nil {
		return err
	}
	fmt.Println("open")
	time.Sleep(time.Minute)
	return db.Close()
}

func TestTheHolderIsNamed(t *testing.T) {
	path := filepath.Join(t.TempDir(), "noted.db")
	cmd, lines := child(t, "hold", path)
	if !lines.Scan() || lines.Text() != "open" {
		t.Fatalf("the child says %q", lines.Text())
	}
	start := time.Now()
	_, err := store.Open(path, store.Options{Timeout: 100 * time.Millisecond})
	var e *notebook.Error
	if !errors.As(err, &e) || !strings.Contains(e.Message, fmt.Sprintf("in use by process %d", cmd.Process.Pid)) {
		t.Errorf("the error is %v, the holder %d", err, cmd.Process.Pid)
	}
	if took := time.Since(start); took > 5*time.Second {
		t.Errorf("it took %v to say so", took)
	}
	must(t, cmd.Process.Kill())
	_ = cmd.Wait()
	storetest.OpenAt(t, path) // and then it can be had
}

// childFills writes until the disk is full, which a limit on the size of files
// stands for, and then checks that the store has stopped for good.
func childFills(path string) error {
	db, err := store.Open(path, store.Options{})
	if err != nil {
		return err
	}
	limit := syscall.Rlimit{Cur: 6 << 20, Max: 1 << 40}
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &limit); err != nil {
		return err
	}
	var wg sync.WaitGroup
	var mu sync.Mutex
	var refusal error
	for w := range 4 {
		wg.Go(func() {
			for i := range 2000 {
				err := db.Update(put(store.Infos, page(w*2000+i), strings.Repeat("info ", 1000)))
				if err != nil {
					mu.Lock()
					refusal = err
					mu.Unlock()
					return
				}
				_, _ = os.Stdout.WriteString(fmt.Sprintf("ack %d\n", w*2000+i))
			}
		})
	}
	wg.Wait()
	var e *notebook.Error
	if !errors.As(refusal, &e) || !strings.Contains(e.Message, "stopped writing") {
		return fmt.Errorf("the full disk was reported as %w", refusal)
	}
	limit.Cur = limit.Max // there is room again, and still
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &limit); err != nil {
		return err
	}
	if err := db.Update(put(store.Infos, page(1), "small")); !errors.As(err, &e) || e.Hint == "" {
		return fmt.Errorf("a later update: %w", err)
	}
	if err := db.View(func(tx *store.Tx) error { _, err := tx.Get(store.Infos, page(0)); return err }); err != nil {
		return fmt.Errorf("reading after the failure: %w", err)
	}
	return db.Close()
}

func TestAFullDiskStopsTheStoreAndLosesNothing(t *testing.T) {
	path := filepath.Join(t.TempDir(), "noted.db")
	cmd, lines := child(t, "fill", path)
	var acknowledged []int
	for lines.Scan() {
		n, err := strconv.Atoi(strings.TrimPrefix(lines.Text(), "ack "))
		if err != nil {
			t.Fatalf("the child says %q", lines.Text())
		}
		acknowledged = append(acknowledged, n)
	}
	must(t, cmd.Wait())
	if len(acknowledged) < 10 {
		t.Fatalf("only %d writes before the disk was full", len(acknowledged))
	}
	db := storetest.OpenAt(t, path)
	for _, n := range acknowledged {
		if got := get(t, db, store.Infos, page(n)); len(got) != 5000 {
			t.Errorf("page %d was acknowledged and holds %d bytes", n, len(got))
		}
	}
	must(t, db.Update(put(store.Infos, page(1), "small")))
}
