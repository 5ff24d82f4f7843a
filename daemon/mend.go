package daemon

import (
	"context"
	"errors"
	"sync"

	"noted/notebook"
	"noted/store"
)

// Mend makes pages of a home that no daemon serves anew from the log, as
// [Damage] names them, and says of each what was different. Nobody is dialed
// and nothing is answered meanwhile.
func Mend(c Config, pages []notebook.PageID) (notes []string, err error) {
	if err := dropUnreadable(c.Home, pages); err != nil {
		return nil, err
	}
	c.Listen = []string{}
	d, err := Open(c)
	if err != nil {
		return nil, err
	}
	writing, endWriting := context.WithCancel(context.Background())
	var writer sync.WaitGroup
	writer.Go(func() { d.writes.serve(writing, d.commit) })
	for _, id := range pages {
		e := d.step(func(b *batch) error {
			said, err := d.remake(b, id)
			notes = append(notes, said...)
			return err
		})
		err = errors.Join(err, e)
	}
	endWriting()
	writer.Wait()
	if failed := d.failure.Load(); failed != nil {
		err = errors.Join(err, *failed)
	}
	return notes, errors.Join(err, d.close())
}

// dropUnreadable takes out the cards that keep a daemon from opening.
func dropUnreadable(home Home, pages []notebook.PageID) (err error) {
	db, err := unserved(home)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	return db.Update(func(tx *store.Tx) error {
		for _, id := range pages {
			b, err := tx.Get(store.Infos, id[:])
			if err != nil {
				return err
			}
			var c card
			if b == nil || notebook.Unmarshal(b, &c, maxCard) == nil {
				continue
			}
			if err := tx.Delete(store.Infos, id[:]); err != nil {
				return err
			}
		}
		return nil
	})
}
