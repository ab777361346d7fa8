package main

import (
	"io/fs"
	"path/filepath"

	"tether/harness"
)

// form is what the report of done must be, nil for any text. A name that is not
// absolute is one of the workspace, whoever wrote it, and no link leads out.
func (w *workplace) form() (*harness.Form, error) {
	file := w.Config.Run.Schema
	if file == "" {
		return nil, nil
	}
	if filepath.IsAbs(file) {
		return readForm(file)
	}
	text, err := w.Box.Files().ReadFile(filepath.ToSlash(filepath.Clean(file)), maxConfig)
	if err != nil {
		return nil, &configError{File: "run.schema", Msg: file + " cannot be read in the workspace: " + reason(err).Error()}
	}
	return parseForm(file, text)
}

// readForm reads the schema that the user names.
func readForm(file string) (*harness.Form, error) {
	text, err := readSmall(file, 0)
	if err == nil && text == "" {
		err = &configError{File: file, Msg: reason(fs.ErrNotExist).Error() + ", or it is empty"}
	}
	if err != nil {
		return nil, err
	}
	return parseForm(file, []byte(text))
}

func parseForm(file string, text []byte) (*harness.Form, error) {
	form, err := harness.ParseForm(text)
	if err != nil {
		return nil, &configError{File: file, Msg: err.Error()}
	}
	return form, nil
}

// useSchema takes over the flag --schema. What is wrong with the file is told before
// anything begins.
func (f *runFlags) useSchema(c *Config) error {
	if !f.fs.Changed("schema") {
		return nil
	}
	if f.schema == "" {
		return usagef("--schema is empty; name a file with a JSON Schema")
	}
	file, err := filepath.Abs(f.schema)
	if err == nil {
		_, err = readForm(file)
	}
	if err != nil {
		return usageError{"--schema " + err.Error()}
	}
	c.Run.Schema = file
	return nil
}
