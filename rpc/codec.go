package rpc

import (
	"errors"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"noted/notebook"
)

// maxDepth bounds how deeply the messages of a request nest: the deepest of
// the services has five levels.
const maxDepth = 16

// binaryCodec is the protobuf encoding without tolerance: a field that the
// schema does not have is refused, because the client means something by it,
// perhaps a precondition, that would not be done. A client reads answers with
// tolerance: to leave out what a newer daemon adds loses nothing that it could show.
type binaryCodec struct{ tolerant bool }

func (binaryCodec) Name() string { return "proto" }

func (c binaryCodec) Marshal(v any) ([]byte, error) { return c.MarshalAppend(nil, v) }

// MarshalAppend is Marshal into a buffer that connect uses again.
func (binaryCodec) MarshalAppend(b []byte, v any) ([]byte, error) {
	m, err := message(v)
	if err != nil {
		return nil, err
	}
	b, err = proto.MarshalOptions{}.MarshalAppend(b, m)
	if err != nil {
		if err := onlyText(m.ProtoReflect()); err != nil {
			return nil, err
		}
		return nil, notebook.Errorf(notebook.CodeInvalid, "the message cannot be sent: %s", plain(err))
	}
	return b, nil
}

func (c binaryCodec) Unmarshal(b []byte, v any) error {
	m, err := message(v)
	if err != nil {
		return err
	}
	if err := (proto.UnmarshalOptions{RecursionLimit: maxDepth}).Unmarshal(b, m); err != nil {
		return errors.New(plain(err))
	}
	if c.tolerant {
		return nil
	}
	return noUnknown(m.ProtoReflect())
}

// jsonCodec is the JSON encoding, as strict: no unknown field, none twice.
type jsonCodec struct{ name string }

func (c jsonCodec) Name() string { return c.name }

func (c jsonCodec) Marshal(v any) ([]byte, error) {
	m, err := message(v)
	if err != nil {
		return nil, err
	}
	return protojson.Marshal(m)
}

func (c jsonCodec) Unmarshal(b []byte, v any) error {
	m, err := message(v)
	if err != nil {
		return err
	}
	if len(b) == 0 {
		return errors.New("the request has no body; send {} for an empty message")
	}
	if err := (protojson.UnmarshalOptions{RecursionLimit: maxDepth}).Unmarshal(b, m); err != nil {
		return errors.New(plain(err))
	}
	return nil
}

func message(v any) (proto.Message, error) {
	m, ok := v.(proto.Message)
	if !ok {
		return nil, fmt.Errorf("%T is not a protobuf message", v)
	}
	return m, nil
}

// plain is a protobuf error without the prefix of its library, whose spaces
// are deliberately not stable.
func plain(err error) string {
	s := strings.Map(func(r rune) rune {
		if unicode.IsSpace(r) {
			return ' '
		}
		return r
	}, err.Error())
	return clip(strings.TrimSpace(strings.TrimPrefix(s, "proto:")))
}

// noUnknown is an error naming the first field, at any depth, that the schema does not have.
func noUnknown(m protoreflect.Message) error {
	return each(m, func(m protoreflect.Message) error {
		if u := m.GetUnknown(); len(u) > 0 {
			return fmt.Errorf("%s has the unknown field %d", m.Descriptor().FullName(), fieldNumber(u))
		}
		return nil
	})
}

// onlyText is an error naming the first field, at any depth, whose text is not UTF-8.
func onlyText(m protoreflect.Message) error {
	bad := func(f protoreflect.FieldDescriptor) error {
		return notebook.Errorf(notebook.CodeInvalid, "%s is not text in UTF-8", f.FullName()).With("it may be a file in another encoding; convert it first")
	}
	return each(m, func(m protoreflect.Message) (err error) {
		m.Range(func(f protoreflect.FieldDescriptor, v protoreflect.Value) bool {
			switch {
			case f.IsMap():
				v.Map().Range(func(k protoreflect.MapKey, e protoreflect.Value) bool {
					if s, ok := e.Interface().(string); !utf8.ValidString(k.String()) || ok && !utf8.ValidString(s) {
						err = bad(f)
					}
					return err == nil
				})
			case f.Kind() != protoreflect.StringKind:
			case f.IsList():
				for i := range v.List().Len() {
					if !utf8.ValidString(v.List().Get(i).String()) {
						err = bad(f)
					}
				}
			case !utf8.ValidString(v.String()):
				err = bad(f)
			}
			return err == nil
		})
		return err
	})
}

// each calls check with m and every message in it, until one is not right. (No
// map of the schema has messages for values.)
func each(m protoreflect.Message, check func(protoreflect.Message) error) error {
	err := check(m)
	if err != nil {
		return err
	}
	m.Range(func(f protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		switch {
		case f.Message() == nil, f.IsMap():
		case f.IsList():
			for i := 0; i < v.List().Len() && err == nil; i++ {
				err = each(v.List().Get(i).Message(), check)
			}
		default:
			err = each(v.Message(), check)
		}
		return err == nil
	})
	return err
}

// fieldNumber is the number of the first field in b.
func fieldNumber(b []byte) int32 {
	n, _, _ := protowire.ConsumeField(b)
	return int32(n)
}
