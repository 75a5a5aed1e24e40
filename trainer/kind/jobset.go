package kind

import (
	"fmt"
	"strconv"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/vernier-ml/vernier/trainer"
)

// jobSet is SIG Scheduling's: its jobs are Indexed, and their pods have names in the
// DNS by a headless Service of the set.
type jobSet struct{ generic }

func newJobSet() jobSet {
	return jobSet{generic{schema.GroupVersionKind{Group: "jobset.x-k8s.io", Version: "v1alpha2", Kind: "JobSet"}}}
}

// labelJobIndex has a Job's place among those of its name in a JobSet.
const labelJobIndex = "jobset.sigs.k8s.io/job-index"

func (jobSet) Replicas(obj *unstructured.Unstructured) (all []trainer.Replicas, err error) {
	jobs, _, err := unstructured.NestedSlice(obj.Object, "spec", "replicatedJobs")
	if err != nil {
		return nil, fmt.Errorf("the pods of the JobSet are not known: %w", err)
	}
	subdomain, _, _ := unstructured.NestedString(obj.Object, "spec", "network", "subdomain")
	if subdomain == "" {
		subdomain = obj.GetName()
	}
	named, set, _ := unstructured.NestedBool(obj.Object, "spec", "network", "enableDNSHostnames")
	for i, j := range jobs {
		job, _ := j.(map[string]any)
		name, _, _ := unstructured.NestedString(job, "name")
		template, _, _ := unstructured.NestedMap(job, "template", "spec", "template")
		count := countAt(job, 1, "replicas")
		pods := countAt(job, countAt(job, 1, "template", "spec", "parallelism"), "template", "spec", "completions")
		r := trainer.Replicas{Role: name, Path: []string{"spec", "replicatedJobs", strconv.Itoa(i)}, Count: count * pods}
		switch {
		case pods == 1 && count > 1:
			r.Index = "metadata.labels['" + labelJobIndex + "']"
		case pods > 1 && count == 1:
			r.Index = completionIndex
		case pods > 1:
			r.NoIndex = fmt.Sprintf("the pods of %s are of several Jobs, so none counts them all: give it replicas or parallelism, not both", name)
		}
		if set && !named {
			r.NoHosts = "the pods of this JobSet have no names: remove spec.network.enableDNSHostnames"
		}
		r.Host = func(i int) string {
			return fmt.Sprintf("%s-%s-%d-%d.%s%s", obj.GetName(), name, i/pods, i%pods, subdomain, port(template))
		}
		all = append(all, r)
	}
	return all, nil
}
