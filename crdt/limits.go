package crdt

import "noted/notebook"

// Bounds. Those of the first group are rules of the gate: they are functions of
// a change and its causal past, so every device refuses the same changes.
const (
	// maxChunk is the size of a change: the size of a text entry's body.
	maxChunk = notebook.MaxText

	// maxCounter is the largest operation counter. A long technical paper typed
	// key by key is 260,000 operations; this is sixteen of them. It keeps
	// counters and operation indexes in 32 bits, and a change that counts to a
	// billion in a hundred bytes out.
	maxCounter = 4 << 20

	// maxTime is the latest time of a change, in Unix milliseconds; the earliest
	// is 0. Entries have the same bounds. Automerge saves the differences of
	// times in 64 bits and does not load again what it has saved where one does
	// not fit.
	maxTime = notebook.MaxTime

	// maxOps is the number of operations of one change: a page of one mebibyte
	// of ASCII replaced by another one.
	maxOps = 2 * notebook.MaxBody

	// maxDeps is the number of dependencies and of other actors that a change
	// names: one per actor that may be on a page by one device's doing. An
	// honest change depends on every head, so fewer would let a device that
	// opens many lanes make a page unwritable.
	maxDeps = 4096
)

// Bounds of the second group depend on what has arrived here, so they delay and
// never refuse: [ErrFull].
const (
	// maxPageOps bounds a page's memory here: an operation costs 8 bytes and an
	// element that stands alone 16 more, so about 100 MiB at the very worst.
	maxPageOps = 4 << 20

	// maxDeviceActors is how many actors this device may have on a page. An actor
	// is one door in one opening of the store. How many another device may have is
	// for its quota to say; see [Page.Actors].
	maxDeviceActors = 4096

	// maxPageActors keeps actor numbers in 16 bits.
	maxPageActors = 1<<16 - 1
)

// Bounds of local edits.
const (
	// maxPieceOps is how many operations a local edit puts into one change; see
	// [Split]. An operation takes at most 18 bytes in a change (a deletion names
	// its element twice, by an actor of 2 bytes and a counter of 4, and has one
	// byte in each of four more columns, with their run lengths), so that a
	// piece fits maxChunk with as many actors and dependencies as there can be.
	maxPieceOps = 100_000

	// maxSplices bounds the number of splices of one edit.
	maxSplices = 1 << 16
)

// Bounds of the own-fence record.
const (
	// maxSuspended is how many fences that this person took apart may come back.
	// Beyond it none does, which asks for nothing but an approval.
	maxSuspended = 256

	// maxOwnRecord has room for more fences than a page of the shortest possible ones.
	maxOwnRecord = notebook.MaxBody / 6 * 64
)

// Bounds of the comparison with foreign text.
const (
	// MinMoved is how many characters, blanks and prefixes not counted, a line
	// of foreign text has to have to be known again by itself. Shorter ones
	// ("end", "}", "return x") are everybody's.
	MinMoved = 8

	// maxWrapped is over how many lines one foreign line is looked for: wrapped
	// at a third of its length it takes four.
	maxWrapped = 4

	// minMoves is how many characters the comparison after an edit may always
	// write again, each splice counted as [spliceCost] of them: a tenth of a second.
	// An edit that wrote more may cause more, so that what a person pastes at once
	// is moved as a whole, and one character that makes a page's fences other ones
	// does not rewrite the page.
	minMoves   = 32 << 10
	spliceCost = 16

	// maxForeignDigests and maxForeignGroups bound one record of foreign text:
	// 64 Ki digests are a mebibyte, and a source has at most 150 bytes.
	maxForeignDigests = 64 << 10
	maxForeignGroups  = 1024
	maxForeignRecord  = 2 << 20
)

// Bounds of work that can be cut short.
const (
	// maxLanes is how many clocks of recent changes a page keeps. One is used
	// for each chain of changes that goes on beside another one; without it the
	// page's history is walked once.
	maxLanes = 64

	// alignLines and alignRunes are how far apart Diff lets two texts drift
	// before it takes the best it has and goes on from there. Its time is at
	// most their product with the size of the texts.
	alignLines = 256
	alignRunes = 64
)
