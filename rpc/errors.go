package rpc

import (
	"context"
	"errors"

	"connectrpc.com/connect"

	"noted/notebook"
	"noted/rpc/notedv1"
)

// codes pairs every code of the notebook with a code of the protocol. Of the
// ones that no other layer speaks, the nearest HTTP status decided. The exact
// code travels in the error's detail; the protocol's is for other clients.
var codes = map[notebook.Code]connect.Code{
	notebook.CodeInvalid:     connect.CodeInvalidArgument,    // 400
	notebook.CodeNotFound:    connect.CodeNotFound,           // 404
	notebook.CodeAmbiguous:   connect.CodeAlreadyExists,      // 409: there are several
	notebook.CodeStale:       connect.CodeAborted,            // 409
	notebook.CodeRefused:     connect.CodeFailedPrecondition, // 400
	notebook.CodeDenied:      connect.CodePermissionDenied,   // 403
	notebook.CodeExhausted:   connect.CodeResourceExhausted,  // 429
	notebook.CodeTimeout:     connect.CodeDeadlineExceeded,   // 504
	notebook.CodeUnavailable: connect.CodeUnavailable,        // 503
	notebook.CodeFailed:      connect.CodeInternal,           // 500
}

// foreign is what the protocol's other codes mean; none of the daemon's own
// errors has one but CodeUnauthenticated, for a token that is not known.
var foreign = map[connect.Code]notebook.Code{
	connect.CodeUnauthenticated: notebook.CodeDenied,
	connect.CodeUnimplemented:   notebook.CodeInvalid,
	connect.CodeOutOfRange:      notebook.CodeInvalid,
	connect.CodeCanceled:        notebook.CodeFailed,
	connect.CodeUnknown:         notebook.CodeFailed,
	connect.CodeDataLoss:        notebook.CodeFailed,
}

// fromCode is codes and foreign, read backwards.
var fromCode = func() map[connect.Code]notebook.Code {
	back := map[connect.Code]notebook.Code{}
	for n, c := range codes {
		back[c] = n
	}
	for c, n := range foreign {
		back[c] = n
	}
	return back
}()

// errFailed is all that a client learns of an error that was not written for a person.
var errFailed = notebook.Errorf(notebook.CodeFailed, "the daemon could not do this").With("its log says why")

// errStopping is the cause of the end of everything that runs when the daemon stops.
var errStopping = notebook.Errorf(notebook.CodeUnavailable, "the daemon is stopping").With("noted daemon run")

// wireError makes err ready for the client. What is not a [notebook.Error]
// says nothing of itself: it may hold a path, an address or a secret.
func wireError(ctx context.Context, err error) *connect.Error {
	var e *notebook.Error
	switch {
	case errors.As(err, &e):
	case errors.Is(err, context.Canceled):
		if !errors.As(context.Cause(ctx), &e) {
			return connect.NewError(connect.CodeCanceled, errors.New("the call was cancelled"))
		}
	case errors.Is(err, context.DeadlineExceeded):
		e = notebook.Errorf(notebook.CodeTimeout, "the call's time is over")
	default:
		e = errFailed
	}
	code, known := codes[e.Code]
	if !known {
		code, e = codes[notebook.CodeFailed], &notebook.Error{Code: notebook.CodeFailed, Message: e.Message, Hint: e.Hint}
	}
	return withDetail(code, e)
}

// withDetail is e under a code of the protocol.
func withDetail(code connect.Code, e *notebook.Error) *connect.Error {
	message := text(e.Message)
	out := connect.NewError(code, errors.New(message))
	detail, err := connect.NewErrorDetail(&notedv1.Error{Code: string(e.Code), Message: message, Hint: text(e.Hint)})
	if err == nil { // it is a message of ours with valid text, so it always is
		out.AddDetail(detail)
	}
	return out
}

// readError is what a call's error means to the client: the daemon's own error
// unchanged where there is one. A call that ctx ended is ctx's error when it
// was cancelled, and a timeout when its time was over.
func readError(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	switch ctx.Err() {
	case context.Canceled:
		return context.Canceled
	case context.DeadlineExceeded:
		return notebook.Errorf(notebook.CodeTimeout, "the daemon did not answer in time").With("noted daemon status")
	}
	var own *notebook.Error // of this side: the dialler's or the codec's
	if errors.As(err, &own) {
		return own
	}
	var wire *connect.Error
	if !errors.As(err, &wire) {
		return notebook.Errorf(notebook.CodeFailed, "the call failed: %v", err)
	}
	for _, d := range wire.Details() {
		v, err := d.Value()
		if err != nil {
			continue
		}
		m, ok := v.(*notedv1.Error)
		if !ok {
			continue
		}
		if _, known := codes[notebook.Code(m.GetCode())]; known {
			return &notebook.Error{Code: notebook.Code(m.GetCode()), Message: m.GetMessage(), Hint: m.GetHint()}
		}
	}
	code, known := fromCode[wire.Code()]
	if !known {
		code = notebook.CodeFailed
	}
	e := notebook.Errorf(code, "%s", wire.Message())
	switch code {
	case notebook.CodeUnavailable: // the transport's own
		e = notebook.Errorf(code, "the connection to the daemon broke: %s", wire.Message()).With("noted daemon status")
	case notebook.CodeExhausted: // connect's own, of a message that is larger than a bound
		e = notebook.Errorf(code, "the request or its answer is too large: %s", wire.Message()).With("a page holds at most %d bytes of text", notebook.MaxBody)
	}
	return e
}
