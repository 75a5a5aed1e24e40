package webhook

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	kjson "sigs.k8s.io/json"

	"github.com/vernier-ml/vernier/api/v1beta1"
	"github.com/vernier-ml/vernier/trainer"
	"github.com/vernier-ml/vernier/trainer/kind"
	"github.com/vernier-ml/vernier/trainer/operator"
)

func inlineTemplate(t *v1beta1.TrialTemplate) ([]byte, error) {
	if t.TrialSpec == nil {
		return nil, field.Required(templatePath().Child("trialSpec"), "give the template of a trial's job")
	}
	raw, err := json.Marshal(t.TrialSpec)
	if err != nil {
		return nil, fmt.Errorf("read spec.trialTemplate.trialSpec: %w", err)
	}
	return raw, nil
}

// noGPUs is said of a budget that nothing uses.
const noGPUs = "spec.maxGPUHours: the template asks for no GPUs (limits such as nvidia.com/gpu), so this budget is never reached"

// validateTrialTemplate checks the part of the spec that speaks of the
// template, and the template itself if it is inline.
func (r Rules) validateTrialTemplate(exp *v1beta1.Experiment) (warnings []string, errs field.ErrorList) {
	path := templatePath()
	t := exp.Spec.TrialTemplate
	if t == nil {
		warnings = []string{"spec.trialTemplate: there is none, so nothing here runs the trials: they are handed out to programs that ask for them (see docs/api.md)"}
		if exp.Spec.MaxGPUHours != nil {
			warnings = append(warnings, noGPUs)
		}
		return warnings, nil
	}
	if t.PrimaryContainerName == "" {
		errs = append(errs, field.Required(path.Child("primaryContainerName"), "name the container that trains: its metrics are collected"))
	}
	if c := exp.Spec.Checkpoints(); c != nil {
		at := path.Child("checkpoints", "path")
		if t.Checkpoints == nil {
			at = field.NewPath("spec", "algorithm", "algorithmSettings")
		}
		if err := trainer.CheckCheckpointPath(c.Path); err != nil {
			errs = append(errs, field.Invalid(at, c.Path, err.Error()))
		}
	}
	warnings, e := validateReferences(exp)
	errs = append(errs, e...)
	switch {
	case t.TrialSpec == nil && t.ConfigMap == nil:
		errs = append(errs, field.Required(path, "give trialSpec or configMap"))
	case t.ConfigMap != nil:
		errs = append(errs, validateConfigMap(t.ConfigMap, path.Child("configMap"))...)
	default:
		text, err := inlineTemplate(t)
		if err != nil {
			return warnings, append(errs, field.Invalid(path.Child("trialSpec"), field.OmitValueType{}, err.Error()))
		}
		w, e := r.ValidateTemplate(exp, text)
		warnings, errs = append(warnings, w...), append(errs, e...)
	}
	return warnings, errs
}

func validateConfigMap(c *v1beta1.ConfigMapSource, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if c.ConfigMapName == "" {
		errs = append(errs, field.Required(path.Child("configMapName"), "name the ConfigMap that holds the template"))
	}
	if c.TemplatePath == "" {
		errs = append(errs, field.Required(path.Child("templatePath"), "name the key of the ConfigMap that holds the template"))
	}
	return errs
}

func validateReferences(exp *v1beta1.Experiment) (warnings []string, errs field.ErrorList) {
	t, path := exp.Spec.TrialTemplate, templatePath().Child("trialParameters")
	if len(t.TrialParameters) == 0 {
		return nil, field.ErrorList{field.Required(path, "say which placeholder ${trialParameters.name} of the template stands for which parameter")}
	}
	var searched []string
	for _, p := range exp.Spec.Parameters {
		searched = append(searched, p.Name)
	}
	names, referred := map[string]bool{}, map[string]bool{}
	for i, p := range t.TrialParameters {
		at := path.Index(i)
		switch {
		case p.Name == "":
			errs = append(errs, field.Required(at.Child("name"), "name the placeholder"))
		case strings.ContainsAny(p.Name, "{}"):
			errs = append(errs, field.Invalid(at.Child("name"), p.Name, "must not contain { or }: write name, and ${trialParameters.name} in the template"))
		case names[p.Name]:
			errs = append(errs, duplicate(at.Child("name"), p.Name, "is declared already: remove one, or give it another name"))
		}
		switch e := validateReference(p.Reference, searched, at.Child("reference")); {
		case e != nil:
			errs = append(errs, e)
		case referred[p.Reference] && !names[p.Name]: // as in Katib: most often one of them is meant for another parameter
			errs = append(errs, duplicate(at.Child("reference"), p.Reference, "has a placeholder already: use that one in both places, or correct the reference"))
		}
		names[p.Name], referred[p.Reference] = true, true
	}
	for i, name := range searched {
		if !referred[name] {
			warnings = append(warnings, fmt.Sprintf("spec.parameters[%d]: %q is searched, but no trialParameter refers to it: trials will not see it", i, name))
		}
	}
	return warnings, errs
}

// validateReference checks one reference. Architecture search makes parameters
// that the experiment does not name, so there anything goes.
func validateReference(reference string, searched []string, path *field.Path) *field.Error {
	switch {
	case reference == "":
		return field.Required(path, "name the parameter that the placeholder stands for")
	case trainer.IsMetadataReference(reference) || len(searched) == 0:
		return nil // Render knows the metadata references
	case !slices.Contains(searched, reference):
		return notFound(path, reference, "there is no such parameter; the parameters are: "+strings.Join(searched, ", "))
	}
	return nil
}

// ValidateTemplate says what is wrong with the text of the experiment's
// template: it is rendered with values out of the search space, and the
// collector is injected, as for a trial.
func (r Rules) ValidateTemplate(exp *v1beta1.Experiment, text []byte) (warnings []string, errs field.ErrorList) {
	t := exp.Spec.TrialTemplate
	path := templatePath().Child("trialSpec")
	if t.ConfigMap != nil {
		path = templatePath().Child("configMap", "templatePath")
	}
	warnings, used := unusedPlaceholders(t, text)
	unknown, _ := trainer.UnknownReplicas(text) // Render says what is wrong with the text
	for _, name := range unknown {
		warnings = append(warnings, fmt.Sprintf("%s: %s is left as it is: of the placeholders for replicas there are ${replica.index}, ${replica.role} and ${replica.hosts}", path, name))
	}
	placeholders, assignments := samples(exp, used)
	id := trainer.Identity{Namespace: exp.Namespace, Name: exp.Name + "-0000", Seed: "0"}
	job, err := trainer.Render(text, placeholders, assignments, id, kind.For)
	if err != nil {
		return warnings, fieldErrors(path, err)
	}
	errs = append(errs, validateConditions(t, job.GroupVersionKind().GroupKind())...)
	if job.GroupVersionKind() == batchv1.SchemeGroupVersion.WithKind("Job") {
		if e := validateJob(job, path); len(e) > 0 {
			return warnings, append(errs, e...)
		}
	}
	if err := operator.Validate(job); err != nil {
		return warnings, append(errs, fieldErrors(path, err)...)
	}
	if t.PrimaryContainerName == "" {
		return warnings, errs // said already, and no container has an empty name
	}
	if exp.Spec.MaxGPUHours != nil && trainer.GPUs(job, kind.For(job.GroupVersionKind())) == 0 {
		warnings = append(warnings, noGPUs)
	}
	collector := r.rehearsal(exp)
	err = trainer.Inject(job, kind.For(job.GroupVersionKind()), collector)
	if m := exp.Spec.MetricsCollectorSpec; err == nil && m != nil && m.Collector != nil && m.Collector.Kind == v1beta1.PushCollector {
		for _, w := range trainer.Warnings(job, kind.For(job.GroupVersionKind()), collector) {
			warnings = append(warnings, fmt.Sprintf("%s: %s", path.Child(w.Field), w.Problem))
		}
	}
	return warnings, append(errs, fieldErrors(path, err)...)
}

// unusedPlaceholders warns of declared placeholders that the template does not
// use (Katib rejects them; some of its own examples have them), and returns
// those that it does.
func unusedPlaceholders(t *v1beta1.TrialTemplate, text []byte) (warnings, used []string) {
	used, err := trainer.Placeholders(text)
	if err != nil {
		return nil, nil // Render says so
	}
	for i, p := range t.TrialParameters {
		if !slices.Contains(used, p.Name) {
			warnings = append(warnings, fmt.Sprintf("spec.trialTemplate.trialParameters[%d]: the template does not use ${trialParameters.%s}", i, p.Name))
		}
	}
	return warnings, used
}

// samples are the placeholders of the experiment and a value for each that
// could occur.
func samples(exp *v1beta1.Experiment, used []string) ([]trainer.Placeholder, map[string]string) {
	var placeholders []trainer.Placeholder
	values, assignments := map[string]string{}, map[string]string{}
	for _, p := range exp.Spec.Parameters {
		switch f := p.FeasibleSpace; {
		case len(f.List) > 0:
			values[p.Name] = f.List[0]
		case f.Min != "":
			values[p.Name] = f.Min
		}
	}
	for _, p := range exp.Spec.TrialTemplate.TrialParameters {
		if !slices.Contains(used, p.Name) {
			continue
		}
		placeholders = append(placeholders, trainer.Placeholder{Name: p.Name, Reference: p.Reference})
		if trainer.IsMetadataReference(p.Reference) {
			continue
		}
		value, ok := values[p.Reference]
		if !ok {
			// Said already, or the value comes from an architecture search.
			value = "test-value"
		}
		assignments[p.Reference] = value
	}
	return placeholders, assignments
}

func validateConditions(t *v1beta1.TrialTemplate, kind schema.GroupKind) field.ErrorList {
	t = t.DeepCopy()
	v1beta1.SetKindDefaults(t, kind)
	var errs field.ErrorList
	for _, c := range []struct{ name, expression string }{
		{"successCondition", t.SuccessCondition},
		{"failureCondition", t.FailureCondition},
	} {
		at := templatePath().Child(c.name)
		if c.expression == "" {
			errs = append(errs, field.Required(at, fmt.Sprintf("there is no default for the kind %s: give a GJSON expression over the object", kind.Kind)))
		} else if err := trainer.CheckCondition(c.expression); err != nil {
			errs = append(errs, field.Invalid(at, c.expression, err.Error()))
		}
	}
	return errs
}

// validateJob reads a batch/v1 Job strictly: a field that the API server would
// drop, or a value that it would refuse.
func validateJob(job *unstructured.Unstructured, path *field.Path) field.ErrorList {
	raw, err := job.MarshalJSON()
	if err != nil {
		return field.ErrorList{field.Invalid(path, field.OmitValueType{}, err.Error())}
	}
	var typed batchv1.Job
	strict, err := kjson.UnmarshalStrict(raw, &typed)
	var errs field.ErrorList
	for _, e := range append(strict, err) {
		if e != nil {
			errs = append(errs, field.Invalid(path, field.OmitValueType{}, fmt.Sprintf("is not a batch/v1 Job: %v: correct or remove the field", e)))
		}
	}
	pod := typed.Spec.Template.Spec
	errs = append(errs, imageErrors(path.Child("spec", "template", "spec", "initContainers"), pod.InitContainers)...)
	errs = append(errs, imageErrors(path.Child("spec", "template", "spec", "containers"), pod.Containers)...)
	if policy := typed.Spec.Template.Spec.RestartPolicy; len(errs) == 0 && policy != corev1.RestartPolicyNever && policy != corev1.RestartPolicyOnFailure {
		errs = append(errs, field.NotSupported(path.Child("spec", "template", "spec", "restartPolicy"), policy,
			[]corev1.RestartPolicy{corev1.RestartPolicyNever, corev1.RestartPolicyOnFailure}))
	}
	return errs
}

func imageErrors(path *field.Path, containers []corev1.Container) (errs field.ErrorList) {
	for i, c := range containers {
		if c.Image == "" {
			errs = append(errs, field.Required(path.Index(i).Child("image"), "name the image; in the embedded mode, which runs none, any name will do"))
		}
	}
	return errs
}

// rehearsal is the collector as far as it can fail because of the template. A
// collector that is itself wrong is reported elsewhere; then only the template
// is tried.
func (r Rules) rehearsal(exp *v1beta1.Experiment) trainer.Collector {
	t, m := exp.Spec.TrialTemplate, exp.Spec.MetricsCollectorSpec
	c := trainer.Collector{
		Kind:             trainer.Push,
		Binary:           r.Binary,
		Commands:         r.Commands,
		Experiment:       exp.Name,
		Trial:            exp.Name + "-0000",
		PrimaryContainer: t.PrimaryContainerName,
		PrimaryPodLabels: t.PrimaryPodLabels,
	}
	if r.Entrypoints {
		c.Entrypoint = func(trainer.Image) ([]string, []string, error) { return []string{"entrypoint"}, nil, nil }
	}
	if k := exp.Spec.Checkpoints(); k != nil {
		c.Checkpoints = &trainer.Checkpoints{Path: k.Path, Claim: k.ClaimName, Folder: exp.Name}
	}
	if m == nil || m.Collector == nil || len(validateCollector(m, nil)) > 0 {
		return c
	}
	c.Kind, c.Custom = string(m.Collector.Kind), m.Collector.CustomCollector
	if m.Source != nil && m.Source.FileSystemPath != nil {
		c.Path, c.Directory = m.Source.FileSystemPath.Path, m.Source.FileSystemPath.Kind == v1beta1.DirectoryKind
	}
	if m.Source != nil && m.Source.HTTPGet != nil {
		c.Endpoint = trainer.EndpointOf(m.Source.HTTPGet)
	}
	return c
}

func fieldErrors(path *field.Path, err error) field.ErrorList {
	var errs field.ErrorList
	for _, fe := range trainer.FieldErrors(err) {
		at := path
		if fe.Field != "" {
			at = path.Child(fe.Field)
		}
		if errors.Is(fe, trainer.ErrNoCommand) {
			errs = append(errs, field.Required(at, fe.Problem))
			continue
		}
		errs = append(errs, field.Invalid(at, field.OmitValueType{}, fe.Problem))
	}
	return errs
}
