package main

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/structpb"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	ctrlclient "sigs.k8s.io/controller-runtime/pkg/client"

	vernierv1 "github.com/vernier-ml/vernier/api/proto/vernier/v1"
	"github.com/vernier-ml/vernier/api/v1beta1"
	"github.com/vernier-ml/vernier/client"
)

func TestErrorsOfTheAPIHaveAReasonAndARemedy(t *testing.T) {
	w := withAPI(t)
	c := w.caller()
	job, e := w.experiment("job", budget(1)), w.experiment("exp", outside(1, 5))
	w.create(job)
	w.create(e)
	mine := w.suggest(c, &vernierv1.SuggestTrialsRequest{Parent: w.resource(e), MaxWait: durationpb.New(20 * time.Second)})[0]
	report := func(name string, attempt int32, m ...*vernierv1.Measurement) error {
		_, err := c.ReportTrial(t.Context(), &vernierv1.ReportTrialRequest{Name: name, Attempt: attempt, Measurements: m})
		return err
	}
	suggest := func(r *vernierv1.SuggestTrialsRequest) error {
		_, err := c.SuggestTrials(t.Context(), r)
		return err
	}
	complete := func(r *vernierv1.CompleteTrialRequest) error {
		_, err := c.CompleteTrial(t.Context(), r)
		return err
	}
	create := func(name string, spec map[string]any) error {
		s, err := structpb.NewStruct(spec)
		if err != nil {
			t.Fatal(err)
		}
		_, err = c.CreateExperiment(t.Context(), &vernierv1.CreateExperimentRequest{Experiment: &vernierv1.Experiment{Name: name, Spec: s}})
		return err
	}
	cases := map[string]struct {
		err          error
		reason, says string
	}{
		"a wrong name":            {suggest(&vernierv1.SuggestTrialsRequest{Parent: "exp"}), "INVALID", `parent is "exp": write namespaces/NAMESPACE/experiments/NAME`},
		"no such experiment":      {suggest(&vernierv1.SuggestTrialsRequest{Parent: w.resource(e) + "x"}), "NOT_FOUND", "not found"},
		"too many":                {suggest(&vernierv1.SuggestTrialsRequest{Parent: w.resource(e), Count: 1001}), "INVALID", "count is 1001"},
		"a lease of a second":     {suggest(&vernierv1.SuggestTrialsRequest{Parent: w.resource(e), Lease: durationpb.New(time.Millisecond)}), "INVALID", "lease is 1ms"},
		"jobs run its trials":     {suggest(&vernierv1.SuggestTrialsRequest{Parent: w.resource(job)}), "HAS_TEMPLATE", "trialTemplate"},
		"no such trial":           {report(w.resource(e)+"/trials/exp-0009", 1), "NOT_FOUND", "not found"},
		"another experiment's":    {report(w.resource(job)+"/trials/exp-0000", 1), "NOT_FOUND", "has no trial exp-0000"},
		"an attempt to come":      {report(mine.GetName(), 2), "INVALID", "attempt is 2"},
		"a step below 0":          {report(mine.GetName(), 1, &vernierv1.Measurement{Step: -1}), "INVALID", "measurements[0].step is -1"},
		"no outcome":              {complete(&vernierv1.CompleteTrialRequest{Name: mine.GetName(), Attempt: 1}), "INVALID", "the outcome is missing"},
		"an unknown metric":       {complete(&vernierv1.CompleteTrialRequest{Name: mine.GetName(), Attempt: 1, Outcome: &vernierv1.CompleteTrialRequest_Succeeded_{Succeeded: &vernierv1.CompleteTrialRequest_Succeeded{Values: map[string]float64{"accuracy": 1}}}}), "INVALID", `no metric "accuracy"`},
		"nothing was measured":    {complete(&vernierv1.CompleteTrialRequest{Name: mine.GetName(), Attempt: 1, Outcome: &vernierv1.CompleteTrialRequest_Succeeded_{Succeeded: &vernierv1.CompleteTrialRequest_Succeeded{}}}), "NOT_MEASURED", `"loss"`},
		"an unknown field":        {create(w.resource(e)+"-2", map[string]any{"objektive": 1.0}), "INVALID", "objektive"},
		"another of its name":     {create(w.resource(e), map[string]any{"maxTrialCount": 9.0}), "ALREADY_EXISTS", "with another spec"},
		"what the schema refuses": {create(w.resource(e)+"-2", map[string]any{"maxTrialCount": -1.0}), "INVALID", "maxTrialCount"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if client.Reason(c.err) != c.reason || !strings.Contains(fmt.Sprint(c.err), c.says) {
				t.Errorf("the error is %v (%s), want %s with %q", c.err, client.Reason(c.err), c.reason, c.says)
			}
		})
	}
	if _, err := client.New(w.api, "wrong", nil).GetExperiment(t.Context(), &vernierv1.GetExperimentRequest{Name: w.resource(e)}); client.Reason(err) != "UNAUTHENTICATED" {
		t.Errorf("a wrong token: %v", err)
	}
	info, err := os.Stat(w.apiToken)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the token's file: %v, %v", info.Mode(), err)
	}
	if err := w.client.Get(t.Context(), ctrlclient.ObjectKey{Namespace: w.namespace, Name: "exp-2"}, &v1beta1.Experiment{}); !apierrors.IsNotFound(err) {
		t.Errorf("an experiment that was refused: %v", err)
	}
}
