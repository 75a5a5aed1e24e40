package agent

import (
	"maps"
	"os"
	"path/filepath"
	"testing"

	"github.com/moby/sys/capability"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"

	"github.com/vernier-ml/vernier/local/shim"
	"github.com/vernier-ml/vernier/trainer"
)

func TestMemoryIsThatOfTheControlGroup(t *testing.T) {
	for name, test := range map[string]struct {
		files map[string]string
		want  int64
	}{
		"no control group": {nil, 8 << 30},
		"version 2":        {map[string]string{"proc/self/cgroup": "0::/a/b\n", "sys/fs/cgroup/a/b/memory.max": "max\n", "sys/fs/cgroup/a/memory.max": "1073741824\n"}, 1 << 30},
		"version 1":        {map[string]string{"proc/self/cgroup": "5:cpu:/x\n9:memory:/a\n", "sys/fs/cgroup/memory/a/memory.limit_in_bytes": "2147483648\n"}, 2 << 30},
		"no limit":         {map[string]string{"proc/self/cgroup": "9:memory:/a\n", "sys/fs/cgroup/memory/a/memory.limit_in_bytes": "9223372036854771712\n"}, 8 << 30},
	} {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			files := map[string]string{"proc/meminfo": "MemTotal:        8388608 kB\nMemFree: 1 kB\n"}
			maps.Copy(files, test.files)
			for path, text := range files {
				if err := os.MkdirAll(filepath.Dir(filepath.Join(root, path)), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(filepath.Join(root, path), []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if got, err := availableMemory(root); err != nil || got != test.want {
				t.Errorf("got %d, %v; want %d", got, err, test.want)
			}
		})
	}
}

func TestWhatProtectsIsNotIgnoredInSilence(t *testing.T) {
	root, other := ptr.To[int64](0), ptr.To[int64](1000)
	yes := ptr.To(true)
	pod := func(podContext corev1.PodSecurityContext, own corev1.SecurityContext) *corev1.Pod {
		return &corev1.Pod{Spec: corev1.PodSpec{SecurityContext: &podContext,
			Containers: []corev1.Container{{Name: "m", Command: []string{"x"}, SecurityContext: &own}}}}
	}
	for name, test := range map[string]struct {
		pod  *corev1.Pod
		want string
	}{
		"not as root":               {pod(corev1.PodSecurityContext{RunAsNonRoot: yes, RunAsUser: root}, corev1.SecurityContext{}), "RunAsNonRoot"},
		"another user will do":      {pod(corev1.PodSecurityContext{RunAsNonRoot: yes, RunAsUser: root}, corev1.SecurityContext{RunAsUser: other}), ""},
		"the container may be root": {pod(corev1.PodSecurityContext{RunAsNonRoot: yes, RunAsUser: root}, corev1.SecurityContext{RunAsNonRoot: ptr.To(false)}), ""},
		"what needs mounts":         {pod(corev1.PodSecurityContext{}, corev1.SecurityContext{ReadOnlyRootFilesystem: yes}), "ReadOnlyRootFilesystem"},
	} {
		t.Run(name, func(t *testing.T) {
			got := ""
			if why := checkSpec(test.pod, shim.MountsNone); why != nil {
				got = why.Reason
			}
			if got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
			if why := checkSpec(test.pod, shim.MountsUser); why != nil && why.Reason != "RunAsNonRoot" {
				t.Errorf("refused where there are mounts: %+v", why)
			}
		})
	}
}

func TestWhatIsAskedOfASecurityContext(t *testing.T) {
	caps := func(add []corev1.Capability, drop ...corev1.Capability) *corev1.Capabilities {
		return &corev1.Capabilities{Add: add, Drop: drop}
	}
	root, other, yes := ptr.To[int64](0), ptr.To[int64](1000), ptr.To(true)
	all := len(capability.ListKnown())
	for name, test := range map[string]struct {
		container string
		context   corev1.SecurityContext
		readOnly  bool
		dropped   int
	}{
		"read-only":             {"m", corev1.SecurityContext{ReadOnlyRootFilesystem: yes}, true, 0},
		"all capabilities":      {"m", corev1.SecurityContext{RunAsUser: root, Capabilities: caps(nil, "ALL")}, false, all},
		"all but one":           {"m", corev1.SecurityContext{RunAsUser: root, Capabilities: caps([]corev1.Capability{"CHOWN"}, "ALL")}, false, all - 1},
		"one, by its long name": {"m", corev1.SecurityContext{RunAsUser: root, Capabilities: caps(nil, "CAP_NET_RAW")}, false, 1},
		"another user has none": {"m", corev1.SecurityContext{RunAsUser: other, Capabilities: caps(nil, "ALL")}, false, 0},
		"the sidecar is ours":   {trainer.Sidecar, corev1.SecurityContext{RunAsUser: root, ReadOnlyRootFilesystem: yes, Capabilities: caps(nil, "ALL")}, false, 0},
	} {
		t.Run(name, func(t *testing.T) {
			var spec shim.ContainerSpec
			secure(&corev1.Pod{}, &corev1.Container{Name: test.container, SecurityContext: &test.context}, &spec)
			if spec.ReadOnly != test.readOnly || len(spec.DropCapabilities) != test.dropped {
				t.Errorf("got %+v", spec)
			}
		})
	}
}

func TestAdmission(t *testing.T) {
	pod := func(cpu string) *corev1.Pod {
		return &corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{{Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{"cpu": resource.MustParse(cpu)}}}}}}
	}
	node := corev1.ResourceList{"cpu": resource.MustParse("4"), "memory": resource.MustParse("1Gi"), "pods": resource.MustParse("3")}
	tests := map[string]struct {
		pod    *corev1.Pod
		others []*corev1.Pod
		want   string
	}{
		"it fits":                   {pod("4"), nil, ""},
		"it fits beside another":    {pod("2"), []*corev1.Pod{pod("2")}, ""},
		"another has taken it":      {pod("3"), []*corev1.Pod{pod("2")}, "OutOfcpu"},
		"too many pods":             {pod("0"), []*corev1.Pod{pod("0"), pod("0"), pod("0")}, "OutOfpods"},
		"a device that is not here": {gpuRequest(), nil, "OutOfnvidia.com/gpu"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got := ""
			if why := admit(test.pod, test.others, node); why != nil {
				got = why.Reason
			}
			if got != test.want {
				t.Errorf("reason %q, want %q", got, test.want)
			}
		})
	}
}
