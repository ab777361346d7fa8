// Package failpoint names the places at which a test breaks the program: a
// process that dies between an effect and its record, a commit that fails, a
// writer that is stopped while it holds the lock. Which place does what is read
// from TETHER_FAILPOINT.
//
// Without the build tag failpoint, which no release has, the package does
// nothing and costs nothing.
package failpoint
