package pairing

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"noted/notebook"
)

func TestOffer(t *testing.T) {
	start := time.Unix(1_800_000_000, 0)
	inv := NewInvitation(notebook.NotebookID{1}, notebook.DeviceID{1}, nil, start)
	right, wrong := []byte("right"), []byte("wrong")
	peer := func(n int) notebook.DeviceID { return notebook.DeviceID{byte(n), byte(n >> 8), 1} }
	admit := func(n int, at time.Duration) func(*Offer) error {
		return func(o *Offer) error { return o.Admit(peer(n), start.Add(at)) }
	}
	redeem := func(proof []byte, at time.Duration) func(*Offer) error {
		return func(o *Offer) error { return o.Redeem(proof, right, start.Add(at)) }
	}
	type act struct {
		do   func(*Offer) error
		want Reason // 0 for none
	}
	type acts = []act
	const s = time.Second
	for name, sequence := range map[string]acts{
		"in time":                {{admit(1, 0), 0}, {redeem(right, 119*s), 0}},
		"expired at the door":    {{admit(1, 120*s), Expired}},
		"expired at the proof":   {{admit(1, 119*s), 0}, {redeem(right, 120*s), Expired}},
		"used once":              {{redeem(right, s), 0}, {redeem(right, 2*s), Used}, {admit(1, 3*s), Used}},
		"used beats expired":     {{redeem(right, s), 0}, {admit(1, 200*s), Used}},
		"a wrong proof":          {{redeem(wrong, s), WrongSecret}, {redeem(right, s), 0}},
		"three tries of a key":   {{admit(1, s), 0}, {admit(1, 2*s), 0}, {admit(1, 3*s), 0}, {admit(1, 4*s), TooMany}, {admit(2, 5*s), 0}},
		"tries do not come back": {{admit(1, s), 0}, {admit(1, s), 0}, {admit(1, s), 0}, {admit(1, 100*s), TooMany}},
		"a burst of strangers": {
			{admit(1, 0), 0},
			{admit(2, 0), 0},
			{admit(3, 0), 0},
			{admit(4, 0), 0},
			{admit(5, 0), 0},
			{admit(6, 0), Busy},
			{admit(6, s), 0},
			{admit(7, s), Busy},
		},
	} {
		t.Run(name, func(t *testing.T) {
			o := NewOffer(inv)
			for k, a := range sequence {
				err := a.do(o)
				f, _ := errors.AsType[*Failure](err)
				if (err == nil) != (a.want == 0) || f != nil && f.Reason != a.want {
					t.Fatalf("act %d: %v, want reason %d", k+1, err, a.want)
				}
			}
		})
	}
	t.Run("strangers are not remembered without end", func(t *testing.T) {
		inv := inv
		inv.Expires = start.Add(24 * time.Hour)
		o := NewOffer(inv)
		for n := range 1000 {
			err := o.Admit(peer(n), start.Add(time.Duration(n)*10*time.Second))
			if (err != nil) != (n >= maxStrangers) {
				t.Fatalf("stranger %d: %v", n+1, err)
			}
		}
		if len(o.tries) != maxStrangers {
			t.Errorf("%d strangers remembered", len(o.tries))
		}
	})
}

func TestInvitationRoundTrip(t *testing.T) {
	addresses := []string{"/ip4/192.168.100.200/udp/41641/quic-v1", "/ip4/192.168.100.200/tcp/41641", "/ip6/fd00:1234:5678:9abc::1/udp/41641/quic-v1"}
	inv := NewInvitation(notebook.NotebookID{1}, newDevice(1).id, addresses, time.Now())
	got, err := ParseInvitation(" " + inv.URI() + "\n")
	if err != nil {
		t.Fatal(err)
	}
	if fmt.Sprint(got) != fmt.Sprint(inv) || got.Secret != inv.Secret {
		t.Errorf("got %v, want %v", got, inv)
	}
	if len(got.Addresses) != 3 {
		t.Errorf("%d addresses", len(got.Addresses))
	}
	if s := fmt.Sprintf("%v %+v %#v %s", inv, inv, inv, inv.Secret); strings.Contains(s, fmt.Sprint([16]byte(inv.Secret))) || !strings.Contains(s, "(secret)") {
		t.Errorf("the secret prints itself: %s", s)
	}
}

func TestAnInvitationTakesWhatFits(t *testing.T) {
	var addresses []string
	for k := range 9 {
		addresses = append(addresses, fmt.Sprintf("/ip4/192.168.100.%d/udp/41641/quic-v1", 100+k))
	}
	inv := NewInvitation(notebook.NotebookID{1}, notebook.DeviceID{1}, addresses, time.Now())
	if len(inv.Addresses) != MaxAddresses || inv.Addresses[0] != addresses[0] {
		t.Errorf("took %q", inv.Addresses)
	}
	for k := range addresses {
		addresses[k] = "/" + strings.Repeat("a", MaxAddress-1)
	}
	addresses[0] = "/dns4/EVIL&s=x"
	inv = NewInvitation(notebook.NotebookID{1}, notebook.DeviceID{1}, addresses, time.Now())
	if _, err := ParseInvitation(inv.URI()); err != nil || len(inv.URI()) > MaxURI || len(inv.Addresses) != MaxAddresses {
		t.Errorf("%d addresses in %d bytes: %v", len(inv.Addresses), len(inv.URI()), err)
	}
}

func TestParseInvitationIsStrict(t *testing.T) {
	good := NewInvitation(notebook.NotebookID{1}, notebook.DeviceID{1}, []string{"/ip4/10.0.0.1/tcp/1"}, time.Unix(1_800_000_000, 0)).URI()
	if _, err := ParseInvitation(good); err != nil {
		t.Fatal(err)
	}
	swap := func(old, with string) string {
		if !strings.Contains(good, old) {
			t.Fatalf("%q is not in %q", old, good)
		}
		return strings.Replace(good, old, with, 1)
	}
	for name, bad := range map[string]string{
		"empty":             "",
		"prose":             "hello",
		"another version":   swap("noted:1", "noted:2"),
		"upper-case scheme": swap("noted:", "NOTED:"),
		"unknown key":       good + "&x=1",
		"key without value": good + "&a",
		"empty address":     good + "&a=",
		"repeated secret":   swap("&e=", "&s=AAAAAAAAAAAAAAAAAAAAAA&e="),
		"missing notebook":  "noted:1?" + good[strings.Index(good, "d="):],
		"another order":     swap("n=AQ", "d=AQ"),
		"short secret":      good[:strings.Index(good, "&s=")+6] + good[strings.Index(good, "&e="):],
		"padding bits":      swap("AA&d=", "AB&d="),
		"zero device":       good[:strings.Index(good, "d=")] + "d=" + strings.Repeat("A", 43) + good[strings.Index(good, "&s="):],
		"leading zero":      swap("e=1800", "e=01800"),
		"not a number":      swap("e=1800", "e=x800"),
		"space in address":  swap("/tcp/1", "/tcp/ 1"),
		"escape in address": swap("/tcp/1", "/tcp/%31"),
		"escape sequence":   swap("/tcp/1", "/tcp/\x1b[31m"),
		"five addresses":    good + strings.Repeat("&a=/ip4/10.0.0.1/tcp/1", 4),
		"long address":      good + "&a=/" + strings.Repeat("a", MaxAddress),
		"far too long":      good + strings.Repeat("&a=/ip4/10.0.0.1/tcp/1", 4000),
		"fragment":          good + "#top",
	} {
		t.Run(name, func(t *testing.T) {
			got, err := ParseInvitation(bad)
			e, ok := errors.AsType[*notebook.Error](err)
			if !ok || e.Code != notebook.CodeInvalid || e.Hint == "" {
				t.Errorf("%v, %v", got, err)
			}
			if err != nil && strings.ContainsAny(err.Error(), "\x1b\n") {
				t.Errorf("%q", err)
			}
		})
	}
}

func FuzzParseInvitation(f *testing.F) {
	f.Add(NewInvitation(notebook.NotebookID{1}, notebook.DeviceID{1}, []string{"/ip4/10.0.0.1/tcp/1"}, time.Unix(1_800_000_000, 0)).URI())
	f.Add("noted:1?n=&d=&s=&e=")
	f.Add("noted:\x1b?")
	f.Fuzz(func(t *testing.T, s string) {
		inv, err := ParseInvitation(s)
		if err == nil && inv.URI() != strings.TrimSpace(s) {
			t.Fatalf("%q reads as %q", s, inv.URI())
		}
	})
}
