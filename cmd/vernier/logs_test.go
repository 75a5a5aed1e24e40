package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/vernier-ml/vernier/api/v1beta1"
	"github.com/vernier-ml/vernier/local"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
)

// logServer answers requests for logs with what is queued, the last for ever.
func logServer(t *testing.T, answers ...metav1.Status) kubernetes.Interface {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		answer := answers[0]
		if len(answers) > 1 {
			answers = answers[1:]
		}
		if answer.Status == metav1.StatusSuccess {
			_, _ = w.Write([]byte(answer.Message))
			return
		}
		answer.TypeMeta = metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(int(answer.Code))
		_ = json.NewEncoder(w).Encode(answer)
	}))
	t.Cleanup(server.Close)
	clientset, err := kubernetes.NewForConfig(&rest.Config{Host: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	return clientset
}

func TestLogsWaitOnlyForWhatMayCome(t *testing.T) {
	refused := func(code int32, reason metav1.StatusReason, message string) metav1.Status {
		return metav1.Status{Status: metav1.StatusFailure, Code: code, Reason: reason, Message: message}
	}
	waiting := refused(http.StatusBadRequest, metav1.StatusReasonBadRequest, "container is waiting to start")
	noPrevious := refused(http.StatusBadRequest, metav1.StatusReasonBadRequest, "previous terminated container not found")
	gone := refused(http.StatusNotFound, metav1.StatusReasonNotFound, "pod not found")
	text := metav1.Status{Status: metav1.StatusSuccess, Message: "loss=1\n"}
	tests := map[string]struct {
		options logsOptions
		answers []metav1.Status
		want    string
		code    int
	}{
		"a container that has not started is waited for": {logsOptions{container: "main", follow: true}, []metav1.Status{waiting, text}, "loss=1\n", 0},
		"without -f nothing is waited for":               {logsOptions{container: "main"}, []metav1.Status{waiting}, "is waiting to start", exitInvalid},
		"an earlier run that is not there never comes":   {logsOptions{container: "main", follow: true, previous: true}, []metav1.Status{noPrevious}, "previous terminated", exitInvalid},
		"a container that the pod has not never comes":   {logsOptions{container: "nosuch", follow: true}, []metav1.Status{waiting}, `no container "nosuch": it has side, main`, exitNotFound},
		"a pod that has just gone is looked for again":   {logsOptions{container: "main"}, []metav1.Status{gone, text}, "loss=1\n", 0},
		"a pod that is nowhere is said to be":            {logsOptions{container: "main"}, []metav1.Status{gone}, "pod not found", exitNotFound},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			trial := aTrial(1, v1beta1.TrialRunning, "")
			trial.Namespace = "default"
			pod := &corev1.Pod{
				ObjectMeta: metav1.ObjectMeta{Name: "p", Namespace: "default", Labels: map[string]string{v1beta1.LabelTrial: trial.Name}},
				Spec: corev1.PodSpec{
					InitContainers: []corev1.Container{{Name: "side"}}, Containers: []corev1.Container{{Name: "main"}},
				},
			}
			scheme, err := newScheme()
			if err != nil {
				t.Fatal(err)
			}
			r := logReader{client: fake.NewClientBuilder().WithScheme(scheme).WithObjects(&trial, pod).Build(),
				clientset: logServer(t, tc.answers...), options: tc.options}
			r.options.tail = -1
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
			defer cancel()
			var out bytes.Buffer
			err = r.print(ctx, &trial, &out)
			said := out.String()
			if err != nil {
				said += err.Error()
			}
			if exitCode(err) != tc.code || !strings.Contains(said, tc.want) {
				t.Errorf("code %d, said %q, want %d and %q", exitCode(err), said, tc.code, tc.want)
			}
		})
	}
}

// The log of a job of several pods is that of its master; the others are there by name.
func TestLogsOfAJobOfSeveralPods(t *testing.T) {
	const role = "training.kubeflow.org/job-role"
	trial := aTrial(1, v1beta1.TrialRunning, "")
	trial.Namespace, trial.Spec.PrimaryPodLabels = "default", map[string]string{role: "master"}
	pod := func(end, role string, age time.Duration) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
			Name: trial.Name + "-" + end, Namespace: "default", CreationTimestamp: metav1.NewTime(time.Unix(1e9, 0).Add(-age)),
			Labels: map[string]string{v1beta1.LabelTrial: trial.Name, "training.kubeflow.org/job-role": role},
		}}
	}
	scheme, err := newScheme()
	if err != nil {
		t.Fatal(err)
	}
	c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(pod("master-0", "master", time.Minute), pod("worker-0", "worker", 0), pod("worker-1", "worker", 0)).Build()
	for asked, want := range map[string]string{"": "master-0", "worker-1": "worker-1", trial.Name + "-worker-0": "worker-0", "worker-2": ""} {
		got, _, err := logReader{client: c, options: logsOptions{pod: asked}}.chosenPod(t.Context(), &trial)
		if want == "" {
			if exitCode(err) != exitNotFound || !strings.Contains(err.Error(), "master-0, worker-0, worker-1") {
				t.Errorf("--pod %s: %v", asked, err)
			}
			continue
		}
		if err != nil || got == nil || got.Name != trial.Name+"-"+want {
			t.Errorf("--pod %s is %v, %v; want %s", asked, got, err, want)
		}
	}
}

func TestLogsSayThatTheBeginningIsMissing(t *testing.T) {
	tests := map[string]struct {
		tail int64
		file string
		want bool
	}{
		"a rotated log":                  {-1, "0.log.1", true},
		"a whole log":                    {-1, "0.log", false},
		"the end, which was asked for":   {10, "0.log.1", false},
		"another container's, which was": {-1, "../side/0.log.1", false},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			home := t.TempDir()
			dir := filepath.Join(local.Home(home).AgentRoot(), "pods", "uid", "logs", "main")
			for _, file := range []string{filepath.Join(dir, "0.log"), filepath.Join(dir, tc.file)} {
				if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(file, nil, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			var notes bytes.Buffer
			r := logReader{options: logsOptions{container: "main", tail: tc.tail}, home: home, notes: &notes}
			pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: "uid"}}
			if err := r.noteOlder(pod); err != nil {
				t.Fatal(err)
			}
			if got := strings.Contains(notes.String(), "the beginning of this log is not shown"); got != tc.want {
				t.Errorf("said %q", notes.String())
			}
		})
	}
}

func TestALogThatIsNotKeptSaysWhichThereAre(t *testing.T) {
	trial := &v1beta1.Trial{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "x-0001"}, Spec: v1beta1.TrialSpec{PrimaryContainerName: "training"}}
	err := logReader{home: t.TempDir(), options: logsOptions{container: "train"}}.archived(trial, io.Discard)
	if exitCode(err) != exitNotFound {
		t.Fatalf("code %d (%v), want %d", exitCode(err), err, exitNotFound)
	}
	requireText(t, err.Error(), "no log of container train of trial x-0001 is kept", "is training", "metrics-logger-and-collector or metrics-collector")
}

func TestLogsOfATrialOutsideAreWithItsWorker(t *testing.T) {
	const begins, ends = "no job runs trial charlm-0001, so its output is not here: see where ", " writes it; vernier describe and vernier curve show what it reported"
	for worker, want := range map[string]string{"": "the program that ran it", "gpu1": "its worker gpu1"} {
		trial := aTrial(1, v1beta1.TrialRunning, "")
		if worker != "" {
			if err := trial.SetLease(v1beta1.Lease{Worker: worker}); err != nil {
				t.Fatal(err)
			}
		}
		if err := logsElsewhere(&trial); exitCode(err) != exitNotFound || err.Error() != begins+want+ends {
			t.Errorf("code %d: %v", exitCode(err), err)
		}
	}
	trial := aTrial(1, v1beta1.TrialRunning, "")
	trial.Spec.RunSpec = &runtime.RawExtension{Raw: []byte("{}")}
	if err := logsElsewhere(&trial); err != nil {
		t.Errorf("of one that a job runs: %v", err)
	}
}
