package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"net/netip"
	"os"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	katibv1beta1 "github.com/vernier-ml/vernier/api/proto/katib/v1beta1"
	"github.com/vernier-ml/vernier/api/v1beta1"
	"github.com/vernier-ml/vernier/collector"
	"github.com/vernier-ml/vernier/controllers/katib"
	"github.com/vernier-ml/vernier/server"
	"github.com/vernier-ml/vernier/server/suggestion"
)

const (
	addressIndex = "katib.address"
	trialIndex   = "katib.name"
)

// addKatib adds Katib's DBManager with health and reflection, unless the options say
// otherwise.
func addKatib(ctx context.Context, mgr manager.Manager, o options, points collector.Store, wake func(collector.TrialID)) error {
	if o.katibAddress == "" {
		return nil
	}
	if err := indexForKatib(ctx, mgr.GetFieldIndexer()); err != nil {
		return err
	}
	pods := katibPods{mgr.GetClient()}
	path, handler, err := server.NewKatibHandler(server.KatibConfig{
		Store: points, Reporters: pods.reporters, Trials: pods.trials, OnPoints: wake, Metrics: metrics.Registry,
	})
	if err != nil {
		return err
	}
	mux := http.NewServeMux()
	mux.Handle(path, handler)
	suggestion.AddHealthAndReflection(mux, []string{katibv1beta1.DBManagerName})
	listener, err := o.listenForKatib(ctx)
	if err != nil {
		return fmt.Errorf("listen for Katib's clients on %s: %w", o.katibAddress, err)
	}
	return mgr.Add(everyReplica(func(ctx context.Context) error {
		return server.Serve(ctx, listener, mux, nil)
	}))
}

// addKatibsPresence looks whether Katib is installed, now and as mgr runs. The control
// plane of the embedded mode has none.
func addKatibsPresence(ctx context.Context, mgr manager.Manager, o options, direct client.Client) (*katib.Presence, error) {
	if o.embedded {
		return nil, nil
	}
	present, err := katib.Look(ctx, direct)
	if err != nil {
		return nil, err
	}
	return present, mgr.Add(present)
}

// listenForKatib listens on the address of Katib's DBManager. A socket that a manager
// left which was killed is replaced.
func (o *options) listenForKatib(ctx context.Context) (net.Listener, error) {
	path, ok := o.katibSocket()
	if !ok {
		return new(net.ListenConfig).Listen(ctx, "tcp", o.katibAddress)
	}
	switch left, err := os.Lstat(path); {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return nil, err
	case left.Mode().Type() != fs.ModeSocket:
		return nil, fmt.Errorf("%s is there and is not a socket; remove it, or name another address", path)
	default:
		if err := os.Remove(path); err != nil {
			return nil, err
		}
	}
	listener, err := new(net.ListenConfig).Listen(ctx, "unix", path)
	if err != nil {
		return nil, err
	}
	return listener, os.Chmod(path, 0o600)
}

func indexForKatib(ctx context.Context, indexer client.FieldIndexer) error {
	if err := indexer.IndexField(ctx, &corev1.Pod{}, addressIndex, addressesOf); err != nil {
		return fmt.Errorf("index pods by address: %w", err)
	}
	err := indexer.IndexField(ctx, &v1beta1.Trial{}, trialIndex, func(o client.Object) []string { return []string{o.GetName()} })
	if err != nil {
		return fmt.Errorf("index trials by name: %w", err)
	}
	return nil
}

// addressesOf are the addresses by which a pod can be known: none on the host's
// network, whose address is that of other programs, and none once it has ended,
// when another pod may get its address.
func addressesOf(o client.Object) []string {
	pod, ok := o.(*corev1.Pod)
	if !ok || pod.Spec.HostNetwork || pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed {
		return nil
	}
	seen := map[string]bool{pod.Status.PodIP: true}
	addresses := []string{pod.Status.PodIP}
	for _, ip := range pod.Status.PodIPs {
		if !seen[ip.IP] {
			seen[ip.IP] = true
			addresses = append(addresses, ip.IP)
		}
	}
	var canonical []string
	for _, text := range addresses {
		if a, err := netip.ParseAddr(text); err == nil {
			canonical = append(canonical, a.Unmap().String())
		}
	}
	return canonical
}

// katibPods answers what the DBManager asks, from the manager's cache.
type katibPods struct{ client client.Reader }

func (k katibPods) reporters(ctx context.Context, address netip.Addr) ([]server.KatibReporter, error) {
	var pods corev1.PodList
	if err := k.client.List(ctx, &pods, client.MatchingFields{addressIndex: address.String()}); err != nil {
		return nil, fmt.Errorf("list the pods with address %s: %w", address, err)
	}
	var out []server.KatibReporter
	for i := range pods.Items {
		pod := &pods.Items[i]
		var t v1beta1.Trial
		err := k.client.Get(ctx, client.ObjectKey{Namespace: pod.Namespace, Name: pod.Labels[v1beta1.LabelTrial]}, &t)
		if apierrors.IsNotFound(err) || err == nil && pod.CreationTimestamp.Before(&t.CreationTimestamp) {
			continue // of a trial that was deleted
		}
		if err != nil {
			return nil, fmt.Errorf("read the trial of pod %s/%s: %w", pod.Namespace, pod.Name, err)
		}
		started := pod.CreationTimestamp.Time
		if pod.Status.StartTime != nil {
			started = pod.Status.StartTime.Time
		}
		out = append(out, server.KatibReporter{Trial: trialID(&t), Metrics: wantedMetrics(&t), Pod: string(pod.UID), Started: started})
	}
	return out, nil
}

func (k katibPods) trials(ctx context.Context, name string) ([]collector.TrialID, error) {
	var list v1beta1.TrialList
	if err := k.client.List(ctx, &list, client.MatchingFields{trialIndex: name}); err != nil {
		return nil, fmt.Errorf("list the trials named %s: %w", name, err)
	}
	var out []collector.TrialID
	for i := range list.Items {
		out = append(out, trialID(&list.Items[i]))
	}
	return out, nil
}

func trialID(t *v1beta1.Trial) collector.TrialID {
	return collector.TrialID{Namespace: t.Namespace, Name: t.Name, Experiment: t.Labels[v1beta1.LabelExperiment], UID: string(t.UID)}
}

func wantedMetrics(t *v1beta1.Trial) []string {
	if t.Spec.Objective == nil {
		return nil
	}
	return append([]string{t.Spec.Objective.ObjectiveMetricName}, t.Spec.Objective.AdditionalMetricNames...)
}
