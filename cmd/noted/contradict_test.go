package main

import (
	"context"
	"crypto/ed25519"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"os"
	"path/filepath"

	"github.com/rogpeppe/go-internal/testscript"

	"noted/daemon"
	"noted/notebook"
	"noted/store"
)

// scriptContradict gives a device, whose daemon does not run, another entry by
// the device of a second home for the place of that one's newest text.
func scriptContradict(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: contradict HOME LIAR")
	}
	dir := ts.MkAbs(args[0])
	home := daemon.Home{Config: dir, Data: dir, State: dir, Cache: filepath.Join(dir, "cache"), Runtime: dir}
	pemKey, err := os.ReadFile(filepath.Join(ts.MkAbs(args[1]), "device.key"))
	ts.Check(err)
	block, _ := pem.Decode(pemKey)
	parsed, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	ts.Check(err)
	key := parsed.(ed25519.PrivateKey)
	liar := notebook.DeviceID(key.Public().(ed25519.PublicKey))

	var other notebook.Entry
	db, err := store.Open(home.Database(), store.Options{})
	ts.Check(err)
	err = db.View(func(tx *store.Tx) error {
		for s, err := range tx.Entries(1) {
			if err != nil {
				return err
			}
			h, err := notebook.DecodeHeader(s.Entry.Header)
			if err != nil {
				return err
			}
			if h.Device == liar && h.Kind == notebook.KindText {
				h.Time++
				if other.Header, err = notebook.EncodeHeader(h); err != nil {
					return err
				}
				other.Body = s.Entry.Body
			}
		}
		return nil
	})
	ts.Check(errors.Join(err, db.Close()))
	digest := notebook.Digest("noted/entry/v1", other.Header)
	other.Sig = ed25519.Sign(key, digest[:])

	d, err := daemon.Open(daemon.Config{Home: home, Listen: []string{"/ip4/127.0.0.1/tcp/0"}})
	ts.Check(err)
	ended := make(chan error, 1)
	go func() { ended <- d.Serve(context.Background()) }()
	err = d.Accept(context.Background(), liar, []notebook.Entry{other})
	d.Stop()
	ts.Check(errors.Join(err, <-ended))
}
