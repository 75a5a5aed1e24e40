package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/vernier-ml/vernier/api/v1beta1"
)

// The colours of the live view. Each state has a word and a sign too, so that
// nothing depends on colour.
const (
	ansiReset  = "\x1b[0m"
	ansiBold   = "\x1b[1m"
	ansiDim    = "\x1b[2m"
	ansiRed    = "\x1b[31m"
	ansiGreen  = "\x1b[32m"
	ansiYellow = "\x1b[33m"
	ansiCyan   = "\x1b[36m"
)

// size is a terminal's size in characters.
type size struct{ width, height int }

// liveProgress redraws one block of lines in place.
type liveProgress struct {
	out   io.Writer
	color bool
	drawn int
}

// draw replaces what was drawn before by a new frame.
func (p *liveProgress) draw(v experimentView, now time.Time, s size) error {
	lines := frame(v, now, s, p.color)
	var b strings.Builder
	if p.drawn > 0 {
		fmt.Fprintf(&b, "\x1b[%dA", p.drawn)
	}
	for _, line := range lines {
		b.WriteString("\r" + line + "\x1b[K\n")
	}
	// Lines left over from a taller frame.
	b.WriteString("\x1b[J")
	p.drawn = len(lines)
	_, err := io.WriteString(p.out, b.String())
	return err
}

// say leaves the block as it is and prints a line below it; the next frame is
// drawn below the line. The first "\n" ends the "^C" that the terminal echoes.
func (p *liveProgress) say(line string) {
	p.drawn = 0
	fmt.Fprintf(p.out, "\n%s\n", line)
}

// frame is the live view as lines that fit into s: a headline, a bar, the best
// trial, and a table of running and newly finished trials.
func frame(v experimentView, now time.Time, s size, color bool) []string {
	paint := func(code, text string) string {
		if !color {
			return text
		}
		return code + text + ansiReset
	}
	lines := []string{paint(ansiBold, clip(headline(v, now), s.width))}
	lines = append(lines, clip(bar(v, min(s.width-30, 50))+"  "+countsLine(v), s.width))
	if best, ok := v.best(); ok {
		text := fmt.Sprintf("best   %s = %s   %s   %s", v.metricName(), shortNumber(best.objective()), best.Name, paramText(best.Params))
		lines = append(lines, paint(ansiCyan, clip(text, s.width)))
		if v.several() {
			lines = append(lines, paint(ansiCyan, clip(frontLine(v), s.width)))
		}
	} else {
		lines = append(lines, clip("best   none yet", s.width))
	}
	if lacks := v.lacks(); lacks != "" {
		lines = append(lines, paint(ansiYellow, clip(lacks, s.width)))
	}
	lines = append(lines, "")
	for i, row := range trialTable(v, shown(v, s.height-len(lines)-3), now).lines(false) {
		row = clip(row, s.width)
		switch {
		case i == 0:
			row = paint(ansiDim, row)
		case strings.Contains(row, signOf(v1beta1.TrialFailed)):
			row = paint(ansiRed, row)
		case strings.Contains(row, signOf(v1beta1.TrialSucceeded)):
			row = paint(ansiGreen, row)
		case strings.Contains(row, signOf(v1beta1.TrialRunning)):
			row = paint(ansiYellow, row)
		}
		lines = append(lines, row)
	}
	switch waits := v.waits(); {
	case v.finished():
		lines = append(lines, "", clip(experimentLine(v), s.width))
	case waits != "":
		lines = append(lines, "", paint(ansiYellow, clip(waits, s.width)))
	}
	return lines
}

func headline(v experimentView, now time.Time) string {
	text := v.Experiment.Name
	if a := v.Experiment.Spec.Algorithm; a != nil {
		text += "   " + a.AlgorithmName
	}
	for i, o := range v.Experiment.Spec.AllObjectives() {
		text += []string{"   ", ", "}[min(i, 1)] + fmt.Sprintf("%s %s", o.Type, o.ObjectiveMetricName)
	}
	if start := v.Experiment.Status.StartTime; start != nil {
		end := now
		if done := v.Experiment.Status.CompletionTime; done != nil && v.finished() {
			end = done.Time
		}
		text += "   " + age(end.Sub(start.Time))
	}
	return text
}

// bar is "[#####>....]": a sign for each share of the budget that is done.
func bar(v experimentView, width int) string {
	limit := v.Experiment.Spec.MaxTrialCount
	if limit == nil || *limit < 1 || width < 10 {
		return ""
	}
	c := v.counts()
	done := min(c.done()*width/int(*limit), width)
	running := min(c.Running*width/int(*limit), width-done)
	return "[" + strings.Repeat("█", done) + strings.Repeat("▒", running) + strings.Repeat("·", width-done-running) + "]"
}

// shown picks the trials of the table: all that run, then the last to finish,
// at most limit, in order of their numbers.
func shown(v experimentView, limit int) []trialView {
	limit = max(limit, 3)
	trials := slices.Clone(v.Trials)
	slices.SortStableFunc(trials, func(a, b trialView) int {
		if a.finished() != b.finished() {
			return rank(!a.finished()) - rank(!b.finished())
		}
		return b.Ended.Compare(a.Ended)
	})
	trials = trials[:min(limit, len(trials))]
	slices.SortFunc(trials, func(a, b trialView) int { return a.Number - b.Number })
	return trials
}

// trialTable is the table of trials: state, objective, parameters, duration.
func trialTable(v experimentView, trials []trialView, now time.Time) *table {
	t := &table{header: []string{"TRIAL", "STATE"}}
	metrics := v.shownMetrics()
	for _, n := range metrics {
		t.header = append(t.header, strings.ToUpper(n))
	}
	names := paramNames(v)
	for _, n := range names {
		t.header = append(t.header, strings.ToUpper(n))
	}
	t.header = append(t.header, "TIME")
	marked := v.marked()
	for _, trial := range trials {
		cells := []string{trial.Name, signOf(v1beta1.TrialConditionType(trial.State)) + " " + trial.State}
		for i, n := range metrics {
			value := v.metricCell(trial, n)
			if i == 0 && slices.Contains(marked, trial.Name) {
				value += " *"
			}
			cells = append(cells, value)
		}
		for _, n := range names {
			cells = append(cells, shortNumber(paramValue(trial.Params, n)))
		}
		t.add(append(cells, age(trial.duration(now)))...)
	}
	return t
}

// marked are the names of the best trial, or of the front of several objectives.
func (v experimentView) marked() []string {
	if v.several() {
		return v.Experiment.Status.ParetoTrialList
	}
	if best, ok := v.best(); ok {
		return []string{best.Name}
	}
	return nil
}

// frontLine says how many trials are on the front.
func frontLine(v experimentView) string {
	return fmt.Sprintf("front  %s that none beats in all objectives, marked *", countOfTrials(len(v.Experiment.Status.ParetoTrialList)))
}

// paramNames are the names of the parameters, in the order of the spec.
func paramNames(v experimentView) []string {
	var names []string
	for _, p := range v.Experiment.Spec.Parameters {
		names = append(names, p.Name)
	}
	return names
}

func paramValue(params []v1beta1.ParameterAssignment, name string) string {
	i := slices.IndexFunc(params, func(p v1beta1.ParameterAssignment) bool { return p.Name == name })
	if i < 0 {
		return ""
	}
	return params[i].Value
}

func signOf(state v1beta1.TrialConditionType) string {
	switch state {
	case v1beta1.TrialSucceeded:
		return "✓"
	case v1beta1.TrialFailed, v1beta1.TrialMetricsUnavailable:
		return "✗"
	case v1beta1.TrialEarlyStopped, v1beta1.TrialKilled:
		return "■"
	case v1beta1.TrialRunning:
		return "▶"
	}
	return "·"
}

// clip cuts text to width characters.
func clip(text string, width int) string {
	if width <= 0 || utf8.RuneCountInString(text) <= width {
		return text
	}
	runes := []rune(text)
	return string(runes[:max(width-1, 0)]) + "…"
}
