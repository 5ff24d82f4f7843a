package notebook

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math/bits"
	"unicode/utf8"

	"github.com/fxamacker/cbor/v2"
)

// encoding writes core deterministic CBOR in which nil and empty are the same,
// so that a value has one encoding and an encoding one value.
var encoding = func() cbor.EncMode {
	o := cbor.CoreDetEncOptions()
	o.TagsMd = cbor.TagsForbidden
	o.NilContainers = cbor.NilContainerAsEmpty
	return must(o.EncMode())
}()

// decodings are the strict readers, by how many elements an array may have:
// 1024 << index. Input that is small has no business with long arrays, and what
// a slice costs is paid before its elements are read.
var decodings = func() (modes [14]cbor.DecMode) {
	for i := range modes {
		modes[i] = must(cbor.DecOptions{
			DupMapKey:           cbor.DupMapKeyEnforcedAPF,
			IndefLength:         cbor.IndefLengthForbidden,
			TagsMd:              cbor.TagsForbidden,
			ExtraReturnErrors:   cbor.ExtraDecErrorUnknownField,
			UTF8:                cbor.UTF8RejectInvalid,
			MaxArrayElements:    1024 << i,
			MaxMapPairs:         1024,
			MaxNestedLevels:     8,
			NaN:                 cbor.NaNDecodeForbidden,
			Inf:                 cbor.InfDecodeForbidden,
			FieldNameMatching:   cbor.FieldNameMatchingCaseSensitive,
			ByteStringToString:  cbor.ByteStringToStringForbidden,
			FieldNameByteString: cbor.FieldNameByteStringForbidden,
			IntDec:              cbor.IntDecConvertNone,
		}.DecMode())
	}
	return modes
}()

func must[T any](v T, err error) T {
	if err != nil {
		panic(err) // the options above are constants
	}
	return v
}

// decoding is the reader for inputs of at most most bytes: up to 64 KiB an
// array has at most 1024 elements, and twice as many for each doubling.
func decoding(most int) cbor.DecMode {
	i := bits.Len(uint(max(most-1, 0) >> 16))
	return decodings[min(i, len(decodings)-1)]
}

// Marshal encodes v, a struct whose fields form an array (a blank field tagged
// `cbor:",toarray"`) or a value made of such, so that [Unmarshal] accepts it. A
// string that is not valid UTF-8 is an error: bytes of unknown kind belong in a
// []byte. Nil and empty slices are the same.
func Marshal(v any) ([]byte, error) {
	b, err := encoding.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("encode %T: %w", v, err)
	}
	if !validText(b) {
		return nil, fmt.Errorf("encode %T: a text in it is not valid UTF-8", v)
	}
	return b, nil
}

// Unmarshal decodes b, which may have at most most bytes, into v, a pointer to
// a zero value. It accepts exactly what [Marshal] writes: whatever decodes but
// would be written in another way is refused, so equal values have equal bytes
// and hashes. Arrays nest at most 8 deep and have at most 1024 elements where
// most is up to 64 KiB, twice as many for each doubling of it. After an error
// what v points to means nothing.
func Unmarshal(b []byte, v any, most int) error {
	if len(b) > most {
		return fmt.Errorf("decode %T: %d bytes where at most %d are allowed", v, len(b), most)
	}
	if err := decoding(most).Unmarshal(b, v); err != nil {
		return fmt.Errorf("decode %T: %w", v, err)
	}
	again, err := encoding.Marshal(v)
	if err != nil {
		return fmt.Errorf("decode %T: %w", v, err)
	}
	if !bytes.Equal(again, b) {
		return fmt.Errorf("decode %T: %w", v, errNotCanonical)
	}
	return nil
}

var errNotCanonical = errors.New("not in its one canonical encoding")

// validText reports whether every text string of b, which [encoding] wrote, is
// valid UTF-8. The library checks that only when it reads, which would be too late.
func validText(b []byte) bool {
	for len(b) > 0 {
		major, n := b[0]>>5, uint64(b[0]&31)
		b = b[1:]
		if n >= 24 { // the argument is in the next 1, 2, 4 or 8 bytes
			var arg [8]byte
			size := 1 << (n - 24)
			copy(arg[8-size:], b[:size])
			n = binary.BigEndian.Uint64(arg[:])
			b = b[size:]
		}
		switch major {
		case 3:
			if !utf8.Valid(b[:n]) {
				return false
			}
			fallthrough
		case 2:
			b = b[n:]
		}
	}
	return true
}
