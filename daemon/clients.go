package daemon

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"

	"noted/notebook"
	"noted/store"
)

// role is what a token is for.
type role uint8

const (
	roleOwner role = 1 + iota
	roleBrowser
	roleAgent
	roleViewer
)

func (r role) String() string {
	return [...]string{"none", "owner", "browser", "agent", "viewer"}[min(r, roleViewer)]
}

// clientRecord is what is kept of a token, under its hash.
type clientRecord struct {
	_       struct{} `cbor:",toarray"`
	Version uint8
	Role    role
	Name    string // the agent's
	Created int64  // Unix milliseconds
}

const (
	clientVersion = 1
	maxClient     = 1 << 10
)

// tokenKey is where a token's record is: the token itself is kept nowhere but
// in its holder's file. A token is 256 random bits, so one round of a fast hash
// is no easier to invert than a slow one, and finding by hash compares nothing
// with the token byte by byte.
func tokenKey(token string) []byte {
	h := sha256.Sum256([]byte("noted/token/v1\x00" + token))
	return h[:]
}

// clientID tells apart the agents that had one name, one after another. It says
// nothing of the token, and is not secret.
func clientID(key []byte) string {
	h := notebook.Digest("noted/client/v1", key)
	return hex.EncodeToString(h[:16])
}

func putClient(tx *store.Tx, token string, c clientRecord) error {
	c.Version = clientVersion
	b, err := notebook.Marshal(&c)
	if err != nil {
		return err
	}
	return tx.Put(store.Clients, tokenKey(token), b)
}

func openClient(b []byte) (c clientRecord, err error) {
	if err := notebook.Unmarshal(b, &c, maxClient); err != nil {
		return c, err
	}
	if c.Version != clientVersion || c.Role == 0 || c.Role > roleViewer {
		return c, errors.New("a client's record is not understood: update noted")
	}
	return c, nil
}

var errToken = notebook.Errorf(notebook.CodeDenied, "the token is not known here").
	With("the owner's is in the state directory; an agent's is made by noted agent add")

// identify finds whose token it is.
func (d *Daemon) identify(token string) (c clientRecord, err error) {
	err = d.db.View(func(tx *store.Tx) error {
		b, err := tx.Get(store.Clients, tokenKey(token))
		if err != nil {
			return err
		}
		if b == nil {
			return errToken
		}
		c, err = openClient(b)
		return err
	})
	return c, err
}

// clients yields every token's record with its key.
func (d *Daemon) clients() (records []store.Record, clients []clientRecord, err error) {
	err = d.db.View(func(tx *store.Tx) error {
		for r, err := range tx.All(store.Clients, nil) {
			if err != nil {
				return err
			}
			c, err := openClient(r.Value)
			if err != nil {
				return err
			}
			records, clients = append(records, r), append(clients, c)
		}
		return nil
	})
	return records, clients, err
}

// agents are the agents that have a token, by name.
func (d *Daemon) agents() ([]notebook.AgentInfo, error) {
	_, clients, err := d.clients()
	if err != nil {
		return nil, err
	}
	var all []notebook.AgentInfo
	for _, c := range clients {
		if c.Role == roleAgent {
			all = append(all, notebook.AgentInfo{Name: c.Name, Created: time.UnixMilli(c.Created), Open: d.openAsks(c.Name)})
		}
	}
	slices.SortFunc(all, func(a, b notebook.AgentInfo) int { return strings.Compare(a.Name, b.Name) })
	return all, nil
}

// maxAgents bounds the tokens that are out.
const maxAgents = 64

// addAgent makes a token for an agent and puts it into a file that only this user reads.
func (d *Daemon) addAgent(name string) (token string, err error) {
	d.agentsMu.Lock()
	defer d.agentsMu.Unlock()
	if err := checkAgentName(name); err != nil {
		return "", err
	}
	_, clients, err := d.clients()
	if err != nil {
		return "", err
	}
	agents := 0
	for _, c := range clients {
		if c.Role == roleAgent {
			agents++
			if strings.EqualFold(c.Name, name) {
				return "", notebook.Errorf(notebook.CodeInvalid, "there is an agent %s already", c.Name).
					With("noted agent remove %s takes its token back", c.Name)
			}
		}
	}
	if agents >= maxAgents {
		return "", notebook.Errorf(notebook.CodeExhausted, "%d agents have tokens, and no more may", maxAgents).
			With("noted agent list shows them, noted agent remove takes one away")
	}
	token = newToken()
	err = d.step(func(b *batch) error {
		b.write(func(tx *store.Tx) error {
			return putClient(tx, token, clientRecord{Role: roleAgent, Name: name, Created: time.Now().UnixMilli()})
		})
		return nil
	})
	if err != nil {
		return "", err
	}
	return token, writeSecret(d.home.AgentToken(name), []byte(token+"\n"))
}

// checkAgentName takes names that are a file's name and a label as they are.
func checkAgentName(name string) error {
	ok := len(name) > 0 && len(name) <= 32 && name[0] != '-' && strings.IndexFunc(name, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < '0' || r > '9') && r != '-'
	}) < 0
	if !ok {
		return notebook.Errorf(notebook.CodeInvalid, "%q is no name for an agent", notebook.EscapeLine(name)).
			With("use 1 to 32 of a-z, 0-9 and -, such as scribe")
	}
	return nil
}

// stillIn refuses a caller whose token was taken away since it came in: what it asked
// for a moment before has no part in what is there when that is answered. It is
// called under d.mu.
func (d *Daemon) stillIn(c caller) error {
	if d.gone[c.id] {
		return errToken
	}
	return nil
}

// removeAgent takes an agent's token back, with all that it has under way: when
// it returns nothing of that is left, and nothing more is told of it. So another
// agent may have the name. What it wrote stays its own.
func (d *Daemon) removeAgent(name string) error {
	d.agentsMu.Lock()
	defer d.agentsMu.Unlock()
	records, clients, err := d.clients()
	if err != nil {
		return err
	}
	found := slices.IndexFunc(clients, func(c clientRecord) bool { return c.Role == roleAgent && c.Name == name })
	if found < 0 {
		return notebook.Errorf(notebook.CodeNotFound, "there is no agent %q", notebook.EscapeLine(name)).With("noted agent list shows them")
	}
	gone := caller{d: d, role: roleAgent, name: name, id: clientID(records[found].Key)}
	var stopping stopping
	err = d.step(func(b *batch) error {
		d.gone[gone.id] = true
		d.asks.Drop(gone.requester())
		if err := d.recordVoids(b, d.approvals.VoidRequester(gone.requester(), "its agent's token was taken away"), "agent removed"); err != nil {
			return err
		}
		d.keepDecisions(b)
		b.write(func(tx *store.Tx) error { return tx.Delete(store.Clients, records[found].Key) })
		stopping = d.stopRuns("the token of the agent that asked for it was taken away", func(r *running) bool { return r.by == gone.label() })
		return nil
	})
	if err != nil {
		return err
	}
	d.events.drop(gone.label())
	stopping.wait()
	if err := os.Remove(d.home.AgentToken(clients[found].Name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
