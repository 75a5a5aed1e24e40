package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/vernier-ml/vernier/api/v1beta1"
)

// plainDisplay prints one line for each change of state, and a summary every
// 30 s.
type plainDisplay struct {
	out    io.Writer
	silent bool // only what is said is printed

	mu          sync.Mutex
	states      map[string]string
	experiment  string
	best        string
	waits       string
	lacks       bool
	lacksYet    bool
	why, whose  string // the last reason that a trial failed, and the first that had it
	lastSummary time.Time
}

const summaryInterval = 30 * time.Second

func (p *plainDisplay) say(line string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	fmt.Fprintln(p.out, line)
}

func (p *plainDisplay) show(v experimentView, now time.Time) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.silent {
		return nil
	}
	for _, line := range p.update(v, now) {
		if _, err := fmt.Fprintln(p.out, line); err != nil {
			return err
		}
	}
	return nil
}

func (p *plainDisplay) update(v experimentView, now time.Time) []string {
	var lines []string
	say := func(format string, args ...any) {
		lines = append(lines, now.Format(time.TimeOnly)+" "+fmt.Sprintf(format, args...))
	}
	if p.states == nil {
		p.lastSummary = now
		if before := p.begin(v, now); before > 0 {
			say("experiment %s: %s ended before", v.Experiment.Name, countOfTrials(before))
		}
	}
	sayExperiment := func() {
		if state := v.State + v.Reason; v.State != "" && state != p.experiment {
			p.experiment = state
			say("experiment %s %s", v.Experiment.Name, experimentLine(v))
			p.lastSummary = now
		}
	}
	if !v.finished() { // its end comes after those of its trials
		sayExperiment()
	}
	for _, t := range v.Trials {
		state := t.State + t.Waits
		if v.State == "" || state == "" || state == string(v1beta1.TrialCreated) || p.states[t.Name] == state {
			continue
		}
		p.states[t.Name] = state
		if isBad(t.State) && t.Message != "" && t.Message == p.why {
			t.Message = "as " + p.whose
		} else if isBad(t.State) {
			p.why, p.whose = t.Message, t.Name
		}
		say("%s", trialLine(v, t, now))
	}
	if yet := v.lacksYet(); yet != "" && !p.lacksYet {
		p.lacksYet = true
		say("%s", yet)
	}
	if lacks := v.lacks(); lacks != "" && !p.lacks {
		p.lacks = true
		say("%s", lacks)
	}
	if best, ok := v.best(); ok && best.Name != p.best && !v.late(best, now) {
		p.best = best.Name
		say("best %s=%s %s", v.metricName(), shortNumber(best.objective()), best.Name)
	}
	sayExperiment()
	if waits := v.waits(); waits != p.waits {
		if p.waits = waits; waits != "" {
			say("experiment %s %s", v.Experiment.Name, waits)
		}
	}
	if now.Sub(p.lastSummary) >= summaryInterval {
		p.lastSummary = now
		say("experiment %s %s", v.Experiment.Name, countsLine(v))
	}
	return lines
}

// late says that a trial that has just ended beats the best one: the experiment names the
// new best a moment after its trial ends.
func (v experimentView) late(best trialView, now time.Time) bool {
	value, _ := best.score()
	return slices.ContainsFunc(v.Trials, func(t trialView) bool {
		score, ok := t.score()
		return ok && t.State == string(v1beta1.TrialSucceeded) && now.Sub(t.Ended) < 5*time.Second && v.better(score, value) && v.feasible(t)
	})
}

// begin leaves aside the trials that ended before anything was shown, and counts them.
func (p *plainDisplay) begin(v experimentView, now time.Time) (before int) {
	p.states = map[string]string{}
	for _, t := range v.Trials {
		if t.finished() && now.Sub(t.Ended) > summaryInterval {
			p.states[t.Name] = t.State + t.Waits
			before++
		}
	}
	return before
}

func trialLine(v experimentView, t trialView, now time.Time) string {
	if t.Waits != "" {
		return fmt.Sprintf("trial %s waits: %s", t.Name, t.Waits)
	}
	line := fmt.Sprintf("trial %s %s", t.Name, t.State)
	if value := t.objective(); t.finished() && value != "" {
		line += fmt.Sprintf(" %s=%s%s", v.metricName(), shortNumber(value), t.divergence(v.metricName()))
	}
	line += " " + paramText(t.Params)
	if t.finished() {
		line += " " + age(t.duration(now))
	}
	switch {
	case isBad(t.State) && t.Message != "":
		line += ": " + cause(t.Message)
	case t.State == string(v1beta1.TrialSucceeded) && t.notFinite():
		line += ": " + v.metricName() + " is " + neverBest
	}
	return line
}

// cause is why a trial failed, without the words that each failure has.
func cause(message string) string {
	const limit = "Job reason: BackoffLimitExceeded. Job message: Job has reached the specified backoff limit"
	message = afterWords(afterWords(message, "Trial has failed."), limit+". ")
	return strings.TrimSuffix(message, ". "+limit)
}

func experimentLine(v experimentView) string {
	line := v.State
	if v.finished() {
		line = strings.TrimSpace(line + " " + v.Reason)
		if said := v.brief(v.Message); said != "" {
			line += ": " + said
		}
	}
	return line
}

func isBad(state string) bool {
	return state == string(v1beta1.TrialFailed) || state == string(v1beta1.TrialMetricsUnavailable)
}
