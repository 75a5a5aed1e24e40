package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/vernier-ml/vernier/api/v1beta1"
	"github.com/vernier-ml/vernier/collector/parse"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// noExperiment is the error about a name that no experiment has.
type noExperiment struct {
	key   types.NamespacedName
	trial string // the number or name of the trial that has it, as EXPERIMENT/12
	cause error
	near  string // the experiment that was likely meant
}

func (e *noExperiment) Error() string {
	if e.trial != "" {
		return fmt.Sprintf("%s is no experiment, it is the trial %s: vernier describe %s shows it", e.key.Name, e.trial, e.trial)
	}
	hint := ""
	if e.near != "" {
		hint = "did you mean " + e.near + "? "
	}
	return fmt.Sprintf("no experiment %q in namespace %q: %svernier get experiments --all-namespaces lists what exists", e.key.Name, e.key.Namespace, hint)
}

func (e *noExperiment) Unwrap() error { return e.cause }

// readExperiment reads an experiment. If no experiment has that name, the error suggests the
// nearest one.
func readExperiment(ctx context.Context, c client.Reader, key types.NamespacedName) (*v1beta1.Experiment, error) {
	experiment := &v1beta1.Experiment{}
	err := c.Get(ctx, key, experiment)
	switch {
	case apierrors.IsNotFound(err):
		return nil, &noExperiment{key, trialNamed(ctx, c, key), err, nearestExperiment(ctx, c, key)}
	case err != nil:
		return nil, fmt.Errorf("read experiment %s: %w", key, err)
	}
	return experiment, nil
}

// loadExperiment reads an experiment and its trials once.
func loadExperiment(ctx context.Context, c client.Reader, key types.NamespacedName) (experimentView, error) {
	experiment, err := readExperiment(ctx, c, key)
	if err != nil {
		return experimentView{}, err
	}
	var trials v1beta1.TrialList
	if err := c.List(ctx, &trials, client.InNamespace(key.Namespace), client.MatchingLabels{v1beta1.LabelExperiment: key.Name}); err != nil {
		return experimentView{}, fmt.Errorf("list the trials of experiment %s: %w", key, err)
	}
	owned := slices.DeleteFunc(trials.Items, func(t v1beta1.Trial) bool { return !metav1.IsControlledBy(&t, experiment) })
	return newExperimentView(experiment, owned), nil
}

// nearestExperiment is the name that is most like that of key, or "".
func nearestExperiment(ctx context.Context, c client.Reader, key types.NamespacedName) string {
	var list v1beta1.ExperimentList
	if err := c.List(ctx, &list, client.InNamespace(key.Namespace)); err != nil {
		return ""
	}
	return nearestOf(list.Items, key.Name)
}

// nearestOf is the name of an experiment that is most like a name, or "".
func nearestOf(items []v1beta1.Experiment, name string) string {
	var names []string
	for _, e := range items {
		names = append(names, e.Name)
	}
	return strings.Join(parse.Nearest(name, names, 1), "")
}

// trialNamed is the trial of that name as EXPERIMENT/12, or "" where there is none.
func trialNamed(ctx context.Context, c client.Reader, key types.NamespacedName) string {
	var t v1beta1.Trial
	if err := c.Get(ctx, key, &t); err != nil || t.Labels[v1beta1.LabelExperiment] == "" {
		return ""
	}
	number := t.Name
	if n, ok := t.Number(); ok {
		number = fmt.Sprint(n)
	}
	return t.Labels[v1beta1.LabelExperiment] + "/" + number
}

// follow calls show whenever the experiment or one of its trials changes, at
// most ten times a second, and once a second in between so that clocks keep
// moving. It returns when show is done, or with ctx's error. It waits a while for a
// server that goes away.
func follow(ctx context.Context, s *session, key types.NamespacedName, show func(experimentView, time.Time) (done bool, err error)) error {
	for {
		if err := followUntilGone(ctx, s, key, show); !errors.Is(err, errServerBack) {
			return err
		}
	}
}

func followUntilGone(ctx context.Context, s *session, key types.NamespacedName, show func(experimentView, time.Time) (done bool, err error)) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go func() {
		if err := s.awaitLoss(ctx, key); err != nil {
			cancel(err)
		}
	}()
	changed := make(chan struct{}, 1)
	informers, err := startInformers(ctx, s, key, func() {
		select {
		case changed <- struct{}{}:
		default:
		}
	})
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	if err != nil {
		return fmt.Errorf("watch experiment %s: %w", key, err)
	}
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		view, err := loadExperiment(ctx, informers, key)
		if apierrors.IsNotFound(err) {
			err = fmt.Errorf("the experiment was deleted: %w", err)
		}
		if err != nil {
			return err
		}
		if done, err := show(view, time.Now()); done || err != nil {
			return err
		}
		pause := time.After(100 * time.Millisecond) // groups changes that come together
		select {
		case <-tick.C:
		case <-changed:
		case <-ctx.Done():
		}
		select {
		case <-pause:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// startInformers caches one experiment and its trials, and calls notify after
// each change.
func startInformers(ctx context.Context, s *session, key types.NamespacedName, notify func()) (cache.Cache, error) {
	informers, err := cache.New(s.config, cache.Options{
		Scheme:            s.client.Scheme(),
		DefaultNamespaces: map[string]cache.Config{key.Namespace: {}},
		ByObject: map[client.Object]cache.ByObject{
			&v1beta1.Experiment{}: {Field: fields.OneTermEqualSelector("metadata.name", key.Name)},
			&v1beta1.Trial{}:      {Label: labels.SelectorFromSet(labels.Set{v1beta1.LabelExperiment: key.Name})},
		},
	})
	if err != nil {
		return nil, err
	}
	handler := toolscache.ResourceEventHandlerFuncs{
		AddFunc:    func(any) { notify() },
		UpdateFunc: func(any, any) { notify() },
		DeleteFunc: func(any) { notify() },
	}
	for _, object := range []client.Object{&v1beta1.Experiment{}, &v1beta1.Trial{}} {
		informer, err := informers.GetInformer(ctx, object, cache.BlockUntilSynced(false))
		if err != nil {
			return nil, err
		}
		if _, err := informer.AddEventHandler(handler); err != nil {
			return nil, err
		}
	}
	go func() { _ = informers.Start(ctx) }() // fails only when called twice
	if !informers.WaitForCacheSync(ctx) {
		return nil, ctx.Err()
	}
	return informers, nil
}
