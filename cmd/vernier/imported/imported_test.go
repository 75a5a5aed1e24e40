package imported

import (
	"database/sql"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/vernier-ml/vernier/api/v1beta1"
)

func write(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func read(t *testing.T, path string, o Options) *Study {
	t.Helper()
	s, err := Read(path, o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

var (
	succeeded = v1beta1.TrialSucceeded
	pruned    = v1beta1.TrialEarlyStopped
	failed    = v1beta1.TrialFailed
	lr        = v1beta1.ParameterSpec{Name: "lr", ParameterType: v1beta1.ParameterTypeDouble, FeasibleSpace: v1beta1.FeasibleSpace{Min: "0.01", Max: "0.5"}}
	opt       = v1beta1.ParameterSpec{Name: "opt", ParameterType: v1beta1.ParameterTypeCategorical, FeasibleSpace: v1beta1.FeasibleSpace{List: []string{"adam", "sgd"}}}
	momentum  = v1beta1.ParameterSpec{
		Name: "momentum", ParameterType: v1beta1.ParameterTypeDouble, FeasibleSpace: v1beta1.FeasibleSpace{Min: "0.5", Max: "0.9"},
		When: &v1beta1.ParameterCondition{Parameter: "opt", In: []string{"sgd"}},
	}
	loss = []v1beta1.ObjectiveMetric{{ObjectiveMetricName: "loss", Type: v1beta1.ObjectiveTypeMinimize}}
)

func same(t *testing.T, want, got *Study) {
	t.Helper()
	if diff := cmp.Diff(want, got, cmpopts.EquateEmpty(), cmpopts.EquateNaNs(), cmpopts.IgnoreUnexported(Study{})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestATableWithConditions(t *testing.T) {
	path := write(t, "old.csv", `trial,state,start,end,loss,lr,opt,param.momentum,layers
0,Succeeded,2026-01-02T03:04:05Z,2026-01-02T03:05:05Z,0.5,0.01,adam,,2
1,Failed,,,,0.5,sgd,0.5,2
2,Running,,,,0.1,sgd,0.9,2
3,EarlyStopped,,,nan,0.1,sgd,0.9,2
4,Succeeded,,,0.25,0.1,sgd,,2
`)
	start := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	layers := v1beta1.ParameterSpec{Name: "layers", ParameterType: v1beta1.ParameterTypeDiscrete, FeasibleSpace: v1beta1.FeasibleSpace{List: []string{"2"}}}
	unruled := momentum
	unruled.When = nil // trial 4 contradicts the rule, and is not known to be wrong
	got := read(t, path, Options{Minimize: []string{"loss"}})
	same(t, &Study{
		Parameters: []v1beta1.ParameterSpec{lr, opt, unruled, layers}, Objectives: loss,
		Trials: []Trial{
			{ID: "1", Params: map[string]string{"lr": "0.5", "opt": "sgd", "momentum": "0.5", "layers": "2"}, State: failed},
			{ID: "3", Params: map[string]string{"lr": "0.1", "opt": "sgd", "momentum": "0.9", "layers": "2"}, Values: map[string]float64{"loss": math.NaN()}, State: pruned},
		},
		Left: []string{"trial 0: no rule says when it has momentum", "trial 4: no rule says when it has momentum", "trial 2 has not ended"},
	}, got)

	path = write(t, "old.csv", "trial,start,end,loss,lr,opt,momentum\n0,2026-01-02T03:04:05Z,2026-01-02T03:05:05Z,0.5,0.01,adam,\n1,,,,0.5,sgd,0.5\n2,,,1,0.1,sgd,0.9\n")
	same(t, &Study{
		Parameters: []v1beta1.ParameterSpec{lr, opt, momentum}, Objectives: loss,
		Trials: []Trial{
			{ID: "0", Params: map[string]string{"lr": "0.01", "opt": "adam"}, Values: map[string]float64{"loss": 0.5}, State: succeeded, Started: start, Ended: start.Add(time.Minute)},
			{ID: "1", Params: map[string]string{"lr": "0.5", "opt": "sgd", "momentum": "0.5"}, State: failed},
			{ID: "2", Params: map[string]string{"lr": "0.1", "opt": "sgd", "momentum": "0.9"}, Values: map[string]float64{"loss": 1}, State: succeeded},
		},
	}, read(t, path, Options{Minimize: []string{"loss"}}))
}

// What vernier export and spreadsheets write besides plain cells.
func TestCellsOfATable(t *testing.T) {
	flags := v1beta1.ParameterSpec{Name: "opt", ParameterType: v1beta1.ParameterTypeCategorical, FeasibleSpace: v1beta1.FeasibleSpace{List: []string{"'s", "-O2"}}}
	want := &Study{
		Parameters: []v1beta1.ParameterSpec{flags}, Objectives: loss,
		Trials: []Trial{
			{ID: "a", Params: map[string]string{"opt": "-O2"}, Values: map[string]float64{"loss": 0.5}, State: succeeded},
			{ID: "b", Params: map[string]string{"opt": "'s"}, State: failed},
		},
	}
	for name, text := range map[string]string{
		"of an export":             "trial,name,state,loss,opt\n0,a,Succeeded,0.5,'-O2\n1,b,MetricsUnavailable,unavailable,'s\n",
		"with a mark of its bytes": "\ufeffname,loss,opt\na,0.5,-O2\nb,,'s\n",
		"with spaces":              "name, loss, opt\na, 0.5, -O2\nb, , 's\n",
		"with the index of pandas": ",name,loss,opt\n0,a,0.5,-O2\n1,b,,'s\n",
		"without some numbers":     "trial,name,loss,opt\n,a,0.5,-O2\n1,b,,'s\n",
	} {
		t.Run(name, func(t *testing.T) {
			same(t, want, read(t, write(t, "old.csv", text), Options{Minimize: []string{"loss"}}))
		})
	}
}

// Uniform search of what was chosen by its order of magnitude sees only the largest of it.
func TestScalesOfATable(t *testing.T) {
	for name, c := range map[string]struct {
		values string
		want   v1beta1.Distribution
	}{
		"learning rates":                     {"1e-5 0.08 0.002 0.0003", v1beta1.DistributionLogUniform},
		"two of them":                        {"0.0001 0.1", v1beta1.DistributionLogUniform},
		"powers of two":                      {"16 32 64 128 256 512 1024 2048", v1beta1.DistributionLogUniform},
		"a search that has gone to the best": {"1e-5 0.0007 0.01 0.051 0.052 0.053 0.054 0.055 0.08", v1beta1.DistributionLogUniform},
		"one decade":                         {"0.01 0.02 0.1", ""},
		"an even grid":                       {"0.001 0.2505 0.5 0.2505", ""},
		"1 to 300, evenly":                   {"1 45 80 133 177 210 254 300", ""},
		"with a zero":                        {"0 0.0001 0.1", ""},
		"words":                              {"1 100 adam", ""},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, observed("x", strings.Fields(c.values)).FeasibleSpace.Distribution); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestASpaceInPlaceOfWhatATableHas(t *testing.T) {
	path := write(t, "old.csv", "loss,lr,opt,momentum\n1,0.01,adam,\n2,0.5,sgd,0.5\n3,0.1,sgd,0.9\n")
	logLR, wide := lr, momentum
	logLR.FeasibleSpace = v1beta1.FeasibleSpace{Min: "1e-3", Max: "0.2", Distribution: v1beta1.DistributionLogUniform}
	wide.When, wide.FeasibleSpace.Max = nil, "0.99"
	got := read(t, path, Options{Minimize: []string{"loss"}, Space: []v1beta1.ParameterSpec{logLR, wide}})
	wide.When = momentum.When
	same(t, &Study{
		Parameters: []v1beta1.ParameterSpec{logLR, opt, wide}, Objectives: loss, Left: []string{"trial 1: its lr is 0.5, outside of what -p says: from 0.001 to 0.2"},
		Trials: []Trial{
			{ID: "0", Params: map[string]string{"lr": "0.01", "opt": "adam"}, Values: map[string]float64{"loss": 1}, State: succeeded},
			{ID: "2", Params: map[string]string{"lr": "0.1", "opt": "sgd", "momentum": "0.9"}, Values: map[string]float64{"loss": 3}, State: succeeded},
		},
	}, got)
}

// An experiment takes no trial with a value that its space does not have.
func TestTrialsOutsideOfAGivenSpaceAreLeftOut(t *testing.T) {
	path := write(t, "old.csv", "loss,x\n1,1\n2,2.0\n3,2.5\n4,9\n")
	for name, c := range map[string]struct {
		kind     v1beta1.ParameterType
		feasible v1beta1.FeasibleSpace
		want     []string
	}{
		"any number":    {v1beta1.ParameterTypeDouble, v1beta1.FeasibleSpace{Min: "1", Max: "9"}, []string{"0", "1", "2", "3"}},
		"whole numbers": {v1beta1.ParameterTypeInt, v1beta1.FeasibleSpace{Min: "1", Max: "8"}, []string{"0", "1"}},
		"steps":         {v1beta1.ParameterTypeDouble, v1beta1.FeasibleSpace{Min: "1", Max: "9", Step: "0.5"}, []string{"0", "1", "2", "3"}},
		"larger steps":  {v1beta1.ParameterTypeInt, v1beta1.FeasibleSpace{Min: "1", Max: "9", Step: "2"}, []string{"0", "3"}},
		"a list":        {v1beta1.ParameterTypeDiscrete, v1beta1.FeasibleSpace{List: []string{"1", "2"}}, []string{"0", "1"}},
	} {
		t.Run(name, func(t *testing.T) {
			space := []v1beta1.ParameterSpec{{Name: "x", ParameterType: c.kind, FeasibleSpace: c.feasible}}
			var got []string
			for _, trial := range read(t, path, Options{Minimize: []string{"loss"}, Space: space}).Trials {
				got = append(got, trial.ID)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// A row without an ID is not taken for one that has its number.
func TestRowsWithoutAnID(t *testing.T) {
	got := read(t, write(t, "old.csv", "trial,loss,lr\n1,0.5,0.01\n,0.25,0.5\n"), Options{Minimize: []string{"loss"}})
	if len(got.Trials) != 2 || got.Trials[0].ID != "1" || got.Trials[1].ID == "1" {
		t.Errorf("%+v", got.Trials)
	}
}

// A trial without a value of them is no less one of the study.
func TestMetricsThatAreNoObjectives(t *testing.T) {
	path := write(t, "old.csv", "loss,train_loss,lr\n0.5,0.25,0.01\n0.5,,0.5\n")
	same(t, &Study{
		Parameters: []v1beta1.ParameterSpec{lr}, Objectives: loss, Metrics: []string{"train_loss"},
		Trials: []Trial{
			{ID: "0", Params: map[string]string{"lr": "0.01"}, Values: map[string]float64{"loss": 0.5, "train_loss": 0.25}, State: succeeded},
			{ID: "1", Params: map[string]string{"lr": "0.5"}, Values: map[string]float64{"loss": 0.5}, State: succeeded},
		},
	}, read(t, path, Options{Minimize: []string{"loss"}, Metrics: []string{"train_loss"}}))
}

func TestAnExperimentOfKatib(t *testing.T) {
	const trial = `
- kind: Trial
  metadata: {name: random-NAME, namespace: kubeflow, ownerReferences: [{kind: Experiment, name: OWNER}]}
  spec: {parameterAssignments: [{name: lr, value: "0.03"}]}
  status:
    startTime: "2026-01-02T03:04:05Z"
    conditions: [{type: Created, status: "True"}, {type: STATE, status: "True"}]
    observation: {metrics: [{name: loss, min: "0.2", max: "0.9", latest: "0.3"}, {name: acc, min: "1", max: "2", latest: "1.5"}, {name: other, min: "1", max: "1", latest: "1"}]}`
	one := func(name, owner, state string) string {
		return strings.NewReplacer("NAME", name, "OWNER", owner, "STATE", state).Replace(trial)
	}
	path := write(t, "katib.yaml", `kind: List
items:
- kind: Experiment
  metadata: {name: random, namespace: kubeflow}
  spec:
    objective: {type: minimize, objectiveMetricName: loss, additionalMetricNames: [acc], metricStrategies: [{name: loss, value: latest}, {name: acc, value: max}]}
    parameters: [{name: lr, parameterType: double, feasibleSpace: {min: "0.01", max: "0.5"}}]
- kind: Experiment
  metadata: {name: other, namespace: kubeflow}
  spec: {objective: {type: minimize, objectiveMetricName: loss}}`+
		one("a", "random", "Succeeded")+one("b", "random", "Running")+one("c", "other", "Succeeded"))
	if _, err := Read(path, Options{}); err == nil || !strings.Contains(err.Error(), "--study") {
		t.Errorf("of two experiments: %v", err)
	}
	same(t, &Study{
		Name: "random", Parameters: []v1beta1.ParameterSpec{lr}, Objectives: loss, Metrics: []string{"acc"}, Left: []string{"trial random-b has not ended"},
		Trials: []Trial{{
			ID: "random-a", Params: map[string]string{"lr": "0.03"}, Values: map[string]float64{"loss": 0.3, "acc": 2}, State: succeeded,
			Started: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC).Local(),
		}},
	}, read(t, path, Options{Study: "random"}))
}

// The tables of Optuna's storage, as far as they are read.
const optunaTables = `
CREATE TABLE studies (study_id INTEGER, study_name TEXT);
CREATE TABLE study_directions (study_id INTEGER, direction TEXT, objective INTEGER);
CREATE TABLE study_system_attributes (study_id INTEGER, key TEXT, value_json TEXT);
CREATE TABLE trials (trial_id INTEGER, number INTEGER, study_id INTEGER, state TEXT, datetime_start DATETIME, datetime_complete DATETIME);
CREATE TABLE trial_params (param_id INTEGER, trial_id INTEGER, param_name TEXT, param_value FLOAT, distribution_json TEXT);
CREATE TABLE trial_values (trial_id INTEGER, objective INTEGER, value FLOAT, value_type TEXT);
CREATE TABLE trial_intermediate_values (trial_id INTEGER, step INTEGER, intermediate_value FLOAT, intermediate_value_type TEXT);
INSERT INTO studies VALUES (1, 'resnet'), (2, 'other');
INSERT INTO study_directions VALUES (1, 'MINIMIZE', 0), (2, 'MAXIMIZE', 0);
INSERT INTO study_system_attributes VALUES (1, 'study:metric_names', '["loss"]');
INSERT INTO trials VALUES (5, 0, 1, 'COMPLETE', '2026-01-02 03:04:05.500000', '2026-01-02 03:05:05.000000'), (6, 1, 1, 'PRUNED', NULL, NULL), (7, 2, 1, 'RUNNING', NULL, NULL), (9, 3, 1, 'WAITING', NULL, NULL), (8, 0, 2, 'COMPLETE', NULL, NULL);
INSERT INTO trial_params VALUES
 (1, 5, 'lr', 0.03, '{"name": "FloatDistribution", "attributes": {"step": null, "low": 0.01, "high": 0.25, "log": false}}'),
 (2, 6, 'lr', 0.5, '{"name": "UniformDistribution", "attributes": {"low": 0.02, "high": 0.5}}'),
 (3, 5, 'opt', 0, '{"name": "CategoricalDistribution", "attributes": {"choices": ["adam", "sgd"]}}'),
 (4, 6, 'opt', 1, '{"name": "CategoricalDistribution", "attributes": {"choices": ["adam", "sgd"]}}'),
 (5, 6, 'momentum', 0.7, '{"name": "FloatDistribution", "attributes": {"step": null, "low": 0.5, "high": 0.9, "log": false}}'),
 (6, 7, 'depth', 3, '{"name": "IntDistribution", "attributes": {"step": 1, "low": 1, "high": 4, "log": false}}');
INSERT INTO trial_values VALUES (5, 0, NULL, 'INF_POS'), (8, 0, 1, 'FINITE');
INSERT INTO trial_intermediate_values VALUES (6, 2, 0.5, 'FINITE'), (6, 1, NULL, 'NAN');
`

// A parameter that only a trial has which has not ended is not one of the space: nothing
// would tell when the others have it.
func TestAStudyOfOptuna(t *testing.T) {
	path := filepath.Join(t.TempDir(), "study 1%.db")
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := db.Exec(optunaTables); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := Read(path, Options{}); err == nil || !strings.Contains(err.Error(), "other, resnet") {
		t.Errorf("of two studies: %v", err)
	}
	start := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	same(t, &Study{
		Name: "resnet", Parameters: []v1beta1.ParameterSpec{lr, momentum, opt}, Objectives: loss, Left: []string{"2 trials have not ended: the same command later adds them"},
		Trials: []Trial{
			{ID: "0", Params: map[string]string{"lr": "0.03", "opt": "adam"}, Values: map[string]float64{"loss": math.Inf(1)}, State: succeeded,
				Started: start.Add(time.Second / 2), Ended: start.Add(time.Minute)},
			{ID: "1", Params: map[string]string{"lr": "0.5", "opt": "sgd", "momentum": "0.7"}, State: pruned,
				Curve: []Sample{{"loss", 1, math.NaN()}, {"loss", 2, 0.5}}},
		},
	}, read(t, path, Options{Study: "resnet"}))
}

func TestChoicesOfOptunaAreAsTheyWereWritten(t *testing.T) {
	var d distribution
	if err := json.Unmarshal([]byte(`{"name": "CategoricalDistribution", "attributes": {"choices": [1000000, null, true, 1e-05, "a \"b\"", 0.5]}}`), &d); err != nil {
		t.Fatal(err)
	}
	p, err := d.spec("x")
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"1000000", "null", "true", "1e-05", `a "b"`, "0.5"}
	if diff := cmp.Diff(want, p.FeasibleSpace.List); diff != "" {
		t.Errorf("the space (-want +got):\n%s", diff)
	}
	for i, text := range want {
		if got, err := d.value(float64(i)); got != text || err != nil {
			t.Errorf("choice %d is %q, %v, want %q", i, got, err, text)
		}
	}
}

func TestLargeWholeNumbersStayWhole(t *testing.T) {
	var d distribution
	if err := json.Unmarshal([]byte(`{"name": "IntDistribution", "attributes": {"step": 500000, "low": 1000000, "high": 3000000, "log": false}}`), &d); err != nil {
		t.Fatal(err)
	}
	p, err := d.spec("x")
	if err != nil {
		t.Fatal(err)
	}
	want := v1beta1.FeasibleSpace{Min: "1000000", Max: "4000000", Step: "500000"}
	wider := p
	wider.FeasibleSpace.Max = "4000000"
	if diff := cmp.Diff(want, widest(p, wider).FeasibleSpace); diff != "" {
		t.Errorf("the space of a study (-want +got):\n%s", diff)
	}
	if got, err := d.value(1500000); got != "1500000" || err != nil {
		t.Errorf("a value of a study is %q, %v", got, err)
	}
	want.Step = ""
	if diff := cmp.Diff(want, observed("x", []string{"4000000", "1000000"}).FeasibleSpace); diff != "" {
		t.Errorf("the space of a table (-want +got):\n%s", diff)
	}
}

func TestWhatCannotBeReadSaysWhy(t *testing.T) {
	cases := map[string]struct {
		name, text string
		o          Options
		says       string
	}{
		"a table without a metric":     {"a.csv", "lr,loss\n1,2\n", Options{}, "--minimize"},
		"a metric that is no column":   {"a.csv", "lr,loss\n1,2\n", Options{Minimize: []string{"los"}}, `"los"`},
		"a metric that is no number":   {"a.csv", "lr,loss\n1,x\n", Options{Minimize: []string{"loss"}}, "row 2"},
		"an empty table":               {"a.csv", "", Options{Minimize: []string{"loss"}}, "empty"},
		"no trial":                     {"a.csv", "lr,loss\n", Options{Minimize: []string{"loss"}}, "no trial"},
		"no database":                  {"a.db", "hello", Options{}, "no storage of Optuna"},
		"a table that is no .csv":      {"a.tsv", "lr\tloss\n1\t2\n", Options{Minimize: []string{"loss"}}, "name ends in .csv"},
		"no experiment":                {"a.yaml", "kind: List\nitems: []", Options{}, "kubectl get"},
		"a trial twice":                {"a.csv", "name,lr,loss\na,1,2\nb,1,2\na,2,2\n", Options{Minimize: []string{"loss"}}, `rows 2 and 4 are both trial "a"`},
		"a parameter that is none":     {"a.csv", "lr,loss\n1,2\n", Options{Minimize: []string{"loss"}, Space: []v1beta1.ParameterSpec{{Name: "rate"}}}, "-p rate: the trials have no such parameter, but lr"},
		"a range that is none":         {"a.csv", "lr,loss\n1,2\n", Options{Minimize: []string{"loss"}, Space: []v1beta1.ParameterSpec{{Name: "lr", ParameterType: v1beta1.ParameterTypeDouble, FeasibleSpace: v1beta1.FeasibleSpace{Min: "1", Max: "0"}}}}, "-p parameter \"lr\": min 1 is above max 0"},
		"a parameter twice":            {"a.csv", "lr,loss\n1,2\n", Options{Minimize: []string{"loss"}, Space: []v1beta1.ParameterSpec{lr, lr}}, "-p lr is given twice"},
		"a row that has too few cells": {"a.csv", "lr,loss\n1\n", Options{Minimize: []string{"loss"}}, "fields"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := Read(write(t, c.name, c.text), c.o)
			if err == nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("%v does not say %q", err, c.says)
			}
		})
	}
	if _, err := Read(filepath.Join(t.TempDir(), "absent.db"), Options{}); !os.IsNotExist(err) && (err == nil || !strings.Contains(err.Error(), "no such file")) {
		t.Errorf("an absent file: %v", err)
	}
}
