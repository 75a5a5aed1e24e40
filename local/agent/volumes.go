package agent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	authv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/ptr"

	"github.com/vernier-ml/vernier/local/shim"
	"github.com/vernier-ml/vernier/trainer"
)

// volumeSource reads what volumes are made from.
type volumeSource interface {
	objects
	// Claim returns a claim and the directory of its volume; the claim must be
	// bound to a volume of this node.
	ClaimDir(ctx context.Context, namespace, name string) (string, error)
	// Token returns a token of the pod's service account, and when to renew it.
	Token(ctx context.Context, pod *corev1.Pod, src *corev1.ServiceAccountTokenProjection) (string, time.Time, error)
}

// volumeMaker makes a pod's volumes under the agent's root.
type volumeMaker struct {
	layout layout
	from   volumeSource
}

// volumeSet says where a pod's volumes lie, by name, and when the first token
// among them must be renewed; zero for never.
type volumeSet struct {
	Dirs  map[string]string
	Renew time.Time
}

// Make makes all volumes of a pod, or brings their content up to date. It may
// be called again at any time.
func (m *volumeMaker) Make(ctx context.Context, pod *corev1.Pod, f facts) (volumeSet, error) {
	set := volumeSet{Dirs: map[string]string{}}
	for i := range pod.Spec.Volumes {
		vol := &pod.Spec.Volumes[i]
		dir, renew, err := m.makeOne(ctx, pod, vol, f)
		if err != nil {
			return volumeSet{}, fmt.Errorf("volume %q: %w", vol.Name, err)
		}
		set.Dirs[vol.Name] = dir
		if !renew.IsZero() && (set.Renew.IsZero() || renew.Before(set.Renew)) {
			set.Renew = renew
		}
	}
	return set, nil
}

func (m *volumeMaker) makeOne(ctx context.Context, pod *corev1.Pod, vol *corev1.Volume, f facts) (string, time.Time, error) {
	dir := m.layout.volume(pod.UID, vol.Name)
	var never time.Time
	switch {
	case vol.EmptyDir != nil:
		return dir, never, makeOpenDir(dir)
	case vol.HostPath != nil:
		return vol.HostPath.Path, never, checkHostPath(vol.HostPath)
	case vol.PersistentVolumeClaim != nil:
		claim, err := m.from.ClaimDir(ctx, pod.Namespace, vol.PersistentVolumeClaim.ClaimName)
		return claim, never, err
	case vol.Ephemeral != nil:
		// The controller manager makes a claim of this name.
		claim, err := m.from.ClaimDir(ctx, pod.Namespace, pod.Name+"-"+vol.Name)
		return claim, never, err
	}
	projection, err := asProjection(vol)
	if err != nil {
		return "", never, err
	}
	files, renew, err := m.collect(ctx, pod, projection, f)
	if err != nil {
		return "", never, err
	}
	return dir, renew, writePayload(dir, files)
}

// makeOpenDir makes a directory that any user of a container may write to.
func makeOpenDir(dir string) error {
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return err
	}
	return os.Chmod(dir, 0o777)
}

// checkHostPath makes or checks a path of the host as its type asks.
func checkHostPath(src *corev1.HostPathVolumeSource) error {
	kind := ptr.Deref(src.Type, corev1.HostPathUnset)
	_, err := os.Stat(src.Path)
	switch {
	case kind == corev1.HostPathFileOrCreate:
		f, err := os.OpenFile(src.Path, os.O_CREATE|os.O_RDONLY, 0o644)
		if err != nil {
			return err
		}
		f.Close() // nothing was written
	case errors.Is(err, fs.ErrNotExist) && (kind == corev1.HostPathDirectoryOrCreate || kind == corev1.HostPathUnset):
		// The kubelet's runtime makes a directory where no type is given.
		if err := os.MkdirAll(src.Path, 0o755); err != nil {
			return err
		}
	}
	info, err := os.Stat(src.Path)
	if err != nil {
		return fmt.Errorf("hostPath type check failed: %w", err)
	}
	if want, ok := hostPathModes[kind]; ok && info.Mode()&(fs.ModeType) != want {
		return fmt.Errorf("hostPath type check failed: %s is not a %s", src.Path, kind)
	}
	return nil
}

var hostPathModes = map[corev1.HostPathType]fs.FileMode{
	corev1.HostPathDirectoryOrCreate: fs.ModeDir,
	corev1.HostPathDirectory:         fs.ModeDir,
	corev1.HostPathFileOrCreate:      0,
	corev1.HostPathFile:              0,
	corev1.HostPathSocket:            fs.ModeSocket,
	corev1.HostPathCharDev:           fs.ModeDevice | fs.ModeCharDevice,
	corev1.HostPathBlockDev:          fs.ModeDevice,
}

// mountPoints resolves the mounts of a container. Paths below a volume are
// made where they are missing.
func mountPoints(pod *corev1.Pod, c *corev1.Container, volumes map[string]string, env environment) ([]shim.Mount, error) {
	var mounts []shim.Mount
	for _, m := range c.VolumeMounts {
		dir, ok := volumes[m.Name]
		if !ok {
			return nil, configErrorf("container %q mounts volume %q, which the pod does not have", c.Name, m.Name)
		}
		sub := m.SubPath
		if m.SubPathExpr != "" {
			sub = expand(m.SubPathExpr, env)
		}
		path, err := subPath(dir, sub)
		if err != nil {
			return nil, fmt.Errorf("container %q, mount %s: %w", c.Name, m.MountPath, err)
		}
		info, err := os.Stat(path)
		if err != nil {
			return nil, fmt.Errorf("container %q, mount %s: %w", c.Name, m.MountPath, err)
		}
		readOnly := m.ReadOnly || readOnlySource(&pod.Spec, m.Name)
		mounts = append(mounts, shim.Mount{HostPath: path, MountPath: filepath.Clean("/" + m.MountPath), ReadOnly: readOnly, File: !info.IsDir()})
	}
	return mounts, nil
}

// subPath is a path below a volume that does not leave it, also not by a
// link. A missing one is made as a directory.
func subPath(dir, sub string) (string, error) {
	if sub == "" {
		return dir, nil
	}
	if !filepath.IsLocal(sub) {
		return "", fmt.Errorf("subPath %q must be relative and stay inside the volume", sub)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return "", err
	}
	defer root.Close() //nolint:errcheck // it was only read
	if _, err := root.Stat(sub); errors.Is(err, fs.ErrNotExist) {
		if err := root.MkdirAll(sub, 0o755); err != nil {
			return "", fmt.Errorf("subPath %q: %w", sub, err)
		}
	} else if err != nil {
		return "", fmt.Errorf("subPath %q: %w", sub, err)
	}
	return filepath.EvalSymlinks(filepath.Join(dir, sub))
}

// readOnlySource reports whether a volume can be read only, whatever the
// mount says: content from the API, and claims that say so.
func readOnlySource(spec *corev1.PodSpec, name string) bool {
	for i := range spec.Volumes {
		vol := &spec.Volumes[i]
		if vol.Name == name {
			return vol.ConfigMap != nil || vol.Secret != nil || vol.DownwardAPI != nil || vol.Projected != nil ||
				(vol.PersistentVolumeClaim != nil && vol.PersistentVolumeClaim.ReadOnly)
		}
	}
	return false
}

// keepPrograms adds mounts for directories of programs that come with the image
// and that another mount would cover: the collector's may lie below /tmp, and a
// volume at /tmp.
func keepPrograms(mounts []shim.Mount, dirs []string) []shim.Mount {
	all := slices.Clone(mounts)
	for _, dir := range dirs {
		dir = filepath.Clean(dir)
		real, err := filepath.EvalSymlinks(dir)
		if err != nil {
			continue // it is not there: nothing is covered
		}
		for _, at := range slices.Compact([]string{dir, real}) {
			covered := func(m shim.Mount) bool { return !m.File && below(at, m.MountPath) }
			taken := func(m shim.Mount) bool { return m.MountPath == at }
			if slices.ContainsFunc(mounts, covered) && !slices.ContainsFunc(all, taken) {
				all = append(all, shim.Mount{HostPath: real, MountPath: at, ReadOnly: true})
			}
		}
	}
	return all
}

// below tells whether a path lies below a directory.
func below(path, dir string) bool {
	return path != dir && strings.HasPrefix(path, strings.TrimSuffix(dir, "/")+"/")
}

// namedEntries is how many entries of a directory a message names.
const namedEntries = 3

// checkShadowed finds a pod whose program would not see files of this machine,
// because the collector's empty directory lies over them. On a cluster only the
// image's files could be covered; here they are the user's own.
func checkShadowed(pod *corev1.Pod) *verdict {
	for _, c := range allContainers(&pod.Spec) {
		for _, m := range c.VolumeMounts {
			if m.Name != trainer.SourceVolume {
				continue
			}
			names := entriesOf(m.MountPath)
			if len(names) == 0 {
				continue
			}
			return &verdict{Reason: trainer.ReasonDirectoryHidden, Message: fmt.Sprintf(
				"the collector mounts an empty directory over %s, which has files on this machine (%s): write the metrics to a directory of their own, for instance below %s, or mount a volume there",
				m.MountPath, strings.Join(names, ", "), filepath.Join(m.MountPath, "metrics"))}
		}
	}
	return nil
}

// entriesOf names some of what is in a directory; nothing if it is not there, or
// has no files at any depth: mount points of other pods leave such directories.
func entriesOf(dir string) []string {
	if !hasFiles(dir) {
		return nil
	}
	f, err := os.Open(dir)
	if err != nil {
		return nil
	}
	defer f.Close()
	names, _ := f.Readdirnames(namedEntries) // what cannot be listed cannot be missed
	slices.Sort(names)
	return names
}

// emptyDirs is how many directories without a file are looked into.
const emptyDirs = 1000

// hasFiles tells whether there is anything but directories below dir.
func hasFiles(dir string) (found bool) {
	seen := 0
	_ = filepath.WalkDir(filepath.Clean(dir)+"/", func(_ string, e fs.DirEntry, err error) error {
		seen++
		if err == nil && !e.IsDir() || seen > emptyDirs {
			found = true
			return fs.SkipAll
		}
		return nil // what cannot be listed cannot be missed
	})
	return found
}

// rootCAConfigMap is in every namespace and in every pod's token volume. It
// changes only with the cluster's certificate authority.
const rootCAConfigMap = "kube-root-ca.crt"

// cluster reads what pods refer to from the API server. Nothing is cached
// except the root certificate, so a pod always sees what was there before it.
type cluster struct {
	client kubernetes.Interface
	cas    sync.Map // the data of rootCAConfigMap, by namespace
}

var _ volumeSource = (*cluster)(nil)

func (c *cluster) Data(ctx context.Context, kind objectKind, namespace, name string) (map[string][]byte, error) {
	if kind == secret {
		s, err := c.client.CoreV1().Secrets(namespace).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return nil, err
		}
		return s.Data, nil
	}
	if held, ok := c.cas.Load(namespace); ok && name == rootCAConfigMap {
		return held.(map[string][]byte), nil
	}
	cm, err := c.client.CoreV1().ConfigMaps(namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	data := map[string][]byte{}
	for k, v := range cm.Data {
		data[k] = []byte(v)
	}
	maps.Copy(data, cm.BinaryData)
	if name == rootCAConfigMap {
		c.cas.Store(namespace, data)
	}
	return data, nil
}

// defaultTokenSeconds is the life of a token whose projection does not say.
const defaultTokenSeconds = 3600

func (c *cluster) Token(ctx context.Context, pod *corev1.Pod, src *corev1.ServiceAccountTokenProjection) (string, time.Time, error) {
	var audiences []string
	if src.Audience != "" {
		audiences = []string{src.Audience}
	}
	account := cmp.Or(pod.Spec.ServiceAccountName, "default")
	req, err := c.client.CoreV1().ServiceAccounts(pod.Namespace).CreateToken(ctx, account, &authv1.TokenRequest{
		Spec: authv1.TokenRequestSpec{
			Audiences:         audiences,
			ExpirationSeconds: cmp.Or(src.ExpirationSeconds, ptr.To[int64](defaultTokenSeconds)),
			BoundObjectRef:    &authv1.BoundObjectReference{Kind: "Pod", APIVersion: "v1", Name: pod.Name, UID: pod.UID},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		return "", time.Time{}, fmt.Errorf("requesting a token of service account %s/%s: %w", pod.Namespace, account, err)
	}
	return req.Status.Token, renewal(time.Now(), req.Status.ExpirationTimestamp.Time), nil
}

// renewal is when 80 % of a token's life is over, as in the kubelet.
func renewal(now, expiry time.Time) time.Time { return now.Add(expiry.Sub(now) * 4 / 5) }

func (c *cluster) ClaimDir(ctx context.Context, namespace, name string) (string, error) {
	claim, err := c.client.CoreV1().PersistentVolumeClaims(namespace).Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return "", &configError{err}
	}
	if err != nil {
		return "", err
	}
	if claim.Status.Phase != corev1.ClaimBound || claim.Spec.VolumeName == "" {
		return "", configErrorf("PersistentVolumeClaim %s/%s is not bound yet", namespace, name)
	}
	volume, err := c.client.CoreV1().PersistentVolumes().Get(ctx, claim.Spec.VolumeName, metav1.GetOptions{})
	if err != nil {
		return "", err
	}
	src := volume.Spec.HostPath
	if src == nil {
		return "", configErrorf("PersistentVolume %s of claim %s/%s is not a hostPath volume; this node knows no other", volume.Name, namespace, name)
	}
	return src.Path, checkHostPath(src)
}
