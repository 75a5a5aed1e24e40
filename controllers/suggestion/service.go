package suggestion

import (
	"context"
	"errors"
	"fmt"
	"time"

	"connectrpc.com/connect"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/vernier-ml/vernier/api/v1beta1"
	"github.com/vernier-ml/vernier/controllers/katib"
	"github.com/vernier-ml/vernier/controllers/katib/message"
)

const (
	// startPatience is how long a service may take to start before the experiment says
	// that it does not answer.
	startPatience = 15 * time.Second
	// firstPause and longestPause are between two questions that failed.
	firstPause, longestPause = 500 * time.Millisecond, time.Minute
	// maxRefusals is after how many answers in a row that are errors the experiment
	// fails. A service that does not answer at all is waited for.
	maxRefusals = 10
)

const (
	messageAnswers = "The service of the algorithm answers"
	messageGone    = "There is no algorithm %q, neither in Vernier nor in the ConfigMap katib-config of the namespace kubeflow"
)

// service is what is known of an algorithm that runs outside. All of it can be found
// out anew.
type service struct {
	deployed, asking, validated bool
	began, retryAt              time.Time
	failed, refusals            int // in a row
	answer                      *answer
}

// serveOutside brings the Suggestion of an experiment whose algorithm is a service a
// step further. The service is asked in the background, so that one that hangs holds
// up its own experiment only.
func (c *Controller) serveOutside(ctx context.Context, exp *v1beta1.Experiment, have *v1beta1.Suggestion, trials []*v1beta1.Trial) (reconcile.Result, error) {
	now := c.Now()
	want := base(have, exp)
	if have == nil { // the experiment's controller requests trials of it
		// One that was deleted by hand goes on after the trials that there are.
		next := nextNumber(trials)
		want.Spec.Requests, want.Status.SuggestionCount, want.Status.Suggestions = int32(next), int32(next), proposals(trials)
		follow(want, exp, next, metav1.NewTime(now), "")
		return c.write(ctx, exp, nil, want)
	}
	s := c.serviceOf(have.UID, now)
	if ends(exp) {
		// A Suggestion that has failed may have been deployed by an earlier process.
		if have.Status.CompletionTime == nil || s.deployed {
			if err := c.retire(ctx, have); err != nil {
				return reconcile.Result{}, err
			}
		}
		c.forget(have.UID)
		follow(want, exp, len(trials), metav1.NewTime(now), "")
		return c.write(ctx, exp, have, want)
	}
	if !s.deployed {
		algorithm, found, err := katib.FindAlgorithm(ctx, c.Reader, exp.Spec.Algorithm.AlgorithmName)
		switch {
		case err != nil:
			return reconcile.Result{}, err
		case !found && want.Status.SuggestionCount > 0: // it was there before the manager was started again
			return c.unready(ctx, exp, have, want, fmt.Sprintf(messageGone, exp.Spec.Algorithm.AlgorithmName))
		case !found:
			want.MarkFailed(fmt.Sprintf(messageGone, exp.Spec.Algorithm.AlgorithmName), metav1.NewTime(now))
			return c.write(ctx, exp, have, want)
		}
		if err := c.deploy(ctx, have, algorithm); err != nil {
			return c.undeployed(ctx, exp, have, want, err)
		}
		s.deployed = true
	}
	pause := c.take(s, want, now)
	ready := ""
	if want.Status.SuggestionCount > have.Status.SuggestionCount {
		ready = messageAnswers
	}
	follow(want, exp, int(want.Status.SuggestionCount), metav1.NewTime(now), ready)
	trim(want, trials)
	c.mu.Lock()
	idle := !s.asking && s.answer == nil
	c.mu.Unlock()
	if have.Spec.Requests > have.Status.SuggestionCount && idle && pause == 0 && !want.IsFailed() {
		c.askLater(ctx, s, question{
			exp: exp.DeepCopy(), trials: trials, proposed: have.Status.Suggestions, count: int(have.Status.SuggestionCount), requests: int(have.Spec.Requests),
			settings: have.Status.AlgorithmSettings, validated: s.validated,
		})
	}
	result, err := c.write(ctx, exp, have, want)
	if pause > 0 && (result.RequeueAfter == 0 || pause < result.RequeueAfter) {
		result.RequeueAfter = pause
	}
	return result, err
}

// serviceOf is what is known of a Suggestion's service, from now on if nothing is.
func (c *Controller) serviceOf(uid types.UID, now time.Time) *service {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.services[uid]
	if s == nil {
		s = &service{began: now}
		c.services[uid] = s
	}
	return s
}

// undeployed has the Suggestion say why its service cannot be made, where someone must
// act first: names are taken, the manager lacks a right, or the ConfigMap names no pod that
// can be.
func (c *Controller) undeployed(ctx context.Context, exp *v1beta1.Experiment, have, want *v1beta1.Suggestion, why error) (reconcile.Result, error) {
	var taken *takenError
	switch {
	case apierrors.IsInvalid(why), apierrors.IsBadRequest(why):
		why = fmt.Errorf("%w: correct the entry of the algorithm in the ConfigMap katib-config of the namespace kubeflow", why)
	case !errors.As(why, &taken) && !apierrors.IsForbidden(why):
		return reconcile.Result{}, why
	}
	return c.unready(ctx, exp, have, want, why.Error())
}

// unready says what a person has to do before the service can run, and tries again later.
func (c *Controller) unready(ctx context.Context, exp *v1beta1.Experiment, have, want *v1beta1.Suggestion, why string) (reconcile.Result, error) {
	want.MarkDeploymentNotReady(why, metav1.NewTime(c.Now()))
	result, err := c.write(ctx, exp, have, want)
	if err == nil && result.RequeueAfter == 0 {
		result.RequeueAfter = longestPause
	}
	return result, err
}

// ends says whether the service of an experiment is needed no more.
func ends(exp *v1beta1.Experiment) bool {
	return exp.IsCompleted() && (!exp.IsSucceeded() || exp.Spec.ResumePolicy != v1beta1.LongRunning)
}

// take puts an answer that has come into the Suggestion, and says how long to wait
// before the next question.
func (c *Controller) take(s *service, want *v1beta1.Suggestion, now time.Time) (pause time.Duration) {
	c.mu.Lock()
	a := s.answer
	if a != nil && a.count > int(want.Status.SuggestionCount) {
		c.mu.Unlock()
		return lag // the cache does not show the Suggestion yet that was asked for
	}
	if a != nil && (a.err != nil || a.refused != "" || a.count < int(want.Status.SuggestionCount)) {
		s.answer = nil // what is not written yet is kept
	}
	c.mu.Unlock()
	at := metav1.NewTime(now)
	if a == nil {
		return max(0, s.retryAt.Sub(now))
	}
	s.validated = a.validated
	switch {
	case a.refused != "":
		want.MarkFailed(a.refused, at)
		return longestPause
	case a.err != nil:
		if s.failed++; connect.IsWireError(a.err) && connect.CodeOf(a.err) != connect.CodeUnavailable {
			s.refusals++
		}
		text := fmt.Sprintf("the service of algorithm %q: %v", want.AlgorithmName(), a.err)
		if s.refusals >= maxRefusals {
			want.MarkFailed(fmt.Sprintf("%d times in a row, %s", s.refusals, text), at)
		} else if now.Sub(s.began) > startPatience || s.refusals > 0 {
			want.MarkDeploymentNotReady(text, at)
		}
		pause = min(longestPause, firstPause<<min(s.failed, 10))
		s.retryAt = now.Add(pause)
		if s.failed%8 == 0 {
			s.deployed = false // it may have been deleted
		}
		return pause
	case a.count != int(want.Status.SuggestionCount):
		return 0 // an earlier answer was taken meanwhile: ask again
	}
	s.failed, s.refusals, s.retryAt = 0, 0, time.Time{}
	want.Status.Suggestions = append(want.Status.Suggestions, a.proposals...)
	want.Status.SuggestionCount += int32(len(a.proposals))
	if len(a.settings) > 0 {
		want.Status.AlgorithmSettings = message.MergeSettings(want.Status.AlgorithmSettings, a.settings)
	}
	return 0
}

// trim leaves the newest proposals, and those whose trials are not made yet.
func trim(s *v1beta1.Suggestion, trials []*v1beta1.Trial) {
	list := s.Status.Suggestions
	waiting := max(0, int(s.Status.SuggestionCount)-nextNumber(trials))
	if keep := max(kept, waiting); len(list) > keep {
		s.Status.Suggestions = list[len(list)-keep:]
	}
}

// nextNumber is one above that of the last trial.
func nextNumber(trials []*v1beta1.Trial) int {
	if len(trials) == 0 {
		return 0
	}
	n, _ := trials[len(trials)-1].Number()
	return n + 1
}

// askLater asks the service in the background, and then for a reconcile.
func (c *Controller) askLater(ctx context.Context, s *service, q question) {
	c.mu.Lock()
	s.asking = true
	c.mu.Unlock()
	named := &v1beta1.Experiment{ObjectMeta: metav1.ObjectMeta{Namespace: q.exp.Namespace, Name: q.exp.Name}}
	go func() {
		a := c.ask(ctx, q)
		c.mu.Lock()
		s.answer, s.asking = &a, false
		c.mu.Unlock()
		select {
		case c.woken <- event.GenericEvent{Object: named}:
		case <-ctx.Done():
		}
	}()
}

func (c *Controller) forget(uid types.UID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.services, uid)
}
