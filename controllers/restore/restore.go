// Package restore makes experiments, suggestions and trials that were backed up again,
// in a cluster that has lost them or never had them. There they get other UIDs, which
// owner references and stored curves must follow.
package restore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/vernier-ml/vernier/api/v1beta1"
)

// ManagerLease is the name of the lease that a manager holds which runs controllers.
const ManagerLease = "vernier-manager"

// kinds are what is restored, owners first.
var kinds = []string{"Experiment", "Suggestion", "Trial"}

// ErrManagerRuns is wrapped by the error of Make where a manager would act on what is
// only half made.
var ErrManagerRuns = errors.New("a manager runs")

var errTaken = errors.New("another one of this name exists: delete it, or leave this one out")

// Objects are what was backed up, owners first.
type Objects []*unstructured.Unstructured

// Read reads what "kubectl get experiments,suggestions,trials -o yaml" has printed.
// Objects that were being deleted are left out; other kinds are an error.
func Read(r io.Reader) (Objects, error) {
	var all Objects
	decoder := yaml.NewYAMLOrJSONDecoder(r, 4096)
	for {
		u := &unstructured.Unstructured{}
		if err := decoder.Decode(&u.Object); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, fmt.Errorf("read the objects: %w", err)
		}
		if len(u.Object) == 0 {
			continue
		}
		add := func(o runtime.Object) error { return all.add(o.(*unstructured.Unstructured)) }
		err := error(nil)
		if u.IsList() {
			err = u.EachListItem(add)
		} else {
			err = add(u)
		}
		if err != nil {
			return nil, fmt.Errorf("read the objects: %w", err)
		}
	}
	slices.SortStableFunc(all, func(a, b *unstructured.Unstructured) int {
		return cmp.Compare(slices.Index(kinds, a.GetKind()), slices.Index(kinds, b.GetKind()))
	})
	return all, nil
}

func (o *Objects) add(u *unstructured.Unstructured) error {
	switch {
	case u.GroupVersionKind().GroupVersion() != v1beta1.GroupVersion || !slices.Contains(kinds, u.GetKind()):
		return fmt.Errorf("%s %s of %s is none of %q", u.GetKind(), u.GetName(), u.GetAPIVersion(), kinds)
	case u.GetUID() == "":
		return fmt.Errorf("%s %s/%s has no UID: back up with kubectl get -o yaml", u.GetKind(), u.GetNamespace(), u.GetName())
	case u.GetDeletionTimestamp() == nil:
		*o = append(*o, u)
	}
	return nil
}

// Restored is what Make has done.
type Restored struct {
	// UIDs are the new UIDs of what was made, or was there, by those of the backup.
	UIDs map[types.UID]types.UID
	// Refused says for each experiment that was not made why: admission refuses it, or
	// another one has its name.
	Refused []error
	// LeftOut counts the suggestions and trials of these experiments.
	LeftOut int
}

// Make makes the objects, with their states. An experiment that is refused is passed
// over, with what it owns. It may be broken off and called again. No manager may run,
// or it would begin the experiments anew whose trials are not made yet: the error then
// wraps ErrManagerRuns.
func (o Objects) Make(ctx context.Context, c client.Client, now time.Time) (Restored, error) {
	r := Restored{UIDs: make(map[types.UID]types.UID, len(o))}
	if err := noManager(ctx, c, now); err != nil {
		return r, err
	}
	refused := map[types.UID]bool{}
	for _, u := range o {
		if slices.ContainsFunc(u.GetOwnerReferences(), func(owner metav1.OwnerReference) bool { return refused[owner.UID] }) {
			refused[u.GetUID()] = true
			r.LeftOut++
			continue
		}
		uid, err := remake(ctx, c, u, r.UIDs)
		if err != nil {
			err = fmt.Errorf("restore %s %s/%s: %w", u.GetKind(), u.GetNamespace(), u.GetName(), err)
		}
		switch {
		case err == nil:
			r.UIDs[u.GetUID()] = uid
		case uid == "" && u.GetKind() == "Experiment" && (apierrors.IsInvalid(err) || apierrors.IsForbidden(err) || apierrors.IsBadRequest(err) || errors.Is(err, errTaken)):
			refused[u.GetUID()] = true
			r.Refused = append(r.Refused, err)
		default:
			return r, err
		}
	}
	return r, nil
}

func noManager(ctx context.Context, c client.Client, now time.Time) error {
	var leases coordinationv1.LeaseList
	if err := c.List(ctx, &leases); err != nil {
		return fmt.Errorf("see whether a manager runs: %w", err)
	}
	for i := range leases.Items {
		l := &leases.Items[i]
		if l.Name != ManagerLease || ptr.Deref(l.Spec.HolderIdentity, "") == "" || l.Spec.RenewTime == nil {
			continue
		}
		if now.Before(l.Spec.RenewTime.Add(time.Duration(ptr.Deref(l.Spec.LeaseDurationSeconds, 0)) * time.Second)) {
			return fmt.Errorf("%w in namespace %s: kubectl -n %[2]s scale deployment/vernier-manager --replicas=0", ErrManagerRuns, l.Namespace)
		}
	}
	return nil
}

// remake makes one object, unless it is there, and returns its UID: also with an error,
// where only its state could not be made.
func remake(ctx context.Context, c client.Client, backup *unstructured.Unstructured, made map[types.UID]types.UID) (types.UID, error) {
	origin := originOf(backup)
	u := fresh(backup, origin, made)
	err := c.Create(ctx, u)
	if apierrors.IsAlreadyExists(err) {
		if err = c.Get(ctx, client.ObjectKeyFromObject(u), u); err == nil && originOf(u) != origin {
			err = errTaken
		}
	}
	if err != nil {
		return "", err
	}
	status, known := backup.Object["status"].(map[string]any)
	if there, _ := u.Object["status"].(map[string]any); known && len(there) == 0 {
		u.Object["status"] = status
		err = c.Status().Update(ctx, u)
	}
	return u.GetUID(), err
}

func originOf(u *unstructured.Unstructured) types.UID {
	return v1beta1.Origin(&metav1.ObjectMeta{UID: u.GetUID(), Annotations: u.GetAnnotations()})
}

// fresh is an object as it can be created. Owners that were not made again are left
// out: the garbage collector would delete what they own.
func fresh(backup *unstructured.Unstructured, origin types.UID, made map[types.UID]types.UID) *unstructured.Unstructured {
	u := backup.DeepCopy()
	annotations := u.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[v1beta1.AnnotationOrigin] = string(origin)
	var owners []metav1.OwnerReference
	for _, owner := range u.GetOwnerReferences() {
		if uid, ok := made[owner.UID]; ok {
			owner.UID = uid
			owners = append(owners, owner)
		}
	}
	u.Object["metadata"] = map[string]any{}
	u.SetNamespace(backup.GetNamespace())
	u.SetName(backup.GetName())
	u.SetLabels(backup.GetLabels())
	u.SetAnnotations(annotations)
	u.SetFinalizers(backup.GetFinalizers())
	u.SetOwnerReferences(owners)
	return u
}
