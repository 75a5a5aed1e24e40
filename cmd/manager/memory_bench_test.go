package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"

	"github.com/vernier-ml/vernier/api/v1beta1"
)

// BenchmarkMemory measures what a manager takes when it has read so many trials that
// have ended, of experiments of 500, whose jobs have 4 KiB of arguments. Nothing of what
// it measures depends on b.N.
func BenchmarkMemory(b *testing.B) {
	for _, trials := range []int{0, 1_000, 10_000} {
		b.Run(fmt.Sprint(trials), func(b *testing.B) {
			w := newWorld(b, never)
			for i := 0; i < trials; i += 500 {
				w.past(fmt.Sprint("exp", i), 500)
			}
			r := newReplicas(w, "sqlite:"+filepath.Join(b.TempDir(), "points.db"))
			m := r.start()
			w.eventually("it leads", func() string { return problemIf(r.holder() == "", "no replica leads") })
			for _, name := range []string{"VmRSS", "VmHWM"} {
				b.ReportMetric(residentMiB(b, m.cmd.Process.Pid, name), name+"-MiB")
			}
		})
	}
}

// past makes an experiment that has ended, with its trials.
func (w *world) past(name string, trials int) {
	w.t.Helper()
	at := metav1.Now()
	e := w.experiment(name, budget(int32(trials))) //nolint:gosec // some hundreds
	w.create(e)
	e.MarkCreated("Experiment is created", at)
	e.MarkSucceeded(v1beta1.ReasonExperimentMaxTrialsReached, "Experiment has succeeded", at)
	e.Status.CompletionTime = &at
	if err := w.client.Status().Update(w.t.Context(), e); err != nil {
		w.t.Fatal(err)
	}
	job := strings.Replace(jobTemplate, "--lr=", "--script="+strings.Repeat("x", 4<<10)+" --lr=", 1)
	var all sync.WaitGroup
	slots := make(chan struct{}, 16)
	for i := range trials {
		slots <- struct{}{}
		all.Go(func() {
			defer func() { <-slots }()
			t := &v1beta1.Trial{
				ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: v1beta1.TrialName(name, i),
					Labels:          map[string]string{v1beta1.LabelExperiment: name, v1beta1.LabelTrialNumber: strconv.Itoa(i)},
					OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(e, v1beta1.GroupVersion.WithKind("Experiment"))}},
				Spec: v1beta1.TrialSpec{Objective: e.Spec.Objective, PrimaryContainerName: "main", RunSpec: &runtime.RawExtension{Raw: []byte(job)},
					ParameterAssignments: []v1beta1.ParameterAssignment{{Name: "lr", Value: fmt.Sprint(float64(i+1) / 1e5)}}},
			}
			if err := w.client.Create(w.t.Context(), t); err != nil {
				w.t.Error(err)
				return
			}
			t.MarkCreated("Trial is created", at)
			t.MarkRunning("Trial is running", at)
			t.MarkSucceeded("Trial has succeeded", at)
			t.Status.StartTime, t.Status.CompletionTime = ptr.To(at), ptr.To(at)
			t.Status.Observation = &v1beta1.Observation{Metrics: []v1beta1.Metric{{Name: "loss", Latest: "0.5", Min: "0.5", Max: "0.5"}}}
			if err := w.client.Status().Update(w.t.Context(), t); err != nil {
				w.t.Error(err)
			}
		})
	}
	all.Wait()
}

// residentMiB is a figure of a process in /proc.
func residentMiB(b *testing.B, pid int, name string) float64 {
	b.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		b.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if fields := strings.Fields(line); fields[0] == name+":" {
			kib, err := strconv.ParseFloat(fields[1], 64)
			if err != nil {
				b.Fatal(err)
			}
			return kib / 1024
		}
	}
	b.Fatalf("/proc has no %s", name)
	return 0
}
