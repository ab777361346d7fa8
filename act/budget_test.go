package act

import (
	"strings"
	"testing"
)

func TestHelpBudget(t *testing.T) {
	cmds := Builtins()
	for l := range strings.Lines(NewShell(Env{}, cmds).List()) {
		if len(l)-1 > maxListLine {
			t.Errorf("%d bytes, want at most %d: %s", len(l)-1, maxListLine, l)
		}
	}
	for _, c := range cmds {
		if got := c.Help(); len(got) > maxHelp {
			t.Errorf("the help of %s has %d bytes, want at most %d:\n%s", c.Name, len(got), maxHelp, got)
		}
	}
}

func TestEveryHelpHasAnExampleThatRoutes(t *testing.T) {
	for _, c := range Builtins() {
		_, example, found := strings.Cut(c.Help(), "example: ")
		if !found {
			t.Errorf("%s has no example", c.Name)
			continue
		}
		example, _, _ = strings.Cut(example, "\n")
		if c.Name != "sh" && !strings.HasPrefix(example, c.Name) {
			t.Errorf("the example of %s is about something else: %s", c.Name, example)
		}
	}
}
