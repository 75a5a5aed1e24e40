package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/vernier-ml/vernier/api/v1beta1"
	"github.com/vernier-ml/vernier/trainer"
	"github.com/vernier-ml/vernier/trainer/kind"
)

// eventFolders are the folders of this machine where trials of an embedded instance
// write their event files, by names of trials. Those that several trials share are left
// out, for whose files are whose is not known.
func (f *runFolder) eventFolders(ctx context.Context, v experimentView) (map[string]string, error) {
	found, users := map[string]string{}, map[string]int{}
	if f.session.home == "" {
		return nil, nil
	}
	for _, t := range v.Trials {
		folder, err := f.eventFolder(ctx, t)
		if err != nil {
			return nil, fmt.Errorf("find the event files of trial %s: %w", t.Name, err)
		}
		if info, err := os.Stat(folder); folder == "" || err != nil || !info.IsDir() {
			continue
		}
		found[t.Name] = folder
		users[folder]++
	}
	for trial, folder := range found {
		if users[folder] > 1 {
			delete(found, trial)
		}
	}
	return found, nil
}

// eventFolder is where a trial writes its event files, or empty. What will not change is
// looked up once: a claim keeps its volume.
func (f *runFolder) eventFolder(ctx context.Context, t trialView) (string, error) {
	if t.Object == nil {
		return "", nil
	}
	m := t.Object.Spec.MetricsCollector
	if m.Collector == nil || m.Collector.Kind != v1beta1.TensorFlowEventCollector || m.Source == nil || m.Source.FileSystemPath == nil {
		return "", nil
	}
	uid := string(t.Object.UID)
	if folder, known := f.folders[uid]; known {
		return folder, nil
	}
	folder, err := folderOf(ctx, f.session, t.Object, m.Source.FileSystemPath.Path)
	if err == nil && (folder != "" || t.finished()) {
		f.folders[uid] = folder
	}
	return folder, err
}

// folderOf is where a path of the trial's container lies on this machine, or empty: it
// is on no volume that outlives the pod.
func folderOf(ctx context.Context, s *session, t *v1beta1.Trial, path string) (string, error) {
	if c := t.Spec.Checkpoints; c != nil {
		if rest, inside := below(path, c.Path); inside {
			claim, err := claimFolder(ctx, s, t.Namespace, c.ClaimName)
			if err != nil || claim == "" {
				return "", err
			}
			return filepath.Join(claim, c.Folder, t.Name, rest), nil
		}
	}
	pod, container := primaryOf(t)
	if container == nil {
		return "", nil
	}
	var mount corev1.VolumeMount
	for _, m := range container.VolumeMounts {
		if _, inside := below(path, m.MountPath); inside && len(m.MountPath) >= len(mount.MountPath) {
			mount = m
		}
	}
	for _, volume := range pod.Volumes {
		if volume.Name != mount.Name || mount.SubPathExpr != "" {
			continue
		}
		folder := ""
		switch {
		case volume.HostPath != nil:
			folder = volume.HostPath.Path
		case volume.PersistentVolumeClaim != nil:
			var err error
			if folder, err = claimFolder(ctx, s, t.Namespace, volume.PersistentVolumeClaim.ClaimName); err != nil {
				return "", err
			}
		}
		if folder != "" {
			rest, _ := below(path, mount.MountPath)
			return filepath.Join(folder, mount.SubPath, rest), nil
		}
	}
	return "", nil
}

// below is the rest of a path below a folder.
func below(path, folder string) (rest string, ok bool) {
	rest, err := filepath.Rel(folder, path)
	return rest, err == nil && rest != ".." && !strings.HasPrefix(rest, "../")
}

// claimFolder is the folder of a claim's volume, or empty.
func claimFolder(ctx context.Context, s *session, namespace, name string) (string, error) {
	var claim corev1.PersistentVolumeClaim
	key := s.key(name)
	key.Namespace = namespace
	err := s.client.Get(ctx, key, &claim)
	if err != nil || claim.Spec.VolumeName == "" {
		return "", client.IgnoreNotFound(err)
	}
	var volume corev1.PersistentVolume
	key.Namespace, key.Name = "", claim.Spec.VolumeName
	if err := s.client.Get(ctx, key, &volume); err != nil {
		return "", err
	}
	switch {
	case volume.Spec.HostPath != nil:
		return volume.Spec.HostPath.Path, nil
	case volume.Spec.Local != nil:
		return volume.Spec.Local.Path, nil
	}
	return "", nil
}

// primaryOf is the template of the pod that is measured, and its container.
func primaryOf(t *v1beta1.Trial) (*corev1.PodSpec, *corev1.Container) {
	var job unstructured.Unstructured
	if t.Spec.RunSpec == nil || json.Unmarshal(t.Spec.RunSpec.Raw, &job.Object) != nil {
		return nil, nil
	}
	roles, err := kind.For(job.GroupVersionKind()).Roles(&job)
	if err != nil {
		return nil, nil
	}
	for _, role := range roles {
		template, err := trainer.Template(&job, role)
		if err != nil {
			continue
		}
		var typed corev1.PodTemplateSpec
		if runtime.DefaultUnstructuredConverter.FromUnstructured(template, &typed) != nil {
			continue
		}
		for i := range typed.Spec.Containers {
			if typed.Spec.Containers[i].Name == t.Spec.PrimaryContainerName {
				return &typed.Spec, &typed.Spec.Containers[i]
			}
		}
	}
	return nil, nil
}
