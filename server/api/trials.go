package api

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"hash/maphash"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	vernierv1 "github.com/vernier-ml/vernier/api/proto/vernier/v1"
	"github.com/vernier-ml/vernier/api/v1beta1"
	"github.com/vernier-ml/vernier/collector"
	"github.com/vernier-ml/vernier/collector/report"
	"github.com/vernier-ml/vernier/controllers/experiment"
)

const (
	maxCount     = 1_000
	maxText      = 256 // of a worker's name and a request's id, in bytes
	usualLease   = time.Minute
	leastLease   = time.Second
	longestLease = 24 * time.Hour
	longestWait  = 30 * time.Second
	// lookAgain is how often one who waits looks for a trial that another manager
	// may have freed.
	lookAgain = time.Second
	// writeTries is how often a write is tried that others' writes come before.
	writeTries = 8
	// maxReason bounds why a trial failed, in bytes; the rest is cut off.
	maxReason = 1 << 10
	// maxValues bounds the values of one report, and of one write of an imported curve.
	maxValues = 4096
)

// errMoved says that a trial changes faster than it can be written.
var errMoved = errors.New("the trial was changed by others meanwhile")

// SuggestTrials implements vernierv1.ExperimentServiceHandler.
func (s *service) SuggestTrials(ctx context.Context, r *vernierv1.SuggestTrialsRequest) (*vernierv1.SuggestTrialsResponse, error) {
	p, err := parsePlace("parent", r.GetParent(), experimentForm)
	if err != nil {
		return nil, err
	}
	if err := s.allow(ctx, "update", "trials/lease", p); err != nil {
		return nil, err
	}
	lease, count, err := readSuggest(r)
	if err != nil {
		return nil, err
	}
	if lease.Worker == "" {
		lease.Worker = caller(ctx).Username
	}
	left := min(r.GetMaxWait().AsDuration(), longestWait)
	for until := s.Now().Add(left); ; left = until.Sub(s.Now()) {
		freed := s.waiting(p)
		h, err := s.Experiments.HandOut(ctx, p.key(), count, lease)
		if err != nil {
			return nil, explain(ctx, err)
		}
		if len(h.Trials) > 0 || h.Experiment.IsCompleted() || left <= 0 {
			return s.suggested(h, count), nil
		}
		again := time.NewTimer(min(left, lookAgain))
		select {
		case <-freed:
		case <-again.C:
		case <-ctx.Done():
			again.Stop()
			return nil, explain(ctx, ctx.Err())
		}
		again.Stop()
	}
}

func (s *service) suggested(h experiment.Handed, count int) *vernierv1.SuggestTrialsResponse {
	out := &vernierv1.SuggestTrialsResponse{State: experimentState(h.Experiment), Exhausted: h.Exhausted}
	now := s.Now()
	for _, t := range h.Trials {
		out.Trials = append(out.Trials, trialOut(h.Experiment, t, now))
	}
	if len(out.Trials) < count {
		out.Reason, out.Message = h.Reason, h.Why
		if !h.Experiment.IsCompleted() {
			out.RetryAfter = durationpb.New(max(h.After, lookAgain))
		}
	}
	return out
}

// readSuggest is the lease that a request asks for, but for its times, and how many.
func readSuggest(r *vernierv1.SuggestTrialsRequest) (lease v1beta1.Lease, count int, err error) {
	lease = v1beta1.Lease{Worker: r.GetWorker(), Request: r.GetRequestId()}
	if lease.Request == "" {
		lease.Request = rand.Text()
	}
	count = max(1, int(r.GetCount()))
	length := usualLease
	if r.GetLease() != nil {
		length = r.GetLease().AsDuration()
	}
	lease.Seconds = int32(length / time.Second)
	switch {
	case r.GetCount() < 0 || count > maxCount:
		err = invalid(fmt.Sprintf("ask for 1 to %d trials", maxCount), "count is %d", r.GetCount())
	case len(lease.Worker) > maxText || len(lease.Request) > maxText:
		err = invalid(fmt.Sprintf("give at most %d bytes", maxText), "worker or request_id is too long")
	case length < leastLease || length > longestLease:
		err = invalid(fmt.Sprintf("give %s to %s", leastLease, longestLease), "lease is %s", length)
	case r.GetMaxWait().AsDuration() < 0:
		err = invalid(fmt.Sprintf("give 0 s to %s", longestWait), "max_wait is %s", r.GetMaxWait().AsDuration())
	}
	return lease, count, err
}

// waiting is closed when there may be a trial of an experiment for who waits.
func (s *service) waiting(p place) <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.freed[s.room(p)]
}

func (s *service) free(p place) {
	s.mu.Lock()
	defer s.mu.Unlock()
	room := s.room(p)
	close(s.freed[room])
	s.freed[room] = make(chan struct{})
}

func (s *service) room(p place) uint64 { return maphash.Comparable(s.seed, p.key()) % waitingRooms }

// leased finds the trial of a request, and its lease; stale is why its attempt is not
// the newest one. fresh: not from the cache.
func (s *service) leased(ctx context.Context, p place, attempt int32, fresh bool) (t *v1beta1.Trial, l v1beta1.Lease, stale, err error) {
	t = &v1beta1.Trial{}
	reader := client.Reader(s.Client)
	if fresh {
		reader = s.Reader
	}
	err = reader.Get(ctx, p.trialKey(), t)
	l, ok := t.Lease()
	if !fresh && (apierrors.IsNotFound(err) || ok && attempt > l.Attempt) {
		return s.leased(ctx, p, attempt, true) // another manager has handed it out a moment ago
	}
	switch {
	case err != nil:
		err = explain(ctx, err)
	case t.Labels[v1beta1.LabelExperiment] != p.experiment:
		err = fault(connect.CodeNotFound, ReasonNotFound, "correct the name", "experiment %s has no trial %s", p.key(), p.trial)
	case !ok:
		err = explain(ctx, fmt.Errorf("trial %s: %w", p.trialKey(), experiment.ErrHasTemplate))
	case attempt <= 0 || attempt > l.Attempt:
		err = invalid("give the attempt that came with the trial", "attempt is %d, and trial %s was handed out %d times", attempt, p.trialKey(), l.Attempt)
	case attempt < l.Attempt:
		stale = fault(connect.CodeAborted, ReasonStaleAttempt, "stop this run, its result does not count",
			"trial %s was handed out again: this is attempt %d, and attempt %d runs it", p.trialKey(), attempt, l.Attempt)
	case l.Released && !t.IsCompleted():
		stale = fault(connect.CodeAborted, ReasonStaleAttempt, "stop this run, its result does not count",
			"attempt %d of trial %s was handed back", attempt, p.trialKey())
	}
	return t, l, stale, err
}

// change applies write to a trial and repeats it on conflicts. What it returns is what
// was written, nil where nothing had to be.
func (s *service) change(ctx context.Context, p place, attempt int32,
	write func(t *v1beta1.Trial, l v1beta1.Lease, stale error) (*v1beta1.Trial, error)) (*v1beta1.Trial, error) {
	for i := range writeTries {
		t, l, stale, err := s.leased(ctx, p, attempt, i > 0)
		if err != nil {
			return nil, err
		}
		written, err := write(t, l, stale)
		switch {
		case errors.Is(err, errMoved):
			continue
		case err != nil:
			return nil, explain(ctx, err)
		case written == nil:
			return t, nil
		}
		return written, explain(ctx, s.Experiments.AwaitTrial(ctx, written))
	}
	return nil, explain(ctx, errMoved)
}

// ReportTrial implements vernierv1.ExperimentServiceHandler.
func (s *service) ReportTrial(ctx context.Context, r *vernierv1.ReportTrialRequest) (*vernierv1.ReportTrialResponse, error) {
	p, err := parsePlace("name", r.GetName(), trialForm)
	if err != nil {
		return nil, err
	}
	if err := s.allow(ctx, "update", "trials/lease", p); err != nil {
		return nil, err
	}
	points, err := readPoints(r.GetMeasurements(), s.Now())
	if err != nil {
		return nil, err
	}
	if len(points) > maxValues {
		return nil, invalid(fmt.Sprintf("send at most %d in one report", maxValues), "there are %d values", len(points))
	}
	t, err := s.change(ctx, p, r.GetAttempt(), s.renewed(ctx))
	if err != nil {
		return nil, err
	}
	l, _ := t.Lease()
	if len(points) > 0 && !t.IsCompleted() {
		id := collector.TrialID{Namespace: t.Namespace, Name: t.Name, Experiment: p.experiment, UID: string(t.UID)}
		attempt := collector.Attempt{ID: strconv.Itoa(int(l.Attempt)), Started: l.Started}
		if err := s.Store.Append(ctx, id, attempt, points); err != nil {
			return nil, explain(ctx, err)
		}
		s.OnPoints(id)
	}
	out := &vernierv1.ReportTrialResponse{Directive: vernierv1.ReportTrialResponse_CONTINUE, LeaseExpireTime: timestamppb.New(l.Expires)}
	if t.IsCompleted() {
		out.Directive, out.Why = vernierv1.ReportTrialResponse_STOP, "the trial has ended: "+t.LastCondition().Message
	} else if t.AskedToStop() {
		out.Directive, out.Why = vernierv1.ReportTrialResponse_STOP, t.Annotations[v1beta1.AnnotationStop]+t.Annotations[v1beta1.AnnotationStopEarly]
	}
	return out, nil
}

// renewed renews the lease of a trial. While most of it is left it stays as it is, so
// that reports cost no write each; one that has expired revives.
func (s *service) renewed(ctx context.Context) func(*v1beta1.Trial, v1beta1.Lease, error) (*v1beta1.Trial, error) {
	return func(t *v1beta1.Trial, l v1beta1.Lease, stale error) (*v1beta1.Trial, error) {
		length := time.Duration(l.Seconds) * time.Second
		if stale != nil || t.IsCompleted() || l.Expires.Sub(s.Now()) > length*2/3 {
			return nil, stale
		}
		l.Expires = s.Now().UTC().Add(length)
		return s.lease(ctx, t, l)
	}
}

func (s *service) lease(ctx context.Context, t *v1beta1.Trial, l v1beta1.Lease) (*v1beta1.Trial, error) {
	written, err := s.Experiments.WriteLease(ctx, t, l)
	if written == nil && err == nil {
		return nil, errMoved
	}
	return written, err
}

// readPoints are the points of measurements. A point's identity is its metric and
// step, so that a report that is sent again counts once.
func readPoints(measurements []*vernierv1.Measurement, now time.Time) ([]collector.Point, error) {
	var points []collector.Point
	for i, m := range measurements {
		if m.GetStep() < 0 || m.GetStep() == math.MaxInt64 {
			return nil, invalid("count from 0 to 2^63-2", "measurements[%d].step is %d", i, m.GetStep())
		}
		at := now
		if m.GetTime() != nil {
			at = m.GetTime().AsTime()
		}
		for _, metric := range slices.Sorted(maps.Keys(m.GetValues())) {
			if metric == "" || len(metric) > report.MaxName {
				return nil, invalid(fmt.Sprintf("use 1 to %d bytes", report.MaxName), "the metric %.64q of measurements[%d] has %d bytes", metric, i, len(metric))
			}
			points = append(points, collector.Point{
				Metric: metric, Value: m.GetValues()[metric], Step: m.GetStep(), Time: at, Source: "api:" + metric, Seq: m.GetStep(),
			})
		}
	}
	return points, nil
}

// ReleaseTrial implements vernierv1.ExperimentServiceHandler.
func (s *service) ReleaseTrial(ctx context.Context, r *vernierv1.ReleaseTrialRequest) (*vernierv1.Trial, error) {
	p, err := parsePlace("name", r.GetName(), trialForm)
	if err != nil {
		return nil, err
	}
	if err := s.allow(ctx, "update", "trials/lease", p); err != nil {
		return nil, err
	}
	t, err := s.change(ctx, p, r.GetAttempt(), func(t *v1beta1.Trial, l v1beta1.Lease, stale error) (*v1beta1.Trial, error) {
		switch {
		case l.Released && l.Attempt == r.GetAttempt():
			return nil, nil
		case stale != nil:
			return nil, stale
		case t.IsCompleted():
			return nil, completed(t)
		}
		l.Released = true
		return s.lease(ctx, t, l)
	})
	if err != nil {
		return nil, err
	}
	s.free(p)
	return s.out(ctx, p, t)
}

func (s *service) out(ctx context.Context, p place, t *v1beta1.Trial) (*vernierv1.Trial, error) {
	exp, err := s.experiment(ctx, p)
	if err != nil {
		return nil, err
	}
	return trialOut(exp, t, s.Now()), nil
}

func completed(t *v1beta1.Trial) error {
	return fault(connect.CodeFailedPrecondition, ReasonAlreadyCompleted, "what was said first stays",
		"trial %s/%s has ended already (%s)", t.Namespace, t.Name, strings.TrimSuffix(t.LastCondition().Message, "."))
}

// update writes the status of a trial.
func (s *service) update(ctx context.Context, t *v1beta1.Trial) (*v1beta1.Trial, error) {
	err := s.Client.Status().Update(ctx, t)
	if apierrors.IsConflict(err) {
		return nil, errMoved
	}
	return t, err
}
