package rpc

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"sync"
	"time"

	"connectrpc.com/connect"

	"noted/notebook"
)

// bounds are what a server gives to its clients at most.
type bounds struct {
	request   int64         // bytes of a request, before it is decoded
	text      int64         // the same of a request that carries a page's text
	answer    int           // bytes of one message to a client
	calls     int           // under way at once, of one client
	bytes     int64         // of request bodies under way at once, of one client
	conns     int           // open at once
	connsEach int           // open at once, of one process
	header    time.Duration // to send the headers
	read      time.Duration // to send the body
	write     time.Duration // to take one message
	idle      time.Duration // between two calls of a connection
	grace     time.Duration // for calls under way when the daemon stops
}

// A text of a mebibyte has up to six in JSON, with every character escaped;
// the largest answer is a page of many fences, each with its result.
var defaultBounds = bounds{
	request: 512 << 10, text: 8 << 20, answer: 64 << 20,
	calls: 64, bytes: 32 << 20, conns: 256, connsEach: 96,
	header: 5 * time.Second, read: 30 * time.Second, write: 30 * time.Second, idle: 2 * time.Minute, grace: 5 * time.Second,
}

// ServerConfig is what a server may be told; its zero value is ready for use.
type ServerConfig struct {
	Log *slog.Logger // refusals, failures and panics; never a token, a PIN or a text. Nil: nothing is logged
}

// Server serves the notebook to the clients of this machine: the same person's
// processes, each with a token.
type Server struct {
	opener  Opener
	log     *slog.Logger
	uid     uint32 // of those who may connect
	bounds  bounds
	routes  map[string]route
	mux     http.Handler
	errors  *connect.ErrorWriter
	refused gate
	failed  gate

	mu    sync.Mutex
	usage map[string]usage // by role and name
}

// NewServer makes a server that asks o what each client may do.
func NewServer(o Opener, c ServerConfig) (*Server, error) {
	if o == nil {
		return nil, errors.New("rpc: a server needs an Opener")
	}
	return newServer(o, c, defaultBounds), nil
}

func newServer(o Opener, c ServerConfig, b bounds) *Server {
	s := &Server{
		opener: o,
		log:    c.Log,
		uid:    uint32(os.Geteuid()),
		bounds: b,
		routes: routes(),
		usage:  map[string]usage{},
	}
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	options := []connect.HandlerOption{
		connect.WithCodec(binaryCodec{}),
		connect.WithCodec(jsonCodec{"json"}),
		connect.WithCodec(jsonCodec{"json; charset=utf-8"}),
		// Compression saves nothing on a socket of this machine, and a small
		// body that grows a thousandfold is an attack.
		connect.WithCompression("gzip", nil, nil),
		connect.WithSendMaxBytes(b.answer),
		connect.WithConditionalHandlerOptions(func(spec connect.Spec) []connect.HandlerOption {
			return []connect.HandlerOption{connect.WithReadMaxBytes(int(s.most(s.routes[spec.Procedure])))}
		}),
		connect.WithInterceptors(answers{s}),
		connect.WithRecover(func(_ context.Context, spec connect.Spec, _ http.Header, v any) error {
			s.logPanic(s.routes[spec.Procedure].name, v)
			return errFailed
		}),
	}
	s.mux = mux(options...)
	s.errors = connect.NewErrorWriter(options...)
	return s
}

// answers is the interceptor that turns what services answer into what clients understand.
type answers struct{ s *Server }

func (a answers) WrapUnary(next connect.UnaryFunc) connect.UnaryFunc {
	return func(ctx context.Context, q connect.AnyRequest) (connect.AnyResponse, error) {
		answer, err := next(ctx, q)
		if err != nil {
			return nil, a.s.failure(ctx, q.Spec(), err)
		}
		return answer, nil
	}
}

func (a answers) WrapStreamingHandler(next connect.StreamingHandlerFunc) connect.StreamingHandlerFunc {
	return func(ctx context.Context, c connect.StreamingHandlerConn) error {
		if err := next(ctx, c); err != nil {
			return a.s.failure(ctx, c.Spec(), err)
		}
		return nil
	}
}

func (a answers) WrapStreamingClient(next connect.StreamingClientFunc) connect.StreamingClientFunc {
	return next
}

// failure is err for the client. One that was not written for a person is
// logged here, where its details are safe, since the client learns none.
func (s *Server) failure(ctx context.Context, spec connect.Spec, err error) error {
	var wire *connect.Error
	if errors.As(err, &wire) {
		return wire // of connect itself: a message that was not right, a client that is gone
	}
	out := wireError(ctx, err)
	var own *notebook.Error
	if out.Code() == codes[notebook.CodeFailed] && !errors.As(err, &own) {
		if held, ok := s.failed.pass(time.Now()); ok {
			s.log.Error("rpc: a call failed", "call", s.routes[spec.Procedure].name, "error", err, "held back", held)
		}
	}
	return out
}

type (
	connKey    struct{} // the context's key of the connection
	closingKey struct{} // of the context that ends when the server stops
)

// Serve answers calls from l until ctx ends. Then it takes no new ones, ends
// all streams, gives the other calls a few seconds, and returns nil. It closes l.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	closing, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	server := &http.Server{
		Handler:           s,
		ReadHeaderTimeout: s.bounds.header,
		IdleTimeout:       s.bounds.idle,
		MaxHeaderBytes:    16 << 10,
		ErrorLog:          slog.NewLogLogger(s.log.Handler(), slog.LevelWarn),
		Protocols:         new(http.Protocols),
		HTTP2: &http.HTTP2Config{
			MaxConcurrentStreams: s.bounds.calls,
			WriteByteTimeout:     s.bounds.write,
		},
		BaseContext: func(net.Listener) context.Context {
			return context.WithValue(context.WithoutCancel(ctx), closingKey{}, closing)
		},
		ConnContext: func(ctx context.Context, c net.Conn) context.Context {
			return context.WithValue(ctx, connKey{}, c)
		},
	}
	server.Protocols.SetHTTP1(true)
	server.Protocols.SetUnencryptedHTTP2(true)

	ended := make(chan error, 1)
	go func() {
		ended <- server.Serve(&conns{Listener: l, most: s.bounds.conns, mostOfOne: s.bounds.connsEach, log: s.log})
	}()
	select {
	case err := <-ended:
		stop()
		return errors.Join(fmt.Errorf("rpc: the listener failed: %w", err), server.Close())
	case <-ctx.Done():
	}
	stop()
	grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.bounds.grace)
	defer cancel()
	if err := server.Shutdown(grace); err != nil {
		s.log.Warn("rpc: calls were cut off", "after", s.bounds.grace)
		_ = server.Close()
	}
	<-ended
	return nil
}
