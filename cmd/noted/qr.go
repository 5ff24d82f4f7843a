package main

import (
	"bytes"
	"strings"
	"unicode/utf8"

	"github.com/mdp/qrterminal/v3"
)

// columns is the width that every terminal has.
const columns = 80

// qr draws s as a QR code of half blocks, light on dark; empty where it would
// not fit into 80 columns.
func qr(s string) string {
	const most = 1 << 10 // bytes; far more than fits, and less than a code can hold
	if len(s) > most {
		return ""
	}
	var b bytes.Buffer
	qrterminal.GenerateWithConfig(s, qrterminal.Config{Level: qrterminal.L, Writer: &b, HalfBlocks: true, QuietZone: 2})
	code := b.String()
	for line := range strings.SplitSeq(code, "\n") {
		if utf8.RuneCountInString(line) > columns {
			return ""
		}
	}
	return code
}
