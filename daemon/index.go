package daemon

import (
	"encoding/hex"
	"errors"
	"slices"
	"strings"
	"time"

	"noted/notebook"
)

// card is what the daemon remembers of every page without opening it: enough
// to list, to find by title, and to know which ids were ever used.
type card struct {
	_         struct{} `cbor:",toarray"`
	Version   uint8
	Title     string
	Deleted   bool
	Undeleted bool // text met a deletion that had not seen it
	Size      int  // bytes of the body
	Fences    int
	Changed   int64 // Unix milliseconds, as the newest entry's author claims
	Revision  []notebook.Hash
	Purged    bool // its text is gone, for good
	Vouched   bool // this device has said so
}

const cardVersion = 2

// index finds pages.
type index struct {
	cards  map[notebook.PageID]card
	titles map[string][]notebook.PageID // by title key; live pages only
}

func newIndex() *index {
	return &index{cards: map[notebook.PageID]card{}, titles: map[string][]notebook.PageID{}}
}

func (x *index) put(id notebook.PageID, c card) {
	if old, ok := x.cards[id]; ok && !old.Deleted {
		key := notebook.TitleKey(old.Title)
		x.titles[key] = slices.DeleteFunc(x.titles[key], func(p notebook.PageID) bool { return p == id })
		if len(x.titles[key]) == 0 {
			delete(x.titles, key)
		}
	}
	x.cards[id] = c
	if !c.Deleted {
		key := notebook.TitleKey(c.Title)
		x.titles[key] = append(x.titles[key], id)
	}
}

// remove forgets a page of which nothing stands.
func (x *index) remove(id notebook.PageID) {
	if _, known := x.cards[id]; known {
		x.put(id, card{Deleted: true})
		delete(x.cards, id)
	}
}

// live is how many pages are not deleted.
func (x *index) live() int {
	n := 0
	for _, c := range x.cards {
		if !c.Deleted {
			n++
		}
	}
	return n
}

// list is every live page, by title and then id.
func (x *index) list() []notebook.PageInfo {
	var all []notebook.PageInfo
	for id, c := range x.cards {
		if !c.Deleted {
			all = append(all, x.info(id, c))
		}
	}
	slices.SortFunc(all, func(a, b notebook.PageInfo) int {
		if c := strings.Compare(a.Title, b.Title); c != 0 {
			return c
		}
		return strings.Compare(a.ID.String(), b.ID.String())
	})
	return all
}

func (x *index) info(id notebook.PageID, c card) notebook.PageInfo {
	info := notebook.PageInfo{
		ID: id, Title: c.Title, Revision: c.Revision, Size: c.Size, Fences: c.Fences,
		Changed: time.UnixMilli(c.Changed), Deleted: c.Deleted,
	}
	if c.Undeleted {
		info.Notes = append(info.Notes, "deleted on one device and edited on another at the same time: kept")
	}
	if !c.Deleted {
		if same := x.titles[notebook.TitleKey(c.Title)]; len(same) > 1 {
			info.Notes = append(info.Notes, "another page has this title: use ="+id.String()[:8])
		}
	}
	return info
}

// resolveAny is resolve for a page that may be deleted: of those with one title,
// a live one is meant before a deleted one.
func (x *index) resolveAny(ref string, now time.Time) (notebook.PageID, error) {
	id, err := x.resolve(ref, now)
	if e, ours := errors.AsType[*notebook.Error](err); err == nil || !ours || e.Code != notebook.CodeNotFound {
		return id, err
	}
	gone := newIndex()
	for id, c := range x.cards {
		if c.Deleted {
			c.Deleted = false
			gone.put(id, c)
		}
	}
	return gone.resolve(ref, now)
}

// minPrefix is how much of an id a reference must spell: eight digits say
// little less than all of it in any notebook that fits a disk.
const minPrefix = 4

// resolve finds the live page that ref names: a title, "=IDPREFIX" or "today".
func (x *index) resolve(ref string, now time.Time) (notebook.PageID, error) {
	var found []notebook.PageID
	switch prefix, isID := strings.CutPrefix(ref, "="); {
	case isID:
		if len(prefix) < minPrefix || len(prefix) > hex.EncodedLen(len(notebook.PageID{})) {
			return notebook.PageID{}, notebook.Errorf(notebook.CodeInvalid, "a page id has %d to 32 digits after the =", minPrefix)
		}
		for id, c := range x.cards {
			if !c.Deleted && strings.HasPrefix(id.String(), strings.ToLower(prefix)) {
				found = append(found, id)
			}
		}
	case ref == "today":
		ref = now.Format(time.DateOnly)
		fallthrough
	default:
		found = x.titles[notebook.TitleKey(ref)]
	}
	switch len(found) {
	case 1:
		return found[0], nil
	case 0:
		return notebook.PageID{}, notebook.Errorf(notebook.CodeNotFound, "there is no page %q", notebook.EscapeLine(ref)).
			With("noted page list shows all pages, noted page new makes one")
	}
	var names []string
	for _, id := range found {
		names = append(names, "="+id.String()[:12])
	}
	slices.Sort(names)
	return notebook.PageID{}, notebook.Errorf(notebook.CodeAmbiguous, "%q names %d pages: %s", notebook.EscapeLine(ref), len(found), strings.Join(names, " ")).
		With("use one of these ids instead of the title")
}
