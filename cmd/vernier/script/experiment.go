package script

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/vernier-ml/vernier/api/v1beta1"
	"github.com/vernier-ml/vernier/controllers/study"
)

// Passing says how a program gets its parameters. A parameter that is a macro in the
// arguments is passed there and nowhere else.
type Passing string

// The ways to pass parameters.
const (
	// AsFlags appends --lr=0.1.
	AsFlags Passing = "flags"
	// AsAssignments appends lr=0.1, as Hydra reads it.
	AsAssignments Passing = "assignments"
	// AsEnvironment sets VERNIER_PARAM_LR.
	AsEnvironment Passing = "env"
	// AsFile writes a JSON object to the file that VERNIER_PARAMS_FILE names.
	AsFile Passing = "file"
)

const (
	// Annotation of an experiment that a command line made. It is what a later command
	// line is compared with.
	Annotation = "vernier.ml/script"
	// paramsFolder is where a trial has the file of its parameters.
	paramsFolder = "/tmp/vernier-params"
	container    = "training"
)

// Spec is what a command line asks for.
type Spec struct {
	Name       string
	Parameters []v1beta1.ParameterSpec
	Objectives []v1beta1.ObjectiveMetric
	Additional []string                   // metrics that are kept beside the objectives
	Bounds     []v1beta1.MetricConstraint // on metrics
	Conditions []string                   // on parameters
	// Argv is the program with its own arguments. In these {NAME} is the value of a
	// parameter, and {trial} the name of the trial.
	Argv []string
	// Dir is the absolute path of the directory that trials run in.
	Dir  string
	Env  []corev1.EnvVar
	Pass Passing
	// Flags are how the program writes its options.
	Flags Interface
	// Metrics is text, json, logfmt, tensorboard:DIR, or the path of a file. Filters
	// are regular expressions for text.
	Metrics   string
	Filters   []string
	Algorithm string
	Settings  []v1beta1.AlgorithmSetting
	Stopping  v1beta1.EarlyStoppingSpec // no name: none
	Trials    int32
	Parallel  int32
	GPUs      int
	Seed      *int64
	Retry     int32
	Duration  *metav1.Duration
	PerTrial  *metav1.Duration
	GPUHours  *float64
	WarmStart []string // experiments
}

// Experiment is the object that runs the program. Its error says what is wrong with
// the command line.
func (s Spec) Experiment() (*v1beta1.Experiment, error) {
	e := &v1beta1.Experiment{TypeMeta: metav1.TypeMeta{APIVersion: v1beta1.GroupVersion.String(), Kind: "Experiment"}}
	e.Name = s.Name
	e.Spec = v1beta1.ExperimentSpec{
		Parameters: s.Parameters, ParameterConstraints: s.Conditions, Constraints: s.Bounds, MaxTrialCount: &s.Trials, ParallelTrialCount: &s.Parallel,
		Algorithm: &v1beta1.AlgorithmSpec{AlgorithmName: s.Algorithm, AlgorithmSettings: s.Settings},
		// Running the same command again goes on.
		ResumePolicy: v1beta1.LongRunning,
		Seed:         s.Seed, MaxDuration: s.Duration, MaxTrialDuration: s.PerTrial, MaxGPUHours: s.GPUHours,
	}
	if len(s.Objectives) == 1 {
		o := s.Objectives[0]
		e.Spec.Objective = &v1beta1.ObjectiveSpec{ObjectiveMetricName: o.ObjectiveMetricName, Type: o.Type, Goal: o.Goal}
	} else {
		e.Spec.Objectives = s.Objectives
	}
	if len(s.Additional) > 0 {
		e.Spec.Objective = cmp.Or(e.Spec.Objective, &v1beta1.ObjectiveSpec{}) // of several, the first stands there
		e.Spec.Objective.AdditionalMetricNames = s.Additional
	}
	for _, name := range s.WarmStart {
		e.Spec.WarmStartFrom = append(e.Spec.WarmStartFrom, v1beta1.WarmStart{Experiment: name})
	}
	if s.Stopping.AlgorithmName != "" {
		e.Spec.EarlyStopping = &s.Stopping
	}
	collector, err := s.collector()
	if err != nil {
		return nil, err
	}
	e.Spec.MetricsCollectorSpec = collector
	if e.Spec.TrialTemplate, err = s.template(); err != nil {
		return nil, err
	}
	note, err := json.Marshal(s.summary())
	if err != nil {
		return nil, fmt.Errorf("describe the command line: %w", err)
	}
	e.Annotations = map[string]string{Annotation: string(note)}
	checked := e.DeepCopy()
	v1beta1.SetDefaults(checked)
	if faults := append(study.Check(&checked.Spec), study.CheckStopping(&checked.Spec)...); len(faults) > 0 {
		return nil, errors.New(InFlags(e, faults.ToAggregate().Error()))
	}
	return e, nil
}

// collector says where the metrics are.
func (s Spec) collector() (*v1beta1.MetricsCollectorSpec, error) {
	spec := &v1beta1.MetricsCollectorSpec{Collector: &v1beta1.CollectorSpec{Kind: v1beta1.StdOutCollector}}
	at := func(path string) string {
		if filepath.IsAbs(path) {
			return path
		}
		return filepath.Join(s.Dir, path)
	}
	dir, board := strings.CutPrefix(s.Metrics, "tensorboard:")
	switch m := macro.FindString(s.Metrics); {
	case m != "":
		return nil, fmt.Errorf("--metrics %s: %s is not replaced there, and need not be: each trial has a folder of its own in the place of the one that is named: "+
			"write the same path for all, such as --metrics runs/metrics.csv, also where the program gets it", s.Metrics, m)
	case s.Metrics == "" || s.Metrics == "text":
	case s.Metrics == "json" || s.Metrics == "logfmt":
		spec.Source = &v1beta1.SourceSpec{FileSystemPath: &v1beta1.FileSystemPath{Format: v1beta1.FileFormat(strings.ToUpper(s.Metrics))}}
	case board && dir == "":
		return nil, errors.New("--metrics tensorboard: name the directory of the event files, as in tensorboard:runs")
	case board:
		spec.Collector.Kind = v1beta1.TensorFlowEventCollector
		spec.Source = &v1beta1.SourceSpec{FileSystemPath: &v1beta1.FileSystemPath{Path: at(dir), Kind: v1beta1.DirectoryKind}}
	default:
		format := v1beta1.TextFormat
		switch filepath.Ext(s.Metrics) {
		case ".json", ".jsonl", ".ndjson":
			format = v1beta1.JSONFormat
		case ".csv":
			format = v1beta1.CSVFormat
		}
		spec.Collector.Kind = v1beta1.FileCollector
		spec.Source = &v1beta1.SourceSpec{FileSystemPath: &v1beta1.FileSystemPath{Path: at(s.Metrics), Kind: v1beta1.FileKind, Format: format}}
	}
	if len(s.Filters) > 0 {
		if spec.Source == nil {
			spec.Source = &v1beta1.SourceSpec{}
		}
		spec.Source.Filter = &v1beta1.FilterSpec{MetricsFormat: s.Filters}
	}
	return spec, nil
}

var macro = regexp.MustCompile(`\{([A-Za-z_][\w./-]*)\}`)

// macros are the names of the macros in the arguments that mean something.
func (s Spec) macros() map[string]bool {
	found := map[string]bool{}
	for _, word := range s.Argv {
		for _, m := range macro.FindAllStringSubmatch(word, -1) {
			if m[1] == "trial" || slices.ContainsFunc(s.Parameters, func(p v1beta1.ParameterSpec) bool { return p.Name == m[1] }) {
				found[m[1]] = true
			}
		}
	}
	return found
}

func placeholder(name string) string { return "${trialParameters." + name + "}" }

func (s Spec) template() (*v1beta1.TrialTemplate, error) {
	used := s.macros()
	t := &v1beta1.TrialTemplate{PrimaryContainerName: container, Retry: s.Retry}
	if used["trial"] {
		t.TrialParameters = append(t.TrialParameters, v1beta1.TrialParameterSpec{Name: "trial", Reference: "${trialSpec.Name}"})
	}
	var command []string
	for _, word := range s.Argv {
		// A "$" of the user's is no expansion of Kubernetes'.
		word = strings.ReplaceAll(word, "$", "$$")
		command = append(command, macro.ReplaceAllStringFunc(word, func(text string) string {
			switch name := strings.Trim(text, "{}"); {
			case used[name]:
				return placeholder(name)
			case name == "seed":
				return "${trialSeed}"
			}
			return text
		}))
	}
	env := slices.Clone(s.Env)
	file := map[string]json.RawMessage{}
	for _, p := range s.Parameters {
		if p.Name == "trial" && used["trial"] {
			return nil, errors.New("{trial} is the name of the trial: give the parameter trial another name")
		}
		t.TrialParameters = append(t.TrialParameters, v1beta1.TrialParameterSpec{Name: p.Name, Reference: p.Name})
		switch {
		case used[p.Name]:
		case s.Pass == AsEnvironment:
			name := EnvironmentName(p.Name)
			if slices.ContainsFunc(env, func(e corev1.EnvVar) bool { return e.Name == name }) {
				return nil, fmt.Errorf("-p %s: its variable %s is set already, by another parameter or by -e: give it another name", p.Name, name)
			}
			env = append(env, corev1.EnvVar{Name: name, Value: placeholder(p.Name)})
		case s.Pass == AsFile:
			value, err := inFile(p)
			if err != nil {
				return nil, err
			}
			file[p.Name] = value
		default:
			command = append(command, s.option(p.Name)+"="+placeholder(p.Name))
		}
	}
	pod := corev1.PodTemplateSpec{Spec: corev1.PodSpec{RestartPolicy: corev1.RestartPolicyNever, Containers: []corev1.Container{{
		Name: container, Image: "none", Command: command, WorkingDir: s.Dir, Env: env,
	}}}}
	if err := s.addFile(&pod, file); err != nil {
		return nil, err
	}
	raw, err := json.Marshal(job(pod, s.GPUs))
	if err != nil {
		return nil, fmt.Errorf("write the template: %w", err)
	}
	t.TrialSpec = &runtime.RawExtension{Raw: raw}
	return t, nil
}

// option is how the program writes a parameter.
func (s Spec) option(name string) string {
	f, found := s.Flags.Flag(name)
	switch {
	case s.Pass == AsAssignments:
		return name
	case found:
		return f.Option
	}
	return "--" + name
}

// EnvironmentName is the variable that a parameter is passed in.
func EnvironmentName(name string) string {
	return "VERNIER_PARAM_" + regexp.MustCompile(`[^A-Z0-9]`).ReplaceAllString(strings.ToUpper(name), "_")
}

// inFile is the placeholder of a parameter as JSON.
func inFile(p v1beta1.ParameterSpec) (json.RawMessage, error) {
	if p.ParameterType != v1beta1.ParameterTypeCategorical && p.When == nil {
		for _, v := range p.FeasibleSpace.List {
			if !json.Valid([]byte(v)) {
				number, _ := strconv.ParseFloat(v, 64) // ParseParameter made sure
				return nil, fmt.Errorf("-p %s: a file has numbers as JSON: write %v in place of %q", p.Name, number, v)
			}
		}
		return json.RawMessage(placeholder(p.Name)), nil
	}
	for _, v := range p.FeasibleSpace.List {
		if strings.Contains(v, `\`) || !json.Valid([]byte(`"`+v+`"`)) {
			return nil, fmt.Errorf("-p %s: the value %q has a quote, a backslash or a control character, and cannot be passed in a file: use --pass env", p.Name, v)
		}
	}
	return json.RawMessage(`"` + placeholder(p.Name) + `"`), nil
}

// addFile has the pod's own annotation, where placeholders are replaced, appear as a
// file.
func (s Spec) addFile(pod *corev1.PodTemplateSpec, values map[string]json.RawMessage) error {
	if len(values) == 0 {
		return nil
	}
	var parts []string
	for _, p := range s.Parameters {
		if value, there := values[p.Name]; there {
			parts = append(parts, fmt.Sprintf("%q: %s", p.Name, value))
		}
	}
	const annotation, file = "vernier.ml/params", "params.json"
	pod.Annotations = map[string]string{annotation: "{" + strings.Join(parts, ", ") + "}"}
	pod.Spec.Volumes = []corev1.Volume{{Name: "params", VolumeSource: corev1.VolumeSource{DownwardAPI: &corev1.DownwardAPIVolumeSource{
		Items: []corev1.DownwardAPIVolumeFile{{Path: file, FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.annotations['" + annotation + "']"}}},
	}}}}
	c := &pod.Spec.Containers[0]
	c.VolumeMounts = []corev1.VolumeMount{{Name: "params", MountPath: paramsFolder}}
	c.Env = append(c.Env, corev1.EnvVar{Name: "VERNIER_PARAMS_FILE", Value: paramsFolder + "/" + file})
	return nil
}

// job is a map, so that the YAML which people see has no empty fields.
func job(pod corev1.PodTemplateSpec, gpus int) map[string]any {
	c := pod.Spec.Containers[0]
	first := map[string]any{"name": c.Name, "image": c.Image, "workingDir": c.WorkingDir, "command": c.Command}
	if len(c.Env) > 0 {
		first["env"] = c.Env
	}
	if len(c.VolumeMounts) > 0 {
		first["volumeMounts"] = c.VolumeMounts
	}
	if gpus > 0 {
		first["resources"] = map[string]any{"limits": map[string]any{"nvidia.com/gpu": gpus}}
	}
	spec := map[string]any{"restartPolicy": pod.Spec.RestartPolicy, "containers": []any{first}}
	if len(pod.Spec.Volumes) > 0 {
		spec["volumes"] = pod.Spec.Volumes
	}
	template := map[string]any{"spec": spec}
	if len(pod.Annotations) > 0 {
		template["metadata"] = map[string]any{"annotations": pod.Annotations}
	}
	return map[string]any{"apiVersion": "batch/v1", "kind": "Job", "spec": map[string]any{"backoffLimit": 0, "template": template}}
}

// Flagged are the parameters that are no macros.
func (s Spec) Flagged() []v1beta1.ParameterSpec {
	used := s.macros()
	return slices.DeleteFunc(slices.Clone(s.Parameters), func(p v1beta1.ParameterSpec) bool { return used[p.Name] })
}
