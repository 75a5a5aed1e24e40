package agent

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/ptr"
)

const (
	// StorageClassName is the storage class that an agent serves by default: one
	// directory for each claim. On one machine every access mode holds.
	StorageClassName = "vernier-directory"

	provisionerName      = "vernier.ml/directory"
	annProvisioned       = "pv.kubernetes.io/provisioned-by"
	annBindCompleted     = "pv.kubernetes.io/bind-completed"
	annDefaultClass      = "storageclass.kubernetes.io/is-default-class"
	claimFileMode        = 0o777
	provisionedNameStart = "pvc-"
)

// claims provisions and binds persistent volumes. It does the binding itself,
// so it also works where no volume controller runs; where one does, it finds
// the claim bound already.
type claims struct {
	client kubernetes.Interface
	layout layout
	class  string
	log    logr.Logger
}

// Run serves claims until ctx ends.
func (c *claims) Run(ctx context.Context) {
	queue := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[string]())
	defer queue.ShutDown()
	lw := cache.NewListWatchFromClient(c.client.CoreV1().RESTClient(), "persistentvolumeclaims", corev1.NamespaceAll, fields.Everything())
	informer := cache.NewSharedIndexInformer(lw, &corev1.PersistentVolumeClaim{}, 0, cache.Indexers{})
	enqueue := func(obj any) {
		if key, err := cache.DeletionHandlingMetaNamespaceKeyFunc(obj); err == nil {
			queue.Add(key)
		}
	}
	registration, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: enqueue, UpdateFunc: func(_, obj any) { enqueue(obj) }, DeleteFunc: enqueue,
	})
	if err != nil {
		c.log.Error(err, "cannot watch persistent volume claims")
		return
	}
	go informer.RunWithContext(ctx)
	if !cache.WaitForCacheSync(ctx.Done(), registration.HasSynced) {
		return
	}
	// Claims may have gone while no agent ran.
	queue.Add("")
	stop := context.AfterFunc(ctx, queue.ShutDown)
	defer stop()
	for {
		key, over := queue.Get()
		if over {
			return
		}
		if err := c.sync(ctx, informer.GetStore(), key); err == nil {
			queue.Forget(key)
		} else if ctx.Err() == nil {
			c.log.Error(err, "cannot serve a persistent volume claim; trying again", "claim", key)
			queue.AddRateLimited(key)
		}
		queue.Done(key)
	}
}

// sync serves the claim of that key. Where there is none, volumes whose claims
// are gone are reclaimed.
func (c *claims) sync(ctx context.Context, store cache.Store, key string) error {
	if obj, exists, err := store.GetByKey(key); err == nil && exists {
		return c.Provision(ctx, obj.(*corev1.PersistentVolumeClaim))
	}
	var all []*corev1.PersistentVolumeClaim
	for _, obj := range store.List() {
		all = append(all, obj.(*corev1.PersistentVolumeClaim))
	}
	return c.Reclaim(ctx, all)
}

// ensureClass makes the storage class; the usual one is the cluster's default.
func (c *claims) ensureClass(ctx context.Context) error {
	annotations := map[string]string{}
	if c.class == StorageClassName {
		annotations[annDefaultClass] = "true"
	}
	_, err := c.client.StorageV1().StorageClasses().Create(ctx, &storagev1.StorageClass{
		ObjectMeta:        metav1.ObjectMeta{Name: c.class, Annotations: annotations},
		Provisioner:       provisionerName,
		ReclaimPolicy:     ptr.To(corev1.PersistentVolumeReclaimDelete),
		VolumeBindingMode: ptr.To(storagev1.VolumeBindingImmediate),
	}, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("creating storage class %s: %w", c.class, err)
	}
	return nil
}

// ours reports whether a claim waits for us: it names our class, or none at
// all. An empty class is a wish for a volume made by hand.
func (c *claims) ours(claim *corev1.PersistentVolumeClaim) bool {
	return ptr.Deref(claim.Spec.StorageClassName, StorageClassName) == c.class
}

// Provision gives a claim a directory, a volume and the binding of both. Each
// step is idempotent.
func (c *claims) Provision(ctx context.Context, claim *corev1.PersistentVolumeClaim) error {
	if !c.ours(claim) || claim.DeletionTimestamp != nil || claim.Status.Phase == corev1.ClaimBound {
		return nil
	}
	name := provisionedNameStart + string(claim.UID)
	if claim.Spec.VolumeName != "" && claim.Spec.VolumeName != name {
		return nil
	}
	dir := c.layout.claim(claim)
	if err := os.MkdirAll(dir, claimFileMode); err != nil {
		return err
	}
	if err := os.Chmod(dir, claimFileMode); err != nil {
		return err
	}
	_, err := c.client.CoreV1().PersistentVolumes().Create(ctx, volumeFor(claim, name, dir), metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("creating the volume of claim %s/%s: %w", claim.Namespace, claim.Name, err)
	}
	return c.bind(ctx, claim, name)
}

func volumeFor(claim *corev1.PersistentVolumeClaim, name, dir string) *corev1.PersistentVolume {
	return &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{annProvisioned: provisionerName}},
		Spec: corev1.PersistentVolumeSpec{
			StorageClassName:              ptr.Deref(claim.Spec.StorageClassName, ""),
			AccessModes:                   claim.Spec.AccessModes,
			Capacity:                      corev1.ResourceList{corev1.ResourceStorage: claim.Spec.Resources.Requests[corev1.ResourceStorage]},
			PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimDelete,
			VolumeMode:                    claim.Spec.VolumeMode,
			ClaimRef: &corev1.ObjectReference{Kind: "PersistentVolumeClaim", APIVersion: "v1",
				Namespace: claim.Namespace, Name: claim.Name, UID: claim.UID},
			PersistentVolumeSource: corev1.PersistentVolumeSource{HostPath: &corev1.HostPathVolumeSource{
				Path: dir, Type: ptr.To(corev1.HostPathDirectoryOrCreate)}},
		},
	}
}

func (c *claims) bind(ctx context.Context, claim *corev1.PersistentVolumeClaim, volume string) error {
	pvs, pvcs := c.client.CoreV1().PersistentVolumes(), c.client.CoreV1().PersistentVolumeClaims(claim.Namespace)
	spec := fmt.Sprintf(`{"metadata":{"uid":%q,"annotations":{%q:"yes"}},"spec":{"volumeName":%q}}`, claim.UID, annBindCompleted, volume)
	if _, err := pvcs.Patch(ctx, claim.Name, types.MergePatchType, []byte(spec), metav1.PatchOptions{}); err != nil {
		return fmt.Errorf("binding claim %s/%s: %w", claim.Namespace, claim.Name, err)
	}
	if _, err := pvs.Patch(ctx, volume, types.MergePatchType, []byte(`{"status":{"phase":"Bound"}}`), metav1.PatchOptions{}, "status"); err != nil {
		return fmt.Errorf("binding volume %s: %w", volume, err)
	}
	fresh, err := pvcs.Get(ctx, claim.Name, metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("binding claim %s/%s: %w", claim.Namespace, claim.Name, err)
	}
	fresh.Status.Phase = corev1.ClaimBound
	fresh.Status.AccessModes = fresh.Spec.AccessModes
	fresh.Status.Capacity = corev1.ResourceList{corev1.ResourceStorage: fresh.Spec.Resources.Requests[corev1.ResourceStorage]}
	if _, err := pvcs.UpdateStatus(ctx, fresh, metav1.UpdateOptions{}); err != nil {
		return fmt.Errorf("binding claim %s/%s: %w", claim.Namespace, claim.Name, err)
	}
	return nil
}

// Reclaim deletes the volumes that we made for claims that no longer exist,
// with their directories.
func (c *claims) Reclaim(ctx context.Context, claims []*corev1.PersistentVolumeClaim) error {
	live := map[types.UID]bool{}
	for _, claim := range claims {
		live[claim.UID] = true
	}
	volumes, err := c.client.CoreV1().PersistentVolumes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("listing persistent volumes: %w", err)
	}
	var failed error
	for i := range volumes.Items {
		volume := &volumes.Items[i]
		ref := volume.Spec.ClaimRef
		if volume.Annotations[annProvisioned] != provisionerName || ref == nil || live[ref.UID] ||
			volume.Spec.PersistentVolumeReclaimPolicy != corev1.PersistentVolumeReclaimDelete || !c.below(volume) {
			continue
		}
		// The watch may lag, and what is deleted here is somebody's data.
		claim, err := c.client.CoreV1().PersistentVolumeClaims(ref.Namespace).Get(ctx, ref.Name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) || (err == nil && claim.UID != ref.UID) {
			err = c.delete(ctx, volume)
		}
		failed = errors.Join(failed, err)
	}
	return failed
}

// below reports whether a volume lies under our root. An API object can name
// any path; nothing else is ever removed.
func (c *claims) below(volume *corev1.PersistentVolume) bool {
	base := filepath.Join(c.layout.root, "claims") + string(filepath.Separator)
	return volume.Spec.HostPath != nil && strings.HasPrefix(filepath.Clean(volume.Spec.HostPath.Path), base)
}

// delete removes a volume for which below holds, with its data.
func (c *claims) delete(ctx context.Context, volume *corev1.PersistentVolume) error {
	if err := os.RemoveAll(volume.Spec.HostPath.Path); err != nil {
		return err
	}
	err := c.client.CoreV1().PersistentVolumes().Delete(ctx, volume.Name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &volume.UID}})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("deleting volume %s: %w", volume.Name, err)
	}
	c.log.V(1).Info("deleted a volume whose claim is gone", "volume", volume.Name)
	return nil
}
