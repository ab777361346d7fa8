package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/html"

	"tether/memory"
)

// hostile is text that would do something in a page that does not escape it.
const hostile = "</pre></title></script><script>alert(1)</script><img src=x onerror=alert(1)>\" onload=\"x' {{.ID}} <!-- \x1b[2J \u202e"

// recordsOf are the records of a session of n steps in which every text is text.
func recordsOf(t *testing.T, n int, text string) []memory.Record {
	t.Helper()
	var all []memory.Record
	add := func(kind string, body any) {
		raw, err := json.Marshal(body)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, memory.Record{Event: memory.Event{Seq: int64(len(all) + 1), Kind: kind, Body: raw, At: time.Unix(1, 0)}})
	}
	add("start", map[string]string{"task": text})
	add("setup", map[string]any{"system": text, "prompt": text, "model": text, "sandbox": text, "budget": map[string]int{"Window": 8192}})
	for i := range n {
		id := fmt.Sprint("obs_", i+1)
		add("observation", map[string]any{"id": id, "cmd": text, "stdin": text, "output": text, "status": i % 2})
		add("turn", map[string]any{"obs": id, "said": text, "next": text, "step": i + 1})
		add("message", map[string]any{"text": text})
	}
	add("intent", map[string]any{"obs": "obs_0", "cmd": text})
	add("stop", map[string]any{"stop": "error", "report": text, "error": text, "model": text, "gates": []map[string]any{{"cmd": text}}, "changed": []string{text}})
	return all
}

// TestPage: a page holds what a model, a file or a person wrote as text and as
// nothing else, fetches nothing, and is below 1 MB for 200 steps.
func TestPage(t *testing.T) {
	var b bytes.Buffer
	if err := writePage(&b, memory.Session{ID: hostile, Task: hostile}, recordsOf(t, 3, hostile)); err != nil {
		t.Fatal(err)
	}
	root, err := html.Parse(bytes.NewReader(b.Bytes()))
	if err != nil {
		t.Fatal(err)
	}
	may := strings.Fields("html head meta title style body h1 h2 p section span pre code")
	shown := 0
	for n := range root.Descendants() {
		switch {
		case n.Type == html.ElementNode && !slices.Contains(may, n.Data), n.Type == html.CommentNode:
			t.Errorf("the page has a <%s>", n.Data)
		case n.Type == html.TextNode:
			shown += strings.Count(n.Data, "</pre></title></script><script>alert(1)</script><img src=x onerror=alert(1)>\" onload=\"x' {{.ID}} <!--")
		}
		for _, a := range n.Attr {
			if strings.HasPrefix(a.Key, "on") || a.Key == "src" || a.Key == "href" {
				t.Errorf("the page has %s=%q", a.Key, a.Val)
			}
		}
	}
	if shown < 3*7 {
		t.Errorf("the text is shown %d times", shown)
	}
	if strings.ContainsAny(b.String(), "\x1b\x00") || !strings.Contains(b.String(), "default-src 'none'") {
		t.Error("the page has control bytes, or no policy")
	}
	for _, text := range []string{strings.Repeat("line of output\n", 400), strings.Repeat("<\"&'>", 1_000), strings.Repeat("\u65e5", 1_500)} {
		b.Reset()
		if err := writePage(&b, memory.Session{ID: "s", Task: text}, recordsOf(t, 200, text)); err != nil {
			t.Fatal(err)
		}
		if b.Len() > 1<<20 {
			t.Errorf("200 steps of %.20q are %d bytes", text, b.Len())
		}
	}
}

// TestImportZeroes: a block of zeroes in the middle of a file, as a crash leaves
// it, costs the lines that it is in, and is told.
func TestImportZeroes(t *testing.T) {
	head := `{"v":1,"export":"tether session","session":"20260102-150405-aaaa","task":"t","events":3}`
	line := func(seq int, kind, body string) string {
		return fmt.Sprintf(`{"seq":%d,"kind":%q,"at":"2026-01-02T15:04:05Z","body":%s}`, seq, kind, body)
	}
	text := strings.Join([]string{head, line(1, "start", `{"task":"one"}`), strings.Repeat("\x00", 300), line(3, "message", `{"text":"two"}`), ""}, "\n")
	r := reader{name: "f", in: bufio.NewReader(strings.NewReader(text)), skip: true}
	_, events, err := r.session()
	if err != nil || len(events) != 2 || events[1].Kind != "message" || r.lost != 1 || r.first != 3 {
		t.Errorf("%d events, %d lost, the first on line %d: %v", len(events), r.lost, r.first, err)
	}
	r = reader{name: "f", in: bufio.NewReader(strings.NewReader(text))}
	if _, _, err := r.session(); err == nil || !strings.Contains(err.Error(), "f:3: it is no event") {
		t.Errorf("%v", err)
	}
	for name, text := range map[string]string{
		"no end of a line": head + "\n" + line(1, "start", `{"task":"one"}`), "nothing": "", "only zeroes": strings.Repeat("\x00", 300),
		"a huge line": head + "\n" + strings.Repeat("x", maxLine+1),
	} {
		r := reader{name: "f", in: bufio.NewReader(strings.NewReader(text))}
		if _, _, err := r.session(); err == nil {
			t.Errorf("%s: it is taken", name)
		}
	}
}

// FuzzImport: whatever is in a file, it is read or refused, and what is read can
// be shown.
func FuzzImport(f *testing.F) {
	f.Add([]byte("{\"v\":1,\"export\":\"tether session\",\"session\":\"20260102-150405-aaaa\",\"events\":1}\n{\"seq\":1,\"kind\":\"start\",\"at\":\"2026-01-02T15:04:05Z\",\"body\":{\"task\":\"one\"}}\n"))
	f.Add([]byte("{\"v\":1,\"export\":\"tether session\",\"session\":\"20260102-150405-aaaa\",\"events\":1}\n{\"seq\":1,\"kind\":\"start\",\"body\":null}\n{\"seq\":2,\"kind\":\"turn\",\"body\":{\"obs\":\"obs_1\",\"how\":\"repeated\"}}"))
	f.Fuzz(func(t *testing.T, text []byte) {
		r := reader{name: "f", in: bufio.NewReader(bytes.NewReader(text)), skip: true}
		head, events, err := r.session()
		if err != nil {
			return
		}
		var records []memory.Record
		for _, e := range events {
			if !json.Valid(e.Body) {
				t.Fatalf("event %d is taken with the body %q", e.Seq, e.Body)
			}
			records = append(records, memory.Record{Event: e})
		}
		if err := writePage(new(bytes.Buffer), memory.Session{ID: head.Session}, records); err != nil {
			t.Fatal(err)
		}
	})
}
