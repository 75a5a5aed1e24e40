package agent

import (
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/vernier-ml/vernier/local/shim"
)

func TestLogsOfOldRestartsGo(t *testing.T) {
	l := layout{t.TempDir()}
	for _, name := range []string{"0.log", "0.log.1", "1.log", "2.log", "10.log"} {
		touchAll(t, filepath.Join(l.logs("u"), "main", name))
	}
	if err := l.trimLogs("u", "main", 3); err != nil {
		t.Fatal(err)
	}
	left, err := filepath.Glob(filepath.Join(l.logs("u"), "main", "*"))
	if err != nil || len(left) != 2 || filepath.Base(left[1]) != "2.log" {
		t.Errorf("left: %v, %v", left, err)
	}
}

func TestTheArchiveKeepsTheNewestPods(t *testing.T) {
	root := t.TempDir()
	a, err := openArchive(layout{root}.archive())
	if err != nil {
		t.Fatal(err)
	}
	a.maxPods, a.maxBytes = 3, 400
	take := func(name string, minute, size int) {
		t.Helper()
		logs := filepath.Join(t.TempDir(), "logs")
		if err := os.MkdirAll(filepath.Join(logs, "main"), 0o755); err != nil {
			t.Fatal(err)
		}
		line := "2026-11-21T12:00:00Z stdout F " + strings.Repeat("x", size) + "\n"
		if err := os.WriteFile(filepath.Join(logs, "main", "0.log"), []byte(line), 0o600); err != nil {
			t.Fatal(err)
		}
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID(fmt.Sprintf("%s-%d", name, minute)), Labels: map[string]string{labelJobName: "trial"}}}
		if err := a.Take(logs, identityOf(pod), t0.Add(time.Duration(minute)*time.Minute)); err != nil {
			t.Fatal(err)
		}
	}
	kept := func() string {
		found, err := ReadArchivedLogs(root, "ns", "trial", "")
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, l := range found {
			names = append(names, l.Pod)
		}
		return strings.Join(names, " ")
	}
	for i, name := range []string{"p1", "p2", "p3", "p4"} {
		take(name, i, 10)
	}
	if got := kept(); got != "p2 p3 p4" {
		t.Errorf("kept %q", got)
	}
	take("p2", 5, 10)
	if got := kept(); got != "p3 p4 p2" {
		t.Errorf("after a name was used again: %q", got)
	}
	// What a power cut left of one pod must not hide the others.
	touch(t, filepath.Join(root, "archive", "p3-2", identityFile))
	if got := kept(); got != "p4 p2" {
		t.Errorf("after one identity was lost: %q", got)
	}
	if a, err = openArchive(layout{root}.archive()); err != nil {
		t.Fatal(err)
	}
	a.maxPods, a.maxBytes = 3, 400
	take("big", 6, 320)
	if got := kept(); got != "p2 big" {
		t.Errorf("after a big log: %q", got)
	}
}

func TestParseLogOptions(t *testing.T) {
	got, err := parseLogOptions(url.Values{"follow": {"true"}, "tailLines": {"3"}, "sinceTime": {t0.Format(time.RFC3339)}, "previous": {"true"}, "stream": {"All"}})
	since := metav1.NewTime(t0.Local())
	want := &corev1.PodLogOptions{Follow: true, TailLines: ptr.To[int64](3), SinceTime: &since, Previous: true, Stream: ptr.To("All")}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	for _, bad := range []string{"follow=x", "limitBytes=x", "sinceTime=yesterday"} {
		q, err := url.ParseQuery(bad)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := parseLogOptions(q); err == nil {
			t.Errorf("%s was accepted", bad)
		}
	}
}

func TestMergeRunNeverGoesBack(t *testing.T) {
	runs, _ := mergeRun(nil, goes(0, 0))
	runs, _ = mergeRun(runs, ends(0, 0, 1, 3))
	runs, changed := mergeRun(runs, goes(0, 0))
	if changed || runs[0].Running() {
		t.Errorf("an ended run goes on: %+v", runs)
	}
	for i := 1; i < 20; i++ {
		runs, _ = mergeRun(runs, ends(i, 0, 1, 0))
	}
	if len(runs) != keptRuns || runs[keptRuns-1].Run != 19 {
		t.Errorf("%d runs kept, the newest is %d", len(runs), runs[len(runs)-1].Run)
	}
}

func TestTerminationMessages(t *testing.T) {
	log := filepath.Join(t.TempDir(), "0.log")
	text := "2026-11-21T12:00:00Z stdout F first\n2026-11-21T12:00:00Z stderr P half\n2026-11-21T12:00:00Z stderr F  line\n"
	if err := os.WriteFile(log, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	fallback := corev1.TerminationMessageFallbackToLogsOnError
	exited := shim.Run{Phase: shim.Exited, ExitCode: 1, StartedAt: t0, FinishedAt: t0}
	own := exited
	own.TerminationMessage = "own words"
	well := exited
	well.ExitCode = 0
	tests := map[string]struct {
		run    shim.Run
		policy corev1.TerminationMessagePolicy
		want   string
	}{
		"the file's content":        {own, fallback, "own words"},
		"the log's end on error":    {exited, fallback, "first\nhalf line\n"},
		"no log after success":      {well, fallback, ""},
		"no log without the policy": {exited, corev1.TerminationMessageReadFile, ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := complete(test.run, &corev1.Container{TerminationMessagePolicy: test.policy}, log).Message; got != test.want {
				t.Errorf("message = %q, want %q", got, test.want)
			}
		})
	}
}

func TestRecordedRunsStandInForLostRecords(t *testing.T) {
	got := recordedRuns([]corev1.ContainerStatus{
		{Name: "ran", RestartCount: 2, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(t0)}}},
		{Name: "ended", State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 3, Reason: "Error", StartedAt: metav1.NewTime(t0), FinishedAt: metav1.NewTime(t0)}}},
		{Name: "waits", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{}}},
	})
	if len(got) != 2 || got[0].Name != "ran" || got[0].Reason != shim.ReasonLost || got[0].Run != 2 || got[0].Running() || got[1].ExitCode != 3 {
		t.Errorf("runs = %+v", got)
	}
}
