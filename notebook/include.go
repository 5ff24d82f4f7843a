package notebook

import (
	"fmt"
	"slices"
	"strings"
)

// Include names a fence that is to run before the one that says so. Its form is
// =PAGE#FENCE with all 32 hexadecimal digits of the page's id and the short form
// of the fence's, or #FENCE for a fence of the same page. It never holds a title
// or a number: those name another fence when a page is renamed or a fence is put
// before it.
type Include struct {
	Page  PageID // zero: the page of the fence that includes
	Fence string // as [FenceID.Short] writes it
}

// MaxIncludes is how many others one fence can name: with itself, as many as a
// closure has.
const MaxIncludes = MaxClosure - 1

func (i Include) String() string {
	if i.Page.IsZero() {
		return "#" + i.Fence
	}
	return "=" + i.Page.String() + "#" + i.Fence
}

// ParseInclude reads exactly what [Include.String] writes.
func ParseInclude(s string) (Include, error) {
	page, fence, ok := strings.Cut(s, "#")
	i := Include{Fence: fence}
	if ok && page != "" {
		var digits string
		if digits, ok = strings.CutPrefix(page, "="); ok {
			id, err := ParsePageID(digits)
			ok = err == nil && !id.IsZero() && id.String() == digits
			i.Page = id
		}
	}
	if !ok || !isShort(fence) {
		return Include{}, badInclude("%s is not =PAGE#FENCE, with the 32 digits of a page's id and the short id of a fence, nor #FENCE", quoted(s))
	}
	return i, nil
}

// isShort reports whether s has the form of [FenceID.Short].
func isShort(s string) bool {
	return len(s) == len(FenceID{}.Short()) && s[0] == 'f' && strings.Trim(s[1:], "abcdefghijklmnopqrstuvwxyz234567") == ""
}

func badInclude(format string, args ...any) error {
	return Errorf(CodeInvalid, "what the fence includes cannot be read: "+format, args...).
		With("noted fence include FENCE OTHER… writes it")
}

// Includes are the fences that the fence names by an attribute, as
// include="#fENCE =PAGE#fENCE", in order. One that is named twice is there
// twice; see [Closure] for what that means. An include that names nothing, or
// something that is no reference, is an error: such a fence is shown and never
// runs.
func (p Part) Includes() ([]Include, error) {
	list, err := p.attributes()
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(list, func(a attribute) bool { return a.key == "include" })
	if i < 0 {
		return nil, nil
	}
	names := wordsOf(list[i].value)
	switch {
	case len(names) == 0:
		return nil, badInclude("it names none")
	case len(names) > MaxIncludes:
		return nil, badInclude("it names %d, and %d are the most", len(names), MaxIncludes)
	}
	includes := make([]Include, len(names))
	for i, name := range names {
		if includes[i], err = ParseInclude(name); err != nil {
			return nil, err
		}
	}
	return includes, nil
}

// Including is the info string of the fence with exactly these includes, and
// every other byte as it was. A fence without a language cannot have any.
func (p Part) Including(includes []Include) (string, error) {
	list, err := p.attributes()
	if err != nil {
		return "", err
	}
	if p.Language == "" {
		return "", Errorf(CodeInvalid, "the fence has no language, so nothing runs it and it can include nothing").
			With("write a language after its opening delimiter")
	}
	if len(includes) > MaxIncludes {
		return "", badInclude("it would name %d, and %d are the most", len(includes), MaxIncludes)
	}
	names := make([]string, len(includes))
	for i := range includes {
		names[i] = includes[i].String()
	}
	value := fmt.Sprintf(`include="%s"`, strings.Join(names, " "))
	at := slices.IndexFunc(list, func(a attribute) bool { return a.key == "include" })
	switch {
	case at >= 0 && len(includes) > 0:
		return p.Info[:list[at].from] + value + p.Info[list[at].to:], nil
	case at >= 0 && len(list) == 1:
		word, _ := cutWord(p.Info)
		return word, nil
	case at >= 0:
		before, after := p.Info[:list[at].from], p.Info[list[at].to:]
		if at > 0 {
			before = strings.TrimRight(before, blanks)
		} else {
			after = strings.TrimLeft(after, blanks)
		}
		return before + after, nil
	case len(includes) == 0:
		return p.Info, nil
	case list == nil:
		word, _ := cutWord(p.Info)
		return word + " {" + value + "}", nil
	}
	end := strings.LastIndexByte(p.Info, '}')
	if len(list) > 0 {
		value = " " + value
	}
	return strings.TrimRight(p.Info[:end], blanks) + value + p.Info[end:], nil
}
