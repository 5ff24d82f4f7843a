package daemon

import (
	"errors"
	"io/fs"
	"os"

	"noted/notebook"
	"noted/store"
	"noted/trust"
)

// readPolicy reads the person's policy file. One that others can write is not
// the person's. A file that is not there is an empty policy: the defaults.
func (d *Daemon) readPolicy() ([]byte, *trust.Policy, error) {
	path := d.home.PolicyFile()
	for _, p := range []string{d.home.Config, path} {
		info, err := os.Lstat(p)
		if errors.Is(err, fs.ErrNotExist) && p == path {
			policy, err := trust.ParsePolicy(nil)
			return []byte{}, policy, err
		}
		if err != nil {
			return nil, nil, err
		}
		own, err := ownedByUser(p, info)
		if err != nil {
			return nil, nil, err
		}
		if info.Mode()&fs.ModeSymlink != 0 || info.Mode().Perm()&0o022 != 0 || !own {
			return nil, nil, notebook.Errorf(notebook.CodeRefused, "%s is not this user's alone (mode %#o): others could set policy", p, info.Mode().Perm()).
				With("chown it to yourself, chmod go-w, and look at what it says")
		}
	}
	text, err := readSmall(path)
	if err != nil {
		return nil, nil, err
	}
	policy, err := trust.ParsePolicy(text)
	return text, policy, err
}

func (d *Daemon) policyView() (*notebook.PolicyView, error) {
	_, file, err := d.readPolicy()
	d.mu.Lock()
	defer d.mu.Unlock()
	view := &notebook.PolicyView{Path: d.home.PolicyFile(), Lines: d.policy.Lines()}
	if err != nil {
		view.Problem = notebook.EscapeLine(err.Error())
		return view, nil
	}
	view.Digest = file.Digest()
	view.Accepted = file.Digest() == d.policy.Digest()
	return view, nil
}

// TryPolicy decides on fixtures under the policy of a file, whether or not it is in
// force anywhere: see [trust.TryPolicy].
func TryPolicy(policy, fixtures []byte) ([]notebook.PolicyCase, error) {
	p, err := trust.ParsePolicy(policy)
	if err != nil {
		return nil, err
	}
	return trust.TryPolicy(p, fixtures)
}

// acceptPolicy puts the file in force that the person has seen.
func (d *Daemon) acceptPolicy(digest notebook.Hash, presence notebook.Presence) (*notebook.PolicyView, error) {
	text, policy, err := d.readPolicy()
	if err != nil {
		return nil, err
	}
	if policy.Digest() != digest {
		return nil, notebook.Errorf(notebook.CodeStale, "the policy file is no longer what was shown").With("noted policy show shows it as it is now")
	}
	if err := d.present(presence, "accept the policy "+short(digest)); err != nil {
		return nil, err
	}
	err = d.step(func(b *batch) error {
		d.policy = policy
		d.auto.fired.Keep(policy)
		d.keepDecisions(b)
		d.lookAgain()
		b.write(func(tx *store.Tx) error { return tx.Put(store.Meta, metaPolicy, text) })
		_, err := d.record(b, trust.LedgerRecord{Kind: trust.LedgerApproval, Digest: digest, Client: person.String(), Reason: "policy accepted"})
		return err
	})
	if err != nil {
		return nil, err
	}
	return d.policyView()
}
