package agent

import (
	"cmp"
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"

	"github.com/vernier-ml/vernier/local/shim"
)

// BenchmarkShortPods runs pods that end at once, 8 side by side, each with a
// sidecar as trials have it. It reports, in ms, the median and the 95th
// percentile from the binding to the start of the main process, and from the
// last exit to the moment that a watcher sees Succeeded; and the status
// writes of a pod.
func BenchmarkShortPods(b *testing.B) {
	if world.missing != "" {
		b.Fatal(world.missing)
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	ns, err := world.client.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "bench-"}}, metav1.CreateOptions{})
	if err != nil {
		b.Fatal(err)
	}
	root := filepath.Join(b.TempDir(), "root")
	done := make(chan error, 1)
	go func() {
		done <- Run(ctx, Config{
			REST: world.rest, NodeName: ns.Name, Root: root, ShimBinary: world.shim, CPU: resource.MustParse("64"), GPUs: []string{},
			CertFile: filepath.Join(world.dir, "server.crt"), KeyFile: filepath.Join(world.dir, "server.key"),
			ClientCAFile: filepath.Join(world.dir, "ca.crt"), Clock: clock.RealClock{},
		})
	}()
	watch, err := world.client.CoreV1().Pods(ns.Name).Watch(ctx, metav1.ListOptions{})
	if err != nil {
		b.Fatal(err)
	}
	var start, end []time.Duration
	writes := 0
	bound := map[string]time.Time{}
	next := 0
	create := func() {
		r := rig{node: ns.Name, namespace: ns.Name}
		pod := r.pod(fmt.Sprintf("short-%d", next), "exit 0")
		pod.Spec.InitContainers = []corev1.Container{shell("init", "exit 0"), sidecar("collector", "trap 'exit 0' TERM; while :; do sleep 0.01; done")}
		next++
		bound[pod.Name] = time.Now()
		if _, err := world.client.CoreV1().Pods(ns.Name).Create(ctx, pod, metav1.CreateOptions{}); err != nil {
			b.Fatal(err)
		}
	}
	for range 8 {
		create()
	}
	for b.Loop() {
		for ended := false; !ended; {
			event := <-watch.ResultChan()
			pod, ok := event.Object.(*corev1.Pod)
			if !ok || event.Type != "MODIFIED" {
				continue
			}
			seen := time.Now()
			writes++
			if pod.Status.Phase != corev1.PodSucceeded {
				continue
			}
			state, err := shim.ReadState(layout{root}.shim(pod.UID))
			if err != nil {
				b.Fatal(err)
			}
			main, _ := state.Latest("main")
			side, _ := state.Latest("collector")
			start = append(start, main.StartedAt.Sub(bound[pod.Name]))
			end = append(end, seen.Sub(side.FinishedAt))
			create()
			ended = true
		}
	}
	ms := func(d []time.Duration, q float64) float64 {
		slices.SortFunc(d, cmp.Compare)
		return float64(d[int(q*float64(len(d)-1))]) / 1e6
	}
	b.ReportMetric(ms(start, 0.5), "ms-start-p50")
	b.ReportMetric(ms(start, 0.95), "ms-start-p95")
	b.ReportMetric(ms(end, 0.5), "ms-end-p50")
	b.ReportMetric(ms(end, 0.95), "ms-end-p95")
	b.ReportMetric(float64(writes)/float64(len(end)), "writes/pod")
	cancel()
	if err := <-done; err != nil {
		b.Error(err)
	}
	if err := StopPods(context.Background(), root); err != nil {
		b.Error(err)
	}
}
