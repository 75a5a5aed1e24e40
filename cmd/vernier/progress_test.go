package main

import (
	"bytes"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/vernier-ml/vernier/api/v1beta1"
)

func TestPlainProgressPrintsOneLineAChange(t *testing.T) {
	var p plainDisplay
	running := newExperimentView(anExperiment(), []v1beta1.Trial{aTrial(1, v1beta1.TrialRunning, "")})
	first := p.update(running, noon)
	want := []string{"12:00:00 experiment charlm Running", "12:00:00 trial charlm-0001 Running lr=0.1"}
	if diff := cmp.Diff(want, first); diff != "" {
		t.Errorf("first (-want +got):\n%s", diff)
	}
	if again := p.update(running, noon.Add(time.Second)); len(again) != 0 {
		t.Errorf("nothing changed, yet it prints %q", again)
	}
	done := aTrial(1, v1beta1.TrialSucceeded, "0.25")
	after := p.update(newExperimentView(withBest(anExperiment(), done), []v1beta1.Trial{done}), noon.Add(2*time.Second))
	want = []string{"12:00:02 trial charlm-0001 Succeeded loss=0.25 lr=0.1 1s", "12:00:02 best loss=0.25 charlm-0001"}
	if diff := cmp.Diff(want, after); diff != "" {
		t.Errorf("after (-want +got):\n%s", diff)
	}
	if summary := p.update(newExperimentView(withBest(anExperiment(), done), []v1beta1.Trial{done}), noon.Add(time.Minute)); len(summary) != 1 || !strings.Contains(summary[0], "1/24 done, 0 running") {
		t.Errorf("no summary after 30 s: %q", summary)
	}
}

func TestPlainProgressTellsThingsInTheirOrder(t *testing.T) {
	var p plainDisplay
	early := anExperiment() // its own status comes after the first trials
	early.Status.Conditions = nil
	if got := p.update(newExperimentView(early, []v1beta1.Trial{aTrial(1, v1beta1.TrialRunning, "")}), noon); len(got) != 0 {
		t.Errorf("before the experiment: %q", got)
	}
	first, second := aTrial(1, v1beta1.TrialSucceeded, "0.5"), aTrial(2, v1beta1.TrialSucceeded, "0.25")
	steps := []struct {
		best   v1beta1.Trial
		trials []v1beta1.Trial
		at     time.Duration
		want   []string
	}{
		{first, []v1beta1.Trial{first, second}, 2 * time.Second, []string{
			"12:00:02 experiment charlm Running", "12:00:02 trial charlm-0001 Succeeded loss=0.5 lr=0.1 1s", "12:00:02 trial charlm-0002 Succeeded loss=0.25 lr=0.2 2s",
		}},
		{second, []v1beta1.Trial{first, second}, 3 * time.Second, []string{"12:00:03 best loss=0.25 charlm-0002"}},
		// One that is said to be the best for longer is so for a reason that only the experiment knows.
		{first, []v1beta1.Trial{first, second}, 9 * time.Second, []string{"12:00:09 best loss=0.5 charlm-0001"}},
	}
	for _, step := range steps {
		got := p.update(newExperimentView(withBest(anExperiment(), step.best), step.trials), noon.Add(step.at))
		if diff := cmp.Diff(step.want, got); diff != "" {
			t.Errorf("at %s (-want +got):\n%s", step.at, diff)
		}
	}
}

func TestPlainProgressSaysWhyATrialFailed(t *testing.T) {
	var p plainDisplay
	failed := aTrial(2, v1beta1.TrialFailed, "")
	failed.Status.Conditions[1].Message = "container training exited with code 1"
	lines := p.update(newExperimentView(ended(anExperiment(), v1beta1.ExperimentFailed, "ExperimentFailed", "too many failures"), []v1beta1.Trial{failed}), noon)
	requireText(t, strings.Join(lines, "\n"), "exited with code 1", "Failed ExperimentFailed: too many failures")
	again := aTrial(3, v1beta1.TrialFailed, "")
	again.Status.Conditions[1].Message = failed.Status.Conditions[1].Message
	lines = p.update(newExperimentView(anExperiment(), []v1beta1.Trial{failed, again}), noon)
	requireText(t, strings.Join(lines, "\n"), "trial charlm-0003 Failed lr=0.3 3s: as charlm-0002")
}

func TestPlainProgressSaysHowATrialCountsThatDiverged(t *testing.T) {
	var p plainDisplay
	lines := p.update(newExperimentView(anExperiment(), []v1beta1.Trial{aTrial(2, v1beta1.TrialSucceeded, "NaN")}), noon)
	requireText(t, strings.Join(lines, "\n"), "trial charlm-0002 Succeeded loss=NaN lr=0.2 2s: loss is not a finite number: the trial counts as done, and is never the best")
}

func TestATrialWhoseCurveDivergedIsToldApart(t *testing.T) {
	const diverged = "loss=0.25 (the last value was NaN: it diverged)"
	tests := map[string]struct {
		state     v1beta1.TrialConditionType
		latest    string
		line, why string // what they end with
		cell      string
	}{
		"the best one":               {v1beta1.TrialSucceeded, "NaN", diverged + " lr=0.1 1s", diverged + ", which is the best so far", "0.25, then NaN *"},
		"one that was stopped early": {v1beta1.TrialEarlyStopped, "-Inf", "loss=0.25 (the last value was -Inf: it diverged) lr=0.1 1s", "loss=0.25 (the last value was -Inf: it diverged)", "0.25, then -Inf *"},
		"one that only got worse":    {v1beta1.TrialSucceeded, "9", "loss=0.25 lr=0.1 1s", "loss=0.25, which is the best so far", "0.25 *"},
		"one without a last value":   {v1beta1.TrialSucceeded, "unavailable", "loss=0.25 lr=0.1 1s", "loss=0.25, which is the best so far", "0.25 *"},
		"one that still runs":        {v1beta1.TrialRunning, "NaN", "Running lr=0.1", "loss=0.25", "0.25 *"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			trial := aTrial(1, tc.state, "0.25")
			trial.Status.Observation.Metrics[1].Latest = tc.latest
			v := newExperimentView(withBest(anExperiment(), trial), []v1beta1.Trial{trial})
			got := []string{trialLine(v, v.Trials[0], noon), explainTrial(v, v.Trials[0], noon).Why}
			for i, want := range []string{tc.line, tc.why} {
				if !strings.HasSuffix(got[i], want) {
					t.Errorf("got %q, want it to end with %q", got[i], want)
				}
			}
			if diff := cmp.Diff(tc.cell, trialTable(v, v.Trials, noon).rows[0][2]); diff != "" {
				t.Errorf("cell (-want +got):\n%s", diff)
			}
		})
	}
}

func TestFrameFitsTheTerminal(t *testing.T) {
	var trials []v1beta1.Trial
	for n := range 60 {
		state := v1beta1.TrialSucceeded
		if n >= 56 {
			state = v1beta1.TrialRunning
		}
		trials = append(trials, aTrial(n, state, "0.5"))
	}
	view := newExperimentView(withBest(anExperiment(), trials[3]), trials)
	for _, s := range []size{{80, 24}, {40, 10}, {200, 60}} {
		lines := frame(view, noon, s, false)
		if len(lines) >= s.height {
			t.Errorf("%d lines in a terminal of %d", len(lines), s.height)
		}
		for _, line := range lines {
			if n := utf8.RuneCountInString(line); n > s.width {
				t.Errorf("%d characters in a terminal of %d: %q", n, s.width, line)
			}
		}
		// The running trials come first when there is no room for all.
		requireText(t, strings.Join(lines, "\n"), "charlm-0056", "charlm-0058")
	}
}

func TestFrame(t *testing.T) {
	trials := []v1beta1.Trial{aTrial(0, v1beta1.TrialSucceeded, "0.5"), aTrial(1, v1beta1.TrialRunning, "")}
	view := newExperimentView(withBest(anExperiment(), trials[0]), trials)
	want := []string{
		"charlm   sobol   minimize loss   5s",
		"[██▒▒··············································]  1/24 done, 1 running",
		"best   loss = 0.5   charlm-0000   lr=0.0",
		"",
		"TRIAL         STATE         LOSS    LR    TIME",
		"charlm-0000   ✓ Succeeded   0.5 *   0.0   0s",
		"charlm-0001   ▶ Running             0.1   5s",
	}
	if diff := cmp.Diff(want, frame(view, noon.Add(5*time.Second), size{100, 30}, false)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestLiveProgressRedrawsInPlace(t *testing.T) {
	var out bytes.Buffer
	p := liveDisplay{out: &out, size: func() size { return size{80, 24} }}
	view := newExperimentView(anExperiment(), nil)
	if err := p.show(view, noon); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(out.String(), "\x1b[5A") {
		t.Error("the first frame moves up")
	}
	drawn := p.drawn
	out.Reset()
	if err := p.show(view, noon); err != nil {
		t.Fatal(err)
	}
	if want := "\x1b[" + string(rune('0'+drawn)) + "A"; !strings.HasPrefix(out.String(), want) {
		t.Errorf("the second frame starts with %q, want %q", out.String()[:5], want)
	}
}

func TestWhatIsSaidStaysAboveTheNextFrame(t *testing.T) {
	var out bytes.Buffer
	p := liveDisplay{out: &out, size: func() size { return size{80, 24} }}
	view := newExperimentView(anExperiment(), nil)
	if err := p.show(view, noon); err != nil {
		t.Fatal(err)
	}
	out.Reset()
	p.say("no new trials")
	if err := p.show(view, noon); err != nil {
		t.Fatal(err)
	}
	if got := out.String(); !strings.HasPrefix(got, "\nno new trials\n\r") {
		t.Errorf("the next frame moves up over what was said: %q", got)
	}
}

func TestDisplayModes(t *testing.T) {
	for mode, code := range map[string]int{"auto": 0, "plain": 0, "none": 0, "live": exitUsage} {
		if _, err := newDisplay(mode, &bytes.Buffer{}); exitCode(err) != code {
			t.Errorf("mode %s without a terminal: code %d (%v), want %d", mode, exitCode(err), err, code)
		}
	}
}

func TestPlainProgressDoesNotTellOldTrialsAsNew(t *testing.T) {
	var p plainDisplay
	old, now := aTrial(1, v1beta1.TrialFailed, ""), aTrial(2, v1beta1.TrialRunning, "")
	lines := p.update(newExperimentView(anExperiment(), []v1beta1.Trial{old, now}), noon.Add(time.Hour))
	requireText(t, strings.Join(lines, "\n"), "1 trial ended before", "charlm-0002 Running")
	if strings.Contains(strings.Join(lines, "\n"), "charlm-0001") {
		t.Errorf("it tells of a trial that ended an hour ago: %q", lines)
	}
}
