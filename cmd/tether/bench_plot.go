package main

import (
	"fmt"
	"html"
	"strings"
)

// A plot is a set of horizontal bars with their labels: one for each line of a
// table. Text stays text, so that it can be read aloud and searched.
type plot struct {
	Title, Note string
	Max         float64 // what a full bar stands for; 0: the largest value
	Bars        []plotBar
}

// A plotBar is one value. Low and High, if they differ, are its interval.
type plotBar struct {
	Label, Text      string
	Value, Low, High float64
}

// Sizes of a plot in pixels: labels of 40 letters and bars beside them fit into
// the width in which a page on the web shows a picture.
const (
	plotWidth  = 760
	labelWidth = 300
	barWidth   = 340
	barStep    = 30
	barHeight  = 16
	plotTop    = 56
)

// plotStyle colours a plot for light and for dark pages. Nothing is told by
// colour alone.
const plotStyle = `text{font:14px system-ui,sans-serif;fill:#1f2328}.n{font-size:12px;fill:#59636e}.t{font-size:16px;font-weight:600}.b{fill:#2f6feb}.g{fill:#8c959f;opacity:.25}.w{stroke:#1f2328;stroke-width:2}` +
	`@media(prefers-color-scheme:dark){text{fill:#f0f6fc}.n{fill:#9198a1}.b{fill:#4493f8}.g{fill:#9198a1}.w{stroke:#f0f6fc}}`

// svg draws the plot.
func (p plot) svg() string {
	full := p.Max
	for _, b := range p.Bars {
		full = max(full, b.Value, b.High)
	}
	if full == 0 {
		full = 1
	}
	height := plotTop + barStep*len(p.Bars) + 28
	var s strings.Builder
	fmt.Fprintf(&s, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" role="img" aria-label="%s">`+"\n", plotWidth, height, plotWidth, html.EscapeString(p.Title))
	fmt.Fprintf(&s, "<style>%s</style>\n", plotStyle)
	fmt.Fprintf(&s, `<text class="t" x="8" y="26">%s</text>`+"\n", html.EscapeString(p.Title))
	for i, b := range p.Bars {
		b.draw(&s, plotTop+barStep*i, full)
	}
	fmt.Fprintf(&s, `<text class="n" x="8" y="%d">%s</text>`+"\n</svg>\n", height-10, html.EscapeString(p.Note))
	return s.String()
}

// draw draws one bar at the height y, of which a full one is full.
func (b plotBar) draw(s *strings.Builder, y int, full float64) {
	at := func(v float64) float64 { return labelWidth + barWidth*v/full }
	fmt.Fprintf(s, `<text x="%d" y="%d" text-anchor="end">%s</text>`, labelWidth-10, y+13, html.EscapeString(b.Label))
	fmt.Fprintf(s, `<rect class="g" x="%d" y="%d" width="%d" height="%d"/>`, labelWidth, y, barWidth, barHeight)
	fmt.Fprintf(s, `<rect class="b" x="%d" y="%d" width="%.1f" height="%d"/>`, labelWidth, y, at(b.Value)-labelWidth, barHeight)
	if b.High > b.Low {
		fmt.Fprintf(s, `<path class="w" d="M%.1f %d h%.1f M%.1f %d v8 M%.1f %d v8"/>`, at(b.Low), y+barHeight/2, at(b.High)-at(b.Low), at(b.Low), y+barHeight/2-4, at(b.High), y+barHeight/2-4)
	}
	fmt.Fprintf(s, `<text x="%d" y="%d">%s</text>`+"\n", labelWidth+barWidth+10, y+13, html.EscapeString(b.Text))
}
