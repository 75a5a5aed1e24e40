package trial

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/vernier-ml/vernier/api/v1beta1"
	"github.com/vernier-ml/vernier/collector"
)

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
