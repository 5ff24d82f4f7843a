// Package crdt keeps pages: the gate that every change passes before anything else sees it, the shadow that knows the author of every character, own fences, and the automerge document that makes local changes.
//
// A change from a peer is parsed by a strict decoder and checked against the
// shadow, in Go, before automerge may read it, because automerge ends the whole
// process on inputs of a few bytes. What is read (text, fences, authors) is read
// from the shadow; automerge is loaded only where a page is edited. No goroutine,
// no context, no clock.
package crdt
