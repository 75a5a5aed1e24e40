package experiment

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/vernier-ml/vernier/api/v1beta1"
	"github.com/vernier-ml/vernier/trainer"
)

const (
	// writers is how many trials are asked to stop at once.
	writers = 8
	// applyPatience is how long after its creation an experiment waits for what it
	// names and may be applied after it: the ConfigMap of its template, experiments
	// to learn from.
	applyPatience = 30 * time.Second
)

// proposal is a point to try, in the words of the API.
type proposal struct {
	assignments []v1beta1.ParameterAssignment
	meta        map[string]string
	resource    float64 // 0: all of it
	why         string
}

// fatalError cannot be helped by trying again.
type fatalError struct{ message string }

func (e *fatalError) Error() string { return e.message }

// grow makes the trials that a asks for. The error is for the queue's back-off;
// what a user has to know of it is in the findings.
func (c *Controller) grow(ctx context.Context, exp *v1beta1.Experiment, trials []*v1beta1.Trial, a actions) (findings, error) {
	if a.add == 0 {
		return findings{}, nil
	}
	template, err := c.template(ctx, exp)
	if err != nil {
		return found(err), retry(err)
	}
	if len(trials) == 0 && exp.Spec.TrialTemplate.TrialSpec == nil {
		if errs := c.ValidateTemplate(exp, template); len(errs) > 0 {
			return findings{fatal: "The template in the ConfigMap is not valid, so no trial was started: " + errs.ToAggregate().Error()}, nil
		}
	}
	proposals, err := c.propose(ctx, exp, trials, a.add)
	switch {
	case errors.Is(err, errExhausted):
		return findings{exhausted: true}, nil
	case errors.Is(err, errPreparing):
		return findings{}, nil
	}
	if err != nil {
		return found(err), retry(err)
	}
	if len(proposals) == 0 && count(trials).active() == 0 {
		err := fmt.Errorf("algorithm %q proposes nothing although no trial is running", exp.Spec.Algorithm.AlgorithmName)
		return found(err), err
	}
	made := make([]*v1beta1.Trial, len(proposals))
	for i, p := range proposals {
		if made[i], err = newTrial(exp, template, a.first+i, p); err != nil {
			return found(err), retry(err)
		}
	}
	// In order, and no further than the first that fails: numbers have no gaps,
	// whenever the manager dies.
	for _, t := range made {
		if err := c.create(ctx, exp, t); err != nil {
			return found(err), retry(err)
		}
	}
	return findings{}, nil
}

// found turns an error into what the user is shown.
func found(err error) findings {
	var fatal *fatalError
	switch {
	case err == nil || errors.Is(err, context.Canceled):
		return findings{}
	case errors.As(err, &fatal):
		return findings{fatal: fatal.message}
	default:
		return findings{trouble: "No trial can be started for now: " + err.Error()}
	}
}

// retry is err unless trying again cannot help.
func retry(err error) error {
	var fatal *fatalError
	if errors.As(err, &fatal) {
		return nil
	}
	return err
}

// create creates a trial. That it exists already and is ours is success: this
// controller made it and the cache does not show it yet, or another instance
// did before it died.
func (c *Controller) create(ctx context.Context, exp *v1beta1.Experiment, t *v1beta1.Trial) error {
	err := c.Client.Create(ctx, t)
	switch {
	case err == nil:
		return nil
	case apierrors.IsInvalid(err) || apierrors.IsRequestEntityTooLargeError(err):
		return &fatalError{fmt.Sprintf("trial %s is refused: %v", t.Name, err)}
	case !apierrors.IsAlreadyExists(err):
		return fmt.Errorf("create trial %s: %w", t.Name, err)
	}
	have := &metav1.PartialObjectMetadata{}
	have.SetGroupVersionKind(v1beta1.GroupVersion.WithKind("Trial"))
	if err := c.Reader.Get(ctx, client.ObjectKeyFromObject(t), have); err != nil {
		return fmt.Errorf("create trial %s: it exists already, but: %w", t.Name, err)
	}
	owner := metav1.GetControllerOf(have)
	switch {
	case owner != nil && owner.UID == exp.UID:
		return nil
	case have.DeletionTimestamp != nil || owner != nil && owner.Kind == "Experiment" && owner.Name == exp.Name:
		return fmt.Errorf("trial %s of a deleted experiment with the same name is still being removed", t.Name)
	default:
		return &fatalError{fmt.Sprintf("a trial named %s exists already and does not belong to this experiment: delete it, or give the experiment another name", t.Name)}
	}
}

// stop asks trials to stop. The trial controller does it.
func (c *Controller) stop(ctx context.Context, a actions) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(writers)
	for _, t := range a.stop {
		group.Go(func() error { return c.ask(ctx, t, v1beta1.AnnotationStop, a.stopWhy) })
	}
	return group.Wait()
}

// ask asks the trial controller to stop a trial, by an annotation that says why.
func (c *Controller) ask(ctx context.Context, t *v1beta1.Trial, annotation, why string) error {
	// The UID is a condition: a trial of the same name that was made since must not stop.
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"uid":         t.UID,
		"annotations": map[string]string{annotation: why},
	}})
	if err != nil {
		return fmt.Errorf("encode a patch: %w", err)
	}
	target := &v1beta1.Trial{ObjectMeta: metav1.ObjectMeta{Namespace: t.Namespace, Name: t.Name}}
	err = c.Client.Patch(ctx, target, client.RawPatch("application/merge-patch+json", patch))
	if client.IgnoreNotFound(err) != nil && !isAnother(err) {
		return fmt.Errorf("ask trial %s to stop: %w", t.Name, err)
	}
	return nil
}

// isAnother says whether a patch was refused because the object has another UID
// than the patch.
func isAnother(err error) bool {
	var status apierrors.APIStatus
	if !apierrors.IsInvalid(err) || !errors.As(err, &status) || status.Status().Details == nil {
		return false
	}
	return slices.ContainsFunc(status.Status().Details.Causes, func(c metav1.StatusCause) bool { return c.Field == "metadata.uid" })
}

// template is the text of the experiment's template.
func (c *Controller) template(ctx context.Context, exp *v1beta1.Experiment) ([]byte, error) {
	t := exp.Spec.TrialTemplate
	switch {
	case t == nil:
		return nil, &fatalError{"spec.trialTemplate is missing"}
	case t.TrialSpec != nil:
		text, err := json.Marshal(t.TrialSpec)
		if err != nil {
			return nil, &fatalError{fmt.Sprintf("spec.trialTemplate.trialSpec cannot be read: %v", err)}
		}
		return text, nil
	case t.ConfigMap == nil:
		return nil, &fatalError{"spec.trialTemplate has neither trialSpec nor configMap: give one of them"}
	}
	key := client.ObjectKey{Namespace: cmp.Or(t.ConfigMap.ConfigMapNamespace, exp.Namespace), Name: t.ConfigMap.ConfigMapName}
	var cm corev1.ConfigMap
	if err := c.Reader.Get(ctx, key, &cm); err != nil {
		message := fmt.Sprintf("the ConfigMap %s of spec.trialTemplate.configMap cannot be read: %v", key, err)
		if apierrors.IsNotFound(err) && c.Now().Sub(exp.CreationTimestamp.Time) > applyPatience {
			return nil, &fatalError{message + ". Create it, then create the experiment again"}
		}
		return nil, errors.New(message)
	}
	text, ok := cm.Data[t.ConfigMap.TemplatePath]
	if !ok {
		return nil, &fatalError{fmt.Sprintf("the ConfigMap %s has no entry %q (spec.trialTemplate.configMap.templatePath): add it or correct the name", key, t.ConfigMap.TemplatePath)}
	}
	return []byte(text), nil
}

// newTrial is the trial with the given number.
func newTrial(exp *v1beta1.Experiment, template []byte, n int, p proposal) (*v1beta1.Trial, error) {
	name := v1beta1.TrialName(exp.Name, n)
	tt := *exp.Spec.TrialTemplate
	job, err := trainer.Render(template, placeholders(tt), assignments(exp, p), trainer.Identity{Namespace: exp.Namespace, Name: name})
	if err != nil {
		return nil, &fatalError{fmt.Sprintf("spec.trialTemplate cannot be rendered: %v", err)}
	}
	v1beta1.SetKindDefaults(&tt, job.GetKind())
	raw, err := job.MarshalJSON()
	if err != nil {
		return nil, &fatalError{fmt.Sprintf("spec.trialTemplate cannot be rendered: %v", err)}
	}
	labels := map[string]string{}
	maps.Copy(labels, exp.Labels)
	labels[v1beta1.LabelExperiment] = exp.Name
	labels[v1beta1.LabelTrialNumber] = strconv.Itoa(n)
	t := &v1beta1.Trial{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: exp.Namespace, Name: name, Labels: labels,
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(exp, v1beta1.GroupVersion.WithKind("Experiment"))},
		},
		Spec: v1beta1.TrialSpec{
			Objective:            exp.Spec.Objective,
			Objectives:           exp.Spec.Objectives,
			ParameterAssignments: p.assignments,
			RunSpec:              &runtime.RawExtension{Raw: raw},
			RetainRun:            tt.Retain,
			MetricsCollector:     *exp.Spec.MetricsCollectorSpec,
			PrimaryPodLabels:     tt.PrimaryPodLabels,
			PrimaryContainerName: tt.PrimaryContainerName,
			SuccessCondition:     tt.SuccessCondition,
			FailureCondition:     tt.FailureCondition,
		},
	}
	if len(p.meta) > 0 {
		meta, err := json.Marshal(p.meta)
		if err != nil {
			return nil, fmt.Errorf("encode the meta of trial %s: %w", name, err)
		}
		metav1.SetMetaDataAnnotation(&t.ObjectMeta, v1beta1.AnnotationMeta, string(meta))
	}
	if p.why != "" {
		metav1.SetMetaDataAnnotation(&t.ObjectMeta, v1beta1.AnnotationWhy, p.why)
	}
	if p.resource > 0 {
		metav1.SetMetaDataAnnotation(&t.ObjectMeta, v1beta1.AnnotationResource, strconv.FormatFloat(p.resource, 'g', -1, 64))
	}
	if rate, set := exp.Annotations[v1beta1.AnnotationCollectorRate]; set {
		metav1.SetMetaDataAnnotation(&t.ObjectMeta, v1beta1.AnnotationCollectorRate, rate)
	}
	// The API server's answer is read into the trial, not into the experiment.
	return t.DeepCopy(), nil
}

func placeholders(t v1beta1.TrialTemplate) []trainer.Placeholder {
	out := make([]trainer.Placeholder, len(t.TrialParameters))
	for i, p := range t.TrialParameters {
		out[i] = trainer.Placeholder{Name: p.Name, Reference: p.Reference}
	}
	return out
}

// assignments are what is put into the template: nothing for parameters that
// are not active.
func assignments(exp *v1beta1.Experiment, p proposal) []trainer.Assignment {
	out := make([]trainer.Assignment, len(p.assignments))
	for i, a := range p.assignments {
		out[i] = trainer.Assignment{Name: a.Name, Value: a.Value}
	}
	for _, spec := range exp.Spec.Parameters {
		given := slices.ContainsFunc(out, func(a trainer.Assignment) bool { return a.Name == spec.Name })
		if spec.When != nil && !given {
			out = append(out, trainer.Assignment{Name: spec.Name})
		}
	}
	return out
}

// byNumber orders trials by number, then by name.
func byNumber(a, b *v1beta1.Trial) int {
	na, _ := a.Number()
	nb, _ := b.Number()
	return cmp.Or(cmp.Compare(na, nb), cmp.Compare(a.Name, b.Name))
}
