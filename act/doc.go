// Package act is the language in which a model acts, and the commands of it.
//
// A model has one tool, act(cmd, stdin). Cmd is one command line in POSIX quoting;
// free text (the content of a file, a brief, a report) goes into stdin, where
// nothing has to be quoted.
//
// # Which way a line goes
//
// First what models put around a command is taken off: one code fence, a prompt
// "$ ", a leading sh, bash or shell, and "bash -c '…'". A shell stays where it has
// a script to run or options of its own. Then the first word decides.
//
//	read a.go                 a granted built-in: runs in this process
//	grep foo src | head -5    the built-in runs, the rest is a shell line that reads its output
//	grep foo src > found.txt  its output goes into the file; without sh by write and append
//	ls | wc -l                anything else: the whole text is a shell line in the sandbox
//	sort a | write b          a built-in at the end of a pipe reads what the shell printed
//	mkdir a && write a/b Hi   a list: each part goes its own way, and runs if a shell ran it
//
// A here-document or a here-string behind a built-in is its stdin, and so is text
// on the line when stdin is empty: "append list.txt tomatoes". Such free text is taken as it was
// typed, unless it is one quoted word. An operator behind it is text as well
// ("write a.html <p>Hi</p>"), except before a command that models do write there
// ("append list.txt tomatoes && cat list.txt").
//
// Nothing on a built-in's line is expanded: no variable, no command. A name with *
// stands for the files it matches. Paths are relative to the working directory;
// the absolute path of a file in the workspace is taken, too.
//
// A shell line runs with bash in the sandbox: no network unless it was granted, no
// terminal, stdin as given or closed. Where it fails, what it printed names files as
// the model does, from the working directory. The working directory is kept for the next line; "cd sub" in sub
// means the one at the top, if only that is there. What failed inside a list or a
// pipe that succeeded is told.
//
// A command of the user's own ([Own]) is a built-in to the grammar and a program to
// the sandbox.
//
// What was not granted does not exist: it is not in the list, and typed all the
// same its status is 127, also where bash has a builtin of that name. Without sh
// that is so for every program. grep and find are programs, too: granted, they run
// in this process, and leave options that they lack to the program.
//
// # What comes back
//
// A [Result] is for the model: first content, then sentences on how it ended, and
// last the question for the next step; a pipe passes on only the content. Statuses
// are 0 ok, 1 failed, 2 not understood, 124 timed out, 126 denied, 127 not
// available, and the exit status of a program. A refusal is at most two lines,
// the cause and "try:" with a command that works where it is printed. Result.Err
// is for the user: the sandbox or the store failed, and the run ends.
//
// edit takes blocks, unified diffs and the text of apply_patch. A place must have the
// old lines: exactly, or but for blanks, or but for indentation. Line numbers, @@ and
// A:B only choose among such places; where they do not, nothing is guessed.
//
// A file is replaced only by a model that has seen it; what it saw, by content, is
// kept in the shell. Whoever changes a file sees what it holds then.
//
// # Help
//
// Four levels, each paid for when it is used: [Shell.List] in the prompt, the usage
// line on a mistake, [Command.Help], and the texts of skills. Tests hold their sizes.
//
// A new built-in is one file with one [Command] and one line in [Builtins]. The
// transcripts in testdata show every command; they are run by the tests.
package act
