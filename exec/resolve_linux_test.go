package exec

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"noted/notebook"
)

// TestWhatIsNotGiven: the directories that no fence gets, by whatever name.
func TestWhatIsNotGiven(t *testing.T) {
	at := tree(t, map[string]string{
		"home/data/noted.db": "", "home/data/engines/x": "", "home/notes/a": "", "home/notes/deep/b": "",
		"link": "-> home/data", "home/notes/up": "-> ..", "home/loop": "-> loop", "home/notebook/x": "",
	})
	own := []string{at + "/home/data", at + "/home/cache/noted", at + "/home/config"}
	if err := os.Symlink(at+"/home/data/engines", at+"/home/config"); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(at+"/mounted", 0o755); err != nil {
		t.Fatal(err)
	}
	type dir struct {
		path string
		code notebook.Code // empty: it is given
	}
	all := []dir{
		{at + "/home/notes", ""},
		{at + "/home/notes/deep", ""},
		{at + "/home/notebook", ""},
		{at + "/home/data", notebook.CodeRefused},
		{at + "/home/data/engines", notebook.CodeRefused},
		{at + "/home", notebook.CodeRefused},
		{at, notebook.CodeRefused},
		{at + "/link", notebook.CodeRefused},
		{at + "/link/engines", notebook.CodeRefused},
		{at + "/home/notes/up", notebook.CodeRefused},
		{at + "/home/loop", notebook.CodeRefused},
		{at + "/home/notes/a", notebook.CodeRefused},
		{at + "/home/none", notebook.CodeNotFound},
		{"/", notebook.CodeInvalid},
		{"/proc", notebook.CodeRefused},
		{"/proc/self", notebook.CodeRefused},
		{"/proc/self/root" + at + "/home/notes", ""},
		{"/proc/self/root" + at + "/home/data", notebook.CodeRefused},
		{"/proc/self/fd", notebook.CodeRefused},
		{"/sys", notebook.CodeRefused},
		{"/sys/kernel", notebook.CodeRefused},
		{"/dev", notebook.CodeRefused},
		{"/dev/shm", notebook.CodeRefused},
	}
	// A second name of a directory that is no link: by device and inode only.
	for _, m := range []struct {
		from, to string
		dirs     []dir
	}{
		{at + "/home/data", at + "/mounted", []dir{{at + "/mounted", notebook.CodeRefused}, {at + "/mounted/engines", notebook.CodeRefused}}},
		{at + "/home", at + "/mounted", []dir{{at + "/mounted", notebook.CodeRefused}, {at + "/mounted/notes", ""}}},
		{at + "/home/data/engines", at + "/home/notes/deep", []dir{{at + "/home/notes/deep", notebook.CodeRefused}, {at + "/home/notes", notebook.CodeRefused}}},
		{"/proc", at + "/home/notes/deep", []dir{{at + "/home/notes/deep", notebook.CodeRefused}, {at + "/home/notes", notebook.CodeRefused}}},
	} {
		if err := unix.Mount(m.from, m.to, "", unix.MS_BIND, ""); err != nil {
			t.Logf("this user may not mount, so a second name is not tried: %v", err)
			break
		}
		for _, d := range m.dirs {
			checkGiven(t, d.path, own, d.code)
		}
		if err := unix.Unmount(m.to, unix.MNT_DETACH); err != nil {
			t.Fatal(err)
		}
	}
	for _, d := range all {
		checkGiven(t, d.path, own, d.code)
	}
}

func checkGiven(t *testing.T, path string, own []string, code notebook.Code) {
	t.Helper()
	_, err := Resolve(notebook.Dir(path, false), own)
	var e *notebook.Error
	if code == "" && err != nil || code != "" && (!errors.As(err, &e) || e.Code != code) {
		t.Errorf("%s: %v, want %q", path, err, code)
	}
}

// TestWhatIsPinned: the same directory by another name is the same, another one
// in its place is not; a program is its bytes.
func TestWhatIsPinned(t *testing.T) {
	at := tree(t, map[string]string{"a/x": "", "b/x": "", "l": "-> a", "bin/p": "#!one", "bin/plain": "x"})
	pin := func(c notebook.Capability) []byte {
		b, err := Resolve(c, []string{filepath.Join(at, "own")})
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	dir, link := notebook.Dir(at+"/a", false), notebook.Dir(at+"/l", false)
	first := pin(dir)
	if !bytes.Equal(first, pin(link)) || bytes.Equal(first, pin(notebook.Dir(at+"/b", false))) {
		t.Error("a link is not what it leads to, or two directories are one")
	}
	if err := errors.Join(os.Rename(at+"/a", at+"/c"), os.Rename(at+"/b", at+"/a")); err != nil {
		t.Fatal(err)
	}
	if bytes.Equal(first, pin(dir)) {
		t.Error("another directory in its place is the same")
	}

	program := notebook.Program(at + "/bin/p")
	var e *notebook.Error
	if _, err := Resolve(program, nil); !errors.As(err, &e) || e.Code != notebook.CodeRefused {
		t.Errorf("a file that nobody may execute: %v", err)
	}
	if err := os.Chmod(at+"/bin/p", 0o755); err != nil {
		t.Fatal(err)
	}
	first = pin(program)
	if !bytes.Equal(first, pin(program)) {
		t.Error("one program is two")
	}
	if err := os.WriteFile(at+"/bin/p", []byte("#!two"), 0o755); err != nil {
		t.Fatal(err)
	}
	if bytes.Equal(first, pin(program)) {
		t.Error("other bytes are the same program")
	}
	for path, own := range map[string]string{at + "/bin": at, at + "/bin/p": at + "/bin", "/proc/self/exe": "/nowhere"} {
		if _, err := Resolve(notebook.Program(path), []string{own}); path != "/proc/self/exe" && (!errors.As(err, &e) || e.Code != notebook.CodeRefused) {
			t.Errorf("%s: %v", path, err)
		} else if path == "/proc/self/exe" && err != nil {
			t.Errorf("a link to a program: %v", err)
		}
	}
	large, err := os.OpenFile(at+"/bin/large", os.O_CREATE|os.O_WRONLY, 0o755)
	if err == nil {
		err = errors.Join(large.Truncate(MaxProgram+1), large.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Resolve(notebook.Program(at+"/bin/large"), nil); !errors.As(err, &e) || e.Code != notebook.CodeRefused {
		t.Errorf("a program that is too large: %v", err)
	}
	if b := pin("net:example.org:443"); string(b) != "example.org:443" {
		t.Errorf("a host: %q", b)
	}
	for _, c := range []notebook.Capability{notebook.CapPage, "", "dir:relative", "program:/", "net:x"} {
		if _, err := Resolve(c, nil); err == nil {
			t.Errorf("%q is resolved", c)
		}
	}
}
