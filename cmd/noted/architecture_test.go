package main

import (
	"encoding/json"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"io/fs"
	"os"
	osexec "os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// The structure of the house is a test: who may import whom, which vendor has
// which door, what the pure packages do without, and how large a room may be.

const root = "../.."

// siblings are the edges between packages of this module, beside the leaf
// notebook, which everybody may use. Nothing else may be imported.
var siblings = map[string][]string{
	"notebook":          {},
	"trust":             {},
	"crdt":              {"trust"},
	"exec":              {"trust"},
	"store":             {},
	"store/storetest":   {"store"},
	"p2p":               {},
	"p2p/p2ptest":       {"p2p"},
	"pairing":           {},
	"importer":          {},
	"rpc":               {"rpc/notedv1"},
	"rpc/notedv1":       {},
	"mcp":               {},
	"daemon":            {"p2p", "pairing", "store", "importer", "crdt", "exec", "trust"},
	"daemon/daemontest": {"daemon", "p2p", "p2p/p2ptest", "exec", "trust", "crdt", "store"},
	"cmd/noted":         {"rpc", "mcp", "daemon", "exec"},
}

// doors are the only packages that may import a vendor.
var doors = map[string][]string{
	"github.com/yuin/goldmark":               {"notebook"},
	"github.com/fxamacker/cbor":              {"notebook"},
	"golang.org/x/text":                      {"notebook"},
	"github.com/pelletier/go-toml":           {"trust", "cmd/noted"},
	"golang.org/x/crypto":                    {"trust"},
	"github.com/automerge/automerge-go":      {"crdt"},
	"github.com/sergi/go-diff":               {"crdt"},
	"go.etcd.io/bbolt":                       {"store"},
	"github.com/yuin/gopher-lua":             {"exec"},
	"mvdan.cc/sh":                            {"exec"},
	"github.com/tetratelabs/wazero":          {"exec"},
	"github.com/elastic/go-seccomp-bpf":      {"exec"},
	"golang.org/x/sys":                       {"exec", "store", "rpc", "cmd/noted"},
	"github.com/libp2p":                      {"p2p", "p2p/p2ptest"},
	"github.com/multiformats":                {"p2p", "p2p/p2ptest"},
	"github.com/marcopolo/simnet":            {"p2p/p2ptest"},
	"github.com/quic-go/quic-go":             {"p2p/p2ptest"},
	"go.uber.org/fx":                         {"p2p/p2ptest"},
	"connectrpc.com/connect":                 {"rpc", "rpc/notedv1"},
	"google.golang.org/protobuf":             {"rpc", "rpc/notedv1"},
	"golang.org/x/net":                       {"rpc"},
	"github.com/modelcontextprotocol/go-sdk": {"mcp"},
	"github.com/google/jsonschema-go":        {"mcp"},
	"github.com/spf13/cobra":                 {"cmd/noted"},
	"github.com/spf13/pflag":                 {"cmd/noted"},
	"github.com/mdp/qrterminal":              {"cmd/noted"},
	"rsc.io/qr":                              {"cmd/noted"},
	"golang.org/x/term":                      {"cmd/noted"},
	"github.com/adrg/xdg":                    {"cmd/noted"},
	"golang.org/x/sync":                      {"daemon", "p2p"},
}

type listed struct {
	ImportPath string
	Dir        string
	Doc        string
	GoFiles    []string
	CgoFiles   []string
	Imports    []string
}

// packages are the packages of this module that end in the binary or in its
// tests; development programs (scripts, generators) are left out.
func packages(t *testing.T) map[string]listed {
	t.Helper()
	cmd := osexec.Command("go", "list", "-json=ImportPath,Dir,Doc,GoFiles,CgoFiles,Imports", "./...")
	cmd.Dir = root
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]listed{}
	for dec := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p listed
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		name := strings.TrimPrefix(p.ImportPath, "noted/")
		if strings.HasPrefix(name, "scripts/") || strings.HasSuffix(name, "/gen") {
			continue
		}
		all[name] = p
	}
	if len(all) < 5 {
		t.Fatalf("only %d packages found under %s", len(all), root)
	}
	return all
}

func TestImportEdges(t *testing.T) {
	for name, p := range packages(t) {
		allowed, known := siblings[name]
		if !known {
			t.Errorf("package %s is not in the plan of the house: give it a place in siblings or its code another home", name)
		}
		for _, imp := range p.Imports {
			if own, ok := strings.CutPrefix(imp, "noted/"); ok {
				if own != "notebook" && !slices.Contains(allowed, own) {
					t.Errorf("%s imports %s, which is not an edge of the house", name, own)
				}
				continue
			}
			if !strings.Contains(strings.SplitN(imp, "/", 2)[0], ".") {
				continue // standard library
			}
			if door := doorOf(imp); door == nil {
				t.Errorf("%s imports %s, a vendor without a door", name, imp)
			} else if !slices.Contains(door, name) {
				t.Errorf("%s imports %s, whose doors are %v", name, imp, door)
			}
		}
	}
}

func doorOf(imp string) []string {
	for vendor, door := range doors {
		if imp == vendor || strings.HasPrefix(imp, vendor+"/") {
			return door
		}
	}
	return nil
}

func TestEveryPackageSaysWhatItDoes(t *testing.T) {
	for name, p := range packages(t) {
		first, _, _ := strings.Cut(p.Doc, "\n")
		if len(first) < 20 || !strings.HasSuffix(strings.TrimSpace(first), ".") {
			t.Errorf("%s: the package comment begins with %q, not with a sentence", name, first)
		}
	}
}

// Hard thinking has no goroutine and no context: what notebook, trust and crdt
// do can be read from top to bottom.
func TestPurePackages(t *testing.T) {
	all := packages(t)
	for _, name := range []string{"notebook", "trust", "crdt"} {
		p := all[name]
		if p.Dir == "" {
			t.Fatalf("package %s is gone", name)
		}
		if slices.Contains(p.Imports, "context") {
			t.Errorf("%s imports context", name)
		}
		for _, file := range slices.Concat(p.GoFiles, p.CgoFiles) {
			set := token.NewFileSet()
			parsed, err := parser.ParseFile(set, filepath.Join(p.Dir, file), nil, 0)
			if err != nil {
				t.Fatal(err)
			}
			ast.Inspect(parsed, func(n ast.Node) bool {
				if g, ok := n.(*ast.GoStmt); ok {
					t.Errorf("%s starts a goroutine", set.Position(g.Pos()))
				}
				return true
			})
		}
	}
}

func TestRoomsStaySmall(t *testing.T) {
	const most = 600
	forbidden := []string{"util", "utils", "common", "helpers", "pkg", "config"}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if path != root && strings.HasPrefix(d.Name(), ".") {
				return filepath.SkipDir
			}
			if slices.Contains(forbidden, d.Name()) {
				t.Errorf("%s: a folder is named after what it holds", path)
			}
			return nil
		}
		if !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") ||
			strings.HasSuffix(path, ".pb.go") || strings.HasSuffix(path, ".connect.go") {
			return nil
		}
		b, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if n := strings.Count(string(b), "\n"); n > most {
			t.Errorf("%s has %d lines: a file over %d is a room with two purposes", path, n, most)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
