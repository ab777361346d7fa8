package act

import (
	"bytes"
	"encoding/binary"
	"mime"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// charsets are the tables by each of their labels. The large ones of East Asia would
// be 0.6 MB for one page in a thousand.
func charsets(tables [][2]string) map[string][]rune {
	all := map[string][]rune{}
	for _, t := range tables {
		for label := range strings.FieldsSeq(t[0]) {
			all[label] = []rune(t[1])
		}
	}
	return all
}

// metaCharset matches where HTML and XML name their charset.
var metaCharset = regexp.MustCompile(`(?i)(?:<meta[^>]{0,200}charset|<\?xml[^>]{0,100}encoding)\s*=\s*["']?\s*([\w:.-]{1,40})`)

// decoded is a text in UTF-8. Its charset is told by a mark at its beginning, by
// the header, or in its first kilobyte. Bytes that are UTF-8 are taken as that,
// whatever is told, and a charset that is not known here leaves marks in the text.
func decoded(data []byte, header string) string {
	if text, ok := decodeUTF16(data, header); ok {
		return text
	}
	data = bytes.TrimPrefix(data, []byte(bom))
	_, params, _ := mime.ParseMediaType(header)
	label := params["charset"]
	if m := metaCharset.FindSubmatch(data[:min(len(data), 1024)]); label == "" && m != nil {
		label = string(m[1])
	}
	label = strings.NewReplacer("-", "", "_", "").Replace(strings.ToLower(strings.TrimSpace(label)))
	if validUTF8(data) || label == "utf8" {
		return strings.ToValidUTF8(string(data), "\uFFFD")
	}
	m := upper[label]
	if m == nil && label == "" {
		m = upper["windows1252"] // what is left where nothing is told
	}
	if m == nil {
		return strings.ToValidUTF8(string(data), "\uFFFD")
	}
	var b strings.Builder
	for _, c := range data {
		if c < utf8.RuneSelf {
			b.WriteByte(c)
		} else {
			b.WriteRune(m[c-utf8.RuneSelf])
		}
	}
	return b.String()
}

// validUTF8 reports whether data is UTF-8 but for a last rune that is cut off.
func validUTF8(data []byte) bool {
	for cut := range min(utf8.UTFMax, len(data)+1) {
		if utf8.Valid(data[:len(data)-cut]) {
			return true
		}
	}
	return false
}

// decodeUTF16 reads a text with a mark of UTF-16, or whose header says so.
func decodeUTF16(data []byte, header string) (string, bool) {
	var order binary.ByteOrder = binary.LittleEndian
	switch {
	case bytes.HasPrefix(data, []byte{0xff, 0xfe}):
		data = data[2:]
	case bytes.HasPrefix(data, []byte{0xfe, 0xff}):
		data, order = data[2:], binary.BigEndian
	case strings.Contains(strings.ToLower(header), "utf-16be"):
		order = binary.BigEndian
	case !strings.Contains(strings.ToLower(header), "utf-16"):
		return "", false
	}
	units := make([]uint16, 0, len(data)/2)
	for ; len(data) > 1; data = data[2:] {
		units = append(units, order.Uint16(data))
	}
	return string(utf16.Decode(units)), true
}

// plainText takes out of a text what is not to be seen: control characters, and
// the marks with which a text hides words from people. Joiners stay, which some
// scripts need.
func plainText(text string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t' || r == '\u200c' || r == '\u200d':
			return r
		case r == '\u00a0' || r == '\u202f':
			return ' '
		case unicode.Is(unicode.Cf, r) || unicode.IsControl(r):
			return -1
		}
		return r
	}, strings.ReplaceAll(text, "\r\n", "\n"))
}
