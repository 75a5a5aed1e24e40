package trial

import (
	"context"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/vernier-ml/vernier/collector"
)

// withoutSuperfluous leaves out what is newer than the pod that has succeeded: a
// controller that loses the API server's answer makes a pod twice, and removes one of
// them, which may have begun to report. The arguments are not changed.
func withoutSuperfluous(attempts []collector.AttemptState, pods []corev1.Pod) ([]collector.AttemptState, []corev1.Pod, superfluous) {
	last, made := -1, corev1.Pod{}
	for _, p := range pods {
		if p.Status.Phase != corev1.PodSucceeded {
			continue
		}
		for i := last + 1; i < len(attempts); i++ {
			if podOf(attempts[i].Attempt) == string(p.UID) {
				last, made = i, p
			}
		}
	}
	if last < 0 {
		return attempts, pods, nil
	}
	var out superfluous
	for _, a := range attempts[last+1:] {
		out = append(out, a.Attempt.ID)
	}
	pods = slices.DeleteFunc(slices.Clone(pods), func(p corev1.Pod) bool {
		return p.Status.Phase != corev1.PodSucceeded && made.CreationTimestamp.Before(&p.CreationTimestamp) ||
			slices.ContainsFunc(attempts[last+1:], func(a collector.AttemptState) bool { return podOf(a.Attempt) == string(p.UID) })
	})
	return attempts[:last+1], pods, out
}

// podOf is the UID of an attempt's pod.
func podOf(a collector.Attempt) string {
	uid, _, _ := strings.Cut(a.ID, "/")
	return uid
}

// superfluous are the IDs of attempts whose points do not count.
type superfluous []string

func (s superfluous) leftOutOf(store collector.Scanner) collector.Scanner {
	if len(s) == 0 {
		return store
	}
	return others{store, s}
}

type others struct {
	collector.Scanner
	without superfluous
}

// Scan implements collector.Scanner.
func (o others) Scan(ctx context.Context, trialUID string, metrics []string, yield func(collector.Attempt, collector.Point) error) error {
	return o.Scanner.Scan(ctx, trialUID, metrics, func(a collector.Attempt, p collector.Point) error {
		if slices.Contains(o.without, a.ID) {
			return nil
		}
		return yield(a, p)
	})
}
