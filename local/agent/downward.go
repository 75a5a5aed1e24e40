package agent

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// facts are values of a pod that are known only on its node.
type facts struct {
	NodeName string
	HostIP   string
	PodIP    string
	// Allocatable stands in for limits that a container does not set.
	Allocatable corev1.ResourceList
}

// fieldValue is the value of a downward API field path.
func fieldValue(pod *corev1.Pod, f facts, path string) (string, error) {
	if name, key, ok := subscript(path); ok {
		switch name {
		case "metadata.labels":
			return pod.Labels[key], nil
		case "metadata.annotations":
			return pod.Annotations[key], nil
		}
		return "", configErrorf("field path %q is not supported", path)
	}
	switch path {
	case "metadata.name":
		return pod.Name, nil
	case "metadata.namespace":
		return pod.Namespace, nil
	case "metadata.uid":
		return string(pod.UID), nil
	case "metadata.labels":
		return quotedLines(pod.Labels), nil
	case "metadata.annotations":
		return quotedLines(pod.Annotations), nil
	case "spec.nodeName":
		return f.NodeName, nil
	case "spec.serviceAccountName":
		return pod.Spec.ServiceAccountName, nil
	case "status.hostIP", "status.hostIPs":
		return f.HostIP, nil
	case "status.podIP", "status.podIPs":
		return f.PodIP, nil
	}
	return "", configErrorf("field path %q is not supported", path)
}

// subscript splits metadata.labels['key'].
func subscript(path string) (name, key string, ok bool) {
	name, rest, found := strings.Cut(path, "['")
	if !found || !strings.HasSuffix(rest, "']") {
		return "", "", false
	}
	return name, strings.TrimSuffix(rest, "']"), true
}

// quotedLines formats a map as the downward API's files do: key="value" a
// line, sorted.
func quotedLines(m map[string]string) string {
	var b strings.Builder
	for i, k := range slices.Sorted(maps.Keys(m)) {
		if i > 0 {
			b.WriteByte('\n')
		}
		fmt.Fprintf(&b, "%s=%s", k, strconv.Quote(m[k]))
	}
	return b.String()
}

// resourceValue is a container's request or limit in units of the divisor,
// rounded up. A limit that is not set is the node's allocatable amount.
func resourceValue(pod *corev1.Pod, c *corev1.Container, f facts, ref *corev1.ResourceFieldSelector) (string, error) {
	if ref.ContainerName != "" && ref.ContainerName != c.Name {
		other := findContainer(&pod.Spec, ref.ContainerName)
		if other == nil {
			return "", configErrorf("resourceFieldRef: the pod has no container %q", ref.ContainerName)
		}
		c = other
	}
	kind, name, ok := strings.Cut(ref.Resource, ".")
	if !ok || (kind != "limits" && kind != "requests") {
		return "", configErrorf("resourceFieldRef: resource %q is not supported", ref.Resource)
	}
	list := c.Resources.Limits
	if kind == "requests" {
		list = c.Resources.Requests
	}
	amount, set := list[corev1.ResourceName(name)]
	if !set && kind == "limits" {
		amount = f.Allocatable[corev1.ResourceName(name)]
	}
	divisor := ref.Divisor
	if divisor.IsZero() {
		divisor = resource.MustParse("1")
	}
	if name == string(corev1.ResourceCPU) {
		return strconv.FormatInt(ceilDiv(amount.MilliValue(), divisor.MilliValue()), 10), nil
	}
	return strconv.FormatInt(ceilDiv(amount.Value(), divisor.Value()), 10), nil
}

func ceilDiv(a, b int64) int64 { return (a + b - 1) / b }

func findContainer(spec *corev1.PodSpec, name string) *corev1.Container {
	for _, c := range allContainers(spec) {
		if c.Name == name {
			return c
		}
	}
	return nil
}
