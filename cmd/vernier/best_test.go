package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/vernier-ml/vernier/api/v1beta1"
)

func TestWriteBest(t *testing.T) {
	trial := trialView{
		Name: "charlm-0001", Metrics: []metricView{{Name: "loss", Value: "0.5"}},
		Params: []v1beta1.ParameterAssignment{{Name: "learning-rate", Value: "0.01"}, {Name: "name", Value: "it's a $b"}, {Name: "width", Value: "16"}},
	}
	tests := map[string]string{
		"command": "cd '/my work' && VERNIER_PARAM_B='$x' WIDTH=16 python train.py --epochs=4 '--name=it'\\''s a $b' --width=16 --key=secret '--rank=$(RANK)'\n",
		"args":    "--learning-rate=0.01 --name='it'\\''s a $b' --width=16\n",
		"env":     "LEARNING_RATE=0.01\nNAME='it'\\''s a $b'\nWIDTH=16\n",
		"yaml":    "metrics:\n  loss: 0.5\nparameters:\n  learning-rate: 0.01\n  name: it's a $b\n  width: \"16\"\ntrial: charlm-0001\n",
	}
	job := func(b, width, name string) *runtime.RawExtension {
		return &runtime.RawExtension{Raw: []byte(`{"apiVersion": "batch/v1", "kind": "Job",
		"spec": {"template": {"spec": {"containers": [{"name": "training", "workingDir": "/my work", "env": [{"name": "PATH", "value": "/bin"}, {"name": "KEY", "value": "secret"},
			{"name": "VERNIER_PARAM_B", "value": "` + b + `"}, {"name": "WIDTH", "value": "` + width + `"}, {"name": "RANK", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}],
		"command": ["python", "train.py", "--epochs=4", "` + name + `", "--width=$(WIDTH)", "--key=$(KEY)", "--rank=$(RANK)"]}]}}}}`)}
	}
	trial.Object = &v1beta1.Trial{Spec: v1beta1.TrialSpec{PrimaryContainerName: "training", RunSpec: job("$$x", "16", "--name=it's a $$b")}}
	e := anExperiment()
	e.Spec.TrialTemplate = &v1beta1.TrialTemplate{TrialSource: v1beta1.TrialSource{TrialSpec: job("${trialParameters.b}", "${trialParameters.width}", "--name=${trialParameters.name}")}}
	e.Spec.Parameters = append(e.Spec.Parameters, v1beta1.ParameterSpec{Name: "width", ParameterType: v1beta1.ParameterTypeCategorical})
	for output, want := range tests {
		t.Run(output, func(t *testing.T) {
			var out bytes.Buffer
			if err := writeBest(&out, output, e, trial); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, out.String()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
	e.Spec.TrialTemplate.TrialParameters = []v1beta1.TrialParameterSpec{{Name: "rate", Reference: "learning-rate"}}
	for written, want := range map[string]string{
		`"--lr=${trialParameters.rate}"`:                                     "--lr=0.01",
		`"--lr", "${trialParameters.rate}"`:                                  "--lr 0.01",
		`"optimizer.lr=${trialParameters.rate}"`:                             "optimizer.lr=0.01",
		`"--lr=${trialParameters.rate}", "--warmup=${trialParameters.rate}"`: "--lr=0.01 --warmup=0.01",
		`"--", "${trialParameters.rate}"`:                                    "--learning-rate=0.01",
		`"--epochs=5", "${trialParameters.rate}"`:                            "--learning-rate=0.01",
		`"sh", "-c", "f --lr=${trialParameters.rate}"`:                       "--learning-rate=0.01",
		`"--lr=${trialParameters.rate}e-3"`:                                  "--learning-rate=0.01",
	} {
		e.Spec.TrialTemplate.TrialSpec = &runtime.RawExtension{Raw: []byte(`{"apiVersion": "batch/v1", "kind": "Job",
		"spec": {"template": {"spec": {"containers": [{"name": "training", "command": ["python", ` + written + `]}]}}}}`)}
		if got, _, _ := strings.Cut(arguments(e, trial), " --name"); got != want {
			t.Errorf("%s: %q, want %q", written, got, want)
		}
	}
	trial.Object = nil
	if err := writeBest(&bytes.Buffer{}, "command", e, trial); err == nil {
		t.Error("a trial that was deleted has a command")
	}
	if err := writeBest(&bytes.Buffer{}, "toml", e, trial); exitCode(err) != exitUsage {
		t.Errorf("an unknown format: %v", err)
	}
}
