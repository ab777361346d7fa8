package harness

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"

	"tether/act"
	window "tether/context"
)

// MaxSchema is the longest schema of a report in bytes, without blanks: every
// request holds it, about 1,200 tokens.
const MaxSchema = 4000

// A Form is what the report of done must be: JSON that fits a schema. A nil Form
// takes any report. What "format" says is not checked: it is an annotation, as the
// standard has it.
type Form struct {
	text  string
	raw   any
	root  *jsonschema.Schema
	rules *jsonschema.Resolved
}

// ParseForm reads a JSON Schema, of draft 2020-12 or draft 7. What it refers to
// must be in it: nothing is fetched. The error is for the user.
func ParseForm(data []byte) (*Form, error) {
	var text bytes.Buffer
	if err := json.Compact(&text, data); err != nil {
		return nil, fmt.Errorf("it is no JSON (%w)", err)
	}
	if text.Len() > MaxSchema {
		return nil, fmt.Errorf("it has %d bytes without blanks, and each request would hold them; it may have %d", text.Len(), MaxSchema)
	}
	var raw any
	_ = json.Unmarshal(data, &raw) // it is JSON
	if err := checkRefs(raw); err != nil {
		return nil, err
	}
	if !bearable(raw, nil) {
		return nil, errors.New("its parts refer to each other so often that no report can be checked against it")
	}
	f := &Form{text: text.String(), raw: raw, root: new(jsonschema.Schema)}
	err := json.Unmarshal(data, f.root)
	if err == nil {
		f.rules, err = f.root.Resolve(nil)
	}
	if err != nil {
		return nil, fmt.Errorf("it is no JSON Schema (%s)", plainFault(err))
	}
	if err := f.rules.Validate(nil); err != nil && strings.Contains(err.Error(), "cannot validate version") {
		return nil, errors.New("it is of a version that is not known; draft 2020-12 and draft 7 are")
	}
	return f, nil
}

// fence matches a block of code around a whole report.
var fence = regexp.MustCompile("(?s)^```\\w*\\s*\n(.*)\n```$")

// Check returns a report as JSON on one line, or what is wrong with it, for the
// model: a line, and one with a command that would be right, if there is one.
func (f *Form) Check(report string) (text, wrong string) {
	if f == nil {
		return report, ""
	}
	report = strings.TrimSpace(report)
	if m := fence.FindStringSubmatch(report); m != nil {
		report = m[1]
	}
	var value any
	d := json.NewDecoder(strings.NewReader(report))
	err := d.Decode(&value)
	if err == nil {
		if _, more := d.Token(); more != io.EOF {
			err = errors.New("there is more text behind it")
		}
	}
	switch {
	case report == "":
		return "", f.wrong("there is none", nil)
	case len(report) > maxReport:
		return "", f.wrong(fmt.Sprintf("it has %d bytes, and may have %d", len(report), maxReport), nil)
	case err != nil:
		return "", f.wrong(fmt.Sprintf("it is no JSON (%s)", err), nil)
	}
	if err := f.fits(value); err != nil {
		return "", f.wrong(plainFault(err), value)
	}
	if name := twice(report); name != "" {
		return "", f.wrong(fmt.Sprintf("%q stands twice in one object", name), value)
	}
	if copied(value) && !strings.Contains(f.text, `"`+placeholder+`"`) {
		return "", f.wrong(placeholder+" stands for words of your own", nil)
	}
	var line bytes.Buffer
	_ = json.Compact(&line, []byte(report)) // it is JSON
	return line.String(), ""
}

// errNested is of a report that cannot be checked in bounded time.
var errNested = errors.New("it is nested so deep that it cannot be checked; make it flatter")

// fits checks a value against the schema.
func (f *Form) fits(value any) error {
	if !bearable(f.raw, value) {
		return errNested
	}
	return f.rules.Validate(value)
}

// placeholder stands in an example where a text is to be. A small model copies what
// it is shown, and a report of it would be none.
const placeholder = "TEXT"

// copied reports whether a placeholder is a value in a report.
func copied(value any) bool {
	switch v := value.(type) {
	case string:
		return v == placeholder
	case []any:
		return slices.ContainsFunc(v, copied)
	case map[string]any:
		return slices.ContainsFunc(slices.Collect(maps.Values(v)), copied)
	}
	return false
}

// wrong says what is wrong with a report.
func (f *Form) wrong(why string, value any) string {
	const most = 300 // bytes: what comes behind is the schema again
	text := window.Text("form_failed", window.Values{"Why": window.Clip(why, most, most-50, 0, ""), "Example": f.example(value)})
	return strings.ToValidUTF8(text, "\uFFFD")
}

// schema is the schema for the log.
func (f *Form) schema() json.RawMessage {
	if f == nil {
		return nil
	}
	return json.RawMessage(f.text)
}

// keepForm holds a session to the form that its report had to have, unless there is
// another one.
func (a *Agent) keepForm(h *History) (err error) {
	if a.Form == nil && len(h.Setup.Schema) > 0 {
		if a.Form, err = ParseForm(h.Setup.Schema); err != nil {
			return fmt.Errorf("the schema of the session cannot be read: %w\ngive it again with --schema", err)
		}
	}
	a.Setup.Schema = a.Form.schema()
	return nil
}

// prompt is what the model is told of the form together with the task.
func (f *Form) prompt() string {
	if f == nil {
		return ""
	}
	return "\n\n" + window.Text("form", window.Values{"Schema": f.text})
}

// places and where make of the chain of schemas in an error of the library the
// place in the report: "validating /properties/files/items: …" is "files[]: …".
var (
	places = regexp.MustCompile(`validating ((?:root|/\S*|https?:\S*)): `)
	where  = strings.NewReplacer("/properties/", ".", "/items", "[]", "root", "")
	keyed  = regexp.MustCompile(`^[a-zA-Z]+: `)
)

// plainFault is an error of the library in a line: where in the report, and what.
func plainFault(err error) string {
	text, at := err.Error(), ""
	for {
		m := places.FindStringSubmatchIndex(text)
		if m == nil || m[0] != 0 {
			break
		}
		if place := text[m[2]:m[3]]; strings.HasPrefix(place, "/properties/") {
			at = strings.TrimPrefix(where.Replace(place), ".")
		}
		text = text[m[1]:]
	}
	text = strings.Join(strings.Fields(strings.TrimPrefix(keyed.ReplaceAllString(text, ""), "jsonschema: ")), " ")
	if at != "" {
		return at + ": " + text
	}
	return text
}

// example is a line of done whose report fits: what was right in the report that
// did not, and the first value that each other place may have. It is empty where
// that cannot be told.
func (f *Form) example(value any) string {
	made := new(sampler).sample(f.root, 0)
	if f.fits(made) != nil {
		return ""
	}
	base, ok := made.(map[string]any)
	said, _ := value.(map[string]any)
	for _, key := range slices.Sorted(maps.Keys(said)) {
		if !ok {
			break
		}
		try := maps.Clone(base)
		if try[key] = said[key]; f.fits(try) == nil {
			base = try
		}
	}
	if ok {
		made = base
	}
	const most = 600 // bytes: a longer one is not copied right
	line, err := json.Marshal(made)
	if err != nil || len(line) > most {
		return ""
	}
	return "done " + string(line)
}

// A sampler makes an example, and counts the values in it.
type sampler struct{ values int }

// sample is a value that a schema may have, nil where that is not simple.
func (m *sampler) sample(s *jsonschema.Schema, depth int) any {
	const deepest, most = 8, 100 // a longer one is not shown
	switch m.values++; {
	case s == nil || depth > deepest || m.values > most:
		return nil
	case s.Const != nil:
		return *s.Const
	case len(s.Enum) > 0:
		return s.Enum[0]
	case len(s.Examples) > 0:
		return s.Examples[0]
	}
	kind := s.Type
	if kind == "" && len(s.Types) > 0 {
		kind = s.Types[0]
	}
	switch kind {
	case "object":
		return m.object(s, depth)
	case "array":
		list := []any{}
		if s.MinItems != nil {
			for range min(*s.MinItems, deepest) {
				list = append(list, m.sample(s.Items, depth+1))
			}
		}
		return list
	case "string":
		return placeholder
	case "integer", "number":
		if s.Minimum != nil {
			return *s.Minimum
		}
		return float64(1)
	case "boolean":
		return true
	}
	return nil
}

// object has what an object must have.
func (m *sampler) object(s *jsonschema.Schema, depth int) any {
	o := map[string]any{}
	for _, key := range s.Required {
		o[key] = m.sample(s.Properties[key], depth+1)
	}
	return o
}

// unfit ends a done whose report does not fit: it counts as a gate that failed, but
// nothing has to be changed before the next one.
func (r *run) unfit(call window.Call, res act.Result, wrong string) act.Result {
	r.misfit = true
	r.state.unfit(call, wrong)
	r.tell(Event{Type: EventWarning, N: r.steps, Output: r.amiss})
	return act.Result{Status: act.Failed, Output: wrong, Changed: res.Changed, Gates: res.Gates, Report: res.Report}
}

// unfit books that.
func (s *state) unfit(call window.Call, wrong string) {
	why, _, _ := strings.Cut(wrong, "\n")
	s.amiss = strings.TrimPrefix(why, "error: ")
	s.tries++
	s.guard.Unsee(call)
}

// reported makes a done of a reply that is a report and no call: a model that was
// told what the report must be sends it at once.
func (r *run) reported(reply window.Reply) window.Reply {
	if r.Form == nil || len(reply.Calls) > 0 || reply.Cut || !strings.ContainsAny(reply.Text, "{[") {
		return reply
	}
	if report, wrong := r.Form.Check(reply.Text); wrong == "" {
		reply.Calls = []window.Call{{Cmd: "done", Stdin: report}}
	}
	return reply
}
