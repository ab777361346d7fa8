//go:build !failpoint

package failpoint

// Here is the place called name. It never fails in a program that is shipped.
func Here(string) error { return nil }

// Bug is false in a program that is shipped.
func Bug(string) bool { return false }
