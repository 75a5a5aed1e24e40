package agent

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
)

// payloadFile is one file of a volume whose content comes from the API.
type payloadFile struct {
	Data []byte
	Mode fs.FileMode
}

// payload is the content of such a volume, by path relative to its root.
type payload map[string]payloadFile

const dataLink = "..data"

// writePayload makes dir hold exactly the payload. All files change at once:
// they lie in a directory that the link "..data" names, and the link is
// replaced by rename.
func writePayload(dir string, files payload) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for name := range files {
		if !filepath.IsLocal(name) || strings.HasPrefix(name, "..") {
			return fmt.Errorf("volume file %q: the path must be relative and stay inside the volume", name)
		}
	}
	old, err := os.Readlink(filepath.Join(dir, dataLink))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if old != "" && files.isIn(filepath.Join(dir, old)) {
		return linkTop(dir, files) // an earlier write may have been cut short here
	}
	version, err := os.MkdirTemp(dir, "..v_")
	if err != nil {
		return err
	}
	if err := writeVersion(version, files); err != nil {
		return errors.Join(err, os.RemoveAll(version))
	}
	link := filepath.Join(dir, dataLink+"_tmp")
	if err := errors.Join(ignoreMissing(os.Remove(link)), os.Symlink(filepath.Base(version), link),
		os.Rename(link, filepath.Join(dir, dataLink))); err != nil {
		return err
	}
	if err := linkTop(dir, files); err != nil {
		return err
	}
	if old != "" {
		return os.RemoveAll(filepath.Join(dir, old))
	}
	return nil
}

func writeVersion(version string, files payload) error {
	if err := os.Chmod(version, 0o755); err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		path := filepath.Join(version, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(path, files[name].Data, 0o600); err != nil {
			return err
		}
		// WriteFile's mode is cut by the umask.
		if err := os.Chmod(path, files[name].Mode); err != nil {
			return err
		}
	}
	return nil
}

// linkTop keeps one link into "..data" for each first element of the paths.
func linkTop(dir string, files payload) error {
	want := map[string]bool{}
	for name := range files {
		top, _, _ := strings.Cut(filepath.ToSlash(name), "/")
		want[top] = true
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		switch name := e.Name(); {
		case strings.HasPrefix(name, ".."):
		case want[name]:
			delete(want, name)
		default:
			if err := os.RemoveAll(filepath.Join(dir, name)); err != nil {
				return err
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(want)) {
		if err := os.Symlink(filepath.Join(dataLink, name), filepath.Join(dir, name)); err != nil {
			return err
		}
	}
	return nil
}

// isIn reports whether a version directory holds exactly the files.
func (files payload) isIn(version string) bool {
	found := payload{}
	err := filepath.WalkDir(version, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		data, err := os.ReadFile(path)
		found[strings.TrimPrefix(path, version+"/")] = payloadFile{data, info.Mode().Perm()}
		return err
	})
	return err == nil && maps.EqualFunc(files, found, func(a, b payloadFile) bool {
		return a.Mode == b.Mode && bytes.Equal(a.Data, b.Data)
	})
}

func ignoreMissing(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// asProjection is a configMap, secret, downwardAPI or projected volume as the last
// of these: sources of files, and a default mode.
func asProjection(vol *corev1.Volume) (*corev1.ProjectedVolumeSource, error) {
	var source corev1.VolumeProjection
	var mode *int32
	switch {
	case vol.ConfigMap != nil:
		s := vol.ConfigMap
		mode, source.ConfigMap = s.DefaultMode, &corev1.ConfigMapProjection{LocalObjectReference: s.LocalObjectReference, Items: s.Items, Optional: s.Optional}
	case vol.Secret != nil:
		s := vol.Secret
		mode, source.Secret = s.DefaultMode, &corev1.SecretProjection{
			LocalObjectReference: corev1.LocalObjectReference{Name: s.SecretName}, Items: s.Items, Optional: s.Optional}
	case vol.DownwardAPI != nil:
		mode, source.DownwardAPI = vol.DownwardAPI.DefaultMode, &corev1.DownwardAPIProjection{Items: vol.DownwardAPI.Items}
	case vol.Projected != nil:
		return vol.Projected, nil
	default:
		return nil, configErrorf("this kind of volume is not supported on this node; " +
			"emptyDir, hostPath, configMap, secret, downwardAPI, projected, ephemeral and persistentVolumeClaim are")
	}
	return &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{source}, DefaultMode: mode}, nil
}

// collect gathers the files of a projection, and when its first token must be
// renewed.
func (m *volumeMaker) collect(ctx context.Context, pod *corev1.Pod, p *corev1.ProjectedVolumeSource, f facts) (payload, time.Time, error) {
	files, renew := payload{}, time.Time{}
	mode := fs.FileMode(ptr.Deref(p.DefaultMode, 0o644)).Perm()
	for i := range p.Sources {
		src := &p.Sources[i]
		var err error
		switch {
		case src.ConfigMap != nil:
			ref := reference{configMap, pod.Namespace, src.ConfigMap.Name, src.ConfigMap.Optional}
			err = files.addKeys(ctx, ref, src.ConfigMap.Items, mode, m.from)
		case src.Secret != nil:
			ref := reference{secret, pod.Namespace, src.Secret.Name, src.Secret.Optional}
			err = files.addKeys(ctx, ref, src.Secret.Items, mode, m.from)
		case src.DownwardAPI != nil:
			err = addDownward(pod, src.DownwardAPI, f, mode, files)
		case src.ServiceAccountToken != nil:
			var token string
			var at time.Time
			token, at, err = m.from.Token(ctx, pod, src.ServiceAccountToken)
			files[src.ServiceAccountToken.Path] = payloadFile{[]byte(token), tokenMode(pod, mode)}
			if renew.IsZero() || at.Before(renew) {
				renew = at
			}
		default:
			err = configErrorf("source %d of the projected volume is not supported on this node", i)
		}
		if err != nil {
			return nil, time.Time{}, err
		}
	}
	return files, renew, nil
}

// tokenMode keeps a token from other users, except where the pod's containers
// do not run as the agent's user.
func tokenMode(pod *corev1.Pod, mode fs.FileMode) fs.FileMode {
	if sc := pod.Spec.SecurityContext; sc != nil && (sc.RunAsUser != nil || sc.FSGroup != nil) {
		return mode
	}
	for _, c := range allContainers(&pod.Spec) {
		if c.SecurityContext != nil && c.SecurityContext.RunAsUser != nil {
			return mode
		}
	}
	return mode &^ 0o077
}

// addKeys adds all keys of an object, or the chosen ones at their paths.
func (files payload) addKeys(ctx context.Context, ref reference, items []corev1.KeyToPath, mode fs.FileMode, from objects) error {
	data, err := ref.data(ctx, from)
	if err != nil {
		return err
	}
	if len(items) == 0 {
		for k, v := range data {
			files[k] = payloadFile{v, mode}
		}
		return nil
	}
	for _, item := range items {
		v, ok := data[item.Key]
		if ok {
			files[item.Path] = payloadFile{v, itemMode(item.Mode, mode)}
		} else if !ptr.Deref(ref.optional, false) {
			return configErrorf("%s %s/%s has no key %q", ref.kind, ref.namespace, ref.name, item.Key)
		}
	}
	return nil
}

func addDownward(pod *corev1.Pod, src *corev1.DownwardAPIProjection, f facts, mode fs.FileMode, files payload) error {
	for _, item := range src.Items {
		value, err := downwardValue(pod, nil, f, item.FieldRef, item.ResourceFieldRef)
		if err != nil {
			return fmt.Errorf("downward API file %q: %w", item.Path, err)
		}
		files[item.Path] = payloadFile{[]byte(value), itemMode(item.Mode, mode)}
	}
	return nil
}

func itemMode(item *int32, mode fs.FileMode) fs.FileMode {
	if item != nil {
		return fs.FileMode(*item).Perm()
	}
	return mode
}
