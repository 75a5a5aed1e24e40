package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"

	coordv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/component-helpers/apimachinery/lease"
	"k8s.io/utils/clock"
)

const (
	leaseSeconds = 40
	leaseRenew   = 10 * time.Second
	// statusRefresh is how often the Node's heartbeat times are written.
	statusRefresh = 5 * time.Minute

	maxPods = 1000
)

// cores is how many this process may use. It follows the CPU quota of its control
// group too.
func cores() int { return runtime.GOMAXPROCS(0) }

// capacityOf is what the node offers: what was given, else what was found.
func capacityOf(cfg Config, gpus corev1.ResourceList) (corev1.ResourceList, error) {
	list := corev1.ResourceList{
		corev1.ResourceCPU:  *resource.NewQuantity(int64(cores()), resource.DecimalSI),
		corev1.ResourcePods: *resource.NewQuantity(maxPods, resource.DecimalSI),
	}
	if !cfg.CPU.IsZero() {
		list[corev1.ResourceCPU] = cfg.CPU
	}
	if cfg.Memory.IsZero() {
		bytes, err := availableMemory("/")
		if err != nil {
			return nil, fmt.Errorf("finding the size of the memory (give Config.Memory instead): %w", err)
		}
		list[corev1.ResourceMemory] = *resource.NewQuantity(bytes, resource.BinarySI)
	} else {
		list[corev1.ResourceMemory] = cfg.Memory
	}
	maps.Copy(list, gpus)
	return list, nil
}

// availableMemory is the machine's memory, or less where a control group of this
// process limits it, in bytes. root is "/".
func availableMemory(root string) (int64, error) {
	total := int64(0)
	for line := range strings.Lines(trimmedFile(filepath.Join(root, "proc/meminfo"))) {
		if n, _ := fmt.Sscanf(line, "MemTotal: %d kB", &total); n == 1 {
			break
		}
	}
	if total == 0 {
		return 0, errors.New("/proc/meminfo has no line MemTotal")
	}
	total <<= 10
	for line := range strings.Lines(trimmedFile(filepath.Join(root, "proc/self/cgroup"))) {
		// "0::/path" in version 2, "9:memory:/path" in version 1.
		fields := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(fields) != 3 || fields[1] != "" && fields[1] != "memory" {
			continue
		}
		base, file := "sys/fs/cgroup", "memory.max"
		if fields[1] == "memory" {
			base, file = "sys/fs/cgroup/memory", "memory.limit_in_bytes"
		}
		for path := filepath.Clean("/" + fields[2]); ; path = filepath.Dir(path) {
			limit, err := strconv.ParseInt(trimmedFile(filepath.Join(root, base, path, file)), 10, 64)
			if err == nil {
				total = min(total, limit)
			}
			if path == "/" {
				break
			}
		}
	}
	return total, nil
}

// register makes the Node, or takes an existing one of that name over.
func (n *node) register(ctx context.Context) error {
	object := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: n.name, Labels: map[string]string{
		corev1.LabelHostname: n.name, corev1.LabelOSStable: runtime.GOOS, corev1.LabelArchStable: runtime.GOARCH,
	}}}
	_, err := n.client.CoreV1().Nodes().Create(ctx, object, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("registering node %s: %w", n.name, err)
	}
	return n.writeStatus(ctx)
}

// writeStatus writes capacity, addresses and conditions.
func (n *node) writeStatus(ctx context.Context) error {
	had, err := n.client.CoreV1().Nodes().Get(ctx, n.name, metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("reading node %s: %w", n.name, err)
	}
	// A merge keeps what it is not told to drop: the GPUs of an earlier agent.
	offered := map[corev1.ResourceName]*resource.Quantity{}
	for name := range had.Status.Capacity {
		offered[name] = nil
	}
	for name, q := range n.capacity {
		offered[name] = &q
	}
	patch, err := json.Marshal(map[string]any{"status": struct {
		corev1.NodeStatus
		Capacity    map[corev1.ResourceName]*resource.Quantity `json:"capacity"`
		Allocatable map[corev1.ResourceName]*resource.Quantity `json:"allocatable"`
	}{n.status(), offered, offered}})
	if err != nil {
		return err
	}
	_, err = n.client.CoreV1().Nodes().Patch(ctx, n.name, types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status")
	if err != nil {
		return fmt.Errorf("writing the status of node %s: %w", n.name, err)
	}
	return nil
}

func (n *node) status() corev1.NodeStatus {
	now := metav1.NewTime(time.Now())
	networks, reason, message := n.network.condition()
	condition := func(t corev1.NodeConditionType, s corev1.ConditionStatus, reason, message string) corev1.NodeCondition {
		return corev1.NodeCondition{Type: t, Status: s, Reason: reason, Message: message, LastHeartbeatTime: now, LastTransitionTime: now}
	}
	return corev1.NodeStatus{
		Capacity:    n.capacity,
		Allocatable: n.capacity,
		Addresses: []corev1.NodeAddress{
			{Type: corev1.NodeInternalIP, Address: n.hostIP},
			{Type: corev1.NodeHostName, Address: n.name},
		},
		DaemonEndpoints: corev1.NodeDaemonEndpoints{KubeletEndpoint: corev1.DaemonEndpoint{Port: n.port}},
		Conditions: []corev1.NodeCondition{
			condition(corev1.NodeReady, corev1.ConditionTrue, "AgentReady", "the node agent is running"),
			condition(ConditionPodNetwork, networks, reason, message),
			condition(corev1.NodeMemoryPressure, corev1.ConditionFalse, "NotWatched", "memory pressure is not watched"),
			condition(corev1.NodeDiskPressure, corev1.ConditionFalse, "NotWatched", "disk pressure is not watched"),
			condition(corev1.NodePIDPressure, corev1.ConditionFalse, "NotWatched", "the number of processes is not watched"),
		},
		NodeInfo: corev1.NodeSystemInfo{
			OperatingSystem:         runtime.GOOS,
			Architecture:            runtime.GOARCH,
			KubeletVersion:          kubeletVersion,
			ContainerRuntimeVersion: "vernier://local-processes",
			KernelVersion:           trimmedFile("/proc/sys/kernel/osrelease"),
			MachineID:               trimmedFile("/etc/machine-id"),
			BootID:                  trimmedFile("/proc/sys/kernel/random/boot_id"),
			OSImage:                 runtime.GOOS,
		},
	}
}

// keep renews the Lease and the status until the context ends.
func (n *node) keep(ctx context.Context) {
	go wait.UntilWithContext(ctx, func(ctx context.Context) {
		if err := n.writeStatus(ctx); err != nil && ctx.Err() == nil {
			n.log.Error(err, "cannot refresh the node's status")
		}
	}, statusRefresh)
	own := func(l *coordv1.Lease) error {
		if len(l.OwnerReferences) > 0 {
			return nil
		}
		node, err := n.client.CoreV1().Nodes().Get(ctx, n.name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return errors.Join(n.register(ctx), err)
		}
		if err == nil {
			l.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Node", Name: node.Name, UID: node.UID}}
		}
		return err
	}
	lease.NewController(clock.RealClock{}, n.client, n.name, leaseSeconds, nil, leaseRenew, n.name, corev1.NamespaceNodeLease, own).Run(ctx)
}

// trimmedFile is the content of a small file, or nothing.
func trimmedFile(path string) string {
	data, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(data))
}
