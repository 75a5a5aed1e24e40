package trial

import (
	"context"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/version"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

// Image volumes are part of Kubernetes for good since 1.36 (KEP-4639), and of containerd
// since 2.1.
var (
	mountingKubelet    = version.MajorMinor(1, 36)
	mountingContainerd = version.MajorMinor(2, 1)
)

// mountsFor is how long the answer of MountImages holds.
const mountsFor = time.Minute

// MountImages returns what says whether all nodes are known to mount images as volumes.
// Nodes are read with reader, at most once a minute.
func MountImages(reader client.Reader, now func() time.Time) func(context.Context) bool {
	var mu sync.Mutex
	var until time.Time
	var answer bool
	return func(ctx context.Context) bool {
		mu.Lock()
		defer mu.Unlock()
		if now().Before(until) {
			return answer
		}
		var nodes corev1.NodeList
		err := reader.List(ctx, &nodes)
		if err != nil {
			log.FromContext(ctx).Error(err, "it is not known whether nodes mount images: trials get sidecars", "for", mountsFor)
		}
		answer, until = err == nil && mountImages(nodes.Items), now().Add(mountsFor)
		return answer
	}
}

// mountImages says whether all nodes that take pods are known to mount images as volumes.
func mountImages(nodes []corev1.Node) bool {
	some := false
	for i := range nodes {
		if nodes[i].Spec.Unschedulable {
			continue
		}
		info := nodes[i].Status.NodeInfo
		runtime, of, _ := strings.Cut(info.ContainerRuntimeVersion, "://")
		if runtime != "containerd" || !atLeast(of, mountingContainerd) || !atLeast(info.KubeletVersion, mountingKubelet) {
			return false
		}
		some = true
	}
	return some
}

func atLeast(text string, least *version.Version) bool {
	v, err := version.ParseGeneric(text)
	return err == nil && v.AtLeast(least)
}
