//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// secondNode is the node whose loss the control plane survives.
const secondNode = "node-2"

// nodeScript runs a command of e2e/node.
func nodeScript(t *testing.T, args ...string) {
	t.Helper()
	cmd := exec.CommandContext(context.WithoutCancel(t.Context()), "node/node.sh", args...)
	cmd.Env = append(os.Environ(), "VERNIER_BIN_DIR="+os.Getenv("VERNIER_BIN_DIR"))
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("node.sh %v: %v\n%s", args, err, out)
	}
}

// clusterOfTwo is a cluster with a second node, where pods are put again when the test
// ends.
func clusterOfTwo(t *testing.T) *instance {
	t.Helper()
	i := cluster(t)
	if err := i.client.Get(t.Context(), client.ObjectKey{Name: secondNode}, &corev1.Node{}); err != nil {
		t.Skipf("it needs a second node, see e2e/node/README.md: %v", err)
	}
	t.Cleanup(func() {
		nodeScript(t, "up")
		i.kubectl(t, "uncordon", secondNode)
	})
	return i
}

func (i *instance) kubectl(t *testing.T, args ...string) {
	t.Helper()
	if out, err := i.vernier(append([]string{"kubectl"}, args...)...); err != nil {
		t.Fatalf("kubectl %v: %v\n%s", args, err, out)
	}
}

// onSecondNode starts an experiment whose trials prefer the second node, and take their
// time to end when they are told to. It returns when one runs there.
func (i *instance) onSecondNode(t *testing.T, name string) {
	t.Helper()
	experiment := jobExperiment{
		name: name, algorithm: "random", parallel: 2, max: 4, maxFailed: 0,
		parameter: `parameterType: double, feasibleSpace: {min: "0", max: "1"}`,
		command:   `[sh, -c, "trap 'sleep 25; exit 1' TERM; i=0; while [ $i -lt 20 ]; do i=$((i+1)); echo epoch=$i loss=${trialParameters.x}; sleep 1; done"]`,
	}.object(t)
	changeJob(t, experiment, func(_, pod map[string]any) {
		pod["affinity"] = map[string]any{"nodeAffinity": map[string]any{"preferredDuringSchedulingIgnoredDuringExecution": []any{map[string]any{
			"weight": 100, "preference": map[string]any{"matchExpressions": []any{map[string]any{"key": corev1.LabelHostname, "operator": "In", "values": []any{secondNode}}}},
		}}}}
	})
	if err := i.client.Create(t.Context(), experiment); err != nil {
		t.Fatal(err)
	}
	if pod := i.awaitRunningPod(t, ""); pod.Spec.NodeName != secondNode {
		t.Fatalf("pod %s is on %s", pod.Name, pod.Spec.NodeName)
	}
}

// awaitMessage waits until a trial's condition says something, and holds that vernier
// describe says it too.
func (i *instance) awaitMessage(t *testing.T, within time.Duration, experiment string, words ...string) {
	t.Helper()
	began := time.Now()
	var last []string
	eventually(t, within, func(context.Context) error {
		last = nil
		for _, trial := range i.trials(t, experiment) {
			c := trial.LastCondition()
			if c == nil {
				continue
			}
			last = append(last, c.Message)
			if !slices.ContainsFunc(words, func(word string) bool { return !strings.Contains(c.Message, word) }) {
				t.Logf("after %.0f s: %s", time.Since(began).Seconds(), c.Message)
				out, err := i.vernier("describe", experiment+"/"+trial.Name)
				if err != nil {
					t.Error(err)
				}
				requireWords(t, out, words)
				return nil
			}
		}
		return fmt.Errorf("no trial says %q: %q", words, last)
	})
}

// checkUnharmed holds that an experiment ends with all of its trials, none of which
// failed, although the second node went away.
func (i *instance) checkUnharmed(t *testing.T, name string) {
	t.Helper()
	i.awaitFinishedTrials(t, name, 4)
	i.awaitEnd(t, name)
	checkTrials(t, name, 4, i.trials(t, name))
	for _, trial := range i.trials(t, name) {
		if o := trial.Status.Observation; o == nil || o.Metrics[0].Latest != trial.Spec.ParameterAssignments[0].Value {
			t.Errorf("trial %s observed %+v", trial.Name, o)
		}
	}
}

// TestALostNode ends all processes of a node at once, and then deletes the node, as a
// cloud does: its trials go on elsewhere.
func TestALostNode(t *testing.T) {
	i := clusterOfTwo(t)
	i.onSecondNode(t, "lost")
	nodeScript(t, "lose")
	// Kubernetes knows after 20 s, and the manager may have been there too.
	i.awaitMessage(t, 2*time.Minute, "lost", secondNode, "does not answer", "kubectl delete node "+secondNode)
	i.kubectl(t, "delete", "node", secondNode)
	i.checkUnharmed(t, "lost")
}

// TestADrainedNode drains a node: its trials go on elsewhere.
func TestADrainedNode(t *testing.T) {
	i := clusterOfTwo(t)
	i.onSecondNode(t, "drained")
	drained := make(chan error, 1)
	go func() {
		out, err := i.vernier("kubectl", "drain", secondNode, "--delete-emptydir-data", "--ignore-daemonsets", "--timeout=2m")
		if err != nil {
			err = fmt.Errorf("kubectl drain: %w\n%s", err, out)
		}
		drained <- err
	}()
	i.awaitMessage(t, time.Minute, "drained", "is being taken from its node", "Eviction API")
	if err := <-drained; err != nil {
		t.Error(err)
	}
	i.checkUnharmed(t, "drained")
	var pods corev1.PodList
	if err := i.client.List(t.Context(), &pods, client.MatchingFields{"spec.nodeName": secondNode}); err != nil {
		t.Fatal(err)
	}
	for _, pod := range pods.Items {
		t.Errorf("pod %s/%s is on the drained node", pod.Namespace, pod.Name)
	}
}
