//go:build linux

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"gopkg.in/yaml.v3"
)

// A runner is a machine of a CI, with a checkout, a tether that can be cloned, and an
// Ollama that has every model. What needs the rights of an administrator does nothing
// there, and the model is a script.
type runner struct {
	*desk
	checkout string
	pulled   *[]string
}

func newRunner(t *testing.T) *runner {
	t.Helper()
	h := newDesk(t)
	r := &runner{desk: h, checkout: filepath.Join(h.dir, "ws"), pulled: new([]string)}
	tether, err := exec.LookPath("tether")
	if err != nil {
		t.Fatal(err)
	}
	repository := filepath.Join(h.dir, "repository")
	for file, text := range map[string]string{
		"bin/sudo": "#!/bin/sh\n", "bin/apt-get": "#!/bin/sh\n",
		"repository/Makefile": "PREFIX ?= " + h.dir + "/local\ninstall:\n\tinstall -D " + tether + " $(PREFIX)/bin/tether\n",
		"ws/Makefile":         "test:\n\tsh check.sh\n",
		"ws/check.sh":         "test -f fixed || { echo 'main.go:1:9: it is broken'; exit 1; }\n",
		"ws/main.go":          "package a\n",
		"ws/README.md":        "about --json\n",
	} {
		file = filepath.Join(h.dir, file)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, dir := range []string{repository, r.checkout} {
		line := "git init -q && git add -A && git -c user.name=a -c user.email=a@b.c commit -q -m x"
		cmd := exec.Command("sh", "-c", line)
		cmd.Dir, cmd.Env = dir, h.env
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	mux := http.NewServeMux()
	mux.HandleFunc("/api/version", func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, `{"version":"0.17.4"}`) })
	mux.HandleFunc("/api/pull", func(w http.ResponseWriter, q *http.Request) {
		var asked struct{ Model string }
		if json.NewDecoder(q.Body).Decode(&asked) == nil {
			*r.pulled = append(*r.pulled, asked.Model)
		}
		io.WriteString(w, `{"status":"success"}`+"\n")
	})
	ollama := httptest.NewServer(mux)
	t.Cleanup(ollama.Close)
	r.set("PATH", filepath.Join(h.dir, "bin")+":"+filepath.Join(h.dir, "local", "bin")+":"+os.Getenv("PATH"))
	for name, value := range map[string]string{
		"TETHER_REPOSITORY": "file://" + repository, "RUNNER_TEMP": filepath.Join(h.dir, "temp"), "CI_PROJECT_DIR": r.checkout,
		"OLLAMA_HOST": ollama.URL, "GITHUB_STEP_SUMMARY": filepath.Join(h.dir, "summary.md"), "GITHUB_PATH": filepath.Join(h.dir, "path"),
		"GITHUB_WORKSPACE": r.checkout, "TETHER_STATE": filepath.Join(h.dir, "kept"),
	} {
		r.set(name, value)
	}
	return r
}

// set sets a variable; that of the machine goes before that of a page.
func (r *runner) set(name, value string) { r.env = append(r.env, name+"="+value) }

// sh runs a script as the runner of a CI would, without a terminal, and with a standard
// input at which nobody ever says anything.
func (r *runner) sh(script string) (out, errs string, err error) {
	r.t.Helper()
	in, hold, err := os.Pipe()
	if err != nil {
		r.t.Fatal(err)
	}
	defer in.Close()
	defer hold.Close()
	cmd := exec.CommandContext(r.t.Context(), "bash", "-e", "-o", "pipefail", "-c", script)
	cmd.Dir, cmd.Env, cmd.Stdin, cmd.WaitDelay = r.checkout, r.env, in, patience
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err = cmd.Run()
	return stdout.String(), stderr.String(), err
}

// must is sh of what has to succeed.
func (r *runner) must(script string) (out, errs string) {
	r.t.Helper()
	out, errs, err := r.sh(script)
	if err != nil {
		r.t.Fatalf("%s\n%v\n%s%s", script, err, out, errs)
	}
	return out, errs
}

// has is the content of a file that the scripts made.
func (r *runner) has(file string) string {
	r.t.Helper()
	text, err := os.ReadFile(filepath.Join(r.checkout, file))
	if err != nil {
		r.t.Error(err)
	}
	return string(text)
}

// blocksOf are the blocks of a page in docs in one language.
func blocksOf(t *testing.T, name, language string) []string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("../../docs", name))
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, m := range fences.FindAllStringSubmatch(string(text), -1) {
		if m[1] == language {
			all = append(all, m[2])
		}
	}
	return all
}

// parse reads a block of YAML.
func parse(t *testing.T, text string, v any) {
	t.Helper()
	if err := yaml.Unmarshal([]byte(text), v); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
}

// A workflow is what GitHub reads.
type workflow struct {
	Jobs map[string]struct {
		Env   map[string]string
		Steps []struct{ Name, Run, If string }
	}
}

// TestGitHubWorkflow runs the steps of the first workflow of docs/ci.md, once with a
// model that gets the task done and once with one that does not.
func TestGitHubWorkflow(t *testing.T) {
	for _, fixed := range []bool{true, false} {
		r := newRunner(t)
		replies := []string{"write wrong < 1", "done", "write wrong < 2", "done", "write wrong < 3", "done"}
		if fixed {
			replies = []string{"write fixed < yes", "done"}
		}
		var w workflow
		parse(t, blocksOf(t, "ci.md", "yaml")[0], &w)
		job := w.Jobs["task"]
		r.set("TASK", "Fix it; $(touch pwned) `touch pwned` '\"")
		for name, value := range job.Env {
			if !strings.Contains(value, "${{") {
				r.set(name, value)
			}
		}
		r.set("TETHER_MODEL", r.script(replies...))
		ran, failed := 0, false
		for _, s := range job.Steps {
			if s.Run == "" || s.If == "failure()" && !failed || s.If == "" && failed {
				continue
			}
			if strings.Contains(s.Run, "${{") {
				t.Errorf("step %s pastes an expression into its script", s.Name)
			}
			_, errs, err := r.sh(s.Run)
			switch ran++; {
			case err != nil && s.Name == "The task":
				failed = true
				if !strings.Contains(errs, "::error file=main.go,line=1,col=9,title=") {
					t.Errorf("no annotation: %s", errs)
				}
			case err != nil && s.If != "failure()": // what doctor says of this machine is its own business
				t.Fatalf("step %s: %v\n%s", s.Name, err, errs)
			}
		}
		if failed == fixed || fixed && ran != 4 || !fixed && ran != 5 {
			t.Errorf("fixed %v: failed %v after %d steps", fixed, failed, ran)
		}
		if !slices.Equal(*r.pulled, []string{"qwen2.5-coder:1.5b"}) {
			t.Errorf("pulled %v", *r.pulled)
		}
		var out struct{ Stop, Task string }
		if err := json.Unmarshal([]byte(r.has("result.json")), &out); err != nil || (out.Stop == "done") != fixed || !strings.Contains(out.Task, "$(touch pwned)") {
			t.Errorf("%+v, %v", out, err)
		}
		if cases := readJUnit(t, []byte(r.has("report.xml"))).Suites[0].Cases; len(cases) != 2 || (cases[1].Failure == nil) != fixed {
			t.Errorf("%+v", cases)
		}
		if summary := r.has("../summary.md"); !strings.HasPrefix(summary, "## tether: ") {
			t.Errorf("summary %q", summary)
		}
		if _, err := os.Lstat(filepath.Join(r.checkout, "pwned")); err == nil {
			t.Error("the task was run as a script")
		}
		if patch := r.has("change.patch"); strings.Contains(patch, "+++ b/fixed") != fixed || strings.Contains(patch, "result.json") {
			t.Errorf("%s", patch)
		}
	}
}

// TestGitHubMatrix runs the parts of the second workflow: each task is done once.
func TestGitHubMatrix(t *testing.T) {
	r := newRunner(t)
	var w workflow
	parse(t, blocksOf(t, "ci.md", "yaml")[1], &w)
	var tasks strings.Builder
	for i := range 8 {
		fmt.Fprintf(&tasks, `{"id":"t%d","prompt":"p","dir":".","verify":"make test"}`+"\n", i)
	}
	if err := os.WriteFile(filepath.Join(r.checkout, "tasks.jsonl"), []byte(tasks.String()), 0o644); err != nil {
		t.Fatal(err)
	}
	r.set("TETHER_MODEL", r.script("write fixed < yes", "done"))
	for part := range 4 {
		r.set("PART", fmt.Sprint(part+1))
		for _, s := range w.Jobs["part"].Steps {
			if s.Run != "" {
				r.must(s.Run)
			}
		}
	}
	if out, _ := r.must("cat tasks.*-of-4.results.jsonl"); strings.Count(out, `"solved":true`) != 8 || strings.Count(out, "\n") != 8 {
		t.Errorf("%s", out)
	}
}

// TestGitLab runs the scripts of the job for GitLab.
func TestGitLab(t *testing.T) {
	r := newRunner(t)
	var jobs map[string]struct {
		Variables    map[string]string
		BeforeScript []string `yaml:"before_script"`
		Script       []string
		AfterScript  []string `yaml:"after_script"`
	}
	parse(t, blocksOf(t, "ci.md", "yaml")[2], &jobs)
	job := jobs["tether"]
	ollama := r.env[slices.IndexFunc(r.env, func(v string) bool {
		return strings.HasPrefix(v, "OLLAMA_HOST=http://127.0.0.1:") && v != "OLLAMA_HOST=http://127.0.0.1:1"
	})]
	for name, value := range job.Variables {
		r.set(name, value)
	}
	r.env = append(r.env, ollama)
	r.set("TETHER_MODEL", r.script("write fixed < yes", "done"))
	if len(job.BeforeScript) < 4 || len(job.Script) != 1 || len(job.AfterScript) != 1 {
		t.Fatalf("%+v", job)
	}
	r.must(strings.Join(slices.Concat(job.BeforeScript, job.Script, job.AfterScript), "\n"))
	if suite := readJUnit(t, []byte(r.has("report.xml"))).Suites[0]; suite.Tests != 2 || suite.Failures+suite.Errors != 0 {
		t.Errorf("%+v", suite)
	}
	if patch := r.has("change.patch"); !strings.Contains(patch, "+++ b/fixed") || strings.Contains(patch, "report.") {
		t.Error(patch)
	}
	if !strings.HasPrefix(r.has("report.md"), "## tether: 1 of 1 done\n") {
		t.Error(r.has("report.md"))
	}
}

// TestCIPage runs every other script of docs/ci.md.
func TestCIPage(t *testing.T) {
	blocks := blocksOf(t, "ci.md", "sh")
	if len(blocks) < 3 {
		t.Fatalf("%d scripts", len(blocks))
	}
	for i, block := range blocks {
		r := newRunner(t)
		r.set("TETHER_MODEL", r.script("write fixed < yes", "done"))
		if strings.Contains(block, "replies.jsonl") {
			if _, _, err := r.sh("touch fixed"); err != nil {
				t.Fatal(err)
			}
		}
		out, _ := r.must(block)
		if i == 0 && out != "done, and proved\n" {
			t.Errorf("%q", out)
		}
	}
}

// TestBatchPage runs every script of docs/batch.md, one after the other, with the tasks
// of its first block.
func TestBatchPage(t *testing.T) {
	r := newRunner(t)
	tasks := blocksOf(t, "batch.md", "jsonl")
	if len(tasks) != 1 {
		t.Fatalf("%d blocks of tasks", len(tasks))
	}
	write := func(name, text string) {
		file := filepath.Join(r.checkout, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write("tasks.jsonl", tasks[0])
	write("app/Makefile", "test:\n\ttest -f fixed\n")
	write("app/README.md", "about --json\n")
	r.set("TETHER_MODEL", r.script("write fixed < yes", "write sum.txt < 55\n", "write README.md < about --json\n", "done"))
	for name, value := range map[string]string{"SLURM_ARRAY_TASK_ID": "1", "SLURM_ARRAY_TASK_COUNT": "2", "JOB_COMPLETION_INDEX": "1"} {
		r.set(name, value)
	}
	commands := 0
	for _, block := range blocksOf(t, "batch.md", "sh") {
		for line := range strings.Lines(block) {
			if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
				r.must(line)
				commands++
			}
		}
	}
	if commands < 10 {
		t.Errorf("%d commands", commands)
	}
	if all := r.has("all.jsonl"); strings.Count(all, `"solved":true`) != 3 {
		t.Errorf("the parts together: %s", all)
	}
	if strings.TrimSpace(r.has("app/fixed")) != "yes" {
		t.Error("the patch did nothing")
	}
	for _, key := range batchKeys {
		text, err := os.ReadFile("../../docs/batch.md")
		if err != nil || !strings.Contains(string(text), "`"+key+"`") {
			t.Errorf("the key %s is not in the page (%v)", key, err)
		}
	}
	for _, status := range badness {
		text, _ := os.ReadFile("../../docs/batch.md")
		if !strings.Contains(string(text), fmt.Sprintf("\n| %d | ", status)) {
			t.Errorf("the status %d is not in the page", status)
		}
	}
}

// TestNoPrompt: without a terminal nothing is asked, also where a standard input is open
// and silent.
func TestNoPrompt(t *testing.T) {
	r := newRunner(t)
	r.set("TETHER_MODEL", r.script("write fixed < yes", "done"))
	if err := os.WriteFile(filepath.Join(r.checkout, "tether.toml"), []byte("[sandbox]\nnetwork = \"proxy\"\n[network]\nallow = [\"example.org\"]\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		line   string
		status int
	}{
		{"tether config trust", 2},
		{"tether run x", 9}, // not trusted, and nobody is asked
		{"tether act ls", 9},
		{"tether batch nothing.jsonl", 2},
		{"rm tether.toml && tether run x --tools read,write,ask,done -m " + r.script("ask Which?"), 6},
		{"tether resume", 2},
		{"tether run x -m none/none", 8},
		{"tether", 2},
	} {
		began := time.Now()
		out, errs, err := r.sh(c.line)
		exit := 0
		if e, ok := err.(*exec.ExitError); ok {
			exit = e.ExitCode()
		}
		if exit != c.status || time.Since(began) > patience {
			t.Errorf("%s: status %d after %s, want %d\n%s%s", c.line, exit, time.Since(began), c.status, out, errs)
		}
	}
}
