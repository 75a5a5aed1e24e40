package api

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"connectrpc.com/connect"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/component-helpers/resource"
	"sigs.k8s.io/controller-runtime/pkg/client"

	vernierv1 "github.com/vernier-ml/vernier/api/proto/vernier/v1"
	"github.com/vernier-ml/vernier/api/v1beta1"
)

const (
	// Every open page asks again and again: nodes are read anew after nodesKept.
	nodesKept = 10 * time.Second
	nodesKey  = "nodes"
	// mostHolders bounds the trials that are named of one resource of a node.
	mostHolders = 16
)

// ListDevices implements vernierv1.DashboardServiceHandler.
func (s *service) ListDevices(ctx context.Context, _ *vernierv1.ListDevicesRequest) (*vernierv1.ListDevicesResponse, error) {
	namespaces, err := s.namespaces(ctx)
	if err != nil {
		return nil, err
	}
	nodes, hidden, err := s.nodes(ctx)
	if err != nil {
		return nil, err
	}
	found, waiting := devices{}, devices{}
	for i := range nodes {
		found.offer(&nodes[i])
	}
	for _, namespace := range namespaces {
		if err := s.allow(ctx, "list", "trials", place{namespace: namespace}); connect.CodeOf(err) == connect.CodePermissionDenied {
			continue
		} else if err != nil {
			return nil, err
		}
		var pods corev1.PodList
		if err := s.Client.List(ctx, &pods, client.InNamespace(namespace), client.HasLabels{v1beta1.LabelTrial}, client.UnsafeDisableDeepCopy); err != nil {
			return nil, explain(ctx, err)
		}
		for i := range pods.Items {
			p := &pods.Items[i]
			switch {
			case p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed:
			case p.Spec.NodeName == "":
				waiting.hold(p, "")
			case hidden != "":
				found.hold(p, "")
			default:
				found.hold(p, p.Spec.NodeName)
			}
		}
	}
	return &vernierv1.ListDevicesResponse{Devices: found.list(), Waiting: waiting.list(), Hidden: hidden}, nil
}

// nodes are those of the cluster, the reader's own; or why they are hidden.
func (s *service) nodes(ctx context.Context) (nodes []corev1.Node, hidden string, err error) {
	may, err := s.mayRead(ctx, "", "list", "nodes", "")
	if err != nil {
		return nil, "", err
	}
	if !may {
		return nil, caller(ctx).Username + " may not list nodes, so it is not said how many devices they have: have a cluster role bound that allows it", nil
	}
	if kept, ok := s.nodesRead.Get(nodesKey); ok {
		nodes, _ = kept.([]corev1.Node)
		return nodes, "", nil
	}
	var list corev1.NodeList
	switch err := s.Reader.List(ctx, &list); {
	case apierrors.IsForbidden(err):
		return nil, "Vernier may not list nodes, so it is not said how many devices they have: the ClusterRole vernier-manager of this version allows it", nil
	case err != nil:
		return nil, "", explain(ctx, err)
	}
	s.nodesRead.Add(nodesKey, list.Items, nodesKept)
	return list.Items, "", nil
}

// deviceKey is a resource on a node, or without one.
type deviceKey struct {
	node     string
	resource corev1.ResourceName
}

// devices count what there is and who holds it.
type devices map[deviceKey]*vernierv1.Devices

func (d devices) at(node string, name corev1.ResourceName) *vernierv1.Devices {
	key := deviceKey{node, name}
	if d[key] == nil {
		d[key] = &vernierv1.Devices{Node: node, Resource: string(name)}
	}
	return d[key]
}

// offer adds what a node has, in use or not.
func (d devices) offer(n *corev1.Node) {
	ready := !n.Spec.Unschedulable && slices.ContainsFunc(n.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
	})
	for name, quantity := range n.Status.Allocatable {
		if extended(name) && !quantity.IsZero() {
			at := d.at(n.Name, name)
			at.Allocatable, at.Ready = quantity.Value(), ready
		}
	}
}

// hold adds what a pod of a trial asks for.
func (d devices) hold(p *corev1.Pod, node string) {
	trial := place{p.Namespace, p.Labels[v1beta1.LabelExperiment], p.Labels[v1beta1.LabelTrial]}.String()
	for name, quantity := range resource.PodRequests(p, resource.PodResourcesOptions{}) {
		if !extended(name) || quantity.IsZero() {
			continue
		}
		at := d.at(node, name)
		at.Used += quantity.Value()
		if !slices.Contains(at.Trials, trial) {
			at.Trials = append(at.Trials, trial)
		}
		for _, c := range p.Status.Conditions {
			if at.Message == "" && c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse {
				at.Message = c.Message
			}
		}
	}
}

func (d devices) list() []*vernierv1.Devices {
	out := make([]*vernierv1.Devices, 0, len(d))
	for _, at := range d {
		slices.Sort(at.Trials)
		at.Trials = at.Trials[:min(len(at.Trials), mostHolders)]
		out = append(out, at)
	}
	slices.SortFunc(out, func(a, b *vernierv1.Devices) int {
		return cmp.Or(strings.Compare(a.GetNode(), b.GetNode()), strings.Compare(a.GetResource(), b.GetResource()))
	})
	return out
}

// extended says whether a resource is one that device plugins offer.
func extended(name corev1.ResourceName) bool {
	domain, _, found := strings.Cut(string(name), "/")
	return found && domain != "kubernetes.io" && !strings.HasSuffix(domain, ".kubernetes.io")
}
