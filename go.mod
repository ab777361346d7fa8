module tether

go 1.26.0

require (
	// tether.toml, and the check of a TOML file after a change.
	github.com/BurntSushi/toml v1.6.0

	// File names with * and **, as grep, find and .gitignore have them.
	github.com/bmatcuk/doublestar/v4 v4.10.4

	// The check of a report against a JSON Schema.
	github.com/google/jsonschema-go v0.4.3

	// A command line of the model is split into words as a shell would.
	github.com/mattn/go-shellwords v1.0.16

	// The client of Ollama, in its own types.
	github.com/ollama/ollama v0.17.4

	// What was changed, by a task of a batch or in a file; in tests txtar archives, and scripts against the real binary.
	github.com/rogpeppe/go-internal v1.16.0

	// Flags as people know them: --long, -s, suggestions.
	github.com/spf13/pflag v1.1.0

	// The assembler of the seccomp filter, and a machine that runs the filter in tests; the tokens of a page in HTML.
	golang.org/x/net v0.62.0

	// System calls that the standard library lacks: pidfd, memfd, seals and the numbers for the filter.
	golang.org/x/sys v0.50.0

	// Whether somebody sits at a terminal, and how wide it is.
	golang.org/x/term v0.48.0

	// Tests only: the tables of charsets that those of act are compared with.
	golang.org/x/text v0.43.0

	// Tests only: the archive format of the transcripts.
	golang.org/x/tools v0.52.0

	// The front matter of a SKILL.md is YAML. Ollama's client links this one; its successor beside it would be 0.3 MB.
	gopkg.in/yaml.v3 v3.0.1

	// The state is SQLite with FTS5; this one needs no cgo, so the binary stays static.
	modernc.org/sqlite v1.62.0

	// Tests only: a real shell grammar, against which the splitting of command lines is fuzzed.
	mvdan.cc/sh/v3 v3.14.1
)

require (
	github.com/bahlo/generic-list-go v0.2.0 // indirect
	github.com/buger/jsonparser v1.1.1 // indirect
	github.com/dustin/go-humanize v1.1.0 // indirect
	github.com/google/uuid v1.6.0 // indirect
	github.com/mailru/easyjson v0.7.7 // indirect
	github.com/mattn/go-isatty v0.0.24 // indirect
	github.com/ncruces/go-strftime v1.1.0 // indirect
	github.com/remyoudompheng/bigfft v0.0.0-20230129092748-24d4a6f8daec // indirect
	github.com/wk8/go-ordered-map/v2 v2.1.8 // indirect
	golang.org/x/crypto v0.58.0 // indirect
	modernc.org/libc v1.80.1 // indirect
	modernc.org/mathutil v1.7.1 // indirect
	modernc.org/memory v1.12.1 // indirect
)
