package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/vernier-ml/vernier/api/v1beta1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// newScheme knows Kubernetes' own types and ours.
func newScheme() (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	return scheme, errors.Join(clientgoscheme.AddToScheme(scheme), v1beta1.AddToScheme(scheme))
}

// newClient talks to the API server that config names.
func newClient(config *rest.Config) (client.WithWatch, error) {
	scheme, err := newScheme()
	if err != nil {
		return nil, err
	}
	return client.NewWithWatch(config, client.Options{Scheme: scheme})
}

// noExperiment says that there is none of a name.
type noExperiment struct {
	key   types.NamespacedName
	cause error
}

func (e *noExperiment) Error() string {
	return fmt.Sprintf("no experiment %q in namespace %q: get experiments --all-namespaces lists those that there are", e.key.Name, e.key.Namespace)
}

func (e *noExperiment) Unwrap() error { return e.cause }

// loadExperiment reads an experiment and its trials once.
func loadExperiment(ctx context.Context, c client.Reader, key types.NamespacedName) (experimentView, error) {
	var experiment v1beta1.Experiment
	if err := c.Get(ctx, key, &experiment); err != nil {
		if apierrors.IsNotFound(err) {
			return experimentView{}, &noExperiment{key, err}
		}
		return experimentView{}, fmt.Errorf("read experiment %s: %w", key, err)
	}
	var trials v1beta1.TrialList
	if err := c.List(ctx, &trials, client.InNamespace(key.Namespace), client.MatchingLabels{v1beta1.LabelExperiment: key.Name}); err != nil {
		return experimentView{}, fmt.Errorf("list the trials of experiment %s: %w", key, err)
	}
	owned := trials.Items[:0]
	for _, t := range trials.Items {
		for _, o := range t.OwnerReferences {
			if o.UID == experiment.UID {
				owned = append(owned, t)
			}
		}
	}
	return newExperimentView(&experiment, owned), nil
}

// follow calls show with a new view whenever the experiment or one of its
// trials changes, at most ten times a second, and once a second in between, so
// that clocks go on. It returns when show says that it is done, or with ctx's
// error. A server that goes away is waited for.
func follow(ctx context.Context, config *rest.Config, key types.NamespacedName, show func(experimentView, time.Time) (done bool, err error)) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	informers, changed, err := startInformers(ctx, config, key)
	if err != nil {
		return err
	}
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		view, err := loadExperiment(ctx, informers, key)
		switch {
		case apierrors.IsNotFound(err):
			return fmt.Errorf("the experiment was deleted: %w", err)
		case err != nil:
			return err
		}
		if done, err := show(view, time.Now()); done || err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		case <-changed:
			// Let the changes that come together be shown together.
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-time.After(100 * time.Millisecond):
			}
		}
	}
}

// startInformers watches one experiment and its trials; changed gets a value
// after each change.
func startInformers(ctx context.Context, config *rest.Config, key types.NamespacedName) (cache.Cache, <-chan struct{}, error) {
	scheme, err := newScheme()
	if err != nil {
		return nil, nil, err
	}
	informers, err := cache.New(config, cache.Options{
		Scheme:            scheme,
		DefaultNamespaces: map[string]cache.Config{key.Namespace: {}},
		ByObject: map[client.Object]cache.ByObject{
			&v1beta1.Experiment{}: {Field: fields.OneTermEqualSelector("metadata.name", key.Name)},
			&v1beta1.Trial{}:      {Label: labels.SelectorFromSet(labels.Set{v1beta1.LabelExperiment: key.Name})},
		},
	})
	if err != nil {
		return nil, nil, fmt.Errorf("watch experiment %s: %w", key, err)
	}
	changed := make(chan struct{}, 1)
	notify := func() {
		select {
		case changed <- struct{}{}:
		default:
		}
	}
	handler := toolscache.ResourceEventHandlerFuncs{
		AddFunc:    func(any) { notify() },
		UpdateFunc: func(any, any) { notify() },
		DeleteFunc: func(any) { notify() },
	}
	for _, object := range []client.Object{&v1beta1.Experiment{}, &v1beta1.Trial{}} {
		informer, err := informers.GetInformer(ctx, object, cache.BlockUntilSynced(false))
		if err != nil {
			return nil, nil, fmt.Errorf("watch experiment %s: %w", key, err)
		}
		if _, err := informer.AddEventHandler(handler); err != nil {
			return nil, nil, fmt.Errorf("watch experiment %s: %w", key, err)
		}
	}
	go func() {
		// Start ends with ctx, and fails only when it is called twice.
		_ = informers.Start(ctx)
	}()
	if !informers.WaitForCacheSync(ctx) {
		return nil, nil, fmt.Errorf("watch experiment %s: %w", key, ctx.Err())
	}
	return informers, changed, nil
}
