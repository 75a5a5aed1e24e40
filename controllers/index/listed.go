package index

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/vernier-ml/vernier/api/v1beta1"
)

// pause is how often a reader is looked at for what is waited for.
const pause = 2 * time.Millisecond

// Owner is the field index by which Listed finds the trials of an experiment's UID.
const Owner = "experiment"

// Listed lists and sorts the trials at each question, where there are no events.
type Listed struct{ client.Reader }

var _ Reader = Listed{}

// Of implements Reader.
func (r Listed) Of(ctx context.Context, exp *v1beta1.Experiment) ([]*v1beta1.Trial, error) {
	var list v1beta1.TrialList
	err := r.List(ctx, &list, client.InNamespace(exp.Namespace), client.MatchingFields{Owner: string(exp.UID)}, client.UnsafeDisableDeepCopy)
	if err != nil {
		return nil, fmt.Errorf("list the trials of experiment %s/%s: %w", exp.Namespace, exp.Name, err)
	}
	return v1beta1.SortTrials(list.Items), nil
}

// Await implements Reader.
func (r Listed) Await(ctx context.Context, trial *v1beta1.Trial, enough func(*v1beta1.Trial) bool) error {
	key := client.ObjectKeyFromObject(trial)
	err := wait.PollUntilContextCancel(ctx, pause, true, func(ctx context.Context) (bool, error) {
		seen := &v1beta1.Trial{}
		err := r.Get(ctx, key, seen)
		if apierrors.IsNotFound(err) {
			return false, nil
		}
		return err == nil && enough(seen), err
	})
	if err != nil {
		return fmt.Errorf("wait for trial %s in the cache: %w", key, err)
	}
	return nil
}
