package api

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/types/known/emptypb"
	"google.golang.org/protobuf/types/known/fieldmaskpb"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	vernierv1 "github.com/vernier-ml/vernier/api/proto/vernier/v1"
	"github.com/vernier-ml/vernier/api/v1beta1"
)

const (
	maxNotes = 16 << 10
	maxTags  = 50
)

var (
	tagForm = regexp.MustCompile(`^[A-Za-z0-9._-]{1,63}$`)
	// settable are the fields of a spec that UpdateExperiment changes.
	settable = []string{"maxDuration", "maxFailedTrialCount", "maxGPUHours", "maxTrialCount", "maxTrialDuration", "maxTrialWaitDuration", "parallelTrialCount", "suspend"}
)

// target is where a request creates its experiment: with YAML, which has its name, only
// the namespace.
func target(r *vernierv1.CreateExperimentRequest) (place, error) {
	if r.GetYaml() != "" {
		return parsePlace("parent", r.GetParent(), namespaceForm)
	}
	return parsePlace("experiment.name", r.GetExperiment().GetName(), experimentForm)
}

// wanted is the experiment of a request, and its place.
func wanted(r *vernierv1.CreateExperimentRequest) (*v1beta1.Experiment, place, error) {
	if r.GetYaml() != "" {
		return fromYAML(r.GetYaml(), r.GetParent())
	}
	p, err := target(r)
	if err != nil {
		return nil, p, err
	}
	exp := &v1beta1.Experiment{ObjectMeta: metav1.ObjectMeta{Namespace: p.namespace, Name: p.experiment}}
	text, err := r.GetExperiment().GetSpec().MarshalJSON()
	if err == nil {
		decoder := json.NewDecoder(bytes.NewReader(text))
		decoder.DisallowUnknownFields()
		err = decoder.Decode(&exp.Spec)
	}
	if err != nil {
		return nil, p, invalid("write it as in the YAML of an Experiment", "experiment.spec cannot be read: %w", err)
	}
	exp.Annotations, err = annotations(&fieldmaskpb.FieldMask{Paths: []string{"notes", "tags"}}, r.GetExperiment())
	for name, value := range exp.Annotations {
		if value == "" {
			delete(exp.Annotations, name)
		}
	}
	return exp, p, err
}

// fromYAML reads an experiment, whose namespace is that of parent.
func fromYAML(text, parent string) (*v1beta1.Experiment, place, error) {
	p, err := parsePlace("parent", parent, namespaceForm)
	if err != nil {
		return nil, p, err
	}
	exp := &v1beta1.Experiment{}
	if err := yaml.UnmarshalStrict([]byte(text), exp); err != nil {
		return nil, p, invalid("correct what is named", "the YAML cannot be read: %w", err)
	}
	want := v1beta1.GroupVersion.WithKind("Experiment")
	switch {
	case exp.GroupVersionKind() != want:
		return nil, p, invalid("write apiVersion: "+v1beta1.GroupVersion.String()+" and kind: Experiment", "the YAML is a %s", exp.GroupVersionKind())
	case exp.Name == "":
		return nil, p, invalid("write metadata.name", "the experiment has no name")
	case exp.Namespace != "" && exp.Namespace != p.namespace:
		return nil, p, invalid("leave metadata.namespace out, or make them the same", "the YAML is for the namespace %s, and the request for %s", exp.Namespace, p.namespace)
	}
	clean := &v1beta1.Experiment{ObjectMeta: metav1.ObjectMeta{Namespace: p.namespace, Name: exp.Name, Labels: exp.Labels, Annotations: exp.Annotations}, Spec: exp.Spec}
	p.experiment = exp.Name
	return clean, p, nil
}

// noted is what has notes and tags.
type noted interface {
	GetNotes() string
	GetTags() []string
}

// annotations are those that a mask names; an empty one is to be removed.
func annotations(mask *fieldmaskpb.FieldMask, from noted) (map[string]string, error) {
	out := map[string]string{}
	for _, path := range mask.GetPaths() {
		switch path {
		case "notes":
			if len(from.GetNotes()) > maxNotes {
				return nil, invalid(fmt.Sprintf("give at most %d", maxNotes), "the notes have %d bytes", len(from.GetNotes()))
			}
			out[v1beta1.AnnotationNotes] = strings.ToValidUTF8(from.GetNotes(), "?")
		case "tags":
			tags := slices.Compact(slices.Sorted(slices.Values(from.GetTags())))
			if len(tags) > maxTags {
				return nil, invalid(fmt.Sprintf("give at most %d", maxTags), "there are %d tags", len(tags))
			}
			for _, tag := range tags {
				if !tagForm.MatchString(tag) {
					return nil, invalid("use letters, digits, '-', '_' and '.', at most 63", "the tag %.80q is not valid", tag)
				}
			}
			out[v1beta1.AnnotationTags] = strings.Join(tags, ",")
		}
	}
	return out, nil
}

// patched is a merge patch of annotations; empty ones are removed.
func patched(annotations map[string]string) map[string]any {
	out := map[string]any{}
	for name, value := range annotations {
		out[name] = value
		if value == "" {
			out[name] = nil
		}
	}
	return map[string]any{"annotations": out}
}

// UpdateExperiment implements vernierv1.ExperimentServiceHandler.
func (s *service) UpdateExperiment(ctx context.Context, r *vernierv1.UpdateExperimentRequest) (*vernierv1.Experiment, error) {
	p, err := parsePlace("experiment.name", r.GetExperiment().GetName(), experimentForm)
	if err != nil {
		return nil, err
	}
	if err := s.allow(ctx, "patch", "experiments", p); err != nil {
		return nil, err
	}
	spec := map[string]any{}
	for _, path := range r.GetUpdateMask().GetPaths() {
		name, ofSpec := strings.CutPrefix(path, "spec.")
		name = camel(name)
		switch {
		case ofSpec && slices.Contains(settable, name):
			spec[name] = nil
			if v, given := r.GetExperiment().GetSpec().GetFields()[name]; given {
				spec[name] = v.AsInterface()
			}
		case ofSpec || path != "notes" && path != "tags":
			return nil, invalid("name some of notes, tags, spec."+strings.Join(settable, ", spec."), "update_mask names %q, which cannot be changed", path)
		}
	}
	noted, err := annotations(r.GetUpdateMask(), r.GetExperiment())
	if err != nil {
		return nil, err
	}
	if len(spec) == 0 && len(noted) == 0 {
		return nil, invalid("name what to change", "update_mask is empty")
	}
	meta := patched(noted)
	if etag := r.GetExperiment().GetEtag(); etag != "" {
		meta["resourceVersion"] = etag
	}
	return s.patch(ctx, p, map[string]any{"metadata": meta, "spec": spec}, r.GetValidateOnly())
}

// camel is snake_case, as JSON makes of the paths in a mask, in camelCase.
func camel(text string) string {
	words := strings.Split(text, "_")
	for i, w := range words[1:] {
		if w != "" {
			words[i+1] = strings.ToUpper(w[:1]) + w[1:]
		}
	}
	return strings.Join(words, "")
}

// patch changes an experiment.
func (s *service) patch(ctx context.Context, p place, change map[string]any, dry bool) (*vernierv1.Experiment, error) {
	text, err := json.Marshal(change)
	if err != nil {
		return nil, explain(ctx, err)
	}
	var options []client.PatchOption
	if dry {
		options = append(options, client.DryRunAll)
	}
	exp := &v1beta1.Experiment{ObjectMeta: metav1.ObjectMeta{Namespace: p.namespace, Name: p.experiment}}
	writer, err := s.as(ctx)
	if err == nil {
		err = writer.Patch(ctx, exp, client.RawPatch(types.MergePatchType, text), options...)
	}
	if apierrors.IsConflict(err) {
		return nil, fault(connect.CodeAborted, ReasonConflict, "read it again, and decide anew", "experiment %s has changed since it was read", p.key())
	}
	if err != nil {
		return nil, explain(ctx, err)
	}
	v1beta1.SetDefaults(exp)
	out, err := experimentOut(exp)
	if err == nil {
		out.Warnings, _ = s.Experiments.Rules.Validate(exp, nil)
	}
	return out, err
}

// StopExperiment implements vernierv1.ExperimentServiceHandler.
func (s *service) StopExperiment(ctx context.Context, r *vernierv1.StopExperimentRequest) (*vernierv1.Experiment, error) {
	p, err := parsePlace("name", r.GetName(), experimentForm)
	if err != nil {
		return nil, err
	}
	if err := s.allow(ctx, "patch", "experiments", p); err != nil {
		return nil, err
	}
	exp, err := s.experiment(ctx, p)
	if err != nil {
		return nil, err
	}
	end := v1beta1.EndStop
	if r.GetCancel() {
		end = v1beta1.EndCancel
	}
	if exp.IsCompleted() || exp.Annotations[v1beta1.AnnotationEnd] == v1beta1.EndCancel {
		return experimentOut(exp) // it has ended, or does
	}
	return s.patch(ctx, p, map[string]any{"metadata": patched(map[string]string{v1beta1.AnnotationEnd: end})}, false)
}

// DeleteExperiment implements vernierv1.ExperimentServiceHandler.
func (s *service) DeleteExperiment(ctx context.Context, r *vernierv1.DeleteExperimentRequest) (*emptypb.Empty, error) {
	p, err := parsePlace("name", r.GetName(), experimentForm)
	if err != nil {
		return nil, err
	}
	if err := s.allow(ctx, "delete", "experiments", p); err != nil {
		return nil, err
	}
	options := []client.DeleteOption{client.PropagationPolicy(metav1.DeletePropagationBackground)}
	if uid := types.UID(r.GetUid()); uid != "" {
		options = append(options, client.Preconditions{UID: &uid})
	}
	exp := &v1beta1.Experiment{ObjectMeta: metav1.ObjectMeta{Namespace: p.namespace, Name: p.experiment}}
	writer, err := s.as(ctx)
	if err == nil {
		err = writer.Delete(ctx, exp, options...)
	}
	if apierrors.IsConflict(err) { // another one of this name: that one is gone
		err = nil
	}
	return &emptypb.Empty{}, explain(ctx, client.IgnoreNotFound(err))
}

// GetTrial implements vernierv1.ExperimentServiceHandler.
func (s *service) GetTrial(ctx context.Context, r *vernierv1.GetTrialRequest) (*vernierv1.Trial, error) {
	p, err := parsePlace("name", r.GetName(), trialForm)
	if err != nil {
		return nil, err
	}
	if err := s.allow(ctx, "get", "trials", p); err != nil {
		return nil, err
	}
	t, err := s.trial(ctx, p)
	if err != nil {
		return nil, err
	}
	return s.out(ctx, p, t)
}

// trial is the trial of that experiment.
func (s *service) trial(ctx context.Context, p place) (*v1beta1.Trial, error) {
	t := &v1beta1.Trial{}
	err := s.Client.Get(ctx, p.trialKey(), t)
	if apierrors.IsNotFound(err) { // it may have been created a moment ago
		err = s.Reader.Get(ctx, p.trialKey(), t)
	}
	if err == nil && t.Labels[v1beta1.LabelExperiment] != p.experiment {
		err = fault(connect.CodeNotFound, ReasonNotFound, "correct the name", "experiment %s has no trial %s", p.key(), p.trial)
	}
	return t, explain(ctx, err)
}

// StopTrial implements vernierv1.ExperimentServiceHandler.
func (s *service) StopTrial(ctx context.Context, r *vernierv1.StopTrialRequest) (*vernierv1.Trial, error) {
	why := r.GetReason()
	if why == "" {
		why = caller(ctx).Username + " asked for it"
	}
	if len(why) > maxReason {
		return nil, invalid(fmt.Sprintf("give at most %d", maxReason), "the reason has %d bytes", len(why))
	}
	return s.steer(ctx, "name", r.GetName(), func(t *v1beta1.Trial) (map[string]string, error) {
		if t.IsCompleted() || t.AskedToStop() {
			return nil, nil
		}
		return map[string]string{v1beta1.AnnotationStop: strings.ToValidUTF8(why, "?")}, nil
	})
}

// UpdateTrial implements vernierv1.ExperimentServiceHandler.
func (s *service) UpdateTrial(ctx context.Context, r *vernierv1.UpdateTrialRequest) (*vernierv1.Trial, error) {
	return s.steer(ctx, "trial.name", r.GetTrial().GetName(), func(*v1beta1.Trial) (map[string]string, error) {
		for _, path := range r.GetUpdateMask().GetPaths() {
			if path != "notes" && path != "tags" {
				return nil, invalid("name notes, tags or both", "update_mask names %q, which cannot be changed", path)
			}
		}
		return annotations(r.GetUpdateMask(), r.GetTrial())
	})
}

// steer changes annotations of a trial, if change names any.
func (s *service) steer(ctx context.Context, field, name string, change func(*v1beta1.Trial) (map[string]string, error)) (*vernierv1.Trial, error) {
	p, err := parsePlace(field, name, trialForm)
	if err != nil {
		return nil, err
	}
	if err := s.allow(ctx, "update", "trials/steer", p); err != nil {
		return nil, err
	}
	t, err := s.trial(ctx, p)
	if err != nil {
		return nil, err
	}
	changes, err := change(t)
	if err != nil || len(changes) == 0 {
		if err != nil {
			return nil, err
		}
		return s.out(ctx, p, t)
	}
	meta := patched(changes)
	meta["uid"] = t.UID // not one of the same name that was made since
	text, err := json.Marshal(map[string]any{"metadata": meta})
	if err == nil {
		err = s.Client.Patch(ctx, t, client.RawPatch(types.MergePatchType, text))
	}
	if err != nil {
		return nil, explain(ctx, err)
	}
	return s.out(ctx, p, t)
}

// tagsOf are the tags in annotations.
func tagsOf(annotations map[string]string) []string {
	if annotations[v1beta1.AnnotationTags] == "" {
		return nil
	}
	return strings.Split(annotations[v1beta1.AnnotationTags], ",")
}
