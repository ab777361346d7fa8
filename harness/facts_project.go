package harness

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"syscall"
	"unicode/utf8"

	"golang.org/x/sys/unix"

	window "tether/context"
)

// projectFile is where people write down what an agent should know of a project.
const projectFile = "AGENTS.md"

const (
	// projectTokens is what all of them may take: a fifteenth of the usable part of
	// a window of 8k, and paid for with every request.
	projectTokens = 400
	// projectRead is how much is looked at, in bytes: sixteen times what is shown.
	projectRead = 32 << 10
	// maxParents is how far up a repository's root is looked for.
	maxParents = 16
	// minProject is the least room, in bytes, in which the beginning of another file
	// is worth its heading.
	minProject = 200
)

// opening is the task with what is known of the workspace and of the project. The
// task comes first: where it leaves no room the project is left out.
func (r *run) opening(ctx context.Context, task string) string {
	facts := r.facts(ctx, task)
	notes, tokens := r.notes()
	task += r.Form.prompt()
	text := prompt(task, strings.Trim(notes+"\n\n"+facts, "\n"))
	if need, have := r.Budget.Fits(r.Setup.System, text); need > have {
		text, tokens = prompt(task, facts), 0
	}
	r.Setup.Facts = tokens
	return text
}

// notes is what the project's files say to an agent, and about how many tokens
// that is: the file of the workspace, and behind it those of the folders above up
// to the root of the repository, the nearest first. It is data of the project, and
// shown as that. A file that is no text, or leads elsewhere, is left out.
func (r *run) notes() (text string, tokens int) {
	if !r.Project {
		return "", 0
	}
	room := int(projectTokens * r.Budget.Bytes)
	root := r.Shell.Env.Box.Policy().Root
	name := projectFile
	for _, dir := range append([]string{root}, above(root)...) {
		said, err := r.projectFile(dir, root)
		switch {
		case errors.Is(err, fs.ErrNotExist):
		case err != nil:
			if path, ok := errors.AsType[*fs.PathError](err); ok {
				err = path.Err
			}
			r.unread = append(r.unread, fmt.Sprintf("%s is not shown to the model: %v", name, err))
		case strings.TrimSpace(said) != "" && room-window.Weight(text) >= minProject:
			text = strings.TrimLeft(text+"\n\n"+quoted(name, said, room-window.Weight(text)), "\n")
		}
		name = "../" + name
	}
	if text == "" {
		return "", 0
	}
	return text, r.Budget.Tokens(window.Weight(text))
}

// quoted is text as data from the file name, in at most room bytes.
func quoted(name, text string, room int) string {
	text = strings.TrimSpace(text)
	values := window.Values{"Name": name, "Text": text, "Fence": window.Fence(text), "More": ""}
	all := window.Text("project", values)
	if window.Weight(all) <= room {
		return all
	}
	if values["More"] = "more"; !strings.HasPrefix(name, "../") {
		values["More"] = "all of it: read " + name
	}
	most := sort.Search(min(len(text), room), func(n int) bool {
		values["Text"] = text[:n+1]
		return window.Weight(window.Text("project", values)) > room
	})
	values["Text"] = firstLines(text, most)
	return window.Text("project", values)
}

// firstLines are the whole lines of text within n bytes, or the beginning of one
// that is longer.
func firstLines(text string, n int) string {
	if len(text) <= n {
		return text
	}
	for n > 0 && !utf8.RuneStart(text[n]) {
		n--
	}
	if i := strings.LastIndexByte(text[:n], '\n'); i > n/2 {
		n = i
	}
	return text[:n]
}

// above are the folders over the workspace at root that belong to its repository,
// the nearest first. Of a folder without a repository there are none, and none of
// a repository that belongs to another user: anyone may make one in /tmp.
func above(root string) []string {
	var dirs []string
	for dir := root; len(dirs) <= maxParents; dir = filepath.Dir(dir) {
		if info, err := os.Lstat(filepath.Join(dir, ".git")); err == nil {
			if !mine(info) {
				return nil
			}
			return dirs
		}
		if dir == filepath.Dir(dir) {
			return nil
		}
		dirs = append(dirs, filepath.Dir(dir))
	}
	return nil
}

// mine says whether a file is the user's own.
func mine(info fs.FileInfo) bool {
	sys, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(sys.Uid) == os.Geteuid()
}

var (
	errNoText  = errors.New("it is not text")
	errNotMine = errors.New("it belongs to another user")
)

// projectFile reads the beginning of the file in dir. That of the workspace is
// read as all its files are. Outside, no link is followed.
func (r *run) projectFile(dir, root string) (string, error) {
	var file fs.File
	var err error
	if dir == root {
		file, err = r.Shell.Env.Box.Files().FS().Open(projectFile)
	} else {
		file, err = openPlain(dir)
	}
	if err != nil {
		return "", err
	}
	defer file.Close()
	if info, err := file.Stat(); err != nil || info.IsDir() {
		return "", errors.Join(err, errNoText)
	}
	data, err := io.ReadAll(io.LimitReader(file, projectRead))
	if err != nil {
		return "", err
	}
	for cut := 0; len(data) == projectRead && cut < utf8.UTFMax && !utf8.Valid(data); cut++ {
		data = data[:len(data)-1] // of a character that was cut
	}
	if !utf8.Valid(data) || strings.ContainsRune(string(data), 0) {
		return "", errNoText
	}
	return string(data), nil
}

// openPlain opens the file in dir if it is a regular one of the user's own. It looks
// before it opens, since some devices wake from that, and again at what it got.
func openPlain(dir string) (*os.File, error) {
	path := filepath.Join(dir, projectFile)
	info, err := os.Lstat(path)
	if err == nil && !info.Mode().IsRegular() {
		err = errNoText
	}
	if err != nil {
		return nil, err
	}
	file, err := os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK|unix.O_NOFOLLOW|unix.O_NOCTTY, 0)
	if err != nil {
		return nil, err
	}
	if info, err = file.Stat(); err == nil && !info.Mode().IsRegular() {
		err = errNoText
	} else if err == nil && !mine(info) {
		err = errNotMine
	}
	if err != nil {
		file.Close()
		return nil, err
	}
	return file, nil
}
