package trainer

import (
	"cmp"
	"fmt"
	"path"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/vernier-ml/vernier/collector/contract"
)

const (
	// CheckpointContainer makes the trial's directory for checkpoints.
	CheckpointContainer = "vernier-checkpoints"
	// CheckpointVolume is the volume of all trials.
	CheckpointVolume = "vernier-checkpoints"
	// checkpointRoot is where CheckpointContainer sees the directories of the
	// experiment's trials.
	checkpointRoot = "/var/run/vernier-checkpoints"
)

// Checkpoints is a trial's directory for checkpoints.
type Checkpoints struct {
	// Path in the primary container.
	Path string
	// Claim of the volume, and the folder of the experiment's trials there.
	Claim, Folder string
	// Parent is the trial whose checkpoints this one starts with; empty if it
	// starts with none.
	Parent string
	// UID that the trial was first created with, which tells its directory from that of a
	// deleted trial of the same name.
	UID string
}

// addCheckpoints mounts the trial's directory in the primary container. It is made
// before, with a copy of the parent's checkpoints, by the image and the user of the
// primary container: what is copied belongs to that user.
func (p pod) addCheckpoints(main map[string]any) error {
	c := p.c.Checkpoints
	mounts, _ := main["volumeMounts"].([]any)
	for _, m := range mounts {
		if at(m, "mountPath") == c.Path && at(m, "name") != CheckpointVolume {
			return fault(under(p.path, "containers"), "the container %q mounts a volume at %s, where its checkpoints belong: remove the mount, or name its claim in trialTemplate.checkpoints.claimName", p.c.PrimaryContainer, c.Path)
		}
	}
	if err := p.install(main); err != nil {
		return err
	}
	command := []string{cmp.Or(p.c.Binary, contract.DefaultBinary), "checkpoints", "--to=" + path.Join(checkpointRoot, p.c.Trial), "--uid=" + c.UID}
	if c.Parent != "" {
		command = append(command, "--from="+path.Join(checkpointRoot, c.Parent))
	}
	maker, err := p.ours(corev1.Container{
		Name: CheckpointContainer, Command: command,
		TerminationMessagePolicy: corev1.TerminationMessageFallbackToLogsOnError, // the trial quotes it
	}, main)
	if err != nil {
		return err
	}
	for _, key := range []string{"image", "imagePullPolicy", "securityContext"} {
		if v, ok := main[key]; ok {
			maker[key] = runtime.DeepCopyJSONValue(v)
		} else {
			delete(maker, key)
		}
	}
	folder, own := mount(CheckpointVolume, checkpointRoot), mount(CheckpointVolume, c.Path)
	folder["subPath"], own["subPath"] = c.Folder, path.Join(c.Folder, p.c.Trial)
	maker["volumeMounts"] = []any{folder, mount(MetricsVolume, contract.DefaultDir)}
	upsert(p.spec, "initContainers", maker)
	upsert(main, "volumeMounts", own)
	upsert(p.spec, "volumes", map[string]any{"name": CheckpointVolume, "persistentVolumeClaim": map[string]any{"claimName": c.Claim}})
	upsert(p.spec, "volumes", map[string]any{"name": MetricsVolume, "emptyDir": map[string]any{}})
	return nil
}

// CheckCheckpointPath says what is wrong with a path for checkpoints.
func CheckCheckpointPath(place string) error {
	switch {
	case !path.IsAbs(place) || path.Clean(place) != place || place == "/":
		return fmt.Errorf("%q must be the absolute path of a directory, such as /checkpoints", place)
	case beneath(place, contract.DefaultDir) || beneath(contract.DefaultDir, place):
		return fmt.Errorf("%q is where the metrics collector keeps its files: choose another directory", place)
	}
	return nil
}
