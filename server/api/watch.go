package api

import (
	"context"
	"errors"
	"hash/maphash"
	"net/http"
	"slices"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/proto"

	vernierv1 "github.com/vernier-ml/vernier/api/proto/vernier/v1"
	"github.com/vernier-ml/vernier/api/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	mostSubscriptions = 32
	// frame is the least time between two changes of one subscription, and seriesFrame
	// between two looks at its curves, of which reading takes at most a fifth.
	frame       = 200 * time.Millisecond
	seriesFrame = time.Second
	// lookForPoints is how often curves of running trials are read although no point
	// is known to be new: another manager may have taken it. So are those left out.
	lookForPoints = 5 * time.Second
	lifeSign      = 15 * time.Second
	// rightsAgain is how often the token and the rights of a caller are looked at.
	rightsAgain = time.Minute
	// proxiedFor is how long a stream through a proxy lasts. Its caller calls again, and
	// the proxy looks at its session.
	proxiedFor = 10 * time.Minute
	// sendPatience is how long a caller may take to read what is sent. A slower one is
	// cut off, and calls again.
	sendPatience = 20 * time.Second
)

// watched is a subscription of a stream. Between two sends it holds no more than the
// revision that was sent last, the names of experiments, and a hash for each curve.
type watched struct {
	id    int32
	place place
	topic topic
	since string
	// due is when it may be looked at again.
	due   time.Time
	dirty bool

	names   map[string]bool         // of the experiments that were sent
	table   *vernierv1.TrialColumns // what was sent last, but for its rows
	curve   *vernierv1.GetSeriesRequest
	sent    map[seriesKey]uint64
	leftOut []int32   // trials whose curves were left out, as was said last; nil before
	again   time.Time // when curves are read anyway, of running trials and those left out
}

type seriesKey struct {
	trial  int32
	metric string
}

// Watch implements vernierv1.DashboardServiceHandler.
func (s *service) Watch(ctx context.Context, r *vernierv1.WatchRequest, to *connect.ServerStream[vernierv1.WatchResponse]) error {
	subscriptions, err := s.subscribed(ctx, r)
	if err != nil {
		return err
	}
	topics := make([]topic, len(subscriptions))
	for i, w := range subscriptions {
		topics[i] = w.topic
	}
	l, leave := s.Changes.join(topics)
	defer leave()
	called := ctx
	send := func(m *vernierv1.WatchResponse) error {
		return s.patiently(called, func() error { return to.Send(m) })
	}
	began := s.Now()
	rights, life := began.Add(rightsAgain), began.Add(lifeSign)
	for now := began; len(subscriptions) > 0; now = s.Now() {
		if proxied(called) && now.Sub(began) >= proxiedFor {
			return nil
		}
		if !now.Before(rights) {
			rights = now.Add(rightsAgain)
			if ctx, err = s.identify(called); err != nil {
				return err
			}
			if err := s.mayWatch(ctx, subscriptions); err != nil {
				return err
			}
		}
		for t, names := range l.take() {
			for _, w := range subscriptions {
				w.dirty = w.dirty || w.topic == t && w.concerned(names)
			}
		}
		for i := 0; i < len(subscriptions); i++ {
			sent, ended, err := s.follow(ctx, subscriptions[i], now, send)
			if err != nil {
				return err
			}
			if sent {
				life = now.Add(lifeSign)
			}
			if ended {
				subscriptions = slices.Delete(subscriptions, i, i+1)
				i--
			}
		}
		if !now.Before(life) {
			life = now.Add(lifeSign)
			if err := send(&vernierv1.WatchResponse{}); err != nil {
				return err
			}
		}
		if err := l.wait(ctx, next(subscriptions, rights, life).Sub(s.Now())); err != nil {
			return err
		}
	}
	return nil
}

// patiently sends something on a stream, within the time that a caller has to read it.
func (s *service) patiently(ctx context.Context, send func() error) error {
	if c, ok := ctx.Value(connectionKey{}).(*http.ResponseController); ok {
		_ = c.SetWriteDeadline(time.Now().Add(s.patience)) // what cannot have one has the server's
		// HTTP/2 resets a stream whose deadline has passed, also while nothing is sent.
		defer func() { _ = c.SetWriteDeadline(noDeadline) }()
	}
	return send()
}

// wait ends after d, or when something has changed.
func (l *listener) wait(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(max(d, time.Millisecond))
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return explain(ctx, ctx.Err())
	case <-timer.C:
	case <-l.woken:
	}
	return nil
}

// next is when to look again although nothing happens.
func next(subscriptions []*watched, rights, life time.Time) time.Time {
	at := life
	if rights.Before(at) {
		at = rights
	}
	for _, w := range subscriptions {
		if w.dirty && w.due.Before(at) {
			at = w.due
		}
		if w.curve != nil && w.again.Before(at) {
			at = w.again
		}
	}
	return at
}

// concerned says whether a change of some trials concerns a subscription.
func (w *watched) concerned(names map[string]bool) bool {
	if w.curve == nil {
		return true
	}
	return slices.ContainsFunc(w.curve.GetTrials(), func(n int32) bool { return names[v1beta1.TrialName(w.place.experiment, int(n))] })
}

func (s *service) subscribed(ctx context.Context, r *vernierv1.WatchRequest) ([]*watched, error) {
	if n := len(r.GetSubscriptions()); n == 0 || n > mostSubscriptions {
		return nil, invalid("give 1 to 32", "there are %d subscriptions", n)
	}
	var out []*watched
	for _, sub := range r.GetSubscriptions() {
		w := &watched{id: sub.GetId(), since: sub.GetSince(), dirty: true}
		var err error
		switch t := sub.GetTopic().(type) {
		case *vernierv1.Subscription_Experiments:
			w.place, err = parsePlace("subscriptions.experiments", t.Experiments, namespaceForm)
		case *vernierv1.Subscription_Trials:
			w.place, err = parsePlace("subscriptions.trials", t.Trials, experimentForm)
		case *vernierv1.Subscription_Series:
			w.curve, w.sent = t.Series, map[seriesKey]uint64{}
			w.place, err = parsePlace("subscriptions.series.parent", t.Series.GetParent(), experimentForm)
		default:
			err = invalid("name experiments, trials or series", "a subscription has no topic")
		}
		if err == nil && w.id <= 0 {
			err = invalid("give each its own, from 1", "the id of a subscription is %d", w.id)
		}
		if err != nil {
			return nil, err
		}
		w.topic = topic{w.place.namespace, w.place.experiment, w.curve != nil}
		out = append(out, w)
	}
	return out, s.mayWatch(ctx, out)
}

func (s *service) mayWatch(ctx context.Context, subscriptions []*watched) error {
	for _, w := range subscriptions {
		resource := "trials"
		if w.place.experiment == "" {
			resource = "experiments"
		}
		if err := s.allow(ctx, "watch", resource, place{namespace: w.place.namespace}); err != nil {
			return err
		}
	}
	return nil
}

// follow sends what has changed of a subscription, if it is time to.
func (s *service) follow(ctx context.Context, w *watched, now time.Time, send func(*vernierv1.WatchResponse) error) (sent, ended bool, err error) {
	if w.curve != nil && !now.Before(w.again) {
		w.dirty = true
	}
	if !w.dirty || now.Before(w.due) {
		return false, false, nil
	}
	w.dirty, w.due = false, now.Add(frame)
	answer, err := s.changes(ctx, w)
	switch fault := (*connect.Error)(nil); {
	case errors.As(err, &fault) && (fault.Code() == connect.CodeNotFound || fault.Code() == connect.CodeInvalidArgument):
		return true, true, send(&vernierv1.WatchResponse{Id: w.id, Change: &vernierv1.WatchResponse_End_{
			End: &vernierv1.WatchResponse_End{Reason: ReasonNotFound, Message: fault.Message()}}})
	case err != nil || answer == nil:
		return false, false, err
	}
	answer.Id = w.id
	return true, false, send(answer)
}

// changes is what a subscription has not seen yet, nil when that is nothing.
func (s *service) changes(ctx context.Context, w *watched) (*vernierv1.WatchResponse, error) {
	switch {
	case w.curve != nil:
		return s.newCurves(ctx, w)
	case w.place.experiment == "":
		return s.newExperiments(ctx, w)
	}
	table, err := s.columns(ctx, w.place, w.since)
	if err != nil {
		return nil, err
	}
	last := w.table
	w.since, w.table = table.GetRevision(), &vernierv1.TrialColumns{Total: table.GetTotal(), Optimal: table.GetOptimal()}
	if last != nil && !table.GetWhole() && len(table.GetNumber()) == 0 && proto.Equal(last, w.table) {
		return nil, nil
	}
	return &vernierv1.WatchResponse{Change: &vernierv1.WatchResponse_Trials{Trials: table}}, nil
}

func (s *service) newExperiments(ctx context.Context, w *watched) (*vernierv1.WatchResponse, error) {
	var list v1beta1.ExperimentList
	if err := s.Client.List(ctx, &list, client.InNamespace(w.place.namespace), client.UnsafeDisableDeepCopy); err != nil {
		return nil, explain(ctx, err)
	}
	from, known := seen(namespaceUID, w.since)
	newest, names := from, map[string]bool{}
	out := &vernierv1.ExperimentChanges{Whole: !known, Total: int32(len(list.Items))}
	for i := range list.Items {
		e, version := &list.Items[i], versionOf(&list.Items[i])
		newest, names[place{namespace: e.Namespace, experiment: e.Name}.String()] = max(newest, version), true
		if known && version <= from {
			continue
		}
		shown, err := experimentOut(e)
		if err != nil {
			return nil, explain(ctx, err)
		}
		out.Experiments = append(out.Experiments, shown)
	}
	for name := range w.names {
		if !names[name] {
			out.Deleted = append(out.Deleted, name)
		}
	}
	slices.Sort(out.Deleted)
	first := w.names == nil
	w.names, w.since = names, revision(namespaceUID, newest)
	if !first && len(out.Experiments) == 0 && len(out.Deleted) == 0 {
		return nil, nil
	}
	out.Revision = w.since
	return &vernierv1.WatchResponse{Change: &vernierv1.WatchResponse_Experiments{Experiments: out}}, nil
}

// namespaceUID stands for a namespace in revisions.
const namespaceUID = "experiments"

// newCurves are the curves that have changed since they were sent.
func (s *service) newCurves(ctx context.Context, w *watched) (*vernierv1.WatchResponse, error) {
	exp, all, err := s.trials(ctx, w.place)
	if err != nil {
		return nil, err
	}
	ask, err := readSeries(w.curve, exp)
	if err != nil {
		return nil, err
	}
	trials := chosen(all, w.curve.GetTrials())
	began := s.Now()
	got, err := s.series(ctx, ask, trials)
	if err != nil {
		return nil, err
	}
	now := s.Now()
	w.due, w.again = now.Add(max(seriesFrame, 5*now.Sub(began))), now.Add(24*time.Hour)
	if len(got.GetLeftOut()) > 0 || slices.ContainsFunc(trials, func(t *v1beta1.Trial) bool { return !t.IsCompleted() }) {
		w.again = now.Add(max(lookForPoints, 5*now.Sub(began)))
	}
	out := &vernierv1.GetSeriesResponse{LeftOut: got.GetLeftOut()}
	changed := w.leftOut == nil || !slices.Equal(w.leftOut, out.GetLeftOut())
	w.leftOut = append([]int32{}, out.GetLeftOut()...)
	for _, c := range got.GetSeries() {
		text, err := proto.MarshalOptions{Deterministic: true}.Marshal(c)
		if err != nil {
			return nil, explain(ctx, err)
		}
		key, hash := seriesKey{c.GetTrial(), c.GetMetric()}, maphash.Bytes(s.seed, text)
		if before, ok := w.sent[key]; !ok || before != hash {
			w.sent[key] = hash
			out.Series = append(out.Series, c)
		}
	}
	if !changed && len(out.Series) == 0 {
		return nil, nil
	}
	return &vernierv1.WatchResponse{Change: &vernierv1.WatchResponse_Series{Series: out}}, nil
}
