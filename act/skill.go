package act

import (
	"context"
	"fmt"
	"strings"
)

var skillCommand = &Command{
	Name:    "skill",
	Args:    "list|use NAME",
	Summary: "how-to texts",
	Detail:  "skill list       what there is\nskill use NAME   show one; follow it\nexample: skill use go-project",
	Run:     runSkill,
}

func runSkill(_ context.Context, env *Env, args []string) error {
	if env.Skills == nil {
		return failed("", "there are no skills in this session")
	}
	switch {
	case len(args) == 1 && args[0] == "list":
		return skillList(env)
	case len(args) == 2 && args[0] == "use":
		return skillUse(env, args[1])
	case len(args) == 1 && args[0] != "use":
		return skillUse(env, args[0])
	}
	return misuse("skill list", "usage: %s", env.cmd.usage())
}

func skillList(env *Env) error {
	all := env.Skills.List()
	for _, s := range all {
		fmt.Fprintf(env.Out, "%s - %s\n", s.Name, cutLine(s.Description, maxMatch))
	}
	if len(all) == 0 {
		env.Say("There are no skills.")
	} else {
		env.Say("To follow one: skill use %s", all[0].Name)
	}
	return nil
}

func skillUse(env *Env, name string) error {
	s, ok := env.Skills.Get(name)
	if !ok {
		return failed("skill list", "there is no skill %s", name)
	}
	fmt.Fprintln(env.Out, strings.TrimSpace(s.Body))
	env.Say("That is all of the skill %s.", s.Name)
	env.gates = append(env.gates, s.Verify...)
	if len(s.Verify) > 0 {
		env.Say("Its checks must pass before the task is done.")
	}
	return nil
}
