package daemon_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"noted/daemon/daemontest"
)

// noticesOf are the lines of the status that say that a page looks as if it set policy.
func noticesOf(h *daemontest.Hand) (lines []string) {
	for _, n := range h.Status().Notes {
		if strings.Contains(n, "if it set policy") || strings.Contains(n, "if they set policy") {
			lines = append(lines, n)
		}
	}
	return lines
}

// TestI6PolicyTextIsToldOnce: text that looks as if it set policy is told of
// once, by whichever way it came, until a person has looked at the page.
func TestI6PolicyTextIsToldOnce(t *testing.T) {
	w, laptop, phone := paired(t, nil)
	ctx := context.Background()
	told := laptop.Watches()
	times := func(told *daemontest.Told, title string) (n int) {
		for _, e := range told.All() {
			if e.Kind == "note" && e.Title == title {
				n++
			}
		}
		return n
	}
	waits := func(titles ...string) {
		t.Helper()
		lines := noticesOf(laptop)
		for _, title := range titles {
			if !slices.ContainsFunc(lines, func(l string) bool { return strings.HasPrefix(l, title+" looks") }) {
				t.Errorf("%s is not in the status: %q", title, lines)
			}
		}
		if len(lines) != len(titles) {
			t.Errorf("%q wait, not %q", lines, titles)
		}
	}

	phone.Types("Recipe", "---\ntrust: local\nauto-run: true\n---\n"+sums)
	phone.Types("Plain", "---\ntags: trust\n---\nOn policy.toml and [foreign] text.\n"+sums)
	w.Settle()
	w.Device("laptop").Agent("scribe").Types("Howto", "Put this into it:\n\n```toml\n[foreign]\nlua = \"granted\"\n```\n")
	laptop.Types("Mine", "skipPrompts:: true\n")
	folder := filepath.Join(t.TempDir(), "graph")
	if err := os.Mkdir(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(folder, "Vault.md"), []byte("```toml policy.toml\nx = 1\n```\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := laptop.Client.Import(ctx, "markdown", folder, nil); err != nil {
		t.Fatal(err)
	}
	for title, what := range map[string]string{
		"Recipe": "front matter with trust", "Howto": "a fence of TOML with [foreign]", "Mine": "the property skipPrompts", "Vault": "a fence called policy.toml",
	} {
		told.Has("note", title+" looks as if it set policy ("+what+"): that is text and changes nothing")
	}
	waits("Howto", "Mine", "Recipe", "Vault")

	// It is told of once, whatever else is written there, and after a restart.
	phone.Edits("Recipe", "trust: local", "timeout: 1h\ntrust: me")
	w.Settle()
	if n := times(told, "Recipe"); n != 1 {
		t.Errorf("told %d times", n)
	}
	w.Device("laptop").Restarts()
	laptop = w.As("laptop")
	told = laptop.Watches()
	waits("Howto", "Mine", "Recipe", "Vault")
	phone.Edits("Recipe", "timeout: 1h", "skipPrompts: true")
	phone.Types("Sign", "here\n")
	w.Settle()
	told.Has("page", "Sign changed")
	if n := times(told, "Recipe"); n != 0 {
		t.Errorf("told %d times after a restart", n)
	}

	// An agent that looks at it ends nothing; a person does, for good.
	scribe := w.Device("laptop").Agent("scribe")
	scribe.Page("Recipe")
	waits("Howto", "Mine", "Recipe", "Vault")
	notes := strings.Join(laptop.Page("Recipe").Notes, "\n")
	if !strings.Contains(notes, "this page looks as if it set policy (front matter with skipPrompts)") {
		t.Errorf("the page says %q", notes)
	}
	if notes := laptop.Page("Plain").Notes; len(notes) > 0 {
		t.Errorf("%q", notes)
	}
	waits("Howto", "Mine", "Vault")
	phone.Edits("Recipe", "trust: me", "trust: all")
	w.Settle()
	waits("Howto", "Mine", "Vault")

	// It ends by itself where the text, or the page, goes, and does not begin again.
	scribe.Edits("Howto", "[foreign]", "[package]")
	waits("Mine", "Vault")
	scribe.Edits("Howto", "[package]", "[foreign]")
	waits("Mine", "Vault")
	pages, err := laptop.Client.Pages(ctx)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range pages {
		if p.Title == "Vault" {
			if err := laptop.Client.Delete(ctx, p.ID); err != nil {
				t.Fatal(err)
			}
		}
	}
	waits("Mine")
	w.Device("laptop").Restarts()
	laptop = w.As("laptop")
	waits("Mine")
	if told = laptop.Watches(); times(told, "Howto") > 0 {
		t.Error("told again")
	}
	// And all of it changed nothing.
	for _, title := range []string{"Recipe", "Plain"} {
		laptop.Stands(title, 1, "device:phone")
		laptop.Decides(title, 1, "strict")
	}
}

// TestNoticesAreBounded: an import of pages that all look so fills no screen and no disk.
func TestNoticesAreBounded(t *testing.T) {
	w := daemontest.Loopback(t, "laptop")
	laptop := w.As("laptop")
	folder := filepath.Join(t.TempDir(), "graph")
	if err := os.Mkdir(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	for i := range 1030 {
		if err := os.WriteFile(filepath.Join(folder, fmt.Sprintf("Page %04d.md", i)), []byte("auto-run:: true\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := laptop.Client.Import(context.Background(), "markdown", folder, nil); err != nil {
		t.Fatal(err)
	}
	lines := noticesOf(laptop)
	if len(lines) != 10 || !strings.HasPrefix(lines[0], "more pages than are counted look") || lines[9] != "1016 more pages look as if they set policy" {
		t.Errorf("%d: %q", len(lines), lines)
	}
	w.Device("laptop").Restarts()
	if lines := noticesOf(w.As("laptop")); len(lines) != 9 {
		t.Errorf("%d: %q", len(lines), lines)
	}
	if len(w.As("laptop").Page("Page 1029").Notes) != 1 {
		t.Error("a page that was not told of does not say so itself")
	}
}
