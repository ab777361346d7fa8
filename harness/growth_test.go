//go:build linux

package harness_test

import (
	"strings"
	"testing"

	"tether/harness"
	"tether/harness/growth"
)

// TestFormsAreLinear: the work for a report keeps pace with its size.
func TestFormsAreLinear(t *testing.T) {
	for _, c := range []struct {
		schema string
		report func(n int) string // of about n bytes
	}{
		{`true`, func(n int) string { return strings.Repeat("[", n/2) + strings.Repeat("]", n/2) }},
		{`{"type":"array","uniqueItems":true}`, func(n int) string { return "[" + strings.Repeat("1,", n/2) + "2]" }},
		{`{"type":"array","items":{"type":"integer"}}`, func(n int) string { return "[" + strings.Repeat("1,", n/2) + "2]" }},
		{`true`, func(n int) string { return "[" + strings.Repeat(`{"a":"a"},`, n/10) + "1]" }},
		{`{"type":"string"}`, func(n int) string { return `"` + strings.Repeat("ü", n/2) + `"` }},
	} {
		form, err := harness.ParseForm([]byte(c.schema))
		if err != nil {
			t.Fatal(err)
		}
		if times := growth.Of(func(n int) { form.Check(c.report(n)) }, 4<<10); times >= growth.Steep {
			t.Errorf("%s: four times %.20q are %.1f times the work", c.schema, c.report(1<<10), times)
		}
	}
}
