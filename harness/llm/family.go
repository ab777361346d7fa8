package llm

import (
	"cmp"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	window "tether/context"
)

// A Family is what is known of the models of one name, from trying them and
// from their templates.
type Family struct {
	Match string `toml:"match" json:"match"` // part of the model's name, in lower case
	// Calls is "text" for models whose template takes tools and which write their
	// calls as text all the same: they are constrained from the start. "fence" is for
	// those that write shell in a fence best: that is the form of their replies, if
	// they have sh. "native", also "", is as their server says.
	Calls string `toml:"calls" json:"calls"`
	// Result is who speaks what answers no tool call (a nudge, and every result
	// where decoding is bound to a schema): "tool" (also ""), "user", or "alternate"
	// for templates in which user and model take turns, calls and results aside.
	Result string `toml:"result" json:"result"`
	// Think is how the model's thinking is switched: "switch" (on and off),
	// "effort" (low to high, never off), "" not at all.
	Think string `toml:"think" json:"think"`
	// Auto is what thinking = "auto" means for it: "on", "off", or "" for
	// whatever its server does.
	Auto string `toml:"auto" json:"auto"`
	// IDs is "nine" for templates that take no id of a tool call but one of nine
	// letters and digits; "" is any.
	IDs string `toml:"ids" json:"ids"`
	// Why is the reason, for people.
	Why string `toml:"why" json:"why"`
}

// families are the models that were tried, and the templates that TestTemplates
// runs. The first match counts. Those whose server says that their template takes
// no tools need no entry: they get results from the user, and the schema.
var families = []Family{
	{Match: "qwen2.5-coder", Calls: "fence", Result: "tool",
		Why: "it writes shell in fences better than calls of any form; results come as <tool_response> in a user turn"},
	{Match: "deepseek-r1", Calls: "text", Result: "user", Think: "switch",
		Why: "tools are not shown by the template of the distills, and a second call breaks their marks; they are poor without thinking"},
	{Match: "qwen3-coder", Calls: "native", Result: "tool",
		Why: "it does not think; parameters are passed raw, so code needs no escaping"},
	{Match: "qwen3", Calls: "native", Result: "tool", Think: "switch", Auto: "off",
		Why: "3 and 3.5: thinking of earlier turns is dropped at each user message, which keeps 54 and 65 % of the prefix; off, 3.5 keeps all of it and a turn takes seconds"},
	{Match: "gemma-4", Calls: "native", Result: "user", Think: "switch", Why: whyGemma},
	{Match: "gemma4", Calls: "native", Result: "user", Think: "switch", Why: whyGemma},
	{Match: "gemma", Calls: "text", Result: "user",
		Why: "1 to 3: the template knows neither tools nor their results, and user and model must alternate"},
	{Match: "gpt-oss", Calls: "native", Result: "user", Think: "effort", Auto: "off",
		Why: "a tool message that answers no call is refused; it always thinks, and least with low effort; the date stands in its prompt, so midnight costs the cache"},
	{Match: "llama3", Calls: "native", Result: "tool", Why: whyLlama},
	{Match: "llama-3", Calls: "native", Result: "tool", Why: whyLlama},
	{Match: "ministral", Calls: "native", Result: string(alternate),
		Why: "user and model must take turns, calls and results aside, so a user message in mid-task is refused; it thinks only where the system message tells it to"},
	{Match: "stral", Calls: "native", Result: string(alternate), IDs: "nine",
		Why: "Mistral, Devstral: as Ministral; the tools stand before the newest user message, so a nudge costs the cache; refused is an id of a call that has not nine letters and digits"},
	{Match: "smollm3", Calls: "text", Result: "user", Think: "switch", Auto: "off",
		Why: "its template shows no calls; off is /no_think in its system message, and then the past is shown as it was written"},
	{Match: "smollm", Calls: "text", Result: "user",
		Why: "1 and 2: the template copies the role, and the model knows no tool"},
	{Match: "granite", Calls: "native", Result: "tool", Why: "4: results come as <tool_response> in a user turn; it does not think"},
	{Match: "phi-", Calls: "text", Result: "user", Why: whyPhi},
	{Match: "phi3", Calls: "text", Result: "user", Why: whyPhi},
	{Match: "phi4", Calls: "text", Result: "user", Why: whyPhi},
	{Match: "claude", Calls: "native", Result: "user", Think: "switch", Auto: "off",
		Why: "a tool's result must answer a call; thinking is paid for as output and goes back as it came"},
	{Match: "openai/gpt-5", Calls: "native", Result: "user", Think: "effort", Auto: "off", Why: whyOpenAI},
	{Match: "openai/o3", Calls: "native", Result: "user", Think: "effort", Auto: "off", Why: whyOpenAI},
	{Match: "openai/o4", Calls: "native", Result: "user", Think: "effort", Auto: "off", Why: whyOpenAI},
}

// Reasons of more than one entry.
const (
	whyGemma  = "a tool message that answers no call is left out of its prompt; told not to think it stops in mid-task, so that is left to the server; thinking passed back would keep 38 % of the prefix at a user message"
	whyLlama  = "one call at a time; calls behind <|python_tag|> come as text where the server misses them"
	whyPhi    = "3.5 leaves out what a tool says, and 4 marks the list of tools so: results come from the user"
	whyOpenAI = "it always thinks, and least with low effort"
)

// known is the part of a model's name, in the form of Config.Model, that says
// which model it is: not the folder of its file, and not its server.
func known(name string) string {
	if path, ok := strings.CutPrefix(name, "gguf:"); ok {
		return filepath.Base(path)
	}
	if i := strings.LastIndexByte(name, '@'); i >= 0 && strings.HasPrefix(name, "llama/") {
		return name[:i]
	}
	return name
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

// FamilyOf returns what is known of the model called name, a user's own entries
// first. Its Match is empty if nothing is.
func FamilyOf(name string, own []Family) Family { return familyOf(known(name), own) }

// result is who speaks what answers no tool call.
func (f Family) result() window.Role {
	return cmp.Or(window.Role(f.Result), window.RoleTool)
}

// alternate is a Family.Result.
const alternate window.Role = "alternate"

// Check returns what is wrong with f, in the words of its settings.
func (f Family) Check() error {
	if strings.TrimSpace(f.Match) == "" {
		return fmt.Errorf("match is empty; it is a part of the model's name")
	}
	for _, s := range []struct {
		key, value string
		can        []string
	}{
		{"calls", f.Calls, []string{"native", "text", "fence"}},
		{"result", f.Result, []string{"tool", "user", string(alternate)}},
		{"think", f.Think, []string{"switch", "effort"}},
		{"auto", f.Auto, []string{"on", "off"}},
		{"ids", f.IDs, []string{"nine"}},
	} {
		if s.value != "" && !slices.Contains(s.can, s.value) {
			return fmt.Errorf("%s is %q; it can be %s", s.key, s.value, strings.Join(s.can, " or "))
		}
	}
	return nil
}

// String tells f in one line.
func (f Family) String() string {
	if f.Match == "" {
		return "not in the table: calls as its server says, thinking as its server does"
	}
	think := map[string]string{"": "no switch", "switch": "can be switched", "effort": "less with low effort"}[f.Think]
	return fmt.Sprintf("%s: calls %s, results from %s, thinking %s (auto: %s)", f.Match, cmp.Or(f.Calls, "native"), cmp.Or(f.Result, "tool"), think, cmp.Or(f.Auto, "as its server does"))
}

// nine brings the id of a call to nine letters and digits: "obs_3" is
// "obs000003". Ids that differ in their last six digits stay different.
func nine(id string) string {
	var letters, digits string
	for _, r := range id {
		switch {
		case '0' <= r && r <= '9':
			digits += string(r)
		case 'a' <= r && r <= 'z', 'A' <= r && r <= 'Z':
			letters += string(r)
		}
	}
	letters = (letters + "xxx")[:3]
	digits = "000000" + digits
	return letters + digits[len(digits)-6:]
}
