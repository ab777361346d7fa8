//go:build linux

package sandbox

import (
	"crypto/rand"
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

// Ends of commands that are unlike others.
func TestUnusualEnds(t *testing.T) {
	for _, profile := range []Profile{WorkspaceWrite, Off} {
		b := newBox(t, Policy{Profile: profile, Timeout: 20 * time.Second})
		for _, tt := range []struct {
			line, output string
			status       int
		}{
			// The end of its output is not its own end.
			{"echo first; exec 1>&- 2>&-; echo lost; exit 5", "first\n", 5},
			{"exec 0<&- 1>&- 2>&-; exit 6", "", 6},
			// A child that is stopped, or that ignores everything, does not hold the call.
			{"sleep 300 & kill -STOP $!; echo on", "on\n", 0},
			{"sh -c 'kill -STOP $$' & wait -n 2>/dev/null & echo on; exit 4", "on\n", 4},
			{"(trap '' TERM HUP INT; exec sleep 300) & disown; echo on", "on\n", 0},
			// One that goes on printing behind the shell's back is cut off.
			{"(while :; do echo more; done) & exit 8", "", 8},
			// Signals to all that it can reach are its own affair.
			{"trap '' TERM; kill -TERM 0; echo on; exit 9", "on\n", 9},
			{"exec false", "", 1},
		} {
			o := shell(t, b, tt.line)
			if o.Status != tt.status || !strings.HasPrefix(o.Output, tt.output) || o.Killed != "" || o.Elapsed > 15*time.Second {
				t.Errorf("%s: %s: status %d after %v, killed %q, output %.100q; want status %d and %q", profile, tt.line, o.Status, o.Elapsed, o.Killed, o.Output, tt.status, tt.output)
			}
		}
	}
}

// Whatever bytes come, what goes on is text.
func TestBinaryOutput(t *testing.T) {
	b := newBox(t, Policy{})
	for _, line := range []string{
		"head -c 300000 /dev/urandom", "head -c 3000 /dev/zero", `printf 'a\377b\033[31mc\000d\r\n'`, "cat /proc/self/exe | head -c 200000",
		`printf '\033]0;%s' "$(head -c 100000 /dev/zero | tr '\0' x)"`, `printf '\302'`,
	} {
		o := shell(t, b, line)
		if !utf8.ValidString(o.Output) || dirty(o.Output) || o.Status != 0 {
			t.Errorf("%s: status %d, %d bytes, valid: %v, clean: %v", line, o.Status, len(o.Output), utf8.ValidString(o.Output), !dirty(o.Output))
		}
	}
	if o := shell(t, b, `printf 'a\377b\033[31mc\000d\r\n'`); o.Output != "a\uFFFDbcd\n" {
		t.Errorf("%q", o.Output)
	}
}

// Input is a pipe or nothing, output a pipe: never a terminal, also where tether itself has one.
func TestNeverATerminal(t *testing.T) {
	b := newBox(t, Policy{})
	const line = "readlink /proc/self/fd/0 /proc/self/fd/1 /proc/self/fd/2 | sed 's/:.*//'; tty <&0; echo x 2>/dev/null >/dev/tty || echo none"
	if o := shell(t, b, line); o.Output != "/dev/null\npipe\npipe\nnot a tty\nnone\n" {
		t.Errorf("without input: %q", o.Output)
	}
	if o := do(t, b, Cmd{Shell: line, Stdin: strings.NewReader("x")}); o.Output != "pipe\npipe\npipe\nnot a tty\nnone\n" {
		t.Errorf("with input: %q", o.Output)
	}
}

// A value in tether's environment is in no file of /proc that a command can read.
func TestCanaryIsNowhere(t *testing.T) {
	canary := rand.Text()
	t.Setenv("PROVIDER_API_KEY", canary)
	b := newBox(t, Policy{})
	// The canary comes by stdin and in two parts, and what is looked for is written otherwise: else it would find itself.
	const search = `read -r a; read -r b; pattern="$a[${b:0:1}]${b:1}"
%s
find /proc /dev/shm /run /tmp -maxdepth 3 -type f -not -path '/proc/[0-9]*/task/*' -not -name kmsg -not -name pagemap -not -name mem 2>/dev/null >/tmp/files
xargs -n 40 timeout 10 grep -als -- "$pattern" </tmp/files
wc -l </tmp/files`
	find := func(before string) []string {
		o := do(t, b, Cmd{Shell: fmt.Sprintf(search, before), Stdin: strings.NewReader(fmt.Sprintf("%s\n%s\n", canary[:13], canary[13:]))})
		return strings.Fields(o.Output)
	}
	if got := find("unset a b"); len(got) != 1 || len(got[0]) < 3 { // the number of files that were looked at
		t.Errorf("found in %q", got)
	}
	// The search bites: what a command puts there itself is found.
	if got := find(`LEAK="$a$b" sleep 60 & unset a b`); len(got) < 2 || !strings.HasSuffix(got[0], "/environ") {
		t.Errorf("an environment that has it: found in %q", got)
	}
}
