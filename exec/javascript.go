package exec

import (
	_ "embed"
	"fmt"
	"io"
	"io/fs"
	"strings"
	"time"
)

//go:embed boot/javascript.js
var javascriptBoot string

// javascriptLanguage is QuickJS, compiled to WebAssembly.
var javascriptLanguage = language{
	name:    "javascript",
	version: "github.com/tetratelabs/wazero " + wazeroVersion,
	file:    "quickjs",
	boot:    javascriptBoot,
	own:     []string{bootScript, "/" + chunk},
	open: func(w *workspace) (engine, error) {
		return newGuest(w, interpreter{
			args:  []string{"quickjs", bootScript},
			heap:  48 << 20,
			files: func(g *guest) fs.FS { return scripts{g} },
			check: checkImports,
		})
	},
}

// bootScript is where QuickJS finds our script.
const bootScript = "/boot"

// scripts are the files that QuickJS can open: our script, which loads the parts
// by their names, and these, once they are there.
type scripts struct{ guest *guest }

// Open implements [fs.FS].
func (s scripts) Open(name string) (fs.File, error) {
	switch name {
	case ".":
		return &scriptFile{name: name, dir: true}, nil
	case "boot":
		return newScriptFile(name, javascriptBoot), nil
	}
	if r := s.guest.request; r != nil {
		for _, p := range r.before {
			if p.name == name {
				return newScriptFile(name, p.value), nil
			}
		}
		if name == chunk {
			return newScriptFile(name, r.source), nil
		}
	}
	return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
}

// scriptFile is a file of scripts, and what is known of it.
type scriptFile struct {
	*strings.Reader
	name string
	dir  bool
}

func newScriptFile(name, text string) *scriptFile {
	return &scriptFile{Reader: strings.NewReader(text), name: name}
}

func (f *scriptFile) Stat() (fs.FileInfo, error) { return f, nil }
func (f *scriptFile) Close() error               { return nil }
func (f *scriptFile) Name() string               { return f.name }
func (f *scriptFile) IsDir() bool                { return f.dir }
func (f *scriptFile) ModTime() time.Time         { return time.Time{} }
func (f *scriptFile) Sys() any                   { return nil }

func (f *scriptFile) Size() int64 {
	if f.Reader == nil {
		return 0
	}
	return f.Reader.Size()
}

func (f *scriptFile) Mode() fs.FileMode {
	if f.dir {
		return fs.ModeDir | 0o500
	}
	return 0o400
}

// Read implements [io.Reader].
func (f *scriptFile) Read(p []byte) (int, error) {
	if f.Reader == nil {
		return 0, io.EOF
	}
	return f.Reader.Read(p)
}

// checkImports refuses what could import a module: the modules of the engine
// itself cannot be taken away from a script that may say import(). There is no
// eval and no function constructor, so what is not in the text cannot come to be.
// It takes no notice of where strings and comments are, and rather refuses too
// much: "import (" in a string too.
func checkImports(r *request) error {
	for _, p := range append(r.before[:len(r.before):len(r.before)], field{chunk, r.source}) {
		if line := importLine(p.value); line > 0 {
			return fmt.Errorf("%s:%d: SyntaxError: there is nothing to import here, so import must not be followed by ( or a comment", p.name, line)
		}
	}
	return nil
}

// importLine is the first line in which the word import may be the beginning of
// an import, 0 if there is none.
func importLine(source string) int {
	const word = "import"
	for at := 0; ; {
		i := strings.Index(source[at:], word)
		if i < 0 {
			return 0
		}
		i += at
		at = i + len(word)
		if i > 0 && isNamePart(source[i-1]) {
			continue // the end of another name
		}
		// Whatever may be between the word and what it means is passed over, all of
		// it that is not ASCII included.
		rest := strings.TrimLeftFunc(source[at:], func(r rune) bool { return r <= ' ' || r >= 0x7f })
		for _, begin := range []string{"(", "/*", "//", "<!--", "-->"} {
			if strings.HasPrefix(rest, begin) {
				return 1 + strings.Count(source[:i], "\n")
			}
		}
	}
}

// isNamePart reports whether c, before a word, makes it the end of a longer name.
// A digit may end a number instead.
func isNamePart(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || c == '_' || c == '$'
}
