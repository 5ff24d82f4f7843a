package notebook

// aliases are other words for a language in an info string.
var aliases = map[string]string{"py": "python", "js": "javascript", "shell": "sh", "bash": "sh"}

// Canonical is the name of a language by which policies, approvals and runtimes
// know it: python for py, javascript for js, sh for shell and bash. Another word
// stays as it is. A [Part] keeps the word that was written.
func Canonical(language string) string {
	if name, known := aliases[language]; known {
		return name
	}
	return language
}
