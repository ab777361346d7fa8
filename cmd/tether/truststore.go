package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
)

// ownStore refuses a store that came with the workspace: the sessions in it would
// be gone on with, and its notes be found, as if they were the user's.
func ownStore(root, state string, env func(string) string) error {
	if state != storeIn(root) {
		return nil
	}
	if _, err := os.Lstat(state); errors.Is(err, fs.ErrNotExist) {
		return nil // it is about to be made here
	}
	list, err := readTrust(trustFile(env))
	if err != nil || slices.Contains(list.Stores, root) {
		return err
	}
	return &configError{File: state, Msg: "this state was not made here by you, and what it says happened would be believed\nif it is yours: tether config trust" + dirFlag(workspaceFile(root)) + "; else move it away"}
}

// claimStore records, before it is made, that the store inside a workspace is the
// user's. One that is there has been asked about.
func claimStore(path string, env func(string) string) error {
	root := filepath.Dir(filepath.Dir(path))
	if path != storeIn(root) {
		return nil
	}
	if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return addStore(root, env)
}

func addStore(root string, env func(string) string) error {
	return changeTrust(trustFile(env), func(l trustList) trustList {
		if !slices.Contains(l.Stores, root) {
			l.Stores = append(l.Stores, root)
		}
		return l
	})
}

// trustStore asks about a store that came with the workspace, if there is one.
func (p *program) trustStore(ctx context.Context, root string, yes bool) (asked bool, err error) {
	state := storeIn(root)
	if ownStore(root, state, p.Getenv) == nil {
		return false, nil
	}
	info, err := os.Lstat(state)
	if err != nil {
		return false, err
	}
	fmt.Fprintf(p.Err, "%s\n%d bytes, of %s\n\nIts sessions and notes came with the workspace, and would be taken for your own.\n\n",
		visible(state), info.Size(), info.ModTime().Format("2006-01-02 15:04"))
	if !yes {
		if yes, err = p.confirm(ctx, "Trust this state"); err != nil {
			return true, err
		}
	}
	if !yes {
		fmt.Fprintln(p.Err, "tether: not trusted; nothing was changed")
		return true, exitError(9)
	}
	return true, addStore(root, p.Getenv)
}
