package daemon

import (
	"crypto/rand"
	"errors"
	"os"
	"time"

	"noted/notebook"
	"noted/store"
	"noted/trust"
)

// InitOptions say what a new home begins with.
type InitOptions struct {
	Name string // of this device
	PIN  string // empty: presence is a sentence typed on a terminal
}

// Init founds a notebook in a home that has none: the device's key, the
// notebook's first entry, the person's PIN and the owner's token.
func Init(home Home, o InitOptions) error {
	if home.Exists() {
		return notebook.Errorf(notebook.CodeRefused, "there is a notebook in %s already", home.Data).
			With("noted daemon run serves it; --home DIR chooses another place")
	}
	if _, err := os.Stat(home.KeyFile()); err == nil {
		return notebook.Errorf(notebook.CodeRefused, "there is a device key in %s, but no notebook", home.Data).
			With("move device.key away, or put the notebook's noted.db back beside it")
	}
	presence := trust.NoPIN()
	if o.PIN != "" {
		var salt [16]byte
		_, _ = rand.Read(salt[:])
		var err error
		if presence, err = trust.NewPresence(o.PIN, salt); err != nil {
			return err
		}
	}
	if err := home.make(); err != nil {
		return err
	}
	key, err := newKey(home.KeyFile())
	if err != nil {
		return err
	}
	var epoch notebook.Epoch
	var salt [16]byte
	_, _ = rand.Read(epoch[:])
	_, _ = rand.Read(salt[:])
	log, genesis, err := trust.Found(trust.NewSigner(key), epoch, o.Name, salt, time.Now().UnixMilli())
	if err != nil {
		return err
	}
	token := newToken()
	db, err := store.Open(home.Database(), store.Options{})
	if err != nil {
		return err
	}
	err = db.Update(func(tx *store.Tx) error {
		if _, err := tx.PutEntry(genesis.Place(), notebook.PageID{}, genesis.Entry(), ""); err != nil {
			return err
		}
		for _, r := range log.Flush() {
			if err := putChain(tx, r); err != nil {
				return err
			}
		}
		if err := tx.Put(store.Meta, metaPresence, presence.Record()); err != nil {
			return err
		}
		return putClient(tx, token, clientRecord{Role: roleOwner, Created: time.Now().UnixMilli()})
	})
	if err := errors.Join(err, db.Close()); err != nil {
		return errors.Join(err, os.Remove(home.Database()))
	}
	return writeSecret(home.OwnerToken(), []byte(token+"\n"))
}

// putChain keeps one of the log's own records.
func putChain(tx *store.Tx, r trust.Record) error {
	if r.Value == nil {
		return tx.Delete(store.Chains, r.Key)
	}
	return tx.Put(store.Chains, r.Key, r.Value)
}
