package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	kruntime "k8s.io/apimachinery/pkg/runtime"

	"github.com/vernier-ml/vernier/api/v1beta1"
	"github.com/vernier-ml/vernier/cmd/vernier/script"
)

// scriptOptions are the flags of `vernier run PROGRAM`.
type scriptOptions struct {
	parameters []string
	objectives objectivesFlag
	additional []string // metrics
	// constraints are texts such as latency <= 10.
	constraints []string
	goal        float64
	spec        script.Spec
	parallel    int32 // as given; the spec has no more than trials
	settings    []string
	ofStopping  []string // settings of the stopping rule
	env         []string
	pass        string
	seed        int64
	duration    time.Duration
	perTrial    time.Duration
	gpuHours    float64
	probe       bool
	dryRun      bool
	output      string
	flags       *pflag.FlagSet
}

// objectivesFlag collects --minimize and --maximize in the order in which they are
// given: the first metric is the main one.
type objectivesFlag []v1beta1.ObjectiveMetric

type objectiveFlag struct {
	all  *objectivesFlag
	kind v1beta1.ObjectiveType
}

func (f objectiveFlag) String() string { return "" }
func (f objectiveFlag) Type() string   { return "METRIC" }
func (f objectiveFlag) Set(text string) error {
	for name := range strings.SplitSeq(text, ",") {
		if name = strings.TrimSpace(name); name == "" {
			return fmt.Errorf("write the name of a metric, or several with commas between them")
		}
		*f.all = append(*f.all, v1beta1.ObjectiveMetric{ObjectiveMetricName: name, Type: f.kind})
	}
	return nil
}

const defaultTrials = 20

func (o *scriptOptions) addFlags(cmd *cobra.Command) {
	f := cmd.Flags()
	o.flags = f
	f.StringArrayVarP(&o.parameters, "param", "p", nil, "parameter of the search, as NAME=FORM: "+script.Forms+"; with a condition: 'momentum=uniform(0,0.9) if opt=sgd'; NAME alone takes the proposal of --probe; may be repeated")
	f.Var(objectiveFlag{&o.objectives, v1beta1.ObjectiveTypeMinimize}, "minimize", "metric to make small; several have commas between them")
	f.Var(objectiveFlag{&o.objectives, v1beta1.ObjectiveTypeMaximize}, "maximize", "metric to make large; several have commas between them")
	f.StringSliceVar(&o.additional, "metric", nil, "another metric to keep, with its curve, which does not count; may be repeated")
	f.StringArrayVar(&o.constraints, "constraint", nil, "what a trial must keep to: a bound on a metric ('latency <= 10'), or a condition on parameters ('layers * batch <= 512'); may be repeated")
	f.Float64Var(&o.goal, "goal", 0, "end when the first metric has reached this value")
	f.Int32VarP(&o.spec.Trials, "max-trials", "n", defaultTrials, "how many trials there are in all; a higher number goes on")
	f.Int32VarP(&o.parallel, "parallel", "j", int32(max(runtime.NumCPU()/2, 1)), "how many trials run at a time (default: as many as have GPUs, or half of the cores)")
	f.StringVar(&o.spec.Name, "name", "", "name of the experiment (default: that of the program)")
	f.StringVar(&o.spec.Algorithm, "algorithm", "auto", "algorithm of the search: see vernier optimize --list")
	f.StringArrayVar(&o.settings, "setting", nil, "setting of the algorithm, as name=value; may be repeated. resource_name=epochs: the parameter epochs says how long a trial trains, and most trials are to be short")
	f.StringVar(&o.spec.Stopping.AlgorithmName, "stopping", "", "rule that stops hopeless trials early, such as medianstop: see vernier optimize --list")
	f.StringArrayVar(&o.ofStopping, "stopping-setting", nil, "setting of the stopping rule, as name=value, such as r_max=27 for asha; may be repeated")
	f.StringSliceVar(&o.spec.WarmStart, "warm-start", nil, "experiment whose results the search begins with, as of the same program before it was changed; may be repeated")
	f.Int64Var(&o.seed, "seed", 0, "makes the proposals reproducible")
	choiceFlag(cmd, &o.pass, "pass", "", "how the program gets parameters: flags (--lr=0.1), assignments (lr=0.1), env (VERNIER_PARAM_LR) or file (JSON, named by VERNIER_PARAMS_FILE); {lr} in its arguments is replaced in any case", "auto", "flags", "assignments", "env", "file")
	f.StringArrayVarP(&o.env, "env", "e", nil, "variable of the trials, as NAME=VALUE, or NAME to pass on the one of this shell; may be repeated. Values are kept in the Experiment, for everyone who may read it: no secrets")
	f.StringVar(&o.spec.Metrics, "metrics", "text", "where metrics are: text (NAME=VALUE in the output), json or logfmt (lines of the output), tensorboard:DIR, or a file")
	f.StringArrayVar(&o.spec.Filters, "filter", nil, "regular expression with two groups, name and value, for metrics in text; may be repeated")
	f.IntVar(&o.spec.GPUs, "gpus", 0, "GPUs of each trial (default: 1 where the machine has GPUs)")
	f.Int32Var(&o.spec.Retry, "retry", 0, "how many times a failed trial is run again")
	f.DurationVar(&o.duration, "max-duration", 0, "end the experiment after this time")
	f.DurationVar(&o.perTrial, "max-trial-duration", 0, "a trial that runs longer fails")
	f.Float64Var(&o.gpuHours, "max-gpu-hours", 0, "end the experiment when its trials have used so many hours of GPUs")
	f.BoolVar(&o.probe, "probe", false, "run the program once as it is, and show its flags, its metrics, and a search that they suggest")
	f.BoolVar(&o.dryRun, "dry-run", false, "print the experiment, and run nothing")
	choiceFlag(cmd, &o.output, "output", "o", "with --dry-run: yaml or json", "yaml", "json")
}

// onlyForPrograms are errors about flags that a file has in itself.
func (o *scriptOptions) onlyForPrograms() error {
	var wrong error
	o.flags.Visit(func(f *pflag.Flag) {
		if slices.Contains([]string{"param", "minimize", "maximize", "metric", "constraint", "goal", "max-trials", "parallel", "name", "algorithm", "setting", "stopping", "stopping-setting", "warm-start", "seed", "pass", "env", "metrics", "filter", "gpus", "retry", "max-duration", "max-trial-duration", "max-gpu-hours", "probe", "dry-run"}, f.Name) {
			wrong = usageErrorf("--%s is for vernier run PROGRAM: with -f, the file says it (the namespace is --namespace, without a short form)", f.Name)
		}
	})
	return wrong
}

// program is the command that args name: a Python script, anything executable, or,
// all after "--", a whole command line.
func program(args []string, getenv func(string) string) ([]string, error) {
	name, rest := args[0], args[1:]
	info, err := os.Stat(name)
	switch {
	case err == nil && info.IsDir():
		return nil, usageErrorf("%s is a directory: name the program", name)
	case err == nil && strings.HasSuffix(name, ".py"):
		python, err := interpreter(getenv)
		if err != nil {
			return nil, err
		}
		return append([]string{python, name}, rest...), nil
	case err == nil && info.Mode()&0o111 != 0 && (filepath.Base(name) != name || !onPath(name)):
		path, err := filepath.Abs(name)
		return append([]string{path}, rest...), err
	case err == nil && info.Mode()&0o111 == 0:
		return nil, usageErrorf("%s is not executable: chmod +x %s, or write its interpreter: vernier run -- sh %s", name, name, name)
	}
	path, err := exec.LookPath(name)
	if err != nil {
		return nil, notFoundErrorf("there is no program %s, neither here nor on the PATH", name)
	}
	if path, err = filepath.Abs(path); err != nil {
		return nil, err
	}
	return append([]string{path}, rest...), nil
}

func onPath(name string) bool {
	_, err := exec.LookPath(name)
	return err == nil
}

// interpreter is the Python of the virtual environment, or of the PATH. Its link is
// not followed: that is how Python finds the environment.
func interpreter(getenv func(string) string) (string, error) {
	for _, root := range []string{getenv("VIRTUAL_ENV"), getenv("CONDA_PREFIX")} {
		path := filepath.Join(root, "bin", "python")
		if info, err := os.Stat(path); root != "" && err == nil && !info.IsDir() {
			return path, nil
		}
	}
	for _, name := range []string{"python3", "python"} {
		if path, err := exec.LookPath(name); err == nil {
			return filepath.Abs(path)
		}
	}
	return "", notFoundErrorf("there is no python3 on the PATH: write the interpreter, as in vernier run -- /path/to/python train.py")
}

// carried are the variables of the caller's shell by which a program finds what it
// needs. The others stay behind: an Experiment can be read by others.
var carried = []string{"PATH", "VIRTUAL_ENV", "CONDA_PREFIX", "CONDA_DEFAULT_ENV", "PYTHONPATH", "PYTHONHOME", "LD_LIBRARY_PATH"}

func (o *scriptOptions) environment(python bool, getenv func(string) string) ([]corev1.EnvVar, error) {
	var out []corev1.EnvVar
	set := func(name, value string) {
		out = slices.DeleteFunc(out, func(e corev1.EnvVar) bool { return e.Name == name })
		out = append(out, corev1.EnvVar{Name: name, Value: strings.ReplaceAll(value, "$", "$$")})
	}
	for _, name := range carried {
		if value := getenv(name); value != "" {
			set(name, value)
		}
	}
	if python {
		set("PYTHONUNBUFFERED", "1") // so that curves are live
	}
	for _, text := range o.env {
		name, value, given := strings.Cut(text, "=")
		if !given {
			value = getenv(name)
		}
		if name == "" || !given && value == "" {
			return nil, usageErrorf("-e %s: write NAME=VALUE, or the name of a variable that is set here", text)
		}
		set(name, value)
	}
	return out, nil
}

var notInLabel = regexp.MustCompile(`[^a-z0-9]+`)

// experimentName is the program's name as that of an object: "train" of
// "/usr/bin/python3 src/train.py", or of "python -m lab.train".
func experimentName(argv []string) string {
	name := argv[0]
	if strings.HasPrefix(filepath.Base(name), "python") {
		for i, word := range argv[1:] {
			if strings.HasSuffix(word, ".py") || i > 0 && argv[i] == "-m" {
				name = word
				break
			}
		}
		if dot := strings.LastIndex(name, "."); dot > 0 && !strings.HasSuffix(name, ".py") {
			name = name[dot+1:]
		}
	}
	name = strings.TrimSuffix(filepath.Base(name), filepath.Ext(filepath.Base(name)))
	return objectName(strings.Trim(notInLabel.ReplaceAllString(strings.ToLower(name), "-"), "-"))
}

// objectName makes lower case letters, digits and "-" the name of an experiment: it begins
// with a letter, and has at most 40 characters.
func objectName(words string) string {
	if words == "" || words[0] <= '9' {
		words = strings.Trim("run-"+words, "-")
	}
	return strings.TrimRight(words[:min(len(words), 40)], "-")
}

// fill completes the spec from the flags and the environment.
func (o *scriptOptions) fill(argv []string, getenv func(string) string) (err error) {
	s := &o.spec
	s.Argv = argv
	if s.Dir, err = os.Getwd(); err != nil {
		return err
	}
	if err := o.methods(); err != nil {
		return err
	}
	python := strings.HasPrefix(filepath.Base(argv[0]), "python")
	if s.Env, err = o.environment(python, getenv); err != nil {
		return err
	}
	if s.Name == "" {
		s.Name = experimentName(argv)
	}
	if err := o.checkLimits(); err != nil {
		return err
	}
	s.Parallel = min(o.parallel, s.Trials)
	s.Objectives = o.objectives
	s.Additional = o.otherMetrics()
	if o.flags.Changed("goal") && len(s.Objectives) > 0 {
		s.Objectives[0].Goal = &o.goal
	}
	if o.flags.Changed("seed") {
		s.Seed = &o.seed
	}
	if o.duration > 0 {
		s.Duration = &metav1.Duration{Duration: o.duration}
	}
	if o.perTrial > 0 {
		s.PerTrial = &metav1.Duration{Duration: o.perTrial}
	}
	if o.flags.Changed("max-gpu-hours") {
		s.GPUHours = &o.gpuHours
	}
	return nil
}

// space reads the parameters, and compares them with the program's flags where it
// gets them as such.
func (o *scriptOptions) space(ctx context.Context) error {
	s := &o.spec
	bare := slices.ContainsFunc(o.parameters, func(p string) bool { return !strings.Contains(p, "=") })
	s.Pass = script.Passing(o.pass)
	var err error
	if s.Pass != script.AsEnvironment && s.Pass != script.AsFile || bare {
		// The program is in a process group of its own, which Ctrl-C does not reach.
		left := func(sig os.Signal) error {
			return &exitError{signalCode(sig), fmt.Errorf("left on %s while the program was asked for its flags", sig)}
		}
		asking, release := onSignals(ctx, left, func(context.Context, os.Signal) bool { return true })
		s.Flags, err = script.Detect(asking, s.Argv, bare || len(o.parameters) == 0)
		cause := context.Cause(asking)
		release(nil)
		if cause != nil && ctx.Err() == nil {
			return cause
		}
		if err != nil {
			return usageErrorf("%w", err)
		}
	}
	if o.pass == "auto" {
		s.Pass = script.AsFlags
		if s.Flags.Source == script.FromHydra {
			s.Pass = script.AsAssignments
		}
	}
	for _, text := range o.parameters {
		p, err := o.parameter(text)
		if err != nil {
			return usageErrorf("%w", err)
		}
		s.Parameters = append(s.Parameters, p)
	}
	if err := o.constrain(); err != nil {
		return err
	}
	if s.Pass != script.AsFlags && s.Pass != script.AsAssignments || s.Flags.Source == "" {
		return nil
	}
	for _, p := range s.Flagged() {
		if err := s.Flags.Check(p); err != nil {
			return usageErrorf("%w", err)
		}
		if f, _ := s.Flags.Flag(p.Name); f.GivenIn(s.Argv) {
			return usageErrorf("-p %s: %s is among the program's arguments too, and only one of them can count: leave one out", p.Name, f.Option)
		}
	}
	if missing := s.Flags.Missing(s.Parameters, s.Argv); len(missing) > 0 && len(s.Parameters) > 0 {
		return usageErrorf("the program needs %s too: give it after --, as in -- %s=VALUE", strings.Join(missing, " and "), missing[0])
	}
	if missing := s.Flags.MissingWords(s.Argv); len(missing) > 0 && len(s.Parameters) > 0 {
		return usageErrorf("the program needs an argument %s too: give it after --, as in -- %s", strings.Join(missing, " and "), strings.ToUpper(strings.Join(missing, " ")))
	}
	return nil
}

func (o *scriptOptions) parameter(text string) (v1beta1.ParameterSpec, error) {
	if strings.Contains(text, "=") {
		return script.ParseParameter(text)
	}
	f, found := o.spec.Flags.Flag(text)
	propose := script.Propose
	if slices.Contains(o.settings, "resource_name="+text) {
		propose = script.Length
	}
	if p, ok := propose(f); found && ok {
		p.Name = text
		return p, nil
	}
	return script.ParseParameter(text) // its error says what to write
}

// experiment is the object of the command line.
func (o *scriptOptions) experiment(ctx context.Context, argv []string, getenv func(string) string) (*unstructured.Unstructured, error) {
	if err := o.fill(argv, getenv); err != nil {
		return nil, err
	}
	if err := o.space(ctx); err != nil {
		return nil, err
	}
	switch {
	case len(o.spec.Parameters) == 0:
		return nil, usageErrorf("say what to search with -p, as in -p 'lr=log(1e-5,1e-1)'%s", o.suggestion())
	case len(o.spec.Objectives) == 0:
		return nil, usageErrorf("say which metric counts: --minimize loss, or --maximize accuracy. vernier run --probe shows which the program prints")
	}
	return o.object()
}

func (o *scriptOptions) object() (*unstructured.Unstructured, error) {
	e, err := o.spec.Experiment()
	if err != nil {
		return nil, &exitError{exitInvalid, err}
	}
	object, err := kruntime.DefaultUnstructuredConverter.ToUnstructured(e)
	if err != nil {
		return nil, fmt.Errorf("write the experiment: %w", err)
	}
	delete(object, "status")
	return &unstructured.Unstructured{Object: object}, nil
}

// adopt lets a command line go on with the experiment that it made before. The
// template stays that of the experiment: it holds what the shell was then.
func adopt(there *v1beta1.Experiment, here *unstructured.Unstructured) error {
	var mine v1beta1.Experiment
	if err := kruntime.DefaultUnstructuredConverter.FromUnstructured(here.Object, &mine); err != nil {
		return fmt.Errorf("read the experiment: %w", err)
	}
	differ, err := script.Differences(there, &mine)
	if err != nil {
		return err
	}
	if len(differ) > 0 {
		return &exitError{exitConflict, fmt.Errorf("there is an experiment %s already, of another search:\n  %s\nto go on with it, run it as it was; else give this one a --name of its own, or delete the other with --replace", there.Name, strings.Join(differ, "\n  "))}
	}
	mine.Spec.TrialTemplate = there.Spec.TrialTemplate
	spec, err := kruntime.DefaultUnstructuredConverter.ToUnstructured(&mine)
	if err != nil {
		return fmt.Errorf("write the experiment: %w", err)
	}
	here.Object["spec"] = spec["spec"]
	return nil
}
