// Package growth measures, for tests, whether work keeps pace with the size of its
// input. It is a ratio within one run, so that no test asserts seconds, and it imports
// nothing of this module, so that the tests of every package can have it.
package growth
