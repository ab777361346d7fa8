//go:build !linux

package main

import (
	"context"
	"errors"
	"time"

	"golang.org/x/sys/unix"
)

// holdProcess returns the number of a process, since nothing holds on to one
// here: what is between two looks at it is left to chance.
func holdProcess(pid int) (int, error) { return pid, unix.Kill(pid, 0) }

func signalProcess(pid int, sig unix.Signal) error { return unix.Kill(pid, sig) }

func letGo(int) {}

// waitEnd waits until the process has ended, for at most patience.
func waitEnd(ctx context.Context, pid int, patience time.Duration) (bool, error) {
	look := time.NewTicker(stopLook)
	defer look.Stop()
	for until := time.Now().Add(patience); time.Now().Before(until); {
		if errors.Is(unix.Kill(pid, 0), unix.ESRCH) {
			return true, nil
		}
		select {
		case <-look.C:
		case <-ctx.Done():
			return false, context.Cause(ctx)
		}
	}
	return false, nil
}
