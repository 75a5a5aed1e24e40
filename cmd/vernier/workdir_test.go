package main

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

func TestAProgramInTheCurrentDirectoryGetsAHint(t *testing.T) {
	const file = `
apiVersion: kubeflow.org/v1beta1
kind: Experiment
metadata: {name: a}
spec:
  trialTemplate:
    trialSpec:
      kind: Job
      spec: {template: {spec: {containers: [{name: training, %s}]}}}
`
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "train.py"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	tests := map[string]struct {
		container string
		want      bool
	}{
		"a file that is there":     {`command: [python3, train.py, "--lr=1"]`, true},
		"in args":                  {`command: [python3], args: [train.py]`, true},
		"with a working directory": {`workingDir: /x, command: [python3, train.py]`, false},
		"an absolute path":         {`command: [python3, /x/train.py]`, false},
		"a file that is not there": {`command: [python3, other.py]`, false},
		"a program of the PATH":    {`command: [charlm]`, false},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			objects, err := decodeManifest(fmt.Appendf(nil, file, tc.container))
			if err != nil {
				t.Fatal(err)
			}
			hints := workdirHints(objects[0], dir)
			if (len(hints) == 1) != tc.want {
				t.Fatalf("hints %q", hints)
			}
			for _, hint := range hints {
				requireText(t, hint, "train.py", "workingDir: "+dir, "container training")
			}
		})
	}
}
