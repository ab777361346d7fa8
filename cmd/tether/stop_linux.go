package main

import (
	"context"
	"errors"
	"time"

	"golang.org/x/sys/unix"
)

// holdProcess returns a descriptor of a process, which never comes to mean
// another one.
func holdProcess(pid int) (int, error) { return unix.PidfdOpen(pid, 0) }

func signalProcess(fd int, sig unix.Signal) error { return unix.PidfdSendSignal(fd, sig, nil, 0) }

func letGo(fd int) { unix.Close(fd) }

// waitEnd waits until the process of fd has ended, for at most patience.
func waitEnd(ctx context.Context, fd int, patience time.Duration) (bool, error) {
	for until := time.Now().Add(patience); time.Now().Before(until); {
		if ctx.Err() != nil {
			return false, context.Cause(ctx)
		}
		poll := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
		if n, err := unix.Poll(poll, int(stopLook.Milliseconds())); n > 0 {
			return true, nil
		} else if err != nil && !errors.Is(err, unix.EINTR) {
			return false, err
		}
	}
	return false, nil
}
