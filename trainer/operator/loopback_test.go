package operator

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/vernier-ml/vernier/collector/contract"
)

// Where pods share a network, none is told a name that does not resolve, and no two are
// told to listen on one port.
func TestPodsThatShareANetworkMeetOnPortsOfTheirOwn(t *testing.T) {
	for _, f := range frameworks("kubectl") {
		for _, e := range environments[f.kind] {
			if f.portName == "" || strings.Contains(e.extra, "rdzvHost") {
				continue
			}
			t.Run(f.kind+" of "+e.name, func(t *testing.T) {
				obj := e.job(t, f)
				j, err := read(obj, f)
				if err != nil {
					t.Fatal(err)
				}
				var seats []seat
				var ports []string
				for _, r := range j.replicas {
					for i := range r.count {
						seats = append(seats, seat{r.name, i})
						ports = append(ports, fmt.Sprintf("%q: %d", j.podName(r.name, i), 20000+len(seats)))
					}
				}
				obj.SetAnnotations(map[string]string{annotationPorts: "{" + strings.Join(ports, ", ") + "}"})
				if j, err = read(obj, f); err != nil {
					t.Fatal(err)
				}
				told := false
				for _, s := range seats {
					for _, v := range j.main(&j.pod(s).Spec).Env {
						for _, other := range seats {
							if name := j.podName(other.replica, other.index); strings.Contains(v.Value, name) {
								t.Errorf("%v has %s=%s, where %s does not resolve", s, v.Name, v.Value, name)
							}
						}
						if v.Name != "WORKER_PORT" && strings.Contains(v.Value, fmt.Sprint(j.defaultPort)) {
							t.Errorf("%v has %s=%s, the port of all jobs", s, v.Name, v.Value)
						}
						told = told || strings.Contains(v.Value, loopback)
					}
				}
				alone := f.kind == "PyTorchJob" && j.of("Master") == nil && j.spec.ElasticPolicy == nil // it is told of no other
				if !told && !alone && len(seats) > 1 {
					t.Error("no pod is told where the others are")
				}
			})
		}
	}
}

func TestTensorFlowServersHaveAPortEach(t *testing.T) {
	obj := example{pods: counts{"PS": 1, "Worker": 2}}.job(t, tensorflow())
	obj.SetAnnotations(map[string]string{annotationPorts: `{"exp-0001-ps-0": 20001, "exp-0001-worker-0": 20002, "exp-0001-worker-1": 20003}`})
	j, err := read(obj, tensorflow())
	if err != nil {
		t.Fatal(err)
	}
	const want = `{"cluster":{"ps":["127.0.0.1:20001"],"worker":["127.0.0.1:20002","127.0.0.1:20003"]},"task":{"type":"worker","index":1},"environment":"cloud"}`
	if env := j.main(&j.pod(seat{"Worker", 1}).Spec).Env; !slices.Contains(env, variable("TF_CONFIG", want)) {
		t.Errorf("the environment of worker 1 is %v, want TF_CONFIG %s", env, want)
	}
}

func TestOnlyNodesThatSayItShareTheirNetwork(t *testing.T) {
	node := func(conditions ...corev1.NodeCondition) corev1.Node {
		return corev1.Node{Status: corev1.NodeStatus{Conditions: conditions}}
	}
	says := func(s corev1.ConditionStatus) corev1.Node {
		return node(corev1.NodeCondition{Type: contract.ConditionPodNetwork, Status: s})
	}
	for name, tc := range map[string]struct {
		nodes []corev1.Node
		want  bool
	}{
		"no node":                  {nil, false},
		"a node of a cluster":      {[]corev1.Node{node()}, false},
		"a machine with networks":  {[]corev1.Node{says(corev1.ConditionTrue)}, false},
		"a machine without":        {[]corev1.Node{says(corev1.ConditionFalse)}, true},
		"such a machine and other": {[]corev1.Node{says(corev1.ConditionFalse), node()}, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := sharedByAll(tc.nodes); got != tc.want {
				t.Errorf("%t, want %t", got, tc.want)
			}
		})
	}
}

func TestAPortIsGivenOutOnce(t *testing.T) {
	var book portBook
	seen := map[int32]bool{}
	for range 100 {
		port, err := book.take()
		if err != nil {
			t.Fatal(err)
		}
		if seen[port] || port < firstPort || port >= firstPort+portCount {
			t.Fatalf("port %d after %v", port, seen)
		}
		seen[port] = true
	}
}
