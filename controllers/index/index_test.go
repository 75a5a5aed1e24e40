package index

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/vernier-ml/vernier/api/v1beta1"
)

func experiment(uid types.UID) *v1beta1.Experiment {
	return &v1beta1.Experiment{ObjectMeta: metav1.ObjectMeta{Namespace: "ml", Name: "exp", UID: uid}}
}

func trialOf(exp *v1beta1.Experiment, name string, number int, version string) *v1beta1.Trial {
	return &v1beta1.Trial{ObjectMeta: metav1.ObjectMeta{
		Namespace: "ml", Name: name, ResourceVersion: version, Labels: map[string]string{v1beta1.LabelTrialNumber: strconv.Itoa(number)},
		OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(exp, v1beta1.GroupVersion.WithKind("Experiment"))},
	}}
}

func names(trials []*v1beta1.Trial) (out []string) {
	for _, t := range trials {
		out = append(out, t.Name+"@"+t.ResourceVersion)
	}
	return out
}

func (x *Trials) names(t *testing.T, exp *v1beta1.Experiment) []string {
	t.Helper()
	trials, err := x.Of(t.Context(), exp)
	if err != nil {
		t.Fatal(err)
	}
	return names(trials)
}

// Whatever happens, the index has what listing and sorting gives, and what it handed
// out before stays as it was.
func TestTheIndexIsWhatListingGives(t *testing.T) {
	x, exp := New(), experiment("1")
	random := rand.New(rand.NewPCG(1, 2))
	there := map[string]*v1beta1.Trial{}
	type handed struct{ trials, names any }
	var before []handed
	for i := range 500 {
		name := fmt.Sprintf("exp-%04d", random.IntN(60))
		old, number := there[name], random.IntN(40)
		switch {
		case old != nil && random.IntN(3) == 0:
			delete(there, name)
			x.Put(old, nil)
		default:
			if old != nil && random.IntN(4) > 0 {
				number, _ = old.Number()
			}
			there[name] = trialOf(exp, name, number, strconv.Itoa(i))
			x.Put(old, there[name])
		}
		var all []v1beta1.Trial
		for _, t := range there {
			all = append(all, *t)
		}
		if diff := cmp.Diff(names(v1beta1.SortTrials(all)), x.names(t, exp)); diff != "" {
			t.Fatalf("after %d changes: %s", i+1, diff)
		}
		trials, _ := x.Of(t.Context(), exp)
		before = append(before, handed{trials, names(trials)})
	}
	for _, h := range before {
		if diff := cmp.Diff(h.names, any(names(h.trials.([]*v1beta1.Trial)))); diff != "" {
			t.Fatal("a list that was handed out has changed:", diff)
		}
	}
}

func TestAnExperimentMadeAgainHasItsOwnTrials(t *testing.T) {
	x := New()
	first, again := experiment("1"), experiment("2")
	old := trialOf(first, "exp-0000", 0, "1")
	x.Put(nil, old)
	x.Put(nil, &v1beta1.Trial{ObjectMeta: metav1.ObjectMeta{Name: "of no experiment"}})
	x.Put(old, trialOf(again, "exp-0000", 0, "2")) // the deletion between was not seen
	if got := x.names(t, first); got != nil {
		t.Errorf("the old one has %v", got)
	}
	if diff := cmp.Diff([]string{"exp-0000@2"}, x.names(t, again)); diff != "" {
		t.Error(diff)
	}
}

// Who is told of a change finds it.
func TestFollowersFindWhatTheyAreToldOf(t *testing.T) {
	x, exp := New(), experiment("1")
	var told []string
	x.Tell(func(before, after *v1beta1.Trial) {
		told = append(told, fmt.Sprint(before != nil, after != nil, x.names(t, exp)))
	})
	one := trialOf(exp, "exp-0000", 0, "1")
	x.Put(nil, one)
	x.Put(one, trialOf(exp, "exp-0000", 0, "2"))
	x.Put(one, nil)
	want := []string{"false true [exp-0000@1]", "true true [exp-0000@2]", "true false []"}
	if diff := cmp.Diff(want, told); diff != "" {
		t.Error(diff)
	}
}

func TestAwait(t *testing.T) {
	x, exp := New(), experiment("1")
	second := func(t *v1beta1.Trial) bool { return t.ResourceVersion == "2" }
	one, two := trialOf(exp, "exp-0000", 0, "1"), trialOf(exp, "exp-0000", 0, "2")
	x.Put(nil, one)
	found := make(chan error, 1)
	go func() { found <- x.Await(t.Context(), one, second) }()
	for waits := false; !waits; {
		x.mu.Lock()
		waits = len(x.waiting) == 1
		x.mu.Unlock()
	}
	x.Put(one, trialOf(exp, "exp-0000", 0, "1b"))
	select {
	case err := <-found:
		t.Fatalf("it was not to be found yet: %v", err)
	default:
	}
	x.Put(one, two)
	if err := <-found; err != nil {
		t.Error(err)
	}
	if err := x.Await(t.Context(), one, second); err != nil {
		t.Error("one that is there already:", err)
	}
	over, cancel := context.WithCancel(t.Context())
	cancel()
	if err := x.Await(over, trialOf(exp, "exp-0001", 1, ""), second); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if len(x.waiting) > 0 {
		t.Errorf("%d still wait", len(x.waiting))
	}
}
