package importer

import (
	"errors"
	"fmt"
	"maps"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
	"unicode/utf8"

	"pgregory.net/rapid"

	"noted/notebook"
)

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// write makes the files, with the folders they need.
func write(t testing.TB, dir string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		path := filepath.Join(dir, name)
		must(t, os.MkdirAll(filepath.Dir(path), 0o700))
		must(t, os.WriteFile(path, []byte(text), 0o600))
	}
}

// run imports dir; it fails where that takes forever.
func run(t testing.TB, dir string) (map[string]Page, notebook.ImportReport) {
	t.Helper()
	root, err := os.OpenRoot(dir)
	must(t, err)
	defer root.Close()
	im := Markdown(root, Label(dir))
	pages := map[string]Page{}
	done := make(chan error, 1)
	go func() {
		for p, err := range im.Pages() {
			if err != nil {
				done <- err
				return
			}
			pages[p.Path] = p
		}
		done <- nil
	}()
	select {
	case err := <-done:
		must(t, err)
	case <-time.After(30 * time.Second):
		t.Fatal("the import hangs")
	}
	return pages, im.Report()
}

// lines are a report's lines as "path: reason", with "+" before what was taken.
func lines(r notebook.ImportReport) (all []string) {
	for _, l := range r.Lines {
		taken := ""
		if l.Taken {
			taken = "+"
		}
		all = append(all, taken+l.Path+": "+l.Reason)
	}
	return all
}

func TestAFolderBecomesPages(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, map[string]string{
		"one.md":                 "# One\n\n```lua\nprint(1)\n```\n",
		"journals/2026-11-30.md": "- a list\n  ```sh\n  ls\n  ```\n  ```\n  open",
		"a/b/c.Markdown":         "deep",
		"empty.md":               "",
		"windows.md":             "\ufeffa line\r\nanother\r\n",
		"dots.in.name.md":        "dots",
	})
	pages, report := run(t, dir)
	want := map[string]string{
		"one": "# One\n\n```lua\nprint(1)\n```\n", "journals/2026-11-30": "- a list\n  ```sh\n  ls\n  ```\n  ```\n  open",
		"a/b/c": "deep", "empty": "", "windows": "a line\nanother\n", "dots.in.name": "dots",
	}
	got := map[string]string{}
	for _, p := range pages {
		got[p.Title] = p.Body
	}
	if !maps.Equal(got, want) {
		t.Errorf("\n got %q\nwant %q", got, want)
	}
	size := int64(0)
	for _, body := range want {
		size += int64(len(body))
	}
	if report.Source != Label(dir) || report.Files != 6 || report.Pages != 6 || report.Fences != 3 || report.Bytes != size || report.Lines != nil {
		t.Errorf("the report is %+v", report)
	}
}

func TestWhatIsNotTakenSaysWhy(t *testing.T) {
	dir := t.TempDir()
	outside := filepath.Join(t.TempDir(), "secret.md")
	must(t, os.WriteFile(outside, []byte("SECRET"), 0o600))
	deep := strings.Repeat("d/", maxDepth+1)
	write(t, dir, map[string]string{
		"good.md":                               "good",
		"latin1.md":                             "caf\xe9 \x00 \x1b[31m",
		"utf16.md":                              "\xff\xfea\x00",
		"exact.md":                              strings.Repeat("x", notebook.MaxBody),
		"crlf.md":                               strings.Repeat("\r\n", notebook.MaxBody),
		"large.md":                              strings.Repeat("x", notebook.MaxBody+1),
		"grows.md":                              strings.Repeat("\xff", notebook.MaxBody/2), // each byte becomes three
		"nested.md":                             strings.Repeat("> ", 5000) + "\n```lua\n```\n",
		"Same.md":                               "first",
		"same.md":                               "second",
		"new\nline.md":                          "a",
		"esc\x1b[2J.md":                         "b",
		"bidi\u202egpj.md":                      "c",
		"inv\xffalid.md":                        "d",
		" .md":                                  "blank",
		".hidden.md":                            "h",
		".git/config.md":                        "g",
		".obsidian/app.md":                      "o",
		"logseq/config.edn":                     "{}",
		"logseq/bak/old.md":                     "l",
		"notes/logseq/own.md":                   "a folder of that name elsewhere is a folder",
		"assets/a.png":                          "p",
		"assets/b.PNG":                          "p",
		"LICENSE":                               "l",
		deep + "x.md":                           "x",
		strings.TrimPrefix(deep, "d/") + "y.md": "y",
	})
	long := strings.Repeat(strings.Repeat("n", 200)+"/", 3) + "long.md"
	write(t, dir, map[string]string{long: "long"})
	must(t, os.Truncate(filepath.Join(dir, "large.md"), 100<<20))
	must(t, os.Symlink(outside, filepath.Join(dir, "link.md")))
	must(t, os.Symlink("good.md", filepath.Join(dir, "inside.md")))
	must(t, os.Symlink(filepath.Dir(outside), filepath.Join(dir, "linked")))
	must(t, os.Symlink("/dev/zero", filepath.Join(dir, "zero.md")))
	must(t, syscall.Mkfifo(filepath.Join(dir, "pipe.md"), 0o600))
	socket, err := net.Listen("unix", filepath.Join(dir, "sock.md"))
	must(t, err)
	defer socket.Close()

	pages, report := run(t, dir)
	want := []string{
		"good.md", "latin1.md", "exact.md", "crlf.md", "nested.md", "Same.md", "new\nline.md", "esc\x1b[2J.md", "bidi\u202egpj.md",
		"inv\xffalid.md", "notes/logseq/own.md", strings.TrimPrefix(deep, "d/") + "y.md",
	}
	slices.Sort(want)
	if got := slices.Sorted(maps.Keys(pages)); !slices.Equal(got, want) {
		t.Errorf("taken were\n%q, not\n%q", got, want)
	}
	for path, title := range map[string]string{
		"new\nline.md": "new\ufffdline", "esc\x1b[2J.md": "esc\ufffd[2J", "bidi\u202egpj.md": "bidi\ufffdgpj", "inv\xffalid.md": "inv\ufffdalid",
	} {
		if got := pages[path].Title; got != title {
			t.Errorf("%q has the title %q, not %q", path, got, title)
		}
	}
	if body := pages["latin1.md"].Body; body != "caf\ufffd \ufffd \ufffd[31m" {
		t.Errorf("the body in Latin-1 became %q", body)
	}
	got := strings.Join(lines(report), "\n")
	for _, line := range []string{
		"+latin1.md: it holds characters or bytes that a page cannot; they became � (3 times)",
		"utf16.md: it is UTF-16; convert",
		"large.md: 104857600 bytes are more than",
		"grows.md: a page of 1572864 bytes is larger",
		"+nested.md: its fences are not known, so none of them runs",
		"same.md: another file was taken with the title same",
		"+new\\u{a}line.md: its name holds what a title cannot; that became � (1 times)",
		"+esc\\u{1b}[2J.md: its name holds what a title cannot; that became � (1 times)",
		"+bidi\\u{202e}gpj.md: its name holds what a title cannot; that became � (1 times)",
		"+inv\\x{ff}alid.md: its name holds what a title cannot; that became � (1 times)",
		" .md: its name cannot be a title: a title cannot be empty",
		".git: a hidden folder",
		".obsidian: a hidden folder",
		"logseq: Logseq's own settings",
		"link.md: a symbolic link; links are not followed",
		"inside.md: a symbolic link",
		"linked: a symbolic link",
		"zero.md: a symbolic link",
		"pipe.md: a named pipe, not a file",
		"sock.md: a socket, not a file",
		strings.TrimSuffix(deep, "/") + ": nested more than 32 folders deep",
		"long.md: its name cannot be a title",
		"*.png: 2 files not markdown",
		"*: 1 file without an ending",
		".*: 1 file hidden",
	} {
		if path, why, _ := strings.Cut(line, ": "); !slices.ContainsFunc(lines(report), func(l string) bool {
			return strings.HasPrefix(l, line) || path == "long.md" && strings.Contains(l, ": "+why)
		}) {
			t.Errorf("no line %q in\n%s", line, got)
		}
	}
	if strings.Contains(got, "SECRET") || strings.ContainsAny(got, "\x1b\u202e") || !utf8.ValidString(got) {
		t.Errorf("the report shows what it should not:\n%q", got)
	}
	if report.Files != 12+16+4 || report.Pages != 12 { // taken, with lines of their own, counted in the last four lines
		t.Errorf("%d files, %d pages:\n%s", report.Files, report.Pages, got)
	}
}

// Another process may exchange what a name stands for between any two looks.
func TestWhatIsSwappedUnderwayIsNotFollowed(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, map[string]string{"secret.txt": "SECRET", "good": "good"})
	must(t, syscall.Mkfifo(filepath.Join(dir, "pipe"), 0o600))
	root, err := os.OpenRoot(dir)
	must(t, err)
	defer root.Close()
	im := Markdown(root, "x")

	stop, swapper := make(chan bool), make(chan error, 1)
	go func() {
		for n := 0; ; n++ {
			select {
			case <-stop:
				swapper <- nil
				return
			default:
			}
			next := filepath.Join(dir, "next")
			err := errors.Join([]func() error{
				func() error { return os.Link(filepath.Join(dir, "good"), next) },
				func() error { return os.Symlink("secret.txt", next) },
				func() error { return os.Link(filepath.Join(dir, "good"), next) },
				func() error { return os.Link(filepath.Join(dir, "pipe"), next) },
			}[n%4](), os.Rename(next, filepath.Join(dir, "page.md")))
			if err != nil {
				swapper <- err
				return
			}
			_ = os.Remove(next) // renaming a hard link onto its other name does nothing
		}
	}()
	seen := map[string]int{}
	done := make(chan bool)
	go func() {
		defer close(done)
		const caught = "it was replaced while it was read"
		for start := time.Now(); time.Since(start) < time.Second || seen[caught] == 0 && time.Since(start) < 20*time.Second; {
			text, err := im.read("page.md")
			if err != nil {
				text = err.Error()
			}
			seen[text]++
			runtime.Gosched()
		}
	}()
	select {
	case <-done:
	case <-time.After(30 * time.Second):
		t.Fatalf("reading hangs")
	}
	close(stop)
	must(t, <-swapper)
	if seen["SECRET"] > 0 {
		t.Errorf("a link was followed: %v", seen)
	}
	if seen["good"] == 0 || seen["it was replaced while it was read"] == 0 {
		t.Errorf("the race was not run: %v", seen)
	}
}

// endless gives more than any file may have, and notices who takes it.
type endless struct{ taken int }

func (e *endless) Read(p []byte) (int, error) {
	if e.taken += len(p); e.taken > 2*maxFile {
		return 0, errors.New("nobody stopped")
	}
	return len(p), nil
}

func TestAFileWithMoreThanItsSizeIsCutOff(t *testing.T) {
	if text, err := readText(&endless{}, 0); err == nil || !strings.Contains(err.Error(), "more than the") {
		t.Errorf("%d bytes were read: %v", len(text), err)
	}
	if text, err := readText(strings.NewReader("page"), 0); text != "page" || err != nil {
		t.Errorf("an honest file became %q, %v", text, err)
	}
}

func TestTheNumberOfFilesIsBounded(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, map[string]string{"a.md": "", "sub/b.md": "", "sub/c.md": "", "z.md": ""})
	root, err := os.OpenRoot(dir)
	must(t, err)
	defer root.Close()
	im := Markdown(root, "x")
	im.looked = maxFiles - 3 // as if that many had been seen
	var got []string
	for p := range im.Pages() {
		got = append(got, p.Path)
	}
	if want := []string{"a.md", "sub/b.md"}; !slices.Equal(got, want) {
		t.Errorf("taken were %v, not %v", got, want)
	}
	if l := lines(im.Report()); len(l) != 1 || !strings.HasPrefix(l[0], "sub: more than 100000 files") {
		t.Errorf("the report says %q", l)
	}
}

func TestTheReportIsBounded(t *testing.T) {
	var b books
	for i := range maxLines + 7 {
		b.left(strings.Repeat("é", 1000)+fmt.Sprint(i), "a reason")
	}
	for i := range 3 * maxKinds {
		b.other(fmt.Sprintf(".x%d", i))
	}
	r := b.report()
	if len(r.Lines) != maxLines+1+maxKinds+1 || r.Files != maxLines+7+3*maxKinds {
		t.Errorf("%d lines for %d files", len(r.Lines), r.Files)
	}
	if r.Lines[maxLines].Reason != "7 more lines like these" {
		t.Errorf("the line after the last is %q", r.Lines[maxLines].Reason)
	}
	if p := r.Lines[0].Path; len(p) > maxPath+3 || !strings.HasSuffix(p, "é…") {
		t.Errorf("a path of %d bytes: %q", len(p), p)
	}
	if last := r.Lines[len(r.Lines)-1]; !strings.Contains(fmt.Sprint(r.Lines), fmt.Sprintf("{*.* false %d files not markdown", 2*maxKinds)) {
		t.Errorf("the endings over the bound are not counted; the last line is %v", last)
	}
}

func TestAPageThatDidNotLandIsLeft(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, map[string]string{"a.md": "```lua\n```\n", "b.md": "```lua\n```\n```sh\n```\n"})
	root, err := os.OpenRoot(dir)
	must(t, err)
	defer root.Close()
	im := Markdown(root, "x")
	for p := range im.Pages() {
		if p.Path == "a.md" {
			im.Leave(p, "a page has this title")
		}
	}
	r := im.Report()
	if r.Files != 2 || r.Pages != 1 || r.Fences != 2 || r.Bytes != 21 || fmt.Sprint(lines(r)) != "[a.md: a page has this title]" {
		t.Errorf("the report is %+v", r)
	}
}

func TestTheLoopMayEndEarly(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, map[string]string{"a.md": "", "d/b.md": "", "d/c.md": "", "e.md": ""})
	root, err := os.OpenRoot(dir)
	must(t, err)
	defer root.Close()
	im := Markdown(root, "x")
	for p := range im.Pages() {
		if p.Path == "d/b.md" {
			break
		}
	}
	if r := im.Report(); r.Files != 2 || r.Pages != 2 {
		t.Errorf("the report is %+v", r)
	}
}

func TestAFolderThatCannotBeReadIsAnError(t *testing.T) {
	dir := t.TempDir()
	root, err := os.OpenRoot(dir)
	must(t, err)
	must(t, root.Close())
	n := 0
	for _, err := range Markdown(root, "x").Pages() {
		if n++; err == nil {
			t.Error("a closed folder gave a page")
		}
	}
	if n != 1 {
		t.Errorf("%d errors", n)
	}
}

func TestLabel(t *testing.T) {
	for dir, want := range map[string]string{
		"/home/ada/Notes":              "Notes",
		"/home/ada/My Notes/":          "My-Notes",
		"a device:laptop":              "a-device:laptop",
		"x\u202ey\n\xffz":              "x\ufffdy\ufffd\ufffdz",
		"/":                            "folder",
		"..":                           "folder",
		"\u2003":                       "folder",
		strings.Repeat("é", 100):       strings.Repeat("é", notebook.MaxLabel/2),
		strings.Repeat("x", 94) + "é€": strings.Repeat("x", 94) + "é",
	} {
		got := Label(dir)
		if got != want {
			t.Errorf("Label(%q) = %q, not %q", dir, got, want)
		}
		if err := notebook.CheckLabel(got); err != nil {
			t.Errorf("Label(%q): %v", dir, err)
		}
	}
}

// Whatever a folder holds, each thing in it is a page or has its line.
func TestTheBooksBalance(t *testing.T) {
	base := t.TempDir()
	n := 0
	rapid.Check(t, func(rt *rapid.T) {
		n++
		dir := filepath.Join(base, fmt.Sprint(n))
		must(t, os.Mkdir(dir, 0o700))
		names := rapid.SliceOfNDistinct(rapid.StringMatching(`((a|B|\.h)/){0,2}(a|A|b|\.c|\x{202e}|\x01)\.(md|MD|png|x)`), 1, 15, rapid.ID[string]).Draw(rt, "names")
		var all []string
		for _, name := range names {
			path := filepath.Join(dir, name)
			must(t, os.MkdirAll(filepath.Dir(path), 0o700))
			switch rapid.IntRange(0, 5).Draw(rt, "kind") {
			case 0:
				must(t, os.Symlink("elsewhere", path))
			case 1:
				must(t, syscall.Mkfifo(path, 0o600))
			default:
				body := rapid.SampledFrom([]string{"", "text", "\xff", "```lua\n```\n", strings.Repeat("x", notebook.MaxBody+1)}).Draw(rt, "body")
				must(t, os.WriteFile(path, []byte(body), 0o600))
			}
			all = append(all, name)
		}
		pages, r := run(t, dir)

		left, counted, covered := map[string]bool{}, 0, 0
		for _, l := range r.Lines {
			if strings.HasPrefix(l.Path, "*") || l.Path == ".*" {
				k := 0
				if _, err := fmt.Sscanf(l.Reason, "%d file", &k); err != nil {
					rt.Fatal(err)
				}
				counted += k
			} else if !l.Taken {
				left[l.Path] = true
			}
		}
		for _, name := range all { // a page, or left, or in a folder that was left, or counted
			_, taken := pages[name]
			out := left[show(name)] || left[show(filepath.Dir(name))] || left[show(filepath.Dir(filepath.Dir(name)))]
			if taken && left[show(name)] {
				rt.Fatalf("%q was taken and left", name)
			}
			if !taken && !out {
				covered++
			}
		}
		if covered != counted || r.Pages != len(pages) || r.Files != len(pages)+len(left)+counted {
			rt.Fatalf("%d files: %d pages, %d with a line, %d counted, %d without a line\n%q\n%q", r.Files, len(pages), len(left), counted, covered, all, lines(r))
		}
		titles := map[string]bool{}
		for _, p := range pages {
			key := notebook.TitleKey(p.Title)
			if err := errors.Join(notebook.CheckTitle(p.Title), notebook.CheckBody(p.Body)); err != nil || titles[key] {
				rt.Fatalf("page %q: twice %v, %v", p.Title, titles[key], err)
			}
			titles[key] = true
		}
		must(t, os.RemoveAll(dir))
	})
}
