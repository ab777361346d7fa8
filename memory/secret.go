package memory

import (
	"bytes"
	"cmp"
	"encoding/json"
	"net/url"
	"slices"
	"strings"
)

// redacted stands where a secret was.
const redacted = "[redacted]"

// minSecret is the length in bytes from which a value is taken for a secret:
// replacing "true" or "8080" everywhere would make the log unreadable.
const minSecret = 6

// SetSecrets names values that must not come into the store. From then on each
// becomes "[redacted]" in every event on the way in, and so in the index, in
// notes and in whatever is read back. Values of less than 6 bytes are left
// alone. Call it before the store is shared.
func (s *Store) SetSecrets(values []string) {
	var all []string
	for _, v := range values {
		if v = strings.TrimSpace(v); len(v) >= minSecret {
			all = append(all, spellings(v)...)
		}
	}
	// At one place the first of the list counts: a secret may begin with another.
	slices.SortFunc(all, func(a, b string) int { return cmp.Or(len(b)-len(a), strings.Compare(a, b)) })
	all = slices.Compact(all)
	s.secrets = nil
	if len(all) == 0 {
		return
	}
	var pairs []string
	for _, v := range all {
		pairs = append(pairs, v, redacted)
	}
	s.secrets = strings.NewReplacer(pairs...)
}

// Redact returns text as the store would keep it. Who shows a text elsewhere
// too, as the window does, calls it before, so that both are the same.
func (s *Store) Redact(text string) string {
	if s == nil || s.secrets == nil {
		return text
	}
	return s.secrets.Replace(text)
}

// spellings are the forms in which v appears in what programs print: as it is,
// inside a JSON string (once and twice encoded), and in an address. What is no
// UTF-8 in it is mended in one of two ways before it is kept.
func spellings(v string) []string {
	all := []string{v, url.QueryEscape(v), url.PathEscape(v), strings.ToValidUTF8(v, "\uFFFD"), string([]rune(v))}
	for _, html := range []bool{false, true} {
		once := inJSON(v, html)
		all = append(all, once, inJSON(once, html))
	}
	return all
}

// inJSON is v as it stands between the quotes of a JSON string.
func inJSON(v string, html bool) string {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(html)
	if enc.Encode(v) != nil {
		return v
	}
	return strings.TrimSuffix(strings.TrimPrefix(strings.TrimSpace(b.String()), `"`), `"`)
}

// redact takes the secrets out of a JSON value. It goes through the strings of
// the value, so that whatever a secret looks like the result is JSON; and it
// decodes those with a backslash, because a character can be escaped in more
// ways than one.
func (s *Store) redact(body json.RawMessage) (json.RawMessage, error) {
	if s.secrets == nil {
		return body, nil
	}
	var out []byte
	done := 0 // of body, already in out
	for at := bytes.IndexByte(body, '"'); at >= 0; {
		end := stringEnd(body, at)
		literal := body[at:end]
		text := ""
		if bytes.IndexByte(literal, '\\') < 0 {
			text = string(literal[1 : len(literal)-1])
		} else if err := json.Unmarshal(literal, &text); err != nil {
			return nil, err
		}
		if clean := s.secrets.Replace(text); clean != text {
			fresh, err := encode(clean)
			if err != nil {
				return nil, err
			}
			out = append(append(out, body[done:at]...), fresh...)
			done = end
		}
		next := bytes.IndexByte(body[end:], '"')
		if next < 0 {
			break
		}
		at = end + next
	}
	return append(out, body[done:]...), nil
}

// stringEnd is the index behind the JSON string that begins at body[at].
func stringEnd(body []byte, at int) int {
	for i := at + 1; i < len(body); i++ {
		switch body[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return len(body)
}
