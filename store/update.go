package store

import (
	"errors"

	bolt "go.etcd.io/bbolt"

	"noted/notebook"
)

// maxGroup bounds how many updates share a commit, so that the first of them
// is not kept waiting by an endless queue.
const maxGroup = 1024

// A group is the updates that share one commit.
type group struct {
	bolt *bolt.Tx
	size int // updates that stand
	runs int // updates that ran
	done chan struct{}
	err  error // of the commit, once done is closed
}

// Update runs fn in a write transaction and returns when what it wrote is on
// the disk. fn runs once, here, alone; if it returns an error or panics,
// nothing of it remains.
//
// Updates that are queued meanwhile share the next commit: each runs in turn
// on one bbolt transaction, and the last one in the queue commits for all. With
// an empty queue that is at once. So no goroutine is needed, and what fn does
// happens in its caller's.
//
// When a commit fails (a full disk, an I/O error) the state of the file is not
// known any more, and every later update is refused until the store is opened
// again. fn must not call Update or View.
func (db *DB) Update(fn func(*Tx) error) error {
	g, err := db.join()
	if err != nil {
		return err
	}
	if err := db.run(g, fn); err != nil {
		return err
	}
	<-g.done
	return g.err
}

// join takes mu and the group that is open, or opens one.
func (db *DB) join() (*group, error) {
	db.queued.Add(1)
	db.mu.Lock()
	if db.group != nil {
		return db.group, nil
	}
	err := db.failed
	if db.closed {
		err = ErrClosed
	}
	if err == nil {
		var b *bolt.Tx
		if b, err = db.bolt.Begin(true); err == nil {
			db.group = &group{bolt: b, done: make(chan struct{})}
			return db.group, nil
		}
	}
	db.queued.Add(-1)
	db.mu.Unlock()
	return nil, err
}

// run runs fn as a part of g and leaves mu, after committing if nobody is
// queued to do it. It does so also where fn panics or ends its goroutine.
func (db *DB) run(g *group, fn func(*Tx) error) (err error) {
	tx := &Tx{bolt: g.bolt, writable: true}
	stands := false
	defer func() {
		if stands {
			g.size++
		} else if err := tx.undo(); err != nil {
			g.err = err
		}
		tx.end()
		g.runs++
		if db.queued.Add(-1) == 0 || g.runs >= maxGroup {
			db.commit()
		}
		db.mu.Unlock()
	}()
	if err = fn(tx); err == nil {
		err = tx.failed // a write that failed and that fn did not mind
	}
	stands = err == nil
	return err
}

// commit ends the open group. mu is held.
func (db *DB) commit() {
	g := db.group
	db.group = nil
	defer close(g.done)
	if g.err != nil || g.size == 0 {
		g.err = errors.Join(g.err, g.bolt.Rollback())
		return
	}
	if err := db.write(g.bolt); err != nil {
		db.failed = notebook.Errorf(notebook.CodeFailed, "the store stopped writing: %v", err).
			With("nothing that was acknowledged is lost; make room on the disk, then restart noted")
		g.err = db.failed
	}
}

// write commits. A panic of bbolt, which it raises where it finds the file
// damaged, is a failed commit.
func (db *DB) write(tx *bolt.Tx) (err error) {
	defer rescue(db.path, &err)()
	defer tx.Rollback() // lets go of bbolt's lock after a panic; otherwise without effect
	return tx.Commit()
}
