package daemon

import (
	"context"
	"errors"
	"strings"
	"testing"

	"noted/notebook"
)

// TestWhoCannotWriteIsToldWhatNext: a device that has joined and knows no
// roster yet, and one that was removed from it.
func TestWhoCannotWriteIsToldWhatNext(t *testing.T) {
	ctx := context.Background()
	laptop, _ := alone(t, "laptop")
	phone, person := alone(t, "phone")
	refused := func(why string, code notebook.Code, err error) {
		t.Helper()
		e, ok := errors.AsType[*notebook.Error](err)
		if !ok || e.Code != code || !strings.Contains(e.Error(), why) || e.Hint == "" {
			t.Errorf("the person is told %v, not %s: …%s…, with what to do next", err, code, why)
		}
	}
	invited(t, laptop, phone)
	_, err := person.NewPage(ctx, "Early")
	refused("the notebook has not come yet", notebook.CodeUnavailable, err)

	handed(t, laptop, phone)
	page, err := person.NewPage(ctx, "Early")
	if err != nil {
		t.Fatal(err)
	}
	if page, err = person.Append(ctx, page.ID, "one", ""); err != nil {
		t.Fatal(err)
	}
	handed(t, phone, laptop)

	if err := laptop.removeDevice(phone.signer.Device()); err != nil {
		t.Fatal(err)
	}
	handed(t, laptop, phone) // somebody relays it
	_, err = person.Append(ctx, page.ID, "two", "")
	refused("this device was removed", notebook.CodeRefused, err)
	_, err = person.NewPage(ctx, "Late")
	refused("this device was removed", notebook.CodeRefused, err)
	_, err = person.Rename(ctx, page.ID, "Late")
	refused("this device was removed", notebook.CodeRefused, err)
	if p, err := person.Page(ctx, "Early"); err != nil || p.Body != "one\n" {
		t.Errorf("what it has reads %+v %v", p, err)
	}
}
