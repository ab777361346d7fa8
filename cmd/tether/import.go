package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"

	"github.com/spf13/pflag"

	"tether/harness"
	"tether/memory"
)

var importCommand = &subcommand{
	Name:    "import",
	Args:    "FILE",
	Summary: "take a session from a file that export wrote",
	Detail: `Reads a session that tether export wrote (- is standard input), checks every
line of it and adds it to this workspace's; prints its id, which is a new one if
its own is taken. A file that is damaged is refused, and nothing of it is kept:
with --skip-damaged what can be read is kept, and the rest told. Where the session
came from is not proved: look at it with tether show before you resume it.`,
	Flags: func(fs *pflag.FlagSet) func(context.Context, *program, []string) error {
		dir := fs.StringP("dir", "C", ".", "the workspace")
		skip := fs.Bool("skip-damaged", false, "leave out the lines that are damaged")
		return func(ctx context.Context, p *program, args []string) error {
			if len(args) != 1 || args[0] == "" {
				return usagef("import takes one file, which tether export wrote: tether import FILE")
			}
			return importSession(ctx, p, *dir, args[0], *skip)
		}
	},
}

func importSession(ctx context.Context, p *program, dir, file string, skip bool) error {
	in := io.NopCloser(p.In)
	if file != "-" {
		f, err := await(ctx, func() (*os.File, error) {
			f, err := os.Open(file)
			if err != nil {
				return nil, usagef("%s cannot be read (%v)", file, reason(err))
			}
			if info, err := f.Stat(); err == nil && info.IsDir() {
				return nil, errors.Join(usagef("%s is a folder; name a file that tether export wrote", file), f.Close())
			}
			return f, nil
		})
		if err != nil {
			return err
		}
		in = f
	}
	defer in.Close()
	r := reader{name: file, in: bufio.NewReaderSize(in, 64<<10), skip: skip}
	var events []memory.Event
	head, err := await(ctx, func() (h exported, err error) {
		h, events, err = r.session()
		return h, err
	})
	if err != nil {
		return err
	}
	_, state, err := places(p.Getenv, dir)
	if err != nil {
		return err
	}
	c, err := loadConfig(userConfig(p.Getenv), workspaceFile(dir), p.Getenv)
	if err != nil {
		return err
	}
	store, err := openState(ctx, p, c, state)
	if err != nil {
		return err
	}
	defer store.Close()
	s, err := store.Adopt(ctx, head.Session, events, head.Session)
	if err != nil {
		return err
	}
	fmt.Fprintln(p.Out, s.ID)
	if r.lost > 0 {
		fmt.Fprintf(p.Err, "tether: %d lines were damaged and are left out, the first is line %d\n", r.lost, r.first)
	}
	if r.missing > 0 {
		fmt.Fprintf(p.Err, "tether: the file ends before the last %d events of the session\n", r.missing)
	}
	return nil
}

// Bounds of what is read: a session of thousands of steps is below them.
const (
	maxImport = 512 << 20 // bytes
	maxLine   = 17 << 20  // an event has at most 16 MiB
)

// A reader reads an export, and knows where it is.
type reader struct {
	name  string
	in    *bufio.Reader
	skip  bool
	line  int
	total int
	lost  int // lines that are left out
	first int // of these

	missing int // events that the first line tells of and the file ends before
}

// damaged is the error of this line.
func (r *reader) damaged(format string, args ...any) error {
	return usagef("%s:%d: %s\nnothing was taken; keep what can be read with --skip-damaged", r.name, r.line, fmt.Sprintf(format, args...))
}

// session reads the whole file.
func (r *reader) session() (exported, []memory.Event, error) {
	head, err := r.head()
	if err != nil {
		return head, nil, err
	}
	var events []memory.Event
	var last memory.Record
	for {
		text, err := r.next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return head, nil, err
		}
		rec, err := r.record(text, head.Session, last)
		switch {
		case err == nil:
			events, last = append(events, rec.Event), rec
		case !r.skip:
			return head, nil, err
		default:
			if r.lost++; r.first == 0 {
				r.first = r.line
			}
		}
	}
	if n := len(events) + r.lost; n != head.Events && !r.skip {
		return head, nil, r.damaged("the file ends after %d of %d events", n, head.Events)
	}
	r.missing = max(0, head.Events-len(events)-r.lost)
	if len(events) == 0 || events[0].Kind != memory.KindStart {
		return head, nil, usagef("%s: the start of the session cannot be read, and without it there is none", r.name)
	}
	return head, events, nil
}

// sessionID is how sessions are named: the name becomes that of a file.
var sessionID = regexp.MustCompile(`^[0-9]{8}-[0-9]{6}-[a-z0-9]{4}$`)

// head reads the first line.
func (r *reader) head() (exported, error) {
	var head exported
	text, err := r.next()
	if err != nil && !errors.Is(err, io.EOF) {
		return head, err
	}
	switch {
	case json.Unmarshal(text, &head) != nil || head.Export != exportName:
		return head, usagef("%s: this is no session that tether export wrote", r.name)
	case head.V != 1:
		return head, usagef("%s: it has version %d and this tether knows 1; use the newer tether", r.name, head.V)
	case !sessionID.MatchString(head.Session):
		return head, r.damaged("%q is no name of a session", clipWord(head.Session))
	}
	return head, nil
}

// next reads a line, without its end.
func (r *reader) next() ([]byte, error) {
	r.line++
	var text []byte
	for {
		part, err := r.in.ReadSlice('\n')
		text = append(text, part...)
		if r.total += len(part); r.total > maxImport {
			return nil, usagef("%s: it is larger than %d bytes", r.name, maxImport)
		}
		switch {
		case len(text) > maxLine:
			return nil, usagef("%s:%d: the line is longer than %d bytes", r.name, r.line, maxLine)
		case errors.Is(err, bufio.ErrBufferFull):
		case errors.Is(err, io.EOF) && len(text) > 0, err == nil:
			return bytes.TrimRight(text, "\r\n"), nil
		default:
			return nil, err
		}
	}
}

// kindWord is what an event may be called.
var kindWord = regexp.MustCompile(`^[a-z][a-z_]{0,31}$`)

// record reads an event and checks it: its shape, what it holds, its hash, and
// that it stands where it stood.
func (r *reader) record(text []byte, session string, last memory.Record) (memory.Record, error) {
	var rec memory.Record
	if err := json.Unmarshal(text, &rec); err != nil {
		return rec, r.damaged("it is no event (%v)", err)
	}
	rec.Session = session
	switch {
	case !kindWord.MatchString(rec.Kind):
		return rec, r.damaged("%q is no kind of event", clipWord(rec.Kind))
	case (rec.Kind == memory.KindStart) != (last.Kind == ""):
		return rec, r.damaged("the start of a session is its first event, and no other")
	case !json.Valid(rec.Body):
		return rec, r.damaged("event %d holds nothing", rec.Seq)
	case rec.At.Year() < 1970 || rec.At.Year() > 2261: // nanoseconds since 1970 end there
		return rec, r.damaged("event %d is of the year %d", rec.Seq, rec.At.Year())
	case rec.Seq <= last.Seq:
		return rec, r.damaged("event %d stands behind event %d", rec.Seq, last.Seq)
	case len(rec.Hash) > 0 && rec.Fault() != "":
		return rec, r.damaged("event %d is not as it was written: %s", rec.Seq, rec.Fault())
	case len(rec.Hash) > 0 && rec.Seq == last.Seq+1 && len(last.Hash) > 0 && !bytes.Equal(rec.Prev, last.Hash):
		return rec, r.damaged("event %d does not follow the one before it", rec.Seq)
	case len(harness.Replay([]memory.Event{rec.Event}).Bad) > 0:
		return rec, r.damaged("event %d (%s) cannot be read", rec.Seq, rec.Kind)
	}
	return rec, nil
}

// clipWord is a word of a file for a message.
func clipWord(s string) string { return oneLine(s, 40) }
