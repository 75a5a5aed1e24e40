package main

import (
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/vernier-ml/vernier/collector/probe"
)

// Limits of the view. -o json has everything.
const (
	maxSeenShown     = 20
	maxRunsShown     = 5
	maxUnreadShown   = 5
	maxTroubleLength = 160
)

func writeReport(w io.Writer, r *probe.Report) error {
	var b strings.Builder
	what := r.Kind
	if r.Format != "" {
		what += ", " + r.Format
	}
	fmt.Fprintf(&b, "%s (%s): %s in %s%s\n", r.Path, what, bytesText(r.Bytes), durationText(r.Seconds), speedText(r))
	switch {
	case r.Interrupted && r.ExitCode == nil:
		fmt.Fprintln(&b, "It was interrupted. This is what was read until then.")
	case r.Interrupted:
		fmt.Fprintf(&b, "It was interrupted; the program ended with code %d. This is what it printed until then.\n", *r.ExitCode)
	case r.ExitCode != nil && *r.ExitCode != 0:
		fmt.Fprintf(&b, "The program ended with code %d.\n", *r.ExitCode)
	}
	if len(r.Metrics) > 0 {
		fmt.Fprintln(&b)
		for _, line := range metricTable(r.Metrics).lines(false) {
			fmt.Fprintln(&b, line)
		}
	}
	for _, m := range r.Metrics {
		if m.Purged > 0 {
			fmt.Fprintf(&b, "\nNot counted, as in a trial: %d points of %s from before the program began again at an earlier step\n", m.Purged, m.Name)
		}
		if m.Late {
			fmt.Fprintf(&b, "\nA trial has %s when its program ends, not while it runs%s\n", m.Name, advice(probe.Missing{Hint: m.Hint}))
		}
	}
	for _, m := range r.Missing {
		fmt.Fprintf(&b, "\nNot found: %s%s\n", m.Name, advice(m))
	}
	if len(r.Metrics) == 0 && len(r.Missing) == 0 {
		fmt.Fprintln(&b, "\nNothing in it looks like a metric.")
		if len(r.Unread) == 0 {
			fmt.Fprintln(&b, "Print each as name=value on a line, such as epoch=3 loss=0.31.")
		}
		writeUnread(&b, r.Unread)
	}
	if len(r.Seen) > 0 {
		shown := r.Seen[:min(len(r.Seen), maxSeenShown)]
		fmt.Fprintf(&b, "\nSeen too: %s%s\n", strings.Join(shown, ", "), more(len(r.Seen)-len(shown)))
	}
	writeRecorded(&b, r.Recorded)
	for _, p := range r.PassedOver {
		how := "name the file"
		if p.Format != "" {
			how = "add --format " + p.Format
		}
		fmt.Fprintf(&b, "\nPassed over: %d %s, such as %s; %s to read them\n", p.Count, p.What, p.Example, how)
	}
	writeTroubles(&b, r)
	_, err := io.WriteString(w, b.String())
	return err
}

func writeUnread(b *strings.Builder, unread []probe.Missing) {
	for _, m := range unread[:min(len(unread), maxUnreadShown)] {
		fmt.Fprintln(b, "  "+strings.TrimPrefix(m.Name+": "+m.Hint, ": "))
	}
}

// writeRecorded writes the parameters that the program recorded, a line for each
// run.
func writeRecorded(b *strings.Builder, recorded []probe.Recorded) {
	var runs []string
	values := map[string][]string{}
	for _, p := range recorded {
		if values[p.Run] == nil {
			runs = append(runs, p.Run)
		}
		values[p.Run] = append(values[p.Run], p.Name+"="+p.Value)
	}
	for _, run := range runs[:min(len(runs), maxRunsShown)] {
		where := ""
		if run != "" {
			where = " in " + run
		}
		all := values[run]
		shown := all[:min(len(all), maxSeenShown)]
		fmt.Fprintf(b, "\nThe program recorded %s%s%s\n", strings.Join(shown, ", "), more(len(all)-len(shown)), where)
	}
	if left := len(runs) - maxRunsShown; left > 0 {
		fmt.Fprintf(b, "\nParameters were recorded in %d more runs\n", left)
	}
}

func more(n int) string {
	if n <= 0 {
		return ""
	}
	return fmt.Sprintf(" and %d more", n)
}

func writeTroubles(b *strings.Builder, r *probe.Report) {
	if len(r.Troubles) == 0 {
		return
	}
	fmt.Fprintf(b, "\nCould not be read (%d):\n", len(r.Troubles)+r.MoreTroubles)
	for _, t := range r.Troubles {
		text := []rune(t.Text)
		if len(text) > maxTroubleLength {
			text = append(text[:maxTroubleLength], '…')
		}
		if t.Line > 0 {
			fmt.Fprintf(b, "  line %d: %s\n", t.Line, string(text))
		} else {
			fmt.Fprintf(b, "  %s\n", string(text))
		}
	}
	if r.MoreTroubles > 0 {
		fmt.Fprintf(b, "  and %d more\n", r.MoreTroubles)
	}
}

func metricTable(metrics []probe.Metric) *table {
	t := &table{header: []string{"METRIC", "POINTS", "FIRST", "LAST", "MIN", "MAX", "STEPS", "TIME"}}
	for _, m := range metrics {
		points := strconv.Itoa(m.Count)
		if m.NaNs > 0 {
			points += fmt.Sprintf(" (%d NaN)", m.NaNs)
		}
		t.add(m.Name, points, numberText(&m.First), numberText(&m.Last), numberText(m.Min), numberText(m.Max), stepsText(m), spanText(m))
	}
	return t
}

func numberText(n *probe.Number) string {
	if n == nil {
		return "-"
	}
	return strconv.FormatFloat(float64(*n), 'g', 6, 64)
}

func stepsText(m probe.Metric) string {
	if m.FirstStep == nil {
		return "none"
	}
	text := strconv.FormatInt(*m.FirstStep, 10)
	if *m.LastStep != *m.FirstStep {
		text += " to " + strconv.FormatInt(*m.LastStep, 10)
	}
	if m.Stepless > 0 {
		text += fmt.Sprintf(" (%d without)", m.Stepless)
	}
	return text
}

func spanText(m probe.Metric) string {
	if m.Begin == nil {
		return "not stated"
	}
	begin := m.Begin.UTC().Format(time.DateTime)
	if span := m.End.Sub(*m.Begin); span > 0 {
		return begin + " +" + span.Round(time.Millisecond).String()
	}
	return begin
}

func bytesText(n int64) string {
	for _, unit := range []struct {
		size int64
		name string
	}{{1e9, "GB"}, {1e6, "MB"}, {1e3, "kB"}} {
		if n >= unit.size {
			return strconv.FormatFloat(float64(n)/float64(unit.size), 'f', 1, 64) + " " + unit.name
		}
	}
	return fmt.Sprintf("%d bytes", n)
}

func durationText(seconds float64) string {
	d := time.Duration(seconds * float64(time.Second))
	unit := time.Microsecond
	if d > time.Second {
		unit = 10 * time.Millisecond
	}
	return d.Round(unit).String()
}

// speedText is empty where little was read: it would say how long the start
// takes.
func speedText(r *probe.Report) string {
	if r.Bytes < 1<<20 || r.Seconds <= 0 {
		return ""
	}
	points := 0
	for _, m := range r.Metrics {
		points += m.Count
	}
	return fmt.Sprintf(" (%.0f MB/s, %s points/s)", float64(r.Bytes)/1e6/r.Seconds, countText(float64(points)/r.Seconds))
}

func countText(n float64) string {
	if n >= 1e6 {
		return strconv.FormatFloat(n/1e6, 'f', 1, 64) + " million"
	}
	return strconv.FormatFloat(math.Round(n), 'f', -1, 64)
}

// advice says what may be done about a metric that was not found.
func advice(m probe.Missing) string {
	switch {
	case m.Hint != "":
		return "; " + m.Hint
	case len(m.Near) > 0:
		return "; did you mean " + strings.Join(m.Near, " or ") + "?"
	}
	return ""
}

// missingMessage names the metrics unless the table has done so.
func missingMessage(missing []probe.Missing, output string) string {
	var names []string
	for _, m := range missing {
		names = append(names, m.Name)
	}
	switch {
	case output == "table" && len(names) == 1:
		return "one metric was not found"
	case output == "table":
		return fmt.Sprintf("%d metrics were not found", len(names))
	case len(names) == 1:
		return "the metric " + names[0] + " was not found"
	}
	return "these metrics were not found: " + strings.Join(names, ", ")
}
