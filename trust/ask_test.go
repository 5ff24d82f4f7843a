package trust

import (
	"reflect"
	"strings"
	"testing"

	"noted/notebook"
)

func fenceAsk(n byte) notebook.ProposalRequest {
	return notebook.ProposalRequest{
		FenceRef: notebook.FenceRef{Page: notebook.PageID{1}, Fence: notebook.FenceID{n}, Shown: notebook.Hash{n}},
		Rung:     notebook.Granted, Capabilities: []notebook.Capability{"page"}, Args: map[string]string{"a": "b", "c": "d"},
		Scope: notebook.ScopeContent, Expires: noon,
	}
}

func TestAsks(t *testing.T) {
	clerk, other := Requester{Role: roleAgent, Name: "clerk"}, Requester{Role: roleAgent, Name: "other"}
	a := NewAsks()
	open := func(by Requester, n byte) (Ask, error) { return a.Open(by, fenceAsk(n), "please", noon) }
	first, err := open(clerk, 1)
	if err != nil || first.State != AskOpen || first.Client != "agent:clerk" {
		t.Fatal(first, err)
	}
	if _, err := open(clerk, 1); code(err) != notebook.CodeRefused || !strings.Contains(err.Error(), "asked already") {
		t.Errorf("the same again: %v", err)
	}
	if _, err := open(other, 1); err != nil {
		t.Errorf("another client may ask too: %v", err)
	}
	for n := byte(2); n <= maxOpenAsks; n++ {
		if _, err := open(clerk, n); err != nil {
			t.Fatal(n, err)
		}
	}
	if _, err := open(clerk, 99); code(err) != notebook.CodeExhausted {
		t.Errorf("one more than there may be: %v", err)
	}
	if _, err := open(other, 99); err != nil {
		t.Errorf("a full client stops another: %v", err)
	}

	if x, err := a.Answer(first.ID, false); err != nil || x.State != AskDenied {
		t.Fatal(x, err)
	}
	if _, err := a.Answer(first.ID, true); code(err) != notebook.CodeStale {
		t.Errorf("answered twice: %v", err)
	}
	for _, by := range []Requester{clerk, other, {Role: roleBrowser}} {
		if _, err := open(by, 1); code(err) != notebook.CodeRefused || !strings.Contains(err.Error(), "said no") {
			t.Errorf("%v asks again after a no: %v", by, err)
		}
	}
	changed := fenceAsk(1)
	changed.Shown = notebook.Hash{77}
	if void := a.Changed(changed.Page, changed.Fence, changed.Shown); len(void) != 1 || void[0].Client != "agent:other" || void[0].State != AskVoid {
		t.Errorf("void: %+v", void)
	}
	if _, err := a.Open(clerk, changed, "please", noon); err != nil {
		t.Errorf("the fence changed and the no still holds: %v", err)
	}
	if x, err := a.Answer(2, true); err == nil {
		t.Errorf("answered what is void: %v", x)
	}
	if x, err := a.Answer(3, true); err != nil || x.State != AskApproved {
		t.Error(x, err)
	}
	if _, err := a.Answer(999, true); code(err) != notebook.CodeNotFound {
		t.Error(err)
	}
	if _, err := a.Open(other, fenceAsk(50), strings.Repeat("x", maxReason+1), noon); code(err) != notebook.CodeInvalid {
		t.Errorf("a long reason: %v", err)
	}
	if _, err := a.Open(other, fenceAsk(50), "\xff", noon); code(err) != notebook.CodeInvalid {
		t.Errorf("a reason that is no text: %v", err)
	}
	a.Drop(clerk)
	for _, x := range a.List() {
		if x.Client == "agent:clerk" && x.State == AskOpen {
			t.Errorf("ask %d of a dropped client is open", x.ID)
		}
	}

	kept := store{}
	kept.keep(a.Flush())
	again := must(OpenAsks(kept.all()))
	want := a.List()
	got := again.List()
	if len(got) != len(want) {
		t.Fatalf("%d of %d asks came back", len(got), len(want))
	}
	for i := range want {
		if !want[i].Asked.Equal(got[i].Asked) || !want[i].Request.Expires.Equal(got[i].Request.Expires) {
			t.Error("times")
		}
		want[i].Asked, got[i].Asked = noon, noon
		want[i].Request.Expires, got[i].Request.Expires = noon, noon
		if !reflect.DeepEqual(want[i], got[i]) {
			t.Errorf("\n%+v\n%+v", got[i], want[i])
		}
	}
	if x, err := again.Open(other, fenceAsk(60), "", noon); err != nil || x.ID <= want[0].ID {
		t.Errorf("%d, %v", x.ID, err)
	}
}

func TestAsksAreBounded(t *testing.T) {
	a := NewAsks()
	for i := range 2 * maxAsks {
		r := fenceAsk(1)
		r.Shown = notebook.Digest("test", []byte{byte(i), byte(i >> 8)})
		x, err := a.Open(Requester{Role: roleAgent, Name: "clerk"}, r, "", noon)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := a.Answer(x.ID, i%2 == 0); err != nil {
			t.Fatal(err)
		}
	}
	if n := len(a.byID); n > maxAsks {
		t.Errorf("%d asks are kept", n)
	}
	kept := store{}
	kept.keep(a.Flush())
	if len(kept) != len(a.byID) {
		t.Errorf("%d records for %d asks", len(kept), len(a.byID))
	}
}
