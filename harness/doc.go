// Package harness runs a task: it shows a model the window, runs the command
// that comes back, and lets done count only when every gate succeeds.
//
// The loop is in agent.go and fits on one screen. What wants to go into it
// becomes a command (package act), a gate (gate.go), a guard (guard.go) or a
// part of the window (package window). Every front end submits its task through
// [Agent.Do] and follows it through [Event]; none adds a policy of its own.
package harness
