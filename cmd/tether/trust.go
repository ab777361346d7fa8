package main

import (
	"bufio"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
	"unicode"
	"unicode/utf8"

	"golang.org/x/sys/unix"

	"tether/act"
)

// A trust is one consent: this content of the tether.toml of that workspace may
// allow more than the user's own configuration.
type trust struct {
	Workspace string    `json:"workspace"` // its resolved path
	SHA256    string    `json:"sha256"`    // of the file, in hex
	Since     time.Time `json:"since"`
}

// trustList is the content of the trust file.
type trustList struct {
	V       int      `json:"v"` // version of the format: 1
	Trusted []trust  `json:"trusted"`
	Stores  []string `json:"stores,omitempty"` // workspaces whose .tether/tether.db is the user's own
}

// trustFile is where consents are kept: among the user's own state, out of reach
// of every workspace and of every command in a sandbox.
func trustFile(env func(string) string) string {
	return filepath.Join(xdg(env, "XDG_STATE_HOME", ".local/state"), "tether", "trust.json")
}

// mayWiden decides whether the text of a workspace's file may allow what wider
// lists.
func mayWiden(file, text string, wider []widening, env func(string) string) error {
	if len(wider) == 0 {
		return nil
	}
	if i := slices.IndexFunc(wider, func(w widening) bool { return w.Never }); i >= 0 {
		return &configError{File: file, Msg: fmt.Sprintf("%s = %q is never a workspace's file to choose\nset it with a flag, or in your own configuration", wider[i].Key, wider[i].To)}
	}
	list, err := readTrust(trustFile(env))
	if err != nil {
		return err
	}
	root, sum := resolved(filepath.Dir(file)), fingerprint(text)
	known, same := false, false
	for _, t := range list.Trusted {
		known = known || t.Workspace == root
		same = same || t.Workspace == root && t.SHA256 == sum
	}
	if same {
		return nil
	}
	why := "it is not trusted"
	if known {
		why = "it has changed since you trusted it"
	}
	return &configError{File: file, Msg: fmt.Sprintf("%s would allow more than your own configuration, and %s\nread it and decide: tether config trust%s", keysOf(wider), why, dirFlag(file))}
}

// keysOf names the settings that widen, each once.
func keysOf(wider []widening) string {
	var keys []string
	for _, w := range wider {
		if !slices.Contains(keys, w.Key) {
			keys = append(keys, w.Key)
		}
	}
	return strings.Join(keys, ", ")
}

// dirFlag is the flag that names the workspace of file, where it is another
// than the current folder.
func dirFlag(file string) string {
	if dir := filepath.Dir(file); dir != "." {
		return " --dir " + act.Quote(dir)
	}
	return ""
}

// fingerprint is the hash by which a content is known again.
func fingerprint(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

// readTrust reads the consents. One that others could have written is not
// believed.
func readTrust(file string) (trustList, error) {
	list := trustList{V: 1}
	if info, err := os.Lstat(file); err == nil {
		st, ok := info.Sys().(*syscall.Stat_t)
		if !ok || info.Mode().Perm()&0o022 != 0 || int(st.Uid) != os.Geteuid() {
			return list, &configError{File: file, Msg: "others may write to this file, so it is not believed\nlook at it, then: chmod 600 " + file}
		}
	}
	text, err := readSmall(file, syscall.O_NOFOLLOW)
	if err != nil || text == "" {
		return list, err
	}
	list.V = 0 // the file has to say it
	if err := json.Unmarshal([]byte(text), &list); err != nil || list.V != 1 {
		return list, &configError{File: file, Msg: "this is no list of trusted files\nmove it away and trust them again"}
	}
	return list, nil
}

// maxTrusted is how many consents are kept for one workspace: a file that goes
// back and forth between branches is not asked for each time.
const maxTrusted = 16

// changeTrust changes the consents by change, alone in this moment, and so that a
// crash leaves the old or the new list.
func changeTrust(file string, change func(trustList) trustList) error {
	dir := filepath.Dir(file)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("the directory %s cannot be made (%w)\nname another one with XDG_STATE_HOME", dir, reason(err))
	}
	lock, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer lock.Close() // and the lock with it
	if err := unix.Flock(int(lock.Fd()), unix.LOCK_EX); err != nil {
		return err
	}
	list, err := readTrust(file)
	if err != nil {
		return err
	}
	text, err := json.MarshalIndent(change(list), "", "  ")
	if err != nil {
		return err
	}
	return replaceFile(file, append(text, '\n'))
}

// replaceFile writes a file for its user alone, and so that others see the old
// or the new content.
func replaceFile(file string, text []byte) error {
	temp := file + "." + rand.Text() + ".tmp"
	f, err := os.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	if err = errors.Join(err, f.Sync(), f.Close()); err == nil {
		err = os.Rename(temp, file)
	}
	if err != nil {
		return errors.Join(err, os.Remove(temp))
	}
	dir, err := os.Open(filepath.Dir(file))
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}

// trustConfig shows the file of a workspace in full with what it would allow,
// asks, and records the answer. What is shown is what is hashed. A store that came
// with the workspace is asked about first.
func trustConfig(ctx context.Context, p *program, dir string, yes bool) error {
	file := workspaceFile(dir)
	if asked, err := p.trustStore(ctx, resolved(dir), yes); err != nil {
		return err
	} else if _, err := os.Lstat(file); asked && err != nil {
		return nil // that was all there is
	}
	text, wider, err := p.widenedBy(file)
	if err != nil {
		return err
	}
	if len(wider) == 0 {
		fmt.Fprintf(p.Err, "tether: %s allows nothing beyond your own configuration: there is nothing to trust\n", file)
		return nil
	}
	if err := mayWiden(file, text, wider, p.Getenv); err == nil {
		fmt.Fprintf(p.Err, "tether: %s is trusted already\n", file)
		return nil
	} else if slices.ContainsFunc(wider, func(w widening) bool { return w.Never }) {
		return err
	}
	showFile(p.Err, resolved(file), text, wider)
	if !yes {
		if yes, err = p.confirm(ctx, "Trust this file"); err != nil {
			return err
		}
	}
	if !yes {
		fmt.Fprintln(p.Err, "tether: not trusted; nothing was changed")
		return exitError(9)
	}
	root := resolved(dir)
	err = changeTrust(trustFile(p.Getenv), func(l trustList) trustList {
		l.Trusted = append(l.Trusted, trust{root, fingerprint(text), time.Now().UTC().Truncate(time.Second)})
		return l.bounded(root)
	})
	if err == nil {
		fmt.Fprintf(p.Err, "tether: %s is trusted as it is now; take it back with: tether config untrust%s\n", file, dirFlag(file))
	}
	return err
}

// bounded drops the oldest consents of a workspace beyond maxTrusted.
func (l trustList) bounded(root string) trustList {
	n := 0
	for i := len(l.Trusted) - 1; i >= 0; i-- {
		if l.Trusted[i].Workspace != root {
			continue
		}
		if n++; n > maxTrusted {
			l.Trusted = slices.Delete(l.Trusted, i, i+1)
		}
	}
	return l
}

// untrustConfig takes back every consent for a workspace.
func untrustConfig(p *program, dir string) error {
	root, n := resolved(dir), 0
	err := changeTrust(trustFile(p.Getenv), func(l trustList) trustList {
		before := len(l.Trusted)
		l.Trusted = slices.DeleteFunc(l.Trusted, func(t trust) bool { return t.Workspace == root })
		n = before - len(l.Trusted)
		if i := slices.Index(l.Stores, root); i >= 0 {
			l.Stores, n = slices.Delete(l.Stores, i, i+1), n+1
		}
		return l
	})
	if err == nil {
		fmt.Fprintf(p.Err, "tether: %d consents for %s were taken back\n", n, root)
	}
	return err
}

// widenedBy reads a workspace's file and lists what it allows beyond the user's
// own configuration.
func (p *program) widenedBy(file string) (string, []widening, error) {
	own := userConfig(p.Getenv)
	if err := ownPlaces(own, file, p.Getenv); err != nil {
		return "", nil, err
	}
	if _, err := os.Lstat(file); errors.Is(err, fs.ErrNotExist) {
		return "", nil, &configError{File: file, Msg: "there is no such file, so there is nothing to trust"}
	}
	c := Default()
	text, err := readSmall(own, 0)
	if err == nil {
		err = c.decode(own, text)
	}
	user := c
	if err == nil {
		text, err = readSmall(file, syscall.O_NOFOLLOW)
	}
	if err == nil {
		err = c.decode(file, text)
	}
	return text, widenings(user, c), err
}

// showFile prints the file, and below it what it would allow.
func showFile(w io.Writer, file, text string, wider []widening) {
	fmt.Fprintf(w, "%s\nsha256 %s\n\n", visible(file), fingerprint(text))
	for line := range strings.Lines(text) {
		fmt.Fprintf(w, "  | %s\n", visible(strings.TrimSuffix(line, "\n")))
	}
	fmt.Fprint(w, "\nIt would allow more than your own configuration:\n")
	for _, d := range wider {
		fmt.Fprintf(w, "  %s\n", visible(d.String()))
	}
	fmt.Fprintln(w)
}

// visible writes every character that does not show as what it is: control
// bytes, bytes that are no text, and those that take no room or turn the
// direction of a line around.
func visible(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == utf8.RuneError && n == 1:
			fmt.Fprintf(&b, `\x%02x`, s[i])
		case r == '\t' || r == ' ' || strconv.IsGraphic(r) && !unicode.IsSpace(r):
			b.WriteRune(r)
		default:
			b.WriteString(strings.Trim(fmt.Sprintf("%+q", r), "'"))
		}
		i += n
	}
	return b.String()
}

// confirm asks a yes or no question. Without a terminal on both sides nobody
// would answer it, and no is not the answer either.
func (p *program) confirm(ctx context.Context, question string) (bool, error) {
	in, ok := p.In.(*os.File)
	if !ok || !isTerminal(in) || !isTerminal(p.Err) {
		return false, usagef("there is no terminal to ask on\nread what it would allow, above, and say yes with: --yes")
	}
	fmt.Fprintf(p.Err, "%s? [y/N] ", question)
	answer, err := await(ctx, func() (string, error) { return bufio.NewReader(io.LimitReader(in, 100)).ReadString('\n') })
	if err != nil && !errors.Is(err, io.EOF) {
		return false, err
	}
	answer = strings.ToLower(strings.TrimSpace(answer))
	return answer == "y" || answer == "yes", nil
}
