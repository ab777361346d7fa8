package memory

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestSecrets(t *testing.T) {
	path := temp(t)
	s := at(t, path)
	const key, odd = "sk-canary-0123456789", "pa\"ss\\w<ö>\nrd"
	s.SetSecrets([]string{key, odd, "short", "", key + "-longer"})
	twice, err := json.Marshal(map[string]string{"password": odd})
	if err != nil {
		t.Fatal(err)
	}
	output := strings.Join([]string{
		"Authorization: Bearer " + key + ".", odd, string(twice), fmt.Sprintf("%q", key+"-longer"),
		"https://host/?k=pa%22ss%5Cw%3C%C3%B6%3E%0Ard", "a short word",
	}, "\n")
	if err := s.Observe(t.Context(), "a", Observation{ID: "obs_1", Cmd: "echo " + key, Output: output}); err != nil {
		t.Fatal(err)
	}
	note, err := s.Remember(t.Context(), "a", "key", "the key is "+key)
	if err != nil || strings.Contains(note.Text, key) {
		t.Errorf("note %q, %v", note.Text, err)
	}
	// Escaped in a way of its own, as a name, and in the middle of JSON.
	raw := json.RawMessage(`{"s\u006b-canary-0123456789":["sk\u002dcanary\u002d0123456789",1.50,{"x":null}],"n":12345678901234567890,"e":""}`)
	e, err := s.Append(t.Context(), "a", "x", raw)
	if want := `{"[redacted]":["[redacted]",1.50,{"x":null}],"n":12345678901234567890,"e":""}`; err != nil || string(e.Body) != want {
		t.Errorf("got %s, %v; want %s", e.Body, err, want)
	}
	o, err := s.Recall(t.Context(), "a", "obs_1")
	want := "Authorization: Bearer [redacted].\n[redacted]\n{\"password\":\"[redacted]\"}\n\"[redacted]\"\nhttps://host/?k=[redacted]\na short word"
	if err != nil || o.Output != want || o.Cmd != "echo [redacted]" {
		t.Errorf("got %q %q, %v; want %q", o.Cmd, o.Output, err, want)
	}
	if got := s.Redact(key + " " + odd); got != "[redacted] [redacted]" {
		t.Errorf("redact: %q", got)
	}
	if _, err := s.NewSession(t.Context(), "log in with "+key, key); err != nil {
		t.Fatal(err)
	}
	sound(t, s, 4)
	s.Close()
	nowhere(t, filepath.Dir(path), key, odd, "canary")
}

// nowhere checks that no file below dir has one of the words.
func nowhere(t *testing.T, dir string, words ...string) {
	t.Helper()
	files := 0
	err := filepath.Walk(dir, func(file string, info os.FileInfo, err error) error {
		if err != nil || info.IsDir() {
			return err
		}
		files++
		text, err := os.ReadFile(file)
		for _, word := range words {
			if strings.Contains(string(text), word) {
				t.Errorf("%s has %q", file, word)
			}
		}
		return err
	})
	if err != nil || files < 3 {
		t.Errorf("%d files, %v", files, err)
	}
}

func TestNoSecrets(t *testing.T) {
	s := at(t, ":memory:")
	s.SetSecrets([]string{"secret"})
	s.SetSecrets([]string{"12345", " "})
	e := add(t, s, "a", "x", "secret 12345")
	if string(e.Body) != `"secret 12345"` || s.Redact("secret") != "secret" {
		t.Errorf("got %s", e.Body)
	}
	var none *Store
	if none.Redact("x") != "x" {
		t.Error("no store")
	}
}

// FuzzRedact: whatever the secret and the value, the body stays JSON, and no
// string in it has the secret.
func FuzzRedact(f *testing.F) {
	f.Add("secret", "a secret word")
	f.Add(`":{"x`, `{"a":{"x":1}}`)
	f.Add(`\u0041bcdef`, "Abcdef")
	f.Add("redacted", "redacted")
	f.Add("00000\xff\xff", "0")
	f.Add("ö\x00\x01\u2028&<", "ö\x00\x01\u2028&<")
	f.Fuzz(func(t *testing.T, secret, text string) {
		s := &Store{}
		s.SetSecrets([]string{secret})
		body, err := encode(map[string]any{text: []string{text, base64.StdEncoding.EncodeToString([]byte(text))}, "k": text + secret + text})
		if err != nil {
			t.Fatal(err)
		}
		out, err := s.redact(body)
		if err != nil || !json.Valid(out) {
			t.Fatalf("%s became %s, %v", body, out, err)
		}
		if s.secrets == nil || strings.Contains(redacted, strings.TrimSpace(secret)) {
			return
		}
		var got map[string]any
		if err := json.Unmarshal(out, &got); err != nil {
			t.Fatal(err)
		}
		if k, ok := got["k"].(string); ok && strings.Contains(strings.ReplaceAll(k, redacted, "\x00\x01"), strings.ToValidUTF8(strings.TrimSpace(secret), "\uFFFD")) {
			t.Errorf("%q is still in %q", secret, k)
		}
	})
}
