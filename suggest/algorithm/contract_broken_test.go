package algorithm_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/vernier-ml/vernier/suggest"
	"github.com/vernier-ml/vernier/suggest/algorithm"
)

const brokenVariable = "VERNIER_CONTRACT_BROKEN"

// broken is random search with a fault.
type broken struct {
	suggest.Algorithm
	space   suggest.Space
	largest *int // number of trials that was seen
	suggest func(b broken, ctx context.Context, s suggest.Study, n int) ([]suggest.Proposal, error)
}

func (b broken) Suggest(ctx context.Context, s suggest.Study, n int) ([]suggest.Proposal, error) {
	return b.suggest(b, ctx, s, n)
}

// faults, and the check that must find each.
func faults() map[string]struct {
	suggest func(b broken, ctx context.Context, s suggest.Study, n int) ([]suggest.Proposal, error)
	want    string
} {
	type fault = struct {
		suggest func(b broken, ctx context.Context, s suggest.Study, n int) ([]suggest.Proposal, error)
		want    string
	}
	return map[string]fault{
		"forgets what is pending": {func(b broken, ctx context.Context, s suggest.Study, n int) ([]suggest.Proposal, error) {
			s.Trials = slices.DeleteFunc(slices.Clone(s.Trials), func(t *suggest.Trial) bool { return !t.State.Finished() })
			return b.Algorithm.Suggest(ctx, s, n)
		}, "no_point_comes_twice_in_a_finite_space"},
		"depends on the process": {func(b broken, ctx context.Context, s suggest.Study, n int) ([]suggest.Proposal, error) {
			s.Seed += uint64(os.Getpid())
			return b.Algorithm.Suggest(ctx, s, n)
		}, "a_fresh_process_gives_the_same_answer"},
		"depends on the time": {func(b broken, ctx context.Context, s suggest.Study, n int) ([]suggest.Proposal, error) {
			s.Seed += uint64(time.Now().UnixNano())
			return b.Algorithm.Suggest(ctx, s, n)
		}, "the_same_seed_gives_the_same_answer"},
		"depends on how many are asked for": {func(b broken, ctx context.Context, s suggest.Study, n int) ([]suggest.Proposal, error) {
			s.Seed += uint64(n)
			return b.Algorithm.Suggest(ctx, s, n)
		}, "asking_for_many_equals_asking_one_by_one"},
		"ignores the seed": {func(b broken, ctx context.Context, s suggest.Study, n int) ([]suggest.Proposal, error) {
			s.Seed = 0
			return b.Algorithm.Suggest(ctx, s, n)
		}, "the_same_seed_gives_the_same_answer"},
		"edits a trial": {func(b broken, ctx context.Context, s suggest.Study, n int) ([]suggest.Proposal, error) {
			if len(s.Trials) > 0 {
				s.Trials[len(s.Trials)-1].Resource++
			}
			return b.Algorithm.Suggest(ctx, s, n)
		}, "the_study_is_not_modified"},
		"never gives the last value": {func(b broken, ctx context.Context, s suggest.Study, n int) ([]suggest.Proposal, error) {
			out, err := b.Algorithm.Suggest(ctx, s, n)
			for _, p := range out {
				for i, v := range p.Point {
					p.Point[i] = b.space.At(i).Decode(0.9 * b.space.At(i).Encode(v))
				}
			}
			return out, err
		}, "both_ends_and_each_choice_are_reachable"},
		"leaves the space": {func(b broken, ctx context.Context, s suggest.Study, n int) ([]suggest.Proposal, error) {
			out, err := b.Algorithm.Suggest(ctx, s, n)
			for _, p := range out {
				p.Point[0], _ = b.space.At(0).Parse("1e300")
			}
			return out, err
		}, "points_lie_in_the_space_and_on_its_step"},
		"gives up on trials without values": {func(b broken, ctx context.Context, s suggest.Study, n int) ([]suggest.Proposal, error) {
			for _, t := range s.Trials {
				if t.State == suggest.Succeeded && len(t.Values) == 0 {
					return nil, errors.New("no value")
				}
			}
			return b.Algorithm.Suggest(ctx, s, n)
		}, "trials_of_all_sorts_are_tolerated"},
		"does not look at the context": {func(b broken, _ context.Context, s suggest.Study, n int) ([]suggest.Proposal, error) {
			return b.Algorithm.Suggest(context.Background(), s, min(n, 100))
		}, "a_cancelled_context_returns"},
		"remembers the largest study": {func(b broken, ctx context.Context, s suggest.Study, n int) ([]suggest.Proposal, error) {
			*b.largest = max(*b.largest, len(s.Trials))
			s.Seed += uint64(*b.largest)
			return b.Algorithm.Suggest(ctx, s, n)
		}, "changes_of_all_sorts_are_seen"},
		"gives one when none is asked for": {func(b broken, ctx context.Context, s suggest.Study, n int) ([]suggest.Proposal, error) {
			return b.Algorithm.Suggest(ctx, s, max(n, 1))
		}, "asking_for_none_gives_none"},
	}
}

// TestBroken runs the suite over one broken algorithm. It is for the child
// processes of TestTheSuiteFindsFaults.
func TestBroken(t *testing.T) {
	f, ok := faults()[os.Getenv(brokenVariable)]
	if !ok {
		t.Skip("not a child process")
	}
	r, _ := algorithm.Get("random")
	build := r.New
	r.New = func(space suggest.Space, settings suggest.Settings) (suggest.Algorithm, error) {
		a, err := build(space, settings)
		return broken{Algorithm: a, space: space, largest: new(int), suggest: f.suggest}, err
	}
	holdToContract(t, r)
}

func TestTheSuiteFindsFaults(t *testing.T) {
	for name, f := range faults() {
		t.Run(name, func(t *testing.T) {
			child := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestBroken$/^"+regexp.QuoteMeta(f.want)+"$", "-test.count=1")
			child.Env = append(os.Environ(), brokenVariable+"="+name)
			out, err := child.CombinedOutput()
			var exit *exec.ExitError
			if !errors.As(err, &exit) {
				t.Fatalf("the suite passed: %v", err)
			}
			if !strings.Contains(string(out), "--- FAIL: TestBroken/"+f.want+" ") {
				t.Errorf("%s did not fail:\n%s", f.want, out)
			}
		})
	}
}
