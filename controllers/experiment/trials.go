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
	"strings"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/vernier-ml/vernier/api/v1beta1"
	"github.com/vernier-ml/vernier/controllers/study"
	"github.com/vernier-ml/vernier/tracing"
	"github.com/vernier-ml/vernier/trainer"
	"github.com/vernier-ml/vernier/trainer/kind"
)

const (
	// writers is how many trials are asked to stop at once.
	writers = 8
	// applyPatience is how long after its creation an experiment waits for what it
	// names and may be applied after it: the ConfigMap of its template, experiments
	// to learn from.
	applyPatience = 30 * time.Second
)

// fatalError cannot be helped by trying again.
type fatalError struct{ message string }

func (e *fatalError) Error() string { return e.message }

// growBackoff is how long new trials wait after an attempt to make some failed.
var growBackoff = wait.Backoff{Duration: 200 * time.Millisecond, Factor: 2, Jitter: 0.1, Steps: 10, Cap: time.Minute}

// tryGrow makes the trials that a asks for, unless that failed a moment ago: then
// the findings are what they were, and retry is when it is tried again. A text that
// changes with each attempt, such as a port or a time, is so not written each time
// that something wakes the experiment.
func (c *Controller) tryGrow(ctx context.Context, exp *v1beta1.Experiment, s *kept, trials []*v1beta1.Trial, a actions) (found findings, retry time.Duration) {
	if a.add == 0 {
		return findings{}, 0
	}
	now := c.Now()
	if left := s.retryAt.Sub(now); left > 0 {
		return s.trouble, left
	}
	found, err := c.grow(ctx, exp, s, trials, a)
	if err == nil || errors.Is(err, context.Canceled) {
		s.backoff, s.retryAt = growBackoff, time.Time{}
		return found, 0
	}
	log.FromContext(ctx).Error(err, "no trial can be started for now")
	if s.retryAt.IsZero() {
		s.backoff = growBackoff
	}
	retry = s.backoff.Step()
	s.trouble, s.retryAt = found, now.Add(retry)
	return found, retry
}

// grow makes the trials that a asks for. The error is what is worth another
// attempt; what a user has to know of it is in the findings.
func (c *Controller) grow(ctx context.Context, exp *v1beta1.Experiment, s *kept, trials []*v1beta1.Trial, a actions) (findings, error) {
	first := len(trials) == 0
	template, err := c.template(ctx, exp, first)
	if err != nil {
		return hindered(err)
	}
	if first && exp.Spec.TrialTemplate.TrialSpec == nil {
		if _, errs := c.Rules.ValidateTemplate(exp, template); len(errs) > 0 {
			return findings{fatal: "The template in the ConfigMap is not valid, so no trial was started: " + errs.ToAggregate().Error()}, nil
		}
	}
	ctx, span := c.Traces.Start(ctx, "experiment.grow", tracing.Of(exp.Namespace, exp.Name, ""))
	proposals, err := c.propose(ctx, exp, s, first, a)
	var waits *waitError
	switch { // a span that does not end is not sent
	case errors.Is(err, study.ErrExhausted):
		return findings{exhausted: true}, nil
	case errors.Is(err, errLearning):
		return findings{}, nil
	case errors.As(err, &waits):
		return findings{trouble: v1beta1.MessageHeldUp + waits.message}, nil
	}
	defer func() { tracing.End(span, err) }()
	if err != nil {
		return hindered(err)
	}
	if len(proposals) == 0 && !s.Outside() && count(trials).active() == 0 {
		return hindered(fmt.Errorf("algorithm %q proposes nothing although no trial is running", exp.Spec.Algorithm.AlgorithmName))
	}
	made := make([]*v1beta1.Trial, len(proposals))
	for i, p := range proposals {
		if made[i], err = newTrial(exp, template, a.first+i, p); err != nil {
			return hindered(err)
		}
	}
	// In order, and no further than the first that fails: numbers have no gaps,
	// whenever the manager dies.
	for _, t := range made {
		if err = c.create(ctx, exp, t); err != nil {
			return hindered(err)
		}
		if t.UID == "" && !slices.ContainsFunc(trials, func(s *v1beta1.Trial) bool { return s.Name == t.Name }) {
			// It exists, of an earlier answer: this one did not know of it. The event
			// that shows it wakes the experiment.
			return findings{}, nil
		}
	}
	return findings{}, nil
}

// errLearning says that the algorithm still learns from the last results; it asks
// for another reconcile when it has.
var errLearning = errors.New("the algorithm learns from the last results")

// propose asks the experiment's algorithm for at most n points, unless it learns.
func (c *Controller) propose(ctx context.Context, exp *v1beta1.Experiment, s *kept, first bool, a actions) ([]study.Proposal, error) {
	if s.Outside() {
		return c.fromService(ctx, exp, a)
	}
	if err := c.inform(ctx, exp, s, first); err != nil {
		return nil, err
	}
	if s.asked.IsZero() {
		s.asked = c.Now()
	}
	if !s.Ready(ctx, c.Now(), c.waker(exp)) {
		return nil, errLearning
	}
	return c.question(ctx, exp, s, a.add)
}

// inform gives the study what is not in the trials.
func (c *Controller) inform(ctx context.Context, exp *v1beta1.Experiment, s *kept, first bool) error {
	if s.StopsEarly() {
		if err := s.ReadCurves(ctx, c.Scan); err != nil {
			return err
		}
	}
	return c.warm(ctx, exp, s.Study, first)
}

func (c *Controller) question(ctx context.Context, exp *v1beta1.Experiment, s *kept, n int) ([]study.Proposal, error) {
	ctx, cancel := context.WithTimeout(ctx, suggestTimeout)
	defer cancel()
	name := exp.Spec.Algorithm.AlgorithmName
	ctx, span := c.Traces.Start(ctx, "suggest", trace.WithAttributes(attribute.String("vernier.algorithm", name), attribute.Int("vernier.wanted", n)))
	start := c.Now()
	if s.asked.IsZero() { // trials that are handed out wait for no learning
		s.asked = start
	}
	proposals, err := s.Propose(ctx, n)
	tracing.End(span, err)
	for i := range proposals {
		proposals[i].Asked.Version = c.Version
		// A model is fitted in half of the time.
		proposals[i].Asked.Late = c.Now().Sub(start) >= suggestTimeout/2
	}
	c.Metrics.suggested(name, proposals, err, start.Sub(s.asked), c.Now().Sub(start))
	s.asked = time.Time{}
	if err != nil {
		return nil, fmt.Errorf("algorithm %q: %w", name, err)
	}
	return proposals, nil
}

// waker asks for a reconcile of the experiment. It keeps only the name: the API
// server's answer to a status write is read into exp meanwhile.
func (c *Controller) waker(exp *v1beta1.Experiment) func(context.Context) {
	named := &v1beta1.Experiment{ObjectMeta: metav1.ObjectMeta{Namespace: exp.Namespace, Name: exp.Name}}
	return func(ctx context.Context) {
		select {
		case c.woken <- event.GenericEvent{Object: named}:
		case <-ctx.Done():
		}
	}
}

// hindered is what the user is shown of an error, and the error if it is worth another
// attempt.
func hindered(err error) (findings, error) {
	var fatal *fatalError
	switch {
	case errors.Is(err, context.Canceled):
		return findings{}, err
	case errors.As(err, &fatal):
		return findings{fatal: fatal.message}, nil
	default:
		return findings{trouble: v1beta1.MessageHeldUp + err.Error()}, err
	}
}

// create creates a trial. That it exists already and is ours is success: this
// controller made it and the cache does not show it yet, or another instance
// did before it died.
func (c *Controller) create(ctx context.Context, exp *v1beta1.Experiment, t *v1beta1.Trial) (err error) {
	ctx, span := c.Traces.Start(ctx, "trial.create", tracing.Of(exp.Namespace, exp.Name, t.Name))
	defer func() { tracing.End(span, err) }()
	if parent := tracing.Traceparent(ctx); parent != "" {
		metav1.SetMetaDataAnnotation(&t.ObjectMeta, v1beta1.AnnotationTraceparent, parent)
	}
	err = c.Client.Create(ctx, t)
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

// template is the text of the experiment's template. Before the first trial, a
// ConfigMap that is not there is waited for a little: it may be applied after the
// experiment. Later what is wrong with it is trouble that may pass.
func (c *Controller) template(ctx context.Context, exp *v1beta1.Experiment, first bool) ([]byte, error) {
	text, err := c.Rules.ReadTemplate(ctx, exp)
	var wrong *field.Error
	patient := !first || c.Now().Sub(exp.CreationTimestamp.Time) <= applyPatience
	switch {
	case err == nil || !errors.As(err, &wrong):
		return text, err
	case wrong.Type == field.ErrorTypeNotFound && patient:
		return nil, errors.New(wrong.Error())
	default:
		return nil, &fatalError{wrong.Error()}
	}
}

// newTrial is the trial with the given number.
func newTrial(exp *v1beta1.Experiment, template []byte, n int, p study.Proposal) (*v1beta1.Trial, error) {
	t, err := withoutJob(exp, n, p)
	if err != nil {
		return nil, err
	}
	tt := *exp.Spec.TrialTemplate
	values := map[string]string{}
	for _, a := range p.Assignments {
		values[a.Name] = a.Value
	}
	job, err := trainer.Render(template, placeholders(exp, values), values, trainer.Identity{Namespace: exp.Namespace, Name: t.Name, Seed: study.TrialSeed(exp, n)}, kind.For)
	if err != nil {
		return nil, &fatalError{fmt.Sprintf("spec.trialTemplate cannot be rendered: %v", err)}
	}
	v1beta1.SetKindDefaults(&tt, job.GroupVersionKind().GroupKind())
	raw, err := job.MarshalJSON()
	if err != nil {
		return nil, &fatalError{fmt.Sprintf("spec.trialTemplate cannot be rendered: %v", err)}
	}
	t.Spec.RunSpec = &runtime.RawExtension{Raw: raw}
	noteGPUs(exp, t, job)
	t.Spec.RetainRun = tt.Retain
	t.Spec.MetricsCollector = *exp.Spec.MetricsCollectorSpec
	t.Spec.PrimaryPodLabels, t.Spec.PrimaryContainerName = tt.PrimaryPodLabels, tt.PrimaryContainerName
	t.Spec.SuccessCondition, t.Spec.FailureCondition = tt.SuccessCondition, tt.FailureCondition
	t.Spec.MaxDuration, t.Spec.MaxWaitDuration = exp.Spec.MaxTrialDuration, exp.Spec.MaxTrialWaitDuration
	t.Spec.Retry = tt.Retry
	t.Spec.Checkpoints = checkpoints(exp, p)
	return t.DeepCopy(), nil
}

// withoutJob is the trial with the given number, but for what runs it.
func withoutJob(exp *v1beta1.Experiment, n int, p study.Proposal) (*v1beta1.Trial, error) {
	labels := map[string]string{}
	maps.Copy(labels, exp.Labels)
	maps.Copy(labels, p.Labels)
	labels[v1beta1.LabelExperiment] = exp.Name
	labels[v1beta1.LabelTrialNumber] = strconv.Itoa(n)
	t := &v1beta1.Trial{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: exp.Namespace, Name: cmp.Or(p.Name, v1beta1.TrialName(exp.Name, n)), Labels: labels,
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(exp, v1beta1.GroupVersion.WithKind("Experiment"))},
		},
		Spec: v1beta1.TrialSpec{
			Objective: exp.Spec.Objective, Objectives: exp.Spec.Objectives, ParameterAssignments: p.Assignments,
		},
	}
	metav1.SetMetaDataAnnotation(&t.ObjectMeta, v1beta1.AnnotationSeed, study.TrialSeed(exp, n))
	if len(p.Meta) > 0 {
		meta, err := json.Marshal(p.Meta)
		if err != nil {
			return nil, fmt.Errorf("encode the meta of trial %s: %w", t.Name, err)
		}
		metav1.SetMetaDataAnnotation(&t.ObjectMeta, v1beta1.AnnotationMeta, string(meta))
	}
	if p.Asked != nil {
		asked, err := json.Marshal(p.Asked)
		if err != nil {
			return nil, fmt.Errorf("encode the question for trial %s: %w", t.Name, err)
		}
		metav1.SetMetaDataAnnotation(&t.ObjectMeta, v1beta1.AnnotationAsked, string(asked))
	}
	if p.Why != "" {
		metav1.SetMetaDataAnnotation(&t.ObjectMeta, v1beta1.AnnotationWhy, p.Why)
	}
	if p.Resource > 0 {
		metav1.SetMetaDataAnnotation(&t.ObjectMeta, v1beta1.AnnotationResource, strconv.FormatFloat(p.Resource, 'g', -1, 64))
	}
	for name, value := range exp.Annotations {
		if strings.HasPrefix(name, v1beta1.AnnotationCollector) {
			metav1.SetMetaDataAnnotation(&t.ObjectMeta, name, value)
		}
	}
	// The API server's answer is read into the trial, not into the experiment.
	return t.DeepCopy(), nil
}

// checkpoints is where the trial of a proposal keeps them, and the trial that it
// continues.
func checkpoints(exp *v1beta1.Experiment, p study.Proposal) *v1beta1.TrialCheckpoints {
	spec := exp.Spec.Checkpoints()
	if spec == nil {
		return nil
	}
	out := &v1beta1.TrialCheckpoints{CheckpointSpec: *spec, Folder: v1beta1.CheckpointFolder(exp.Name, v1beta1.Origin(&exp.ObjectMeta))}
	if out.ClaimName == "" {
		out.ClaimName = v1beta1.VolumeClaimName(exp.Name, exp.Spec.Algorithm)
	}
	if parent, ok := p.Parent(); ok {
		out.Parent = v1beta1.TrialName(exp.Name, parent)
	}
	return out
}

// placeholders are those of the template. Of parameters that have a condition, those
// without a value are not active.
func placeholders(exp *v1beta1.Experiment, values map[string]string) []trainer.Placeholder {
	var out []trainer.Placeholder
	for _, p := range exp.Spec.TrialTemplate.TrialParameters {
		conditional := slices.ContainsFunc(exp.Spec.Parameters, func(s v1beta1.ParameterSpec) bool { return s.Name == p.Reference && s.When != nil })
		_, active := values[p.Reference]
		out = append(out, trainer.Placeholder{Name: p.Name, Reference: p.Reference, Inactive: conditional && !active})
	}
	return out
}
