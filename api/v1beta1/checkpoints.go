package v1beta1

import (
	"path"

	"k8s.io/apimachinery/pkg/types"
)

// SettingTrialDir is Katib's setting of pbt: where a trial finds its checkpoints.
const SettingTrialDir = "suggestion_trial_dir"

// Checkpoints are those of the trial template, or of Katib's setting of the
// algorithm; nil if there are none. ClaimName is empty for the claim that is made
// with the experiment.
func (s *ExperimentSpec) Checkpoints() *CheckpointSpec {
	if s.TrialTemplate != nil && s.TrialTemplate.Checkpoints != nil {
		return s.TrialTemplate.Checkpoints
	}
	if s.Algorithm == nil {
		return nil
	}
	for _, setting := range s.Algorithm.AlgorithmSettings {
		if setting.Name == SettingTrialDir {
			return &CheckpointSpec{Path: path.Clean(setting.Value)}
		}
	}
	return nil
}

// VolumeClaimName is the name of the claim that is made with an experiment, as
// Katib's.
func VolumeClaimName(experiment string, a *AlgorithmSpec) string {
	return experiment + "-" + a.AlgorithmName
}

// CheckpointFolder is the folder of an experiment's trials on the volume. One that
// is created again with its name starts with no checkpoints.
func CheckpointFolder(experiment string, uid types.UID) string {
	const enough = 8
	return experiment + "-" + string(uid[:min(enough, len(uid))])
}
