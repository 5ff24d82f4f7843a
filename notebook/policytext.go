package notebook

import (
	"fmt"
	"strings"
)

// PolicyText says what of a page looks as if it set policy, empty if nothing
// does. Nothing of a page ever does; the words are for telling the person so.
// It looks for
//
//   - a page, or a fence, that is called policy.toml;
//   - a fence of TOML with a table [local], [foreign], [device.…], [limits] or [auto];
//   - front matter between --- or +++ with a key that means trust to some
//     program, such as trust, auto-run, skipPrompts, approve, allow or timeout;
//   - a fence whose words set such a key, and a property "key:: value".
//
// It reads each line once, as text: whether a line is a fence to a parser of
// markdown does not matter here. What it answers holds no text of the page.
func PolicyText(title, body string) string {
	if TitleKey(title) == policyFile {
		return "a page called " + policyFile
	}
	var open byte // what the open fence is made of, 0 if none is
	length, isTOML := 0, false
	front := ""
	for line, first := "", true; len(body) > 0; first = false {
		line, body, _ = strings.Cut(body, "\n")
		bare := strings.TrimRight(line, " \t\r")
		if first && (bare == "---" || bare == "+++") {
			front = bare
			continue
		}
		if front != "" {
			if bare == front {
				front = ""
			} else if key := settingOf(bare, ":="); key != "" {
				return "front matter with " + key
			}
			continue
		}
		bare = strings.TrimLeft(bare, " \t>*+-")
		if bare == "" {
			continue
		}
		n := len(bare) - len(strings.TrimLeft(bare, bare[:1]))
		switch fence := (bare[0] == '`' || bare[0] == '~') && n >= 3; {
		case open != 0 && fence && bare[0] == open && n >= length && n == len(bare):
			open = 0
		case open != 0 && isTOML && bare[0] == '[':
			if table := policyTable(bare); table != "" {
				return fmt.Sprintf("a fence of TOML with [%s]", table)
			}
		case open == 0 && fence:
			info := bare[n:]
			open, length, isTOML = bare[0], n, strings.HasPrefix(strings.ToLower(strings.TrimLeft(info, " \t{.")), "toml")
			for word := range strings.FieldsFuncSeq(info, func(r rune) bool { return strings.ContainsRune(" \t{},;\"'/\\", r) }) {
				if strings.EqualFold(word, policyFile) || strings.HasSuffix(strings.ToLower(word), "="+policyFile) {
					return "a fence called " + policyFile
				}
				if key := settingOf(word, "="); key != "" {
					return "a fence with " + key
				}
			}
		case open == 0:
			if key, _, property := strings.Cut(bare, "::"); property {
				if key = settingOf(key+":", ":"); key != "" {
					return "the property " + key
				}
			}
		}
	}
	return ""
}

const policyFile = "policy.toml"

// settings are the keys that mean trust, or limits, to some program that runs
// what is in pages, without the signs that join their words.
var settings = map[string]string{
	"trust": "trust", "trusted": "trusted", "policy": "policy", "autorun": "auto-run", "autoexec": "autoexec", "skipprompts": "skipPrompts", "skipprompt": "skipPrompt",
	"approve": "approve", "approved": "approved", "autoapprove": "auto-approve", "allow": "allow", "permissions": "permissions", "capabilities": "capabilities",
	"sandbox": "sandbox", "timeout": "timeout", "limits": "limits",
}

// maxSetting is the longest way to write a key of settings that is looked at.
const maxSetting = 32

// settingOf is the key of settings that a text begins with, before a sign of ends.
func settingOf(s, ends string) string {
	end := strings.IndexAny(s[:min(len(s), maxSetting)], ends)
	if end <= 0 {
		return ""
	}
	key := strings.Map(func(r rune) rune {
		if strings.ContainsRune(" \t-_\"'", r) {
			return -1
		}
		return r
	}, s[:end])
	return settings[strings.ToLower(key)]
}

// policyTable is the table of a policy that a line of TOML begins.
func policyTable(line string) string {
	name, _, closed := strings.Cut(strings.TrimLeft(line, "[ \t"), "]")
	name = strings.Trim(name, " \t\"'")
	switch {
	case !closed:
		return ""
	case strings.HasPrefix(name, "device."):
		return "device"
	case name == "local", name == "foreign", name == "limits", name == "auto":
		return name
	}
	return ""
}
