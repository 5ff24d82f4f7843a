package rpc

import (
	"context"
	"errors"
	"net"
	"net/http"
	"os"
	"syscall"
	"time"

	"connectrpc.com/connect"

	"noted/notebook"
	"noted/rpc/notedv1"
)

// LocalClient is a [Backend] on the other side of the daemon's socket. Its
// errors are the daemon's, as *[notebook.Error], or of the call itself: code
// unavailable where no daemon answers, timeout where ctx's time was over, and
// [context.Canceled] where ctx was cancelled.
type LocalClient struct {
	transport *http.Transport
	pages     notedv1.PagesClient
	fences    notedv1.FencesClient
	asks      notedv1.AsksClient
	runs      notedv1.RunsClient
	devices   notedv1.DevicesClient
	agents    notedv1.AgentsClient
	engines   notedv1.EnginesClient
	daemon    notedv1.DaemonClient
}

var _ Backend = (*LocalClient)(nil)

// Dial makes a client of the daemon whose socket is at path, with the authority
// that token has. Nothing is connected before the first call. Before it says
// anything a connection makes sure that the other end belongs to this user.
func Dial(path, token string) *LocalClient {
	return dial(path, token, uint32(os.Geteuid()))
}

func dial(path, token string, uid uint32) *LocalClient {
	transport := &http.Transport{
		DialContext:            func(ctx context.Context, _, _ string) (net.Conn, error) { return dialDaemon(ctx, path, uid) },
		DisableCompression:     true,
		MaxIdleConnsPerHost:    8,
		IdleConnTimeout:        time.Minute,
		MaxResponseHeaderBytes: 64 << 10,
	}
	web := &http.Client{Transport: bearer{token, transport}}
	options := []connect.ClientOption{
		connect.WithCodec(binaryCodec{tolerant: true}),
		connect.WithReadMaxBytes(defaultBounds.answer),
		connect.WithSendMaxBytes(int(defaultBounds.text)),
		connect.WithAcceptCompression("gzip", nil, nil),
	}
	const base = "http://" + localHost
	return &LocalClient{
		transport: transport,
		pages:     notedv1.NewPagesClient(web, base, options...),
		fences:    notedv1.NewFencesClient(web, base, options...),
		asks:      notedv1.NewAsksClient(web, base, options...),
		runs:      notedv1.NewRunsClient(web, base, options...),
		devices:   notedv1.NewDevicesClient(web, base, options...),
		agents:    notedv1.NewAgentsClient(web, base, options...),
		engines:   notedv1.NewEnginesClient(web, base, options...),
		daemon:    notedv1.NewDaemonClient(web, base, options...),
	}
}

// Close gives up the connections that no call uses.
func (c *LocalClient) Close() error {
	c.transport.CloseIdleConnections()
	return nil
}

// bearer adds the token to every request.
type bearer struct {
	token string
	next  http.RoundTripper
}

func (b bearer) RoundTrip(q *http.Request) (*http.Response, error) {
	q = q.Clone(q.Context())
	q.Header.Set("Authorization", "Bearer "+b.token)
	return b.next.RoundTrip(q)
}

// dialDaemon connects to the socket at path and refuses one whose other end is
// not uid: the token is for the person's own daemon alone.
func dialDaemon(ctx context.Context, path string, uid uint32) (net.Conn, error) {
	if err := checkSocketPath(path); err != nil {
		return nil, err
	}
	d := net.Dialer{Timeout: dialTimeout}
	c, err := d.DialContext(ctx, "unix", path)
	switch {
	case err == nil:
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case errors.Is(err, os.ErrNotExist), errors.Is(err, syscall.ECONNREFUSED):
		return nil, notebook.Errorf(notebook.CodeUnavailable, "no daemon is running on %s", path).With("noted daemon run")
	default:
		return nil, notebook.Errorf(notebook.CodeUnavailable, "the daemon on %s cannot be reached: %v", path, plainDial(err)).With("noted daemon run")
	}
	p, err := peerOf(c)
	switch {
	case err != nil:
		err = notebook.Errorf(notebook.CodeUnavailable, "it cannot be known whose daemon answers on %s: %v", path, err)
	case p.uid != uid:
		err = notebook.Errorf(notebook.CodeDenied, "the daemon on %s belongs to another user (uid %d), so it gets no token of yours", path, p.uid).
			With("name your own with --home or NOTED_HOME")
	default:
		return c, nil
	}
	_ = c.Close()
	return nil, err
}

// plainDial is the cause of a failed connection without the address, which the message has already.
func plainDial(err error) error {
	var op *net.OpError
	if errors.As(err, &op) {
		return op.Err
	}
	return err
}

// ask makes one call and reads its answer.
func ask[Q, A, T any](ctx context.Context, call func(context.Context, *Q) (*A, error), q *Q, read func(*reader, *A) T) (T, error) {
	var zero T
	a, err := call(ctx, q)
	if err != nil {
		return zero, readError(ctx, err)
	}
	r := &reader{}
	v := read(r, a)
	if err := r.garbled(); err != nil {
		return zero, err
	}
	return v, nil
}

// tell makes one call whose answer says nothing but that it is done.
func tell[Q, A any](ctx context.Context, call func(context.Context, *Q) (*A, error), q *Q) error {
	_, err := call(ctx, q)
	return readError(ctx, err)
}

// follow makes one call and gives every message of its answer to each, until
// the daemon ends it, ctx ends, or each returns an error, which is then
// follow's own.
func follow[Q, A any](ctx context.Context, call func(context.Context, *Q) (*connect.ServerStreamForClient[A], error), q *Q, each func(*reader, *A) error) error {
	under, cancel := context.WithCancel(ctx)
	stream, err := call(under, q)
	if err != nil {
		cancel()
		return readError(ctx, err)
	}
	// First cancel, so that closing does not read on.
	defer func() { cancel(); _ = stream.Close() }()
	for stream.Receive() {
		r := &reader{}
		if err := each(r, stream.Msg()); err != nil {
			return err
		}
	}
	return readError(ctx, stream.Err())
}
