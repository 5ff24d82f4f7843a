package store

import (
	"bufio"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	bolt "go.etcd.io/bbolt"
)

// Whoever waits for the lock of a file that is replaced meanwhile would
// otherwise write into a file that nobody can open again.
func TestALockOfAReplacedFileIsNotKept(t *testing.T) {
	dir := t.TempDir()
	path, other := filepath.Join(dir, "noted.db"), filepath.Join(dir, "other.db")
	b, err := bolt.Open(path, 0o600, nil)
	if err != nil {
		t.Fatal(err)
	}
	type opened struct {
		b   *bolt.DB
		err error
	}
	waiting := make(chan opened)
	go func() {
		b, err := lockCurrent(path, 10*time.Second)
		waiting <- opened{b, err}
	}()
	time.Sleep(100 * time.Millisecond) // it has opened the file and waits for its lock
	fresh, err := bolt.Open(other, 0o600, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := fresh.Update(func(tx *bolt.Tx) error { _, err := tx.CreateBucket([]byte("fresh")); return err }); err != nil {
		t.Fatal(err)
	}
	if err := fresh.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(other, path); err != nil {
		t.Fatal(err)
	}
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	o := <-waiting
	if o.err != nil {
		t.Fatal(o.err)
	}
	defer o.b.Close()
	if err := o.b.View(func(tx *bolt.Tx) error {
		if tx.Bucket([]byte("fresh")) == nil {
			t.Error("the file that was replaced is the one that is open")
		}
		return nil
	}); err != nil {
		t.Error(err)
	}
}

func TestParseLocks(t *testing.T) {
	const lines = `1: POSIX  ADVISORY  WRITE 11 fe:00:42 0 EOF
2: FLOCK  ADVISORY  WRITE 12 fe:00:41 0 EOF
3: FLOCK  ADVISORY  WRITE 13 00:2a:42 0 EOF
3: -> FLOCK  ADVISORY  WRITE 14 fe:00:42 0 EOF
4: FLOCK  ADVISORY  WRITE none fe:00:42 0 EOF
5: FLOCK
6: FLOCK  ADVISORY  WRITE 15 fe:00:43 0 EOF
`
	for _, c := range []struct {
		name         string
		major, minor uint64
		inode        uint64
		want         int
	}{
		{"the file's own line", 0xfe, 0, 41, 12},
		{"a layered file system", 0xfe, 0, 42, 13},
		{"another line", 0xfe, 0, 43, 15},
		{"nobody", 0xfe, 0, 44, 0},
	} {
		if got := parseLocks(bufio.NewScanner(strings.NewReader(lines)), c.major, c.minor, c.inode); got != c.want {
			t.Errorf("%s: %d, not %d", c.name, got, c.want)
		}
	}
}
