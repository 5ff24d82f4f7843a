package exec

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
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
