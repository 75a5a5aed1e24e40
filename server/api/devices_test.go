package api

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"google.golang.org/protobuf/testing/protocmp"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	vernierv1 "github.com/vernier-ml/vernier/api/proto/vernier/v1"
	"github.com/vernier-ml/vernier/api/v1beta1"
)

const gpu = "nvidia.com/gpu"

// nodesToo may list nodes besides.
type nodesToo struct{ Access }

func (a nodesToo) Allowed(ctx context.Context, user authenticationv1.UserInfo, what authorizationv1.ResourceAttributes) (bool, error) {
	if what.Resource == "nodes" {
		return what.Verb == "list", nil
	}
	return a.Access.Allowed(ctx, user, what)
}

func nodeWith(name string, ready corev1.ConditionStatus, has corev1.ResourceList) *corev1.Node {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
	n.Status.Allocatable = has
	n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: ready}}
	return n
}

// asks is a pod of a trial that asks for GPUs, on a node unless that is empty.
func asks(namespace, trial, pod, node string, phase corev1.PodPhase, gpus string) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: pod, Labels: map[string]string{v1beta1.LabelTrial: trial, v1beta1.LabelExperiment: "exp"}}}
	p.Spec.NodeName, p.Status.Phase = node, phase
	p.Spec.Containers = []corev1.Container{{Name: "main", Resources: corev1.ResourceRequirements{
		Requests: corev1.ResourceList{gpu: resource.MustParse(gpus), corev1.ResourceCPU: resource.MustParse("1")},
	}}}
	if node == "" {
		p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Message: "Insufficient " + gpu}}
	}
	return p
}

func TestDevicesAreCountedForThoseWhoMaySeeTheirTrials(t *testing.T) {
	offers := corev1.ResourceList{gpu: resource.MustParse("4"), corev1.ResourceCPU: resource.MustParse("8"), "hugepages-2Mi": resource.MustParse("0"), "attachable.kubernetes.io/x": resource.MustParse("9")}
	objects := []client.Object{
		nodeWith("a", corev1.ConditionTrue, offers), nodeWith("b", corev1.ConditionFalse, offers), nodeWith("plain", corev1.ConditionTrue, nil),
		asks("ml", "exp-0000", "exp-0000-1", "a", corev1.PodRunning, "1"), asks("ml", "exp-0000", "exp-0000-0", "a", corev1.PodRunning, "1"),
		asks("ml", "exp-0001", "exp-0001-0", "", corev1.PodPending, "8"), asks("ml", "exp-0002", "exp-0002-0", "a", corev1.PodSucceeded, "1"),
		asks("other", "exp-0003", "exp-0003-0", "a", corev1.PodRunning, "1"),
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "ml"}}, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "other"}},
	}
	trial := func(namespace, name string) string {
		return "namespaces/" + namespace + "/experiments/exp/trials/" + name
	}
	row := func(node string, ready bool, of, used int64, message string, trials ...string) *vernierv1.Devices {
		return &vernierv1.Devices{Node: node, Ready: ready, Resource: gpu, Allocatable: of, Used: used, Message: message, Trials: trials}
	}
	waits := []*vernierv1.Devices{row("", false, 0, 8, "Insufficient "+gpu, trial("ml", "exp-0001"))}
	mineSomewhere := []*vernierv1.Devices{row("", false, 0, 2, "", trial("ml", "exp-0000"))}
	mine := lists{"experiments": "ml", "trials": "ml"}
	for name, c := range map[string]struct {
		access    Access
		forbidden bool // to Vernier itself
		want      []*vernierv1.Devices
		waiting   []*vernierv1.Devices
		hidden    bool
	}{
		"who may list all": {access: OneToken("any"), waiting: waits, want: []*vernierv1.Devices{
			row("a", true, 4, 3, "", trial("ml", "exp-0000"), trial("other", "exp-0003")), row("b", false, 4, 0, ""),
		}},
		"who may list the trials of one namespace, and nodes": {access: nodesToo{mine}, waiting: waits, want: []*vernierv1.Devices{
			row("a", true, 4, 2, "", trial("ml", "exp-0000")), row("b", false, 4, 0, ""),
		}},
		"who may not list nodes":              {access: mine, hidden: true, want: mineSomewhere, waiting: waits},
		"where Vernier may not list nodes":    {access: nodesToo{mine}, forbidden: true, hidden: true, want: mineSomewhere, waiting: waits},
		"who may list experiments, no trials": {access: lists{"experiments": "ml"}, hidden: true},
	} {
		t.Run(name, func(t *testing.T) {
			s := serve(t, interceptor.Funcs{List: func(ctx context.Context, w client.WithWatch, list client.ObjectList, o ...client.ListOption) error {
				if _, ok := list.(*corev1.NodeList); ok && c.forbidden {
					return apierrors.NewForbidden(schema.GroupResource{Resource: "nodes"}, "", nil)
				}
				return w.List(ctx, list, o...)
			}}, objects...)
			s.Access = c.access
			got, err := s.ListDevices(t.Context(), &vernierv1.ListDevicesRequest{})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, got.GetDevices(), protocmp.Transform(), cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(c.waiting, got.GetWaiting(), protocmp.Transform(), cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("waiting (-want +got):\n%s", diff)
			}
			if (got.GetHidden() != "") != c.hidden {
				t.Errorf("hidden: %q", got.GetHidden())
			}
		})
	}
}

// Every open page asks again and again: nodes are not read for each.
func TestNodesAreRememberedForAWhile(t *testing.T) {
	read := 0
	s := serve(t, interceptor.Funcs{List: func(ctx context.Context, w client.WithWatch, list client.ObjectList, o ...client.ListOption) error {
		if _, ok := list.(*corev1.NodeList); ok {
			read++
		}
		return w.List(ctx, list, o...)
	}}, nodeWith("a", corev1.ConditionTrue, corev1.ResourceList{gpu: resource.MustParse("1")}))
	for range 3 {
		if got, err := s.ListDevices(t.Context(), &vernierv1.ListDevicesRequest{}); err != nil || len(got.GetDevices()) != 1 {
			t.Fatalf("%v, %v", got, err)
		}
	}
	if read != 1 {
		t.Errorf("nodes were read %d times", read)
	}
}
