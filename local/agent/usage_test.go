package agent

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/vernier-ml/vernier/collector"
	"github.com/vernier-ml/vernier/collector/store"
	"github.com/vernier-ml/vernier/local/shim"
	"github.com/vernier-ml/vernier/server"
	"github.com/vernier-ml/vernier/trainer"
)

// The driver of the machine is a script here, for a machine without GPUs.
func driver(t *testing.T, script string) {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "nvidia-smi"), []byte("#!/bin/sh\n"+script+"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
}

func TestTheStateOfGPUs(t *testing.T) {
	driver(t, `[ "$*" = "--query-gpu=uuid,utilization.gpu,memory.used --format=csv,noheader,nounits" ] || exit 1
echo "GPU-a, 93, 20480"
echo "GPU-mig, [N/A], 512"
echo "GPU-odd, -3, [Unknown Error]"
echo "Unable to determine the device handle for GPU0000:3B:00.0: Unknown Error"`)
	got, err := lookAtGPUs(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]gpuState{"GPU-a": {collector.GPUUtilization: 93, collector.GPUMemory: 20}, "GPU-mig": {collector.GPUMemory: 0.5}, "GPU-odd": {}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	driver(t, "exit 9")
	if _, err := lookAtGPUs(t.Context()); err == nil {
		t.Error("a driver that fails is not noticed")
	}
}

// sampled is a sampler of a node where pods run, which reports to a real service.
func sampled(t *testing.T, pods ...*corev1.Pod) (s *sampler, now *time.Time, points collector.Store) {
	t.Helper()
	points, err := store.Open(t.Context(), "memory:")
	if err != nil {
		t.Fatal(err)
	}
	key := []byte("0123456789abcdef0123456789abcdef")
	keyFile := filepath.Join(t.TempDir(), "report.key")
	if err := os.WriteFile(keyFile, key, 0o600); err != nil {
		t.Fatal(err)
	}
	made := time.Date(2030, 1, 2, 12, 0, 0, 0, time.UTC)
	now = &made
	clock := func() time.Time { return *now }
	mux := http.NewServeMux()
	path, reports, err := server.NewReportHandler(server.ReportConfig{Store: points, Keys: func() [][]byte { return [][]byte{key} }, Now: clock,
		OnPoints: func(collector.TrialID) { t.Error("a controller is woken") }})
	if err != nil {
		t.Fatal(err)
	}
	mux.Handle(path, reports)
	mux.HandleFunc("GET /apis/kubeflow.org/v1beta1/namespaces/ml/trials/exp-0000", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte(`{"apiVersion": "kubeflow.org/v1beta1", "kind": "Trial", "metadata": {"name": "exp-0000", "uid": "trial", "creationTimestamp": "2030-01-02T12:00:00Z"}}`))
	})
	service := httptest.NewUnstartedServer(mux)
	service.Config.Protocols = new(http.Protocols)
	service.Config.Protocols.SetHTTP1(true)
	service.Config.Protocols.SetUnencryptedHTTP2(true)
	service.Start()
	t.Cleanup(service.Close)
	client, err := kubernetes.NewForConfig(&rest.Config{Host: service.URL})
	if err != nil {
		t.Fatal(err)
	}
	book, err := openGPUBook(filepath.Join(t.TempDir(), "gpus.json"), wholeGPUs("GPU-a", "GPU-b", "GPU-c"), 1, logr.Discard())
	if err != nil {
		t.Fatal(err)
	}
	set := &podSet{pods: map[types.UID]*podEntry{}}
	for _, p := range pods {
		set.pods[p.UID] = &podEntry{newest: p}
		if _, err := book.Allocate(p); err != nil {
			t.Fatal(err)
		}
	}
	s = &sampler{node: &node{client: client, pods: set, gpuBook: book, log: logr.Discard()}, to: Reporting{URL: service.URL, KeyFile: keyFile}, now: clock,
		trials: map[types.UID]*trialUsage{}, gpus: lookAtGPUs, processes: func() (map[string]shim.Usage, error) { return nil, errors.New("not asked for") }}
	return s, now, points
}

// trialPod is a running pod of trial exp-0000 whose main container asks for GPUs.
func trialPod(name string, gpus int) *corev1.Pod {
	p := gpuPod(name, nil, nil, []int{gpus})
	p.Namespace, p.Name = "ml", name
	p.Labels = map[string]string{trainer.LabelTrial: "exp-0000", trainer.LabelExperiment: "exp"}
	p.CreationTimestamp = metav1.NewTime(time.Date(2030, 1, 2, 12, 0, 5, 0, time.UTC))
	p.Status.Phase = corev1.PodRunning
	return p
}

func TestWhatATrialUsesIsReported(t *testing.T) {
	driver(t, `cat "$(dirname "$0")/gpus"`)
	state := func(text string) {
		path := filepath.Join(filepath.SplitList(os.Getenv("PATH"))[0], "gpus")
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	waits := trialPod("exp-0000-waits", 0)
	waits.Status.Phase = corev1.PodPending
	other := trialPod("other", 0)
	other.Labels = nil
	master, worker := trialPod("exp-0000-master", 1), trialPod("exp-0000-worker", 1)
	s, now, points := sampled(t, master, worker, waits, other)
	began := *now
	for i, look := range []struct {
		gpus string
		cpu  time.Duration
		gib  int64
	}{
		{"GPU-a, 80, 1024\nGPU-b, 20, 2048\nGPU-c, 99, 9999\n", 10 * time.Second, 1},
		{"GPU-a, 100, 2048\nGPU-b, 40, 1024\n", 30 * time.Second, 3},
	} {
		*now = began.Add(time.Duration(i+1) * usageEvery)
		state(look.gpus)
		s.processes = func() (map[string]shim.Usage, error) {
			half := shim.Usage{CPU: look.cpu / 2, Memory: look.gib * gibibyte / 2}
			return map[string]shim.Usage{string(master.UID): half, string(worker.UID): half, "another": {Memory: 1 << 40}}, nil
		}
		s.look(t.Context())
	}
	series, err := collector.ReadSeries(t.Context(), points, "trial")
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]map[int64]float64{}
	for _, line := range series {
		if !line.Attempt.System() || !collector.IsSystemMetric(line.Metric) {
			t.Errorf("%s is of attempt %s", line.Metric, line.Attempt.ID)
		}
		got[line.Metric] = map[int64]float64{}
		for _, p := range line.Points {
			got[line.Metric][p.Step] = p.Value
		}
	}
	gpu0, gpu1 := map[int64]float64{10: 80, 20: 100}, map[int64]float64{10: 20, 20: 40}
	mem0, mem1 := map[int64]float64{10: 1, 20: 2}, map[int64]float64{10: 2, 20: 1}
	want := map[string]map[int64]float64{
		"system/gpu0.utilization_percent": gpu0, "system/gpu1.utilization_percent": gpu1, "system/gpu0.memory_gib": mem0, "system/gpu1.memory_gib": mem1,
		"system/cpu_cores": {20: 2}, "system/memory_gib": {10: 1, 20: 3},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestWhatHasNoProcessUsesNothingThatIsKnown(t *testing.T) {
	p := trialPod("exp-0000-x", 0)
	now := time.Date(2030, 1, 2, 12, 0, 0, 0, time.UTC)
	u := &trialUsage{made: now, samples: map[string][]float64{}, cpu: map[types.UID]time.Duration{}}
	for _, used := range []map[string]shim.Usage{nil, {string(p.UID): {Memory: gibibyte, CPU: time.Second}}, {string(p.UID): {Memory: 2 * gibibyte, CPU: usageEvery}}, nil} {
		now = now.Add(usageEvery)
		u.take(now, []*corev1.Pod{p}, used, func(*corev1.Pod) []gpuState { return nil })
	}
	want := map[string][]float64{collector.SystemMemory: {1, 2}, collector.SystemCPU: {0.9}}
	if diff := cmp.Diff(want, u.samples); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// Points get rarer as a trial grows older, and stand for all samples between them.
func TestALongTrialHasFewPoints(t *testing.T) {
	p := trialPod("exp-0000-x", 0)
	s, now, points := sampled(t, p)
	began, gib := *now, int64(0)
	s.processes = func() (map[string]shim.Usage, error) {
		gib = (gib + 1) % 7
		return map[string]shim.Usage{string(p.UID): {Memory: gib * gibibyte, CPU: now.Sub(began) * 3}}, nil
	}
	for *now = began; now.Sub(began) < 48*time.Hour; *now = now.Add(usageEvery) {
		s.look(t.Context())
	}
	series, err := collector.ReadSeries(t.Context(), points, "trial", collector.SystemMemory, collector.SystemCPU)
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range series {
		if n := len(line.Points); n < usageDetail || n > 5*usageDetail {
			t.Errorf("%s has %d points", line.Metric, n)
		}
		if last := line.Points[len(line.Points)-1].Value; line.Metric == collector.SystemMemory && last != 6 || line.Metric == collector.SystemCPU && last != 3 {
			t.Errorf("the last point of %s is %v", line.Metric, last)
		}
	}
}

// Samples that could not be reported become part of the next point.
func TestAReportThatFailsLosesNoSample(t *testing.T) {
	p := trialPod("exp-0000-x", 0)
	s, now, points := sampled(t, p)
	url, began := s.to.URL, *now
	for i, gib := range []int64{9, 2} {
		s.processes = func() (map[string]shim.Usage, error) {
			return map[string]shim.Usage{string(p.UID): {Memory: gib * gibibyte}}, nil
		}
		s.to.URL = map[bool]string{true: "http://127.0.0.1:1", false: url}[i == 0]
		*now = began.Add(time.Duration(i+1) * usageEvery)
		s.look(t.Context())
		s.trials[p.UID].client = nil
	}
	series, err := collector.ReadSeries(t.Context(), points, "trial", collector.SystemMemory)
	if err != nil || len(series) != 1 || len(series[0].Points) != 1 || series[0].Points[0].Value != 9 {
		t.Errorf("%v, %v", series, err)
	}
}

// The samples since the last point of a trial become one when its last pod ends.
func TestTheLastSamplesOfATrialAreReported(t *testing.T) {
	p := trialPod("exp-0000-x", 0)
	s, now, points := sampled(t, p)
	began := *now
	for i, gib := range []int64{2, 9} { // too soon for a point of a trial that is a day old
		s.processes = func() (map[string]shim.Usage, error) {
			return map[string]shim.Usage{string(p.UID): {Memory: gib * gibibyte}}, nil
		}
		*now = began.Add(24*time.Hour + time.Duration(i)*usageEvery)
		s.look(t.Context())
	}
	ended := p.DeepCopy()
	ended.Status.Phase = corev1.PodSucceeded
	s.pods.pods[p.UID].newest = ended
	*now = now.Add(usageEvery)
	for range 2 {
		s.look(t.Context())
	}
	series, err := collector.ReadSeries(t.Context(), points, "trial", collector.SystemMemory)
	if err != nil || len(series) != 1 {
		t.Fatal(series, err)
	}
	var values []float64
	for _, p := range series[0].Points {
		values = append(values, p.Value)
	}
	if diff := cmp.Diff([]float64{9}, values); diff != "" {
		t.Error(diff)
	}
	if len(s.trials) > 0 {
		t.Error("the trial is still known")
	}
}

// The driver is asked once for all, and only while a trial holds a GPU.
func TestTheDriverIsAskedOnceForAllTrials(t *testing.T) {
	none := trialPod("exp-0000-x", 0)
	s, _, _ := sampled(t, none)
	asked := 0
	s.gpus = func(context.Context) (map[string]gpuState, error) { asked++; return nil, nil }
	s.processes = func() (map[string]shim.Usage, error) { return nil, nil }
	s.look(t.Context())
	if asked != 0 {
		t.Error("it is asked though no trial holds a GPU")
	}
	s, _, _ = sampled(t, trialPod("exp-0000-y", 2), trialPod("exp-0000-z", 1))
	s.gpus = func(context.Context) (map[string]gpuState, error) { asked++; return nil, nil }
	s.processes = func() (map[string]shim.Usage, error) { return nil, nil }
	s.look(t.Context())
	if asked != 1 {
		t.Errorf("it is asked %d times", asked)
	}
}
