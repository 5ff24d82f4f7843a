package crdt

import "noted/notebook"

// Every page begins with the same change, byte for byte and for good: it makes
// the text object "body" under an actor that no entry can carry, because an
// entry's actor is a digest. So two devices that create one page while they are
// apart have one body, and a page needs no entry to begin with.
var (
	firstActor = notebook.ActorID([]byte("noted/body/v1\x00\x00\x00"))

	firstChange = []byte("\x85oJ\x839\xce\x894\x01/" + // prelude, type and length
		"\x00\x10noted/body/v1\x00\x00\x00\x01\x01\x00\x00\x00" + // no dependency, actor, seq 1, first operation 1, time 0
		"\x05\x15\x064\x01B\x02V\x02p\x02" + // five columns
		"\x7f\x04body\x01\x7f\x04\x7f\x00\x7f\x00") // key "body", make a text, no value, no predecessor

	firstHash = ChangeHash(firstChange)
)

const (
	firstCounter = 1 // of the one operation of the first change: the body's object id
	bodyKey      = "body"
)
