package main

import (
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// A codePlace is a line of a file that a gate complained about.
type codePlace struct {
	File string `json:"file"` // slash separated, from the root of the workspace
	Line int    `json:"line"`
	Col  int    `json:"col,omitempty"`
	Text string `json:"text"`
}

// maxPlaces is how many places of one gate are told: the page of a pull request
// shows ten of a step.
const maxPlaces = 10

// placeForms are the ways in which compilers, linters and test programs name a
// place. The groups are file, line, column (may be empty) and text.
var placeForms = []*regexp.Regexp{
	regexp.MustCompile(`^()()()\s*File "([^"]+)", line (\d+)`),                            // Python
	regexp.MustCompile(`^([^\s():]+)\((\d+)(?:,(\d+))?\): *(.*)`),                         // tsc, MSBuild
	regexp.MustCompile(`(?:^|[\s('"])((?:[A-Za-z]:)?[^\s:()'"<>]+):(\d+)(?::(\d+))?(.*)`), // all others
}

// placesIn finds the places in what a gate printed that are lines of files in the
// workspace.
func placesIn(output, workspace string) []codePlace {
	ws, err := os.OpenRoot(workspace)
	if err != nil {
		return nil
	}
	defer ws.Close()
	files := &workspaceFiles{root: ws}
	root, err := filepath.Abs(workspace)
	if err != nil {
		return nil
	}
	return findPlaces(output, func(name string) string {
		name = strings.TrimPrefix(name, filepath.ToSlash(root)+"/")
		name = strings.TrimPrefix(name, filepath.ToSlash(resolved(root))+"/")
		return files.named(name)
	})
}

// findPlaces is placesIn for any workspace: file is the path from the root of the
// file that is called so in the output, or "" if there is none.
func findPlaces(output string, file func(string) string) []codePlace {
	var all []codePlace
	lines := strings.Split(escapes.ReplaceAllString(output, ""), "\n")
	for i, line := range lines {
		p, ok := placeOn(line, file)
		if !ok || slices.ContainsFunc(all, func(q codePlace) bool { return q.File == p.File && q.Line == p.Line }) {
			continue
		}
		if p.Text == "" {
			p.Text = said(lines, i)
		}
		if all = append(all, p); len(all) == maxPlaces {
			break
		}
	}
	return all
}

// escapes are the sequences with which programs colour what they print.
var escapes = regexp.MustCompile("\x1b\\[[0-9;]*[A-Za-z]|\r")

// placeOn is the place that a line names, if it names one.
func placeOn(line string, file func(string) string) (codePlace, bool) {
	if len(line) > 2000 { // no compiler writes such a line
		return codePlace{}, false
	}
	for i, form := range placeForms {
		m := form.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		name, at, col, text := m[1], m[2], m[3], m[4]
		if i == 0 {
			name, at, text = m[4], m[5], ""
		}
		n, err := strconv.Atoi(at)
		found := file(path.Clean(filepath.ToSlash(name)))
		if err != nil || n < 1 || found == "" {
			continue
		}
		c, _ := strconv.Atoi(col) // none is 0
		return codePlace{found, n, c, strings.Trim(text, ": \t)")}, true
	}
	return codePlace{}, false
}

// said is what stands beside a line that only names a place: an error before it
// (Rust), or the first line after it that is not indented (Python).
func said(lines []string, i int) string {
	if i > 0 && strings.HasPrefix(lines[i-1], "error") {
		return lines[i-1]
	}
	for _, line := range lines[i+1 : min(i+40, len(lines))] {
		if line != "" && !strings.HasPrefix(line, " ") && !strings.HasPrefix(line, "\t") {
			return line
		}
	}
	return strings.TrimSpace(lines[i])
}

// workspaceFiles knows the files of a workspace by their names.
type workspaceFiles struct {
	root *os.Root
	all  []string // made when a name is no path from the root
	read bool
}

// maxWorkspaceFiles bounds the search for a file by its name.
const maxWorkspaceFiles = 20_000

// named is the path of the file that a program calls name: it may leave out the
// folder that it ran in. Of two that could be meant it is neither.
func (w *workspaceFiles) named(name string) string {
	if !filepath.IsLocal(filepath.FromSlash(name)) || name == "." {
		return ""
	}
	if info, err := w.root.Lstat(name); err == nil {
		if info.Mode().IsRegular() {
			return name
		}
		return ""
	}
	if !w.read {
		w.list()
	}
	found := ""
	for _, file := range w.all {
		if strings.HasSuffix(file, "/"+name) {
			if found != "" {
				return ""
			}
			found = file
		}
	}
	return found
}

// list walks the workspace.
func (w *workspaceFiles) list() {
	w.read = true
	_ = fs.WalkDir(w.root.FS(), ".", func(name string, e fs.DirEntry, err error) error {
		switch {
		case err != nil: // a folder that a command has shut
			return nil
		case e.IsDir() && (e.Name() == "node_modules" || len(e.Name()) > 1 && strings.HasPrefix(e.Name(), ".")):
			return fs.SkipDir
		case len(w.all) == maxWorkspaceFiles:
			return fs.SkipAll
		case e.Type().IsRegular():
			w.all = append(w.all, name)
		}
		return nil
	})
}
