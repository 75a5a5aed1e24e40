package agent

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/sig-storage-lib-external-provisioner/v13/controller"
)

// StorageClassName is the storage class that an agent serves by default: one
// directory for each claim. On one machine every access mode holds.
const StorageClassName = "vernier-directory"

// provisionerOf is the provisioner of a storage class.
func provisionerOf(class string) string {
	return "vernier.ml/" + strings.TrimPrefix(class, "vernier-")
}

// claims provisions persistent volumes; the volume controller of Kubernetes binds
// and releases them.
type claims struct{ layout layout }

var _ controller.Provisioner = claims{}

// serveClaims makes the storage class and returns what serves its claims until a
// context ends. The usual class is the cluster's default.
func serveClaims(ctx context.Context, client kubernetes.Interface, l layout, class string) (func(context.Context), error) {
	object := &storagev1.StorageClass{
		ObjectMeta:        metav1.ObjectMeta{Name: class},
		Provisioner:       provisionerOf(class),
		ReclaimPolicy:     ptr.To(corev1.PersistentVolumeReclaimDelete),
		VolumeBindingMode: ptr.To(storagev1.VolumeBindingImmediate),
	}
	if class == StorageClassName {
		object.Annotations = map[string]string{"storageclass.kubernetes.io/is-default-class": "true"}
	}
	_, err := client.StorageV1().StorageClasses().Create(ctx, object, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return nil, fmt.Errorf("creating storage class %s: %w", class, err)
	}
	return controller.NewProvisionController(ctx, client, object.Provisioner, claims{l}, controller.LeaderElection(false)).Run, nil
}

// Provision makes the directory of a claim.
func (c claims) Provision(_ context.Context, o controller.ProvisionOptions) (*corev1.PersistentVolume, controller.ProvisioningState, error) {
	dir := c.layout.claim(o.PVC)
	if err := makeOpenDir(dir); err != nil {
		return nil, controller.ProvisioningFinished, err
	}
	return &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: o.PVName},
		Spec: corev1.PersistentVolumeSpec{
			AccessModes:                   o.PVC.Spec.AccessModes,
			Capacity:                      corev1.ResourceList{corev1.ResourceStorage: o.PVC.Spec.Resources.Requests[corev1.ResourceStorage]},
			PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimDelete,
			VolumeMode:                    o.PVC.Spec.VolumeMode,
			PersistentVolumeSource: corev1.PersistentVolumeSource{HostPath: &corev1.HostPathVolumeSource{
				Path: dir, Type: ptr.To(corev1.HostPathDirectoryOrCreate)}},
		},
	}, controller.ProvisioningFinished, nil
}

// Delete removes the directory of a volume whose claim is gone. An API object can
// name any path; nothing outside our root is ever removed.
func (c claims) Delete(_ context.Context, volume *corev1.PersistentVolume) error {
	base := filepath.Join(c.layout.root, "claims") + string(filepath.Separator)
	if volume.Spec.HostPath == nil || !strings.HasPrefix(filepath.Clean(volume.Spec.HostPath.Path), base) {
		return &controller.IgnoredError{Reason: "its directory is not the agent's"}
	}
	return RemoveTree(volume.Spec.HostPath.Path)
}
