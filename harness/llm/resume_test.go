package llm

import (
	"bytes"
	"testing"

	window "tether/context"
)

// TestUserInTheMiddle: what a person says in the middle of a task comes as a
// result does, and where that is a user, roles still alternate.
func TestUserInTheMiddle(t *testing.T) {
	msgs := []window.Message{
		{Role: window.RoleSystem, Text: "S"}, {Role: window.RoleUser, Text: "task"},
		{Role: window.RoleAssistant, Call: &window.Call{Cmd: "ls"}, ID: "obs_1"}, {Role: window.RoleTool, Text: "a.txt", ID: "obs_1"},
		{Role: window.RoleUser, Text: "Stop that.", ID: "obs_2"},
	}
	for _, c := range []struct {
		result window.Role
		form   form
		roles  string
		last   string
	}{
		{window.RoleTool, native, "system user assistant tool tool ", "Stop that."},
		{window.RoleUser, native, "system user assistant tool user ", "Stop that."},
		{window.RoleUser, constrained, "system user assistant user ", "a.txt\n\nStop that."},
	} {
		var roles string
		var last spoken
		for _, s := range (wiring{Result: c.result}).prompt(window.Request{Messages: msgs}, c.form).speak() {
			roles, last = roles+string(s.role)+" ", s
		}
		if roles != c.roles || last.content != c.last || last.id != "" {
			t.Errorf("%s, results by %s: %s, the last is %+v", c.form, c.result, roles, last)
		}
	}
}

// TestContinue: a model that is opened again for a session asks for the same
// bytes as the one that was closed.
func TestContinue(t *testing.T) {
	set := func(c *Config) { c.Temperature, c.Seed, c.MaxTokens, c.Window = 0.3, 7, 333, 4096 }
	m, _ := providers[1].open(t, set)
	m.constrain()
	want, err := m.Body(ask)
	if err != nil {
		t.Fatal(err)
	}
	again, _ := providers[1].open(t, func(c *Config) {
		if *c, err = c.As(m.Wire()); err != nil {
			t.Fatal(err)
		}
	})
	again.Continue("constrained fresh", 1)
	got, err := again.Body(ask)
	if err != nil || !bytes.Equal(got, want) {
		t.Errorf("the request is\n%s\nand was\n%s\n%v", got, want, err)
	}
	if again.misses != 1 {
		t.Errorf("%d misses, want 1", again.misses)
	}
	off, _ := providers[1].open(t, func(c *Config) { c.Constrain = "off" })
	if off.Continue("constrained", 1); off.form == constrained {
		t.Error("a setting of now counts less than the form of then")
	}
	if _, err := (Config{}).As([]byte("{")); err == nil {
		t.Error("half a wire is read")
	}
}
