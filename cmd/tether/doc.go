// Command tether lets a small local model do real work: it shows the model a
// task, runs the commands that come back in a sandbox, and stops when the
// checks that it was given succeed.
//
// # Code tour
//
// Goals first. A window of 8,000 to 32,000 tokens, a model of 0.5 to 20 billion
// parameters on the same machine, and a person or a pipeline that waits. The
// model decides the next command; everything else is deterministic.
//
// Follow one step of a run:
//
//  1. run.go reads the task, config.go the settings, and wire.go builds what is
//     needed: the one place that says which commands a shell has. job.go carries
//     it out, for run.go as for each line that batch.go reads.
//  2. harness/agent.go is the loop, on one screen: ask, run, look, until done
//     counts. run.go beside it keeps the state, gate.go the checks, guard.go the
//     rules against going round in circles, log.go what the event log holds.
//  3. The directory context (package window) computes what the model is shown
//     from the turns so far: budget.go has the numbers, fold.go what goes out of
//     sight, text/ every sentence.
//  4. harness/llm sends that to a server, one file a protocol. dialect.go reads
//     the call from whatever comes back, constrain.go makes the schema that
//     keeps a small model from writing nonsense in the first place.
//  5. act is the only tool: parse.go decides what a line is, builtins.go is the
//     table of commands, and each command is a file.
//  6. sandbox runs everything that is not a built-in under bubblewrap, and is the
//     jail through which the built-ins touch files.
//  7. memory has committed the intent before and the result after. From its
//     events harness/replay.go computes every window again: tether show. And
//     harness/resume.go goes on from there, as if the session had never stopped.
//
// skills holds advice a model can ask for, with the checks that prove it was
// followed.
//
// # Tests
//
// act/testdata holds transcripts (what a command prints), harness/testdata
// dialogues (a scripted model against real gates), testdata/script here whole
// command lines, context/testdata windows as the model reads them. All of them
// run the real sandbox and the real store; harness/llm also a real llama.cpp
// server with a real model. architecture_test.go holds the imports to the
// drawing in the README.
package main
