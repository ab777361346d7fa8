package sandbox

// LandlockPromise says in a few lines what the profile Landlock holds and what it does not.
const LandlockPromise = `held: files outside the workspace, the cache and a private temporary folder are not changed; outside of
system folders and tools none is read; no socket is opened; other processes get no signal.
not held: the repository's own files (.git) and editor settings can be changed; modes and times of your other files
can be changed; the processes of the machine are not hidden; memory and the number of processes are not counted apart.`

// prepareLandlock checks that the kernel can hold the promise.
func (b *Box) prepareLandlock() error {
	return &UnavailableError{Cause: "this build has no Landlock", Repair: textOff}
}
