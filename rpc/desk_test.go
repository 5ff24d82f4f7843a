package rpc

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"noted/notebook"
)

// desk is a Backend that keeps what it was asked and answers what it was told
// to, so that a test sees what came through the socket in each direction.
type desk struct {
	mu      sync.Mutex
	calls   []asked
	answers map[string]any       // by method
	err     error                // of every call, if not nil
	steps   []progress           // that an import reports
	output  []notebook.RunOutput // that a run writes
	pairing []notebook.PairEvent
	events  chan notebook.Event // that a watcher gets; nil: it ends at once
	began   chan string         // the method of every call that waits, if not nil
	ended   chan error          // why a call that waits ended
	finish  chan struct{}       // lets calls of Status that wait go on
	panics  any
}

type asked struct {
	method string
	args   []any
}

type progress struct {
	done int
	path string
}

func (d *desk) last() asked {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.calls) == 0 {
		return asked{}
	}
	return d.calls[len(d.calls)-1]
}

func (d *desk) count() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.calls)
}

func (d *desk) note(method string, args ...any) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.calls = append(d.calls, asked{method, args})
	if d.panics != nil {
		panic(d.panics)
	}
	return d.err
}

func (d *desk) answer(method string) any {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.answers[method]
}

func reply[T any](d *desk, method string, args ...any) (T, error) {
	var v T
	if err := d.note(method, args...); err != nil {
		return v, err
	}
	if a, ok := d.answer(method).(T); ok {
		v = a
	}
	return v, nil
}

func replyTo[T any](d *desk, method string, args ...any) (*T, error) {
	v, err := reply[*T](d, method, args...)
	if v == nil && err == nil {
		v = new(T)
	}
	return v, err
}

func (d *desk) Pages(context.Context) ([]notebook.PageInfo, error) {
	return reply[[]notebook.PageInfo](d, "Pages")
}

func (d *desk) Query(_ context.Context, query string) (*notebook.Rows, error) {
	return replyTo[notebook.Rows](d, "Query", query)
}

func (d *desk) Page(_ context.Context, ref string) (*notebook.PageView, error) {
	return replyTo[notebook.PageView](d, "Page", ref)
}

func (d *desk) NewPage(_ context.Context, title string) (*notebook.PageInfo, error) {
	return replyTo[notebook.PageInfo](d, "NewPage", title)
}

func (d *desk) Edit(_ context.Context, e notebook.Edit) (*notebook.PageInfo, error) {
	return replyTo[notebook.PageInfo](d, "Edit", e)
}

func (d *desk) Put(_ context.Context, p notebook.Put) (*notebook.PageInfo, error) {
	return replyTo[notebook.PageInfo](d, "Put", p)
}

func (d *desk) Append(_ context.Context, page notebook.PageID, text, via string) (*notebook.PageInfo, error) {
	return replyTo[notebook.PageInfo](d, "Append", page, text, via)
}

func (d *desk) Rename(_ context.Context, page notebook.PageID, title string) (*notebook.PageInfo, error) {
	return replyTo[notebook.PageInfo](d, "Rename", page, title)
}

func (d *desk) Delete(_ context.Context, page notebook.PageID) error { return d.note("Delete", page) }

func (d *desk) Import(_ context.Context, format, dir string, tell func(int, string)) (*notebook.ImportReport, error) {
	for _, s := range d.steps {
		tell(s.done, s.path)
	}
	return replyTo[notebook.ImportReport](d, "Import", format, dir)
}

func (d *desk) Why(_ context.Context, page notebook.PageID, fence notebook.FenceID) (*notebook.Explanation, error) {
	return replyTo[notebook.Explanation](d, "Why", page, fence)
}

func (d *desk) Run(_ context.Context, r notebook.RunRequest) (*notebook.RunInfo, error) {
	return replyTo[notebook.RunInfo](d, "Run", r)
}

func (d *desk) RunLive(_ context.Context, r notebook.RunRequest, each func(notebook.RunOutput) error) (*notebook.RunInfo, error) {
	for _, o := range d.output {
		if err := each(o); err != nil {
			return nil, err
		}
	}
	return replyTo[notebook.RunInfo](d, "RunLive", r)
}

func (d *desk) Propose(_ context.Context, r notebook.ProposalRequest) (*notebook.Proposal, error) {
	return replyTo[notebook.Proposal](d, "Propose", r)
}

func (d *desk) Approve(_ context.Context, r notebook.ProposalRequest, digest notebook.Hash, p notebook.Presence) (*notebook.Approval, error) {
	return replyTo[notebook.Approval](d, "Approve", r, digest, p)
}

func (d *desk) Approvals(context.Context) ([]notebook.Approval, error) {
	return reply[[]notebook.Approval](d, "Approvals")
}

func (d *desk) Revoke(_ context.Context, approval uint64) error { return d.note("Revoke", approval) }

func (d *desk) Asks(context.Context) ([]notebook.Ask, error) {
	return reply[[]notebook.Ask](d, "Asks")
}

func (d *desk) RequestApproval(_ context.Context, r notebook.ProposalRequest, reason string) (*notebook.Ask, error) {
	return replyTo[notebook.Ask](d, "RequestApproval", r, reason)
}

func (d *desk) Answer(_ context.Context, answers []notebook.Answer, yes bool, p notebook.Presence) ([]notebook.Ask, error) {
	return reply[[]notebook.Ask](d, "Answer", answers, yes, p)
}

func (d *desk) Runs(_ context.Context, most int) ([]notebook.RunInfo, error) {
	return reply[[]notebook.RunInfo](d, "Runs", most)
}

func (d *desk) RunInfo(_ context.Context, number uint64) (*notebook.RunInfo, error) {
	return replyTo[notebook.RunInfo](d, "RunInfo", number)
}

func (d *desk) Cancel(_ context.Context, number uint64) (*notebook.RunInfo, error) {
	return replyTo[notebook.RunInfo](d, "Cancel", number)
}

func (d *desk) Replay(_ context.Context, number uint64) (*notebook.Replay, error) {
	return replyTo[notebook.Replay](d, "Replay", number)
}

func (d *desk) SealLedger(_ context.Context, p notebook.Presence) (*notebook.LedgerReport, error) {
	return replyTo[notebook.LedgerReport](d, "SealLedger", p)
}

func (d *desk) VerifyLedger(context.Context) (*notebook.LedgerReport, error) {
	return replyTo[notebook.LedgerReport](d, "VerifyLedger")
}

func (d *desk) Devices(context.Context) ([]notebook.DeviceInfo, error) {
	return reply[[]notebook.DeviceInfo](d, "Devices")
}

func (d *desk) Pair(_ context.Context, each func(notebook.PairEvent) error) error {
	return d.pair(each, "Pair")
}

func (d *desk) Join(_ context.Context, invitation, name string, each func(notebook.PairEvent) error) error {
	return d.pair(each, "Join", invitation, name)
}

func (d *desk) pair(each func(notebook.PairEvent) error, method string, args ...any) error {
	if err := d.note(method, args...); err != nil {
		return err
	}
	for _, e := range d.pairing {
		if err := each(e); err != nil {
			return err
		}
	}
	return nil
}

func (d *desk) Confirm(_ context.Context, session string, yes bool, p notebook.Presence) error {
	return d.note("Confirm", session, yes, p)
}

func (d *desk) Quotas(context.Context) ([]notebook.DeviceQuota, error) {
	return reply[[]notebook.DeviceQuota](d, "Quotas")
}

func (d *desk) SetQuota(_ context.Context, device notebook.DeviceID, change notebook.Quota, p notebook.Presence) (*notebook.DeviceQuota, error) {
	return replyTo[notebook.DeviceQuota](d, "SetQuota", device, change, p)
}

func (d *desk) Purge(_ context.Context, ref string, p notebook.Presence) (*notebook.PageInfo, error) {
	return replyTo[notebook.PageInfo](d, "Purge", ref, p)
}

func (d *desk) Rebuild(_ context.Context, ref string) (*notebook.PageInfo, error) {
	return replyTo[notebook.PageInfo](d, "Rebuild", ref)
}

func (d *desk) Quarantine(_ context.Context, device notebook.DeviceID) (*notebook.QuarantineReport, error) {
	return reply[*notebook.QuarantineReport](d, "Quarantine", device)
}

func (d *desk) Release(_ context.Context, device notebook.DeviceID, p notebook.Presence) error {
	return d.note("Release", device, p)
}

func (d *desk) Contradiction(_ context.Context, device notebook.DeviceID) (*notebook.Contradiction, error) {
	return reply[*notebook.Contradiction](d, "Contradiction", device)
}

func (d *desk) Resolve(_ context.Context, device notebook.DeviceID, as notebook.Resolution, p notebook.Presence) (*notebook.Contradiction, error) {
	return reply[*notebook.Contradiction](d, "Resolve", device, as, p)
}

func (d *desk) RemoveDevice(_ context.Context, device notebook.DeviceID, p notebook.Presence) error {
	return d.note("RemoveDevice", device, p)
}

func (d *desk) Agents(context.Context) ([]notebook.AgentInfo, error) {
	return reply[[]notebook.AgentInfo](d, "Agents")
}

func (d *desk) AddAgent(_ context.Context, name string, p notebook.Presence) (string, error) {
	return reply[string](d, "AddAgent", name, p)
}

func (d *desk) RemoveAgent(_ context.Context, name string) error { return d.note("RemoveAgent", name) }

func (d *desk) Engines(context.Context) ([]notebook.EngineInfo, error) {
	return reply[[]notebook.EngineInfo](d, "Engines")
}

func (d *desk) AddEngine(_ context.Context, file string) (*notebook.EngineInfo, error) {
	return replyTo[notebook.EngineInfo](d, "AddEngine", file)
}

func (d *desk) RemoveEngine(_ context.Context, name string) error {
	return d.note("RemoveEngine", name)
}

// Status waits for finish, if there is one, or for its call to be given up.
func (d *desk) Status(ctx context.Context) (*notebook.Status, error) {
	if d.finish != nil {
		d.began <- "Status"
		select {
		case <-d.finish:
		case <-ctx.Done():
			d.ended <- ctx.Err()
			return nil, ctx.Err()
		}
	}
	return replyTo[notebook.Status](d, "Status")
}

func (d *desk) Policy(context.Context) (*notebook.PolicyView, error) {
	return replyTo[notebook.PolicyView](d, "Policy")
}

func (d *desk) TestPolicy(_ context.Context, fixtures []byte) ([]notebook.PolicyCase, error) {
	return reply[[]notebook.PolicyCase](d, "TestPolicy", fixtures)
}

func (d *desk) AcceptPolicy(_ context.Context, digest notebook.Hash, p notebook.Presence) (*notebook.PolicyView, error) {
	return replyTo[notebook.PolicyView](d, "AcceptPolicy", digest, p)
}

func (d *desk) Stop(context.Context) error { return d.note("Stop") }

// Watch gives the events of the channel until it is closed or the watcher leaves.
func (d *desk) Watch(ctx context.Context, each func(notebook.Event) error) (err error) {
	if err := d.note("Watch"); err != nil {
		return err
	}
	if d.events == nil {
		return nil
	}
	if d.began != nil {
		d.began <- "Watch"
		defer func() { d.ended <- err }()
	}
	for {
		select {
		case e, more := <-d.events:
			if !more {
				return nil
			}
			if err := each(e); err != nil {
				return err
			}
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// book is an Opener with a fixed client for each token.
type book map[string]Client

func (b book) Open(token string) (Client, error) {
	if c, ok := b[token]; ok {
		return c, nil
	}
	return Client{}, notebook.Errorf(notebook.CodeDenied, "the token is not known").With("noted agent add")
}

// The tokens that every test's daemon knows.
const (
	ownerToken   = "token-of-the-owner"
	browserToken = "token-of-the-browser"
	agentToken   = "token-of-the-agent"
	viewerToken  = "token-of-the-viewer"
)

var tokens = map[Role]string{RoleOwner: ownerToken, RoleBrowser: browserToken, RoleAgent: agentToken, RoleViewer: viewerToken}

// house is a daemon's door on a real socket with a desk behind it.
type house struct {
	*desk
	server *Server
	path   string
	log    *syncLog
	stop   func() // ends Serve and waits for it; may be called more than once
}

// newHouse opens a door; change may set the desk, bounds and opener before it is used.
func newHouse(t *testing.T, change ...func(*house)) *house {
	t.Helper()
	h := &house{desk: &desk{answers: map[string]any{}}, log: &syncLog{}}
	b := book{}
	for role, token := range tokens {
		c := Client{Role: role, Backend: h.desk}
		if role == RoleAgent {
			c.Name = "helper"
		}
		b[token] = c
	}
	h.server = newServer(b, ServerConfig{Log: slog.New(slog.NewTextHandler(h.log, nil))}, defaultBounds)
	for _, c := range change {
		c(h)
	}
	h.path = filepath.Join(privateDir(t), "daemon.sock")
	l, err := Listen(h.path)
	if err != nil {
		t.Fatal(err)
	}
	h.serve(t, l)
	return h
}

// serve lets the server answer on l until the test ends.
func (h *house) serve(t *testing.T, l net.Listener) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- h.server.Serve(ctx, l) }()
	h.stop = sync.OnceFunc(func() {
		cancel()
		select {
		case err := <-done:
			if err != nil {
				t.Errorf("Serve: %v", err)
			}
		case <-time.After(20 * time.Second):
			t.Error("Serve does not end")
		}
	})
	t.Cleanup(h.stop)
}

// client is a client with the authority of role.
func (h *house) client(t *testing.T, role Role) *LocalClient {
	t.Helper()
	c := Dial(h.path, tokens[role])
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// privateDir is a directory of the test's own, with a path short enough for a socket.
func privateDir(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "s")
	if len(dir) > 90 {
		t.Fatalf("the temporary directory's path is too long for a socket: %s", dir)
	}
	return dir
}

// syncLog keeps what is logged.
type syncLog struct {
	mu sync.Mutex
	b  strings.Builder
}

func (l *syncLog) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *syncLog) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// within10 is a context for one step of a test.
func within10(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	t.Cleanup(cancel)
	return ctx
}

// receive is the next value of a channel, or a failed test.
func receive[T any](t *testing.T, what string, c <-chan T) T {
	t.Helper()
	select {
	case v := <-c:
		return v
	case <-time.After(10 * time.Second):
		t.Fatalf("%s does not happen", what)
		panic("unreachable")
	}
}

// wantCode fails the test unless err is a notebook error of that code.
func wantCode(t *testing.T, err error, code notebook.Code) *notebook.Error {
	t.Helper()
	var e *notebook.Error
	if !errors.As(err, &e) || e.Code != code {
		t.Fatalf("the error is %v, want one of code %s", err, code)
	}
	return e
}
