package katib

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/vernier-ml/vernier/api/v1beta1"
)

// vernierWebhook is the name of Vernier's own webhook configurations.
const vernierWebhook = "vernier-webhook"

// Survey is what there is of Katib in a cluster.
type Survey struct {
	// Vernier says that Vernier is installed.
	Vernier bool
	// Controllers are the Deployments of Katib's controller, and Pods the names of
	// their pods that have not ended.
	Controllers []appsv1.Deployment
	Pods        []string
	// Mutating and Validating say which of Katib's webhook configurations exist.
	Mutating, Validating bool
	// Others are Katib's other Deployments: its UI, its DB manager, its database.
	Others []appsv1.Deployment
	// Algorithms are the Deployments and Services of Katib's algorithms.
	Algorithms  []client.Object
	Experiments []v1beta1.Experiment
	Trials      []v1beta1.Trial
	// Jobs are those that Katib's controller made for trials that have not ended.
	Jobs []*metav1.PartialObjectMetadata
}

// Inspect finds out what there is of Katib.
func Inspect(ctx context.Context, c client.Reader) (*Survey, error) {
	s := &Survey{}
	for _, of := range []struct {
		there      *bool
		kind, name string
	}{{&s.Mutating, mutating, webhooks}, {&s.Validating, validating, webhooks}, {&s.Vernier, validating, vernierWebhook}} {
		var err error
		if *of.there, err = exists(ctx, c, of.kind, of.name); err != nil {
			return nil, err
		}
	}
	if err := s.inspectDeployments(ctx, c); err != nil {
		return nil, err
	}
	var experiments v1beta1.ExperimentList
	var trials v1beta1.TrialList
	if err := c.List(ctx, &experiments); err != nil {
		return nil, fmt.Errorf("list the experiments: %w", err)
	}
	if err := c.List(ctx, &trials); err != nil {
		return nil, fmt.Errorf("list the trials: %w", err)
	}
	s.Experiments, s.Trials = experiments.Items, trials.Items
	return s, s.inspectJobs(ctx, c)
}

func (s *Survey) inspectDeployments(ctx context.Context, c client.Reader) error {
	var deployments appsv1.DeploymentList
	var services corev1.ServiceList
	if err := c.List(ctx, &deployments); err != nil {
		return fmt.Errorf("list the deployments: %w", err)
	}
	if err := c.List(ctx, &services); err != nil {
		return fmt.Errorf("list the services: %w", err)
	}
	for i := range deployments.Items {
		switch d := &deployments.Items[i]; {
		case d.Labels[component] == controller || d.Name == "katib-controller":
			s.Controllers = append(s.Controllers, *d)
			pods, err := runningPods(ctx, c, client.InNamespace(d.Namespace), client.MatchingLabels(d.Spec.Selector.MatchLabels))
			if err != nil {
				return err
			}
			s.Pods = append(s.Pods, pods...)
		case d.Labels[component] != "":
			s.Others = append(s.Others, *d)
		case ofSuggestion(d):
			s.Algorithms = append(s.Algorithms, d)
		}
	}
	for i := range services.Items {
		if v := &services.Items[i]; ofSuggestion(v) {
			s.Algorithms = append(s.Algorithms, v)
		}
	}
	return nil
}

func ofSuggestion(o client.Object) bool {
	owner := metav1.GetControllerOf(o)
	return owner != nil && owner.APIVersion == v1beta1.GroupVersion.String() && owner.Kind == "Suggestion"
}

func (s *Survey) inspectJobs(ctx context.Context, c client.Reader) error {
	for i := range s.Trials {
		t := &s.Trials[i]
		if t.IsCompleted() || isNumbered(t) || t.Spec.RunSpec == nil {
			continue
		}
		job := &metav1.PartialObjectMetadata{}
		if err := json.Unmarshal(t.Spec.RunSpec.Raw, job); err != nil || job.Kind == "" {
			continue // nothing was made of it
		}
		kind := job.GroupVersionKind()
		job = &metav1.PartialObjectMetadata{}
		job.SetGroupVersionKind(kind)
		err := c.Get(ctx, client.ObjectKeyFromObject(t), job)
		switch {
		case apierrors.IsNotFound(err) || meta.IsNoMatchError(err):
		case err != nil:
			return fmt.Errorf("read the %s of trial %s/%s: %w", kind.Kind, t.Namespace, t.Name, err)
		case metav1.IsControlledBy(job, t):
			s.Jobs = append(s.Jobs, job)
		}
	}
	return nil
}

// isNumbered says whether a trial has the number that Vernier knows it by.
func isNumbered(t *v1beta1.Trial) bool { _, ok := t.Number(); return ok }

// Acts says whether Katib's controller runs.
func (s *Survey) Acts() bool {
	return len(s.Pods) > 0 || slices.ContainsFunc(s.Controllers, func(d appsv1.Deployment) bool { return replicas(&d) > 0 })
}

func replicas(d *appsv1.Deployment) int32 { return ptr.Deref(d.Spec.Replicas, 1) }

// Owns says whether everything is left to Katib.
func (s *Survey) Owns() bool { return s.Validating || s.Acts() }

// Running are the experiments that have not ended.
func (s *Survey) Running() []*v1beta1.Experiment {
	var out []*v1beta1.Experiment
	for i := range s.Experiments {
		if e := &s.Experiments[i]; !e.IsCompleted() && e.DeletionTimestamp == nil {
			out = append(out, e)
		}
	}
	return out
}

// numbers are those that Katib's trials get, by their place in Trials: as they were
// made, behind the trials that have one. An experiment that runs under Vernier gives
// its numbers itself.
func (s *Survey) numbers() map[int]int {
	ours := map[types.UID]bool{}
	for _, e := range s.Running() {
		ours[e.UID] = !s.Owns()
	}
	next, unnumbered := map[types.UID]int{}, map[types.UID][]int{}
	for i := range s.Trials {
		t := &s.Trials[i]
		owner := metav1.GetControllerOf(t)
		if owner == nil || owner.Kind != "Experiment" || ours[owner.UID] {
			continue
		}
		if n, ok := t.Number(); ok {
			next[owner.UID] = max(next[owner.UID], n+1)
		} else {
			unnumbered[owner.UID] = append(unnumbered[owner.UID], i)
		}
	}
	out := map[int]int{}
	for owner, places := range unnumbered {
		slices.SortFunc(places, func(a, b int) int {
			x, y := &s.Trials[a], &s.Trials[b]
			return cmp.Or(x.CreationTimestamp.Compare(y.CreationTimestamp.Time), cmp.Compare(x.Name, y.Name))
		})
		for i, place := range places {
			out[place] = next[owner] + i
		}
	}
	return out
}
