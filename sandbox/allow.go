package sandbox

// CheckAllow says what is wrong with an entry of Policy.Allow, or returns nil.
func CheckAllow(entry string) error {
	_, err := parseRule(entry)
	return err
}
