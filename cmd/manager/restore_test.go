package main

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/vernier-ml/vernier/api/v1beta1"
	"github.com/vernier-ml/vernier/collector"
	"github.com/vernier-ml/vernier/collector/store"
	"github.com/vernier-ml/vernier/controllers/restore"
)

// backup is what kubectl get experiments,suggestions,trials -o yaml prints.
func (w *world) backup() []byte {
	w.t.Helper()
	all := &unstructured.UnstructuredList{Object: map[string]any{"apiVersion": "v1", "kind": "List"}}
	for _, kind := range []string{"Trial", "Suggestion", "Experiment"} { // owners last
		var of unstructured.UnstructuredList
		of.SetGroupVersionKind(v1beta1.GroupVersion.WithKind(kind + "List"))
		if err := w.client.List(w.t.Context(), &of, client.InNamespace(w.namespace)); err != nil {
			w.t.Fatal(err)
		}
		all.Items = append(all.Items, of.Items...)
	}
	raw, err := yaml.Marshal(all.UnstructuredContent())
	if err != nil {
		w.t.Fatal(err)
	}
	return raw
}

// loseEverything deletes all objects of the world, and its store.
func (w *world) loseEverything() {
	w.t.Helper()
	for _, o := range []client.Object{&v1beta1.Experiment{}, &v1beta1.Suggestion{}, &v1beta1.Trial{}, &batchv1.Job{}} {
		if err := w.client.DeleteAllOf(w.t.Context(), o, client.InNamespace(w.namespace), client.PropagationPolicy(metav1.DeletePropagationBackground)); err != nil {
			w.t.Fatal(err)
		}
	}
	empty, err := store.Open(w.t.Context(), "memory:")
	if err != nil {
		w.t.Fatal(err)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.store = empty
}

func (w *world) restore(backup []byte) (restore.Restored, error) {
	objects, err := restore.Read(bytes.NewReader(backup))
	if err != nil {
		return restore.Restored{}, err
	}
	return objects.Make(w.t.Context(), w.client, time.Now())
}

// curves are what the store has of the trials of an experiment.
func (w *world) curves(e *v1beta1.Experiment) map[string][]float64 {
	w.t.Helper()
	curves := map[string][]float64{}
	for _, t := range w.trialsOf(e) {
		err := w.store.Scan(w.t.Context(), string(t.UID), nil, func(_ collector.Attempt, p collector.Point) error {
			curves[t.Name] = append(curves[t.Name], p.Value)
			return nil
		})
		if err != nil {
			w.t.Fatal(err)
		}
	}
	return curves
}

// refusesBesideAManager fails when a backup is restored while a manager holds the lease.
func (w *world) refusesBesideAManager(backup []byte) {
	w.t.Helper()
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: restore.ManagerLease},
		Spec: coordinationv1.LeaseSpec{HolderIdentity: ptr.To("somebody"), LeaseDurationSeconds: ptr.To[int32](15), RenewTime: ptr.To(metav1.NowMicro())}}
	if err := w.client.Create(w.t.Context(), lease); err != nil {
		w.t.Fatal(err)
	}
	if _, err := w.restore(backup); !errors.Is(err, restore.ErrManagerRuns) {
		w.t.Errorf("while a manager runs: %v", err)
	}
	if err := w.client.Delete(w.t.Context(), lease); err != nil {
		w.t.Fatal(err)
	}
}

// restoreTwice restores a backup, and again, which makes nothing more, and then copies
// the curves.
func (w *world) restoreTwice(backup []byte, old collector.Store) {
	w.t.Helper()
	var made map[types.UID]types.UID
	for range 2 {
		again, err := w.restore(backup)
		if err != nil {
			w.t.Fatal(err)
		}
		if made != nil && !cmp.Equal(made, again.UIDs) {
			w.t.Errorf("the second time %v were made, not %v", again.UIDs, made)
		}
		made = again.UIDs
	}
	err := store.Copy(w.t.Context(), old, w.store, func(id collector.TrialID) collector.TrialID {
		id.UID = string(made[types.UID(id.UID)])
		return id
	}, func(store.CopyProgress) {})
	if err != nil {
		w.t.Fatal(err)
	}
}

// After a restore an experiment that had ended shows what it did, and one that ran goes
// on: from its finished trials, and with those again that ran.
func TestRestore(t *testing.T) {
	var mu sync.Mutex
	var ran []string
	runs := func(name string) int {
		mu.Lock()
		defer mu.Unlock()
		if !slices.Contains(ran, name) {
			ran = append(ran, name)
		}
		return len(ran)
	}
	w := newWorld(t, func(name string) ending {
		return ending{points: []float64{3, 2, float64(runs(name))}, never: name == "going-0002" || name == "going-0003"}
	})
	stop := w.start()
	ended, going := w.experiment("ended", budget(2)), w.experiment("going", budget(6))
	w.create(ended)
	ended = w.ends(ended, v1beta1.ReasonExperimentMaxTrialsReached)
	w.create(going)
	w.eventually("two trials run and two have ended", func() string {
		s := w.read(going).Status
		return problemIf(s.TrialsSucceeded != 2 || s.TrialsRunning != 2, "%+v", s)
	})
	stop()
	trials := append(w.trialsOf(ended), w.trialsOf(going)...)
	curves := []map[string][]float64{w.curves(ended), w.curves(going)}
	backup, old := w.backup(), w.store
	w.loseEverything()
	w.refusesBesideAManager(backup)
	w.restoreTwice(backup, old)
	for i, want := range trials {
		got := append(w.trialsOf(ended), w.trialsOf(going)...)[i]
		if diff := cmp.Diff(want.Status, got.Status); diff != "" || want.Name != got.Name || got.UID == want.UID || got.OwnerReferences[0].UID == want.OwnerReferences[0].UID {
			t.Errorf("%s with owners %v was restored as %s with %v: %s", want.Name, want.OwnerReferences, got.Name, got.OwnerReferences, diff)
		}
	}

	ran = nil
	w.behave(func(name string) ending {
		runs(name)
		return ending{points: []float64{5, 0.5}}
	})
	w.start()
	done := w.ends(going, v1beta1.ReasonExperimentMaxTrialsReached)
	if done.Status.TrialsSucceeded != 6 || done.Status.CurrentOptimalTrial.Observation.Metrics[0].Min != "0.5" {
		t.Errorf("the experiment that went on: %+v", done.Status)
	}
	slices.Sort(ran)
	if diff := cmp.Diff([]string{"going-0002", "going-0003", "going-0004", "going-0005"}, ran); diff != "" {
		t.Errorf("trials that ran after the restore (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(ended.Status, w.read(ended).Status); diff != "" {
		t.Errorf("the experiment that had ended (-before +after):\n%s", diff)
	}
	after := []map[string][]float64{w.curves(ended), w.curves(going)}
	maps.DeleteFunc(after[1], func(name string, _ []float64) bool { return curves[1][name] == nil })
	if diff := cmp.Diff(curves, after); diff != "" {
		t.Errorf("curves (-before +after):\n%s", diff)
	}
}

// What is there under a name that was backed up is not touched, unless it is the same.
func TestRestoreLeavesOthersAlone(t *testing.T) {
	w := newWorld(t, never)
	e := w.experiment("exp")
	w.create(e)
	backup := w.backup()
	if made, err := w.restore(backup); err != nil || made.UIDs[e.UID] != e.UID {
		t.Errorf("an experiment that is still there: %v, %v", made, err)
	}
	w.loseEverything()
	other := w.experiment("exp")
	w.create(other)
	if made, err := w.restore(backup); err != nil || len(made.Refused) != 1 || len(made.UIDs) != 0 {
		t.Errorf("where another experiment has the name: %+v, %v", made, err)
	}
	for _, wrong := range []string{"kind: Pod\napiVersion: v1\n", fmt.Sprintf("kind: Trial\napiVersion: %s\n", v1beta1.GroupVersion), "a: [", "{}: 1"} {
		if _, err := restore.Read(bytes.NewReader([]byte(wrong))); err == nil {
			t.Errorf("%q was read", wrong)
		}
	}
}
