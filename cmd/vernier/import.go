package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"google.golang.org/protobuf/types/known/fieldmaskpb"
	"google.golang.org/protobuf/types/known/structpb"
	"google.golang.org/protobuf/types/known/timestamppb"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"

	vernierv1 "github.com/vernier-ml/vernier/api/proto/vernier/v1"
	"github.com/vernier-ml/vernier/api/v1beta1"
	"github.com/vernier-ml/vernier/client"
	"github.com/vernier-ml/vernier/cmd/vernier/imported"
	"github.com/vernier-ml/vernier/cmd/vernier/script"
	"github.com/vernier-ml/vernier/local"
)

// importBatch is how many trials one request holds at most.
const importBatch = 100

type importOptions struct {
	imported.Options
	parameters []string
	algorithm  string
	dryRun     bool
}

func newImportCommand(open opener) *cobra.Command {
	var o importOptions
	cmd := &cobra.Command{
		Use:   "import FILE [EXPERIMENT]",
		Short: "Add the trials of another tuner, or of a table, to an experiment",
		Long: `Add trials that ran elsewhere, with their results, to an experiment whose trials run
outside (without a trialTemplate). If there is no experiment of that name it is made, with
the search space of the file. It ends with the last trial of the file; raise its
maxTrialCount to go on, or name it in warmStartFrom of another experiment.

A FILE is by its name's end
  .csv          a table with a row for each trial: the metrics that --minimize,
                --maximize and --metric name, and parameters; what vernier export
                prints, too
  .yaml, .json  an experiment of Katib with its trials, as of
                kubectl get experiments.kubeflow.org,trials.kubeflow.org -o yaml
  others        a storage of Optuna in SQLite

A table does not say what its parameters may be: they get the range that was tried, on a
logarithmic scale where that seems meant. What was taken is printed; -p says otherwise.

The same command again adds what is new. With the plugin of kubectl, VERNIER_SERVER and
VERNIER_TOKEN say where the API is.`,
		Example: `  vernier import study.db
  vernier import results.csv earlier --minimize val_loss --metric train_loss -p 'lr=log(1e-5,1e-1)'
  vernier import study.db --study resnet --dry-run`,
		Args: cobra.RangeArgs(1, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			name := ""
			if len(args) > 1 {
				name = args[1]
			}
			return o.run(cmd.Context(), args[0], name, streams{out: cmd.OutOrStdout(), err: cmd.ErrOrStderr()}, open)
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.Study, "study", "", "which study, or experiment, of a file with several")
	f.StringSliceVar(&o.Minimize, "minimize", nil, "metric of a table, or name of the value of an Optuna study; may be repeated")
	f.StringSliceVar(&o.Maximize, "maximize", nil, "as --minimize")
	f.StringSliceVar(&o.Metrics, "metric", nil, "another metric of a table, whose other columns are parameters; may be repeated")
	f.StringArrayVarP(&o.parameters, "param", "p", nil, "range and form of a parameter, as for vernier run, in place of those that the file suggests; may be repeated")
	f.StringVar(&o.algorithm, "algorithm", "auto", "algorithm of an experiment that is made")
	f.BoolVar(&o.dryRun, "dry-run", false, "print the experiment that would be made, and how many trials would be added")
	return cmd
}

func (o importOptions) run(ctx context.Context, path, name string, s streams, open opener) error {
	for _, text := range o.parameters {
		p, err := script.ParseParameter(text)
		if err != nil {
			return usageErrorf("%w", err)
		}
		o.Space = append(o.Space, p)
	}
	study, err := imported.Read(path, o.Options)
	if err != nil {
		return invalidErrorf("%w", err)
	}
	for _, left := range study.Left {
		fmt.Fprintf(s.err, "Warning: left out: %s\n", left)
	}
	if name == "" {
		name = studyName(study.Name, path)
	}
	if o.dryRun {
		fmt.Fprintf(s.err, "%d trials would be added to experiment %s\n%s", len(study.Trials), name, taken(study))
		object, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o.experiment(study, name))
		if err != nil {
			return err
		}
		delete(object, "status")
		return writeValue(s.out, "yaml", object)
	}
	session, err := open(ctx, true)
	if err != nil {
		return err
	}
	c, err := session.api()
	if err != nil {
		return err
	}
	parent := fmt.Sprintf("namespaces/%s/experiments/%s", session.namespace, name)
	made, err := o.ensure(ctx, c, parent, study, name, s.err)
	if err != nil {
		return err
	}
	for batch := range slices.Chunk(study.Trials, importBatch) {
		r := &vernierv1.ImportTrialsRequest{Parent: parent}
		for _, t := range batch {
			r.Trials = append(r.Trials, importedOut(t))
		}
		if _, err := c.ImportTrials(ctx, r); err != nil {
			return fmt.Errorf("import trials into experiment %s: %w", name, err)
		}
	}
	fmt.Fprintf(s.out, "experiment %s has the %d trials of %s\n", name, len(study.Trials), path)
	if made {
		fmt.Fprint(s.out, taken(study))
	}
	fmt.Fprintf(s.out, "to go on with a program that asks for trials: vernier edit %s --max-trials %d\n", name, 2*len(study.Trials))
	return nil
}

// taken are the metrics and the search space of a study, a line for each.
func taken(study *imported.Study) string {
	var b strings.Builder
	for _, o := range study.Objectives {
		fmt.Fprintf(&b, "  metric     %s, %sd\n", o.ObjectiveMetricName, o.Type)
	}
	for _, name := range study.Metrics {
		fmt.Fprintf(&b, "  metric     %s\n", name)
	}
	for _, p := range study.Parameters {
		fmt.Fprintf(&b, "  parameter  %s\n", script.Form(p))
	}
	return b.String()
}

// ensure creates the experiment if it does not exist, and otherwise makes room for the trials.
func (o importOptions) ensure(ctx context.Context, c *client.Client, parent string, study *imported.Study, name string, errs io.Writer) (made bool, err error) {
	there, err := c.GetExperiment(ctx, &vernierv1.GetExperimentRequest{Name: parent})
	if err == nil {
		if err := o.sameSpace(there); err != nil {
			return false, err
		}
		leaveOut(study, there, errs)
		return false, o.grow(ctx, c, there, len(study.Trials))
	}
	if client.Reason(err) != "NOT_FOUND" {
		return false, err
	}
	text, err := json.Marshal(o.experiment(study, name).Spec)
	if err != nil {
		return false, err
	}
	spec := &structpb.Struct{}
	if err := spec.UnmarshalJSON(text); err != nil {
		return false, err
	}
	if _, err = c.CreateExperiment(ctx, &vernierv1.CreateExperimentRequest{Experiment: &vernierv1.Experiment{Name: parent, Spec: spec}}); err != nil {
		return false, fmt.Errorf("make experiment %s: %w", name, err)
	}
	return true, nil
}

// sameSpace refuses a -p that the experiment does not have: its space stays.
func (o importOptions) sameSpace(there *vernierv1.Experiment) error {
	text, err := there.GetSpec().MarshalJSON()
	if err != nil {
		return err
	}
	var spec v1beta1.ExperimentSpec
	if err := json.Unmarshal(text, &spec); err != nil {
		return err
	}
	for _, p := range o.Space {
		i := slices.IndexFunc(spec.Parameters, func(q v1beta1.ParameterSpec) bool { return q.Name == p.Name })
		if i < 0 {
			continue
		}
		has := spec.Parameters[i]
		if p.When == nil { // it was found in the file
			p.When = has.When
		}
		if script.Form(p) != script.Form(has) { // not what stands in them: admission fills in defaults
			return &exitError{exitConflict, fmt.Errorf("the experiment is there already, and its space stays: it has %s; give this import an EXPERIMENT of its own", script.Form(has))}
		}
	}
	return nil
}

// leaveOut takes away the values of metrics that the experiment does not have.
func leaveOut(study *imported.Study, there *vernierv1.Experiment, errs io.Writer) {
	has := there.GetSpec().GetFields()["objective"].GetStructValue().GetFields()["additionalMetricNames"].GetListValue().GetValues()
	for _, name := range study.Metrics {
		if slices.ContainsFunc(has, func(v *structpb.Value) bool { return v.GetStringValue() == name }) {
			continue
		}
		fmt.Fprintf(errs, "Warning: left out: the metric %s, which is not in additionalMetricNames of the experiment\n", name)
		for _, t := range study.Trials {
			delete(t.Values, name)
		}
	}
}

// grow raises the limit of an experiment that an import of fewer trials has filled, and
// waits until it goes on. An experiment with jobs takes no trials, and is left alone.
func (o importOptions) grow(ctx context.Context, c *client.Client, there *vernierv1.Experiment, trials int) error {
	limit, limited := there.GetSpec().GetFields()["maxTrialCount"]
	_, jobs := there.GetSpec().GetFields()["trialTemplate"]
	if jobs || !limited || int(limit.GetNumberValue()) >= trials || int(limit.GetNumberValue()) != int(there.GetTrials()) {
		return nil
	}
	room := &structpb.Struct{Fields: map[string]*structpb.Value{"maxTrialCount": structpb.NewNumberValue(float64(trials))}}
	_, err := c.UpdateExperiment(ctx, &vernierv1.UpdateExperimentRequest{
		Experiment: &vernierv1.Experiment{Name: there.GetName(), Spec: room, Etag: there.GetEtag()},
		UpdateMask: &fieldmaskpb.FieldMask{Paths: []string{"spec.max_trial_count"}},
	})
	if err != nil {
		return fmt.Errorf("make room for %d trials: %w", trials, err)
	}
	return wait.PollUntilContextTimeout(ctx, 200*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		now, err := c.GetExperiment(ctx, &vernierv1.GetExperimentRequest{Name: there.GetName()})
		return now.GetState() != vernierv1.Experiment_SUCCEEDED, err
	})
}

// experiment has the space and the objectives of a study, and room for its trials.
func (o importOptions) experiment(study *imported.Study, name string) *v1beta1.Experiment {
	count := int32(len(study.Trials))
	e := &v1beta1.Experiment{
		TypeMeta:   metav1.TypeMeta{APIVersion: v1beta1.GroupVersion.String(), Kind: "Experiment"},
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: v1beta1.ExperimentSpec{
			Parameters: study.Parameters, Algorithm: &v1beta1.AlgorithmSpec{AlgorithmName: o.algorithm},
			MaxTrialCount: &count, ResumePolicy: v1beta1.LongRunning,
		},
	}
	if first := study.Objectives[0]; len(study.Objectives) == 1 {
		e.Spec.Objective = &v1beta1.ObjectiveSpec{Type: first.Type, ObjectiveMetricName: first.ObjectiveMetricName}
	} else {
		e.Spec.Objectives = study.Objectives
	}
	if len(study.Metrics) > 0 {
		e.Spec.Objective = cmp.Or(e.Spec.Objective, &v1beta1.ObjectiveSpec{}) // of several, the first stands there
		e.Spec.Objective.AdditionalMetricNames = study.Metrics
	}
	return e
}

func importedOut(t imported.Trial) *vernierv1.ImportTrialsRequest_ImportedTrial {
	out := &vernierv1.ImportTrialsRequest_ImportedTrial{Id: t.ID, Parameters: map[string]*structpb.Value{}, Values: t.Values, State: vernierv1.Trial_FAILED}
	switch t.State {
	case v1beta1.TrialSucceeded:
		out.State = vernierv1.Trial_SUCCEEDED
	case v1beta1.TrialEarlyStopped:
		out.State = vernierv1.Trial_PRUNED
	}
	for name, value := range t.Params {
		out.Parameters[name] = structpb.NewStringValue(value)
	}
	if !t.Started.IsZero() {
		out.StartTime = timestamppb.New(t.Started)
	}
	if !t.Ended.Before(t.Started) && !t.Started.IsZero() { // not in the hour that autumn has twice
		out.EndTime = timestamppb.New(t.Ended)
	}
	for _, m := range t.Curve {
		out.Measurements = append(out.Measurements, &vernierv1.Measurement{Step: m.Step, Values: map[string]float64{m.Metric: m.Value}})
	}
	if len(t.Curve) == 0 && out.State == vernierv1.Trial_PRUNED && len(t.Values) > 0 {
		out.Measurements = []*vernierv1.Measurement{{Values: t.Values}} // of such a trial, what was reported counts
	}
	return out
}

var notInNames = regexp.MustCompile(`[^a-z0-9-]+`)

// studyName is a study's name, or that of its file, in the form of an experiment's.
func studyName(study, path string) string {
	if study == "" {
		study = strings.TrimSuffix(filepath.Base(path), filepath.Ext(path))
	}
	words := strings.Trim(notInNames.ReplaceAllString(strings.ToLower(study), "-"), "-")
	name := objectName(words)
	if words == "" || !strings.HasSuffix(name, words) { // it was cut, as others may be to the same
		sum := fnv.New32a()
		_, _ = sum.Write([]byte(study)) // never fails
		name = objectName(strings.TrimLeft(fmt.Sprintf("%.27s-%08x", words, sum.Sum32()), "-"))
	}
	return name
}

// api is a client of the programmatic API.
func (s *session) api() (*client.Client, error) {
	if s.home == "" {
		server, token := os.Getenv("VERNIER_SERVER"), os.Getenv("VERNIER_TOKEN")
		if server == "" || token == "" {
			return nil, errors.New("set VERNIER_SERVER to the address of the API, and VERNIER_TOKEN to a token of the cluster (docs/api.md)")
		}
		return client.New(server, token, nil), nil
	}
	home := local.Home(s.home)
	status, err := local.ReadStatus(home)
	if err != nil {
		return nil, err
	}
	token, err := os.ReadFile(home.APIToken())
	if err != nil {
		return nil, fmt.Errorf("read the token of the API: %w", err)
	}
	return client.New(status.API, strings.TrimSpace(string(token)), nil), nil
}
