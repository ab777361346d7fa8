package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	window "tether/context"
)

// Bounds of what is given with a task. A window of 8,192 tokens holds some 30,000
// bytes; whether a task fits its window is known, and said, when the run begins.
const (
	maxAttached = 256 << 10 // bytes of a file
	maxFiles    = 16
)

// attach adds files to a task as data: each under its name, between lines of
// backquotes of which it has none as long. A file "-" is standard input.
func attach(ctx context.Context, p *program, task string, files []string) (string, error) {
	if len(files) > maxFiles {
		return "", usagef("--attach is there %d times; %d files can be given with a task\nput them into a folder of the workspace and name the folder in the task", len(files), maxFiles)
	}
	for _, file := range files {
		text, err := attachment(ctx, p, file)
		if err != nil {
			return "", err
		}
		name := filepath.Base(file)
		if file == "-" {
			name = "standard input"
		}
		task += "\n\n" + window.Text("attached", window.Values{"Name": oneRow(name), "Fence": fence(text), "Text": strings.TrimRight(text, "\n")})
	}
	return task, nil
}

// attachment is the text of a file that is to be attached.
func attachment(ctx context.Context, p *program, file string) (string, error) {
	bad := func(format string, args ...any) error {
		return usagef("--attach %s: %s", file, fmt.Sprintf(format, args...))
	}
	in := p.In
	if file != "-" {
		f, err := os.OpenFile(file, os.O_RDONLY|syscall.O_NONBLOCK|syscall.O_NOCTTY, 0)
		if err != nil {
			return "", bad("it cannot be read (%v)", reason(err))
		}
		defer f.Close()
		info, err := f.Stat()
		switch {
		case err != nil:
			return "", bad("it cannot be read (%v)", reason(err))
		case info.IsDir():
			return "", bad("it is a folder; attach files, or name the folder in the task")
		case info.Mode().Type()&^fs.ModeNamedPipe != 0: // <(command) is a pipe
			return "", bad("it is no regular file")
		}
		if info.Mode().IsRegular() && info.Size() > maxAttached {
			return "", tooLarge(file)
		}
		if err := syscall.SetNonblock(int(f.Fd()), false); err != nil { // what writes into a pipe is waited for
			return "", bad("%v", err)
		}
		in = f
	}
	text, err := await(ctx, func() ([]byte, error) { return io.ReadAll(io.LimitReader(in, maxAttached+1)) })
	switch {
	case errors.Is(err, context.Canceled):
		return "", err
	case err != nil:
		return "", bad("it cannot be read (%v)", reason(err))
	case len(text) > maxAttached:
		return "", tooLarge(file)
	}
	text = bytes.TrimPrefix(text, []byte("\ufeff"))
	switch {
	case !isText(string(text)):
		return "", bad("it is not text (UTF-8)\nput it into the workspace and say in the task what to do with it")
	case len(bytes.TrimSpace(text)) == 0:
		return "", bad("it is empty")
	}
	return string(text), nil
}

func tooLarge(file string) error {
	return usagef("--attach %s: it has more than %d bytes\nput it into the workspace and name it in the task: the model reads the parts that it needs", file, maxAttached)
}

// fence is a line of backquotes that text does not have.
func fence(text string) string {
	longest, n := 2, 0
	for _, r := range text {
		if n++; r != '`' {
			n = 0
		}
		longest = max(longest, n)
	}
	return strings.Repeat("`", longest+1)
}
