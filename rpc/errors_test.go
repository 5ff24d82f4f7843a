package rpc

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"

	"connectrpc.com/connect"
	"pgregory.net/rapid"

	"noted/notebook"
)

var everyCode = []notebook.Code{
	notebook.CodeInvalid, notebook.CodeNotFound, notebook.CodeAmbiguous, notebook.CodeStale, notebook.CodeRefused,
	notebook.CodeDenied, notebook.CodeExhausted, notebook.CodeTimeout, notebook.CodeUnavailable, notebook.CodeFailed,
}

// Each code has its own code of the protocol, and both ways lead back.
func TestCodesBothWays(t *testing.T) {
	if len(codes) != len(everyCode) {
		t.Errorf("the table has %d codes, the notebook %d", len(codes), len(everyCode))
	}
	for _, n := range everyCode {
		c, ok := codes[n]
		if !ok || fromCode[c] != n {
			t.Errorf("%s goes to %v and comes back as %q", n, c, fromCode[c])
		}
	}
	for c := connect.CodeCanceled; c <= connect.CodeUnauthenticated; c++ {
		if fromCode[c] == "" {
			t.Errorf("the protocol's code %v means nothing", c)
		}
	}
}

// An error that was written for a person arrives as it was written.
func TestErrorsCrossTheSocket(t *testing.T) {
	h := newHouse(t)
	c := h.client(t, RoleOwner)
	rapid.Check(t, func(t *rapid.T) {
		want := &notebook.Error{
			Code:    rapid.SampledFrom(everyCode).Draw(t, "code"),
			Message: rapid.String().Draw(t, "message"),
			Hint:    rapid.String().Draw(t, "hint"),
		}
		h.err = want
		if rapid.Bool().Draw(t, "wrapped") {
			h.err = fmt.Errorf("%s: %w", ownerToken, want)
		}
		_, unary := c.Pages(context.Background())
		stream := c.Watch(context.Background(), func(notebook.Event) error { return nil })
		for _, err := range []error{unary, stream} {
			var got *notebook.Error
			if !errors.As(err, &got) || *got != *want {
				t.Fatalf("the client sees %#v, the daemon said %#v", err, want)
			}
		}
	})
}

// An error that was not written for a person may hold anything; the client
// learns none of it, and the log all.
func TestOtherErrorsStayInside(t *testing.T) {
	_, missing := os.Open("/home/me/noted/owner.token")
	for name, c := range map[string]struct {
		err  error
		code notebook.Code
	}{
		"of the system":  {missing, notebook.CodeFailed},
		"of its own":     {errors.New("secret"), notebook.CodeFailed},
		"of a code":      {&notebook.Error{Code: "owner.token", Message: "oh"}, notebook.CodeFailed},
		"out of time":    {fmt.Errorf("secret: %w", context.DeadlineExceeded), notebook.CodeTimeout},
		"of a cancelled": {fmt.Errorf("secret: %w", context.Canceled), notebook.CodeFailed},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHouse(t)
			h.err = c.err
			_, err := h.client(t, RoleOwner).Pages(within10(t))
			e := wantCode(t, err, c.code)
			if s := fmt.Sprint(e.Code, e); strings.Contains(s, "secret") || strings.Contains(s, "owner.token") {
				t.Errorf("the client learns %q", s)
			}
			if c.code == notebook.CodeFailed && name != "of a cancelled" && name != "of a code" && !strings.Contains(h.log.String(), c.err.Error()) {
				t.Errorf("the log does not know %q: %s", c.err, h.log)
			}
		})
	}
}

// A call that panics is answered and logged, without what the panic holds, and
// the daemon lives on.
func TestPanicsAreAnswered(t *testing.T) {
	for name, value := range map[string]any{
		"a text":     "secret-pin",
		"an error":   errors.New("secret-pin"),
		"the system": fmt.Errorf("secret-pin: %w", os.ErrInvalid),
	} {
		t.Run(name, func(t *testing.T) {
			h := newHouse(t)
			h.panics = value
			c := h.client(t, RoleOwner)
			_, err := c.Pages(within10(t))
			wantCode(t, err, notebook.CodeFailed)
			wantCode(t, c.Watch(within10(t), func(notebook.Event) error { return nil }), notebook.CodeFailed)
			got := post(t, plainClient(t, h.path), getRoute, ownerToken, `{"ref":"secret-title"}`)
			if got.status != http.StatusInternalServerError || strings.Contains(got.body, "secret") {
				t.Errorf("the answer is %s", got.body)
			}
			log := h.log.String()
			if strings.Contains(log, "secret") || strings.Contains(log, "token-of") {
				t.Errorf("the log tells: %s", log)
			}
			if !strings.Contains(log, "Pages.List") || !strings.Contains(log, "desk_test.go") {
				t.Errorf("the log does not say where: %s", log)
			}
			h.mu.Lock()
			h.panics = nil
			h.mu.Unlock()
			if _, err := c.Pages(within10(t)); err != nil {
				t.Errorf("the next call: %v", err)
			}
		})
	}
	h := newHouse(t)
	h.answers["Asks"] = []notebook.Ask{}
	var none map[string]int
	h.desk.panics = func() (v any) {
		defer func() { v = recover() }()
		none["x"]++
		return nil
	}()
	_, err := h.client(t, RoleOwner).Asks(within10(t))
	wantCode(t, err, notebook.CodeFailed)
	if !strings.Contains(h.log.String(), "nil map") {
		t.Errorf("the log does not name the runtime's own error: %s", h.log)
	}
}
