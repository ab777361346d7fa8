package act

import (
	"context"
	"testing"
)

// TestMarks: what shows again what was said before is told by a mark, however the
// line is written, and so is what is to stay.
func TestMarks(t *testing.T) {
	tr := newTranscript(t, nil)
	tr.directive([]string{"@", "remember", "30"}[1:])
	for _, c := range []struct {
		line        string
		recall, pin bool
	}{
		{"mem recall obs_2", true, false},
		{"mem recall obs_2 3:4", true, false},
		{"mem recall obs_2 | head -1", true, false},
		{"mem recall obs_2 | grep nothing || echo none", true, false},
		{"echo a && mem recall obs_2", true, false},
		{"mem recall obs_2; echo a", true, false},
		{"mem search number7", true, false},
		{"mem search AssertionError | wc -l", true, false},
		{"mem search nowhere", false, false},
		{"mem recall obs_99", false, false},
		{"mem recall obs_99 || echo none", false, false},
		{"mem recall obs_2 > kept.txt", false, false},
		{"mem recall", false, false},
		{"mem remember port 8080", false, false},
		{"mem recall port", true, false},
		{"mem recall", true, false},
		{"echo mem recall obs_2", false, false},
		{"mem pin the port is 8080", false, true},
		{"mem pin the port is 8080", false, false}, // it does already
		{"mem pin and that; echo a", false, true},
		{"echo the one | mem pin", false, true},
	} {
		r := tr.shell.Do(context.Background(), c.line, "")
		if r.Err != nil || r.Recall != c.recall || r.Pin != c.pin {
			t.Errorf("%s: recall %v, pin %v, %v; want %v, %v\n%s", c.line, r.Recall, r.Pin, r.Err, c.recall, c.pin, r.Output)
		}
	}
}
