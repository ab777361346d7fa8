package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"
)

// shapes are the objects that DESIGN 8 fixes, by example: a value has the type
// of the one here. 0 is a whole number and 0.5 any number; a list has values
// like its first one, if there is one. There may be more fields than these.
var shapes = map[string]string{
	"act": `{"v":1,"cmd":"","status":0,"output":"","obs":"","ms":0}`,
	"run": `{"v":1,"session":"","task":"","stop":"","exit":0,"report":"","steps":0,"model":"","sandbox":"","network":"",
		"gates":[{"cmd":"","status":0,"tries":0}],"tokens":{"prompt":0,"cached":0,"output":0},"seconds":0.5,"changed":[""],"planted":[""]}`,
	"show": `{"v":1,"session":"","task":"","stop":"","exit":0,"report":"","model":"","sandbox":"",
		"gates":[{"cmd":"","status":0,"tries":0}],"tokens":{"prompt":0,"cached":0,"output":0},"seconds":0.5,"changed":[""],
		"steps":[{"n":0,"cmd":"","stdin":"","status":0,"output":"","obs":""}],
		"requests":[{"n":0,"prompt":0,"cached":0,"first_token_ms":0,"folded":0}]}`,
	"bench": `{"v":1,"id":"","model":"","seed":0,"run":0,"gates":true,"max_steps":0,"tether":"","solved":true,"right":true,"replies":0,"unreadable":0,"cut":0,"resampled":0,"outcome":{"v":1,"stop":"","exit":0,"steps":0,"gates":[{"cmd":"","status":0,"tries":0}],
		"tokens":{"prompt":0,"cached":0,"output":0},"seconds":0.5,"changed":[""]}}`,
	"self":   `{"v":1,"name":"","value":0.5,"unit":"","bound":0.5}`,
	"ls":     `{"v":1,"session":"","state":"","task":"","model":"","started":"","age_seconds":0,"stop":"","exit":0,"steps":0,"gates":[{"cmd":"","status":0,"tries":0}]}`,
	"doctor": `{"v":1,"ok":true,"checks":[{"name":"","ok":true,"needed":true,"found":""}]}`,
	"trials": `{"v":1,"ok":true,"sandbox":"","network":"","trials":[{"name":"","promise":"","held":true,"seen":""}]}`,
	"stats": `{"v":1,"sessions":[{"session":"","task":"","model":"","started":"","stop":"","exit":0,"requests":0,"steps":0,"prompt":0,"cached":0,"new":0,"output":0,"hit":0.5,"seconds":0.5,
		"first_token":{"median_ms":0,"p95_ms":0},"folds":0,"summaries":0,"tools":[{"name":"","offered":0,"used":0,"calls":0,"failed":0}]}],"stops":{},
		"total":{"requests":0,"steps":0,"prompt":0,"cached":0,"new":0,"output":0,"hit":0.5,"seconds":0.5,"first_token":{"median_ms":0,"p95_ms":0},"folds":0,"summaries":0,"tools":[{"name":"","offered":0,"used":0,"calls":0,"failed":0}]}}`,
	"event": `{"v":1,"type":""}`,
	"batch": `{"v":1,"id":"","solved":true,"sum":"","outcome":{"v":1,"session":"","task":"","stop":"","exit":0,"report":"","steps":0,"model":"","sandbox":"","network":"",
		"gates":[{"cmd":"","status":0,"tries":0}],"tokens":{"prompt":0,"cached":0,"output":0},"seconds":0.5,"changed":[""],"planted":[""]}}`,
	"sum": `{"v":1,"tasks":0,"done":0,"left":0,"stops":{},"exit":0,"steps":0,"tokens":{"prompt":0,"cached":0,"output":0},"seconds":0.5,"out":""}`,

	"origins": `{"v":1,"settings":[{"key":"","origin":""}]}`,
	"dirs":    `{"v":1,"places":[{"name":"","path":"","exists":true}]}`,
}

// eventShapes are the fields that a type of event has besides.
var eventShapes = map[string]string{
	"start": `{"session":"","task":"","model":"","sandbox":"","network":""}`, "act": `{"n":0,"cmd":""}`,
	"observation": `{"n":0,"obs":"","status":0,"output":""}`, "gate": `{"n":0,"cmd":"","status":0}`,
	"cache": `{"n":0}`, "warning": `{"output":""}`, "compact": `{"obs":"","folded":0,"output":""}`,
}

// cmdJSON checks every JSON value of a file. Each stands on a line of its own,
// so that a program can read the output line by line.
func cmdJSON(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 || shapes[args[1]] == "" {
		ts.Fatalf("usage: json FILE SHAPE")
	}
	all := lines(ts, args[0])
	for i, v := range all {
		if err := like("", v, decode(ts, shapes[args[1]])); err != nil {
			ts.Fatalf("line %d: %v", i+1, err)
		}
		if args[1] == "event" {
			checkEvent(ts, v.(map[string]any), i == len(all)-1)
		}
	}
}

// checkEvent checks one event; the result comes last and nowhere else.
func checkEvent(ts *testscript.TestScript, e map[string]any, last bool) {
	kind := e["type"].(string)
	if (kind == "result") != last {
		ts.Fatalf("the event %q, and being the last one is %v", kind, last)
	}
	shape, got := eventShapes[kind], any(e)
	if kind == "result" {
		shape, got = shapes["run"], e["result"]
	}
	if shape == "" {
		ts.Fatalf("there is no event %q", kind)
	}
	if err := like(kind, got, decode(ts, shape)); err != nil {
		ts.Fatalf("%v", err)
	}
}

// lines are the JSON values of a file, a line each.
func lines(ts *testscript.TestScript, file string) []any {
	text := strings.TrimSuffix(ts.ReadFile(file), "\n")
	if text == "" {
		ts.Fatalf("%s is empty", file)
	}
	var all []any
	for _, line := range strings.Split(text, "\n") {
		all = append(all, decode(ts, line))
	}
	return all
}

func decode(ts *testscript.TestScript, text string) any {
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		ts.Fatalf("%q is no JSON: %v", text, err)
	}
	if _, err := d.Token(); err != io.EOF {
		ts.Fatalf("%q is more than one JSON value", text)
	}
	return v
}

// like says where got differs in type from the example want.
func like(path string, got, want any) error {
	if fmt.Sprintf("%T", got) != fmt.Sprintf("%T", want) {
		return fmt.Errorf("%s is %v (%T), want one like %v (%T)", path, got, got, want, want)
	}
	switch want := want.(type) {
	case json.Number:
		if n := got.(json.Number); !strings.Contains(want.String(), ".") && strings.ContainsAny(n.String(), ".eE") {
			return fmt.Errorf("%s is %v, want a whole number", path, n)
		}
	case map[string]any:
		for key, w := range want {
			if err := like(path+"."+key, got.(map[string]any)[key], w); err != nil {
				return err
			}
		}
	case []any:
		for i, g := range got.([]any) {
			if err := like(fmt.Sprintf("%s.%d", path, i), g, want[0]); err != nil {
				return err
			}
		}
	}
	return nil
}

// cmdField compares one value of the last line. A list or an object is
// compared as JSON.
func cmdField(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) != 3 {
		ts.Fatalf("usage: field FILE PATH VALUE")
	}
	all := lines(ts, args[0])
	v := all[len(all)-1]
	for _, key := range strings.Split(args[1], ".") {
		switch in := v.(type) {
		case map[string]any:
			v = in[key]
		case []any:
			n, err := strconv.Atoi(key)
			if err != nil || n >= len(in) {
				ts.Fatalf("%s: there is no %s in a list of %d", args[1], key, len(in))
			}
			v = in[n]
		default:
			ts.Fatalf("%s: there is no %s in %v", args[1], key, v)
		}
	}
	got, ok := v.(string)
	if !ok {
		raw, err := json.Marshal(v)
		ts.Check(err)
		got = string(raw)
	}
	if (got == args[2]) == neg {
		ts.Fatalf("%s is %q, and being %q should be %v", args[1], got, args[2], !neg)
	}
}
