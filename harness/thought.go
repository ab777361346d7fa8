package harness

// signed is a thought that can go back as it came. One that a secret was taken
// out of cannot: it is signed, and its server would refuse the whole request.
func (r *run) signed(thought string) string {
	if r.Store.Redact(thought) != thought {
		return ""
	}
	return thought
}
