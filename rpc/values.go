package rpc

import (
	"noted/notebook"
	"noted/rpc/notedv1"
)

// Bounds of a request's fields, in bytes where nothing else is said. They are
// far above what a person needs and keep a hostile client's request small once
// it is decoded; the text of a page is bounded by its message and by the daemon.
const (
	maxRef        = notebook.MaxTitle + 128 // a title or an id's prefix
	maxWord       = 64                      // a word of ours: a door, a format
	maxName       = 256                     // a device's or agent's name, which the daemon bounds further
	maxPath       = 4096                    // PATH_MAX
	maxReason     = 4096                    // what an agent says for its wish
	maxInvitation = 4096                    // a pairing's URI with all addresses
	maxPIN        = 256
	maxTyped      = 1024
	maxArgs       = 64       // entries
	maxArgsSize   = 64 << 10 // keys and values, as much as a run may take in
)

func writeRevision(v notebook.Revision) *notedv1.Revision {
	if v == nil {
		return nil
	}
	m := &notedv1.Revision{}
	for _, h := range v {
		m.Heads = append(m.Heads, append([]byte(nil), h[:]...)) // all its bytes, also zeros
	}
	return m
}

func readRevision(r *reader, m *notedv1.Revision) notebook.Revision { return r.heads(m.GetHeads()) }

func writeAuthor(a *notebook.Author) *notedv1.Author {
	m := &notedv1.Author{Device: idBytes(a.Device), Class: notedv1.Class(a.Class), Label: text(a.Label)}
	if !a.Source.IsZero() {
		m.Source = &notedv1.Source{Device: idBytes(a.Source.Device), Class: notedv1.Class(a.Source.Class), Label: text(a.Source.Label)}
	}
	return m
}

func readAuthor(r *reader, m *notedv1.Author) notebook.Author {
	return notebook.Author{
		Device: id[notebook.DeviceID](r, "device", m.GetDevice()),
		Class:  enum(r, "class", int32(m.GetClass()), notebook.Moved),
		Label:  m.GetLabel(),
		Source: within(r, "source", m.GetSource(), readSource),
	}
}

func readSource(r *reader, m *notedv1.Source) notebook.Source {
	return notebook.Source{
		Device: id[notebook.DeviceID](r, "device", m.GetDevice()),
		Class:  enum(r, "class", int32(m.GetClass()), notebook.Moved),
		Label:  m.GetLabel(),
	}
}

func writeLimits(l *notebook.Limits) *notedv1.Limits {
	return &notedv1.Limits{Time: duration(l.Time), Memory: l.Memory, Output: int64(l.Output), Source: int64(l.Source)}
}

func readLimits(r *reader, m *notedv1.Limits) notebook.Limits {
	return notebook.Limits{
		Time:   r.duration("time", m.GetTime()),
		Memory: m.GetMemory(),
		Output: r.integer("output", m.GetOutput()),
		Source: r.integer("source", m.GetSource()),
	}
}

func writePresence(p notebook.Presence) *notedv1.Presence {
	if p == (notebook.Presence{}) {
		return nil
	}
	return &notedv1.Presence{Pin: p.PIN, Typed: p.Typed}
}

func readPresence(r *reader, m *notedv1.Presence) notebook.Presence {
	return notebook.Presence{PIN: r.short("pin", m.GetPin(), maxPIN), Typed: r.short("typed", m.GetTyped(), maxTyped)}
}
