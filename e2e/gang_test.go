//go:build e2e

package e2e

import (
	"fmt"
	"testing"
	"time"

	"k8s.io/utils/ptr"

	"github.com/vernier-ml/vernier/api/v1beta1"
)

// TestJobsOfSeveralPodsGetTheirGPUsTogether runs jobs of two ranks with a GPU each where
// three are asked to run at once, and there are three GPUs. With one each they would wait
// for each other.
func TestJobsOfSeveralPodsGetTheirGPUsTogether(t *testing.T) {
	i := up(t, "--gpus=GPU-0,GPU-1,GPU-2", "--cpu=16")
	program := fmt.Sprintf(`image: %q, command: [%s, rank, "${trialParameters.x}"], resources: {limits: {nvidia.com/gpu: 1}}`, trialImage(), testProgram(t))
	e := operatedJobs["pytorchjob"].experiment(t, "gang", program, func(e *v1beta1.Experiment) { e.Spec.ParallelTrialCount = ptr.To[int32](3) })
	if err := i.client.Create(t.Context(), e); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			i.showFailures(t, "gang")
		}
	})
	i.awaitFinishedTrialsWithin(t, 3*time.Minute, "gang", 6)
	i.awaitEnd(t, "gang")
	checkTrials(t, "gang", 6, i.trials(t, "gang"))
}
