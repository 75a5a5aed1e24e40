package operator

import (
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
	for _, v := range j.main(&j.pod(seat{"Worker", 1}).Spec).Env {
		if v.Name == "PET_RDZV_ENDPOINT" && v.Value == "127.0.0.1:29400" {
			t.Errorf("the workers of all jobs with this policy meet at %s, without PET_RDZV_ID", v.Value)
		}
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
