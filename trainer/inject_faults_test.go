package trainer_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/vernier-ml/vernier/trainer"
	"github.com/vernier-ml/vernier/trainer/kind"
)

func TestInjectFaults(t *testing.T) {
	tests := map[string]struct {
		podSpec string
		edit    func(*trainer.Collector)
		want    string
		wantIs  error
	}{
		"StdOut without a command": {
			podSpec: "containers: [{name: other}, {name: main, image: i, args: [--lr]}]",
			want:    "spec.template.spec.containers[1].command: is missing: the StdOut collector runs the command itself",
			wantIs:  trainer.ErrNoCommand,
		},
		"the primary container is not there": {
			podSpec: "containers: [{name: a}, {name: b}]",
			want:    `spec.template.spec.containers: there is no container "main", which primaryContainerName names; the containers are: "a", "b"`,
		},
		"a container with our name": {
			podSpec: "containers: [{name: main, command: [x]}, {name: metrics-collector}]",
			want:    `the container name "metrics-collector" is taken`,
		},
		"something else mounted in our directory": {
			podSpec: "containers: [{name: main, command: [x], volumeMounts: [{name: v, mountPath: /var/run/vernier}]}]",
			want:    "spec.template.spec.containers[0].volumeMounts[0].mountPath: /var/run/vernier is taken",
		},
		"a mount with a path from the environment": {
			podSpec: "containers: [{name: main, volumeMounts: [{name: v, mountPath: /data, subPathExpr: $(A)}]}]",
			edit:    func(c *trainer.Collector) { c.Kind, c.Path = trainer.File, "/data/m" },
			want:    "spec.template.spec.containers[0].volumeMounts[0].subPathExpr: the metrics collector cannot share",
		},
		"the same, without images": {
			podSpec: "containers: [{name: other}, {name: main, volumeMounts: [{name: v, mountPath: /data, subPathExpr: $(A)}]}]",
			edit:    func(c *trainer.Collector) { c.Kind, c.Path, c.Binary = trainer.File, "/data/m", "/opt/collector" },
			want:    "spec.template.spec.containers[1].volumeMounts[0].subPathExpr: the metrics collector cannot share",
		},
		"a file in the root directory": {
			podSpec: "containers: [{name: main}]",
			edit:    func(c *trainer.Collector) { c.Kind, c.Path = trainer.File, "/metrics.log" },
			want:    `the path "/metrics.log" of the File collector cannot be shared`,
		},
		"a relative path": {
			podSpec: "containers: [{name: main}]",
			edit:    func(c *trainer.Collector) { c.Kind, c.Path = trainer.TensorFlowEvent, "events" },
			want:    "must be absolute",
		},
		"a collector that is not known": {
			podSpec: "containers: [{name: main}]",
			edit:    func(c *trainer.Collector) { c.Kind = "Radio" },
			want:    `there is no injection for a collector of kind "Radio"`,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			obj := job(t, tc.podSpec)
			before := obj.DeepCopy()
			c := collector(trainer.StdOut)
			if tc.edit != nil {
				tc.edit(&c)
			}
			err := trainer.Inject(obj, kind.For(obj.GroupVersionKind()), c)
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Fatalf("error %v, want %q in it", err, tc.want)
			}
			if tc.wantIs != nil && !errors.Is(err, tc.wantIs) {
				t.Errorf("error %v is not %v", err, tc.wantIs)
			}
			if diff := cmp.Diff(before.Object, obj.Object); diff != "" {
				t.Errorf("the job was changed\n%s", diff)
			}
		})
	}
}
