package exec

import (
	"io"
	"slices"

	"noted/notebook"
)

// language is how fences of one language run in a worker.
type language struct {
	name    string // the canonical one, see trust.Languages
	version string // what runs it: an engine of another version is another engine
	file    string // the engine file that it needs; empty for engines that are a part of noted
	boot    string // the script of ours that the engine file runs
	open    func(*workspace) (engine, error)
	warm    func()   // touches what a fence is going to touch, before the worker is ready; may be nil
	pipes   int      // how many descriptors it may open as pipes, beside those of its worker
	own     []string // where the engine has files of its own, as a guest sees them
}

// workspace is what a worker hands to its language when that makes itself ready.
type workspace struct {
	out    io.Writer // what the fence writes; it goes out at once
	limits notebook.Limits
	dirs   []*dirGrant // directories that the run was granted

	net      *netGrant // reaches the hosts that the run was granted; nil if there are none
	programs *launcher // starts the programs that the run was granted; nil if there are none
}

// engine runs one request, once.
type engine interface {
	run(*request) outcome
}

// staged is an engine that has to be loaded and started before its jail can be
// as tight as it is going to be.
type staged interface {
	engine
	load() error // maps it; nothing of it runs
	boot() error // runs it until it waits for its request
}

// shared is an engine that has memory beside Go's heap.
type shared interface {
	// share is told how much memory may become resident from now on, and returns
	// how much of it is Go's.
	share(free int64) (heap int64)
}

// languages are those that run here.
var languages = []language{luaLanguage, shellLanguage, pythonLanguage, javascriptLanguage, wasmLanguage, queryLanguage}

// languageOf finds a language by its name.
func languageOf(name string) (language, bool) {
	i := slices.IndexFunc(languages, func(l language) bool { return l.name == name })
	if i < 0 {
		return language{}, false
	}
	return languages[i], true
}

// kind is what a worker is started for. It serves no other.
type kind struct {
	language string
	limits   notebook.Limits
}

// Engine names what would run a language, so that an approval is of one engine
// and asks again when it is another; zero where there is none.
func Engine(name string) notebook.Hash {
	l, found := languageOf(name)
	if !found {
		return notebook.Hash{}
	}
	digest := engineDigest(l.file)
	return notebook.Digest("noted/engine/v1", []byte(l.name), []byte(l.version), digest[:], []byte(l.boot))
}
