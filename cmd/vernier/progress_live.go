package main

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/mattn/go-runewidth"
	"github.com/mitchellh/go-wordwrap"
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

// liveDisplay redraws one block of lines in place.
type liveDisplay struct {
	out   io.Writer
	size  func() size
	color bool

	mu    sync.Mutex
	drawn int // lines of the last frame
}

// show replaces the last frame by a new one.
func (d *liveDisplay) show(v experimentView, now time.Time) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	lines := frame(v, now, d.size(), d.color)
	var b strings.Builder
	if d.drawn > 0 {
		fmt.Fprintf(&b, "\x1b[%dA", d.drawn)
	}
	for _, line := range lines {
		b.WriteString("\r" + line + "\x1b[K\n")
	}
	b.WriteString("\x1b[J") // clears what is left of a taller frame
	d.drawn = len(lines)
	_, err := io.WriteString(d.out, b.String())
	return err
}

// say prints a line below the frame; the next frame is drawn below the line. The
// first "\n" ends the "^C" that the terminal echoes.
func (d *liveDisplay) say(line string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.drawn = 0
	fmt.Fprintf(d.out, "\n%s\n", visible(line, false))
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
	counts := countsLine(v)
	lines = append(lines, clip(bar(v, min(s.width-runewidth.StringWidth(counts)-4, 50))+"  "+counts, s.width))
	if best, ok := v.best(); ok {
		text := fmt.Sprintf("best   %s = %s   %s   %s", v.metricName(), shortNumber(best.objective()), best.Name, paramText(best.Params))
		lines = append(lines, paint(ansiCyan, clip(text, s.width)))
		if v.several() {
			lines = append(lines, paint(ansiCyan, clip(frontLine(v), s.width)))
		}
	} else {
		lines = append(lines, clip("best   none yet", s.width))
	}
	if lacks := cmp.Or(v.lacks(), v.lacksYet()); lacks != "" {
		lines = append(lines, paint(ansiYellow, clip(lacks, s.width)))
	}
	if waiting := v.waiting(); waiting != "" {
		wrapped := strings.Split(wordwrap.WrapString(waiting, uint(s.width)), "\n")
		for _, line := range wrapped[:min(len(wrapped), 3)] {
			lines = append(lines, paint(ansiYellow, clip(line, s.width)))
		}
	}
	lines = append(lines, "")
	rows := trialTable(v, shown(v, s.height-len(lines)-3), now)
	rows.fit(s.width, 2)
	for i, row := range rows.lines(false) {
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

// shown picks the trials of the table, at most limit: those that run, then the
// last to finish. They are in order of their numbers.
func shown(v experimentView, limit int) []trialView {
	limit = max(limit, 3)
	trials := slices.Clone(v.Trials)
	slices.SortStableFunc(trials, func(a, b trialView) int {
		return cmp.Or(rank(!a.finished())-rank(!b.finished()), b.Ended.Compare(a.Ended))
	})
	trials = trials[:min(limit, len(trials))]
	slices.SortFunc(trials, func(a, b trialView) int { return a.Number - b.Number })
	return trials
}

// trialTable is the table of trials: state, metrics, parameters, duration.
func trialTable(v experimentView, trials []trialView, now time.Time) *table {
	t := &table{header: []string{"TRIAL", "STATE"}}
	metrics, params := v.shownMetrics(), v.Experiment.Spec.Parameters
	if v.Also != "" && !slices.Contains(metrics, v.Also) {
		metrics = append(metrics, v.Also)
	}
	for _, n := range metrics {
		t.header = append(t.header, strings.ToUpper(n))
	}
	for _, p := range params {
		t.header = append(t.header, strings.ToUpper(p.Name))
	}
	t.header = append(t.header, "TIME")
	marked := v.marked()
	for _, trial := range trials {
		cells := []string{trial.Name, trial.shownState()}
		for i, n := range metrics {
			value := v.metricCell(trial, n)
			if i == 0 && slices.Contains(marked, trial.Name) {
				value += " *"
			}
			cells = append(cells, value)
		}
		for _, p := range params {
			cells = append(cells, shownParam(paramValue(trial.Params, p.Name)))
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
	if best := v.Experiment.Status.CurrentOptimalTrial.BestTrialName; best != "" { // not looked up: each row asks
		return []string{best}
	}
	return nil
}

func frontLine(v experimentView) string {
	return fmt.Sprintf("front  %s that none beats in all objectives, marked *", countOfTrials(len(v.Experiment.Status.ParetoTrialList)))
}

func paramValue(params []v1beta1.ParameterAssignment, name string) string {
	for _, p := range params {
		if p.Name == name {
			return p.Value
		}
	}
	return ""
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

func clip(text string, width int) string { return runewidth.Truncate(oneLine(text), width, ellipsis) }

const ellipsis = "…"
