package api

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"connectrpc.com/connect"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	vernierv1 "github.com/vernier-ml/vernier/api/proto/vernier/v1"
	"github.com/vernier-ml/vernier/api/v1beta1"
	"github.com/vernier-ml/vernier/trainer"
)

const (
	usualLines, mostLines = 1_000, 100_000
	// logPart is how much of a log is sent at once, at most.
	logPart = 64 << 10
	// followFor is how long a log is followed before the caller has to call again, with
	// a token that is valid then; through a proxy it is proxiedFor.
	followFor = time.Hour
)

// Logs reads the log of a container.
type Logs func(ctx context.Context, namespace, pod string, options *corev1.PodLogOptions) (io.ReadCloser, error)

// EndedLogs reads the log of a trial whose pods are gone, of a container and as many lines
// as the options say. It ends with ErrNoLog when none is kept.
type EndedLogs func(ctx context.Context, trial types.NamespacedName, experiment string, options *corev1.PodLogOptions) (io.ReadCloser, error)

// ErrNoLog says that no log is kept, and what can be done.
var ErrNoLog = errors.New("no log is kept")

// ReadLogs implements vernierv1.DashboardServiceHandler.
func (s *service) ReadLogs(ctx context.Context, r *vernierv1.ReadLogsRequest, to *connect.ServerStream[vernierv1.ReadLogsResponse]) error {
	p, err := parsePlace("name", r.GetName(), trialForm)
	if err != nil {
		return err
	}
	if err := s.allow(ctx, "get", "trials", p); err != nil {
		return err
	}
	if err := s.allowLogs(ctx, p.namespace); err != nil {
		return err
	}
	if n := r.GetTail(); n < -1 || n > mostLines {
		return invalid(fmt.Sprintf("give 1 to %d, or -1 for all", mostLines), "tail is %d", n)
	}
	t, err := s.trial(ctx, p)
	if err != nil {
		return err
	}
	longest := followFor
	if proxied(ctx) {
		longest = proxiedFor
	}
	ctx, cancel := context.WithTimeout(ctx, longest)
	defer cancel()
	from, err := s.logOf(ctx, p, t, r)
	if err != nil {
		return err
	}
	defer from.Close()
	err = lines(from, func(text []byte) error {
		return s.patiently(ctx, func() error { return to.Send(&vernierv1.ReadLogsResponse{Text: text}) })
	})
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return connect.NewError(connect.CodeUnavailable, fmt.Errorf("the log was followed for %s: call again, with since", longest))
	}
	return explain(ctx, err)
}

// allowLogs holds that the caller may read what programs in a namespace write.
func (s *service) allowLogs(ctx context.Context, namespace string) error {
	ok, err := s.mayRead(ctx, namespace, "get", "pods", "log")
	if err == nil && !ok {
		err = fault(connect.CodePermissionDenied, ReasonForbidden, "have a role bound that allows it, such as view",
			"%s may not get pods/log in namespace %s", caller(ctx).Username, namespace)
	}
	return err
}

// logOf is the log of a trial's pod or, when its pods are gone, what is kept of it.
func (s *service) logOf(ctx context.Context, p place, t *v1beta1.Trial, r *vernierv1.ReadLogsRequest) (io.ReadCloser, error) {
	pod, err := s.podOf(ctx, t, r.GetPod())
	if connect.CodeOf(err) == connect.CodeNotFound && s.EndedLogs != nil && r.GetPod() == "" && t.IsCompleted() {
		kept, err := s.EndedLogs(ctx, p.trialKey(), p.experiment, logOptions(t, r))
		if errors.Is(err, ErrNoLog) {
			return nil, fault(connect.CodeNotFound, ReasonNotFound, "set trialTemplate.retain in later experiments", "%w", err)
		}
		return kept, explain(ctx, err)
	}
	if err != nil {
		return nil, err
	}
	from, err := s.Logs(ctx, p.namespace, pod, logOptions(t, r))
	if err != nil {
		return nil, explain(ctx, fmt.Errorf("read the log of pod %s/%s: %w", p.namespace, pod, err))
	}
	return from, nil
}

// podOf is the name of a trial's pod: the one that is asked for, else its newest that
// reports.
func (s *service) podOf(ctx context.Context, t *v1beta1.Trial, name string) (string, error) {
	var list corev1.PodList
	if err := s.Reader.List(ctx, &list, client.InNamespace(t.Namespace), client.MatchingLabels{v1beta1.LabelTrial: t.Name}); err != nil {
		return "", explain(ctx, err)
	}
	pods := slices.DeleteFunc(list.Items, func(p corev1.Pod) bool {
		return name != "" && p.Name != name || name == "" && !trainer.Reports(t.Spec.PrimaryPodLabels, p.Labels)
	})
	if len(pods) == 0 {
		return "", fault(connect.CodeNotFound, ReasonNotFound, "wait until its pod is made; of a trial that has ended, set trialTemplate.retain in later experiments",
			"trial %s/%s has no such pod", t.Namespace, t.Name)
	}
	return slices.MaxFunc(pods, func(a, b corev1.Pod) int { return a.CreationTimestamp.Compare(b.CreationTimestamp.Time) }).Name, nil
}

func logOptions(t *v1beta1.Trial, r *vernierv1.ReadLogsRequest) *corev1.PodLogOptions {
	o := &corev1.PodLogOptions{Container: r.GetContainer(), Previous: r.GetPrevious(), Follow: r.GetFollow()}
	if o.Container == "" {
		o.Container = t.Spec.PrimaryContainerName
	}
	switch n := r.GetTail(); {
	case n == 0:
		o.TailLines = ptr.To[int64](usualLines)
	case n > 0:
		o.TailLines = ptr.To(int64(n))
	}
	if since := r.GetSince(); since != nil {
		o.SinceTime = ptr.To(metav1.NewTime(since.AsTime()))
	}
	return o
}

// lines gives what is read in whole lines, and in parts where a line is longer than
// one. The end of a log is no error.
func lines(from io.Reader, give func([]byte) error) error {
	part, have := make([]byte, logPart), 0
	for {
		n, err := from.Read(part[have:])
		have += n
		whole := bytes.LastIndexByte(part[:have], '\n') + 1
		if whole == 0 && have == len(part) || err != nil {
			whole = have
		}
		if whole > 0 {
			if err := give(bytes.Clone(part[:whole])); err != nil {
				return err
			}
			have = copy(part, part[whole:have])
		}
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return fmt.Errorf("read the log: %w", err)
		}
	}
}
