package trust

import (
	"noted/notebook"
)

// Excuse sets who decides whether an entry of a page may come without its body:
// the page was purged by the device, which signed that. Without it none may.
func (l *Log) Excuse(holds func(page notebook.PageID, by notebook.DeviceID) bool) { l.excuse = holds }

// pardon is the purge that excused an entry last. A purged page has many
// entries and few purges, whose signature is checked once in a row.
type pardon struct {
	excuse notebook.Hash
	page   notebook.PageID
	by     notebook.DeviceID
}

// excused checks what came instead of a body that does not match h: the entry
// by which a device purged the page of h. That entry need not be in the log yet.
// It rests on the very entries that it excuses, and it cannot be undone.
func (l *Log) excused(h *notebook.Header, instead []byte) error {
	at := h.Position()
	if l.excuse == nil || len(instead) == 0 || h.Kind != notebook.KindText && h.Kind != notebook.KindResult {
		return refused(at, ErrBody)
	}
	if digest := notebook.BodyDigest(instead); l.pardon.excuse != digest {
		purge, err := notebook.DecodeExcuse(instead)
		if err != nil {
			return refused(at, ErrBody)
		}
		by, err := open(purge)
		if err != nil {
			return refused(at, ErrBody)
		}
		set, err := notebook.DecodeSet(purge.Body)
		if err != nil || by.Notebook != l.nb || by.Kind != notebook.KindSet || by.Class != notebook.Typed || set.Register != notebook.RegisterPurged {
			return refused(at, ErrBody)
		}
		l.pardon = pardon{excuse: digest, page: by.Page, by: by.Device}
	}
	switch {
	case l.pardon.page != h.Page:
		return refused(at, ErrBody)
	case !l.excuse(h.Page, l.pardon.by):
		return refused(at, ErrUnexcused)
	}
	return nil
}
