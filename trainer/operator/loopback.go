package operator

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"net"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/vernier-ml/vernier/collector/contract"
	event "github.com/vernier-ml/vernier/controllers/events"
)

// annotationPorts of a job are the ports of its pods on 127.0.0.1, as a JSON object of
// names of pods and numbers. It is set where pods share the network of their machine:
// names of Services do not resolve there, and the pods of all jobs would listen on one
// port.
const annotationPorts = "vernier.ml/loopback-ports"

const loopback = "127.0.0.1"

// Ports that are given out lie below those that the kernel chooses for outgoing connections.
const (
	firstPort = 20000
	portCount = 12000
)

// address is where a pod is reached by the others of its job.
func (j *job) address(replica string, index int) (host string, port int32) {
	name := j.podName(replica, index)
	if port, shared := j.ports[name]; shared {
		return loopback, port
	}
	return name, j.port(replica)
}

// readPorts reads annotationPorts.
func (j *job) readPorts() error {
	text := j.Annotations[annotationPorts]
	if text == "" {
		return nil
	}
	if err := json.Unmarshal([]byte(text), &j.ports); err != nil {
		return fault("metadata.annotations", "%s: %v: remove it", annotationPorts, err)
	}
	return nil
}

// shareNetwork gives the pods of a job ports on 127.0.0.1 where they have no networks of
// their own. The job is written before its pods are made, so that all see the same ports;
// what pods that stay were told holds for the others too. anew says that none stays.
func (c *Controller) shareNetwork(ctx context.Context, obj *unstructured.Unstructured, j *job, anew bool) error {
	if j.portName == "" {
		return nil
	}
	shared := len(j.ports) > 0
	if anew {
		var nodes corev1.NodeList
		if err := c.reader.List(ctx, &nodes); err != nil {
			return fmt.Errorf("see whether pods have networks of their own: %w", err)
		}
		shared = sharedByAll(nodes.Items)
	}
	ports, err := c.portsFor(j, shared)
	if err != nil || maps.Equal(ports, j.ports) {
		return err
	}
	before := obj.DeepCopy()
	annotations := obj.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	delete(annotations, annotationPorts)
	if shared {
		text, err := json.Marshal(ports)
		if err != nil {
			return fmt.Errorf("write the ports of %s %s/%s: %w", j.kind, j.Namespace, j.Name, err)
		}
		annotations[annotationPorts] = string(text)
	}
	obj.SetAnnotations(annotations)
	// The lock refuses ports for a job that has some already, which the cache does not show yet.
	if err := c.client.Patch(ctx, obj, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
		return fmt.Errorf("write the ports of %s %s/%s: %w", j.kind, j.Namespace, j.Name, err)
	}
	j.ports = ports
	if shared {
		event.Warning("NetworkShared", "Create", "pods share the network of this machine: the environment of this job's pods names 127.0.0.1 and a port for each, in place of the names of Services; a program with a fixed port serves one pod at a time").Send(c.recorder, obj)
	}
	return nil
}

// portsFor keeps the ports that the pods of a job have, and takes those that they lack:
// of replicas that were added, or of all if the job is a copy of another. There are none
// where pods do not share a network.
func (c *Controller) portsFor(j *job, shared bool) (map[string]int32, error) {
	if !shared {
		return nil, nil
	}
	ports := map[string]int32{}
	for _, r := range j.replicas {
		for i := range r.count {
			name := j.podName(r.name, i)
			port, ok := j.ports[name]
			if !ok {
				var err error
				if port, err = c.ports.take(); err != nil {
					return nil, err
				}
			}
			ports[name] = port
		}
	}
	return ports, nil
}

// sharedByAll says whether pods of all nodes share the networks of their machines.
func sharedByAll(nodes []corev1.Node) bool {
	for i := range nodes {
		shared := false
		for _, c := range nodes[i].Status.Conditions {
			shared = shared || c.Type == contract.ConditionPodNetwork && c.Status == corev1.ConditionFalse
		}
		if !shared {
			return false
		}
	}
	return len(nodes) > 0
}

// portBook gives out ports of 127.0.0.1. A port comes again only after all others: the
// program that it was given to may listen later.
type portBook struct {
	mu   sync.Mutex
	next int            // 0 before the first
	held map[int32]bool // by jobs that have not ended: this process may not have given them out
}

// hold keeps ports that a job has from being given out.
func (b *portBook) hold(ports map[string]int32) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.held == nil {
		b.held = map[int32]bool{}
	}
	for _, port := range ports {
		b.held[port] = true
	}
}

// take returns a port on which nothing listens.
func (b *portBook) take() (int32, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.next == 0 {
		b.next = rand.IntN(portCount) // another process has given out the first ones
	}
	for range 2 * portCount {
		b.next++
		port := int32(firstPort + b.next%portCount)
		if b.held[port] {
			delete(b.held, port) // it is free in the next round: its job may have ended long ago
			continue
		}
		// On all addresses, as many programs listen, whatever they are told.
		l, err := net.Listen("tcp", fmt.Sprintf("0.0.0.0:%d", port))
		if err != nil {
			continue
		}
		return port, l.Close()
	}
	return 0, fmt.Errorf("no port of this machine from %d to %d is free for a distributed job: end programs that listen there", firstPort, firstPort+portCount-1)
}
