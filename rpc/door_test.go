package rpc

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	"noted/notebook"
	"noted/rpc/notedv1"
)

// plainClient speaks HTTP over the socket, as curl does.
func plainClient(t *testing.T, path string) *http.Client {
	t.Helper()
	transport := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", path)
	}}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}

// answer is what a plain client gets: the status and the fields of an error.
type answer struct {
	status  int
	Code    string
	Message string
	Details []struct{ Type, Value string }
	body    string
}

// post sends one JSON request; change may spoil it.
func post(t *testing.T, c *http.Client, route, token, body string, change ...func(*http.Request)) answer {
	t.Helper()
	q, err := http.NewRequestWithContext(within10(t), http.MethodPost, "http://localhost"+route, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	q.Header.Set("Content-Type", "application/json")
	if token != "" {
		q.Header.Set("Authorization", "Bearer "+token)
	}
	for _, f := range change {
		f(q)
	}
	res, err := c.Do(q)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	a := answer{status: res.StatusCode, body: string(b)}
	_ = json.Unmarshal(b, &a) // an answer that is no error has none of the fields
	return a
}

// methods reads the descriptors by itself, so that it does not share a mistake with the server.
func methods() map[string]protoreflect.MethodDescriptor {
	all := map[string]protoreflect.MethodDescriptor{}
	protoregistry.GlobalFiles.RangeFiles(func(f protoreflect.FileDescriptor) bool {
		for i := range f.Services().Len() {
			for s, j := f.Services().Get(i), 0; j < s.Methods().Len(); j++ {
				all["/"+string(s.FullName())+"/"+string(s.Methods().Get(j).Name())] = s.Methods().Get(j)
			}
		}
		return true
	})
	return all
}

// Every route of the descriptors, tried without a token, with a wrong one, and
// in every role: it is open exactly to the roles that its option names.
func TestEveryRouteIsOpenToItsRolesAlone(t *testing.T) {
	h := newHouse(t)
	c := plainClient(t, h.path)
	all := methods()
	if len(all) != len(h.server.routes) {
		t.Fatalf("the descriptors have %d methods, the server %d routes", len(all), len(h.server.routes))
	}
	for path, method := range all {
		contentType, body := "application/json", "{}"
		if method.IsStreamingServer() {
			contentType, body = "application/connect+json", "\x00\x00\x00\x00\x02{}"
		}
		as := func(q *http.Request) { q.Header.Set("Content-Type", contentType) }
		code := func(a answer) string {
			if !method.IsStreamingServer() {
				return a.Code
			}
			// A stream's error is the last of its messages.
			var end struct{ Error struct{ Code string } }
			if i := strings.LastIndex(a.body, `{"error"`); i >= 0 {
				_ = json.Unmarshal([]byte(a.body[i:]), &end)
			}
			return end.Error.Code
		}
		for _, token := range []string{"", "token-of-nobody", ownerToken + "x", ownerToken[:len(ownerToken)-1]} {
			before := h.count()
			if got := code(post(t, c, path, token, body, as)); got != "unauthenticated" {
				t.Errorf("%s with the token %q answers %q", path, token, got)
			}
			if h.count() != before {
				t.Errorf("%s with the token %q reached the daemon", path, token)
			}
		}
		named := proto.GetExtension(method.Options(), notedv1.E_Roles).([]notedv1.ClientRole)
		for option, role := range map[notedv1.ClientRole]Role{
			notedv1.ClientRole_CLIENT_ROLE_OWNER:   RoleOwner,
			notedv1.ClientRole_CLIENT_ROLE_BROWSER: RoleBrowser,
			notedv1.ClientRole_CLIENT_ROLE_AGENT:   RoleAgent,
			notedv1.ClientRole_CLIENT_ROLE_VIEWER:  RoleViewer,
		} {
			before := h.count()
			got := code(post(t, c, path, tokens[role], body, as))
			// An empty request may be invalid, which is for the service to say: it came through the door.
			if slices.Contains(named, option) {
				if got != "" && got != "invalid_argument" {
					t.Errorf("%s is open to role %s and answers %q", path, role, got)
				}
				continue
			}
			if got != "permission_denied" {
				t.Errorf("%s is closed to role %s and answers %q", path, role, got)
			}
			if h.count() != before {
				t.Errorf("%s with role %s reached the daemon", path, role)
			}
		}
	}
}

// What raises trust, or reaches past the notebook, is the owner's alone. This
// list is here a second time so that a role that slips into an option is seen.
func TestWhatOnlyTheOwnerMayCall(t *testing.T) {
	var only []string
	for _, r := range routes() {
		if slices.Equal(r.roles, []Role{RoleOwner}) {
			only = append(only, r.name)
		}
		if !r.allows(RoleOwner) {
			t.Errorf("%s is closed to the owner", r.name)
		}
	}
	slices.Sort(only)
	want := []string{
		"Agents.Add", "Agents.List", "Agents.Remove", "Asks.Answer", "Daemon.AcceptPolicy", "Daemon.Stop", "Devices.Confirm", "Devices.Contradiction",
		"Devices.Join", "Devices.Pair", "Devices.Quarantine", "Devices.Release", "Devices.Remove", "Devices.Resolve", "Devices.SetQuota", "Engines.Add", "Engines.List", "Engines.Remove", "Fences.Approve", "Pages.Import",
		"Pages.Purge", "Pages.Rebuild", "Runs.Seal",
	}
	if !slices.Equal(only, want) {
		t.Errorf("the owner's alone are\n%v, want\n%v", only, want)
	}
	var writes []string
	for _, r := range routes() {
		if r.allows(RoleViewer) {
			writes = append(writes, r.name)
		}
	}
	slices.Sort(writes)
	want = []string{
		"Daemon.Policy", "Daemon.Status", "Daemon.TestPolicy", "Daemon.Watch", "Devices.List", "Devices.Quotas", "Fences.Why", "Pages.Get", "Pages.List", "Pages.Query", "Runs.Get", "Runs.List",
	}
	if !slices.Equal(writes, want) {
		t.Errorf("a viewer may call\n%v, want\n%v", writes, want)
	}
}

// A method without the option, or with a role that is none, is closed to everyone.
func TestARouteWithoutRolesIsClosed(t *testing.T) {
	service := notedv1.File_noted_v1_pages_proto.Services().ByName("Pages")
	list := service.Methods().ByName("List")
	if r := newRoute(service, list); !r.allows(RoleOwner) {
		t.Fatal("the route with the option is closed to the owner")
	}
	for name, roles := range map[string][]notedv1.ClientRole{
		"no option": nil, "unspecified": {notedv1.ClientRole_CLIENT_ROLE_UNSPECIFIED}, "unknown": {77},
	} {
		r := newRoute(service, bare{list, roles})
		for _, role := range []Role{RoleOwner, RoleBrowser, RoleAgent, RoleViewer, ""} {
			if r.allows(role) {
				t.Errorf("%s: open to role %q", name, role)
			}
		}
	}
}

// bare is a method with other roles.
type bare struct {
	protoreflect.MethodDescriptor
	roles []notedv1.ClientRole
}

func (b bare) Options() protoreflect.ProtoMessage {
	o := proto.Clone(b.MethodDescriptor.Options())
	proto.ClearExtension(o, notedv1.E_Roles)
	if b.roles != nil {
		proto.SetExtension(o, notedv1.E_Roles, b.roles)
	}
	return o
}

const (
	statusRoute = "/noted.v1.Daemon/Status"
	getRoute    = "/noted.v1.Pages/Get"
	putRoute    = "/noted.v1.Pages/Put"
	editRoute   = "/noted.v1.Pages/Edit"
)

func TestRequestsThatTheDoorTurnsAway(t *testing.T) {
	header := func(name, value string) func(*http.Request) {
		return func(q *http.Request) { q.Header.Set(name, value) }
	}
	host := func(name string) func(*http.Request) { return func(q *http.Request) { q.Host = name } }
	for _, c := range []struct {
		name   string
		change func(*http.Request)
		code   string // empty: it is answered
		says   string
	}{
		{"as it should be", func(*http.Request) {}, "", ""},
		{"a scheme in other letters", header("Authorization", "bearer "+ownerToken), "", ""},
		{"from a web page", header("Origin", "http://localhost"), "permission_denied", "web page"},
		{"from a page without origin", header("Origin", "null"), "permission_denied", "web page"},
		{"with an empty origin", header("Origin", ""), "permission_denied", "web page"},
		{"from a link", header("Referer", "http://localhost/"), "permission_denied", "web page"},
		{"from a browser's fetch", header("Sec-Fetch-Site", "none"), "permission_denied", "web page"},
		{"for another host", host("evil.example"), "permission_denied", "evil.example"},
		{"for a port", host("localhost:80"), "permission_denied", "localhost:80"},
		{"for an address", host("127.0.0.1"), "permission_denied", "127.0.0.1"},
		{"for a host that ends like ours", host("x.localhost"), "permission_denied", "x.localhost"},
		{"without a token", func(q *http.Request) { q.Header.Del("Authorization") }, "unauthenticated", "no token"},
		{"with two tokens", func(q *http.Request) { q.Header.Add("Authorization", "Bearer "+agentToken) }, "unauthenticated", "no token"},
		{"with another scheme", header("Authorization", "Basic "+ownerToken), "unauthenticated", "Bearer TOKEN"},
		{"with a bare token", header("Authorization", ownerToken), "unauthenticated", "Bearer TOKEN"},
		{"with an empty token", header("Authorization", "Bearer "), "unauthenticated", "Bearer TOKEN"},
		{"with a padded token", header("Authorization", "Bearer  "+ownerToken), "unauthenticated", "not known"},
		{"with an endless token", header("Authorization", "Bearer "+strings.Repeat("a", maxToken+1)), "unauthenticated", "Bearer TOKEN"},
		{"with the token in the URL", func(q *http.Request) {
			q.Header.Del("Authorization")
			q.URL.RawQuery = "access_token=" + ownerToken
		}, "unauthenticated", "no token"},
		{"as a GET", func(q *http.Request) { q.Method = http.MethodGet }, "invalid_argument", "POST"},
		{"as an OPTIONS", func(q *http.Request) { q.Method = http.MethodOptions }, "invalid_argument", "POST"},
		{"for no route", func(q *http.Request) { q.URL.Path = "/noted.v1.Daemon/Nothing" }, "not_found", "no such call"},
		{"for the root", func(q *http.Request) { q.URL.Path = "/" }, "not_found", "no such call"},
		{"for a route with a slash more", func(q *http.Request) { q.URL.Path = statusRoute + "/" }, "not_found", "no such call"},
		{"for a route in other letters", func(q *http.Request) { q.URL.Path = strings.ToLower(statusRoute) }, "not_found", "no such call"},
		{"for no route without a token", func(q *http.Request) { q.URL.Path = "/x"; q.Header.Del("Authorization") }, "unauthenticated", "no token"},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := newHouse(t)
			got := post(t, plainClient(t, h.path), statusRoute, ownerToken, "{}", c.change)
			if got.Code != c.code || !strings.Contains(got.Message, c.says) {
				t.Errorf("the answer is %d %s", got.status, got.body)
			}
			if reached := h.count() > 0; reached != (c.code == "") {
				t.Errorf("reached the daemon: %v", reached)
			}
			if c.code == "" {
				return
			}
			if len(got.Details) != 1 || got.Details[0].Type != "noted.v1.Error" {
				t.Errorf("the answer has no detail: %s", got.body)
			}
			if log := h.log.String(); !strings.Contains(log, "refused") || strings.Contains(log, "token-of") {
				t.Errorf("the log says %q", log)
			}
		})
	}
}

// unread is a body that nobody may read.
type unread struct{ t *testing.T }

func (u unread) Read([]byte) (int, error) {
	u.t.Error("the body was read")
	return 0, io.EOF
}

func (unread) Close() error { return nil }

// The door decides before a byte of the body is read; a request that it lets
// in has its body read.
func TestARefusedBodyIsNotRead(t *testing.T) {
	s := newServer(book{viewerToken: {Role: RoleViewer, Backend: &desk{}}}, ServerConfig{}, defaultBounds)
	ask := func(token string, uid uint32, length int64, body io.ReadCloser) *httptest.ResponseRecorder {
		q := httptest.NewRequest(http.MethodPost, "http://localhost"+getRoute, nil)
		q.Body, q.ContentLength = body, length
		q.Header.Set("Content-Type", "application/json")
		q.Header.Set("Authorization", "Bearer "+token)
		q = q.WithContext(context.WithValue(q.Context(), connKey{}, &conn{peer: peer{uid: uid}}))
		w := httptest.NewRecorder()
		s.ServeHTTP(w, q)
		return w
	}
	me := uint32(os.Geteuid())
	if w := ask(viewerToken, me, 2, io.NopCloser(strings.NewReader("{}"))); w.Code != http.StatusOK {
		t.Fatalf("the request as it should be: %d %s", w.Code, w.Body)
	}
	if w := ask("nobody's", me, 2, unread{t}); w.Code != http.StatusUnauthorized {
		t.Errorf("a wrong token: %d %s", w.Code, w.Body)
	}
	if w := ask(viewerToken, me+1, 2, unread{t}); w.Code != http.StatusForbidden {
		t.Errorf("another user: %d %s", w.Code, w.Body)
	}
	if w := ask(viewerToken, me, s.bounds.request+1, unread{t}); w.Code != http.StatusTooManyRequests {
		t.Errorf("a large body: %d %s", w.Code, w.Body)
	}
	for name, v := range map[string]any{
		"no connection":                       nil,
		"a connection of nobody knows whom":   &conn{peer: peer{uid: me}, unknown: errors.New("not a Unix socket")},
		"a connection that was not looked at": &net.UnixConn{},
	} {
		q := httptest.NewRequest(http.MethodPost, "http://localhost"+getRoute, unread{t})
		q.Header.Set("Authorization", "Bearer "+viewerToken)
		w := httptest.NewRecorder()
		s.ServeHTTP(w, q.WithContext(context.WithValue(q.Context(), connKey{}, v)))
		if w.Code != http.StatusForbidden {
			t.Errorf("%s: %d %s", name, w.Code, w.Body)
		}
	}
}

// A connection that another user made is refused, whatever token it shows.
func TestAnotherUserIsRefused(t *testing.T) {
	h := newHouse(t, func(h *house) { h.server.uid++ })
	got := post(t, plainClient(t, h.path), statusRoute, ownerToken, "{}")
	if got.Code != "permission_denied" || !strings.Contains(got.Message, "another user") {
		t.Errorf("a client of another user than the daemon's: %s", got.body)
	}
	if h.count() != 0 {
		t.Error("it reached the daemon")
	}
}

// A refusal is an error in every protocol that a client may speak.
func TestARefusalIsRightInEveryProtocol(t *testing.T) {
	h := newHouse(t)
	for name, option := range map[string][]connect.ClientOption{
		"connect":  {connect.WithClientOptions()},
		"json":     {connect.WithProtoJSON()},
		"grpc":     {connect.WithGRPC()},
		"grpc-web": {connect.WithGRPCWeb()},
	} {
		t.Run(name, func(t *testing.T) {
			protocols := new(http.Protocols)
			protocols.SetHTTP1(name != "grpc")
			protocols.SetUnencryptedHTTP2(name == "grpc")
			transport := &http.Transport{
				Protocols: protocols,
				DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
					return new(net.Dialer).DialContext(ctx, "unix", h.path)
				},
			}
			t.Cleanup(transport.CloseIdleConnections)
			client := func(token string) (unary, stream error) {
				web := &http.Client{Transport: bearer{token, transport}}
				d := notedv1.NewDaemonClient(web, "http://localhost", option...)
				_, unary = d.AcceptPolicy(within10(t), &notedv1.AcceptPolicyRequest{Digest: bytes.Repeat([]byte{1}, 32)})
				p := notedv1.NewDevicesClient(web, "http://localhost", option...)
				s, err := p.Pair(within10(t), &notedv1.PairRequest{})
				if err != nil {
					return unary, err
				}
				defer s.Close()
				for s.Receive() {
				}
				return unary, s.Err()
			}
			if unary, stream := client(ownerToken); unary != nil || stream != nil {
				t.Errorf("the owner: %v, %v", unary, stream)
			}
			before := h.count()
			for token, code := range map[string]connect.Code{"nobody's": connect.CodeUnauthenticated, agentToken: connect.CodePermissionDenied} {
				unary, stream := client(token)
				for _, err := range []error{unary, stream} {
					var e *notebook.Error
					if !errors.As(readError(context.Background(), err), &e) || e.Code != notebook.CodeDenied || connect.CodeOf(err) != code {
						t.Errorf("the token %q: %v (%v)", token, err, e)
					}
				}
			}
			if h.count() != before {
				t.Error("a refused call reached the daemon")
			}
		})
	}
}

// What is refused again and again does not fill the log, and is counted.
func TestRefusalsDoNotFillTheLog(t *testing.T) {
	h := newHouse(t)
	for range gateEach + 5 {
		post(t, plainClient(t, h.path), statusRoute, "nobody's", "{}")
	}
	if n := strings.Count(h.log.String(), "request refused"); n != gateEach {
		t.Errorf("%d refusals are logged, want %d", n, gateEach)
	}
	var g gate
	start := time.Now()
	for range gateEach + 5 {
		g.pass(start)
	}
	if held, ok := g.pass(start.Add(59 * time.Second)); ok {
		t.Errorf("within the minute another passes, %d held", held)
	}
	if held, ok := g.pass(start.Add(time.Minute)); !ok || held != 6 {
		t.Errorf("after a minute: %v, %d held", ok, held)
	}
}

// openerFunc is an Opener of one function.
type openerFunc func(string) (Client, error)

func (f openerFunc) Open(token string) (Client, error) { return f(token) }

// An opener that fails opens nothing, and what it says stays inside.
func TestAnOpenerThatFailsOpensNothing(t *testing.T) {
	const secret = "/home/me/secret " + ownerToken
	for name, c := range map[string]struct {
		open func(string) (Client, error)
		code string
	}{
		"an error of its own":    {func(string) (Client, error) { return Client{}, errors.New(secret) }, "internal"},
		"no backend":             {func(string) (Client, error) { return Client{Role: RoleOwner}, nil }, "internal"},
		"a panic":                {func(string) (Client, error) { panic(secret) }, "internal"},
		"an error for people":    {func(string) (Client, error) { return Client{}, notebook.Errorf(notebook.CodeUnavailable, "starting") }, "unavailable"},
		"an error and a backend": {func(string) (Client, error) { return Client{Role: RoleOwner, Backend: &desk{}}, errors.New(secret) }, "internal"},
		"a role that is none":    {func(string) (Client, error) { return Client{Role: "root", Backend: &desk{}}, nil }, "permission_denied"},
		"no role":                {func(string) (Client, error) { return Client{Backend: &desk{}}, nil }, "permission_denied"},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHouse(t, func(h *house) { h.server.opener = openerFunc(c.open) })
			got := post(t, plainClient(t, h.path), statusRoute, ownerToken, "{}")
			if got.Code != c.code {
				t.Errorf("the answer is %s", got.body)
			}
			for what, s := range map[string]string{"answer": got.body, "log": h.log.String()} {
				if strings.Contains(s, "secret") || strings.Contains(s, ownerToken) {
					t.Errorf("the %s tells: %s", what, s)
				}
			}
		})
	}
}
