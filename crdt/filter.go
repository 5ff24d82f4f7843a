package crdt

import (
	"encoding/binary"

	"noted/notebook"
)

// Filter says of a text digest that it was never added, or that it perhaps was:
// a Bloom filter that grows. What was added stays. Digests are as good as
// random, so their own bits choose the places.
type Filter struct {
	layers []filterLayer
}

// filterLayer is a part of the filter that takes a number of digests and then no more.
type filterLayer struct {
	bits []uint64
	room int
}

const (
	// firstLayer is how many digests the first layer takes; each further one
	// takes twice as many as the one before.
	firstLayer = 1 << 14

	// filterBits and filterProbes make one wrong answer in two thousand for a
	// full layer, at two bytes for each digest.
	filterBits   = 16
	filterProbes = 8
)

// Add remembers a digest.
func (f *Filter) Add(d notebook.TextDigest) {
	if f.Has(d) {
		return
	}
	n := len(f.layers)
	if n == 0 || f.layers[n-1].room == 0 {
		room := firstLayer << n
		f.layers = append(f.layers, filterLayer{bits: make([]uint64, room*filterBits/64), room: room})
		n++
	}
	l := &f.layers[n-1]
	l.room--
	for i := range filterProbes {
		at := l.place(d, i)
		l.bits[at/64] |= 1 << (at % 64)
	}
}

// Has reports whether a digest may have been added; if it was, it does.
func (f *Filter) Has(d notebook.TextDigest) bool {
	for i := range f.layers {
		if f.layers[i].has(d) {
			return true
		}
	}
	return false
}

func (l *filterLayer) has(d notebook.TextDigest) bool {
	for i := range filterProbes {
		if at := l.place(d, i); l.bits[at/64]&(1<<(at%64)) == 0 {
			return false
		}
	}
	return true
}

// place is the bit of a digest's probe i.
func (l *filterLayer) place(d notebook.TextDigest, i int) uint64 {
	first, step := binary.LittleEndian.Uint64(d[:8]), binary.LittleEndian.Uint64(d[8:])|1
	return (first + uint64(i)*step) % uint64(len(l.bits)*64)
}
