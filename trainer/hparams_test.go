package trainer_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/vernier-ml/vernier/trainer"
)

// Only the collector of event files gets the parameters, and may write beside the
// files.
func TestParametersGoToTheCollectorOfEventFiles(t *testing.T) {
	tests := map[string]struct {
		kind     string
		mount    string
		none     bool
		wantArgs []string
		readOnly bool
	}{
		"event files":                         {kind: trainer.TensorFlowEvent, mount: "{name: pvc, mountPath: /data/events}", wantArgs: []string{"--trial=exp-0001", "--parameter=cost=$$(5)", "--parameter=lr=0.1"}},
		"event files on a volume for reading": {kind: trainer.TensorFlowEvent, mount: "{name: pvc, mountPath: /data/events, readOnly: true}", wantArgs: []string{"--trial=exp-0001", "--parameter=cost=$$(5)", "--parameter=lr=0.1"}, readOnly: true},
		"event files, and no parameters":      {kind: trainer.TensorFlowEvent, mount: "{name: pvc, mountPath: /data/events}", none: true, readOnly: true},
		"a file":                              {kind: trainer.File, mount: "{name: pvc, mountPath: /data/out}", readOnly: true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			c := collector(tc.kind)
			if !tc.none {
				c.Parameters = map[string]string{"lr": "0.1", "cost": "$(5)"}
			}
			obj := job(t, "containers: [{name: main, image: i, args: [x], volumeMounts: ["+tc.mount+"]}]")
			sidecar := injected(t, obj, c).Spec.InitContainers[0]
			args := slices.DeleteFunc(slices.Clone(sidecar.Args), func(a string) bool {
				return !strings.HasPrefix(a, "--trial=") && !strings.HasPrefix(a, "--parameter=")
			})
			if len(args) == 0 {
				args = nil
			}
			if diff := cmp.Diff(tc.wantArgs, args); diff != "" {
				t.Errorf("arguments (-want +got):\n%s", diff)
			}
			for _, m := range sidecar.VolumeMounts {
				if m.Name == "pvc" && m.ReadOnly != tc.readOnly {
					t.Errorf("the mount %+v", m)
				}
			}
		})
	}
}
