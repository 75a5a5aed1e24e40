package trial

import (
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/vernier-ml/vernier/controllers/metrics"
)

func TestATrialThatEndsTellsHowLongItWaitedAndWhatItUsed(t *testing.T) {
	at := func(s int) *metav1.Time { return ptr.To(metav1.NewTime(noon.Add(time.Duration(s) * time.Second))) }
	pod := corev1.Pod{
		Spec: corev1.PodSpec{Containers: []corev1.Container{
			{Name: "main", Resources: corev1.ResourceRequirements{Limits: corev1.ResourceList{"nvidia.com/gpu": resource.MustParse("2"), "cpu": resource.MustParse("8")}}},
			{Name: "other"},
		}},
		Status: corev1.PodStatus{StartTime: at(10), ContainerStatuses: []corev1.ContainerStatus{
			{Name: "other", State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: *at(11)}}},
			{Name: "main", State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: *at(70)}},
				LastTerminationState: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{StartedAt: *at(30)}}},
		}},
	}
	reg := prometheus.NewRegistry()
	m := NewMetrics(metrics.Options{Registry: reg}, fake.NewClientBuilder().Build())
	tr := aTrial()
	tr.Status.StartTime = at(0)
	before := *tr.Status.DeepCopy()
	tr.MarkSucceeded("m", *at(100))
	tr.Status.CompletionTime = at(100)
	m.wrote(tr, []corev1.Pod{pod, {}}, &before, &tr.Status)
	m.wrote(tr, []corev1.Pod{pod}, &tr.Status, &tr.Status) // says nothing new
	want := `
# HELP vernier_gpu_seconds_total GPUs (limits */gpu) of the pods of trials that ended, times the seconds that the pods had them.
# TYPE vernier_gpu_seconds_total counter
vernier_gpu_seconds_total{namespace="ns"} 180
`
	if err := testutil.CollectAndCompare(m.gpu, strings.NewReader(want)); err != nil {
		t.Error(err)
	}
	families := map[string]float64{}
	for name, h := range map[string]*prometheus.HistogramVec{"queue": m.queue, "duration": m.duration} {
		families[name] = sumOf(t, h)
	}
	if families["queue"] != 30 || families["duration"] != 100 {
		t.Errorf("seconds %v, want queue 30, duration 100", families)
	}
}

func sumOf(t *testing.T, h *prometheus.HistogramVec) float64 {
	t.Helper()
	reg := prometheus.NewRegistry()
	reg.MustRegister(h)
	all, err := reg.Gather()
	if err != nil || len(all) != 1 || len(all[0].GetMetric()) != 1 {
		t.Fatalf("%v %v", all, err)
	}
	return all[0].GetMetric()[0].GetHistogram().GetSampleSum()
}
