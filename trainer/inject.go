package trainer

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/vernier-ml/vernier/collector/contract"
)

// Inject edits the pod templates of a job, before the job is created, so that
// the metrics of its primary container are collected.
//
// The job and all its pod templates get the labels of the trial, and every
// primary container the variables KATIB_TRIAL_NAME and VERNIER_TRIAL_SEED. The primary template gets
// the collector as a native sidecar (an init container that keeps running).
// For StdOut the command of the primary container is run by "collector exec",
// argument by argument, without a shell; for other kinds it is unchanged. With
// Collector.Mount the pod of a Job gets no sidecar for StdOut, but the image as a volume.
// For Custom the user's container is added beside the primary one.
//
// A job that does not show the template of its primary pod is only labelled: the
// collector is injected into its pods when they are created, by InjectPod.
//
// The job must have its namespace, because the trial's ports depend on it.
// Inject is idempotent. On an error the job is unchanged.
func Inject(job *unstructured.Unstructured, kind Kind, c Collector) error {
	if AtPod(job, kind, c.PrimaryContainer) {
		return markAtPod(job, kind.(Opaque), c)
	}
	roles, err := kind.Roles(job)
	if err != nil {
		return fmt.Errorf("inject the %s collector: %w", c.Kind, err)
	}
	work := job.DeepCopy()
	primary, err := choosePrimary(work, roles, c)
	if err != nil {
		return err
	}
	if err := addLabels(work.Object, nil, c); err != nil {
		return err
	}
	for _, role := range roles {
		tpl, err := Template(work, role)
		if err != nil {
			return err
		}
		c.Commands.name(tpl)
		if err := prepare(tpl, role, c); err != nil {
			return err
		}
	}
	tpl, err := Template(work, primary)
	if err != nil {
		return err
	}
	// Other kinds may be defined by schemas that do not know volumes of this source.
	c.Mount = c.Mount && c.Kind == StdOut && c.Binary == "" && work.GroupVersionKind().Group == batchv1.GroupName
	if err := injectTemplate(tpl, primary, work.GetNamespace(), c); err != nil {
		return err
	}
	c.Commands.name(tpl) // a Custom collector
	if c.RerunDisrupted {
		rerunDisrupted(work)
	}
	job.Object = work.Object
	return nil
}

func addLabels(obj map[string]any, where []string, c Collector) error {
	meta, err := childMap(obj, where, "metadata")
	if err != nil {
		return err
	}
	labels, err := childMap(meta, under(where, "metadata"), "labels")
	if err != nil {
		return err
	}
	c.label(labels)
	return nil
}

// label adds what a job of the trial and its pods are labelled with.
func (c Collector) label(labels map[string]any) {
	for k, v := range c.Labels {
		labels[k] = v
	}
	labels[LabelExperiment], labels[LabelTrial] = c.Experiment, c.Trial
}

// prepare gives one pod template what every pod of the trial has: its labels and, in
// the primary container, its name, its seed and its checkpoints.
func prepare(tpl map[string]any, role Role, c Collector) error {
	if err := addLabels(tpl, role.TemplatePath, c); err != nil {
		return err
	}
	p := pod{path: under(role.TemplatePath, "spec"), c: c}
	p.spec, _ = tpl["spec"].(map[string]any)
	main, where := p.primary()
	if main == nil {
		return nil
	}
	upsert(main, "env", map[string]any{
		"name":      EnvTrialName,
		"valueFrom": fieldRef("metadata.labels['" + LabelTrial + "']"),
	})
	if c.Seed != "" {
		addEnv(main, EnvTrialSeed, c.Seed)
	}
	if c.Checkpoints != nil {
		if err := p.addCheckpoints(main); err != nil {
			return err
		}
	}
	if c.Binary == "" || c.Path == "" || !slices.Contains([]string{File, TensorFlowEvent, Custom}, c.Kind) {
		return nil
	}
	// Without images a pod that is not measured would write to the machine's directory,
	// whose files later trials could not hide.
	_, err := p.shareSource(main, where)
	return err
}

// injectTemplate puts the collector into the template of the primary role.
func injectTemplate(tpl map[string]any, role Role, namespace string, c Collector) error {
	p := pod{path: under(role.TemplatePath, "spec"), namespace: namespace, c: c}
	p.spec, _ = tpl["spec"].(map[string]any)
	if c.Kind == Custom && c.Binary != "" {
		var err error
		if p.ownNetwork, err = askForNetwork(tpl, role.TemplatePath); err != nil {
			return err
		}
	}
	return p.inject()
}

// askForNetwork has the embedded mode give the pod a network of its own, unless its
// author chose one.
func askForNetwork(tpl map[string]any, where []string) (own bool, err error) {
	meta, err := childMap(tpl, where, "metadata")
	if err != nil {
		return false, err
	}
	annotations, err := childMap(meta, under(where, "metadata"), "annotations")
	if err != nil {
		return false, err
	}
	if _, chosen := annotations[contract.AnnotationNetwork]; !chosen {
		annotations[contract.AnnotationNetwork] = contract.NetworkPod
	}
	return annotations[contract.AnnotationNetwork] == contract.NetworkPod, nil
}

// leaders are the names of roles whose first pod speaks for a job, the most likely
// first; those of the training operator's kinds are as their operator chooses.
var leaders = []string{"launcher", "chief", "master", "leader", "driver", "head", "coordinator", "scheduler", "node", "worker"}

// choosePrimary finds the role whose pods are measured: the one that the kind
// names, else the one with the primary container, else the one among several that
// the primary pod labels select, else the one whose name says that it leads.
func choosePrimary(job *unstructured.Unstructured, roles []Role, c Collector) (Role, error) {
	var candidates []Role
	for _, role := range roles {
		tpl, err := Template(job, role)
		if err != nil {
			return Role{}, err
		}
		has := container(tpl, c.PrimaryContainer) != nil
		if role.Primary && !has {
			return Role{}, noContainer(role, tpl, c.PrimaryContainer)
		}
		if role.Primary {
			return role, nil
		}
		if has {
			candidates = append(candidates, role)
		}
	}
	switch len(candidates) {
	case 0:
		var errs []error
		for _, role := range roles {
			tpl, _ := Template(job, role)
			errs = append(errs, noContainer(role, tpl, c.PrimaryContainer))
		}
		return Role{}, errors.Join(errs...)
	case 1:
		return candidates[0], nil
	}
	return byLabels(job, candidates, c)
}

func byLabels(job *unstructured.Unstructured, candidates []Role, c Collector) (Role, error) {
	matching := slices.DeleteFunc(slices.Clone(candidates), func(r Role) bool {
		labels, _ := at(job.Object, under(r.TemplatePath, "metadata", "labels")...).(map[string]any)
		for k, v := range c.PrimaryPodLabels {
			if labels[k] != v {
				return true
			}
		}
		return len(c.PrimaryPodLabels) == 0
	})
	if len(matching) == 1 {
		return matching[0], nil
	}
	// Labels that an operator sets are not in the template, but they name its
	// roles.
	var wanted []string
	for _, key := range []string{"training.kubeflow.org/replica-type", "jobset.sigs.k8s.io/replicatedjob-name", "volcano.sh/task-spec"} {
		wanted = append(wanted, c.PrimaryPodLabels[key])
	}
	if len(c.PrimaryPodLabels) == 0 || c.PrimaryPodLabels["training.kubeflow.org/job-role"] == "master" {
		wanted = append(wanted, leaders...)
	}
	for _, name := range wanted {
		for _, r := range candidates {
			if name != "" && strings.EqualFold(r.Name, name) {
				return r, nil
			}
		}
	}
	var names []string
	for _, r := range candidates {
		names = append(names, FieldPath(r.TemplatePath))
	}
	return Role{}, &FieldError{Problem: fmt.Sprintf("several pod templates have a container %q (%s): set primaryPodLabels to labels that only one of them has",
		c.PrimaryContainer, strings.Join(names, ", "))}
}

func noContainer(role Role, tpl map[string]any, name string) error {
	var have []string
	containers, _ := at(tpl, "spec", "containers").([]any)
	for _, v := range containers {
		have = append(have, fmt.Sprintf("%q", fmt.Sprint(at(v, "name"))))
	}
	return fault(under(role.TemplatePath, "spec", "containers"),
		"there is no container %q, which primaryContainerName names; the containers are: %s", name, strings.Join(have, ", "))
}

// container returns the pod template's container with the name, or nil.
func container(tpl map[string]any, name string) map[string]any {
	list, _ := at(tpl, "spec", "containers").([]any)
	return named(list, name)
}

func named(list []any, name string) map[string]any {
	for _, v := range list {
		if m, ok := v.(map[string]any); ok && m["name"] == name {
			return m
		}
	}
	return nil
}

// upsert puts an entry into a list of named entries: it replaces the one with its
// name, or is appended.
func upsert(parent map[string]any, key string, entry map[string]any) {
	list, _ := parent[key].([]any)
	for i, v := range list {
		if at(v, "name") == entry["name"] {
			list[i] = entry
			return
		}
	}
	parent[key] = append(slices.Clip(list), entry)
}

// childMap returns the map under key, made if it is absent.
func childMap(parent map[string]any, where []string, key string) (map[string]any, error) {
	switch v := parent[key].(type) {
	case map[string]any:
		return v, nil
	case nil:
		m := map[string]any{}
		parent[key] = m
		return m, nil
	default:
		return nil, fault(under(where, key), "must be a map, not %v", v)
	}
}

func fieldRef(field string) map[string]any {
	return map[string]any{"fieldRef": map[string]any{"apiVersion": "v1", "fieldPath": field}}
}

// beneath says whether p is dir or lies under it.
func beneath(p, dir string) bool {
	p, dir = path.Clean(p), path.Clean(dir)
	return p == dir || dir == "/" || strings.HasPrefix(p, dir+"/")
}
