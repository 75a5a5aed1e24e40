package api

import (
	"context"
	"fmt"
	"math"
	"testing"

	"connectrpc.com/connect"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/types/known/structpb"
	"google.golang.org/protobuf/types/known/timestamppb"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	vernierv1 "github.com/vernier-ml/vernier/api/proto/vernier/v1"
	"github.com/vernier-ml/vernier/api/v1beta1"
)

func ran(id string, lr float64, state vernierv1.Trial_State, loss ...float64) *importedTrial {
	t := &importedTrial{
		Id: id, State: state, Parameters: map[string]*structpb.Value{"lr": structpb.NewNumberValue(lr), "optimizer": structpb.NewStringValue("sgd")},
		StartTime: timestamppb.New(noon.AddDate(0, -1, 0)), EndTime: timestamppb.New(noon.AddDate(0, -1, 1)),
	}
	if len(loss) > 0 {
		t.Values = map[string]float64{"loss": loss[0]}
	}
	return t
}

func TestTrialsAreImportedOnce(t *testing.T) {
	exp := searched()
	exp.Spec.TrialTemplate, exp.Spec.MaxTrialCount = nil, ptr.To[int32](4)
	s := serve(t, interceptor.Funcs{Create: func(ctx context.Context, c client.WithWatch, o client.Object, options ...client.CreateOption) error {
		o.SetUID(types.UID(o.GetName()))
		return c.Create(ctx, o, options...)
	}}, exp, tried(exp, 0, "0.25", "sgd", 3))
	curve := ran("b", 0.75, vernierv1.Trial_PRUNED)
	curve.Measurements = []*vernierv1.Measurement{{Step: 1, Values: map[string]float64{"loss": 9}}, {Step: 2, Values: map[string]float64{"loss": 8}}}
	r := &vernierv1.ImportTrialsRequest{Parent: parent, Trials: []*importedTrial{
		ran("a", 0.5, vernierv1.Trial_SUCCEEDED, 1), curve, ran("c", 0.125, vernierv1.Trial_FAILED),
	}}
	want := []string{"1 SUCCEEDED lr=0.5 loss=1", "2 PRUNED lr=0.75 loss=8", "3 FAILED lr=0.125 loss=NaN"}
	for range 2 {
		out, err := s.ImportTrials(t.Context(), r)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, trial := range out.GetTrials() {
			loss, ok := trial.GetValues()["loss"]
			if !ok {
				loss = math.NaN()
			}
			got = append(got, fmt.Sprintf("%d %s lr=%v loss=%v", trial.GetNumber(), trial.GetState(), trial.GetParameters()["lr"].GetNumberValue(), loss))
			if start, end := trial.GetStartTime().AsTime(), trial.GetEndTime().AsTime(); end.Sub(start).Hours() != 24 {
				t.Errorf("trial %d ran from %s to %s, want the day that was sent", trial.GetNumber(), start, end)
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
	}
}

func TestNumbersAreWrittenAsProgramsReadThem(t *testing.T) {
	cases := map[string]struct {
		value float64
		want  string
	}{
		"a whole number":       {1 << 20, "1048576"},
		"one that is negative": {-3_000_000, "-3000000"},
		"the last exact one":   {1 << 53, "9007199254740992"},
		"nothing":              {math.Copysign(0, -1), "0"},
		"a small one":          {1e-5, "1e-05"},
		"a fraction":           {0.25, "0.25"},
		"one that is too long": {1e300, "1e+300"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := assignments(map[string]*structpb.Value{"x": structpb.NewNumberValue(c.value)})
			if diff := cmp.Diff([]v1beta1.ParameterAssignment{{Name: "x", Value: c.want}}, got); err != nil || diff != "" {
				t.Errorf("%v\n%s", err, diff)
			}
		})
	}
}

func TestWhatCannotBeImportedSaysWhy(t *testing.T) {
	outside := func() *v1beta1.Experiment {
		exp := searched()
		exp.Spec.TrialTemplate = nil
		return exp
	}
	full, ended := outside(), outside()
	full.Spec.MaxTrialCount = ptr.To[int32](1)
	ended.MarkSucceeded(v1beta1.ReasonExperimentMaxTrialsReached, "it has ended", metav1.NewTime(noon))
	good := ran("a", 0.5, vernierv1.Trial_SUCCEEDED, 1)
	backwards := ran("a", 0.5, vernierv1.Trial_SUCCEEDED, 1)
	backwards.StartTime, backwards.EndTime = backwards.EndTime, backwards.StartTime
	other := ran("a", 0.5, vernierv1.Trial_SUCCEEDED, 1)
	other.Values["acc"] = 1
	jobs := searched()
	jobs.Spec.TrialTemplate = &v1beta1.TrialTemplate{}
	cases := map[string]struct {
		exp    *v1beta1.Experiment
		trials []*importedTrial
		code   connect.Code
	}{
		"nothing":                   {outside(), nil, connect.CodeInvalidArgument},
		"no id":                     {outside(), []*importedTrial{ran("", 0.5, vernierv1.Trial_SUCCEEDED, 1)}, connect.CodeInvalidArgument},
		"outside of the space":      {outside(), []*importedTrial{ran("a", 5, vernierv1.Trial_SUCCEEDED, 1)}, connect.CodeInvalidArgument},
		"one that runs":             {outside(), []*importedTrial{ran("a", 0.5, vernierv1.Trial_RUNNING)}, connect.CodeInvalidArgument},
		"it ends before it starts":  {outside(), []*importedTrial{backwards}, connect.CodeInvalidArgument},
		"more than maxTrialCount":   {full, []*importedTrial{good, ran("b", 0.5, vernierv1.Trial_SUCCEEDED, 1)}, connect.CodeFailedPrecondition},
		"the experiment has ended":  {ended, []*importedTrial{good}, connect.CodeFailedPrecondition},
		"jobs run its trials":       {jobs, []*importedTrial{good}, connect.CodeFailedPrecondition},
		"success without its value": {outside(), []*importedTrial{ran("a", 0.5, vernierv1.Trial_SUCCEEDED)}, connect.CodeInvalidArgument},
		"an unknown metric":         {outside(), []*importedTrial{other}, connect.CodeInvalidArgument},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			s := serve(t, interceptor.Funcs{}, c.exp)
			if _, err := s.ImportTrials(t.Context(), &vernierv1.ImportTrialsRequest{Parent: parent, Trials: c.trials}); connect.CodeOf(err) != c.code {
				t.Errorf("%v, want %v", err, c.code)
			}
		})
	}
}

// IDs of imported trials and of requests are chosen by different programs, which count.
func TestARequestDoesNotGetAnImportedTrial(t *testing.T) {
	exp := searched()
	exp.Spec.TrialTemplate, exp.Spec.MaxTrialCount = nil, ptr.To[int32](1)
	s := serve(t, interceptor.Funcs{Create: func(ctx context.Context, c client.WithWatch, o client.Object, options ...client.CreateOption) error {
		o.SetUID(types.UID(o.GetName()))
		return c.Create(ctx, o, options...)
	}}, exp)
	if _, err := s.ImportTrials(t.Context(), &vernierv1.ImportTrialsRequest{Parent: parent, Trials: []*importedTrial{ran("7", 0.5, vernierv1.Trial_SUCCEEDED, 1)}}); err != nil {
		t.Fatal(err)
	}
	got, err := s.SuggestTrials(t.Context(), &vernierv1.SuggestTrialsRequest{Parent: parent, Worker: "w", RequestId: "7"})
	if err != nil {
		t.Fatal(err)
	}
	for _, trial := range got.GetTrials() {
		t.Errorf("the request got trial %d, which is %s and of %s", trial.GetNumber(), trial.GetState(), trial.GetWorker())
	}
}

func TestCurvesAreCheckedBeforeAnyTrialIsImported(t *testing.T) {
	for name, c := range map[string]struct {
		curve  []*vernierv1.Measurement
		code   connect.Code
		trials int
	}{
		"a step that is none": {[]*vernierv1.Measurement{{Step: -1, Values: map[string]float64{"loss": 1}}}, connect.CodeInvalidArgument, 0},
		"a metric of no name": {[]*vernierv1.Measurement{{Values: map[string]float64{"": 1}}}, connect.CodeInvalidArgument, 0},
		"a long curve":        {longCurve(2*maxValues + 1), 0, 2},
	} {
		t.Run(name, func(t *testing.T) {
			exp := searched()
			exp.Spec.TrialTemplate = nil
			s := serve(t, interceptor.Funcs{Create: func(ctx context.Context, c client.WithWatch, o client.Object, options ...client.CreateOption) error {
				o.SetUID(types.UID(o.GetName()))
				return c.Create(ctx, o, options...)
			}}, exp)
			second := ran("b", 0.25, vernierv1.Trial_SUCCEEDED, 1)
			second.Measurements = c.curve
			_, err := s.ImportTrials(t.Context(), &vernierv1.ImportTrialsRequest{Parent: parent, Trials: []*importedTrial{ran("a", 0.5, vernierv1.Trial_SUCCEEDED, 1), second}})
			if err != nil && connect.CodeOf(err) != c.code || (err == nil) != (c.code == 0) {
				t.Error(err)
			}
			there, err := s.ListTrials(t.Context(), &vernierv1.ListTrialsRequest{Parent: parent})
			if err != nil || len(there.GetTrials()) != c.trials {
				t.Fatalf("%v, %v", there.GetTrials(), err)
			}
			if c.trials == 0 {
				return
			}
			info, err := s.Store.Inventory(t.Context())
			if err != nil || len(info) != 1 || int(info[0].Points) != len(c.curve) {
				t.Errorf("%+v, %v", info, err)
			}
		})
	}
}

func longCurve(n int) (curve []*vernierv1.Measurement) {
	for i := range n {
		curve = append(curve, &vernierv1.Measurement{Step: int64(i), Values: map[string]float64{"loss": 1}})
	}
	return curve
}
