package exec

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"noted/notebook"
)

// listener is a server on loopback that counts who comes: it answers each line
// with the line.
func listener(t *testing.T) (address string, came *atomic.Int64) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	came = new(atomic.Int64)
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			came.Add(1)
			go func() {
				defer c.Close()
				for s := bufio.NewScanner(c); s.Scan(); {
					switch s.Text() {
					case "bye":
						return
					case "flood":
						_, _ = io.Copy(c, ceaseless{})
					case "sink":
						_, _ = io.Copy(io.Discard, c)
						return
					default:
						fmt.Fprintf(c, "you said %s\r\n", s.Text())
					}
				}
			}()
		}
	}()
	return l.Addr().String(), came
}

type ceaseless struct{}

func (ceaseless) Read(p []byte) (int, error) { return len(p), nil }

// TestAHostIsGranted: what a fence does with a host, and what it does not get.
func TestAHostIsGranted(t *testing.T) {
	address, came := listener(t)
	other, cameOther := listener(t)
	_, port, _ := net.SplitHostPort(address)
	const public = "93.184.216.34"
	var asked atomic.Int64
	network := Network{
		Resolve: func(_ context.Context, host string) ([]netip.Addr, error) {
			switch host {
			case "good.test":
				return []netip.Addr{netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr(public)}, nil
			case "rebinding.test": // public when it is looked at, private when it would be used
				if asked.Add(1) == 1 {
					return []netip.Addr{netip.MustParseAddr(public)}, nil
				}
				return []netip.Addr{netip.MustParseAddr("127.0.0.1")}, nil
			case "private.test":
				return []netip.Addr{netip.MustParseAddr("127.0.0.1"), netip.MustParseAddr("::1"), netip.MustParseAddr("::ffff:127.0.0.1")}, nil
			}
			return nil, &net.DNSError{Err: "no such host", Name: host, IsNotFound: true}
		},
		Dial: func(ctx context.Context, to netip.AddrPort) (net.Conn, error) {
			if to.Addr() == netip.MustParseAddr(public) {
				to = netip.MustParseAddrPort(address) // the internet of this test
			}
			var d net.Dialer
			return d.DialContext(ctx, "tcp", to.String())
		},
	}
	r := newRunner(t, Config{Limits: quick, Network: network})
	for _, c := range []struct {
		name, grant, source, output string
		comes                       int64
	}{
		{"by address", address, `local c = net.open("ADDRESS") c:send("hello\n") print(c:line()) c:send("bye\n") print(c:line(), c:close())`, "you said hello\nnil\ttrue\n", 1},
		{"by name", "good.test:" + port, `local c = net.open("good.test:PORT") c:send("a\nb\n") return c:line(), c:receive(8), c:line()`, "you said a\tyou said\t b\n", 1},
		{"once resolved, once used", "rebinding.test:" + port, `local c = net.open("rebinding.test:PORT") c:send("a\n") return c:line()`, "you said a\n", 1},
		{"a private address by name", "private.test:" + port, `return net.open("private.test:PORT")`, "nil\tprivate.test:PORT: its name leads to no address*", 0},
		{"a name that is not", "none.test:" + port, `return net.open("none.test:PORT")`, "nil\tnone.test:PORT: no such host\n", 0},
		{"another host", "good.test:" + port, `return net.open("ADDRESS")`, "nil\tADDRESS: it is not granted\n", 0},
		{"another port", "good.test:" + port, `return net.open("OTHER")`, "nil\tOTHER: it is not granted\n", 0},
		{"another spelling", address, `return net.open("localhost:PORT")`, "nil\tlocalhost:PORT: it is not granted\n", 0},
		{"a port where nobody is", "127.0.0.1:1", `return net.open("127.0.0.1:1")`, "nil\t127.0.0.1:1: connect: connection refused\n", 0},
		{"too many at once", address, `local all = {} for i = 1, 5 do local c, no = net.open("ADDRESS") all[i] = c if not c then return i, no end end`, "5\tADDRESS: " + errConnections.Error() + "\n", 4},
		{"a name that is longer than a message", address, `return net.open(("x"):rep(70000)) == nil and select(2, net.open(("x"):rep(65537))):sub(-24)`, "the request is malformed\n", 0},
		{"after it was closed", address, `local c = net.open("ADDRESS") c:close() return c:send("x")`, "nil\t" + errConnection.Error() + "\n", 1},
		{"more than it may receive", address, `local c, n = net.open("ADDRESS"), 0 c:send("flood\n") while true do local b, no = c:receive() if not b then return n, no end n = n + #b end`, fmt.Sprintf("%d\t%v\n", maxNetBytes, errNetBytes), 1},
	} {
		fill := strings.NewReplacer("ADDRESS", address, "PORT", port, "OTHER", other)
		before := came.Load()
		res := runJob(t, r, granting(t, quick, fill.Replace(c.source), notebook.Net(c.grant)))
		if res.Verdict != notebook.OK || !matches(fill.Replace(c.output), res.Output) {
			t.Errorf("%s: %v %q %q, want %q", c.name, res.Verdict, res.Output, res.Error, fill.Replace(c.output))
		}
		if n := came.Load() - before; n != c.comes {
			t.Errorf("%s: %d connections came, want %d", c.name, n, c.comes)
		}
	}
	if n := cameOther.Load(); n > 0 {
		t.Errorf("%d connections came where none was granted", n)
	}
	if res := runSource(t, r, quick, "return net"); res.Output != "nil\n" {
		t.Errorf("without a grant net is %q", res.Output)
	}
}

// TestWhatWentToAHostIsCounted: by who carried it, however the run ends.
func TestWhatWentToAHostIsCounted(t *testing.T) {
	address, _ := listener(t)
	r := newRunner(t, Config{Limits: quick})
	for _, c := range []struct {
		name, source   string
		verdict        notebook.Verdict
		sent, received int64
	}{
		{"a conversation", `local c = net.open("ADDRESS") c:send("hello\n") c:line() c:send("bye\n") c:line()`, notebook.OK, 10, 16},
		{"one that fails", `local c = net.open("ADDRESS") c:send("hello\n") c:line() error("no")`, notebook.Failed, 6, 16},
		{"one that does not end", `local c = net.open("ADDRESS") c:send("hello\n") c:line() while true do end`, notebook.Timeout, 6, 16},
		{"all that there may be", `local c = net.open("ADDRESS") c:send("flood\n") while c:receive() do end`, notebook.OK, 6, maxNetBytes},
		{"all that it may send", `local c, n = net.open("ADDRESS"), 65000 c:send("sink\n") local s = ("x"):rep(n) while n > 0 do if not c:send(s) then n = math.floor(n / 2) s = ("x"):rep(n) end end`, notebook.OK, maxNetBytes, 0},
		{"nothing", `return net.open("ADDRESS"):close()`, notebook.OK, 0, 0},
	} {
		l := quick
		if c.verdict == notebook.Timeout {
			l.Time = time.Second
		}
		res := runJob(t, r, granting(t, l, strings.ReplaceAll(c.source, "ADDRESS", address), notebook.Net(address)))
		if res.Verdict != c.verdict || res.Sent != c.sent || res.Received != c.received {
			t.Errorf("%s: %v %q, %d bytes sent and %d received, want %d and %d", c.name, res.Verdict, res.Error, res.Sent, res.Received, c.sent, c.received)
		}
	}
	if res := runSource(t, r, quick, "return 1"); res.Sent != 0 || res.Received != 0 {
		t.Errorf("without a grant: %+v", res)
	}
}

// TestAWorkerThatLiesIsCounted: by what went over the wire, whatever it claims.
func TestAWorkerThatLiesIsCounted(t *testing.T) {
	address, _ := listener(t)
	for _, c := range []struct {
		name           string
		says           []string // each but the last is answered
		sent, received int64
	}{
		{"the control", []string{"\x00\x00\x00\x04s\x01a\n", "\x00\x00\x00\x06r\x01\x00\x00\xff\xff", ""}, 2, 12},
		{"more is announced than comes", []string{"\x00\x00\xff\xffs\x01a\n"}, 0, 0},
		{"to a connection that is not", []string{"\x00\x00\x00\x04s\x09a\n", "\x00\x00\x00\x06r\x09\x00\x00\xff\xff", ""}, 0, 0},
		{"to a host that is not granted", []string{"\x00\x00\x00\x0ao127.0.0.1", "\x00\x00\x00\x04s\x02a\n", ""}, 0, 0},
		{"more is wanted than comes", []string{"\x00\x00\x00\x04s\x01a\n", "\x00\x00\x00\x06r\x01\xff\xff\xff\xff", ""}, 2, 12},
		{"a size that is none", []string{"\x00\x00\x00\x04s\x01a\n", "\x00\x00\x00\x0ar\x01\xff\xff\xff\xff\xff\xff\xff\xff", ""}, 2, 0},
		{"a request that is none", []string{"\x00\x00\x00\x0a+\x01\x7f\xff\xff\xff\xff\xff\xff\xff", ""}, 0, 0},
		{"after it was closed", []string{"\x00\x00\x00\x02c\x01", "\x00\x00\x00\x04s\x01a\n", ""}, 0, 0},
	} {
		ends, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
		if err != nil {
			t.Fatal(err)
		}
		worker := os.NewFile(uintptr(ends[1]), "worker")
		_ = worker.SetDeadline(time.Now().Add(10 * time.Second))
		p := startProxy(Network{}, []string{address}, os.NewFile(uintptr(ends[0]), "proxy"))
		says := append([]string{string(frame([]byte("\x00\x00\x00\x00o" + address)))}, c.says...)
		for i, m := range says {
			if _, err := worker.WriteString(m); err != nil {
				t.Fatalf("%s: %v", c.name, err)
			}
			if i == len(says)-1 {
				break
			}
			if b, err := readFrame(worker, maxNetFrame); err != nil || len(b) == 0 {
				t.Fatalf("%s: %q %v", c.name, b, err)
			}
		}
		worker.Close()
		p.close()
		if p.sent != c.sent || p.received != c.received {
			t.Errorf("%s: %d bytes sent and %d received, want %d and %d", c.name, p.sent, p.received, c.sent, c.received)
		}
	}
}

// TestWhatAProxyTellsOfNames: why a name led nowhere, and never by which address of
// this machine or of its resolver that was found out; and what the machine's own
// list of hosts says counts as what it is.
func TestWhatAProxyTellsOfNames(t *testing.T) {
	for _, c := range []struct {
		name  string
		found []netip.Addr
		err   error
		to    string // where it connects
		says  string
	}{
		{"an address", []netip.Addr{netip.MustParseAddr("8.8.8.8")}, nil, "8.8.8.8:443", "no"},
		{"one of the list of hosts", []netip.Addr{netip.MustParseAddr("::ffff:8.8.8.8")}, nil, "8.8.8.8:443", "no"},
		{"a private one of it", []netip.Addr{netip.MustParseAddr("::ffff:10.0.0.1")}, nil, "", "no address of the internet"},
		{"none", nil, nil, "", "no address of the internet"},
		{"unknown", nil, &net.DNSError{Err: "no such host", IsNotFound: true, Server: "10.0.0.53:53"}, "", "no such host"},
		{"late", nil, &net.DNSError{Err: "read udp 10.0.0.5:4321->10.0.0.53:53: i/o timeout", IsTimeout: true}, "", "not resolved in time"},
		{"refused", nil, &net.DNSError{Err: "read udp 10.0.0.5:4321->10.0.0.53:53: connection refused"}, "", "cannot be resolved"},
		{"of another kind", nil, errors.New("10.0.0.53 says no"), "", "cannot be resolved"},
	} {
		to := ""
		p := &proxy{hosts: []string{"a.b:443"}, connections: map[byte]net.Conn{}, ctx: t.Context(), network: Network{
			Resolve: func(context.Context, string) ([]netip.Addr, error) { return c.found, c.err },
			Dial: func(_ context.Context, a netip.AddrPort) (net.Conn, error) {
				to = a.String()
				return nil, errors.New("no")
			},
		}}
		if _, err := p.open("a.b:443"); err == nil || !strings.Contains(err.Error(), c.says) || strings.Contains(err.Error(), "10.0.0.") {
			t.Errorf("%s: it says %v", c.name, err)
		}
		if to != c.to {
			t.Errorf("%s: it connects to %q, want %q", c.name, to, c.to)
		}
	}
}

// TestASilentAddressIsNotTheLast: of several addresses of a name each has its part
// of the time.
func TestASilentAddressIsNotTheLast(t *testing.T) {
	ours, theirs := net.Pipe()
	defer theirs.Close()
	defer ours.Close()
	silent := netip.MustParseAddr("2606:4700::1")
	p := &proxy{network: Network{Dial: func(ctx context.Context, a netip.AddrPort) (net.Conn, error) {
		if a.Addr() == silent {
			<-ctx.Done()
			return nil, ctx.Err()
		}
		return ours, ctx.Err()
	}}}
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	other := netip.MustParseAddrPort("8.8.8.8:443")
	if c, err := p.connect(ctx, []netip.AddrPort{netip.AddrPortFrom(silent, 443), other}); err != nil || c != ours {
		t.Errorf("%v", err)
	}
	if _, err := p.connect(ctx, []netip.AddrPort{netip.AddrPortFrom(silent, 443)}); err == nil {
		t.Error("the control: it connects to what is silent")
	}
}

// TestWhatARunMaySend: every byte up to the bound, and what was refused does not count.
func TestWhatARunMaySend(t *testing.T) {
	ours, theirs := net.Pipe()
	defer theirs.Close()
	var came atomic.Int64
	go func() {
		b := make([]byte, maxNetFrame)
		for {
			n, err := theirs.Read(b)
			if came.Add(int64(n)); err != nil {
				return
			}
		}
	}()
	p := &proxy{connections: map[byte]net.Conn{1: ours}, sent: maxNetBytes - 3}
	for _, c := range []struct {
		text string
		err  error
	}{{"four", errNetBytes}, {"two", nil}, {"", nil}, {"x", errNetBytes}} {
		if _, err := p.do(netSend, append([]byte{1}, c.text...)); !errors.Is(err, c.err) {
			t.Errorf("%q: %v, want %v", c.text, err, c.err)
		}
	}
	ours.Close()
	if n := came.Load(); n != 3 {
		t.Errorf("%d bytes came", n)
	}
}

// TestAProxyEnds at each point at which its worker may die or talk nonsense, and
// keeps nothing: no connection, no descriptor, no goroutine.
func TestAProxyEnds(t *testing.T) {
	address, _ := listener(t)
	hang := Network{Resolve: func(ctx context.Context, _ string) ([]netip.Addr, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	}, Dial: func(ctx context.Context, _ netip.AddrPort) (net.Conn, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	}}
	open := string(frame([]byte("\x00\x00\x00\x00o" + address)))
	for _, c := range []struct {
		name    string
		network Network
		to      string
		says    []string // each but the last is answered
		itself  bool     // the proxy ends before it is closed
	}{
		{"before a word", Network{}, address, []string{""}, false},
		{"within a head", Network{}, address, []string{"\x00\x00"}, false},
		{"within a message", Network{}, address, []string{"\x00\x00\xff\xffo"}, false},
		{"with a message that is too long", Network{}, address, []string{"\x00\x01\x00\x01o"}, true},
		{"with one of no length", Network{}, address, []string{"\x00\x00\x00\x00"}, true},
		{"with connections", Network{}, address, []string{open, open, open, ""}, false},
		{"while it receives", Network{}, address, []string{open, "\x00\x00\x00\x06r\x01\x00\x00\x00\x01"}, false},
		{"while a name is resolved", hang, "a.b:1", []string{"\x00\x00\x00\x06oa.b:1"}, false},
		{"while it connects", hang, "192.0.2.1:1", []string{"\x00\x00\x00\x0co192.0.2.1:1"}, false},
	} {
		before := count()
		ends, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
		if err != nil {
			t.Fatal(err)
		}
		worker := os.NewFile(uintptr(ends[1]), "worker")
		p := startProxy(c.network, []string{c.to}, os.NewFile(uintptr(ends[0]), "proxy"))
		for i, m := range c.says {
			if _, err := worker.WriteString(m); err != nil {
				t.Fatalf("%s: %v", c.name, err)
			}
			if i == len(c.says)-1 {
				break
			}
			if b, err := readFrame(worker, maxNetFrame); err != nil || len(b) == 0 || b[0] != netDone {
				t.Fatalf("%s: %q %v", c.name, b, err)
			}
		}
		if c.itself {
			_ = worker.SetReadDeadline(time.Now().Add(10 * time.Second))
			if n, err := worker.Read(make([]byte, 1)); n > 0 || err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
				t.Errorf("%s: %d %v, want the end", c.name, n, err)
			}
		}
		ended := make(chan struct{})
		go func() {
			p.close()
			close(ended)
		}()
		select {
		case <-ended:
		case <-time.After(10 * time.Second):
			t.Fatalf("%s: it does not end", c.name)
		}
		worker.Close()
		settle(t, c.name, before)
	}
}

// TestCase62And63NoSocketOfItsOwn: a worker with a host gets no socket of any kind,
// and none of what it tries arrives.
func TestCase62And63NoSocketOfItsOwn(t *testing.T) {
	address, came := listener(t)
	r := newRunner(t, Config{Limits: quick})
	for name := range socketCalls {
		if err := socketCalls[name](); errors.Is(err, unix.EPERM) {
			t.Logf("%s outside of the jail: %v", name, err)
		}
		res := runJob(t, r, granting(t, allLibraries(quick), fmt.Sprintf("return probe[%q]()", name), notebook.Net(address)))
		if res.Verdict != notebook.Violation {
			t.Errorf("%s: %v %q %q", name, res.Verdict, res.Output, res.Error)
		}
	}
	if n := came.Load(); n > 0 {
		t.Errorf("%d connections came past the proxy", n)
	}
	res := runJob(t, r, granting(t, quick, fmt.Sprintf("return net.open(%q) ~= nil", address), notebook.Net(address)))
	if res.Output != "true\n" || came.Load() != 1 {
		t.Errorf("the control: %q, %d came", res.Output, came.Load())
	}
}

// TestAProxyEndsWithItsRun: a run that waits for the network dies on time, and
// its connections with it.
func TestAProxyEndsWithItsRun(t *testing.T) {
	address, _ := listener(t)
	r := newRunner(t, Config{Limits: quick})
	short := quick
	short.Time = 300 * time.Millisecond
	source := fmt.Sprintf("local c = net.open(%q) print('open') return c:line()", address)
	runJob(t, r, granting(t, short, source, notebook.Net(address)))
	before := count()
	for range 5 {
		if res := runJob(t, r, granting(t, short, source, notebook.Net(address))); res.Verdict != notebook.Timeout || res.Output != "open\n" {
			t.Errorf("%v %q %q", res.Verdict, res.Output, res.Error)
		}
	}
	settle(t, "after five runs that waited", before)
}

// TestAddressesThatAreNotPublic: of each kind one, and the neighbours that are.
func TestAddressesThatAreNotPublic(t *testing.T) {
	for _, a := range []string{
		"0.0.0.0", "0.1.2.3", "10.0.0.1", "100.64.0.1", "100.127.255.255", "127.0.0.1", "127.255.255.255", "169.254.169.254", "172.16.0.1",
		"172.31.255.255", "192.0.0.8", "192.0.2.1", "192.168.1.1", "198.18.0.1", "198.51.100.1", "203.0.113.9", "224.0.0.1", "239.255.255.255",
		"240.0.0.1", "255.255.255.255", "::", "::1", "::ffff:127.0.0.1", "::ffff:8.8.8.8", "64:ff9b::808:808", "64:ff9b:1::1", "100::1", "2001::1", "2001:db8::1",
		"2002:7f00:1::", "3fff::1", "fc00::1", "fd12:3456::1", "fe80::1", "fe80::1%eth0", "fec0::1", "ff02::1", "::127.0.0.1", "4000::1",
	} {
		if public(netip.MustParseAddr(a)) {
			t.Errorf("%s is reached by a name", a)
		}
	}
	for _, a := range []string{"8.8.8.8", "1.1.1.1", "100.63.255.255", "100.128.0.0", "172.15.255.255", "172.32.0.0", "192.167.255.255", "223.255.255.255", "2606:4700::1", "2a00:1450::1"} {
		if !public(netip.MustParseAddr(a)) {
			t.Errorf("%s is not reached", a)
		}
	}
	if public(netip.Addr{}) {
		t.Error("no address is reached")
	}
}

// FuzzProxy: whatever a worker that was taken over says, the proxy stays within
// its bounds and ends.
func FuzzProxy(f *testing.F) {
	f.Add([]byte("\x00\x00\x00\x08oa.b:443"))
	f.Add([]byte("\x00\x00\x00\x06r\x01\xff\xff\xff\xff"))
	f.Add([]byte("\xff\xff\xff\xffo"))
	f.Fuzz(func(t *testing.T, b []byte) {
		p := &proxy{hosts: []string{"a.b:443"}, connections: map[byte]net.Conn{}, ctx: t.Context(), network: Network{
			Resolve: func(context.Context, string) ([]netip.Addr, error) {
				return []netip.Addr{netip.MustParseAddr("8.8.8.8")}, nil
			},
			Dial: func(_ context.Context, to netip.AddrPort) (net.Conn, error) {
				if to.String() != "8.8.8.8:443" {
					t.Errorf("it connects to %s", to)
				}
				return nil, errors.New("no")
			},
		}}
		for r := strings.NewReader(string(b)); ; {
			m, err := readFrame(r, maxNetFrame)
			if err != nil || len(m) == 0 {
				return
			}
			if answer, err := p.do(m[0], m[1:]); err == nil && len(answer) >= maxNetFrame || len(p.connections) > maxConnections {
				t.Errorf("%d bytes, %d connections", len(answer), len(p.connections))
			}
		}
	})
}
