package main

import (
	"cmp"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	window "tether/context"
	"tether/harness"
)

// A reported is one task as a report tells of it.
type reported struct {
	Name    string // its id in a batch, else its first line
	Outcome harness.Outcome
	Failed  []failedGate
	Folder  string // slash separated, from where the reader stands to the files; empty: they are not there
	Gates   bool   // each gate is told by itself
}

// A failedGate is a gate that failed when it ran last.
type failedGate struct {
	Cmd    string      `json:"cmd"`
	Status int         `json:"status"`
	Output string      `json:"output"`
	At     []codePlace `json:"at,omitempty"` // the lines that it complains about
}

// What a report keeps of a gate's output, in bytes: enough for the first failures
// and the sum at the end, and little enough for a page of them.
const gateLimit, gateHead, gateTail = 12_000, 6_000, 5_000

// reportFlags say which reports are written when a command has ended.
type reportFlags struct {
	forms []string
	last  map[string]failedGate // of each gate, what it printed when it ran last and failed
	token string                // with which the runner of GitHub listens again
}

func (f *reportFlags) declare(fs *pflag.FlagSet) {
	fs.StringArrayVar(&f.forms, "report", nil, "junit=FILE, markdown=FILE, or github (annotations and the job's summary; repeatable)")
}

// reportForms are the reports there are, and whether they go to a file.
var reportForms = map[string]bool{"junit": true, "markdown": true, "github": false}

// check refuses reports that cannot be written, before anything runs.
func (f *reportFlags) check() error {
	for _, form := range f.forms {
		name, file, hasFile := strings.Cut(form, "=")
		toFile, known := reportForms[name]
		switch {
		case !known:
			return usagef("--report %s: there is no such report%s\nit is junit=FILE, markdown=FILE or github", form, didYouMean(name, []string{"junit", "markdown", "github"}))
		case toFile && file == "":
			return usagef("--report %s needs a file: --report %s=FILE", name, name)
		case !toFile && hasFile:
			return usagef("--report github takes no file: it prints, and adds to the file that GITHUB_STEP_SUMMARY names")
		case !toFile:
			continue
		}
		if info, err := os.Stat(filepath.Dir(file)); err != nil || !info.IsDir() {
			return usagef("--report %s: the folder %s is not there; make it first", form, filepath.Dir(file))
		}
		if info, err := os.Stat(file); err == nil && !info.Mode().IsRegular() {
			return usagef("--report %s: %s is no file", form, file)
		}
	}
	return nil
}

// has says whether a report was asked for.
func (f *reportFlags) has(name string) bool {
	return slices.ContainsFunc(f.forms, func(form string) bool { return form == name || strings.HasPrefix(form, name+"=") })
}

// watch notes what gates print, and passes every event on.
func (f *reportFlags) watch(next func(harness.Event)) func(harness.Event) {
	f.last = map[string]failedGate{}
	return func(e harness.Event) {
		if e.Type == harness.EventGate {
			delete(f.last, e.Cmd)
			if e.Status != 0 {
				f.last[e.Cmd] = failedGate{Cmd: e.Cmd, Status: e.Status, Output: window.Clip(e.Output, gateLimit, gateHead, gateTail, "")}
			}
		}
		if next != nil {
			next(e)
		}
	}
}

// failed are the gates of out that failed last, with the places in the workspace
// that they complain about.
func (f *reportFlags) failed(out harness.Outcome, workspace string) []failedGate {
	var all []failedGate
	for _, g := range out.Gates {
		if got, ok := f.last[g.Cmd]; ok && g.Status != 0 {
			got.At = placesIn(got.Output, workspace)
			all = append(all, got)
		}
	}
	return all
}

// write writes every report that was asked for.
func (f *reportFlags) write(p *program, tasks []reported) error {
	var errs []error
	for _, form := range f.forms {
		switch name, file, _ := strings.Cut(form, "="); name {
		case "junit":
			errs = append(errs, writeReport(file, junitReport(tasks)))
		case "markdown":
			errs = append(errs, writeReport(file, markdownReport(tasks)))
		case "github":
			f.listen(p)
			fmt.Fprint(p.Err, githubReport(tasks))
			if file := p.Getenv("GITHUB_STEP_SUMMARY"); file != "" {
				errs = append(errs, appendReport(file, markdownReport(tasks)))
			}
		}
	}
	return errors.Join(errs...)
}

// deafen tells the runner of GitHub to take nothing that is printed for a command
// until listen: a model, a command or a file may have anything in what they print.
func (f *reportFlags) deafen(p *program) {
	if f.has("github") {
		f.token = rand.Text()
		fmt.Fprintf(p.Err, "::stop-commands::%s\n", f.token)
	}
}

func (f *reportFlags) listen(p *program) {
	if f.token != "" {
		fmt.Fprintf(p.Err, "::%s::\n", f.token)
		f.token = ""
	}
}

// reportOn writes the reports of one run in the workspace dir, and returns the
// error that the command ends with: err, unless it is nil.
func (f *reportFlags) reportOn(p *program, out harness.Outcome, dir string, err error) error {
	if len(f.forms) == 0 {
		return err
	}
	task := reported{Name: firstLine(out.Task), Outcome: out, Failed: f.failed(out, dir), Folder: folderFrom(p.Getenv, dir), Gates: true}
	if written := f.write(p, []reported{task}); written != nil {
		fmt.Fprintln(p.Err, "tether:", printable(written.Error()))
		return cmp.Or(err, error(exitError(1)))
	}
	return err
}

// folderFrom is the way from where annotations are read, the checkout of the job
// or else the current folder, to dir. Empty: dir is not below it.
func folderFrom(env func(string) string, dir string) string {
	from := cmp.Or(env("GITHUB_WORKSPACE"), ".")
	a, err := filepath.Abs(from)
	b, err2 := filepath.Abs(dir)
	if errors.Join(err, err2) != nil {
		return ""
	}
	rel, err := filepath.Rel(resolved(a), resolved(b))
	if err != nil || !filepath.IsLocal(rel) {
		return ""
	}
	return filepath.ToSlash(rel)
}

// firstLine is the first line of a text, cut to what fits a heading.
func firstLine(s string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(s), "\n")
	if r := []rune(line); len(r) > 100 {
		return string(r[:99]) + "…"
	}
	return line
}

// reasonOf says in one line why a task is not done.
func reasonOf(t reported) string {
	o := t.Outcome
	text := endings[o.Stop]
	if len(t.Failed) > 0 {
		g := t.Failed[0]
		text = fmt.Sprintf("%s: %s (status %d)", text, firstLine(g.Cmd), g.Status)
	}
	if o.Error != "" {
		text += ": " + strings.ReplaceAll(o.Error, "\n", "; ")
	}
	return text
}

// writeReport replaces a file: its readers see the old or the new one.
func writeReport(file string, text []byte) error {
	temp, err := os.CreateTemp(filepath.Dir(file), "."+filepath.Base(file)+".*.tmp")
	if err != nil {
		return fmt.Errorf("%s cannot be written (%w)", file, reason(err))
	}
	_, err = temp.Write(text)
	if err = errors.Join(err, temp.Chmod(0o644), temp.Sync(), temp.Close()); err == nil {
		err = os.Rename(temp.Name(), file)
	}
	if err != nil {
		_ = os.Remove(temp.Name())
		return fmt.Errorf("%s cannot be written (%w)", file, reason(err))
	}
	return syncFolder(filepath.Dir(file))
}

// appendReport adds text to a file that other steps add to as well.
func appendReport(file string, text []byte) error {
	f, err := os.OpenFile(file, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o644)
	if err == nil {
		_, err = f.Write(text)
		err = errors.Join(err, f.Close())
	}
	if err != nil {
		return fmt.Errorf("the job's summary %s cannot be written (%w)", file, reason(err))
	}
	return nil
}
