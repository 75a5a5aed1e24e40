package experiment

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/vernier-ml/vernier/api/v1beta1"
)

func TestModelsAreKeptWhileTheyFit(t *testing.T) {
	built := 0
	build := func() (int, error) { built++; return built, nil }
	exp := func(uid, algorithm, most string) *v1beta1.Experiment {
		e := &v1beta1.Experiment{}
		e.UID = types.UID(uid)
		e.Spec.Algorithm = &v1beta1.AlgorithmSpec{AlgorithmName: algorithm}
		e.Spec.Parameters = []v1beta1.ParameterSpec{{Name: "lr", FeasibleSpace: v1beta1.FeasibleSpace{Max: most}}}
		return e
	}
	var m models[int]
	for i, c := range []struct {
		exp  *v1beta1.Experiment
		want int
	}{
		{exp("a", "tpe", "1"), 1}, {exp("a", "tpe", "1"), 1}, {exp("b", "tpe", "1"), 2}, {exp("a", "tpe", "1"), 1},
		{exp("a", "random", "1"), 3}, {exp("a", "random", "2"), 4}, {exp("b", "tpe", "1"), 2}, {exp("a", "random", "2"), 4},
	} {
		if got, _, err := m.get(c.exp, noon, build); got != c.want || err != nil {
			t.Errorf("step %d: model %d, %v, want %d", i, got, err, c.want)
		}
	}
	m.drop("a")
	m.drop("a")
	if got, _, _ := m.get(exp("a", "random", "2"), noon, build); got != 5 {
		t.Errorf("after drop: model %d", got)
	}
	searched := exp("n", "random", "1")
	searched.Spec.NasConfig = &v1beta1.NasConfig{GraphConfig: v1beta1.GraphConfig{NumLayers: ptr.To(int32(3))}}
	first, _, _ := m.get(searched, noon, build)
	searched.Spec.NasConfig = &v1beta1.NasConfig{GraphConfig: v1beta1.GraphConfig{NumLayers: ptr.To(int32(4))}}
	if second, _, _ := m.get(searched, noon, build); second == first {
		t.Error("the model of another architecture is kept")
	}
	bad := errors.New("bad setting")
	if _, _, err := m.get(exp("c", "tpe", "1"), noon, func() (int, error) { return 0, bad }); !errors.Is(err, bad) {
		t.Errorf("got %v, want %v", err, bad)
	}
}

func TestModelsAreBounded(t *testing.T) {
	var m models[string]
	used := &v1beta1.Experiment{}
	used.UID = "used all the time"
	for i := range 3 * keptModels {
		for _, exp := range []*v1beta1.Experiment{used, {}} {
			if exp != used {
				exp.UID = types.UID(fmt.Sprint(i))
			}
			_, _, _ = m.get(exp, noon, func() (string, error) { return string(exp.UID), nil })
		}
	}
	if len(m.kept) != keptModels || m.index(used.UID) < 0 {
		t.Errorf("%d are kept, the one in use at %d", len(m.kept), m.index(used.UID))
	}
}

// One that learns is not forgotten, or it begins again whenever it is asked; of
// those that find no place the others' end is not awaited either.
func TestModelsThatLearnMakeNoWay(t *testing.T) {
	var m models[int]
	exp := func(i int) *v1beta1.Experiment {
		e := &v1beta1.Experiment{}
		e.UID = types.UID(fmt.Sprint(i))
		return e
	}
	get := func(i int, now time.Time) (model int, kept bool) {
		model, kept, _ = m.get(exp(i), now, func() (int, error) { return i, nil })
		return model, kept
	}
	for i := range keptModels {
		get(i, noon)
		m.hold(exp(i).UID, noon.Add(time.Second))
	}
	if _, kept := get(100, noon); kept || m.index("0") < 0 {
		t.Error("one that learns made way")
	}
	if _, kept := get(100, noon.Add(time.Second)); !kept || len(m.kept) != keptModels {
		t.Error("one is held for longer than it learns: its experiment may be gone")
	}
}

// A deleted experiment asks for nothing more, so that nothing else would make
// room for what it has learned, until eight others come.
func TestModelsOfDeletedExperimentsAreForgotten(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := v1beta1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	c := New(Options{Client: fake.NewClientBuilder().WithScheme(scheme).Build(), Now: func() time.Time { return noon }})
	keep := func(namespace string) types.NamespacedName {
		exp := conditional()
		exp.Namespace, exp.Name, exp.UID = namespace, "demo", types.UID(namespace)
		if _, err := c.searcher(exp); err != nil {
			t.Fatal(err)
		}
		return client.ObjectKeyFromObject(exp)
	}
	gone := keep("a")
	keep("b")
	if _, err := c.Reconcile(t.Context(), reconcile.Request{NamespacedName: gone}); err != nil {
		t.Fatal(err)
	}
	if c.models.index("a") >= 0 || c.models.index("b") < 0 {
		t.Errorf("%d are kept", len(c.models.kept))
	}
}
