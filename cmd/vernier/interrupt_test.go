package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/vernier-ml/vernier/api/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

// TestCtrlC stops an experiment with two trials as the first Ctrl-C does, and
// ends it as the controller would.
func TestCtrlC(t *testing.T) {
	tests := map[string]struct {
		limit  *int32
		reason string
		resume bool
		code   int
		state  string
		words  []string
	}{
		"before the last trial":        {limit: ptr.To[int32](24), reason: "ExperimentMaxTrialsReached", code: exitInterrupted, state: "Interrupted", words: []string{"interrupted", "2 of 24 trials"}},
		"without a limit":              {reason: "ExperimentMaxTrialsReached", code: exitInterrupted, state: "Interrupted", words: []string{"interrupted", "2 trials"}},
		"when all trials exist":        {limit: ptr.To[int32](2), reason: "ExperimentMaxTrialsReached", state: "Succeeded"},
		"and then a trial at the goal": {limit: ptr.To[int32](24), reason: "ExperimentGoalReached", state: "Succeeded"},
		"and then it went on":          {limit: ptr.To[int32](24), reason: "ExperimentMaxTrialsReached", resume: true, state: "Succeeded"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			scheme, err := newScheme()
			if err != nil {
				t.Fatal(err)
			}
			e := anExperiment()
			e.UID, e.Spec.MaxTrialCount, e.Spec.ParallelTrialCount = "one", tc.limit, ptr.To[int32](8)
			trials := []v1beta1.Trial{aTrial(1, v1beta1.TrialSucceeded, "0.5"), aTrial(2, v1beta1.TrialSucceeded, "0.25")}
			objects := []client.Object{e}
			for i := range trials {
				trials[i].Labels = map[string]string{v1beta1.LabelExperiment: e.Name}
				trials[i].OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(e, v1beta1.GroupVersion.WithKind("Experiment"))}
				objects = append(objects, &trials[i])
			}
			c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).Build()
			if err := stopGrowing(t.Context(), c, client.ObjectKeyFromObject(e)); err != nil {
				t.Fatal(err)
			}
			if err := c.Get(t.Context(), client.ObjectKeyFromObject(e), e); err != nil {
				t.Fatal(err)
			}
			if *e.Spec.MaxTrialCount != 2 || *e.Spec.ParallelTrialCount > 2 {
				t.Errorf("maxTrialCount %d, parallelTrialCount %d, want 2", *e.Spec.MaxTrialCount, *e.Spec.ParallelTrialCount)
			}
			if tc.resume {
				e.Spec.MaxTrialCount = tc.limit
			}
			ended(withBest(e, trials[1]), v1beta1.ExperimentSucceeded, tc.reason, "max trial count has reached")
			view := newExperimentView(e, trials)
			var out bytes.Buffer
			err = conclude(view, ending{}, streams{out: &out})
			if exitCode(err) != tc.code || view.State != tc.state || !view.finished() {
				t.Errorf("code %d (%v), state %s, want %d and %s", exitCode(err), err, view.State, tc.code, tc.state)
			}
			if err != nil {
				requireText(t, err.Error(), tc.words...)
			}
			requireText(t, out.String(), "Best trial: charlm-0002")
		})
	}
}

func TestWhatIsLeftOnASignal(t *testing.T) {
	tests := map[string]struct {
		sig     syscall.Signal
		stopped bool
		policy  v1beta1.ResumePolicy
		code    int
		want    string
	}{
		"Ctrl-C twice":                  {syscall.SIGINT, true, v1beta1.LongRunning, exitInterrupted, "left on interrupt; no new trials start until the same command runs again, and the running ones finish while the control plane runs"},
		"of one that cannot go on":      {syscall.SIGINT, true, v1beta1.NeverResume, exitInterrupted, "left on interrupt; no new trials start, and the running ones finish while the control plane runs"},
		"when it could not be stopped":  {syscall.SIGINT, false, v1beta1.LongRunning, exitInterrupted, "left on interrupt; the experiment goes on while the control plane runs"},
		"SIGTERM, which stops no trial": {syscall.SIGTERM, false, v1beta1.LongRunning, exitTerminated, "left on terminated; the experiment goes on while the control plane runs"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			e := anExperiment()
			e.Spec.ResumePolicy = tc.policy
			err := interrupted(tc.sig, tc.stopped, e)
			if diff := cmp.Diff(tc.want, err.Error()); diff != "" || exitCode(err) != tc.code {
				t.Errorf("code %d (-want +got):\n%s", exitCode(err), diff)
			}
		})
	}
}

// A trial that was being made when the limit was lowered may finish too.
// The API server refuses a limit that an experiment that has ended is at already.
func TestStopLeavesAnEndedExperimentAlone(t *testing.T) {
	scheme, err := newScheme()
	if err != nil {
		t.Fatal(err)
	}
	e := anExperiment()
	e.Spec.MaxTrialCount = ptr.To[int32](40)
	e.MarkFailed(v1beta1.ReasonExperimentFailed, v1beta1.MessageMaxFailed, metav1.Now())
	c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(e).Build()
	if err := stopGrowing(t.Context(), c, client.ObjectKeyFromObject(e)); err != nil {
		t.Fatal(err)
	}
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(e), e); err != nil || *e.Spec.MaxTrialCount != 40 {
		t.Errorf("maxTrialCount %d, %v", *e.Spec.MaxTrialCount, err)
	}
}

func TestCtrlCCountsATrialThatIsBeingMade(t *testing.T) {
	scheme, err := newScheme()
	if err != nil {
		t.Fatal(err)
	}
	e := anExperiment()
	e.UID, e.Spec.MaxTrialCount = "one", ptr.To[int32](24)
	made := func(number int) *v1beta1.Trial {
		trial := aTrial(number, v1beta1.TrialRunning, "0.5")
		trial.Labels = map[string]string{v1beta1.LabelExperiment: e.Name}
		trial.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(e, v1beta1.GroupVersion.WithKind("Experiment"))}
		return &trial
	}
	late := made(2)
	c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(e, made(1)).WithInterceptorFuncs(interceptor.Funcs{
		Update: func(ctx context.Context, c client.WithWatch, o client.Object, options ...client.UpdateOption) error {
			if late != nil {
				if err := c.Create(ctx, late); err != nil {
					return err
				}
				late = nil
			}
			return c.Update(ctx, o, options...)
		},
	}).Build()
	if err := stopGrowing(t.Context(), c, client.ObjectKeyFromObject(e)); err != nil {
		t.Fatal(err)
	}
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(e), e); err != nil {
		t.Fatal(err)
	}
	e.MarkSucceeded(v1beta1.ReasonExperimentMaxTrialsReached, "", metav1.Now())
	if says, ok := e.Interrupted(); !ok || *e.Spec.MaxTrialCount != 2 || says != "2 of 24" {
		t.Errorf("maxTrialCount %d, %q", *e.Spec.MaxTrialCount, says)
	}
}

func TestCtrlCWhileTheInstanceStartsStopsIt(t *testing.T) {
	file := filepath.Join(t.TempDir(), "e.yaml")
	if err := os.WriteFile(file, []byte("apiVersion: kubeflow.org/v1beta1\nkind: Experiment\nmetadata: {name: e}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for keep, want := range map[bool]int{true: 0, false: 1} {
		stops := 0
		open := func(ctx context.Context, _ bool) (*session, error) {
			if err := syscall.Kill(os.Getpid(), syscall.SIGINT); err != nil {
				t.Fatal(err)
			}
			<-ctx.Done()
			return &session{started: true}, ctx.Err()
		}
		stop := func(ctx context.Context, _ *session) error {
			stops++
			return ctx.Err()
		}
		o := runOptions{files: []string{file}, keep: keep, progress: "none"}
		read := func() ([]*unstructured.Unstructured, error) { return readManifests(nil, o.files) }
		err := run(t.Context(), o, read, streams{in: os.Stdin, out: io.Discard, err: io.Discard}, open, stop)
		if exitCode(err) != exitInterrupted || stops != want {
			t.Errorf("keep %v: %v, stopped %d times, want %d", keep, err, stops, want)
		}
	}
}

// What the first Ctrl-C began, such as a request to a server that hangs, does not keep the
// second one from leaving.
func TestASecondSignalDoesNotWaitForTheFirst(t *testing.T) {
	began := make(chan struct{})
	left := errors.New("left")
	ctx, cancel := onSignals(t.Context(), func(os.Signal) error { return left }, func(ctx context.Context, _ os.Signal) bool {
		close(began)
		<-ctx.Done()
		return false
	})
	defer cancel(nil)
	interrupt := func() {
		if err := syscall.Kill(os.Getpid(), syscall.SIGINT); err != nil {
			t.Fatal(err)
		}
	}
	interrupt()
	<-began
	interrupt()
	<-ctx.Done()
	if cause := context.Cause(ctx); cause != left {
		t.Error(cause)
	}
}

func TestASecondCtrlCDoesNotBreakOffTheFirst(t *testing.T) {
	scheme, err := newScheme()
	if err != nil {
		t.Fatal(err)
	}
	interrupt := func() {
		if err := syscall.Kill(os.Getpid(), syscall.SIGINT); err != nil {
			t.Fatal(err)
		}
	}
	e := anExperiment()
	e.UID, e.Spec.MaxTrialCount = "one", ptr.To[int32](24)
	var ctx context.Context
	c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(e).WithInterceptorFuncs(interceptor.Funcs{
		Update: func(stopping context.Context, c client.WithWatch, o client.Object, options ...client.UpdateOption) error {
			interrupt()
			<-ctx.Done()
			if err := stopping.Err(); err != nil {
				return err
			}
			return c.Update(stopping, o, options...)
		},
	}).Build()
	first, stopped := stopOnInterrupt(c, client.ObjectKeyFromObject(e), func(string) {})
	ctx, cancel := onSignals(t.Context(), func(sig os.Signal) error { return &leftError{sig} }, first)
	defer cancel(nil)
	interrupt()
	if !<-stopped {
		t.Error("the experiment gets more trials")
	}
}
