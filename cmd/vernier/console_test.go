package main

import (
	"bytes"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/creack/pty"

	"github.com/vernier-ml/vernier/api/v1beta1"
)

func TestWhatATerminalWouldObeyIsWritten(t *testing.T) {
	tests := map[string]struct{ text, plain, colored string }{
		"text":            {"größe 5 ⣿█ 模型\t✓\n", "größe 5 ⣿█ 模型\t✓\n", "größe 5 ⣿█ 模型\t✓\n"},
		"a title":         {"\x1b]0;owned\a", `\x1b]0;owned\x07`, `\x1b]0;owned\x07`},
		"the clipboard":   {"\x1b]52;c;eA==\x1b\\", `\x1b]52;c;eA==\x1b\`, `\x1b]52;c;eA==\x1b\`},
		"the cursor":      {"a\x1b[2Jb\x1b[1A", `a\x1b[2Jb\x1b[1A`, `a\x1b[2Jb\x1b[1A`},
		"a colour":        {"\x1b[1;38;5;208mwarm\x1b[0m\x1b[m", `\x1b[1;38;5;208mwarm\x1b[0m\x1b[m`, "\x1b[1;38;5;208mwarm\x1b[0m\x1b[m"},
		"hidden":          {"\x1b[8mx\x1b[40;30my", `\x1b[8mx\x1b[40;30my`, `\x1b[8mx\x1b[40;30my`},
		"one byte each":   {"\u009b2J\x9b2J", `\u009b2J\x9b2J`, `\u009b2J\x9b2J`},
		"another way":     {"ab\u202ecd", `ab\u202ecd`, `ab\u202ecd`},
		"a progress bar":  {"1%\r2%\b", `1%\x0d2%\x08`, "1%\r2%" + `\x08`},
		"ends of Windows": {"a\r\nb", "a\r\nb", "a\r\nb"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := visible(test.text, false); got != test.plain {
				t.Errorf("plain: got %q, want %q", got, test.plain)
			}
			if got := visible(test.text, true); got != test.colored {
				t.Errorf("colored: got %q, want %q", got, test.colored)
			}
		})
	}
}

// screen is a terminal, and what was written to it when it is closed.
func screen(t *testing.T) (terminal *os.File, shown func() string) {
	t.Helper()
	master, slave, err := pty.Open()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { master.Close(); slave.Close() })
	out := make(chan string, 1)
	go func() {
		data, _ := io.ReadAll(master) // ends with EIO when the other side is closed
		out <- string(data)
	}()
	return slave, func() string {
		slave.Close()
		return strings.ReplaceAll(<-out, "\r\n", "\n")
	}
}

func TestAConsoleObeysNothing(t *testing.T) {
	tests := map[string]struct {
		write func(io.Writer)
		want  string
	}{
		"copied":   {func(w io.Writer) { _, _ = io.Copy(w, strings.NewReader("a\x1b[2Jb\n")) }, `a\x1b[2Jb` + "\n"},
		"a string": {func(w io.Writer) { _, _ = io.WriteString(w, "a\x1b[2Jb\n") }, `a\x1b[2Jb` + "\n"},
		"in pieces": {func(w io.Writer) {
			w = withColors(w)
			for _, b := range []byte("\x1b[31m模\x1b[0m\x1b[2J\n") {
				_, _ = w.Write([]byte{b})
			}
		}, "\x1b[31m模\x1b[0m" + `\x1b[2J` + "\n"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			terminal, shown := screen(t)
			test.write(newConsole(terminal))
			if got := shown(); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

// What is not a terminal is a file or a program, which gets what there is.
func TestWhatIsNoTerminalGetsTheBytes(t *testing.T) {
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer read.Close()
	if _, err := newConsole(write).Write([]byte("a\x1b[2Jb")); err != nil {
		t.Fatal(err)
	}
	write.Close()
	if got, err := io.ReadAll(read); string(got) != "a\x1b[2Jb" || err != nil {
		t.Errorf("got %q, %v", got, err)
	}
}

// TestNoViewObeysWhatItShows holds that of a hostile experiment nothing moves the
// cursor: the views that draw themselves, and the tables of all others.
func TestNoViewObeysWhatItShows(t *testing.T) {
	const hostile = "\x1b]0;owned\a\x1b[2J\n\u009b1A"
	e, trial := anExperiment(), aTrial(1, v1beta1.TrialFailed, "0.5")
	e.Spec.Objective.ObjectiveMetricName, e.Spec.Parameters[0].Name = hostile, hostile
	trial.Spec.ParameterAssignments[0] = v1beta1.ParameterAssignment{Name: hostile, Value: hostile}
	trial.Status.Observation.Metrics[1] = v1beta1.Metric{Name: hostile, Min: hostile, Latest: hostile}
	trial.Status.Conditions[1].Message = hostile
	view := newExperimentView(ended(withBest(e, trial), v1beta1.ExperimentFailed, "Failed", hostile), []v1beta1.Trial{trial})

	var live, rows bytes.Buffer
	d := &liveDisplay{out: &live, size: func() size { return size{width: 80, height: 24} }}
	if err := d.show(view, noon.Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	if err := trialTable(view, view.Trials, noon).write(&rows, false); err != nil {
		t.Fatal(err)
	}
	shown := strings.NewReplacer("\r", "", "\x1b[K", "", "\x1b[J", "").Replace(live.String()) // its own
	for name, text := range map[string]string{"live": shown, "table": rows.String()} {
		if strings.ContainsAny(text, "\x1b\a\u009b") {
			t.Errorf("%s: %q", name, text)
		}
	}
	if lines := strings.Count(rows.String(), "\n"); lines != 2 {
		t.Errorf("a table of one trial has %d lines", lines)
	}
	terminal, screened := screen(t)
	describeExperiment(newConsole(terminal), view, noon)
	describeTrial(newConsole(terminal), view.Experiment, view.Trials[0], noon)
	if text := screened(); strings.ContainsAny(text, "\x1b\a\u009b") || !strings.Contains(text, `\x1b[2J`) {
		t.Errorf("describe: %q", text)
	}
}

func TestWhatCannotBePrintedIsAnError(t *testing.T) {
	null, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	for name, c := range map[string]struct {
		out  string
		args []string
		code int
	}{
		"a description":             {os.DevNull, []string{"optimize", "--describe", "tpe"}, 0},
		"a description, disk full":  {"/dev/full", []string{"optimize", "--describe", "tpe"}, exitFailure},
		"a version, disk full":      {"/dev/full", []string{"version"}, exitFailure},
		"an error has its own code": {"/dev/full", []string{"optimize", "--describe", "nothing"}, exitUsage},
	} {
		t.Run(name, func(t *testing.T) {
			out, err := os.OpenFile(c.out, os.O_WRONLY, 0)
			if err != nil {
				t.Skipf("NOT RUN: this system has no disk that is always full: %v", err)
			}
			defer out.Close()
			if code := execute(t.Context(), append([]string{"vernier"}, c.args...), out, null); code != c.code {
				t.Errorf("exit code %d, want %d", code, c.code)
			}
		})
	}
}
