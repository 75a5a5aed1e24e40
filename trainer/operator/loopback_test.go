package operator

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

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

// onNode is a controller, and a job, on a node that says whether pods have networks.
func onNode(t *testing.T, f framework, e example, ports string, condition corev1.ConditionStatus) (*Controller, *unstructured.Unstructured, *job) {
	t.Helper()
	obj := e.job(t, f)
	if ports != "" {
		obj.SetAnnotations(map[string]string{annotationPorts: ports})
	}
	s := runtime.NewScheme()
	if err := clientgoscheme.AddToScheme(s); err != nil {
		t.Fatal(err)
	}
	s.AddKnownTypeWithName(f.gvk(), &unstructured.Unstructured{})
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}, Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: contract.ConditionPodNetwork, Status: condition}}}}
	cl := fake.NewClientBuilder().WithScheme(s).WithObjects(node, obj).Build()
	if err := cl.Get(t.Context(), client.ObjectKeyFromObject(obj), obj); err != nil {
		t.Fatal(err)
	}
	j, err := read(obj, f)
	if err != nil {
		t.Fatal(err)
	}
	return &Controller{client: cl, reader: cl, recorder: events.NewFakeRecorder(10), now: time.Now}, obj, j
}

// afterSharing has the operator decide on the network of a job's pods.
func afterSharing(t *testing.T, f framework, e example, ports string, condition corev1.ConditionStatus) *job {
	t.Helper()
	c, obj, j := onNode(t, f, e, ports, condition)
	if err := c.shareNetwork(t.Context(), obj, j, true); err != nil {
		t.Fatal(err)
	}
	return j
}

func TestPortsDoNotOutliveTheSharedNetwork(t *testing.T) {
	j := afterSharing(t, pytorch(), example{pods: counts{"Master": 1, "Worker": 1}}, `{"exp-0001-master-0":20001,"exp-0001-worker-0":20002}`, corev1.ConditionTrue)
	if host, port := j.address("Master", 0); host == loopback {
		t.Errorf("pods with networks of their own look for their master at %s:%d", host, port)
	}
}

func TestAWorkerThatIsAddedHasAPort(t *testing.T) {
	j := afterSharing(t, tensorflow(), example{pods: counts{"PS": 1, "Worker": 2}}, `{"exp-0001-ps-0":20001,"exp-0001-worker-0":20002}`, corev1.ConditionFalse)
	if got := j.endpoint("Worker", 1); !strings.HasPrefix(got, loopback) {
		t.Errorf("worker 1 is at %s, which does not resolve", got)
	}
}

func TestAJobCopiedUnderAnotherNameHasPorts(t *testing.T) {
	j := afterSharing(t, pytorch(), example{pods: counts{"Master": 1, "Worker": 1}}, `{"other-master-0":20001,"other-worker-0":20002}`, corev1.ConditionFalse)
	if host, _ := j.address("Master", 0); host != loopback {
		t.Errorf("the master is at %s, which does not resolve", host)
	}
}

func TestElasticRendezvousOfTwoJobsDiffer(t *testing.T) {
	e := example{pods: counts{"Worker": 2}, extra: "elasticPolicy: {rdzvPort: 29400}"}
	j := afterSharing(t, pytorch(), e, "", corev1.ConditionFalse)
	endpoint := ""
	for _, v := range j.main(&j.pod(seat{"Worker", 1}).Spec).Env {
		if v.Name == "PET_RDZV_ENDPOINT" {
			endpoint = v.Value
		}
	}
	if want := j.endpoint("Worker", 0); endpoint != want || strings.HasSuffix(endpoint, ":29400") {
		t.Errorf("the workers meet at %q, want %q: those of all jobs with this policy have the port 29400", endpoint, want)
	}
}

func TestPortsOfJobsThatWaitAreNotGivenOutAgain(t *testing.T) {
	a := afterSharing(t, pytorch(), example{pods: counts{"Master": 1, "Worker": 1}}, "", corev1.ConditionFalse)
	again := portBook{next: int(a.ports["exp-0001-master-0"]) - firstPort - 1} // as after a restart it may be
	again.hold(a.ports)
	if port, _ := again.take(); port == a.ports["exp-0001-master-0"] {
		t.Errorf("port %d of a job whose pods do not listen yet", port)
	}
}

// master-0 was made while pods had networks, and worker-0 is made again after that.
func TestPortsComeWithTheFirstPodOnly(t *testing.T) {
	c, obj, j := onNode(t, pytorch(), example{pods: counts{"Master": 1, "Worker": 1}}, "", corev1.ConditionFalse)
	master := j.pod(seat{"Master", 0}) // waits for room
	if err := c.client.Create(t.Context(), master); err != nil {
		t.Fatal(err)
	}
	d := plan(j, []corev1.Pod{*master}, noon)
	if err := c.act(t.Context(), obj, j, d); err != nil {
		t.Fatal(err)
	}
	var worker corev1.Pod
	if err := c.client.Get(t.Context(), client.ObjectKey{Namespace: "team", Name: "exp-0001-worker-0"}, &worker); err != nil {
		t.Fatal(err)
	}
	address := func(p *corev1.Pod) (a string) {
		for _, v := range j.main(&p.Spec).Env {
			if v.Name == "MASTER_ADDR" || v.Name == "MASTER_PORT" {
				a += " " + v.Value
			}
		}
		return a
	}
	if m, w := address(master), address(&worker); m != w {
		t.Errorf("the master is told%s, its worker%s", m, w)
	}
}

func TestAJobWithoutPortsSaysSo(t *testing.T) {
	c, obj, j := onNode(t, pytorch(), example{pods: counts{"Master": 1}}, "", corev1.ConditionFalse)
	recorder := events.NewFakeRecorder(10)
	c.recorder, c.reader = recorder, fake.NewClientBuilder().WithScheme(runtime.NewScheme()).Build() // which cannot read nodes
	if err := c.act(t.Context(), obj, j, plan(j, nil, noon)); err == nil {
		t.Fatal("no error")
	}
	if len(recorder.Events) == 0 {
		t.Error("no event says why the job has no pods")
	}
}
