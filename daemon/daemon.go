package daemon

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"noted/exec"
	"noted/notebook"
	"noted/p2p"
	"noted/store"
	"noted/trust"
)

// Version is this program's, as status shows it.
const Version = "0.1.0"

// Config says how a daemon serves a home.
type Config struct {
	Home   Home
	Listen []string     // multiaddresses; nil means QUIC and TCP on every interface, on ports of the system's choice
	Logger *slog.Logger // nil means none
	Exec   exec.Config
	Link   p2p.Link // how frames travel; the zero value is this machine's network
}

// DefaultListen is where a daemon listens for the other devices.
var DefaultListen = []string{"/ip4/0.0.0.0/udp/0/quic-v1", "/ip4/0.0.0.0/tcp/0", "/ip6/::/udp/0/quic-v1", "/ip6/::/tcp/0"}

// Daemon serves one home. Its methods may be called from any goroutine.
type Daemon struct {
	home    Home
	logger  *slog.Logger
	db      *store.DB
	key     ed25519.PrivateKey
	signer  *trust.Signer
	engines *exec.Engines
	lent    bool // the engines are somebody else's to close
	runner  *exec.Runner
	outside *outside
	node    *p2p.Node
	events  *hub
	writes  *queue
	unsaved *unsaved
	feed    *feed
	started time.Time

	committed atomic.Pointer[[]notebook.Head] // heads of what is on the disk
	restless  chan struct{}                   // that something waits for calm
	failure   atomic.Pointer[error]           // why the daemon stops, once it does
	alive     context.Context                 // ends when the daemon is to stop
	stop      context.CancelFunc              // ends alive

	looking      chan struct{} // holds one for the query that is being answered
	agentLooking chan struct{} // the same for agents, for whom no person waits
	keeps        uint64        // bytes that a share keeps for replays: [maxKept]
	unread       sync.Map      // pages that a query could not read, and of which the log says why

	agentsMu sync.Mutex // one change of the agents at a time; taken before mu

	mu           sync.Mutex // guards everything below; see the package comment
	log          *trust.Log
	epoch        notebook.Epoch // of this opening; its first entry begins a chain
	introducer   notebook.DeviceID
	index        *index
	foreign      foreignIndex
	open         map[notebook.PageID]*page
	tick         uint64
	loaded       int // pages, since the start
	models       models
	void         int
	newest       *sealed   // the last batch that was queued; nil if none was
	rewritten    int       // times that own text was written again; see maxRewrites
	calmAt       time.Time // before which the log is not overturned again
	acknowledged map[notebook.DeviceID][]notebook.Head
	notes        []string // that wait for a person
	notices      map[notebook.PageID]*notice
	meter
	gatehouse
	pairings map[string]*pairingSession
	closing  bool // no run begins any more

	work sync.WaitGroup // goroutines that Serve waits for
}

// Info is what a running daemon writes to [Home.InfoFile].
type Info struct {
	PID     int       `json:"pid"`
	Socket  string    `json:"socket"`
	Started time.Time `json:"started"`
}

// Open opens a home and its network. The daemon answers nobody before Serve.
func Open(c Config) (*Daemon, error) {
	if !dispatched.Load() {
		return nil, errors.New("daemon.Child was not called in this process: it must be the first statement of main and of TestMain")
	}
	if !c.Home.Exists() {
		return nil, notebook.Errorf(notebook.CodeNotFound, "there is no notebook in %s", c.Home.Data).With("noted init founds one")
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.Listen == nil {
		c.Listen = DefaultListen
	}
	if err := c.Home.make(); err != nil {
		return nil, err
	}
	db, err := store.Open(c.Home.Database(), store.Options{Log: c.Logger})
	if err != nil {
		return nil, err
	}
	d := &Daemon{
		home: c.Home, logger: c.Logger, db: db, started: time.Now(), outside: newOutside(c.Home),
		events: newHub(), writes: newQueue(), unsaved: newUnsaved(), feed: newFeed(), restless: make(chan struct{}, 1), looking: make(chan struct{}, 1), agentLooking: make(chan struct{}, 1), keeps: maxKept,
		index: newIndex(), open: map[notebook.PageID]*page{},
		models:       models{patience: modelPatience, killers: map[notebook.PageID]bool{}},
		acknowledged: map[notebook.DeviceID][]notebook.Head{}, pairings: map[string]*pairingSession{},
	}
	d.alive, d.stop = context.WithCancel(context.Background())
	d.newEpoch()
	if err := d.load(); err != nil {
		return nil, errors.Join(err, db.Close())
	}
	if err := d.buryRuns(); err != nil {
		return nil, errors.Join(err, db.Close())
	}
	if d.engines, d.lent = c.Exec.Engines, c.Exec.Engines != nil; !d.lent {
		if d.engines, err = openEngines(c.Home, d.key, c.Logger); err != nil {
			return nil, errors.Join(err, db.Close())
		}
		c.Exec.Engines = d.engines
	}
	if d.runner, err = exec.New(c.Exec); err != nil {
		return nil, errors.Join(err, db.Close())
	}
	d.node, err = p2p.New(p2p.Config{Key: d.key, Listen: c.Listen, Log: d, Logger: c.Logger, Events: d.heard, QUIC: c.Link})
	if err != nil {
		return nil, errors.Join(err, d.runner.Close(), db.Close())
	}
	return d, nil
}

// newEpoch begins another epoch, in which this device's next entry is the first.
func (d *Daemon) newEpoch() { _, _ = rand.Read(d.epoch[:]) }

// load reads what the store has.
func (d *Daemon) load() error {
	var err error
	if d.key, err = readKey(d.home.KeyFile()); err != nil {
		return err
	}
	d.signer = trust.NewSigner(d.key)
	return d.db.View(func(tx *store.Tx) error {
		var failed error
		if d.log, err = trust.OpenLog(d.signer.Device(), pairs(tx, store.Chains, &failed)); err != nil {
			return err
		}
		if failed != nil {
			return failed
		}
		d.listen(d.log)
		var unsaid []notebook.PageID
		heads := d.log.Locator()
		d.committed.Store(&heads)
		for r, err := range tx.All(store.Infos, nil) {
			if err != nil {
				return err
			}
			var c card
			if err := notebook.Unmarshal(r.Value, &c, maxCard); err != nil {
				return fmt.Errorf("page %x: %w", r.Key, err)
			}
			if c.Version != cardVersion {
				return notebook.Errorf(notebook.CodeFailed, "page %x was written by a newer noted", r.Key).With("update noted")
			}
			d.index.put(notebook.PageID(r.Key), c)
			if c.Purged && !c.Vouched {
				unsaid = append(unsaid, notebook.PageID(r.Key))
			}
		}
		if n, err := tx.Get(store.Meta, metaVoid); err != nil {
			return err
		} else if n != nil {
			d.void = int(store.Record{Key: n}.Number())
		}
		if introducer, err := tx.Get(store.Meta, metaIntroducer); err != nil {
			return err
		} else if len(introducer) == len(d.introducer) {
			d.introducer = notebook.DeviceID(introducer)
		}
		if err := d.loadAccounts(tx); err != nil {
			return err
		}
		d.unsaid = unsaid
		if d.notices, err = readNotices(tx); err != nil {
			return err
		}
		return d.loadGatehouse(tx)
	})
}

// listen makes a log this daemon's, and answers what it asks.
func (d *Daemon) listen(log *trust.Log) {
	log.Recall(d.recall)
	log.Room(d.room)
	log.Excuse(d.excuses)
	log.Calm(d.calm)
	d.log = log
}

// maxCard has room for a title and as many heads as a page has actors (2^16), of 34 bytes each.
const maxCard = 4 << 20

// Names in the store's meta space.
var (
	metaIntroducer = []byte("introducer") // the device that took this one in
	metaPresence   = []byte("presence")
	metaPolicy     = []byte("policy") // the accepted bytes
	metaVoid       = []byte("void")   // how many entries are void
	metaReset      = []byte("reset")  // when the owner was reset last, Unix milliseconds
)

// recall finds an entry for the log.
func (d *Daemon) recall(p notebook.Place) (e notebook.Entry, found bool) {
	if e, found = d.unsaved.find(p); found {
		return e, true
	}
	_ = d.db.View(func(tx *store.Tx) error {
		s, err := tx.Entry(p)
		if err == nil && s != nil {
			e, found = s.Entry, true
		}
		return err
	})
	return e, found
}

// Serve syncs and answers until ctx ends, Stop is called or the daemon cannot
// go on; the last is an error. When it returns everything is closed.
func (d *Daemon) Serve(ctx context.Context) error {
	defer d.stop()
	defer context.AfterFunc(ctx, d.stop)()
	ctx = d.alive
	info, err := json.Marshal(Info{PID: os.Getpid(), Socket: d.home.Socket(), Started: d.started})
	if err == nil {
		err = writeSecret(d.home.InfoFile(), info)
	}
	if err != nil {
		return errors.Join(err, d.close())
	}
	defer os.Remove(d.home.InfoFile())

	writing, endWriting := context.WithCancel(context.Background())
	var writer, serving sync.WaitGroup
	writer.Go(func() { d.writes.serve(writing, d.commit) })
	serving.Go(func() {
		if err := d.node.Serve(ctx); err != nil {
			d.fail(err)
		}
	})
	serving.Go(func() { d.keepTime(ctx) })
	serving.Go(func() { d.runByItself(ctx) })
	serving.Go(func() { d.keepCalm(ctx) })
	d.dialKnown()
	d.rewrite()
	<-ctx.Done()

	d.mu.Lock()
	d.closing = true
	d.mu.Unlock()
	err = d.runner.Close() // ends the runs, whose records are still written
	serving.Wait()
	d.work.Wait()
	endWriting()
	writer.Wait()
	d.closeModels()
	err = errors.Join(err, d.closeEngines(), d.db.Close())
	if failed := d.failure.Load(); failed != nil {
		err = errors.Join(*failed, err)
	}
	return err
}

// close releases a daemon that never served.
func (d *Daemon) close() error {
	d.node.Close()
	d.closeModels()
	return errors.Join(d.runner.Close(), d.closeEngines(), d.db.Close())
}

// Stop ends Serve, also one that has yet to begin.
func (d *Daemon) Stop() { d.stop() }

// fail stops the daemon: what it knows and what the disk holds have come
// apart, and nothing may be built on either.
func (d *Daemon) fail(err error) {
	err = fmt.Errorf("the daemon cannot go on: %w", err)
	if d.failure.CompareAndSwap(nil, &err) {
		d.logger.Error("stopping", "error", err)
		d.Stop()
	}
}

// broken is why nothing is written any more; nil while it is.
func (d *Daemon) broken() error {
	if err := d.failure.Load(); err != nil {
		return notebook.Errorf(notebook.CodeUnavailable, "%v", *err).With("noted daemon run starts it again")
	}
	return nil
}

// step runs one step under the mutex and returns when what it changed is on
// the disk. A step that is refused writes what it had put into the batch all
// the same: entries that were signed cannot be unsigned. Nothing is written of a
// step that broke the daemon, or of any after it.
func (d *Daemon) step(do func(b *batch) error) error {
	b := newBatch()
	s, err := d.think(b, do)
	if s == nil {
		d.events.tell(b.events...)
		return err
	}
	return errors.Join(err, s.wait())
}

// think is the part of a step that holds the mutex. It returns nil if there is
// nothing to write.
func (d *Daemon) think(b *batch, do func(b *batch) error) (s *sealed, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	defer func() {
		if r := recover(); r != nil {
			d.fail(errors.New("a step panicked half way"))
			panic(r)
		}
	}()
	if err := d.broken(); err != nil {
		return nil, err
	}
	err = do(b)
	if broken := d.broken(); broken != nil {
		b.events = nil // they tell what was not kept
		return nil, broken
	}
	// Also without an entry: that a device contradicted itself is kept.
	for _, r := range d.log.Flush() {
		b.write(func(tx *store.Tx) error { return putChain(tx, r) })
	}
	if len(b.writes) > 0 || len(b.dirty) > 0 || !b.foreign.Empty() {
		s = d.seal(b)
	}
	return s, err
}
