package notebook

import "fmt"

// Kind says what an entry's body is.
type Kind uint8

const (
	KindText   Kind = 1 + iota // one automerge change of one page
	KindSet                    // a new value of one of a page's registers
	KindResult                 // the outcome of a run
	KindRoster                 // a change of who is in the notebook
)

func (k Kind) String() string {
	switch k {
	case KindText:
		return "text"
	case KindSet:
		return "set"
	case KindResult:
		return "result"
	case KindRoster:
		return "roster"
	}
	return fmt.Sprintf("kind %d", uint8(k))
}

// Sizes, in bytes. They bound what is allocated before anything is verified: a
// header fits some forty seen heads, a text body the change of a one-mebibyte
// page, a result one kept output and half as much again around it.
const (
	MaxHeader = 4 << 10
	MaxLabel  = 96
	MaxText   = 2 << 20
	MaxResult = 96 << 10
	MaxSmall  = 8 << 10 // bodies of the other kinds
	MaxBody   = 1 << 20 // a page's body, in bytes of UTF-8
	MaxTitle  = 512     // a page's title, in bytes of UTF-8
)

// MaxBodySize is the largest body that an entry of kind k may have.
func (k Kind) MaxBodySize() int {
	switch k {
	case KindText:
		return MaxText
	case KindResult:
		return MaxResult
	}
	return MaxSmall
}
