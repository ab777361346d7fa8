package sandbox

import (
	"os"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// pseudo are the kinds of file systems in which nobody makes a file by accident, and those that are mounted by looking.
var pseudo = []string{"proc", "sysfs", "cgroup", "cgroup2", "devpts", "mqueue", "debugfs", "tracefs", "securityfs", "pstore", "bpf", "configfs",
	"fusectl", "hugetlbfs", "binfmt_misc", "efivarfs", "selinuxfs", "rpc_pipefs", "nsfs", "autofs", "squashfs", "iso9660"}

// writableMounts returns the places of this machine at which a file system is mounted for writing, from a text like
// /proc/self/mountinfo. A place that another mount covers, or that cannot be reached, is left out.
func writableMounts(mountinfo string) []string {
	const most = 32 // each costs every command 20 µs; desktops have ten
	var places []string
	for line := range strings.Lines(mountinfo) {
		before, after, ok := strings.Cut(line, " - ")
		fields, kind := strings.Fields(before), strings.Fields(after)
		if !ok || len(fields) < 6 || len(kind) < 1 || slices.Contains(pseudo, kind[0]) || !slices.Contains(strings.Split(fields[5], ","), "rw") {
			continue
		}
		place := octal.Replace(fields[4])
		if len(places) < most && !slices.Contains(places, place) && reachable(place) {
			places = append(places, place)
		}
	}
	return places
}

// reachable reports whether a place is a folder that this user can get to.
func reachable(place string) bool {
	fi, err := os.Lstat(place)
	return err == nil && fi.IsDir() && unix.Access(place, unix.X_OK) == nil
}
