package sandbox

import "context"

// Planted returns what is new in the workspace that other programs execute or believe, as Run does after a command: for
// whoever writes there through Files. Each is told once in the life of a Box.
func (b *Box) Planted(ctx context.Context) []Finding {
	if b.scan == nil || b.awaitLook(ctx) != nil {
		return nil
	}
	return b.scan.fresh(ctx)
}

// appeared returns what a command made of the paths from which git runs programs. From the next command on they are
// protected.
func (b *Box) appeared(t tree) []Finding {
	var found []Finding
	for _, rel := range t.Absent {
		if _, err := b.files.root.Lstat(rel); err == nil {
			found = append(found, Finding{rel, "git takes programs to run from it, by its settings"})
		}
	}
	return found
}
