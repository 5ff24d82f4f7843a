package notebook

import (
	"errors"
	"fmt"
	"net/netip"
	"path"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// Capability is one thing that a run may have, as a fence's wants and a policy
// name it:
//
//	page clock args seed query    values that are sent with the source
//	dir:PATH  dir:PATH:rw         a directory and what it holds, to read, or to write too
//	program:PATH                  a program to start
//	net:HOST:PORT                 one port of one host
//
// A path is absolute, clean and not the root; of its characters a blank is
// written %20, a quote %22, a percent sign %25 and a colon %3A. A host is a name in
// lower case, a foreign script as xn--, or an IP address, version 6 in brackets.
// Each has one way to be written. A Capability from outside is one only after
// [ParseCapability].
type Capability string

// The capabilities without more words, and the kinds of the others.
const (
	CapPage    Capability = "page"    // the page's text as of the run's revision
	CapClock   Capability = "clock"   // one time, fixed when the run is dispatched
	CapArgs    Capability = "args"    // what the person passed with the request
	CapSeed    Capability = "seed"    // a seed for a private random source
	CapQuery   Capability = "query"   // what the notebook's pages answer to a query
	CapDir     Capability = "dir"     // dir:PATH, dir:PATH:rw
	CapProgram Capability = "program" // program:PATH
	CapNet     Capability = "net"     // net:HOST:PORT
)

// Bounds of what one fence, or one approval, may ask for.
const (
	MaxWants      = 16  // capabilities: more than a person reads before they agree
	MaxCapability = 512 // bytes of one: a path as people have them
)

// values are the capabilities that are one word.
var values = []Capability{CapArgs, CapClock, CapPage, CapQuery, CapSeed}

// ParseCapability reads a capability, in the one way in which it is written.
func ParseCapability(s string) (Capability, error) {
	if len(s) > MaxCapability {
		return "", noCapability("%s has %d bytes, and a capability has %d at most", quoted(s), len(s), MaxCapability)
	}
	if slices.Contains(values, Capability(s)) {
		return Capability(s), nil
	}
	kind, rest, _ := strings.Cut(s, ":")
	why := ""
	switch Capability(kind) {
	case CapDir:
		why = badPath(strings.TrimSuffix(rest, writable))
	case CapProgram:
		why = badPath(rest)
	case CapNet:
		why = badAddress(rest)
	default:
		return "", noCapability("%s is a capability that this noted does not know", quoted(s))
	}
	if why != "" {
		return "", noCapability("%s is no capability: %s", quoted(s), why)
	}
	return Capability(s), nil
}

func noCapability(format string, args ...any) *Error {
	return Errorf(CodeInvalid, format, args...).
		With("it is page, clock, args, seed, query, dir:PATH, dir:PATH:rw, program:PATH or net:HOST:PORT")
}

// ParseCapabilities reads a list of capabilities, sorted, each once. One
// directory is not both to be read only and to be written.
func ParseCapabilities(words []string) ([]Capability, error) {
	if len(words) > MaxWants {
		return nil, noCapability("%d capabilities are more than %d", len(words), MaxWants)
	}
	var all []Capability
	for _, word := range words {
		c, err := ParseCapability(word)
		if err != nil {
			return nil, err
		}
		all = append(all, c)
	}
	slices.Sort(all)
	all = slices.Compact(all)
	for _, c := range all {
		if c.Writable() && slices.Contains(all, Dir(c.Path(), false)) {
			return nil, noCapability("%s is to be read only and to be written at once", quoted(c.Path()))
		}
	}
	return all, nil
}

const writable = ":rw"

// Kind is the capability without its path or host; empty where it is none.
func (c Capability) Kind() Capability {
	if _, err := ParseCapability(string(c)); err != nil {
		return ""
	}
	kind, _, _ := strings.Cut(string(c), ":")
	return Capability(kind)
}

// Outside reports whether the capability is something outside of the notebook: a
// directory, a program or a host.
func (c Capability) Outside() bool {
	kind := c.Kind()
	return kind == CapDir || kind == CapProgram || kind == CapNet
}

// Path is of a directory or a program, as the system knows it; empty of others.
func (c Capability) Path() string {
	if kind := c.Kind(); kind != CapDir && kind != CapProgram {
		return ""
	}
	_, rest, _ := strings.Cut(string(c), ":")
	p, _ := unescape(strings.TrimSuffix(rest, writable), pathSigns)
	return p
}

// Writable reports whether the capability is a directory to write to.
func (c Capability) Writable() bool {
	return c.Kind() == CapDir && strings.HasSuffix(string(c), writable)
}

// Address is HOST:PORT of a net capability, an IP address of version 6 in
// brackets; empty of others.
func (c Capability) Address() string {
	if c.Kind() != CapNet {
		return ""
	}
	_, rest, _ := strings.Cut(string(c), ":")
	return rest
}

// Dir, Program and Net write a capability; what they write of a path or an
// address that cannot be one does not parse.
func Dir(path string, write bool) Capability {
	c := CapDir + ":" + Capability(escaper.Replace(path))
	if write {
		c += writable
	}
	return c
}

// Program is program:PATH.
func Program(path string) Capability { return CapProgram + ":" + Capability(escaper.Replace(path)) }

// Net is net:HOST:PORT.
func Net(address string) Capability { return CapNet + ":" + Capability(address) }

// pathSigns are written %20, %22, %25 and %3A in a path.
const pathSigns = ` "%:`

var escaper = strings.NewReplacer(" ", "%20", `"`, "%22", "%", "%25", ":", "%3A")

// unescape undoes how signs are written with a percent sign and two digits, and
// nothing else: a text has one way to be written.
func unescape(s, signs string) (string, bool) {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		switch {
		case s[i] != '%' && strings.IndexByte(signs, s[i]) >= 0:
			return "", false
		case s[i] != '%':
			b.WriteByte(s[i])
			continue
		}
		at := -1
		if i+3 <= len(s) {
			at = slices.IndexFunc([]byte(signs), func(c byte) bool { return fmt.Sprintf("%02X", c) == s[i+1:i+3] })
		}
		if at < 0 {
			return "", false
		}
		b.WriteByte(signs[at])
		i += 2
	}
	return b.String(), true
}

// badPath says why s is no path, empty if it is one.
func badPath(s string) string {
	p, ok := unescape(s, pathSigns)
	odd := func(r rune) bool { return r != ' ' && unicode.IsSpace(r) }
	switch {
	case !ok:
		return "in a path a blank is %20, a quote %22, a percent sign %25 and a colon %3A"
	case !strings.HasPrefix(p, "/"):
		return "the path is not absolute"
	case p == "/":
		return "the root directory holds everything"
	case path.Clean(p) != p:
		return "the path is not in its shortest form"
	case EscapeLine(p) != p || strings.ContainsFunc(p, odd):
		return "the path holds characters that do not show"
	}
	return ""
}

// badAddress says why s is no HOST:PORT, empty if it is one.
func badAddress(s string) string {
	colon := strings.LastIndexByte(s, ':')
	if colon < 0 {
		return "the port is missing"
	}
	host, port := s[:colon], s[colon+1:]
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 || strconv.FormatUint(n, 10) != port {
		return "the port is not a number from 1 to 65535"
	}
	if inner, ok := strings.CutPrefix(host, "["); ok {
		inner, closed := strings.CutSuffix(inner, "]")
		ip, err := netip.ParseAddr(inner)
		if !closed || err != nil || !ip.Is6() || ip.Is4In6() || ip.Zone() != "" || ip.String() != inner {
			return "between the brackets is no IP address of version 6 in its shortest form"
		}
		return ""
	}
	return badHost(host)
}

// maxHost is that of the names of hosts, RFC 1035.
const maxHost = 253

func badHost(host string) string {
	if len(host) == 0 || len(host) > maxHost {
		return "the host is missing or too long"
	}
	labels := strings.Split(host, ".")
	for _, label := range labels {
		if len(label) == 0 || len(label) > 63 || label[0] == '-' || label[len(label)-1] == '-' ||
			strings.Trim(label, "abcdefghijklmnopqrstuvwxyz0123456789-") != "" {
			return "the host is a name of a-z, 0-9, - and dots, a foreign script as xn--, or an IP address"
		}
	}
	// What ends in a number is an address to every resolver, some also read it in
	// octal or hexadecimal.
	if last := labels[len(labels)-1]; last[0] >= '0' && last[0] <= '9' {
		if ip, err := netip.ParseAddr(host); err != nil || ip.String() != host {
			return "the host looks like an IP address and is none"
		}
	}
	return ""
}

// wordsOf are the words of an attribute's value. Only blanks and tabs part them.
func wordsOf(value string) []string {
	return strings.FieldsFunc(value, func(r rune) bool { return r == ' ' || r == '\t' })
}

// Wants are the capabilities that the fence asks for, as wants="page clock" in
// its attributes, sorted. Asking is content: it grants nothing. A capability
// that this program does not know is an error, as are malformed attributes.
func (p Part) Wants() ([]Capability, error) {
	attributes, err := p.Attributes()
	if err != nil {
		return nil, err
	}
	wants, err := ParseCapabilities(wordsOf(attributes["wants"]))
	if e, ok := errors.AsType[*Error](err); ok {
		return nil, Errorf(e.Code, "what the fence wants cannot be read: %s", e.Message).With("%s", e.Hint)
	}
	if err == nil && (slices.Contains(wants, CapQuery) || p.isQuery()) {
		_, err = p.Query()
	}
	if err != nil {
		return nil, err
	}
	return wants, nil
}

func (p Part) isQuery() bool { return Canonical(p.Language) == "query" }

// Query is what the fence asks of the notebook's pages: of language query its
// code, of another its attribute query.
func (p Part) Query() (*Query, error) {
	if p.isQuery() {
		return ParseQuery(p.Code)
	}
	attributes, err := p.Attributes()
	if err != nil {
		return nil, err
	}
	text, found := attributes["query"]
	if !found {
		return nil, Errorf(CodeInvalid, "the fence wants query, and does not say which").With("%s", `say it beside wants, as in {wants="query" query="#project task:todo"}`)
	}
	return ParseQuery(text)
}
