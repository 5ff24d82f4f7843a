package notebook

import "fmt"

// excuse stands in an exchange where the body of an entry was that its sender
// has dropped: the entry by which a member purged the page.
type excuse struct {
	_       struct{} `cbor:",toarray"`
	Version uint8
	Header  []byte
	Sig     []byte
	Body    []byte
}

const (
	excuseVersion = 1
	maxExcuse     = MaxHeader + MaxSmall + 128 // with a signature of 64 bytes
)

// EncodeExcuse encodes the purge of a page as what is sent instead of the
// bodies of its entries.
func EncodeExcuse(purge Entry) ([]byte, error) {
	return encodeBody(&excuse{Version: excuseVersion, Header: purge.Header, Sig: purge.Sig, Body: purge.Body}, maxExcuse)
}

// DecodeExcuse reads what [EncodeExcuse] writes. Whether it is a purge, and by
// whom, is not looked at.
func DecodeExcuse(b []byte) (Entry, error) {
	x, err := decodeBody[excuse](b, maxExcuse)
	if err != nil {
		return Entry{}, err
	}
	return Entry{Header: x.Header, Sig: x.Sig, Body: x.Body}, nil
}

func (x *excuse) check() error {
	switch {
	case x.Version != excuseVersion:
		return fmt.Errorf("an excuse of version %d", x.Version)
	case len(x.Header) == 0 || len(x.Header) > MaxHeader || len(x.Sig) != 64 || len(x.Body) == 0 || len(x.Body) > MaxSmall:
		return fmt.Errorf("an excuse with a header of %d bytes, a signature of %d and a body of %d", len(x.Header), len(x.Sig), len(x.Body))
	}
	return nil
}
