// Package sandbox runs commands that a model chose, and reads and writes files on its behalf, without trusting either.
//
// Promise of the profile workspace-write: whatever the command, no file outside the workspace and a private cache is
// changed; the home directory, keys, other users' files, the state of tether and the processes of the host cannot be
// read; no packet, socket or bus leaves; nothing runs after the call returned; time, output and processes are bounded.
// Not promised: faults of the kernel, hardware side channels, and what happens when a person later runs a file that the
// model wrote.
//
// The boundary is what the kernel enforces (namespaces set up by bubblewrap, a seccomp filter), never the text of a
// command. The host side of the boundary is [Files]: all that tether itself reads or writes in a workspace goes through
// it, because a link or a FIFO planted by a command would otherwise be followed by the unconfined process.
//
// A tour: policy.go says what is wanted and which workspaces are refused, host.go gathers the facts about the machine,
// bwrap.go turns both into an argument vector (a pure function), seccomp.go makes the filter, run.go starts and ends
// processes, tamper.go and scan.go look at what they left, watch_linux.go and cgroup.go bound what they take, probe.go explains
// why a sandbox cannot be had, files.go is the jail for file access. network.go has the rules for what may be reached and
// proxy.go the way there; shim.go is this program inside the sandbox, landlock.go, restrict_linux.go and guard_linux.go are what takes
// bubblewrap's place where it cannot run. system_linux.go has what other systems lack; system_other.go is all that is
// theirs, and there every profile but off is refused.
package sandbox
