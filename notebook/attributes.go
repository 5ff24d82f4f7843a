package notebook

import (
	"fmt"
	"slices"
	"strings"
)

// Attributes reads what follows the language in the info string: nothing, or
//
//	{key=value key="a value with blanks" …}
//
// A key is a lower-case letter and then letters, digits, - and _; a bare value
// has no blank, quote, equals sign or brace; a quoted one no quote. A key occurs
// once. Everything else is an error for the person to read: such a fence is
// shown and never runs.
func (p Part) Attributes() (map[string]string, error) {
	list, err := p.attributes()
	if err != nil || list == nil {
		return nil, err
	}
	attributes := make(map[string]string, len(list))
	for _, a := range list {
		attributes[a.key] = a.value
	}
	return attributes, nil
}

// attribute is one of a fence's, with where it stands in the info string.
type attribute struct {
	key, value string
	from, to   int
}

// attributes are those of the info string, in order; nil if there are no braces.
func (p Part) attributes() ([]attribute, error) {
	_, rest := cutWord(p.Info)
	rest = strings.Trim(rest, blanks)
	if rest == "" {
		return nil, nil
	}
	inner, ok := strings.CutPrefix(rest, "{")
	if !ok {
		return nil, badInfo("%s follows the language", quoted(rest))
	}
	end := len(strings.TrimRight(p.Info, blanks))
	list := []attribute{}
	for {
		inner = strings.TrimLeft(inner, blanks)
		if after, ok := strings.CutPrefix(inner, "}"); ok {
			if after != "" {
				return nil, badInfo("%s follows the closing brace", quoted(after))
			}
			return list, nil
		}
		if inner == "" {
			return nil, badInfo("the closing brace is missing")
		}
		key, value, after, err := cutAttribute(inner)
		if err != nil {
			return nil, err
		}
		if slices.ContainsFunc(list, func(a attribute) bool { return a.key == key }) {
			return nil, badInfo("%s is given twice", key)
		}
		list = append(list, attribute{key, value, end - len(inner), end - len(after)})
		inner = after
	}
}

const blanks = " \t"

// cutAttribute reads the attribute at the beginning of s, which ends before a
// blank or the closing brace.
func cutAttribute(s string) (key, value, rest string, err error) {
	key, value, ok := strings.Cut(s, "=")
	if !ok || !isName(key) {
		return "", "", "", badInfo("%s does not begin with key=value", quoted(s))
	}
	if inner, ok := strings.CutPrefix(value, `"`); ok {
		if value, rest, ok = strings.Cut(inner, `"`); !ok {
			return "", "", "", badInfo("the value of %s has no closing quote", key)
		}
	} else {
		end := strings.IndexAny(value, blanks+`{}="`)
		if end < 0 {
			end = len(value)
		}
		value, rest = value[:end], value[end:]
		if value == "" {
			return "", "", "", badInfo("%s has no value", key)
		}
	}
	if rest != "" && !strings.ContainsRune(blanks+"}", rune(rest[0])) {
		return "", "", "", badInfo("%s follows the value of %s", quoted(rest), key)
	}
	return key, value, rest, nil
}

// isName reports whether s is a lower-case letter and then letters, digits, - and _.
func isName(s string) bool {
	for i := range len(s) {
		letter := s[i] >= 'a' && s[i] <= 'z'
		if !letter && (i == 0 || s[i] != '-' && s[i] != '_' && (s[i] < '0' || s[i] > '9')) {
			return false
		}
	}
	return s != ""
}

func badInfo(format string, args ...any) error {
	return Errorf(CodeInvalid, "the words after the fence's opening delimiter cannot be read: "+format, args...).
		With(`write them as LANGUAGE {key=value key="a longer value"}`)
}

// quoted is hostile text as a short part of a message.
func quoted(s string) string { return fmt.Sprintf("%q", clip(s)) }
