package rpc

import (
	"context"
	"errors"
	"net/http"
	"runtime"
	"runtime/debug"
	"strings"
	"time"

	"connectrpc.com/connect"

	"noted/notebook"
)

// localHost is the only name under which the daemon is spoken to. A browser
// that was led here by another name shows that name.
const localHost = "localhost"

// maxToken bounds what is looked up, in bytes.
const maxToken = 512

// refusal is why a request goes no further, and the protocol's code for it.
type refusal struct {
	code connect.Code
	err  *notebook.Error
}

func refuse(code notebook.Code, format string, args ...any) *refusal {
	return &refusal{codes[code], notebook.Errorf(code, format, args...)}
}

func (f *refusal) with(hint string) *refusal {
	return &refusal{f.code, f.err.With("%s", hint)}
}

// ServeHTTP is the door: who, from where, with which token, in which role, how
// much. All of it is decided from the connection and the headers, before a byte
// of the body is read, and a request that fails anywhere is answered in the
// form of its own protocol.
func (s *Server) ServeHTTP(w http.ResponseWriter, q *http.Request) {
	defer s.recovered(w, q)
	control := http.NewResponseController(w)
	// It holds until the body has been read; then the HTTP server itself lets the
	// connection be silent for as long as the answer takes.
	_ = control.SetReadDeadline(time.Now().Add(s.bounds.read))

	client, r, f := s.admit(q)
	if f == nil {
		var leave func()
		if leave, f = s.enter(client, r, q); f == nil {
			defer leave()
			s.pass(w, q, control, client, r)
			return
		}
	}
	s.turnAway(w, q, r, client, f)
}

// admit decides whether q is a call that its client may make.
func (s *Server) admit(q *http.Request) (Client, route, *refusal) {
	var none route
	if c, ok := q.Context().Value(connKey{}).(*conn); !ok || c.unknown != nil {
		return Client{}, none, refuse(notebook.CodeDenied, "the daemon cannot see who connects, so it answers nobody there").
			with("connect to the daemon's Unix socket")
	} else if c.peer.uid != s.uid {
		return Client{}, none, refuse(notebook.CodeDenied, "this daemon belongs to another user")
	}
	for _, name := range []string{"Origin", "Referer", "Sec-Fetch-Site"} {
		if len(q.Header.Values(name)) > 0 {
			return Client{}, none, refuse(notebook.CodeDenied, "a web page may not call the daemon (the request has the header %s)", name)
		}
	}
	if q.Host != localHost {
		return Client{}, none, refuse(notebook.CodeDenied, "the request is for the host %q, and the daemon answers to %q alone", clip(q.Host), localHost)
	}
	client, f := s.identify(q.Header)
	if f != nil {
		return Client{}, none, f
	}
	r, known := s.routes[q.URL.Path]
	switch {
	case !known:
		return client, none, refuse(notebook.CodeNotFound, "the daemon has no such call").with("noted help lists what there is")
	case q.Method != http.MethodPost:
		return client, r, refuse(notebook.CodeInvalid, "a call is a POST, not a %s", clip(q.Method))
	case !r.allows(client.Role):
		return client, r, refuse(notebook.CodeDenied, "a client of role %q may not call %s", client.Role, r.name)
	}
	return client, r, nil
}

// identify asks the opener whose token the request carries.
func (s *Server) identify(h http.Header) (Client, *refusal) {
	const hint = "the daemon's owner.token is the owner's; noted agent add makes one for an agent"
	values := h.Values("Authorization")
	if len(values) != 1 {
		return Client{}, (&refusal{connect.CodeUnauthenticated, notebook.Errorf(notebook.CodeDenied, "the request has no token")}).with(hint)
	}
	scheme, token, _ := strings.Cut(values[0], " ")
	if !strings.EqualFold(scheme, "Bearer") || token == "" || len(token) > maxToken {
		return Client{}, (&refusal{connect.CodeUnauthenticated, notebook.Errorf(notebook.CodeDenied, "the request's token is not of the form: Bearer TOKEN")}).with(hint)
	}
	client, err := s.opener.Open(token)
	if err == nil && client.Backend != nil {
		return client, nil
	}
	var e *notebook.Error
	switch {
	case err == nil || !errors.As(err, &e):
		// The error itself may hold the token, so it stays out of log and answer.
		return Client{}, refuse(notebook.CodeFailed, "the daemon could not check the token").with("the daemon's log says when")
	case e.Code == notebook.CodeDenied:
		return Client{}, &refusal{connect.CodeUnauthenticated, e}
	}
	code, known := codes[e.Code]
	if !known {
		code = codes[notebook.CodeFailed]
	}
	return Client{}, &refusal{code, e}
}

// usage is what one client has under way.
type usage struct {
	calls int
	bytes int64 // of request bodies, as far as they may grow
}

// enter takes a place for the call, so that no client can have more under way,
// or more bytes held, than its bounds. The caller has to leave.
func (s *Server) enter(client Client, r route, q *http.Request) (leave func(), f *refusal) {
	most := s.most(r)
	if q.ContentLength > most {
		return nil, refuse(notebook.CodeExhausted, "the request has %d bytes and %s takes %d", q.ContentLength, r.name, most)
	}
	size := most
	if q.ContentLength >= 0 {
		size = q.ContentLength
	}
	who := string(client.Role) + ":" + client.Name
	s.mu.Lock()
	defer s.mu.Unlock()
	u := s.usage[who]
	if u.calls >= s.bounds.calls || u.bytes+size > s.bounds.bytes {
		return nil, refuse(notebook.CodeExhausted, "this client has %d calls of %d bytes under way, and may have %d of %d", u.calls, u.bytes, s.bounds.calls, s.bounds.bytes).
			with("wait for one to end")
	}
	s.usage[who] = usage{u.calls + 1, u.bytes + size}
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if u := s.usage[who]; u.calls == 1 {
			delete(s.usage, who)
		} else {
			s.usage[who] = usage{u.calls - 1, u.bytes - size}
		}
	}, nil
}

// most is how many bytes a request of the route may have.
func (s *Server) most(r route) int64 {
	if r.takesText {
		return s.bounds.text
	}
	return s.bounds.request
}

// pass hands an admitted call to its service.
func (s *Server) pass(w http.ResponseWriter, q *http.Request, control *http.ResponseController, client Client, r route) {
	ctx := context.WithValue(q.Context(), clientKey{}, client)
	if r.stream {
		// A stream ends with the daemon; other calls get time to finish.
		var cancel context.CancelCauseFunc
		ctx, cancel = context.WithCancelCause(ctx)
		defer cancel(nil)
		if closing, ok := ctx.Value(closingKey{}).(context.Context); ok {
			defer context.AfterFunc(closing, func() { cancel(errStopping) })()
		}
	}
	q = q.WithContext(ctx)
	q.Body = http.MaxBytesReader(w, q.Body, s.most(r))
	s.mux.ServeHTTP(&patient{ResponseWriter: w, control: control, most: s.bounds.write}, q)
}

// turnAway answers a request that goes no further.
func (s *Server) turnAway(w http.ResponseWriter, q *http.Request, r route, client Client, f *refusal) {
	if held, ok := s.refused.pass(time.Now()); ok {
		name := r.name
		if name == "" {
			name = "unknown"
		}
		s.log.Warn("rpc: request refused", "call", name, "role", string(client.Role), "client", client.Name, "why", f.err.Message, "held back", held)
	}
	if q.ProtoMajor == 1 {
		// The body is not wanted: without this the server would read on to keep the connection.
		w.Header().Set("Connection", "close")
	}
	_ = s.errors.Write(w, q, withDetail(f.code, f.err)) // fails only when the client is gone
}

// recovered ends a request that panicked outside a service.
func (s *Server) recovered(w http.ResponseWriter, q *http.Request) {
	v := recover()
	if v == nil {
		return
	}
	if v == http.ErrAbortHandler {
		panic(v)
	}
	s.logPanic("door", v)
	if q.ProtoMajor == 1 {
		w.Header().Set("Connection", "close")
	}
	_ = s.errors.Write(w, q, withDetail(codes[errFailed.Code], errFailed))
}

// logPanic logs where a panic came from. Its value may hold anything, also what
// a client sent, so it is logged only where the Go runtime made it.
func (s *Server) logPanic(where string, v any) {
	what := "a value"
	var fault runtime.Error
	if err, ok := v.(error); ok && errors.As(err, &fault) {
		what = fault.Error()
	}
	s.log.Error("rpc: a call panicked", "call", where, "panic", what, "stack", string(debug.Stack()))
}

// patient is a response whose every write has a deadline, so that a client that
// stops reading holds its call for that long and nobody else's at all.
type patient struct {
	http.ResponseWriter
	control *http.ResponseController
	most    time.Duration
}

func (p *patient) Write(b []byte) (int, error) {
	defer p.limit()()
	return p.ResponseWriter.Write(b)
}

// Flush implements [http.Flusher], which connect asks of a stream. A write that
// failed shows in the next one.
func (p *patient) Flush() {
	defer p.limit()()
	_ = p.control.Flush()
}

// Unwrap is for [http.ResponseController].
func (p *patient) Unwrap() http.ResponseWriter { return p.ResponseWriter }

func (p *patient) limit() (clear func()) {
	_ = p.control.SetWriteDeadline(time.Now().Add(p.most))
	return func() { _ = p.control.SetWriteDeadline(time.Time{}) }
}
