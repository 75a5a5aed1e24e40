package katib

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/vernier-ml/vernier/api/v1beta1"
)

const (
	// pause is how long a step is given before it is done again.
	pause = time.Second
	// waitEvery is how often experiments that are waited for are looked at.
	waitEvery = 5 * time.Second
)

// Step is one change on the way from Katib to Vernier.
type Step struct {
	// Text says what is done.
	Text string
	// do may be broken off anywhere and done again.
	do func(context.Context, client.Client) error
}

// Plan is what is to be done, in order. Until Katib's ValidatingWebhookConfiguration
// is deleted Vernier acts on nothing, and by then Katib's controller is gone: no
// object ever has two controllers.
func (s *Survey) Plan() []Step {
	var out []Step
	add := func(needed bool, text string, do func(context.Context, client.Client) error) {
		if needed {
			out = append(out, Step{text, do})
		}
	}
	for i := range s.Controllers {
		d := &s.Controllers[i]
		add(replicas(d) > 0, fmt.Sprintf("Scale the Deployment %s/%s to 0", d.Namespace, d.Name), func(ctx context.Context, c client.Client) error {
			return c.Patch(ctx, d, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"replicas":0}}`)))
		})
	}
	// It refuses pods while Katib's controller is away.
	add(s.Mutating, "Delete the "+mutating+" "+webhooks, remove(webhookConfiguration(mutating, webhooks)))
	add(s.Acts(), "Wait until the pods of Katib's controller have ended", wait(pause))
	// Their pods have Katib's collector, which reports to Katib's database.
	add(s.Owns() && len(s.Jobs) > 0, fmt.Sprintf("Delete the jobs of %d trials that have not ended; Vernier starts those again whose experiments go on", len(s.Jobs)), remove(objects(s.Jobs)...))
	trials := s.katibsTrials()
	add(len(trials) > 0, fmt.Sprintf("Give %d trials the numbers that Vernier knows them by, and remove Katib's finalizers", len(trials)), s.takeTrials(trials))
	add(s.Validating, "Delete the "+validating+" "+webhooks+": from here on Vernier acts on the Experiments", remove(webhookConfiguration(validating, webhooks)))
	var seen []client.Object
	for i := range s.Experiments {
		if e := &s.Experiments[i]; isSeen(e) {
			seen = append(seen, e)
		}
	}
	add(len(seen) > 0, fmt.Sprintf("Remove Katib's finalizers from %d experiments", len(seen)), func(ctx context.Context, c client.Client) error {
		return each(seen, func(o client.Object) error { return release(ctx, c, o, nil) })
	})
	add(len(s.Algorithms) > 0, fmt.Sprintf("Delete %d Deployments and Services of Katib's algorithms", len(s.Algorithms)), remove(s.Algorithms...))
	return out
}

// katibsTrials are the places of the trials that Vernier does not know yet, or that
// Katib's finalizers keep.
func (s *Survey) katibsTrials() []int {
	numbers := s.numbers()
	var out []int
	for i := range s.Trials {
		if _, wanted := numbers[i]; wanted || isSeen(&s.Trials[i]) {
			out = append(out, i)
		}
	}
	return out
}

func (s *Survey) takeTrials(places []int) func(context.Context, client.Client) error {
	return func(ctx context.Context, c client.Client) error {
		numbers, ended := s.numbers(), map[types.UID]bool{}
		for i := range s.Experiments {
			ended[s.Experiments[i].UID] = s.Experiments[i].IsCompleted()
		}
		return each(places, func(i int) error {
			t := &s.Trials[i]
			return release(ctx, c, t, func() {
				n, wanted := numbers[i]
				if !wanted {
					return
				}
				metav1.SetMetaDataLabel(&t.ObjectMeta, v1beta1.LabelTrialNumber, strconv.Itoa(n))
				if !t.IsCompleted() && ended[metav1.GetControllerOf(t).UID] {
					metav1.SetMetaDataAnnotation(&t.ObjectMeta, v1beta1.AnnotationStop, "its experiment had ended under Katib")
				}
			})
		})
	}
}

func objects(jobs []*metav1.PartialObjectMetadata) []client.Object {
	out := make([]client.Object, len(jobs))
	for i := range jobs {
		out[i] = jobs[i]
	}
	return out
}

// remove deletes objects, those that were seen and no others of their names.
func remove(all ...client.Object) func(context.Context, client.Client) error {
	return func(ctx context.Context, c client.Client) error {
		return each(all, func(o client.Object) error {
			options := []client.DeleteOption{client.PropagationPolicy(metav1.DeletePropagationBackground)}
			if uid := o.GetUID(); uid != "" {
				options = append(options, client.Preconditions{UID: &uid})
			}
			return client.IgnoreNotFound(c.Delete(ctx, o, options...))
		})
	}
}

// each goes on past what was changed meanwhile: that is seen again.
func each[T any](all []T, do func(T) error) error {
	for _, o := range all {
		if err := do(o); err != nil && !apierrors.IsConflict(err) {
			return err
		}
	}
	return nil
}

// Migration takes a cluster from Katib to Vernier.
type Migration struct {
	Client client.Client
	// Wait waits until Katib has brought its experiments to their ends, and Restart
	// goes on with them under Vernier: trials that have not ended start again.
	Wait, Restart bool
	// Refuses says why an experiment cannot go on under Vernier.
	Refuses func(*v1beta1.Experiment) error
	// Say is told of each step before it is done.
	Say func(string)
}

// ErrRunning says that experiments of Katib's have not ended.
var ErrRunning = errors.New("experiments have not ended")

// Check says why the migration cannot begin. An experiment that has not ended is
// ErrRunning, unless it is waited for or goes on under Vernier.
func (m *Migration) Check(s *Survey) error {
	running := s.Running()
	switch {
	case !s.Vernier:
		return errors.New("there is no Vernier in this cluster: install it first; it acts on nothing while Katib is installed")
	case !s.Owns() || len(running) == 0:
		return nil
	case m.Restart:
		var refused []error
		for _, e := range running {
			if err := m.Refuses(e); err != nil {
				refused = append(refused, fmt.Errorf("experiment %s/%s cannot go on under Vernier: %w", e.Namespace, e.Name, err))
			}
		}
		if len(refused) > 0 {
			return fmt.Errorf("%w: %w. Let Katib finish these (--wait), or delete them", ErrRunning, errors.Join(refused...))
		}
		return nil
	case !s.Acts():
		return fmt.Errorf("%w: %d, and Katib's controller does not run, so they never will: give --restart-running, or start it again", ErrRunning, len(running))
	case !m.Wait:
		return fmt.Errorf("%w: %d run under Katib. --wait waits for their ends; --restart-running goes on with them under Vernier, where the trials that run now start again", ErrRunning, len(running))
	}
	return nil
}

// Run does what is to be done, and looks at the cluster again after each step: it may
// be broken off anywhere and run again.
func (m *Migration) Run(ctx context.Context) error {
	begun, last := false, ""
	for {
		s, err := Inspect(ctx, m.Client)
		if err != nil {
			return err
		}
		steps := s.Plan()
		if len(steps) == 0 {
			return nil
		}
		next := steps[0]
		if !begun {
			if err := m.Check(s); err != nil {
				return err
			}
			if n := len(s.Running()); m.Wait && s.Owns() && n > 0 {
				next = Step{fmt.Sprintf("Wait for the ends of %d experiments", n), wait(waitEvery)}
			} else {
				begun = true
			}
		}
		if next.Text != last {
			m.Say(next.Text)
		} else if err := wait(pause)(ctx, nil); err != nil {
			return err
		}
		if err := next.do(ctx, m.Client); err != nil {
			return fmt.Errorf("%s: %w", next.Text, err)
		}
		last = next.Text
	}
}

func wait(d time.Duration) func(context.Context, client.Client) error {
	return func(ctx context.Context, _ client.Client) error {
		timer := time.NewTimer(d)
		defer timer.Stop()
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-timer.C:
			return nil
		}
	}
}
