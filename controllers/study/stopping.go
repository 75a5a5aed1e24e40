package study

import (
	"context"
	"fmt"
	"slices"

	"github.com/vernier-ml/vernier/api/v1beta1"
	"github.com/vernier-ml/vernier/collector"
	"github.com/vernier-ml/vernier/suggest"
)

// Scan reads what a trial has reported of some metrics so far: that of
// collector.Reader.
type Scan func(ctx context.Context, trialUID string, metrics []string, yield func(collector.Attempt, collector.Point) error) error

// Stop is a trial to stop early, and why.
type Stop struct {
	Trial *v1beta1.Trial
	Why   string
}

// StopsEarly says whether there is a rule that stops trials early.
func (s *Study) StopsEarly() bool { return s.stopper != nil && len(s.base.Objectives) > 0 }

// Judge asks the stopping rule which of the running trials to stop, and says how many
// may go on. Those that were asked to stop before are left out.
func (s *Study) Judge(ctx context.Context, scan Scan) (stops []Stop, spared int, err error) {
	if err := s.ReadCurves(ctx, scan); err != nil {
		return nil, 0, err
	}
	now := s.base
	entries := slices.Clone(s.trials.entries)
	var running []int
	for i := range entries {
		if entries[i].trial.State != suggest.Running {
			continue
		}
		if err := s.readCurve(ctx, scan, &entries[i]); err != nil {
			return nil, 0, err
		}
		running = append(running, i)
	}
	now.Trials = together(entries)
	ends := map[int64]bool{} // last steps of complete trials
	for _, t := range now.Trials {
		if n := len(t.Curve); n > 0 && t.State == suggest.Succeeded {
			ends[t.Curve[n-1].Step] = true
		}
	}
	for _, i := range running {
		object := entries[i].object
		if object.AskedToStop() {
			continue
		}
		if curve := now.Trials[i].Curve; len(curve) > 0 && ends[curve[len(curve)-1].Step] {
			continue // it has trained as long as complete trials, and is about to end
		}
		if stop, why := s.stopper.Stop(now, now.Trials[i]); stop {
			stops = append(stops, Stop{object, s.rule + ": " + why})
		} else {
			spared++
		}
	}
	return stops, spared, nil
}

// together are the trials of entries. Where some state steps, those that have stated none
// yet have no curve: their points would be counted, and the n-th be compared with step n of
// others. Hugging Face's Trainer states the epoch, which is no step while it is a fraction.
// Nor have those that are within their first step (see goesOn).
func together(entries []entry) []*suggest.Trial {
	stepped, most, whole := false, int64(0), int64(0)
	for _, e := range entries {
		stepped, most = stepped || e.stepped, max(most, e.first)
		if e.beyond {
			whole = max(whole, e.first)
		}
	}
	trials := make([]*suggest.Trial, len(entries))
	for i, e := range entries {
		trials[i] = e.trial
		within := e.trial.State == suggest.Running && len(e.trial.Curve) == 1 && !e.beyond &&
			(e.first < whole || whole == 0 && most > 1 && e.trial.Curve[0].Step > 0) // at 0 it may be that of all
		if stepped && !e.stepped || within {
			without := *e.trial
			without.Curve, trials[i] = nil, &without
		}
	}
	return trials
}

// ReadCurves gives the trials that have ended their curves, each of which is read
// once: how far those that were stopped had come is worth knowing.
func (s *Study) ReadCurves(ctx context.Context, scan Scan) error {
	read := false
	for i := range s.trials.entries {
		e := &s.trials.entries[i]
		if e.curve || !e.trial.State.Finished() {
			continue
		}
		if err := s.readCurve(ctx, scan, e); err != nil {
			return err
		}
		e.print, e.curve, read = printOf(e.trial), true, true
	}
	if read {
		s.trials.refresh()
	}
	return nil
}

// curvePoints bounds a curve. Of a longer one the last point of each stretch of 2^k
// steps is kept: places that stay the same while the curve grows, so that curves can
// be compared point by point.
const curvePoints = 256

// readCurve gives a trial its curve. What was measured before a newer attempt took
// the same steps again has no part in it.
func (s *Study) readCurve(ctx context.Context, scan Scan, e *entry) error {
	curve := collector.NewCurve(curvePoints)
	err := scan(ctx, string(e.uid), []string{s.base.Objectives[0].Name}, func(a collector.Attempt, p collector.Point) error {
		curve.Add(a, p)
		return nil
	})
	if err != nil {
		return fmt.Errorf("read the curve of trial %s: %w", e.object.Name, err)
	}
	with := *e.trial
	with.Curve = nil
	buckets := curve.Buckets()
	e.beyond = len(buckets) > 1
	if n := len(buckets); e.beyond && e.trial.State == suggest.Running && goesOn(buckets[n-2], buckets[n-1]) {
		buckets = buckets[:n-1]
	}
	for _, b := range buckets {
		sample := suggest.Sample{Step: b.Last, Value: b.Value}
		if b.First < b.Last {
			sample.Reports = b.Points
		}
		with.Curve = append(with.Curve, sample)
	}
	if e.trial, e.stepped, e.first = &with, curve.Stepped(), 0; e.stepped && buckets[0].First == buckets[0].Last {
		e.first = buckets[0].Points
	}
	return nil
}

// goesOn reports whether a step has fewer points so far than the one before it: a program
// that prints the loss of each batch, with its epoch as the step, is within an epoch. What
// others had measured at its end is no measure for that.
func goesOn(before, last collector.Bucket) bool {
	return before.First == before.Last && last.First == last.Last && last.Points < before.Points
}
