// Package notebook holds the words and values of the domain: authors, pages, fences, entries and results, their strict encoding, and how fences are read from text.
//
// Nothing here decides, starts a goroutine or takes a context. Everything that
// crosses a device, a process or the disk is defined in this package, so that
// the packages above it share one vocabulary and none of them needs another's.
package notebook
