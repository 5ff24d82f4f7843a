package store

import (
	bolt "go.etcd.io/bbolt"
	"golang.org/x/sys/unix"
)

// Release takes the file's pages out of this process's memory. They are the
// kernel's cache of the file and cost a fault when they are read again; but as
// long as they are mapped they count as this process's, so that one which has
// read every record seems to hold the whole file.
func (db *DB) Release() error {
	return db.bolt.View(func(tx *bolt.Tx) error {
		// The mapping is private to bbolt, only read, and stays while a transaction is open.
		_, _, e := unix.Syscall(unix.SYS_MADVISE, tx.DB().Info().Data, uintptr(tx.Size()), unix.MADV_DONTNEED)
		if e != 0 {
			return e
		}
		return nil
	})
}
