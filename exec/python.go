package exec

import _ "embed"

//go:embed boot/python.py
var pythonBoot string

// pythonLanguage is CPython 3.12, compiled to WebAssembly.
var pythonLanguage = language{
	name:    "python",
	version: "github.com/tetratelabs/wazero " + wazeroVersion,
	file:    "python",
	boot:    pythonBoot,
	own:     []string{"/usr/local/lib"}, // the library, which is in the engine file
	open: func(w *workspace) (engine, error) {
		return newGuest(w, interpreter{heap: 16 << 20, args: []string{"python", "-I", "-S", "-B", "-X", "utf8", "-c", pythonBoot}})
	},
}
