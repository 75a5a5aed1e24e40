package trainer

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/vernier-ml/vernier/collector/contract"
)

// mountCollector mounts the collector's image in the primary container, whose program
// "collector run" starts and reports of.
func (p pod) mountCollector(main map[string]any, where []string) error {
	command, err := p.command(main, where)
	if err != nil {
		return err
	}
	if err := p.mountMetrics(main, where); err != nil {
		return err
	}
	env, err := p.environment(main, where)
	if err != nil {
		return err
	}
	image := corev1.Volume{Name: ImageVolume, VolumeSource: corev1.VolumeSource{
		Image: &corev1.ImageVolumeSource{Reference: p.c.Image, PullPolicy: p.c.ImagePullPolicy}}}
	if err := upsertTyped(p.spec, "volumes", &image); err != nil {
		return err
	}
	if err := upsertTyped(main, "volumeMounts", &corev1.VolumeMount{Name: ImageVolume, MountPath: contract.ImageDir, ReadOnly: true}); err != nil {
		return err
	}
	list, _ := main["env"].([]any)
	for i := range env {
		// The program may have a span of its own.
		if env[i].Name == contract.EnvTraceparent && named(list, env[i].Name) != nil {
			continue
		}
		if err := upsertTyped(main, "env", &env[i]); err != nil {
			return err
		}
	}
	if command[0] == contract.ImageBinary {
		return nil
	}
	argv := []any{contract.ImageBinary, "run"}
	if log, set := main["terminationMessagePath"]; set {
		argv = append(argv, flag(contract.FlagTerminationLog, fmt.Sprint(log)))
	}
	argv = append(append(argv, words(p.arguments(main))...), "--")
	main["command"] = append(argv, command...)
	return nil
}

// upsertTyped is upsert of an entry of the API.
func upsertTyped(parent map[string]any, key string, entry any) error {
	m, err := runtime.DefaultUnstructuredConverter.ToUnstructured(entry)
	if err != nil {
		return fmt.Errorf("build an entry of %s: %w", key, err)
	}
	upsert(parent, key, m)
	return nil
}
