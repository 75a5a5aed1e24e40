package agent

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/vernier-ml/vernier/local/shim"
)

// told is a decision in one line.
func told(d decision) string {
	var parts []string
	for _, a := range d.Actions {
		s := string(a.Verb) + " " + a.Container
		if a.Verb == verbStart && a.Run > 0 {
			s += fmt.Sprintf("/%d", a.Run)
		}
		parts = append(parts, s)
	}
	if !d.Wake.IsZero() {
		parts = append(parts, fmt.Sprintf("wake %g", d.Wake.Sub(t0).Seconds()))
	}
	if d.Settled {
		parts = append(parts, "settled")
	}
	return strings.Join(parts, ", ")
}

func deleteAt(v *view, since, grace float64) *view {
	v.Pod.DeletionTimestamp = ptrTime(at(since + grace))
	v.Pod.DeletionGracePeriodSeconds = ptr.To(int64(grace))
	return v
}

func with(v *view, change func(*view)) *view {
	change(v)
	return v
}

func TestPlan(t *testing.T) {
	one := []string{"m"}
	up := history{"side1": {goes(0, 0)}, "side2": {goes(0, 0)}, "m": {goes(0, 0)}}
	sides := []string{"side1", "side2"}
	done := func(names ...string) history {
		h := history{}
		for k, v := range up {
			h[k] = v
		}
		for i, n := range names {
			h[n] = []shim.Run{ends(0, 0, float64(10+i), 0)}
		}
		return h
	}
	tests := map[string]struct {
		view *view
		now  float64
		want string
	}{
		"all mains start together":                       {viewOf("Never", nil, []string{"a", "b"}, nil), 0, "start a, start b"},
		"the first init container starts alone":          {viewOf("Never", []string{"init1", "init2"}, one, nil), 0, "start init1"},
		"while an init container runs nothing starts":    {viewOf("Never", []string{"init1", "init2"}, one, history{"init1": {goes(0, 0)}}), 1, ""},
		"the next init container follows":                {viewOf("Never", []string{"init1", "init2"}, one, history{"init1": {ends(0, 0, 1, 0)}}), 1, "start init2"},
		"a sidecar counts as started at once":            {viewOf("Never", []string{"side1", "init2"}, one, history{"side1": {goes(0, 0)}}), 1, "start init2"},
		"a sidecar with a startup probe is waited for":   {with(viewOf("Never", []string{"side1"}, one, history{"side1": {goes(0, 0)}}), func(v *view) { v.Pod.Spec.InitContainers[0].StartupProbe = &corev1.Probe{} }), 1, ""},
		"mains follow the init containers":               {viewOf("Never", []string{"init"}, one, history{"init": {ends(0, 0, 1, 0)}}), 1, "start m"},
		"a failed init container is repeated":            {viewOf("OnFailure", []string{"init"}, one, history{"init": {ends(0, 0, 1, 1)}}), 1, "start init/1"},
		"and backs off the second time":                  {viewOf("OnFailure", []string{"init"}, one, history{"init": {ends(0, 0, 1, 1), ends(1, 1, 2, 1)}}), 3, "wake 12"},
		"a failed init container ends a Never pod":       {viewOf("Never", []string{"init"}, one, history{"init": {ends(0, 0, 1, 1)}}), 2, "settled"},
		"a finished init container is not repeated":      {viewOf("Always", []string{"init"}, one, history{"init": {ends(0, 0, 1, 0)}, "m": {ends(0, 1, 2, 0)}}), 2, "start m/1"},
		"Never: a finished main is not repeated":         {viewOf("Never", nil, one, history{"m": {ends(0, 0, 1, 1)}}), 2, "settled"},
		"OnFailure: a failed main restarts at once":      {viewOf("OnFailure", nil, one, history{"m": {ends(0, 0, 1, 1)}}), 1, "start m/1"},
		"OnFailure: a main that succeeded is done":       {viewOf("OnFailure", nil, one, history{"m": {ends(0, 0, 1, 0)}}), 1, "settled"},
		"a sidecar is restarted beside a running main":   {viewOf("Never", []string{"side1"}, one, history{"side1": {ends(0, 0, 5, 1)}, "m": {goes(0, 0)}}), 6, "start side1/1"},
		"a sidecar is not restarted when mains are done": {viewOf("Never", []string{"side1"}, one, history{"side1": {ends(0, 0, 9, 1)}, "m": {ends(0, 0, 5, 0)}}), 10, "settled"},
		"a container that cannot be made is tried later": {with(viewOf("Never", nil, one, nil), func(v *view) { v.container("m").WaitUntil = at(7) }), 3, "wake 7"},

		"a main waits for the postStart hook before it": {with(viewOf("Never", nil, []string{"a", "b"}, history{"a": {goes(0, 0)}}), func(v *view) { v.container("a").Starting = true }), 1, ""},
		"and starts after it":                           {viewOf("Never", nil, []string{"a", "b"}, history{"a": {goes(0, 0)}}), 1, "start b"},
		"so does what follows a sidecar with a hook":    {with(viewOf("Never", []string{"side1"}, one, history{"side1": {goes(0, 0)}}), func(v *view) { v.container("side1").Starting = true }), 1, ""},

		"mains done: the last sidecar is stopped first": {viewOf("Never", sides, one, done("m")), 11, "wake 40, SIGTERM side2"},
		"then it is waited for":                         {with(viewOf("Never", sides, one, done("m")), func(v *view) { v.container("side2").Stop = stopState{Terminated: at(4)} }), 12, "wake 40"},
		"then the first":                                {viewOf("Never", sides, one, done("m", "side2")), 12, "SIGTERM side1, wake 40"},
		"a sidecar that does not end is killed":         {with(viewOf("Never", sides, one, done("m")), func(v *view) { v.container("side2").Stop = stopState{Terminated: at(4)} }), 40, "SIGKILL side2, wake 42"},
		"mains and sidecars done":                       {viewOf("Never", sides, one, done("m", "side2", "side1")), 13, "settled"},
		"deletion stops mains first":                    {deleteAt(viewOf("Never", sides, one, done()), 5, 30), 5, "SIGTERM m, wake 35"},
		"deletion kills at the end of the grace":        {with(deleteAt(viewOf("Never", nil, one, history{"m": {goes(0, 0)}}), 5, 30), func(v *view) { v.container("m").Stop = stopState{Terminated: at(4)} }), 35, "SIGKILL m"},
		"a sidecar has 2 s even when the grace is over": {deleteAt(viewOf("Never", []string{"side1"}, one, history{"side1": {goes(0, 0)}, "m": {ends(0, 0, 35, 137)}}), 5, 30), 35, "SIGTERM side1, wake 37"},
		"deleted while initializing":                    {deleteAt(viewOf("Never", []string{"init"}, one, history{"init": {goes(0, 0)}}), 5, 30), 6, "SIGTERM init, wake 35"},
		"deleted before anything started":               {deleteAt(viewOf("Never", nil, one, nil), 5, 30), 6, "settled"},
		"a deleted pod is not restarted":                {deleteAt(viewOf("Always", nil, one, history{"m": {ends(0, 0, 6, 1)}}), 5, 30), 7, "settled"},
		"an object that is gone: everything is killed":  {with(viewOf("Never", sides, one, done()), func(v *view) { v.Gone = true }), 5, "SIGKILL m, SIGKILL side2, SIGKILL side1"},
		"a rejected pod is settled":                     {with(viewOf("Never", nil, one, nil), func(v *view) { v.Rejected = &verdict{Reason: "OutOfcpu"} }), 1, "settled"},
		"the deadline is woken up for":                  {with(viewOf("Never", nil, one, history{"m": {goes(0, 0)}}), func(v *view) { v.Pod.Spec.ActiveDeadlineSeconds = ptr.To[int64](60) }), 1, "wake 60"},
		"past the deadline the main is stopped":         {with(viewOf("Never", nil, one, history{"m": {goes(0, 0)}}), func(v *view) { v.Pod.Spec.ActiveDeadlineSeconds = ptr.To[int64](60) }), 60, "SIGTERM m, wake 90"},
		"a container that failed its probe is stopped":  {with(viewOf("Always", nil, []string{"a", "b"}, history{"a": {goes(0, 0)}, "b": {goes(0, 0)}}), func(v *view) { v.container("b").Condemned = at(5) }), 5, "SIGTERM b, wake 35"},
		"and killed after the grace": {with(viewOf("Always", nil, one, history{"m": {goes(0, 0)}}), func(v *view) {
			v.container("m").Condemned = at(5)
			v.container("m").Stop = stopState{Terminated: at(4)}
		}), 35, "SIGKILL m"},
		"no kill is sent twice": {with(deleteAt(viewOf("Never", nil, one, history{"m": {goes(0, 0)}}), 5, 30), func(v *view) { v.container("m").Stop = stopState{Killed: true} }), 36, ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			d := plan(test.view, at(test.now))
			got, want := strings.Split(told(d), ", "), strings.Split(test.want, ", ")
			if diff := cmp.Diff(asSet(want), asSet(got)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if again := plan(test.view, at(test.now)); told(again) != told(d) {
				t.Errorf("the same view gave %q and %q", told(d), told(again))
			}
		})
	}
}

func asSet(list []string) map[string]bool {
	set := map[string]bool{}
	for _, s := range list {
		set[s] = true
	}
	return set
}

func TestAPreStopHookComesBeforeSIGTERM(t *testing.T) {
	v := deleteAt(viewOf("Never", nil, []string{"m"}, history{"m": {goes(0, 0)}}), 5, 30)
	v.Pod.Spec.Containers[0].Lifecycle = &corev1.Lifecycle{PreStop: &corev1.LifecycleHandler{Exec: &corev1.ExecAction{}}}
	steps := []struct {
		done stopState
		now  float64
		want string
	}{
		{stopState{}, 5, "preStop m, wake 35"},
		{stopState{Hook: hookRunning}, 6, "wake 35"},
		{stopState{Hook: hookDone}, 7, "SIGTERM m, wake 35"},
		{stopState{Hook: hookDone, Terminated: at(4)}, 8, "wake 35"},
		{stopState{Hook: hookRunning}, 35, "SIGKILL m"},
	}
	for i, step := range steps {
		v.container("m").Stop = step.done
		if got := told(plan(v, at(step.now))); got != step.want {
			t.Errorf("step %d: got %q, want %q", i, got, step.want)
		}
	}
}

func TestRestartDelayDoublesToItsCapAndStartsAnew(t *testing.T) {
	var runs []shim.Run
	var got []time.Duration
	for i := range 8 {
		runs = append(runs, ends(i, 0, 1, 1))
		got = append(got, restartDelay(runs)/time.Second)
	}
	if diff := cmp.Diff([]time.Duration{0, 10, 20, 40, 80, 160, 300, 300}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if d := restartDelay(runs[3:]); d != 300*time.Second {
		t.Errorf("with only the newest runs known: %v", d)
	}
	runs = append(runs, ends(8, 0, 601, 1))
	if d := restartDelay(runs); d != 0 {
		t.Errorf("after a run of more than 10 minutes: %v", d)
	}
	runs = append(runs, ends(9, 0, 1, 1))
	if d := restartDelay(runs); d != backoffFirst {
		t.Errorf("after a short run that followed a long one: %v", d)
	}
}

func TestContainersMayHaveRestartRulesOfTheirOwn(t *testing.T) {
	c := corev1.Container{RestartPolicy: ptr.To(corev1.ContainerRestartPolicyNever), RestartPolicyRules: []corev1.ContainerRestartRule{{
		Action: corev1.ContainerRestartRuleActionRestart, ExitCodes: &corev1.ContainerRestartRuleOnExitCodes{Operator: corev1.ContainerRestartRuleOnExitCodesOpIn, Values: []int32{42}}}}}
	spec := &corev1.PodSpec{RestartPolicy: corev1.RestartPolicyAlways}
	for code, want := range map[int32]bool{0: false, 1: false, 42: true} {
		if got := shouldRestart(spec, &c, code); got != want {
			t.Errorf("exit code %d: %t, want %t", code, got, want)
		}
	}
}
