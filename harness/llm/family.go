package llm

import (
	"fmt"
	"strings"

	window "tether/context"
)

// A Family is what is known of the models of one name, from trying them.
type Family struct {
	Match string `toml:"match"` // part of the model's name, in lower case
	// Calls is "text" for models whose template takes tools and which write their
	// calls as text all the same: they are constrained from the start. "native",
	// also "", is as their server says.
	Calls string `toml:"calls"`
	// Result is who speaks the results of commands, "tool" (also "") or "user". A
	// tool message keeps the prefix on templates that know the role (DESIGN 6).
	Result string `toml:"result"`
}

// families are the models that were tried. The first match counts. Those whose
// server says that their template takes no tools need no entry: they get results
// from the user, and the schema.
var families = []Family{
	{Match: "qwen2.5-coder", Calls: "text"},             // renders <tool_response> in a user turn
	{Match: "smollm2", Calls: "text", Result: "user"},   // its template copies the role, and it knows no "tool"
	{Match: "qwen3", Calls: "native", Result: "tool"},   // 3 and 3.5: a user message in mid-task keeps 54 and 65 % of the prefix
	{Match: "gemma", Calls: "native", Result: "tool"},   // 3 has no tools in its template; on 4 a user message keeps 39 %
	{Match: "gpt-oss", Calls: "native", Result: "tool"}, // its channels are told apart by the server, or by Read
	{Match: "llama3", Calls: "native", Result: "tool"},
	{Match: "llama-3", Calls: "native", Result: "tool"}, // calls behind <|python_tag|> come as text where the server misses them
	{Match: "stral", Calls: "native", Result: "tool"},   // Mistral, Ministral, Devstral: the template refuses a user message in mid-task
}

// familyOf returns what is known of the model called name. A user's own entries
// come before the table.
func familyOf(name string, own []Family) Family {
	name = strings.ToLower(name)
	for _, list := range [][]Family{own, families} {
		for _, f := range list {
			if strings.Contains(name, strings.ToLower(f.Match)) {
				return f
			}
		}
	}
	return Family{}
}

// result is who speaks the results of commands.
func (f Family) result() window.Role {
	if f.Result == string(window.RoleUser) {
		return window.RoleUser
	}
	return window.RoleTool
}

// Check returns what is wrong with f, in the words of its settings.
func (f Family) Check() error {
	switch {
	case strings.TrimSpace(f.Match) == "":
		return fmt.Errorf("match is empty; it is a part of the model's name")
	case f.Calls != "" && f.Calls != "native" && f.Calls != "text":
		return fmt.Errorf("calls is %q; it can be native or text", f.Calls)
	case f.Result != "" && f.Result != string(window.RoleTool) && f.Result != string(window.RoleUser):
		return fmt.Errorf("result is %q; it can be tool or user", f.Result)
	}
	return nil
}
