// Package window computes what a model is shown. Its directory is called
// context; the package is not, so that context.Context keeps its name in the
// files that import both.
//
// Everything here is a pure function of its arguments: no clock, no file, no
// state. A window can therefore be printed, kept as a golden file, fuzzed, and
// computed again from the log of a session that ended long ago.
package window
