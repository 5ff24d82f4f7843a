package exec

import (
	"path"
	"strings"

	"noted/notebook"
	"noted/trust"
)

// grants are what a run may reach beside the values it is sent: each opens a
// part of the jail, for this run alone.
type grants struct {
	dirs     []pinnedDir
	programs []pinnedProgram
	hosts    []string // HOST:PORT
	pins     []field  // what Resolve said of each, by capability

	sent, received int64 // bytes to and from hosts, once the run is over
}

// pinnedDir is a directory as [Resolve] found it.
type pinnedDir struct {
	name  string // as the fence names it
	real  string // without links
	id    identity
	write bool
}

// pinnedProgram is a program as [Resolve] found it.
type pinnedProgram struct {
	name   string
	real   string
	digest notebook.Hash
}

// identity is a file for the kernel, whatever it is called.
type identity struct{ device, inode uint64 }

func (g *grants) empty() bool { return len(g.dirs)+len(g.programs)+len(g.hosts) == 0 }

// add takes one capability with the value that Resolve made of it, and reports
// whether it is one of these.
func (g *grants) add(in trust.Input) (bool, error) {
	c, s := in.Capability, scan{b: in.Value}
	switch c.Kind() {
	case notebook.CapDir:
		d := pinnedDir{name: c.Path(), real: s.text(), id: identity{s.wide(), s.wide()}, write: c.Writable()}
		if err := s.end(); err != nil || !absolute(d.real) {
			return true, unresolved(c)
		}
		g.dirs = append(g.dirs, d)
	case notebook.CapProgram:
		p := pinnedProgram{name: c.Path(), real: s.text()}
		n := copy(p.digest[:], s.text())
		if err := s.end(); err != nil || !absolute(p.real) || n != len(p.digest) {
			return true, unresolved(c)
		}
		g.programs = append(g.programs, p)
	case notebook.CapNet:
		if string(in.Value) != c.Address() {
			return true, unresolved(c)
		}
		g.hosts = append(g.hosts, c.Address())
	default:
		return false, nil
	}
	g.pins = append(g.pins, field{string(c), string(in.Value)})
	return true, nil
}

func unresolved(c notebook.Capability) error {
	return notebook.Errorf(notebook.CodeFailed, "%s was granted without saying what it is on this device", c)
}

// absolute reports whether p is a path from the root in its shortest form, and not the root.
func absolute(p string) bool { return path.IsAbs(p) && path.Clean(p) == p && p != "/" }

// beside refuses a directory at a path where the engine of a language has files of
// its own: a guest could not tell which of the two is meant.
func (g *grants) beside(language string) error {
	l, _ := languageOf(language)
	for _, d := range g.dirs {
		for _, own := range l.own {
			if within(own, d.name) || within(d.name, own) {
				return notebook.Errorf(notebook.CodeRefused, "%s cannot be handed to a fence in %s, which has files of its own at %s", d.name, language, own).
					With("name the directory by another path, a symbolic link for example")
			}
		}
	}
	return nil
}

// within reports whether p is dir or lies in it, as paths go.
func within(dir, p string) bool { return p == dir || strings.HasPrefix(p, dir+"/") }

func (d *pinnedDir) pin() []byte {
	b := appendText(nil, d.real)
	return appendWide(appendWide(b, d.id.device), d.id.inode)
}

func (p *pinnedProgram) pin() []byte { return appendText(appendText(nil, p.real), string(p.digest[:])) }

// kinds names what g holds, for a sentence about it.
func (g *grants) kinds() string {
	var kinds []string
	for _, k := range []struct {
		name string
		n    int
	}{{"a directory", len(g.dirs)}, {"a program", len(g.programs)}, {"the network", len(g.hosts)}} {
		if k.n > 0 {
			kinds = append(kinds, k.name)
		}
	}
	return strings.Join(kinds, " and ")
}
