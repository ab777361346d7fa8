//go:build linux

package sandbox

import (
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
)

// prepare makes the field: files, listeners, a process of the host, and an environment with secrets in it.
func (f *field) prepare() error {
	f.id = strconv.Itoa(100_000 + os.Getpid()%900_000) // digits: it becomes the seconds of a sleep
	f.home = filepath.Join(f.Dir, "home")
	f.ws, f.out = filepath.Join(f.home, "ws"), filepath.Join(f.home, "outside")
	f.run, f.bak, f.log = filepath.Join(f.Dir, "run"), filepath.Join(f.Dir, "bak"), filepath.Join(f.Dir, "log")
	f.sock = "/run/daemon-" + f.id + ".sock"
	for _, dir := range []string{f.ws + "/.tether", f.out, f.home + "/.ssh", f.run, f.bak} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
	}
	for name, text := range map[string]string{
		f.ws + "/tether.toml": "x=1\n", f.ws + "/.tether/tether.db": "DBSECRET\n", f.ws + "/README": "read me\n",
		f.out + "/victim.txt": "original\n", f.home + "/.ssh/id_rsa": "SECRETKEY\n",
	} {
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			return err
		}
	}
	f.environment()
	if out, err := exec.Command("git", "init", "-q", f.ws).CombinedOutput(); err != nil {
		return fmt.Errorf("git init: %w: %s", err, out)
	}
	if err := copyTo(f.ws+"/.git/config", f.bak+"/git-config"); err != nil {
		return err
	}
	f.sleeper = exec.Command("sleep", "86400")
	if err := f.sleeper.Start(); err != nil {
		return err
	}
	return f.listen()
}

// environment is what a harness of a real user would have around it.
func (f *field) environment() {
	for name, value := range map[string]string{
		"HOME": f.home, "TETHER_SECRET": "ENVSECRET", "SSH_AUTH_SOCK": f.sock + ".agent", "DBUS_SESSION_BUS_ADDRESS": "unix:path=" + f.sock,
		"LD_PRELOAD": "libc.so.6",
	} {
		os.Setenv(name, value)
	}
}

func copyTo(from, to string) error {
	data, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return os.WriteFile(to, data, 0o644)
}

// listen opens what an attack may want to reach. Each listener leaves a mark when it is touched.
func (f *field) listen() error {
	for _, port := range []string{"18996", "18997", "18999"} {
		if err := f.accept("tcp", "127.0.0.1:"+port, "tcp."+port); err != nil {
			return err
		}
	}
	for name, mark := range map[string]string{f.sock: "unix", f.sock + ".agent": "agent", "@abstract-" + f.id: "abstract"} {
		if err := f.accept("unix", name, mark); err != nil {
			return err
		}
	}
	udp, err := net.ListenPacket("udp", "127.0.0.1:18998")
	if err != nil {
		return err
	}
	go func() {
		buf := make([]byte, 1500)
		if n, _, err := udp.ReadFrom(buf); err == nil {
			f.mark("udp", buf[:n])
		}
	}()
	return nil
}

// accept marks every connection, and answers it as an HTTP server would.
func (f *field) accept(network, address, mark string) error {
	l, err := net.Listen(network, address)
	if err != nil {
		return err
	}
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			f.mark(mark, []byte("touched\n"))
			_, _ = io.WriteString(c, "HTTP/1.0 200 OK\r\n\r\nREACHED\n") // the other side may be gone
			c.Close()
		}
	}()
	return nil
}

// mark leaves a trace. That it cannot be left would be seen by the control, which must have it.
func (f *field) mark(name string, data []byte) {
	_ = os.WriteFile(filepath.Join(f.run, name+".hit"), data, 0o644)
}
