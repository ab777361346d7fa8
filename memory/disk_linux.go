package memory

import (
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// remote are file systems that are shared with other machines or that may be,
// by the number that statfs gives them (linux/magic.h, and statfs(2) for those
// that are not in the kernel's headers). WAL needs memory that all processes
// share and locks that they all see.
var remote = map[uint32]string{
	unix.NFS_SUPER_MAGIC:   "NFS",
	unix.SMB_SUPER_MAGIC:   "SMB",
	unix.SMB2_SUPER_MAGIC:  "SMB",
	unix.CIFS_SUPER_MAGIC:  "SMB",
	unix.NCP_SUPER_MAGIC:   "NCP",
	unix.AFS_SUPER_MAGIC:   "AFS",
	unix.AFS_FS_MAGIC:      "AFS",
	unix.CODA_SUPER_MAGIC:  "Coda",
	unix.CEPH_SUPER_MAGIC:  "Ceph",
	unix.OCFS2_SUPER_MAGIC: "OCFS2",
	unix.V9FS_MAGIC:        "9P",
	unix.FUSE_SUPER_MAGIC:  "FUSE", // sshfs, object stores, virtiofs: nobody can tell from here
	0x0bd00bd0:             "Lustre",
	0x47504653:             "GPFS",
	0x01161970:             "GFS2",
	0x19830326:             "BeeGFS",
	0xaad7aaea:             "PanFS",
	0xbacbacbc:             "VMware shared folder",
	0x786f4256:             "VirtualBox shared folder",
}

// fileSystem is the number that statfs gives the file system of dir.
func fileSystem(dir string) (uint32, error) {
	var st unix.Statfs_t
	err := unix.Statfs(dir, &st)
	return uint32(st.Type), err
}

// reserve gives a file its blocks on the disk without writing them.
func reserve(f *os.File, size int64) error {
	return syscall.Fallocate(int(f.Fd()), 0, 0, size)
}
