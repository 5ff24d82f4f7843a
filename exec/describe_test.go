package exec

import (
	"testing"

	"noted/notebook"
)

func TestDescribe(t *testing.T) {
	dir := pinnedDir{name: "/a", real: "/mnt/a", id: identity{device: 7, inode: 42}}
	program := pinnedProgram{name: "/bin/x", real: "/usr/bin/x", digest: notebook.Hash{0xab}}
	for _, c := range []struct {
		c    notebook.Capability
		pin  []byte
		want string
	}{
		{"dir:/a", dir.pin(), "/mnt/a, inode 42 of device 7"},
		{"dir:/a:rw", dir.pin(), "/mnt/a, inode 42 of device 7"},
		{"program:/bin/x", program.pin(), "/usr/bin/x with SHA-256 " + notebook.Hash{0xab}.String()},
		{"net:a.b:443", []byte("a.b:443"), ""},
		{"dir:/a", nil, ""},
		{"dir:/a", append(dir.pin(), 0), ""},
		{"program:/bin/x", dir.pin(), ""},
		{"clock", []byte("1"), ""},
	} {
		if got := Describe(c.c, c.pin); got != c.want {
			t.Errorf("%s: %q, want %q", c.c, got, c.want)
		}
	}
}
