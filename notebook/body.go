package notebook

import "fmt"

// body is the decoded body of an entry, which knows whether its fields go together.
type body[T any] interface {
	*T
	check() error
}

func encodeBody[T any, B body[T]](v B, most int) ([]byte, error) {
	if err := v.check(); err != nil {
		return nil, fmt.Errorf("encode %T: %w", *v, err)
	}
	b, err := Marshal(v)
	if err == nil && len(b) > most {
		err = fmt.Errorf("encode %T: %d bytes where at most %d are allowed", *v, len(b), most)
	}
	if err != nil {
		return nil, err
	}
	return b, nil
}

func decodeBody[T any, B body[T]](b []byte, most int) (B, error) {
	v := B(new(T))
	if err := Unmarshal(b, v, most); err != nil {
		return nil, err
	}
	if err := v.check(); err != nil {
		return nil, fmt.Errorf("decode %T: %w", *v, err)
	}
	return v, nil
}
