//go:build failpoint

package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// nemesis does harm, again and again, until ctx ends; then it mends what it
// broke.
func (j *trial) nemesis(ctx context.Context) {
	filler := filepath.Join(j.disk, "filler")
	defer os.Remove(filler)
	for ctx.Err() == nil {
		wait(ctx, time.Duration(100+j.draw(400))*time.Millisecond)
		slot := j.draw(slots)
		j.mu.Lock()
		victim := j.running[slot]
		for _, p := range j.running { // whoever halted itself at a failpoint
			hit(p, syscall.SIGCONT)
		}
		j.mu.Unlock()
		switch fault := []string{"kill", "kill", "kill", "stop", "full", "cut"}[j.draw(6)]; {
		case fault == "full":
			j.count(fault)
			fill(filler)
			wait(ctx, time.Second)
			os.Remove(filler)
		case fault == "cut":
			j.count(fault)
			j.model.cut.Store(true)
		case victim == nil:
		case fault == "stop":
			j.count(fault)
			hit(victim, syscall.SIGSTOP)
			wait(ctx, 2*time.Second)
			hit(victim, syscall.SIGCONT)
		default:
			j.count(fault)
			hit(victim, syscall.SIGKILL)
		}
	}
}

// wait returns after d or at the end of ctx.
func wait(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// fill writes until the file system is full.
func fill(file string) {
	f, err := os.Create(file)
	if err != nil {
		return
	}
	defer f.Close()
	for block := make([]byte, 64<<10); err == nil; {
		_, err = f.Write(block)
	}
}

// hit signals a process, or the one that a tracer has started.
func hit(p *os.Process, sig syscall.Signal) {
	children, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", p.Pid, p.Pid))
	name, _ := os.ReadFile(fmt.Sprintf("/proc/%d/comm", p.Pid))
	if pid, perr := strconv.Atoi(strings.TrimSpace(string(children))); err == nil && perr == nil && string(name) == "strace\n" {
		syscall.Kill(pid, sig)
		return
	}
	p.Signal(sig)
}
