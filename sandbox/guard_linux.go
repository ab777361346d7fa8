package sandbox

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// guard starts the command and stays beside it, outside of its restrictions. Every process that loses its parent becomes
// the guard's child, so none gets away by forking twice or by a session of its own. It ends them all when the command
// has ended, when tether says so, and when tether is gone. It returns the command's status.
func guard(o order, argv []string) int {
	// Caught and dropped: a signal that ended the guard would let them go. Ignored, they would be so for the command too.
	signal.Notify(make(chan os.Signal, 1), unix.SIGTERM, unix.SIGHUP, unix.SIGINT)
	pid, leader, err := guardStart(o, argv)
	if err != nil {
		shimFail(err)
	}
	go func() {
		awaitHangUp()
		_ = unix.PidfdSendSignal(leader, unix.SIGKILL, nil, 0)
	}()
	var ws unix.WaitStatus
	for {
		n, err := unix.Wait4(-1, &ws, 0, nil)
		if n == pid || err != nil && !errors.Is(err, unix.EINTR) {
			break
		}
	}
	endAll()
	o.Private.remove()
	status := ws.ExitStatus()
	if ws.Signaled() {
		status = 128 + int(ws.Signal())
	}
	_ = unix.Sendmsg(fdShim, []byte(strconv.Itoa(status)), nil, nil, unix.MSG_NOSIGNAL)
	return status
}

// guardStart starts the second shim, which restricts itself and becomes the command, in a session of its own: no
// terminal is in reach.
func guardStart(o order, argv []string) (pid, leader int, err error) {
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return 0, -1, err
	}
	if _, err := unix.FcntlInt(fdShim, unix.F_SETFD, 0); err != nil { // it reports on the same socket
		return 0, -1, err
	}
	o.Guard = false
	text, err := json.Marshal(o)
	if err != nil {
		return 0, -1, err
	}
	pid, err = syscall.ForkExec("/proc/self/exe", append([]string{shimName, string(text)}, argv...), &syscall.ProcAttr{
		Env: os.Environ(), Files: []uintptr{0, 1, 2}, Sys: &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL}})
	if err != nil {
		return 0, -1, err
	}
	leader, err = unix.PidfdOpen(pid, 0)
	return pid, leader, err
}

// awaitHangUp returns when the other end of the socket is closed for writing. It reads nothing: the second shim does.
func awaitHangUp() {
	for {
		n, err := unix.Poll([]unix.PollFd{{Fd: fdShim, Events: unix.POLLRDHUP}}, -1)
		if n > 0 || err != nil && !errors.Is(err, unix.EINTR) {
			return
		}
	}
}

// endAll kills every process below this one, and returns when none is left, not even a dead one.
func endAll() {
	for !collectDead(0) { // most commands leave nothing
		endBelow(os.Getpid())
		if collectDead(time.Second) {
			return
		}
	}
}

// endBelow kills every process below another. They are stopped first: while one is killed another could fork, but what
// is stopped cannot. A fork that is under way when the signal comes fails, so a look that finds nothing new has seen all.
func endBelow(pid int) {
	stopped := map[int]bool{}
	for fresh := true; fresh; {
		fresh = false
		for _, pid := range descendants(pid) {
			if !stopped[pid] {
				stopped[pid], fresh = true, true
				_ = unix.Kill(pid, unix.SIGSTOP) // gone already is fine
			}
		}
	}
	for _, pid := range descendants(pid) { // looked up anew: a number may have gone to somebody else
		_ = unix.Kill(pid, unix.SIGKILL)
	}
}

// collectDead takes in dead children until there is no child at all, and reports whether that came about in time.
func collectDead(limit time.Duration) bool {
	const pace = 2 * time.Millisecond
	for deadline := time.Now().Add(limit); ; {
		n, err := unix.Wait4(-1, nil, unix.WNOHANG, nil)
		switch {
		case n > 0 || errors.Is(err, unix.EINTR):
		case err != nil:
			return true // ECHILD
		case time.Now().After(deadline):
			return false
		default:
			time.Sleep(pace)
		}
	}
}

// descendants returns the processes below one, as the kernel lists them.
func descendants(of int) []int {
	children := map[int][]int{}
	for pid, parent := range parents() {
		children[parent] = append(children[parent], pid)
	}
	found := append([]int(nil), children[of]...)
	for i := 0; i < len(found); i++ {
		found = append(found, children[found[i]]...)
	}
	return found
}

// processes returns the numbers of all processes of the machine.
func processes() []int {
	dir, err := os.Open("/proc")
	if err != nil {
		return nil
	}
	defer dir.Close()
	names, _ := dir.Readdirnames(-1) // what could be read counts
	var pids []int
	for _, name := range names {
		if pid, err := strconv.Atoi(name); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids
}

// parents returns every process of the machine with its parent.
func parents() map[int]int {
	all := map[int]int{}
	for _, pid := range processes() {
		data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if err != nil {
			continue // it ended
		}
		text := string(data)
		// The name in parentheses may hold anything; the state and the parent follow the last one.
		fields := strings.Fields(text[strings.LastIndexByte(text, ')')+1:])
		if len(fields) > 1 {
			all[pid], _ = strconv.Atoi(fields[1])
		}
	}
	return all
}

// tasks counts the processes and threads of a user, to whom the limit on them applies as a whole; root has none.
func tasks(uid int) uint64 {
	var n uint64
	if uid == 0 {
		return 0
	}
	for _, pid := range processes() {
		data, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
		if err != nil {
			continue // it ended
		}
		text := string(data)
		if numberOf(text, "\nUid:\t") == uint64(uid) {
			n += numberOf(text, "\nThreads:\t")
		}
	}
	return n
}

// numberOf returns the number behind a name of /proc/PID/status, 0 if there is none.
func numberOf(text, name string) uint64 {
	_, rest, _ := strings.Cut(text, name)
	digits := len(rest) - len(strings.TrimLeft(rest, "0123456789"))
	n, _ := strconv.ParseUint(rest[:digits], 10, 64)
	return n
}
