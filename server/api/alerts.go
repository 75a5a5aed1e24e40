package api

import (
	"context"
	"slices"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/types/known/timestamppb"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	vernierv1 "github.com/vernier-ml/vernier/api/proto/vernier/v1"
	"github.com/vernier-ml/vernier/api/v1beta1"
	"github.com/vernier-ml/vernier/controllers/alert"
)

const (
	mostAlerts = 100
	alertsFor  = 7 * 24 * time.Hour
	// Every open page asks every half minute: the alerts of an experiment that was not
	// written since, and of its trials, are found anew after alertsKept.
	alertsKept  = 15 * time.Second
	mostAlerted = 5_000
)

// alertedKey names the alerts of an experiment as it was written last.
type alertedKey struct {
	uid     types.UID
	version string
}

// ListAlerts implements vernierv1.DashboardServiceHandler.
func (s *service) ListAlerts(ctx context.Context, _ *vernierv1.ListAlertsRequest) (*vernierv1.ListAlertsResponse, error) {
	namespaces, err := s.namespaces(ctx)
	if err != nil {
		return nil, err
	}
	out := &vernierv1.ListAlertsResponse{}
	for _, namespace := range namespaces {
		// They tell of trials, too.
		if err := s.allow(ctx, "list", "trials", place{namespace: namespace}); connect.CodeOf(err) == connect.CodePermissionDenied {
			continue
		} else if err != nil {
			return nil, err
		}
		var list v1beta1.ExperimentList
		if err := s.Client.List(ctx, &list, client.InNamespace(namespace), client.UnsafeDisableDeepCopy); err != nil {
			return nil, explain(ctx, err)
		}
		for i := range list.Items {
			if ctx.Err() != nil { // the page is closed
				return nil, explain(ctx, ctx.Err())
			}
			alerts, err := s.alertsOf(ctx, &list.Items[i])
			if err != nil {
				return nil, explain(ctx, err)
			}
			out.Alerts = append(out.Alerts, alerts...)
		}
	}
	slices.SortStableFunc(out.Alerts, func(a, b *vernierv1.Alert) int { return b.GetTime().AsTime().Compare(a.GetTime().AsTime()) })
	out.Alerts = out.Alerts[:min(mostAlerts, len(out.Alerts))]
	return out, nil
}

// alertsOf are those of an experiment, which is the cache's own. The trials of one that
// ended long ago are not read. What is returned is shared.
func (s *service) alertsOf(ctx context.Context, exp *v1beta1.Experiment) (out []*vernierv1.Alert, err error) {
	now := s.Now()
	if done := exp.Status.CompletionTime; done != nil && now.Sub(done.Time) > alertsFor {
		return nil, nil
	}
	key := alertedKey{exp.UID, exp.ResourceVersion}
	if kept, ok := s.alerted.Get(key); ok {
		out, _ = kept.([]*vernierv1.Alert)
		return out, nil
	}
	trials, err := s.Experiments.Trials.Of(ctx, exp)
	if err != nil {
		return nil, err
	}
	for _, a := range alert.Of(exp, trials, now) {
		if now.Sub(a.Time) <= alertsFor {
			out = append(out, &vernierv1.Alert{Id: a.ID, Reason: a.Reason, Warning: a.Warning, Trial: a.Trial, Message: a.Message, Time: timestamppb.New(a.Time),
				Experiment: place{namespace: exp.Namespace, experiment: exp.Name}.String()})
		}
	}
	s.alerted.Add(key, out, alertsKept)
	return out, nil
}
