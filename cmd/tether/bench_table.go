package main

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"tether/harness"
)

// A taskSum is what came of all rows of one model with one kind of check.
type taskSum struct {
	model                           string
	gates                           bool
	n, solved, right, wrong         int // wrong: the model said done, and it was not
	steps, replies, unreadable, cut int
	tokens                          harness.Count
	seconds                         float64
	seeds                           []int
	perTask                         map[string][2]int // solved, of how many
}

// sums are the rows by model and kind of check, in the order of the rows.
func (b *taskBench) sums() []*taskSum {
	var all []*taskSum
	for _, r := range b.rows {
		i := slices.IndexFunc(all, func(s *taskSum) bool { return s.model == r.Model && s.gates == r.Gates })
		if i < 0 {
			i = len(all)
			all = append(all, &taskSum{model: r.Model, gates: r.Gates, perTask: map[string][2]int{}})
		}
		all[i].add(r)
	}
	return all
}

func (s *taskSum) add(r benchRow) {
	o, of := r.Outcome, s.perTask[r.ID]
	s.n++
	of[1]++
	switch {
	case r.Solved:
		s.solved++
		of[0]++
	case o.Stop == harness.Done:
		s.wrong++
	}
	if r.Right {
		s.right++
	}
	s.perTask[r.ID] = of
	s.steps, s.seconds = s.steps+o.Steps, s.seconds+o.Seconds
	s.replies, s.unreadable, s.cut = s.replies+r.Replies, s.unreadable+r.Unreadable, s.cut+r.Cut
	s.tokens = s.tokens.Plus(o.Tokens)
	if !slices.Contains(s.seeds, r.Seed) {
		s.seeds = append(s.seeds, r.Seed)
	}
}

// name is the label of a line.
func (s *taskSum) name() string {
	if s.gates {
		return shortModel(s.model) + ", gates"
	}
	return shortModel(s.model) + ", no gates"
}

// each is what one solved task costs: all that was spent, that of the failed ones
// too, by the number of the solved.
func (s *taskSum) each(total float64, decimals int) string {
	if s.solved == 0 {
		return "–"
	}
	return strconv.FormatFloat(total/float64(s.solved), 'f', decimals, 64)
}

// wilson is the 95 % interval of a share of k in n. Unlike the usual one it holds
// for few draws and near 0 and 1: n of n leaves room for failures.
func wilson(k, n int) (low, high float64) {
	const z = 1.959964 // the two-sided 5 % point of the normal distribution
	if n == 0 {
		return 0, 1
	}
	p, m := float64(k)/float64(n), float64(n)
	middle := (p + z*z/(2*m)) / (1 + z*z/m)
	half := z / (1 + z*z/m) * math.Sqrt(p*(1-p)/m+z*z/(4*m*m))
	return max(0, middle-half), min(1, middle+half)
}

// markdown is the table of all models, and the one of all tasks.
func (b *taskBench) markdown(file string, configs []Config) string {
	sums := b.sums()
	var t strings.Builder
	fmt.Fprintf(&t, "%s: %d tasks, at most %d steps each, tether %s.\n\n", file, len(b.tasks), b.steps, strings.Join(b.versions(), ", "))
	t.WriteString("| model | solved | rate | 95 % | right at the end | wrong done | steps each | tokens each | seconds each | cached | replies | unreadable | cut |\n")
	t.WriteString("| --- | ---: | ---: | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |\n")
	for _, s := range sums {
		low, high := wilson(s.solved, s.n)
		fmt.Fprintf(&t, "| %s | %d of %d | %s | %s–%s | %d | %d | %s | %s | %s | %s | %d | %d | %d |\n",
			s.name(), s.solved, s.n, percent(s.solved, s.n), share(low), share(high), s.right, s.wrong,
			s.each(float64(s.steps), 1), s.each(float64(s.tokens.Prompt+s.tokens.Output), 0), s.each(s.seconds, 0),
			cacheShare(s.tokens), s.replies, s.unreadable, s.cut)
	}
	t.WriteString("\nSolved: the model said done and the check passes; a wrong done is one with which it does\nnot. Each: of all runs, the failed ones too, for one solved task; tokens are those of all\nprompts, the cached ones too, and replies.\n")
	if note := b.seedNote(configs); note != "" {
		t.WriteString(note)
	}
	b.byTask(&t, sums)
	return t.String()
}

// seedNote says what a seed changes.
func (b *taskBench) seedNote(configs []Config) string {
	if slices.ContainsFunc(configs, func(c Config) bool { return c.Model.Temperature > 0 }) || len(b.seeds) < 2 && b.runs < 2 {
		return ""
	}
	return "The temperature is 0: a seed changes only replies that were sampled anew, so runs of the\nsame task are alike, and the interval is too narrow.\n"
}

// versions are those of tether that made the rows.
func (b *taskBench) versions() []string {
	var all []string
	for _, r := range b.rows {
		if !slices.Contains(all, r.Tether) {
			all = append(all, r.Tether)
		}
	}
	return all
}

// byTask writes how often each task was solved.
func (b *taskBench) byTask(t *strings.Builder, sums []*taskSum) {
	t.WriteString("\n| task |")
	for _, s := range sums {
		fmt.Fprintf(t, " %s |", s.name())
	}
	t.WriteString("\n| --- |" + strings.Repeat(" ---: |", len(sums)) + "\n")
	for _, task := range b.tasks {
		fmt.Fprintf(t, "| %s |", task.ID)
		for _, s := range sums {
			of := s.perTask[task.ID]
			fmt.Fprintf(t, " %d of %d |", of[0], of[1])
		}
		t.WriteString("\n")
	}
}

// plot shows the rates with their intervals.
func (b *taskBench) plot(file string) plot {
	p := plot{Title: "Tasks solved, " + file, Note: "bars: share of the runs; lines: 95 % interval (Wilson)", Max: 1}
	for _, s := range b.sums() {
		low, high := wilson(s.solved, s.n)
		p.Bars = append(p.Bars, plotBar{Label: s.name(), Value: float64(s.solved) / float64(s.n), Low: low, High: high, Text: fmt.Sprintf("%d of %d", s.solved, s.n)})
	}
	return p
}

// percent is the share of k in n for people.
func percent(k, n int) string {
	if n == 0 {
		return "–"
	}
	return share(float64(k) / float64(n))
}

// cacheShare is the part of the prompts that servers still held, where one says so.
// Rows of before there was that word have it where there is a count.
func cacheShare(t harness.Count) string {
	if !t.CacheTold && t.Cached == 0 && t.Prompt > 0 {
		return "not told"
	}
	return percent(t.Cached, t.Prompt)
}

func share(x float64) string { return fmt.Sprintf("%.0f %%", 100*x) }
