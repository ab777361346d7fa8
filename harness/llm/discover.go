package llm

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sort"
	"strconv"
	"strings"
	"sync"

	"github.com/ollama/ollama/api"
	"github.com/ollama/ollama/types/model"
)

// largest is the size, in billions of parameters, up to which discovery takes
// a model: more does not fit a common laptop beside the user's work.
const largest = 10.0

// asked is how many models discovery asks the server about, from the largest on:
// each takes some milliseconds, and a list of hundreds must not delay the start.
const asked = 20

// An offered model is one that a server has.
type offered struct {
	name  string
	size  float64 // billions of parameters; 0: not known
	tools bool    // its template takes tools
	text  bool    // it writes text: it is not one for embeddings
}

// discoverOllama opens the model that choose takes. It returns nil if there is no
// server or no model.
func discoverOllama(ctx context.Context, c Config) (*Model, error) {
	o, err := newOllama(ctx, c)
	if err != nil {
		return nil, nil
	}
	all := o.offers(ctx)
	if len(all) == 0 {
		return nil, nil
	}
	best, why := choose(all)
	c.Log(fmt.Sprintf("model: ollama/%s, %s; another one: --model ollama/NAME", best, why))
	return o.open(ctx, c, best)
}

// choose takes the largest model that takes tools and fits a laptop, else the
// largest that fits, else the smallest of all, and says why. all is not empty.
func choose(all []offered) (name, why string) {
	all = slices.Clone(all)
	sort.SliceStable(all, func(i, j int) bool { return all[i].size > all[j].size })
	fits := func(m offered) bool { return m.text && m.size <= largest }
	of := "the only one there"
	if len(all) > 1 {
		of = fmt.Sprintf("of %d", len(all))
	}
	if i := slices.IndexFunc(all, func(m offered) bool { return fits(m) && m.tools }); i >= 0 {
		return all[i].name, of + reasonOf(len(all), fmt.Sprintf(" the largest up to %.0fB that takes tools (%s)", largest, billionsText(all[i].size)))
	}
	if i := slices.IndexFunc(all, fits); i >= 0 {
		return all[i].name, of + reasonOf(len(all), fmt.Sprintf(" the largest up to %.0fB; none of them is known to take tools", largest))
	}
	if i := lastIndex(all, func(m offered) bool { return m.text }); i >= 0 {
		return all[i].name, of + reasonOf(len(all), fmt.Sprintf(" the smallest; all have more than %.0fB", largest))
	}
	return all[0].name, of
}

// reasonOf is the reason for a choice, where there was one.
func reasonOf(n int, reason string) string {
	if n == 1 {
		return ""
	}
	return reason
}

func lastIndex(all []offered, f func(offered) bool) int {
	for i, m := range slices.Backward(all) {
		if f(m) {
			return i
		}
	}
	return -1
}

// billionsText is a size as people say it.
func billionsText(b float64) string {
	if b == 0 {
		return "its size is not told"
	}
	return strconv.FormatFloat(b, 'g', 3, 64) + "B"
}

// offers are the models of the server, with what it says of them.
func (o *ollama) offers(ctx context.Context) []offered {
	list, err := o.client(o.rt).List(ctx)
	if err != nil {
		return nil
	}
	all := make([]offered, len(list.Models))
	for i, m := range list.Models {
		all[i] = offered{name: cmp.Or(m.Name, m.Model), size: billions(m.Details.ParameterSize), text: true}
	}
	sort.SliceStable(all, func(i, j int) bool { return fitting(all[i].size) > fitting(all[j].size) })
	var wg sync.WaitGroup
	for i := range all[:min(len(all), asked)] {
		wg.Go(func() { o.describe(ctx, &all[i]) })
	}
	wg.Wait()
	return all
}

// fitting ranks sizes: what fits a laptop comes first, the largest of it before.
func fitting(size float64) float64 {
	if size > largest {
		return -size
	}
	return size
}

// describe asks the server what it knows of m.
func (o *ollama) describe(ctx context.Context, m *offered) {
	show, err := o.client(o.rt).Show(ctx, &api.ShowRequest{Model: m.name})
	if err != nil {
		return
	}
	m.size = cmp.Or(m.size, billions(show.Details.ParameterSize), counted(show.ModelInfo))
	m.tools = slices.Contains(show.Capabilities, model.CapabilityTools)
	m.text = len(show.Capabilities) == 0 || slices.Contains(show.Capabilities, model.CapabilityCompletion)
}

// counted is the number of parameters in billions that a model's file has; 0 if
// it is not told.
func counted(info map[string]any) float64 {
	n, _ := info["general.parameter_count"].(float64)
	return n / 1e9
}

// billions reads "7.6B" and "494M".
func billions(s string) float64 {
	if len(s) < 2 {
		return 0
	}
	n, err := strconv.ParseFloat(s[:len(s)-1], 64)
	switch {
	case err != nil:
		return 0
	case s[len(s)-1] == 'M':
		return n / 1000
	}
	return n
}

// Available lists the models that Open would open now, in the form of
// Config.Model: what the servers at the addresses of the environment have, and
// what was fetched. It takes as long as ctx allows, at most 4 s; a server that
// does not answer has none.
func Available(ctx context.Context) []string {
	c, err := Config{}.filled()
	if err != nil {
		return nil
	}
	names := installed(ctx, c)
	for i, name := range names { // the address is the one of the environment
		if before, ok := strings.CutSuffix(name, "@"+c.LlamaURL); ok {
			names[i] = before
		}
	}
	return names
}
