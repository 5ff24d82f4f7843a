package store

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	bolt "go.etcd.io/bbolt"
	bolterrors "go.etcd.io/bbolt/errors"

	"noted/notebook"
)

// Schema is the version of the file's layout that this program writes. A file
// with a higher one is left untouched.
const Schema = 1

const (
	// DefaultTimeout is how long [Open] waits for another process to let go of
	// the file: long enough for a daemon that is just stopping.
	DefaultTimeout = 500 * time.Millisecond

	// mapSize is the address space mapped at once. A mapping that is too small
	// is replaced during a commit, which has to wait for every reader; this
	// one is not outgrown by a notebook of ordinary size.
	mapSize = 1 << 30

	// growBy is the step in which the file grows.
	growBy = 4 << 20
)

// ErrClosed is the error of every transaction after [DB.Close].
var ErrClosed = errors.New("the store is closed")

// Options of [Open].
type Options struct {
	Timeout time.Duration // wait for another process's lock; 0 means DefaultTimeout
	Log     *slog.Logger  // gets a line per compaction; nil means none
}

// DB is an open store. Its methods may be called from any goroutine.
type DB struct {
	bolt *bolt.DB
	path string

	queued atomic.Int64 // updates that wait for mu or hold it

	mu     sync.Mutex // held while a function of an update runs, and while a group commits
	group  *group     // updates that ran and are not committed; nil if none
	failed error      // why no update is taken any more
	closed bool
}

// Open opens the file at path, which it makes with mode 0600 if there is none,
// and locks it. Errors that a person can do something about are
// *[notebook.Error]: another process holds the file (named by its pid), a
// newer version wrote it, it is damaged. A file of which more than half is
// free is compacted first.
func Open(path string, o Options) (*DB, error) {
	if o.Timeout <= 0 {
		o.Timeout = DefaultTimeout
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	b, err := open(path, o)
	if err != nil {
		return nil, err
	}
	if b, err = compact(path, b, o); err != nil {
		return nil, err
	}
	return &DB{bolt: b, path: path}, nil
}

// open opens and locks the file, and makes its buckets.
func open(path string, o Options) (*bolt.DB, error) {
	// A first look that cannot write: a file from the future or a damaged one
	// is to be left exactly as it is.
	if info, err := os.Stat(path); err == nil && info.Size() > 0 {
		b, _, err := lock(path, o.Timeout, true)
		if err != nil {
			return nil, err
		}
		_, err = inspect(b, path)
		if err := errors.Join(err, b.Close()); err != nil {
			return nil, err
		}
	}
	b, err := lockCurrent(path, o.Timeout)
	if err != nil {
		return nil, err
	}
	b.AllocSize = growBy
	complete, err := inspect(b, path)
	if err == nil && !complete {
		err = b.Update(create)
	}
	if err != nil {
		return nil, errors.Join(err, b.Close())
	}
	return b, nil
}

// lockCurrent locks the file for writing and makes sure that it still is the
// one at path: a compaction by another process may have replaced it while
// this one waited for the lock.
func lockCurrent(path string, timeout time.Duration) (*bolt.DB, error) {
	for {
		b, f, err := lock(path, timeout, false)
		if err != nil {
			return nil, err
		}
		mine, err := f.Stat()
		if err != nil {
			return nil, errors.Join(err, b.Close())
		}
		if now, err := os.Stat(path); err == nil && os.SameFile(mine, now) {
			return b, nil
		}
		if err := b.Close(); err != nil {
			return nil, err
		}
	}
}

// lock opens the file with bbolt, which locks it.
func lock(path string, timeout time.Duration, readOnly bool) (b *bolt.DB, f *os.File, err error) {
	defer func() {
		if err != nil && f != nil {
			_ = f.Close() // bbolt leaves it open where it panics
		}
	}()
	defer rescue(path, &err)()
	b, err = bolt.Open(path, 0o600, &bolt.Options{
		Timeout:         timeout,
		ReadOnly:        readOnly,
		FreelistType:    bolt.FreelistMapType,
		InitialMmapSize: mapSize,
		OpenFile: func(name string, flag int, mode os.FileMode) (*os.File, error) {
			var err error
			f, err = os.OpenFile(name, flag, mode)
			return f, err
		},
	})
	switch system := syscall.Errno(0); {
	case err == nil:
		return b, f, nil
	case errors.Is(err, bolterrors.ErrTimeout):
		return nil, nil, held(path)
	case errors.As(err, &system): // no such directory, no permission, no memory
		return nil, nil, fmt.Errorf("cannot open the store: %w", err)
	}
	return nil, nil, damaged(path, err)
}

// inspect says whether the file has all the buckets of this version. It
// refuses one that is cut short, is no store, or comes from the future.
func inspect(b *bolt.DB, path string) (complete bool, err error) {
	defer rescue(path, &err)()
	err = b.View(func(tx *bolt.Tx) error {
		info, err := os.Stat(path)
		if err != nil {
			return err
		}
		if info.Size() < tx.Size() {
			return damaged(path, fmt.Errorf("it is cut short: %d bytes of %d", info.Size(), tx.Size()))
		}
		own := tx.Bucket(ownBucket)
		if own == nil {
			if name, _ := tx.Cursor().First(); name != nil {
				return notebook.Errorf(notebook.CodeFailed, "%s is not a store of noted", path)
			}
			return nil
		}
		schema := own.Get(schemaKey)
		if len(schema) != 1 {
			return damaged(path, errors.New("it does not say which version wrote it"))
		}
		if schema[0] > Schema {
			return notebook.Errorf(notebook.CodeFailed, "store from the future: %s has version %d, this program knows %d", path, schema[0], Schema).
				With("update noted; the file was not touched")
		}
		complete = true
		for _, name := range buckets() {
			complete = complete && tx.Bucket(name) != nil
		}
		return nil
	})
	return complete, err
}

// create makes what is missing of this version's buckets.
func create(tx *bolt.Tx) error {
	own, err := tx.CreateBucketIfNotExists(ownBucket)
	if err != nil {
		return err
	}
	if err := own.Put(schemaKey, []byte{Schema}); err != nil {
		return err
	}
	for _, name := range buckets() {
		if _, err := tx.CreateBucketIfNotExists(name); err != nil {
			return err
		}
	}
	return nil
}

// View runs fn in a read transaction: fn sees one committed state whatever is
// written meanwhile, and what it got from tx stays good afterwards. fn should
// not wait for anything, since the pages that it can see are not reused before
// it returns, and must not call Update.
func (db *DB) View(fn func(*Tx) error) error {
	err := db.bolt.View(func(b *bolt.Tx) error {
		tx := &Tx{bolt: b}
		defer tx.end()
		return fn(tx)
	})
	if errors.Is(err, bolterrors.ErrDatabaseNotOpen) {
		return ErrClosed
	}
	return err
}

// Close waits for the transactions that have begun, and lets go of the file.
func (db *DB) Close() error {
	db.queued.Add(1)
	db.mu.Lock()
	db.queued.Add(-1)
	if db.group != nil {
		db.commit()
	}
	db.closed = true
	db.mu.Unlock()
	return db.bolt.Close()
}

// rescue turns a panic or a fault of reading a damaged file into an error of
// the function that says "defer rescue(path, &err)()".
func rescue(path string, err *error) func() {
	before := debug.SetPanicOnFault(true)
	return func() {
		debug.SetPanicOnFault(before)
		if r := recover(); r != nil {
			*err = damaged(path, fmt.Errorf("%v", r))
		}
	}
}

func damaged(path string, err error) error {
	return notebook.Errorf(notebook.CodeFailed, "the store %s is damaged: %v", path, err).
		With("put it aside and restore a backup, or pair this device again; other members still have what it had sent")
}
