package agent

import (
	"fmt"
	"path/filepath"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// layout names the files under the agent's root directory:
//
//	pods/<uid>/pod.json            whose directory this is
//	pods/<uid>/shim/               the shim's socket and state
//	pods/<uid>/volumes/<name>/     volumes that live as long as the pod
//	pods/<uid>/logs/<container>/   <run>.log in CRI format
//	pods/<uid>/termination/        termination messages
//	pods/<uid>/down.json           when the node went down with the pod; see drain.go
//	claims/<namespace>/<claim>-<uid>/   persistent volumes
//	archive/<uid>/                 logs of pods that are gone; see archive.go
//	gpus.json                      which pod holds which GPU
type layout struct{ root string }

func (l layout) pods() string                { return filepath.Join(l.root, "pods") }
func (l layout) pod(uid types.UID) string    { return filepath.Join(l.pods(), string(uid)) }
func (l layout) shim(uid types.UID) string   { return filepath.Join(l.pod(uid), "shim") }
func (l layout) logs(uid types.UID) string   { return filepath.Join(l.pod(uid), "logs") }
func (l layout) gpus() string                { return filepath.Join(l.root, "gpus.json") }
func (l layout) downFile(u types.UID) string { return filepath.Join(l.pod(u), "down.json") }
func (l layout) podFile(u types.UID) string  { return filepath.Join(l.pod(u), identityFile) }
func (l layout) archive() string             { return filepath.Join(l.root, "archive") }

func (l layout) volume(uid types.UID, name string) string {
	return filepath.Join(l.pod(uid), "volumes", name)
}

func (l layout) log(uid types.UID, container string, run int) string {
	return filepath.Join(l.logs(uid), container, fmt.Sprintf("%d.log", run))
}

func (l layout) termination(uid types.UID, container string) string {
	return filepath.Join(l.pod(uid), "termination", container)
}

// claim is the directory of a persistent volume. The UID keeps a new claim of
// an old name from seeing the old data.
func (l layout) claim(c *corev1.PersistentVolumeClaim) string {
	return filepath.Join(l.root, "claims", c.Namespace, c.Name+"-"+string(c.UID))
}
