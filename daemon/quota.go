package daemon

import (
	"errors"
	"fmt"
	"time"

	"noted/crdt"
	"noted/notebook"
	"noted/store"
	"noted/trust"
)

// defaultQuota is how much of a device's log is kept here before it pauses,
// until a person allows more: a gibibyte is a page of 2 KiB rewritten half a
// million times. An actor is a door in one opening of the store, so 4,096 are
// more than two years of starting noted five times a day and editing one page
// each time; and 10,000 epochs are that for a decade.
var defaultQuota = notebook.Quota{Bytes: 1 << 30, Pages: 20_000, Actors: 4096, Epochs: 10_000}

// highestQuota is what a person can allow: what the parts can bear.
var highestQuota = notebook.Quota{Bytes: 1 << 40, Pages: 1_000_000, Actors: 65_535, Epochs: 1_000_000}

// Work is counted in the steps of package crdt, of about five nanoseconds.
const (
	// entrySteps is what any entry costs: its signature, its place in the chain
	// and on the disk.
	entrySteps = 8000
	// weightSteps is what a byte of a page's record costs when a batch changes
	// the page, which is read and written once; textSteps a byte of its text,
	// whose fences are read again.
	weightSteps, textSteps = 1, 10

	// stepWork is how much of what others sent is worked on before the mutex is
	// given to somebody else: a third of a second. Four times that ends a step in
	// the middle of a chunk.
	stepWork = 1 << 26
	// takeChunk is how many entries are taken before the work is looked at. It
	// fits what may wait of one device.
	takeChunk = 256

	// minuteWork is how much work one device may make in a minute: about twenty
	// seconds. An honest first sync does not come there: 10,000 pages of 2 KiB are
	// a third of it, and entries cost more to send than to take. What comes there
	// is made to be dear: changes that go on from the middle of long histories,
	// crowds of actors, large pages touched one character at a time.
	minuteWork = 1 << 32
)

// account is what this device keeps of a device's log, and may keep.
type account struct {
	_       struct{} `cbor:",toarray"`
	Version uint8
	Quota   *notebook.Quota // nil: the default
	Entries uint64
	Used    notebook.Quota
	Learned uint64 // bytes of the record of foreign text that grew of what it did; no purge frees them
}

const (
	accountVersion = 2
	maxAccount     = 256
)

func (a *account) quota() notebook.Quota {
	if a.Quota == nil {
		return defaultQuota
	}
	return *a.Quota
}

// used is what counts on the quota.
func (a *account) used() notebook.Quota {
	u := a.Used
	u.Bytes += a.Learned
	return u
}

func openAccount(b []byte) (*account, error) {
	a := new(account)
	if err := notebook.Unmarshal(b, a, maxAccount); err != nil {
		return nil, err
	}
	if a.Version != accountVersion {
		return nil, fmt.Errorf("an account of version %d", a.Version)
	}
	return a, nil
}

// pause is why a device's log is paused here.
type pause struct {
	why   string
	page  notebook.PageID // that is full; zero for another reason
	until time.Time       // of a rate; zero for what a person has to end
}

// minute is what a device made this one work, since the minute began.
type minute struct {
	began time.Time
	steps uint64
}

// meter is what is counted of other devices. It is guarded by the daemon's mutex.
type meter struct {
	accounts map[notebook.DeviceID]*account
	begun    map[notebook.PageID]bool // pages whose first entry may not be on the disk yet, or is void
	minutes  map[notebook.DeviceID]*minute
	paused   map[notebook.DeviceID]pause
	wake     time.Time         // when paused logs are looked at again; zero if no rate paused one
	taking   *batch            // of the step that takes what others sent
	unsaid   []notebook.PageID // that others purged, of which this device has not said so yet
}

func newMeter() meter {
	return meter{
		accounts: map[notebook.DeviceID]*account{}, begun: map[notebook.PageID]bool{},
		minutes: map[notebook.DeviceID]*minute{}, paused: map[notebook.DeviceID]pause{},
	}
}

// account is that of a device, which may be new. It is called under d.mu.
func (d *Daemon) account(device notebook.DeviceID) *account {
	a := d.accounts[device]
	if a == nil {
		a = &account{Version: accountVersion}
		d.accounts[device] = a
	}
	return a
}

// loadAccounts reads the accounts, or makes them from the log where they do not
// account for all of it: that of a home that was founded or joined just now.
func (d *Daemon) loadAccounts(tx *store.Tx) error {
	d.meter = newMeter()
	entries := uint64(0)
	for r, err := range tx.All(store.Quotas, nil) {
		if err != nil {
			return err
		}
		a, err := openAccount(r.Value)
		if err != nil {
			return fmt.Errorf("the quota of device %x: %w", r.Key, err)
		}
		d.accounts[notebook.DeviceID(r.Key)] = a
		entries += a.Entries
	}
	if entries == tx.LastOrdinal() {
		return nil
	}
	made, err := accountsOf(tx)
	for device, a := range made {
		if kept := d.accounts[device]; kept != nil {
			a.Quota, a.Learned = kept.Quota, kept.Learned
		}
	}
	d.accounts = made
	return err
}

// accountsOf counts the log. How many actors a device has on a page is not counted.
func accountsOf(tx *store.Tx) (map[notebook.DeviceID]*account, error) {
	accounts := map[notebook.DeviceID]*account{}
	pages := map[notebook.PageID]bool{}
	for s, err := range tx.Entries(1) {
		if err != nil {
			return nil, err
		}
		a := accounts[s.Place.Position.Device]
		if a == nil {
			a = &account{Version: accountVersion}
			accounts[s.Place.Position.Device] = a
		}
		a.add(s.Place.Position, &s.Entry)
		if !s.Page.IsZero() && !pages[s.Page] {
			pages[s.Page] = true
			a.Used.Pages++
		}
	}
	return accounts, nil
}

func (a *account) add(at notebook.Position, e *notebook.Entry) {
	a.Entries++
	a.Used.Bytes += entryBytes(e)
	if at.Seq == 1 {
		a.Used.Epochs++
	}
}

func entryBytes(e *notebook.Entry) uint64 { return uint64(len(e.Header) + len(e.Sig) + len(e.Body)) }

// charge puts an entry that is about to be kept on its device's account.
func (d *Daemon) charge(b *batch, v trust.Verified) {
	h, e := v.Header(), v.Entry()
	if b.bare[v.Hash()] {
		e.Body = nil
	}
	a := d.account(h.Device)
	a.add(h.Position(), &e)
	if !h.Page.IsZero() && !d.hasBegun(h.Page) {
		d.begun[h.Page] = true
		a.Used.Pages++
	}
	b.accounts[h.Device] = true
}

// hasBegun reports whether an entry of the page is kept.
func (d *Daemon) hasBegun(id notebook.PageID) bool {
	if _, known := d.index.cards[id]; known || d.begun[id] {
		return true
	}
	found := false
	_ = d.db.View(func(tx *store.Tx) error {
		for range tx.PageEntries(id) {
			found = true
			break
		}
		return nil
	})
	return found
}

// saveAccounts puts the accounts that a batch changed into it.
func (d *Daemon) saveAccounts(b *batch) error {
	for device := range b.accounts {
		value, err := notebook.Marshal(d.account(device))
		if err != nil {
			return err
		}
		b.write(func(tx *store.Tx) error { return tx.Put(store.Quotas, device[:], value) })
	}
	return nil
}

// room says whether an entry that a peer sent is taken now, and takes what its
// body says into the page that it is of. It is called by the log, in the order in
// which the entries are accepted, under d.mu. An error pauses the log that the
// entry is in: nothing of it, and nothing that rests on it, goes on before there
// is room.
func (d *Daemon) room(v trust.Verified) error {
	b, h := d.taking, v.Header()
	if b.work >= 4*stepWork {
		b.more = true
		return trust.ErrPaused
	}
	if h.Device != d.signer.Device() {
		if p, over := d.over(v); over {
			return d.pause(b, h.Device, p)
		}
	}
	if h.Kind == notebook.KindRoster {
		d.charge(b, v)
		return nil // acted on when the log has folded it
	}
	if err := d.lostPurge(b, v); err != nil {
		d.fail(err)
		return trust.ErrPaused
	}
	void := d.logVoid(v)
	if void == "" {
		switch err := d.meteredBody(b, v); {
		case err == nil:
		case errors.Is(err, crdt.ErrFull):
			return d.pause(b, h.Device, d.fullPage(h))
		case isVoid(err):
			void = voidReason(err)
		default:
			// The entry could not be judged: what is kept here cannot be read.
			d.fail(err)
			return trust.ErrPaused
		}
	}
	b.verdicts[v.Hash()] = void
	d.charge(b, v)
	if !b.bare[v.Hash()] {
		b.judged = append(b.judged, bodied{header: h, hash: v.Hash(), body: len(v.Entry().Body), void: void})
	}
	return nil
}

// meteredBody is applyBody, with its work on the account of whose it is.
func (d *Daemon) meteredBody(b *batch, v trust.Verified) error {
	h := v.Header()
	work := uint64(entrySteps)
	var before uint64
	if h.Kind == notebook.KindText || h.Kind == notebook.KindSet {
		p, err := d.page(h.Page)
		if err != nil {
			return err
		}
		before = p.shadow.Steps()
		if b.dirty[h.Page] == nil {
			work += 2*weightSteps*uint64(p.shadow.Weight()) + textSteps*uint64(p.shadow.Size())
		}
		if !p.own.Empty() {
			work += textSteps * uint64(p.shadow.Size())
		}
	}
	err := d.applyBody(b, v)
	if p := d.open[h.Page]; p != nil && h.Kind == notebook.KindText {
		if steps := p.shadow.Steps(); steps > before {
			work += steps - before
		}
	}
	b.work += work
	m := d.minutes[h.Device]
	if m == nil || time.Since(m.began) >= time.Minute {
		m = &minute{began: time.Now()}
		d.minutes[h.Device] = m
	}
	m.steps += work
	if h.Kind == notebook.KindText && err == nil {
		if p := d.open[h.Page]; p != nil {
			a := d.account(h.Device)
			has, _ := p.shadow.Actors(v.Author(), h.Epoch)
			a.Used.Actors = max(a.Used.Actors, uint64(has))
		}
	}
	return err
}

// over finds the bound that an entry of another device would exceed.
func (d *Daemon) over(v trust.Verified) (p pause, over bool) {
	h, entry := v.Header(), v.Entry()
	a := d.account(h.Device)
	quota, name := a.quota(), d.name(h.Device)
	raise := func(flag string) string {
		return fmt.Sprintf("noted device quota %s --%s lets it go on", quoted(name), flag)
	}
	if m := d.minutes[h.Device]; m != nil && m.steps >= minuteWork {
		if until := m.began.Add(time.Minute); time.Now().Before(until) {
			return pause{why: fmt.Sprintf("it made more work than a device may in a minute, and goes on by itself at %s", until.Format("15:04:05")), until: until}, true
		}
	}
	if size := entryBytes(&entry); a.used().Bytes+size > quota.Bytes {
		return pause{why: fmt.Sprintf("%d of the %d bytes that are kept of it here are used: %s", a.used().Bytes, quota.Bytes, raise("bytes"))}, true
	}
	if h.Seq == 1 && a.Used.Epochs >= quota.Epochs {
		return pause{why: fmt.Sprintf("it opened its store %d times, as often as is kept here: %s", a.Used.Epochs, raise("epochs"))}, true
	}
	if !h.Page.IsZero() && a.Used.Pages >= quota.Pages && !d.hasBegun(h.Page) {
		return pause{why: fmt.Sprintf("it began %d pages, as many as are kept here: %s", a.Used.Pages, raise("pages"))}, true
	}
	if h.Kind != notebook.KindText || v.Void() != "" {
		return pause{}, false
	}
	page, err := d.page(h.Page)
	if err != nil {
		return pause{}, false // said by whoever reads it next
	}
	if has, then := page.shadow.Actors(v.Author(), h.Epoch); then > has && uint64(has) >= quota.Actors {
		return pause{why: fmt.Sprintf("it wrote to page %s through %d doors, as many as are kept here: %s", d.pageName(h.Page), has, raise("actors")), page: h.Page}, true
	}
	return pause{}, false
}

// fullPage is the pause of a log of which the next entry does not fit its page.
func (d *Daemon) fullPage(h *notebook.Header) pause {
	return pause{page: h.Page, why: fmt.Sprintf("page %s has as many edits as a page can keep: copy its text into a new page, then noted page purge %s lets it go on",
		d.pageName(h.Page), quoted("="+h.Page.String()))}
}

// pageName is a page's title as a line of text, or its id where it has none.
func (d *Daemon) pageName(id notebook.PageID) string {
	if title := d.index.cards[id].Title; title != "" {
		return notebook.EscapeLine(title)
	}
	return "=" + id.String()
}

// quoted is a word of a command line that a person can copy.
func quoted(word string) string {
	for _, r := range word {
		if (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '-' && r != '_' && r != '=' {
			return fmt.Sprintf("%q", word)
		}
	}
	return word
}

// pause holds a device's log, and tells the person once.
func (d *Daemon) pause(b *batch, device notebook.DeviceID, p pause) error {
	old, already := d.paused[device]
	if !already || old.why != p.why {
		d.paused[device] = p
		if !already {
			b.tell(notebook.Event{Kind: "note", Device: device, Page: p.page, Text: d.pausedText(device)})
		}
	}
	if !p.until.IsZero() {
		d.wakeAt(p.until)
	}
	return fmt.Errorf("%w: %s", trust.ErrPaused, p.why)
}

// pausedText says that a device's log is paused here, why, and what ends that.
func (d *Daemon) pausedText(device notebook.DeviceID) string {
	return d.name(device) + " is paused here: " + d.paused[device].why
}

// wakeAt looks at the paused logs again at a time, unless that is to happen
// before then.
func (d *Daemon) wakeAt(at time.Time) {
	if !d.wake.IsZero() && !d.wake.After(at) {
		return
	}
	d.wake = at
	d.work.Go(func() {
		timer := time.NewTimer(time.Until(at))
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-d.alive.Done():
			return
		}
		d.mu.Lock()
		due := d.wake.Equal(at)
		if due {
			d.wake = time.Time{}
		}
		d.mu.Unlock()
		if !due {
			return
		}
		if err := d.resume(); err != nil {
			d.logger.Warn("paused logs did not go on", "error", err)
		}
	})
}

// resume lets paused logs go on as far as there is room now: with what waits
// here, and with what the other devices send again.
func (d *Daemon) resume() error {
	d.mu.Lock()
	before := d.paused
	d.paused = map[notebook.DeviceID]pause{}
	d.mu.Unlock()
	if len(before) == 0 {
		return nil
	}
	if err := d.takeIn(notebook.DeviceID{}, nil); err != nil {
		return err
	}
	d.mu.Lock()
	var events []notebook.Event
	for device := range before {
		if _, still := d.paused[device]; !still {
			events = append(events, notebook.Event{Kind: "device", Device: device, Text: d.name(device) + " goes on"})
		}
	}
	d.mu.Unlock()
	d.events.tell(events...)
	d.node.Again()
	return nil
}

// quotas are what is kept of each device's log, and may be.
func (d *Daemon) quotas() ([]notebook.DeviceQuota, error) {
	devices, err := d.devices()
	if err != nil {
		return nil, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	all := make([]notebook.DeviceQuota, len(devices))
	for i, device := range devices {
		all[i] = d.deviceQuota(device.ID)
	}
	return all, nil
}

func (d *Daemon) deviceQuota(device notebook.DeviceID) notebook.DeviceQuota {
	a := d.account(device)
	return notebook.DeviceQuota{
		Device: device, Name: d.log.Roster().Shown(device), Self: device == d.signer.Device(),
		Quota: a.quota(), Used: a.used(), Paused: d.paused[device].why,
	}
}

// setQuota changes a device's quota where change is not zero. Raising takes
// presence, and lets what is paused go on.
func (d *Daemon) setQuota(device notebook.DeviceID, change notebook.Quota, presence notebook.Presence) (*notebook.DeviceQuota, error) {
	if device == d.signer.Device() {
		return nil, notebook.Errorf(notebook.CodeInvalid, "this device's own entries never pause here").With("set its quota on another device of the notebook")
	}
	d.mu.Lock()
	err := d.knownDevice(device)
	next, raises, same := d.account(device).quota(), false, true
	d.mu.Unlock()
	if err != nil {
		return nil, err
	}
	for _, f := range []struct {
		name       string
		from, most uint64
		to         *uint64
		set        uint64
	}{
		{"bytes", next.Bytes, highestQuota.Bytes, &next.Bytes, change.Bytes},
		{"pages", next.Pages, highestQuota.Pages, &next.Pages, change.Pages},
		{"actors", next.Actors, highestQuota.Actors, &next.Actors, change.Actors},
		{"epochs", next.Epochs, highestQuota.Epochs, &next.Epochs, change.Epochs},
	} {
		if f.set > f.most {
			return nil, notebook.Errorf(notebook.CodeInvalid, "a quota of %d %s is more than the %d that can be kept", f.set, f.name, f.most)
		}
		if f.set == 0 {
			continue
		}
		same = false
		*f.to = f.set
		raises = raises || f.set > f.from
	}
	if same {
		return nil, notebook.Errorf(notebook.CodeInvalid, "no quota is to be changed").With("noted device quota NAME --bytes N, --pages N, --actors N or --epochs N")
	}
	if raises {
		if err := d.present(presence, "keep more of "+d.deviceName(device)); err != nil {
			return nil, err
		}
	}
	err = d.step(func(b *batch) error {
		d.account(device).Quota = &next
		b.accounts[device] = true
		return nil
	})
	if err == nil {
		err = d.resume()
	}
	if err != nil {
		return nil, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	q := d.deviceQuota(device)
	return &q, nil
}
