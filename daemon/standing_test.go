package daemon_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"

	"noted/daemon/daemontest"
	"noted/notebook"
)

// TestI3OnlyTypedHereStandsLocal brings a fence in through every door.
func TestI3OnlyTypedHereStandsLocal(t *testing.T) {
	w := daemontest.Loopback(t, "laptop", "phone")
	w.Pair("laptop", "phone")
	laptop, phone, scribe := w.As("laptop"), w.As("phone"), w.Device("laptop").Agent("scribe")
	ctx := context.Background()
	text := func(title string) string { return lua("return '" + title + "'") }

	folder := filepath.Join(t.TempDir(), "graph")
	if err := os.Mkdir(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(folder, "Imported.md"), []byte(text("Imported")), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := laptop.Client.Import(ctx, "markdown", folder, nil); err != nil {
		t.Fatal(err)
	}
	laptop.Types("Typed", text("Typed"))
	laptop.Pipes("Piped", text("Piped"))
	laptop.Types("Edited", "")
	p := laptop.Page("Edited")
	if _, err := laptop.Client.Append(ctx, p.ID, text("Edited"), "editor"); err != nil {
		t.Fatal(err)
	}
	scribe.Types("Agents", text("Agents"))
	phone.Types("Phones", text("Phones"))
	w.Settle()

	for title, stands := range map[string]string{
		"Typed": "local", "Piped": "import:stdin", "Edited": "import:editor", "Imported": "import:graph",
		"Agents": "agent:scribe", "Phones": "device:phone",
	} {
		laptop.Stands(title, 1, stands)
		scribe.Stands(title, 1, stands) // whoever looks
		if title != "Phones" {
			phone.Stands(title, 1, "device:laptop")
		}
	}
	phone.Stands("Phones", 1, "local")
	for title, decision := range map[string]string{
		"Typed": "granted", "Piped": "strict", "Imported": "strict", "Agents": "strict", "Phones": "strict",
	} {
		laptop.Decides(title, 1, decision)
	}
}

// TestI3ClientsCannotRaiseTheirText: what a client says of its text lowers it,
// or needs presence, or is refused.
func TestI3ClientsCannotRaiseTheirText(t *testing.T) {
	w := daemontest.Loopback(t)
	w.Init("laptop", "1234")
	laptop, scribe := w.As("laptop"), w.Device("laptop").Agent("scribe")
	ctx := context.Background()
	for _, title := range []string{"One", "Two", "Three", "Four"} {
		laptop.Types(title, "")
	}
	put := func(h *daemontest.Hand, title, via string, typed bool, presence notebook.Presence) error {
		p := laptop.Page(title)
		_, err := h.Client.Put(ctx, notebook.Put{Page: p.ID, Base: p.Revision, Body: lua("return '" + title + "'"), Via: via, AsTyped: typed, Presence: presence})
		return err
	}
	daemontest.Refusal(t, put(laptop, "One", "keys", false, notebook.Presence{}), notebook.CodeInvalid, `not from "keys"`)
	daemontest.Refusal(t, put(laptop, "One", "stdin", true, notebook.Presence{}), notebook.CodeRefused, "this needs the PIN")
	daemontest.Refusal(t, put(laptop, "One", "stdin", true, notebook.Presence{PIN: "4321"}), notebook.CodeRefused, "the PIN is wrong")
	daemontest.Refusal(t, put(scribe, "One", "", true, notebook.Presence{PIN: "1234"}), notebook.CodeDenied, "may not vouch")
	if body := laptop.Body("One"); body != "" {
		t.Fatalf("what was refused was written: %q", body)
	}
	for _, c := range []struct {
		title    string
		by       *daemontest.Hand
		via      string
		typed    bool
		presence notebook.Presence
		stands   string
	}{
		{"One", scribe, "", false, notebook.Presence{}, "agent:scribe"},
		{"Two", scribe, "stdin", false, notebook.Presence{PIN: "1234"}, "agent:scribe"},
		{"Three", laptop, "stdin", false, notebook.Presence{PIN: "1234"}, "import:stdin"},
		{"Four", laptop, "stdin", true, notebook.Presence{PIN: "1234"}, "local"},
	} {
		if err := put(c.by, c.title, c.via, c.typed, c.presence); err != nil {
			t.Fatalf("%s: %v", c.title, err)
		}
		laptop.Stands(c.title, 1, c.stands)
	}
}

// TestI4EditingNeverRaises has the person at the laptop work on text of the
// phone, in every way that keeps some of it.
func TestI4EditingNeverRaises(t *testing.T) {
	const theirs = "# Sums\n\n```lua\nreturn 6*7\n```\n\nos.remove everything\n"
	for _, c := range []struct {
		name   string
		edit   func(h *daemontest.Hand)
		stands string
	}{
		{"nothing", func(*daemontest.Hand) {}, "device:phone"},
		{"prose around it", func(h *daemontest.Hand) { h.Edits("Sums", "# Sums", "# My own sums") }, "device:phone"},
		{"all of the code", func(h *daemontest.Hand) { h.Edits("Sums", "return 6*7", "return 1") }, "device:phone"},
		{"the code but for one character", func(h *daemontest.Hand) { h.Edits("Sums", "eturn 6*7", "eturn 1") }, "device:phone"},
		{"the opening line", func(h *daemontest.Hand) { h.Edits("Sums", "```lua\nr", "```lua\nr") }, "device:phone"},
		{"a fence around their prose", func(h *daemontest.Hand) {
			h.Types("Sums", "# Sums\n\n```lua\nos.remove everything\n```\n")
		}, "device:phone"},
		{"a whole-file save that changes other lines", func(h *daemontest.Hand) {
			h.Types("Sums", strings.Replace(theirs, "os.remove everything", "nothing of the kind", 1))
		}, "device:phone"},
		{"the info string", func(h *daemontest.Hand) { h.Edits("Sums", "```lua\n", "```lua {wants=\"page\"}\n") }, "device:phone"},
		{"a fence of one's own beside it", func(h *daemontest.Hand) {
			h.Edits("Sums", "# Sums\n", "```lua\nreturn 'mine'\n```\n")
		}, "local"},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := daemontest.Bubble(t, "laptop", "phone")
				w.Pair("laptop", "phone")
				w.As("phone").Types("Sums", theirs)
				w.Settle()
				laptop := w.As("laptop")
				c.edit(laptop)
				laptop.Stands("Sums", 1, c.stands)
				w.Device("laptop").Restarts()
				w.As("laptop").Stands("Sums", 1, c.stands)
			})
		})
	}
}

// shared is a bubble in which the laptop typed a page that the phone has too.
func shared(t *testing.T, story func(w *daemontest.World, laptop, phone *daemontest.Hand)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := daemontest.Bubble(t, "laptop", "phone")
		w.Pair("laptop", "phone")
		w.As("laptop").Types("Sums", sums)
		w.Settle()
		w.As("laptop").Stands("Sums", 1, "local")
		story(w, w.As("laptop"), w.As("phone"))
	})
}

func TestRoute04ForeignHandsOnALocalFence(t *testing.T) {
	for _, c := range []struct{ name, old, new, stands string }{
		{"prose beside it", "# Sums", "# Our sums", "local"},
		{"one character more", "6*7", "6*77", "device:phone"},
		{"one character less", "6*7", "67", "device:phone"},
		{"a property", "```lua\n", "```lua {auto-run=true}\n", "device:phone"},
		{"what it wants", "```lua\n", "```lua {wants=\"page\"}\n", "device:phone"},
	} {
		t.Run(c.name, func(t *testing.T) {
			shared(t, func(w *daemontest.World, laptop, phone *daemontest.Hand) {
				phone.Edits("Sums", c.old, c.new)
				w.Settle()
				laptop.Stands("Sums", 1, c.stands)
				phone.Stands("Sums", 1, "device:laptop")
			})
		})
	}
}

// TestRoute04OthersMakeAFenceOfIt: every character is the person's, and that
// they are a fence is somebody else's doing.
func TestRoute04OthersMakeAFenceOfIt(t *testing.T) {
	const text = "Never write ```lua\nreturn 1\n\nor more.\n\n````md\n```lua\nreturn 2\n```\n````\n"
	for _, c := range []struct{ name, old, new, stands string }{
		{"a line end before it", "write ```lua", "write \n```lua", "structure"},
		{"what stood before it taken away", "Never write ", "", "device:phone"},
		{"the example taken out of its fence", "````md\n", "", "device:phone"},
	} {
		t.Run(c.name, func(t *testing.T) {
			shared(t, func(w *daemontest.World, laptop, phone *daemontest.Hand) {
				laptop.Types("Text", text)
				laptop.Stands("Text", 1, "local") // the example as a whole
				w.Settle()
				if n := len(laptop.Page("Text").Fences); n != 1 {
					t.Fatalf("%d fences", n)
				}
				phone.Types("Text", strings.Replace(text, c.old, c.new, 1))
				w.Settle()
				f := laptop.Fence("Text", 1)
				if f.Language != "lua" {
					t.Fatalf("nothing became live: %+v", f)
				}
				laptop.Stands("Text", 1, c.stands)
				laptop.Decides("Text", 1, "strict")
			})
		})
	}
}

// TestRoute05FilesAreImports: the same text from a file, over and over, is the
// import's, also where it is what the person has typed elsewhere.
func TestRoute05FilesAreImports(t *testing.T) {
	w := daemontest.Loopback(t, "laptop")
	laptop := w.As("laptop")
	laptop.Types("Mine", sums)
	for _, via := range []string{"stdin", "editor"} {
		laptop.Types(via, "")
		p := laptop.Page(via)
		if _, err := laptop.Client.Append(context.Background(), p.ID, sums, via); err != nil {
			t.Fatal(err)
		}
		laptop.Stands(via, 1, "import:"+via)
	}
	// An editor that saves the page as it was leaves it as it stands.
	p := laptop.Page("Mine")
	if _, err := laptop.Client.Put(context.Background(), notebook.Put{Page: p.ID, Base: p.Revision, Body: p.Body + "more\n", Via: "editor"}); err != nil {
		t.Fatal(err)
	}
	laptop.Stands("Mine", 1, "local")
	// One character of the fence from a file, and it is a file's.
	p = laptop.Page("Mine")
	if _, err := laptop.Client.Put(context.Background(), notebook.Put{Page: p.ID, Base: p.Revision, Body: strings.Replace(p.Body, "6*7", "6*8", 1), Via: "editor"}); err != nil {
		t.Fatal(err)
	}
	laptop.Stands("Mine", 1, "import:editor")
}

// TestRoute06UndoByOthersRestoresNothing: the bytes are the ones that were typed
// here; who wrote them now is somebody else.
func TestRoute06UndoByOthersRestoresNothing(t *testing.T) {
	shared(t, func(w *daemontest.World, laptop, phone *daemontest.Hand) {
		phone.Edits("Sums", "```lua\nreturn 6*7\n```\n", "")
		w.Settle()
		phone.Types("Sums", sums)
		w.Settle()
		laptop.Sees("Sums", sums)
		laptop.Stands("Sums", 1, "device:phone")
	})
	// The person's own undo, with nobody in between, does.
	shared(t, func(w *daemontest.World, laptop, _ *daemontest.Hand) {
		laptop.Edits("Sums", "```lua\nreturn 6*7\n```\n", "")
		laptop.Types("Sums", sums)
		laptop.Stands("Sums", 1, "local")
	})
	// Killed by a line of the phone's, and live again when that is deleted here:
	// all of it is typed here, and that it is live is not this device's doing alone.
	shared(t, func(w *daemontest.World, laptop, phone *daemontest.Hand) {
		phone.Types("Sums", "~~~\n"+sums)
		w.Settle()
		if f := laptop.Fence("Sums", 1); f.Language != "" {
			t.Fatalf("%+v", f)
		}
		laptop.Types("Sums", sums)
		laptop.Stands("Sums", 1, "structure")
	})
	// Killed by the phone and typed again here: every character is typed here.
	shared(t, func(w *daemontest.World, laptop, phone *daemontest.Hand) {
		phone.Edits("Sums", "```lua\nret", "ret")
		w.Settle()
		laptop.Edits("Sums", "return 6*7\n", "```lua\nreturn 6*7\n")
		laptop.Stands("Sums", 1, "device:phone") // who deleted at its edge has a hand in it
	})
}

func TestRoute07ExportAndImportStaysForeign(t *testing.T) {
	w := daemontest.Loopback(t, "laptop", "phone")
	w.Pair("laptop", "phone")
	laptop, phone := w.As("laptop"), w.As("phone")
	phone.Types("Theirs", sums)
	w.Settle()
	folder := filepath.Join(t.TempDir(), "export")
	if err := os.Mkdir(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(folder, "Back.md"), []byte(laptop.Body("Theirs")), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := laptop.Client.Import(context.Background(), "markdown", folder, nil); err != nil {
		t.Fatal(err)
	}
	laptop.Stands("Back", 1, "device:phone import:export")
	laptop.Decides("Back", 1, "strict")
	phone.Stands("Theirs", 1, "local")
}

// TestRoute09RelayedTextIsItsAuthors: the tablet's fence reaches the laptop by
// way of the phone alone.
func TestRoute09RelayedTextIsItsAuthors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := daemontest.Bubble(t, "laptop", "phone", "tablet")
		w.Pair("phone", "laptop", "tablet")
		w.Cut("laptop", "tablet")
		w.As("tablet").Types("Sums", sums)
		w.As("laptop").Sees("Sums", sums)
		w.As("laptop").Stands("Sums", 1, "device:tablet")
		w.As("phone").Stands("Sums", 1, "device:tablet")
		w.As("tablet").Stands("Sums", 1, "local")
		w.Heal("laptop", "tablet")
		w.Settle()
		w.Same("laptop", "phone", "tablet")
	})
}

// TestRoute15TheFirstSyncKeepsAuthors: a device that comes later is told who
// wrote what, not just the text.
func TestRoute15TheFirstSyncKeepsAuthors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := daemontest.Bubble(t, "laptop", "phone", "tablet")
		w.Pair("laptop", "phone")
		w.As("laptop").Types("Sums", sums)
		w.Settle()
		w.As("phone").Types("Sums", sums+"\n```lua\nreturn 'phone'\n```\n")
		w.Settle()
		w.Pair("phone", "tablet")
		tablet := w.As("tablet")
		tablet.Stands("Sums", 1, "device:laptop")
		tablet.Stands("Sums", 2, "device:phone")
		w.As("laptop").Stands("Sums", 1, "local")
		w.As("laptop").Stands("Sums", 2, "device:phone")
		w.Same("laptop", "phone", "tablet")
	})
}
