package trial

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/vernier-ml/vernier/api/v1beta1"
	"github.com/vernier-ml/vernier/collector"
)

func TestOnePodReports(t *testing.T) {
	const index, role, replica = "batch.kubernetes.io/job-completion-index", "training.kubeflow.org/job-role", "training.kubeflow.org/replica-index"
	master := map[string]string{role: "master"}
	type labels = map[string]string
	tests := map[string]struct {
		primary, pod labels
		want         bool
	}{
		"a pod without a rank":                     {nil, labels{"app": "x"}, true},
		"index 0 of an Indexed Job":                {nil, labels{index: "0"}, true},
		"another index":                            {nil, labels{index: "1"}, false},
		"the index that is asked for":              {labels{index: "1"}, labels{index: "1"}, true},
		"index 0 where another is asked for":       {labels{index: "1"}, labels{index: "0"}, false},
		"a label that all pods have, rank 0":       {labels{"app": "x"}, labels{"app": "x", index: "0"}, true},
		"a label that all pods have, another rank": {labels{"app": "x"}, labels{"app": "x", index: "3"}, false},
		"another value of the label":               {labels{"app": "x"}, labels{"app": "y"}, false},
		"the master":                               {master, labels{role: "master", replica: "0"}, true},
		"a worker, which has no role":              {master, labels{replica: "1"}, false},
		"the first worker beside a master":         {master, labels{replica: "0", replicaType: "worker"}, false},
		"the first worker of another operator":     {master, labels{replica: "0"}, true},
		"the second pod of a Volcano task":         {nil, labels{"volcano.sh/task-index": "1"}, false},
		"the launcher of the MPI operator":         {master, labels{role: "launcher"}, true},
		"the second job of a JobSet":               {nil, labels{"jobset.sigs.k8s.io/job-index": "1", index: "0"}, false},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if got := reports(tc.primary, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Labels: tc.pod}}); got != tc.want {
				t.Errorf("reports = %v, want %v", got, tc.want)
			}
		})
	}
}

// Rank 0 prints 0.3 at the end; rank 1, which starts later, prints 6.5.
func TestTheResultIsThatOfTheReportingPod(t *testing.T) {
	tr := aTrial()
	b := newBench(t, tr)
	for i, uid := range []types.UID{"rank-0", "rank-1"} {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
			Namespace: tr.Namespace, Name: string(uid), UID: uid,
			Labels: map[string]string{v1beta1.LabelTrial: tr.Name, "batch.kubernetes.io/job-completion-index": string(rune('0' + i))},
		}}
		if err := b.client.Create(t.Context(), pod); err != nil {
			t.Fatal(err)
		}
	}
	store := OnlyReporters(b.Store, b.client)
	for i, values := range [][]float64{{0.5, 0.4, 0.3}, {8.5, 7.5, 6.5}} {
		series := points("loss", values...)
		attempt := collector.Attempt{ID: []string{"rank-0/0", "rank-1/0"}[i], Started: noon.Add(1)}
		if err := store.Append(t.Context(), idOf(tr), attempt, series.Points); err != nil {
			t.Fatal(err)
		}
		if err := store.Finish(t.Context(), idOf(tr), attempt, ""); err != nil {
			t.Fatal(err)
		}
	}
	d, err := b.measure(t.Context(), tr, nil, reading{over: true})
	if err != nil {
		t.Fatal(err)
	}
	if got := d.stored[0]; got.Latest.Value != 0.3 || got.Max.Value != 0.5 {
		t.Errorf("%+v", got)
	}
}
