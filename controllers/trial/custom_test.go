package trial

import (
	"encoding/json"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/google/go-cmp/cmp"

	"github.com/vernier-ml/vernier/api/v1beta1"
	"github.com/vernier-ml/vernier/collector"
	"github.com/vernier-ml/vernier/trainer"
)

// The job of a trial with a Custom collector has the user's container beside the
// program, with the directory of the metrics in both.
func TestTheJobHasTheCustomCollector(t *testing.T) {
	c := &Controller{}
	c.Reporting.Image, c.Reporting.Token = "collector:1", func(collector.TrialID) (string, error) { return "t", nil }
	tr := aTrial(byStrategies("min", "max"))
	tr.Spec.PrimaryContainerName = "main"
	tr.Spec.RunSpec = &runtime.RawExtension{Raw: []byte(`{"apiVersion":"batch/v1","kind":"Job","spec":{"template":{"spec":{"containers":[{"name":"main","image":"i","command":["a"]}]}}}}`)}
	tr.Spec.MetricsCollector = v1beta1.MetricsCollectorSpec{
		Collector: &v1beta1.CollectorSpec{Kind: v1beta1.CustomCollector, CustomCollector: &corev1.Container{Name: "mine", Image: "mine:1", Args: []string{"-x"}}},
		Source:    &v1beta1.SourceSpec{FileSystemPath: &v1beta1.FileSystemPath{Path: "/katib/out.log", Kind: v1beta1.FileKind}},
	}
	job, err := c.build(t.Context(), tr, schema.GroupVersionKind{Group: "batch", Version: "v1", Kind: "Job"}, corev1.ResourceRequirements{})
	if err != nil {
		t.Fatal(err)
	}
	raw, err := json.Marshal(job.Object["spec"])
	if err != nil {
		t.Fatal(err)
	}
	var spec struct {
		Template struct{ Spec corev1.PodSpec }
	}
	if err := json.Unmarshal(raw, &spec); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, container := range spec.Template.Spec.Containers {
		for _, m := range container.VolumeMounts {
			got = append(got, container.Name+" "+container.Image+" "+m.Name+" "+m.MountPath)
		}
	}
	want := []string{
		"main i " + trainer.SourceVolume + " /katib",
		"mine mine:1 " + trainer.SourceVolume + " /katib", "mine mine:1 " + trainer.MetricsVolume + " /var/run/vernier",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if len(tr.Spec.MetricsCollector.Collector.CustomCollector.VolumeMounts) > 0 {
		t.Error("the trial was changed")
	}
}

func TestTheHintOfACustomCollectorSaysWhereToReport(t *testing.T) {
	tr := aTrial(byStrategies("min", "max"))
	tr.Spec.MetricsCollector.Collector = &v1beta1.CollectorSpec{Kind: v1beta1.CustomCollector}
	want := `Report "loss" from the collector's container to katib-db-manager.kubeflow:6789, or correct the metric's name`
	if got := hint(tr, "loss"); got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
