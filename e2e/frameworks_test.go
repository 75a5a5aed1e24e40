//go:build e2e

package e2e

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/vernier-ml/vernier/collector"
	"github.com/vernier-ml/vernier/collector/parse"
	"github.com/vernier-ml/vernier/collector/probe"
)

const (
	// envFrameworks names the frameworks that are tried, parted by spaces, and
	// envFrameworksPython a Python that has them; `make e2e-frameworks` sets both.
	envFrameworks       = "VERNIER_FRAMEWORKS"
	envFrameworksPython = "VERNIER_FRAMEWORKS_PYTHON"
	// smallFrameworks are those that are tried without, and smallPackages what they
	// are installed as: without the libraries for GPUs.
	smallFrameworks = "tqdm xgboost lightgbm catboost"
	smallPackages   = "tqdm xgboost-cpu lightgbm catboost"
)

// training is a case of testdata/frameworks.py.
type training struct {
	framework string
	metrics   []string
	// row begins the row of docs/collectors-text.md that says how it is read.
	row string
	// file is what is read in place of the output, below the directory.
	file, format string
}

// The rows of the documentation.
const (
	plainRow = "Lightning, tqdm"
	colonRow = "Keras, PyTorch's tutorials, MMEngine, CatBoost"
	dictRow  = "Hugging Face's Trainer"
)

var trainings = map[string]training{
	"tqdm":             {framework: "tqdm", row: plainRow, metrics: []string{"loss", "score"}},
	"tqdm_epochs":      {framework: "tqdm", row: plainRow, metrics: []string{"train/loss"}},
	"xgboost":          {framework: "xgboost", row: "XGBoost", metrics: []string{"eval-rmse", "eval-mape", "train-rmse", "train-mape"}},
	"xgboost_rank":     {framework: "xgboost", row: "XGBoost", metrics: []string{"eval-ndcg@3", "eval-error@0.7"}},
	"xgboost_cv":       {framework: "xgboost", row: "XGBoost", metrics: []string{"test-rmse"}},
	"lightgbm":         {framework: "lightgbm", row: "LightGBM", metrics: []string{"valid_0's l2", "valid_0's mape", "train's l2", "train's mape"}},
	"lightgbm_rank":    {framework: "lightgbm", row: "LightGBM", metrics: []string{"valid_0's ndcg@3"}},
	"catboost":         {framework: "catboost", row: colonRow, metrics: []string{"test", "learn"}},
	"pytorch":          {framework: "torch", row: colonRow, metrics: []string{"loss", "Accuracy"}},
	"pytorch_exponent": {framework: "torch", row: colonRow, metrics: []string{"loss"}},
	"keras":            {framework: "keras", row: colonRow, metrics: []string{"loss", "val_loss", "val_mae"}},
	"keras_lines":      {framework: "keras", row: colonRow, metrics: []string{"loss", "val_loss", "val_mae"}},
	"keras2":           {framework: "tf_keras", row: colonRow, metrics: []string{"loss", "val_loss", "val_mae"}},
	"keras2_lines":     {framework: "tf_keras", row: colonRow, metrics: []string{"loss", "val_loss", "val_mae"}},
	"lightning":        {framework: "lightning", row: plainRow, metrics: []string{"val_loss"}},
	"lightning_csv":    {framework: "lightning", file: "lightning_logs", metrics: []string{"val_loss"}},
	"transformers":     {framework: "transformers", row: dictRow, metrics: []string{"loss", "eval_loss"}},
	"accelerate":       {framework: "accelerate", row: dictRow, metrics: []string{"mse", "negative"}},
	"mmengine":         {framework: "mmengine", row: colonRow, metrics: []string{"test/mse"}},
	"fastai":           {framework: "fastai", file: "history.csv", metrics: []string{"valid_loss", "mae"}},
	"ultralytics":      {framework: "ultralytics", file: "runs/train/results.csv", metrics: []string{"val/box_loss", "metrics/mAP50-95(B)"}},
	"wandb":            {framework: "wandb", file: "wandb", metrics: []string{"loss", "score"}},
}

// fact is a value that a training knows, as testdata/frameworks.py writes it.
type fact struct {
	metric           string
	step             *int64
	value, tolerance float64
}

// UnmarshalJSON implements json.Unmarshaler.
func (f *fact) UnmarshalJSON(data []byte) error {
	return json.Unmarshal(data, &[]any{&f.metric, &f.step, &f.value, &f.tolerance})
}

// TestWhatFrameworksPrintIsReadAsDocumented has each framework train for a moment.
// What is read with the filter that the documentation gives is what the training
// knew.
func TestWhatFrameworksPrintIsReadAsDocumented(t *testing.T) {
	python, wanted := os.Getenv(envFrameworksPython), strings.Fields(cmp.Or(os.Getenv(envFrameworks), smallFrameworks))
	if python == "" {
		python = pythonWith(t, smallPackages)
	}
	for _, framework := range wanted {
		tried := false
		for name, c := range trainings {
			if c.framework == framework {
				tried = true
				t.Run(name, func(t *testing.T) { c.run(t, python, name) })
			}
		}
		if !tried {
			t.Errorf("there is no training with %s", framework)
		}
	}
}

func (c training) run(t *testing.T, python, name string) {
	dir, output := t.TempDir(), &bytes.Buffer{}
	argv := []string{python, "testdata/frameworks.py", name, dir}
	target := probe.Target(&probe.Command{Argv: argv, Stdout: output, Stderr: output})
	if c.file == "" {
		target.(*probe.Command).Filters = documentedFilter(t, c.row)
	} else {
		out, err := exec.CommandContext(t.Context(), argv[0], argv[1:]...).CombinedOutput()
		output.Write(out)
		if err == nil {
			target, err = probe.Open(probe.Config{Path: filepath.Join(dir, c.file), Format: c.format})
		}
		if err != nil {
			t.Fatalf("%v\n%s", err, output)
		}
	}
	read, troubles := c.read(t, target)
	var facts []fact
	if data, err := os.ReadFile(filepath.Join(dir, "known.json")); err != nil {
		t.Fatalf("%v\n%s", err, output)
	} else if err := json.Unmarshal(data, &facts); err != nil {
		t.Fatal(err)
	}
	c.compare(t, facts, read)
	if run, ok := target.(*probe.Command); ok && isItems(run.Filters) {
		log := filepath.Join(dir, "output.log")
		if err := os.WriteFile(log, output.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
		without, err := probe.Open(probe.Config{Path: log, Format: parse.FormatText})
		if err != nil {
			t.Fatal(err)
		}
		late, _ := c.read(t, without)
		c.compare(t, facts, late)
	}
	if len(troubles) > 0 {
		t.Errorf("troubles: %q", troubles)
	}
	if t.Failed() {
		t.Logf("the output:\n%s", output)
	}
}

// isItems reports whether what filters find is read without them, when a program ends.
func isItems(filters []string) bool {
	return len(filters) == 1 && (filters[0] == parse.ColonFilter || filters[0] == parse.DictFilter)
}

// compare says where what was read is not what the training knew.
func (c training) compare(t *testing.T, facts []fact, read map[string][]collector.Point) {
	t.Helper()
	for _, metric := range c.metrics {
		known := slices.DeleteFunc(slices.Clone(facts), func(f fact) bool { return f.metric != metric })
		if problem := differ(known, read[metric]); problem != "" {
			t.Errorf("%s: %s", metric, problem)
		}
	}
}

// read returns all points that the collector's own readers find.
func (c training) read(t *testing.T, target probe.Target) (points map[string][]collector.Point, troubles []string) {
	t.Helper()
	if _, _, err := target.Names(t.Context()); err != nil {
		t.Fatal(err)
	}
	source, err := target.Source(c.metrics)
	if err != nil {
		t.Fatal(err)
	}
	points = map[string][]collector.Point{}
	for p, err := range source.Points(t.Context()) {
		if err != nil {
			troubles = append(troubles, err.Error())
			continue
		}
		points[p.Metric] = append(points[p.Metric], p)
	}
	var report probe.Report
	target.Describe(&report)
	if report.ExitCode != nil && *report.ExitCode != 0 {
		t.Errorf("exit code %d", *report.ExitCode)
	}
	return points, troubles
}

// differ says where what was read is not what was known. A value that is printed
// again, and one that a later one of its step replaces, as in a progress bar, does
// not count.
func differ(known []fact, read []collector.Point) string {
	if len(known) == 0 {
		return "the training knows nothing of it"
	}
	stepless := known[0].step == nil
	var last []collector.Point
	for i, p := range read {
		if i+1 < len(read) && (stepless && p.Value == read[i+1].Value || !stepless && p.Step == read[i+1].Step) {
			continue
		}
		last = append(last, p)
	}
	if len(last) != len(known) {
		return fmt.Sprintf("%d values were read, want %d: %s", len(last), len(known), shown(last))
	}
	for i, f := range known {
		p := last[i]
		if f.step != nil && p.Step != *f.step || !(math.Abs(p.Value-f.value) <= f.tolerance) {
			return fmt.Sprintf("value %d is %s, want %v; all: %s", i+1, shown(last[i:i+1]), f, shown(last))
		}
	}
	return ""
}

func shown(points []collector.Point) string {
	var b strings.Builder
	for _, p := range points {
		fmt.Fprintf(&b, " %v@%d", p.Value, p.Step)
	}
	return b.String()
}

// String is for messages.
func (f fact) String() string {
	step := "any"
	if f.step != nil {
		step = fmt.Sprint(*f.step)
	}
	return fmt.Sprintf("%v@%s within %v", f.value, step, f.tolerance)
}

var (
	filterRow  = regexp.MustCompile("(?m)^\\| ([^\n]*?) \\| (none|the first|the second|`[^\n]*?`)[^|\n]* \\| [^|\n]* \\|$")
	yamlFilter = regexp.MustCompile(`metricsFormat: \['((?:[^']|'')*)'\]`)
)

// documentedFilter is the filter that the table of docs/collectors-text.md gives
// for a program: none, or the first or second of the page, or one of its own.
func documentedFilter(t *testing.T, row string) []string {
	t.Helper()
	page, err := os.ReadFile("../docs/collectors-text.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range filterRow.FindAllSubmatch(page, -1) {
		if !strings.HasPrefix(string(m[1]), row) {
			continue
		}
		page := yamlFilter.FindAllSubmatch(page, -1)
		switch filter := string(m[2]); filter {
		case "none":
			return nil
		case "the first":
			return []string{string(page[0][1])}
		case "the second":
			return []string{string(page[1][1])}
		default:
			return []string{strings.ReplaceAll(strings.Trim(filter, "`"), `\|`, "|")}
		}
	}
	t.Fatalf("docs/collectors-text.md has no row for %s", row)
	return nil
}
