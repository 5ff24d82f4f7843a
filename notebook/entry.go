package notebook

// MaxEntry bounds an [Entry] in its encoding by [Marshal]: its three parts and
// what CBOR puts around them.
const MaxEntry = MaxHeader + 64 + MaxText + 16

// Entry is a signed record of a device's log, as it travels and as it is kept.
// It is nothing but bytes: only trust says whether they mean anything.
type Entry struct {
	_      struct{} `cbor:",toarray"`
	Header []byte   // as received; see [DecodeHeader]
	Sig    []byte   // ed25519 over the signing input, 64 bytes
	Body   []byte   // empty where the body was dropped: no entry is made without one
}

// Hash names the entry: the digest of its header.
func (e *Entry) Hash() Hash { return Digest("noted/header/v1", e.Header) }

// BodyDigest is what a header says of its body.
func BodyDigest(body []byte) Hash { return Digest("noted/body/v1", body) }
