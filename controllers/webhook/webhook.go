// Package webhook admits experiments: it fills in defaults and says what is
// wrong with them.
//
// What is checked is checked by the experiment controller too, so that an experiment
// that slipped past admission ends with a condition instead of running wrongly.
package webhook

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/validation/field"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/vernier-ml/vernier/api/v1beta1"
	"github.com/vernier-ml/vernier/controllers/katib"
	"github.com/vernier-ml/vernier/controllers/study"
	"github.com/vernier-ml/vernier/trainer"
)

// Rules are what experiments are admitted by. The experiment controller uses them
// too, for experiments that slipped past admission.
type Rules struct {
	Reader client.Reader
	// Binary is the collector command on every node, in the embedded mode; see
	// trainer.Collector.
	Binary string
	// Commands are what images run, where it is known; see trainer.Collector.
	Commands trainer.Commands
	// Entrypoints says that the entrypoints of images are found when trials are made.
	Entrypoints bool
	// Katib knows whether Katib is installed.
	Katib *katib.Presence

	outside string // an algorithm that Katib's ConfigMap names
}

// For are the rules for an experiment whose algorithm may be one that Katib's ConfigMap
// names.
func (r Rules) For(ctx context.Context, exp *v1beta1.Experiment) (Rules, error) {
	if study.ProposedByService(&exp.Spec) {
		name := exp.Spec.Algorithm.AlgorithmName
		_, found, err := katib.FindAlgorithm(ctx, r.Reader, name)
		if err != nil {
			return r, err
		}
		if found {
			r.outside = name
		}
	}
	return r, nil
}

// LabelTemplates, with the value trial-templates, marks a ConfigMap whose templates
// experiments of all namespaces may use. It is Katib's.
const (
	LabelTemplates = "katib.kubeflow.org/component"
	templates      = "trial-templates"
)

// Default fills in what an experiment leaves open.
func Default(exp *v1beta1.Experiment) { v1beta1.SetDefaults(exp) }

// ReadTemplate returns the text of the experiment's template. A ConfigMap or entry
// that does not exist is a *field.Error.
func (r Rules) ReadTemplate(ctx context.Context, exp *v1beta1.Experiment) ([]byte, error) {
	t := exp.Spec.TrialTemplate
	if t == nil {
		return nil, field.Required(templatePath(), "give the template of a trial's job")
	}
	if t.ConfigMap == nil {
		return inlineTemplate(t)
	}
	path := templatePath().Child("configMap")
	var cm corev1.ConfigMap
	key := client.ObjectKey{Namespace: cmp.Or(t.ConfigMap.ConfigMapNamespace, exp.Namespace), Name: t.ConfigMap.ConfigMapName}
	if err := r.Reader.Get(ctx, key, &cm); err != nil {
		if apierrors.IsNotFound(err) {
			return nil, notFound(path.Child("configMapName"), key.String(), "there is no such ConfigMap: create it before the experiment")
		}
		return nil, fmt.Errorf("read the trial template from ConfigMap %s: %w", key, err)
	}
	if cm.Namespace != exp.Namespace && cm.Labels[LabelTemplates] != templates {
		return nil, field.Forbidden(path.Child("configMapNamespace"), fmt.Sprintf("ConfigMap %s is in another namespace and not shared: copy it, or give it the label %s=%s", key, LabelTemplates, templates))
	}
	text, ok := cm.Data[t.ConfigMap.TemplatePath]
	if !ok {
		return nil, notFound(path.Child("templatePath"), t.ConfigMap.TemplatePath,
			fmt.Sprintf("ConfigMap %s has no such entry: use one of its keys", key))
	}
	return []byte(text), nil
}

func notFound(path *field.Path, value, detail string) *field.Error {
	e := field.NotFound(path, value)
	e.Detail = detail
	return e
}

func duplicate(path *field.Path, value, detail string) *field.Error {
	e := field.Duplicate(path, value)
	e.Detail = detail
	return e
}

// SetupWithManager registers the admission handlers of experiments at
// /mutate-kubeflow-org-v1beta1-experiment and
// /validate-kubeflow-org-v1beta1-experiment.
func (r Rules) SetupWithManager(mgr ctrl.Manager) error {
	hook := admission.WithDefaulter(mgr.GetScheme(), defaulter{r})
	hook.Handler = undecodable{decoder: admission.NewDecoder(mgr.GetScheme()), next: hook.Handler}
	mgr.GetWebhookServer().Register(MutatePath, hook)
	return ctrl.NewWebhookManagedBy(mgr, &v1beta1.Experiment{}).
		WithValidator(validator{r}).
		Complete()
}

// MutatePath is where the defaulting webhook listens.
const MutatePath = "/mutate-kubeflow-org-v1beta1-experiment"

// undecodable lets objects pass that do not fit the Go types, for example with a
// string where a number belongs. The API server checks the schema after the
// defaulting webhooks, and says it better: with the path of the field.
type undecodable struct {
	decoder admission.Decoder
	next    admission.Handler
}

func (u undecodable) Handle(ctx context.Context, req admission.Request) admission.Response {
	if len(req.Object.Raw) > 0 {
		if err := u.decoder.DecodeRaw(req.Object, &v1beta1.Experiment{}); err != nil {
			return admission.Allowed("the schema will say what is wrong: " + err.Error())
		}
	}
	return u.next.Handle(ctx, req)
}

type defaulter struct{ rules Rules }

var _ admission.Defaulter[*v1beta1.Experiment] = defaulter{}

func (d defaulter) Default(ctx context.Context, exp *v1beta1.Experiment) error {
	if exp.DeletionTimestamp != nil {
		return nil
	}
	DefaultNamespace(exp)
	Default(exp)
	req, err := admission.RequestFromContext(ctx)
	switch {
	case err != nil:
	case req.Operation == admissionv1.Create:
		d.defaultFromConfigMap(ctx, exp)
	case req.Operation == admissionv1.Update:
		old := &v1beta1.Experiment{}
		if json.Unmarshal(req.OldObject.Raw, old) == nil {
			keepKindDefaults(exp, old)
		}
	}
	return nil
}

// keepKindDefaults fills in what defaultFromConfigMap found when the experiment was
// created: its manifest, applied again, does not have it.
func keepKindDefaults(exp, old *v1beta1.Experiment) {
	t, before := exp.Spec.TrialTemplate, old.Spec.TrialTemplate
	if t == nil || before == nil || t.ConfigMap == nil || before.ConfigMap == nil || *t.ConfigMap != *before.ConfigMap {
		return
	}
	t.SuccessCondition = cmp.Or(t.SuccessCondition, before.SuccessCondition)
	t.FailureCondition = cmp.Or(t.FailureCondition, before.FailureCondition)
	if t.PrimaryPodLabels == nil {
		t.PrimaryPodLabels = before.PrimaryPodLabels
	}
}

// defaultFromConfigMap sets what depends on the kind of a template in a
// ConfigMap, so that it shows in the experiment. When the template cannot be
// read, the validator says so.
func (d defaulter) defaultFromConfigMap(ctx context.Context, exp *v1beta1.Experiment) {
	t := exp.Spec.TrialTemplate
	if t == nil || t.ConfigMap == nil || t.TrialSpec != nil {
		return
	}
	text, err := d.rules.ReadTemplate(ctx, exp)
	if err != nil {
		return
	}
	if gvk, err := trainer.TemplateGVK(text); err == nil {
		v1beta1.SetKindDefaults(t, gvk.GroupKind())
	}
}

// DefaultNamespace makes a ConfigMap template without a namespace mean the
// experiment's own.
func DefaultNamespace(exp *v1beta1.Experiment) {
	if t := exp.Spec.TrialTemplate; t != nil && t.ConfigMap != nil && t.ConfigMap.ConfigMapNamespace == "" {
		t.ConfigMap.ConfigMapNamespace = exp.Namespace
	}
}

type validator struct{ rules Rules }

var _ admission.Validator[*v1beta1.Experiment] = validator{}

func (v validator) ValidateCreate(ctx context.Context, exp *v1beta1.Experiment) (admission.Warnings, error) {
	return v.validate(ctx, exp, nil)
}

func (v validator) ValidateUpdate(ctx context.Context, old, exp *v1beta1.Experiment) (admission.Warnings, error) {
	return v.validate(ctx, exp, old)
}

// ValidateDelete implements admission.Validator: everything may be deleted.
func (v validator) ValidateDelete(context.Context, *v1beta1.Experiment) (admission.Warnings, error) {
	return nil, nil
}

func (v validator) validate(ctx context.Context, exp, old *v1beta1.Experiment) (admission.Warnings, error) {
	rules, err := v.rules.For(ctx, exp)
	if err != nil {
		return nil, apierrors.NewInternalError(err)
	}
	warnings, errs := rules.Validate(exp, old)
	if old == nil && v.rules.Katib.Installed() {
		warnings = append(warnings, katib.Warning)
	}
	if t := exp.Spec.TrialTemplate; old == nil && t != nil && t.ConfigMap != nil && t.TrialSpec == nil {
		text, err := v.rules.ReadTemplate(ctx, exp)
		var fe *field.Error
		switch {
		case errors.As(err, &fe):
			errs = append(errs, fe)
		case err != nil:
			return warnings, apierrors.NewInternalError(err)
		default:
			w, e := v.rules.ValidateTemplate(exp, text)
			warnings, errs = append(warnings, w...), append(errs, e...)
		}
	}
	if len(errs) == 0 {
		return warnings, nil
	}
	return warnings, apierrors.NewInvalid(v1beta1.GroupVersion.WithKind("Experiment").GroupKind(), exp.Name, errs)
}
