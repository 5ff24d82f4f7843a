package store

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	bolt "go.etcd.io/bbolt"
)

const (
	// compactAbove is how many free bytes make a compaction worth its time.
	compactAbove = 4 << 20

	// compactStep is how many bytes one transaction of a compaction copies.
	compactStep = 4 << 20
)

// compact replaces the file by a copy without its free pages if more than half
// of it is free. The copy is complete, synced and locked before it takes the
// file's place, so that a crash leaves one or the other. Where the copy cannot
// be made (the disk is full, say) the file stays as it is.
func compact(path string, b *bolt.DB, o Options) (*bolt.DB, error) {
	temp := path + ".compact"
	err := os.Remove(temp) // from a crash
	if errors.Is(err, os.ErrNotExist) {
		err = nil
	}
	used, free := usage(b)
	if err == nil && (free < compactAbove || free <= used) {
		return b, nil
	}
	var fresh *bolt.DB
	if err == nil {
		fresh, err = rewrite(temp, b, o)
	}
	if err == nil {
		err = os.Rename(temp, path)
	}
	if err != nil {
		if fresh != nil {
			err = errors.Join(err, fresh.Close(), os.Remove(temp))
		}
		o.Log.Warn("the store was not compacted", "path", path, "error", err)
		return b, nil
	}
	if err := errors.Join(syncDir(filepath.Dir(path)), b.Close()); err != nil {
		return nil, errors.Join(err, fresh.Close())
	}
	o.Log.Info("the store was compacted", "path", path, "before", used+free, "after", size(fresh))
	return fresh, nil
}

// rewrite copies b into a new file, which it leaves open, locked and synced.
func rewrite(temp string, b *bolt.DB, o Options) (*bolt.DB, error) {
	fresh, _, err := lock(temp, o.Timeout, false)
	if err != nil {
		return nil, err
	}
	fresh.AllocSize = growBy
	fresh.NoSync = true // until it is complete
	if err := bolt.Compact(fresh, b, compactStep); err != nil {
		return fresh, fmt.Errorf("cannot copy: %w", err)
	}
	fresh.NoSync = false
	return fresh, fresh.Sync()
}

// usage is how many bytes of the file are in use, and how many are free.
func usage(b *bolt.DB) (used, free int64) {
	free = int64(b.Stats().FreePageN) * int64(b.Info().PageSize)
	return size(b) - free, free
}

// size is how many bytes of the file its pages take, used or free.
func size(b *bolt.DB) (n int64) {
	_ = b.View(func(tx *bolt.Tx) error {
		n = tx.Size()
		return nil
	})
	return n
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
