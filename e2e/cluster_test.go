//go:build e2e

package e2e

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	batchv1 "k8s.io/api/batch/v1"

	"github.com/vernier-ml/vernier/api/v1beta1"
)

// clusterConfig is the kubeconfig of the cluster that the tests run against, if not
// against instances of their own. Vernier is installed there, and nothing else is in
// its namespace default.
func clusterConfig() string { return os.Getenv("VERNIER_E2E_KUBECONFIG") }

// trialImage is the image of trials: with a shell, and the test binary where
// VERNIER_E2E_PROGRAM says. An instance runs programs of the machine.
func trialImage() string { return cmp.Or(os.Getenv("VERNIER_E2E_IMAGE"), "host") }

// testProgram is the path of the test binary as trials see it.
func testProgram(t *testing.T) string {
	t.Helper()
	if path := os.Getenv("VERNIER_E2E_PROGRAM"); path != "" {
		return path
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return self
}

// upOrCluster is the cluster, or an instance that it starts. Tests that use it speak to
// the Kubernetes API only.
func upOrCluster(t *testing.T) *instance {
	t.Helper()
	if clusterConfig() == "" {
		return up(t)
	}
	return cluster(t)
}

// cluster is the cluster that the tests run against. What a test makes in the namespace
// default is deleted when it ends.
func cluster(t *testing.T) *instance {
	t.Helper()
	path := clusterConfig()
	if path == "" {
		t.Skip("it needs a cluster: run make e2e-cluster")
	}
	record(t, "cluster")
	i := &instance{home: filepath.Dir(path), kubeconfig: path}
	i.connect(t, path)
	// What is in the namespace default is deleted.
	if err := i.client.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: "vernier-e2e"}, &corev1.ConfigMap{}); err != nil {
		t.Fatalf("this is not a cluster for tests: kubectl create configmap vernier-e2e says that it is (%v)", err)
	}
	t.Cleanup(func() { i.clear(t) })
	return i
}

// clear deletes experiments and claims, and waits until their pods are gone.
func (i *instance) clear(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	for _, o := range []client.Object{&v1beta1.Experiment{}, &corev1.PersistentVolumeClaim{}} {
		if err := i.client.DeleteAllOf(ctx, o, client.InNamespace("default"), client.PropagationPolicy(metav1.DeletePropagationForeground)); err != nil {
			t.Errorf("clear the cluster: %v", err)
		}
	}
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for left := 1; left > 0; {
		left = 0
		for _, list := range []client.ObjectList{&v1beta1.ExperimentList{}, &v1beta1.TrialList{}, &batchv1.JobList{}, &corev1.PodList{}} {
			if err := i.client.List(ctx, list, client.InNamespace("default")); err != nil {
				t.Errorf("clear the cluster: %v", err)
				return
			}
			left += meta.LenList(list)
		}
		select {
		case <-ctx.Done():
			t.Errorf("%d objects are left in the cluster", left)
			return
		case <-tick.C:
		}
	}
}

// recorded says which test ran where.
var recorded struct {
	sync.Mutex
	rows []string
}

// record notes, when the test ends, where it ran, for how long, and how it ended.
func record(t *testing.T, where string) {
	t.Helper()
	began := time.Now()
	t.Cleanup(func() {
		result := "passed"
		if t.Failed() {
			result = "FAILED"
		}
		recorded.Lock()
		defer recorded.Unlock()
		recorded.rows = append(recorded.rows, fmt.Sprintf("%s\t%s\t%s\t%.0f s\n", t.Name(), where, result, time.Since(began).Seconds()))
	})
}

// writeReport writes what was recorded to a file, if one is named.
func writeReport(path string) error {
	if path == "" {
		return nil
	}
	return os.WriteFile(path, []byte(strings.Join(recorded.rows, "")), 0o644)
}
