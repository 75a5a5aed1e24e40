package agent

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/vernier-ml/vernier/local/shim"
)

// BenchmarkShortPods runs pods that end at once, 8 side by side, each with a
// sidecar as trials have it. It reports, in ms, the median and the 95th
// percentile from the binding to the start of the main process, and from the
// last exit to the moment that a watcher sees Succeeded; and the status
// writes of a pod.
func BenchmarkShortPods(b *testing.B) {
	ctx := b.Context()
	r := newRig(b, func(c *Config) { c.CPU = resource.MustParse("64") })
	events, err := r.client.CoreV1().Pods(r.namespace).Watch(ctx, metav1.ListOptions{})
	if err != nil {
		b.Fatal(err)
	}
	s := short{b: b, rig: r, bound: map[string]time.Time{}}
	for range 8 {
		s.create(ctx)
	}
	for b.Loop() {
		for ended := false; !ended; {
			ended = s.see(ctx, <-events.ResultChan())
		}
	}
	s.report()
}

// short is what is measured of pods that end at once.
type short struct {
	b          *testing.B
	rig        *rig
	made       int
	bound      map[string]time.Time // by name
	start, end []time.Duration
	writes     int
}

func (s *short) create(ctx context.Context) {
	pod := s.rig.pod(fmt.Sprintf("short-%d", s.made), "exit 0")
	pod.Spec.InitContainers = []corev1.Container{shell("init", "exit 0"), sidecar("collector", "trap 'exit 0' TERM; while :; do sleep 0.01; done")}
	s.made++
	s.bound[pod.Name] = time.Now()
	if _, err := s.rig.client.CoreV1().Pods(s.rig.namespace).Create(ctx, pod, metav1.CreateOptions{}); err != nil {
		s.b.Fatal(err)
	}
}

// see takes an event of a pod; when the pod has ended, another is made.
func (s *short) see(ctx context.Context, event watch.Event) (ended bool) {
	pod, ok := event.Object.(*corev1.Pod)
	if !ok || event.Type != watch.Modified {
		return false
	}
	seen := time.Now()
	s.writes++
	if pod.Status.Phase != corev1.PodSucceeded {
		return false
	}
	state, err := shim.ReadState(layout{s.rig.config.Root}.shim(pod.UID))
	if err != nil {
		s.b.Fatal(err)
	}
	main, _ := state.Latest("main")
	side, _ := state.Latest("collector")
	s.start = append(s.start, main.StartedAt.Sub(s.bound[pod.Name]))
	s.end = append(s.end, seen.Sub(side.FinishedAt))
	s.create(ctx)
	return true
}

func (s *short) report() {
	ms := func(d []time.Duration, q float64) float64 {
		slices.SortFunc(d, cmp.Compare)
		return float64(d[int(q*float64(len(d)-1))]) / 1e6
	}
	s.b.ReportMetric(ms(s.start, 0.5), "ms-start-p50")
	s.b.ReportMetric(ms(s.start, 0.95), "ms-start-p95")
	s.b.ReportMetric(ms(s.end, 0.5), "ms-end-p50")
	s.b.ReportMetric(ms(s.end, 0.95), "ms-end-p95")
	s.b.ReportMetric(float64(s.writes)/float64(len(s.end)), "writes/pod")
}
