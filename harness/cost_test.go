package harness_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"tether/harness"
	"tether/memory"
)

// TestCost: a log made by hand, and what it comes to.
func TestCost(t *testing.T) {
	events := []memory.Event{event("setup", `{"model":"m","system":"S","prompt":"P","facts":40,"commands":["sh","read","mem"]}`)}
	step := func(n int, request, reply, cmd string, status int) {
		events = append(events, event("request", request), event("reply", reply))
		if cmd != "" {
			o, _ := json.Marshal(memory.Observation{ID: fmt.Sprintf("obs_%d", n), Cmd: cmd, Status: status})
			events = append(events, event("observation", string(o)), event("turn", fmt.Sprintf(`{"obs":"obs_%d","step":%d,"ms":250}`, n, n)))
		}
	}
	step(1, `{"turns":0}`, `{"calls":[{"cmd":"read a"}],"prompt":100,"output":10,"first_token_ms":90,"ms":900}`, "read a", 0)
	step(2, `{"turns":1}`, `{"calls":[{"cmd":"ls"}],"prompt":200,"cached":90,"output":10,"first_token_ms":10,"ms":100}`, "ls -l", 1)
	step(3, `{"turns":2,"folds":{"folded":1}}`, `{"text":"Well.","nudge":"No.","prompt":150,"cached":60,"output":5,"first_token_ms":50,"ms":100}`, "", 0)
	step(3, `{"turns":2,"folds":{"folded":1}}`, `{"calls":[{"cmd":"read b"}],"prompt":150,"cached":150,"output":5,"first_token_ms":1,"ms":100}`, "read b", 2)
	step(4, `{"turns":3,"folds":{"folded":1},"summary":{"from":0,"to":2}}`, `{"text":"It was read.","prompt":50,"output":20,"first_token_ms":40,"ms":300}`, "", 0)
	events = append(events, event("compact", `{"from":0,"to":2,"first":"obs_1","last":"obs_2","n":5,"turns":3,"text":"It was read."}`))
	step(4, `{"turns":3,"summaries":1,"folds":{"folded":2}}`, `{"overflow":4000}`, "", 0)
	step(4, `{"turns":3,"summaries":1,"folds":{"folded":2}}`, `{"calls":[{"cmd":"write c"}],"prompt":50,"output":1,"ms":100}`, "write c", 127)
	h := harness.Replay(events)
	if len(h.Bad) > 0 {
		t.Fatal(h.Bad)
	}
	got := h.Cost()
	tools := `"tools":[{"name":"sh","offered":1,"used":1,"calls":1,"failed":1},{"name":"read","offered":1,"used":1,"calls":2,"failed":1},` +
		`{"name":"mem","offered":1,"used":0,"calls":0,"failed":0},{"name":"write","offered":0,"used":1,"calls":1,"failed":1}]`
	want := `{"requests":7,"steps":4,"prompt":700,"cached":300,"cache_told":true,"new":400,"output":51,"hit":0.428,"seconds":0,"model_ms":1600,"command_ms":1000,` +
		`"first_token":{"median_ms":40,"p95_ms":90},"folds":2,"summaries":1,"facts":40,"unread":1,` + tools + `}`
	if raw, _ := json.Marshal(got); string(raw) != want {
		t.Errorf("the session cost\n%s\nwant\n%s", raw, want)
	}
	sum := harness.Cost{}.Plus(got).Plus(got)
	if sum.Requests != 14 || sum.Hit != 0.428 || sum.New != 800 || sum.FirstToken != got.FirstToken || sum.Tools[1].Calls != 4 || sum.Tools[2].Offered != 2 || got.Tools[1].Calls != 2 {
		t.Errorf("twice that is %+v", sum)
	}
	if none := (harness.Cost{}).Plus(harness.Cost{}); none.Hit != 0 || none.FirstToken != (harness.Latency{}) || none.Tools == nil {
		t.Errorf("nothing is %+v", none)
	}
}
