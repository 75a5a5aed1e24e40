//go:build e2e

package e2e

import (
	"strconv"
	"testing"

	"github.com/vernier-ml/vernier/api/v1beta1"
)

// TestTrialsGoOnFromCheckpoints runs a program that counts in its checkpoint how many
// trials it went through.
func TestTrialsGoOnFromCheckpoints(t *testing.T) {
	i := upOrCluster(t)
	const train = `cd /ckpt; echo $KATIB_TRIAL_NAME >> history; echo depth=$(sort -u history | wc -l)`
	common := jobExperiment{
		objective: `{type: maximize, objectiveMetricName: depth}`,
		parallel:  2,
		command:   `[sh, -c, "` + train + ` x=${trialParameters.x}"]`,
		spec:      "  seed: 1\n",
	}
	population, halving := common, common
	population.name, population.max = "population", 12
	population.algorithm = `pbt, algorithmSettings: [{name: n_population, value: "3"}, {name: suggestion_trial_dir, value: /ckpt/}]`
	halving.name, halving.max = "halving", 14
	halving.algorithm = `asha, algorithmSettings: [{name: resource_name, value: x}]`
	halving.parameter = `parameterType: int, feasibleSpace: {min: "1", max: "9"}}, {name: y, parameterType: double, feasibleSpace: {min: "0", max: "1"}`
	promoted := halving.object(t)
	promoted.Spec.TrialTemplate.Checkpoints = &v1beta1.CheckpointSpec{Path: "/ckpt"}

	for _, experiment := range []*v1beta1.Experiment{population.object(t), promoted} {
		t.Run(experiment.Name, func(t *testing.T) {
			if err := i.client.Create(t.Context(), experiment); err != nil {
				t.Fatal(err)
			}
			i.awaitEnd(t, experiment.Name)
			depths, continued := map[string]int{}, 0
			for _, trial := range i.trials(t, experiment.Name) {
				parent := trial.Spec.Checkpoints.Parent
				if parent != "" {
					continued++
				}
				depths[trial.Name] = depths[parent] + 1
				if o := trial.Status.Observation; o == nil || o.Metrics[0].Latest != strconv.Itoa(depths[trial.Name]) {
					t.Errorf("%s, which continues %q, observed %+v, want a depth of %d", trial.Name, parent, o, depths[trial.Name])
				}
			}
			if continued < 2 {
				t.Errorf("%d trials continued others", continued)
			}
		})
	}
}
