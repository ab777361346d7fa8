package act

import (
	"context"
	"regexp"
	"slices"
	"strings"
)

// shownMarks match the lines that stand in a window for what is not shown. A model that
// copies what it sees copies them too, and a file would keep the gap.
var shownMarks = []*regexp.Regexp{
	regexp.MustCompile(`^\[… .* …\]$`),
	regexp.MustCompile(`^\[obs_\d+ (folded|failed with status \d+, folded): `),
	regexp.MustCompile(`^\[\d+ older steps are not shown\b`),
	regexp.MustCompile(`^\[obs_\d+ to obs_\d+ are not shown\b`),
}

// recalled is what a mark names to see what it stands for.
var recalled = regexp.MustCompile(`mem recall (obs_\d+)`)

// refuseMark refuses a text for the file name that has a mark in it which the old
// text does not have.
func (e *Env) refuseMark(ctx context.Context, name, text, old string) error {
	had := strings.Split(old, "\n")
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if !strings.HasPrefix(line, "[") || !slices.ContainsFunc(shownMarks, func(re *regexp.Regexp) bool { return re.MatchString(line) }) || slices.Contains(had, line) {
			continue
		}
		try := "mem recall"
		if id := recalled.FindStringSubmatch(line); id != nil && e.Memory != nil {
			if _, err := e.Memory.Recall(ctx, e.Session, id[1]); err == nil {
				try += " " + id[1]
			}
		}
		return failed(e.can(try), "%q stands for what was not shown to you; nothing was written; look at that, and write all of %s", cutLine(line, maxMatch), name)
	}
	return nil
}
