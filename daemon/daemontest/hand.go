package daemontest

import (
	"context"
	"strings"
	"testing"
	"time"

	"noted/daemon"
	"noted/notebook"
	"noted/trust"
)

// Hand is somebody at a device: its person, or an agent. What it does fails
// the test if it cannot be done.
type Hand struct {
	*Device
	Client daemon.Client
	t      testing.TB
}

func ctx() context.Context { return context.Background() }

func (h *Hand) must(what string, err error) {
	h.t.Helper()
	if err != nil {
		h.t.Fatalf("%s, %s: %s: %v", h.Name, h.Client.Role(), what, err)
	}
}

// Presence proves that the person is there who wants act done.
func (d *Device) Presence(act string) notebook.Presence {
	return notebook.Presence{PIN: d.pin, Typed: trust.Sentence(act)}
}

// Page is a page by its title.
func (h *Hand) Page(title string) *notebook.PageView {
	h.t.Helper()
	p, err := h.Client.Page(ctx(), title)
	h.must("show "+title, err)
	return p
}

// Body is a page's text; empty if there is no such page.
func (h *Hand) Body(title string) string {
	p, err := h.Client.Page(ctx(), title)
	if err != nil {
		return ""
	}
	return p.Body
}

// Types makes the page read as body, as one who types it: the page is made if
// there is none, and what it has already stays as it is.
func (h *Hand) Types(title, body string) {
	h.t.Helper()
	_, err := h.put(title, body, "")
	h.must("type "+title, err)
}

// Pipes makes the page read as body, which comes from a pipe.
func (h *Hand) Pipes(title, body string) {
	h.t.Helper()
	_, err := h.put(title, body, "stdin")
	h.must("pipe "+title, err)
}

func (h *Hand) put(title, body, via string) (*notebook.PageInfo, error) {
	p, err := h.Client.Page(ctx(), title)
	if err != nil {
		if _, err := h.Client.NewPage(ctx(), title); err != nil {
			return nil, err
		}
		if p, err = h.Client.Page(ctx(), title); err != nil {
			return nil, err
		}
	}
	return h.Client.Put(ctx(), notebook.Put{Page: p.ID, Base: p.Revision, Body: body, Via: via})
}

// Edits types new where the page reads old, which is there once.
func (h *Hand) Edits(title, old, new string) {
	h.t.Helper()
	p := h.Page(title)
	if n := strings.Count(p.Body, old); n != 1 {
		h.t.Fatalf("%s: %q is %d times in %q", h.Name, old, n, p.Body)
	}
	before, _, _ := strings.Cut(p.Body, old)
	_, err := h.Client.Edit(ctx(), notebook.Edit{Page: p.ID, Base: p.Revision, Splices: []notebook.Splice{
		{At: len([]rune(before)), Delete: len([]rune(old)), Insert: new},
	}})
	h.must("edit "+title, err)
}

// Sees waits until the page reads as body.
func (h *Hand) Sees(title, body string) {
	h.t.Helper()
	for end := time.Now().Add(Patience); time.Now().Before(end); time.Sleep(time.Millisecond) {
		if h.Body(title) == body {
			return
		}
	}
	h.t.Fatalf("%s: %s reads %q, not %q", h.Name, title, h.Body(title), body)
}

// Fence is the nth fence of a page, from 1.
func (h *Hand) Fence(title string, n int) notebook.FenceInfo {
	h.t.Helper()
	p := h.Page(title)
	if n < 1 || n > len(p.Fences) {
		h.t.Fatalf("%s: %s has %d fences, and no number %d:\n%s", h.Name, title, len(p.Fences), n, p.Body)
	}
	return p.Fences[n-1]
}

// Stands fails the test if the nth fence of the page stands in another way.
func (h *Hand) Stands(title string, n int, want string) {
	h.t.Helper()
	if f := h.Fence(title, n); f.Standing != want {
		h.t.Errorf("%s: %s#%d stands %q, not %q", h.Name, title, n, f.Standing, want)
	}
}

// Decides fails the test if a run of the nth fence would be decided in another
// way: a rung, "ask" or "refuse".
func (h *Hand) Decides(title string, n int, want string) {
	h.t.Helper()
	if f := h.Fence(title, n); f.Decision != want {
		h.t.Errorf("%s: %s#%d: a run would be %q (%s), not %q", h.Name, title, n, f.Decision, f.Reason, want)
	}
}

// Ref is how a client names the fence that it was shown.
func Ref(f notebook.FenceInfo) notebook.FenceRef {
	return notebook.FenceRef{Page: f.Page, Fence: f.ID, Shown: f.Hash}
}

// TryRun runs a fence as it was shown.
func (h *Hand) TryRun(f notebook.FenceInfo) (*notebook.RunInfo, error) {
	return h.Client.Run(ctx(), notebook.RunRequest{FenceRef: Ref(f)})
}

// Runs runs the nth fence of the page.
func (h *Hand) Runs(title string, n int) *notebook.RunInfo {
	h.t.Helper()
	run, err := h.TryRun(h.Fence(title, n))
	h.must("run "+title, err)
	return run
}

// Refused fails the test unless a run of the nth fence is refused with the
// code, for a reason that says why.
func (h *Hand) Refused(title string, n int, code notebook.Code, why string) {
	h.t.Helper()
	run, err := h.TryRun(h.Fence(title, n))
	if err == nil {
		h.t.Fatalf("%s: %s#%d ran: %+v", h.Name, title, n, run.Result)
	}
	Refusal(h.t, err, code, why)
}

// Refusal fails the test unless err is a refusal with the code that says why.
func Refusal(t testing.TB, err error, code notebook.Code, why string) {
	t.Helper()
	if got := CodeOf(err); got != code || !strings.Contains(err.Error(), why) {
		t.Errorf("refused with %q: %v\nnot with %q: …%s…", got, err, code, why)
	}
}

// Proposes shows what an approval of a fence would be.
func (h *Hand) Proposes(f notebook.FenceInfo, scope notebook.Scope) *notebook.Proposal {
	h.t.Helper()
	p, err := h.Client.Propose(ctx(), notebook.ProposalRequest{FenceRef: Ref(f), Scope: scope})
	h.must("propose", err)
	return p
}

// TryApprove says yes to a proposal as it was shown.
func (h *Hand) TryApprove(p *notebook.Proposal) (*notebook.Approval, error) {
	return h.Client.Approve(ctx(), p.ProposalRequest, p.Digest, h.Presence("approve "+p.Digest.String()[:12]))
}

// Approves lets the nth fence of the page have what it asks for.
func (h *Hand) Approves(title string, n int, scope notebook.Scope) *notebook.Approval {
	h.t.Helper()
	a, err := h.TryApprove(h.Proposes(h.Fence(title, n), scope))
	h.must("approve "+title, err)
	return a
}

// Status is the daemon in one look.
func (h *Hand) Status() *notebook.Status {
	h.t.Helper()
	s, err := h.Client.Status(ctx())
	h.must("status", err)
	return s
}

// Devices is the roster as this device sees it.
func (h *Hand) Devices() []notebook.DeviceInfo {
	h.t.Helper()
	all, err := h.Client.Devices(ctx())
	h.must("list devices", err)
	return all
}

// Join answers an invitation.
func (h *Hand) Join(ctx context.Context, invitation string, each func(notebook.PairEvent) error) error {
	return h.Client.Join(ctx, invitation, h.Name, each)
}

// Removes shuts a device out.
func (h *Hand) Removes(name string) {
	h.t.Helper()
	device := h.w.Device(name)
	h.must("remove "+name, h.Client.RemoveDevice(ctx(), device.ID, h.Presence("remove "+name)))
}

// Watches returns what is told here from now on.
func (h *Hand) Watches() *Told {
	watching, cancel := context.WithCancel(ctx())
	h.t.Cleanup(cancel)
	told := &Told{t: h.t, w: h.w, name: h.Name}
	began := make(chan struct{})
	go func() {
		close(began)
		_ = h.Client.Watch(watching, told.add)
	}()
	<-began
	time.Sleep(time.Millisecond) // Watch has subscribed
	return told
}
