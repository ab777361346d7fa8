//go:build linux

package sandbox

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// The first arguments of the test binary that make it the two processes of a trial.
const (
	stageApart = "-escape-apart" // process 1 of the namespaces; it only prepares them
	stageTrial = "-escape-trial" // the harness, without any right
)

// apart puts a process into namespaces of its own. Real root keeps the machine's users, since the attack is to run as
// an ordinary one; everybody else needs a user namespace to be allowed the rest.
func apart(uid int) *syscall.SysProcAttr {
	a := &syscall.SysProcAttr{
		Cloneflags: unix.CLONE_NEWNET | unix.CLONE_NEWPID | unix.CLONE_NEWNS | unix.CLONE_NEWIPC | unix.CLONE_NEWUTS,
	}
	if os.Getuid() != 0 {
		a.Cloneflags |= unix.CLONE_NEWUSER
		a.UidMappings = []syscall.SysProcIDMap{{ContainerID: uid, HostID: uid, Size: 1}}
		a.GidMappings = []syscall.SysProcIDMap{{ContainerID: os.Getgid(), HostID: os.Getgid(), Size: 1}}
		a.AmbientCaps = []uintptr{unix.CAP_NET_ADMIN, unix.CAP_SYS_ADMIN}
	}
	return a
}

// runApart is process 1: it gives the namespaces a /proc, a loopback, private terminals and temporary folders, starts the trial
// without any right, and takes every process along when it ends.
func runApart() int {
	time.AfterFunc(2*time.Minute, func() { os.Exit(1) }) // every trial is bounded; this is for those that are not
	data, err := io.ReadAll(os.Stdin)
	var tr trial
	if err == nil {
		err = json.Unmarshal(data, &tr)
	}
	if err == nil {
		err = furnish(tr)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	r, w, err := os.Pipe()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	cmd := exec.Command(os.Args[0], stageTrial)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = r, os.Stdout, os.Stderr
	cmd.Dir = tr.Dir
	if os.Getuid() == 0 {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(tr.UID), Gid: uint32(tr.UID)}}
	} else if err := unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	if err := cmd.Start(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	r.Close()
	_, _ = w.Write(data) // a trial that died says so by its silence
	w.Close()
	return reap(cmd.Process.Pid)
}

// reap waits for every orphan until the trial itself has ended.
func reap(pid int) int {
	for {
		var ws unix.WaitStatus
		got, err := unix.Wait4(-1, &ws, 0, nil)
		if got == pid {
			return ws.ExitStatus()
		}
		if err != nil && !errors.Is(err, unix.EINTR) {
			return 1
		}
	}
}

// furnish mounts what a trial must have to itself.
func furnish(tr trial) error {
	lab := tr.Lab
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("private mounts: %w", err)
	}
	if err := unix.Mount("proc", "/proc", "proc", 0, ""); err != nil {
		return fmt.Errorf("/proc: %w", err)
	}
	keep, err := unix.Open(lab, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(keep)
	for _, dir := range []string{"/tmp", "/var/tmp", "/dev/shm", "/run"} {
		if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "mode=1777,size=512m"); err != nil {
			return fmt.Errorf("%s: %w", dir, err)
		}
	}
	// Terminals too: one trial writes to all that it finds.
	if err := unix.Mount("devpts", "/dev/pts", "devpts", 0, "newinstance,ptmxmode=0666,mode=0620"); err != nil {
		return fmt.Errorf("/dev/pts: %w", err)
	}
	if err := unix.Mount("/dev/pts/ptmx", "/dev/ptmx", "", unix.MS_BIND, ""); err != nil {
		return fmt.Errorf("/dev/ptmx: %w", err)
	}
	if err := os.MkdirAll(lab, 0o755); err != nil {
		return err
	}
	if err := unix.Mount(fmt.Sprintf("/proc/self/fd/%d", keep), lab, "", unix.MS_BIND, ""); err != nil {
		return fmt.Errorf("%s: %w", filepath.Base(lab), err)
	}
	if tr.Case.Hide != "" {
		if err := unix.Mount("/dev/null", tr.Case.Hide, "", unix.MS_BIND, ""); err != nil {
			return fmt.Errorf("%s: %w", tr.Case.Hide, err)
		}
	}
	return loopbackUp()
}

// loopbackUp brings up the only interface of a new network.
func loopbackUp() error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	ifr, err := unix.NewIfreq("lo")
	if err != nil {
		return err
	}
	ifr.SetUint16(unix.IFF_UP | unix.IFF_RUNNING)
	if err := unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, ifr); err != nil {
		return fmt.Errorf("loopback: %w", err)
	}
	return nil
}

// onTerminal makes a new terminal the controlling one of this process, and returns both ends.
func onTerminal() (master, slave *os.File, err error) {
	if _, err = unix.Setsid(); err != nil {
		return nil, nil, err
	}
	if master, err = os.OpenFile("/dev/ptmx", os.O_RDWR, 0); err != nil {
		return nil, nil, err
	}
	n, err := unix.IoctlGetInt(int(master.Fd()), unix.TIOCGPTN)
	if err == nil {
		err = unix.IoctlSetPointerInt(int(master.Fd()), unix.TIOCSPTLCK, 0)
	}
	if err != nil {
		return nil, nil, err
	}
	if slave, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR, 0); err != nil {
		return nil, nil, err
	}
	return master, slave, unix.IoctlSetInt(int(slave.Fd()), unix.TIOCSCTTY, 0)
}

// waiting returns what one end of a terminal has to be read: input that nobody typed, or output that nobody was to write.
// The kernel hands both over a moment later.
func waiting(master, slave *os.File) (end, text string) {
	const moment = 300 // milliseconds
	ends := []unix.PollFd{{Fd: int32(master.Fd()), Events: unix.POLLIN}, {Fd: int32(slave.Fd()), Events: unix.POLLIN}}
	_, _ = unix.Poll(ends, moment) // interrupted, it is as if there were nothing
	buf := make([]byte, 100)
	for i, e := range ends {
		if e.Revents&unix.POLLIN != 0 {
			n, _ := unix.Read(int(e.Fd), buf)
			return []string{"master", "slave"}[i], string(buf[:max(n, 0)])
		}
	}
	return "", ""
}
