package trainer

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Placeholder is one name that a template may use, and its value.
type Placeholder struct {
	// Name as in ${trialParameters.<name>}.
	Name string
	// Inactive means that the parameter is not active in this trial. The placeholder
	// becomes empty, and an argument of a command whose only placeholder it is, is
	// omitted: --momentum=${trialParameters.momentum}, by itself or in a shell
	// command line, and a flag with its value in the next argument.
	Inactive bool
	// Reference is the name of a parameter, or metadata:
	// ${trialSpec.Name} and ${trialSpec.Namespace} of the trial;
	// ${trialSpec.Kind}, ${trialSpec.APIVersion}, ${trialSpec.Labels[key]} and
	// ${trialSpec.Annotations[key]} of the template.
	Reference string
}

// Sentinels for what can be wrong with a template.
var (
	// ErrUnknownPlaceholder: the template uses an undeclared placeholder.
	ErrUnknownPlaceholder = errors.New("placeholder is not declared")
	// ErrNoAssignment: a placeholder refers to a parameter without a value.
	ErrNoAssignment = errors.New("placeholder has no value")
)

const opening = "${trialParameters."

// seedPlaceholder stands in a template for the seed of the trial, which no other trial
// of the experiment has.
const seedPlaceholder = "${trialSeed}"

var (
	seedPattern        = regexp.MustCompile(`(?:^|[^$])\$\{trialSeed\}`)
	placeholderPattern = regexp.MustCompile(`\$\{trialParameters\.([^{}]*)\}`)
	metadataPattern    = regexp.MustCompile(`^\$\{trialSpec\.(Name|Namespace|Kind|APIVersion|Labels|Annotations)(?:\[([^\[\]]+)\])?\}$`)
	numberPattern      = regexp.MustCompile(`^-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?$`)
)

// IsMetadataReference says whether a reference is to the trial or template instead
// of a parameter.
func IsMetadataReference(reference string) bool {
	return strings.HasPrefix(reference, "${trialSpec.")
}

// Render replaces the placeholders of a template, JSON or YAML, by the values of
// parameters and the seed of the trial, and gives the result the identity of the trial.
//
// Values are escaped, also against the kubelet's expansion of $(NAME). Placeholders
// are replaced in the strings and map keys of the parsed template, in one pass, so a
// value cannot change the structure, and a value that looks like a placeholder is
// kept. The result of a replacement is a string, with one exception that Katib's
// users rely on: in YAML text (a template from a ConfigMap), an unquoted scalar that
// consists of a placeholder becomes a number or boolean if its value is one, except
// in fields that are always strings (command, args, env values, labels, annotations
// and the like).
//
// ${replica.index}, ${replica.role} and ${replica.hosts} stand for what the job's kind
// knows of its pods; see Replicas. The hosts are text; the index differs from pod to
// pod, so the kubelet fills it in. Other names after ${replica. are left as they are.
// $${replica. and $${trialSeed} are text that begins with one dollar sign.
//
// All errors are reported at once, joined; see FieldErrors.
func Render(template []byte, ph []Placeholder, values map[string]string, id Identity, kinds func(schema.GroupVersionKind) Kind) (*unstructured.Unstructured, error) {
	obj, err := parse(template)
	if err != nil {
		return nil, err
	}
	if err := checkHead(obj); err != nil {
		return nil, err
	}
	r := renderer{seed: id.Seed, values: map[string]string{}, inactive: map[string]bool{}, problems: map[string]problem{}}
	r.resolve(obj, ph, values, id)
	job, err := r.job(obj, id)
	if err != nil || !r.replicas.used {
		return job, err
	}
	// How many pods there are may itself be a parameter.
	r.replicas.know(job, kinds(job.GroupVersionKind()))
	return r.job(obj, id)
}

// job is the template with its placeholders replaced.
func (r *renderer) job(template map[string]any, id Identity) (*unstructured.Unstructured, error) {
	r.size = 0
	out, _ := r.walk(nil, template).(map[string]any)
	err := errors.Join(r.errs...)
	if err != nil {
		return nil, err
	}
	r.replicas.tell(out)
	job := &unstructured.Unstructured{}
	if job.Object, err = normalize(out); err != nil {
		return nil, err
	}
	job.SetName(id.Name)
	job.SetNamespace(id.Namespace)
	return job, nil
}

// Seeded says whether a template passes the seed of the trial on.
func Seeded(template []byte) bool { return seedPattern.Match(template) }

// Placeholders lists the distinct names of the placeholders in a template, sorted.
func Placeholders(template []byte) (found []string, err error) {
	obj, err := parse(template)
	if err != nil {
		return nil, err
	}
	names := map[string]bool{}
	visit(obj, func(s string) {
		for _, m := range placeholderPattern.FindAllStringSubmatch(s, -1) {
			names[m[1]] = true
		}
	})
	return slices.Sorted(maps.Keys(names)), nil
}

// TemplateGVK reads the kind of a template's job.
func TemplateGVK(template []byte) (schema.GroupVersionKind, error) {
	obj, err := parse(template)
	if err != nil {
		return schema.GroupVersionKind{}, err
	}
	return (&unstructured.Unstructured{Object: obj}).GroupVersionKind(), nil
}

// visit calls f with every string of the tree, keys included.
func visit(v any, f func(string)) {
	switch v := v.(type) {
	case string:
		f(v)
	case bare:
		f(string(v))
	case []any:
		for _, e := range v {
			visit(e, f)
		}
	case map[string]any:
		for k, e := range v {
			f(k)
			visit(e, f)
		}
	}
}

// checkHead checks the kind, version and metadata of a template. It removes empty
// metadata.
func checkHead(obj map[string]any) error {
	var errs []error
	for _, key := range []string{"apiVersion", "kind"} {
		if s, _ := obj[key].(string); s == "" {
			errs = append(errs, fault([]string{key}, "is missing: a template is a complete object, say which %s it has", key))
		}
	}
	if s, _ := obj["apiVersion"].(string); s != "" {
		if _, err := schema.ParseGroupVersion(s); err != nil {
			errs = append(errs, fault([]string{"apiVersion"}, "%q is not group/version, such as batch/v1", s))
		}
	}
	if m := obj["metadata"]; m == nil {
		delete(obj, "metadata")
	} else if _, ok := m.(map[string]any); !ok {
		errs = append(errs, fault([]string{"metadata"}, "must be a map with labels or annotations, or be left out"))
	}
	for _, key := range []string{"name", "namespace", "resourceVersion"} {
		if v := at(obj, "metadata", key); v != nil && v != "" {
			errs = append(errs, fault([]string{"metadata", key}, "must not be set: every trial gets its own; remove it"))
		}
	}
	return errors.Join(errs...)
}

// problem is why a declared placeholder has no value.
type problem struct {
	text  string
	cause error
}

type renderer struct {
	seed     string
	values   map[string]string
	inactive map[string]bool
	problems map[string]problem
	replicas replicas
	size     int // of what placeholders have become
	errs     []error
}

// maxSize bounds what the placeholders of a template become: the API server takes no
// larger object.
const maxSize = 3 << 20

// resolve finds the value of each declared placeholder. A missing value is an error
// only if the template uses the placeholder.
func (r *renderer) resolve(obj map[string]any, ph []Placeholder, assigned map[string]string, id Identity) {
	for _, p := range ph {
		if p.Inactive {
			r.values[p.Name], r.inactive[p.Name] = "", true
			continue
		}
		if IsMetadataReference(p.Reference) {
			v, err := metadata(obj, p.Reference, id)
			if err != nil {
				r.problems[p.Name] = problem{err.Error(), nil}
				continue
			}
			r.values[p.Name] = v
			continue
		}
		v, ok := assigned[p.Reference]
		if !ok {
			r.problems[p.Name] = problem{fmt.Sprintf("refers to %q, which has no value in this trial: refer to a parameter of the experiment", p.Reference), ErrNoAssignment}
			continue
		}
		r.values[p.Name] = v
	}
}

// metadata returns the value of a ${trialSpec...} reference.
func metadata(obj map[string]any, reference string, id Identity) (string, error) {
	m := metadataPattern.FindStringSubmatch(reference)
	keyed := m != nil && (m[1] == "Labels" || m[1] == "Annotations")
	if m == nil || keyed != (m[2] != "") {
		return "", fmt.Errorf("refers to %s, which is none of ${trialSpec.Name}, .Namespace, .Kind, .APIVersion, .Labels[key], .Annotations[key]", reference)
	}
	var v any
	switch m[1] {
	case "Name":
		return id.Name, nil
	case "Namespace":
		return id.Namespace, nil
	case "Kind":
		v = obj["kind"]
	case "APIVersion":
		v = obj["apiVersion"]
	default:
		v = at(obj, "metadata", strings.ToLower(m[1]), m[2])
	}
	s, ok := v.(string)
	if !ok {
		return "", fmt.Errorf("refers to %s, which the template does not have: add it to the template's metadata", reference)
	}
	if strings.Contains(s, opening) {
		return "", fmt.Errorf("refers to %s, which itself holds a placeholder: refer to the parameter directly", reference)
	}
	return s, nil
}

// walk returns v with its placeholders replaced. It copies what it changes.
func (r *renderer) walk(path []string, v any) any {
	switch v := v.(type) {
	case string:
		return r.replace(path, v)
	case bare:
		s := r.replace(path, string(v))
		if stringsOnly(path) {
			return s
		}
		return scalar(s)
	case []any:
		if n := len(path); n > 0 && (path[n-1] == "command" || path[n-1] == "args") {
			v = r.activeArguments(v)
		}
		out := make([]any, len(v))
		for i, e := range v {
			out[i] = r.walk(under(path, strconv.Itoa(i)), e)
		}
		return out
	case map[string]any:
		out := make(map[string]any, len(v))
		for _, k := range slices.Sorted(maps.Keys(v)) {
			key := r.replace(under(path, k), k)
			if _, twice := out[key]; twice {
				r.errs = append(r.errs, fault(under(path, key), "stands here twice after its placeholder was replaced: use another key"))
			}
			out[key] = r.walk(under(path, k), v[k])
		}
		return out
	default:
		return v
	}
}

// replace replaces the placeholders of one string.
func (r *renderer) replace(path []string, s string) string {
	if !strings.Contains(s, opening) && !strings.Contains(s, replicaOpening) && !strings.Contains(s, seedPlaceholder) {
		return s
	}
	if strings.Contains(anyPattern.ReplaceAllLiteralString(s, ""), opening) {
		r.errs = append(r.errs, &FieldError{FieldPath(path), fmt.Sprintf("%q has a placeholder that does not end: write ${trialParameters.name}", s), ErrUnknownPlaceholder})
	}
	return anyPattern.ReplaceAllStringFunc(s, func(whole string) string {
		if r.size > maxSize {
			return ""
		}
		v := r.placeholder(path, whole)
		if r.size += len(v); r.size > maxSize {
			r.errs = append(r.errs, fault(path, "with this placeholder, %s, the template becomes larger than %d MiB, which is more than an object may have: use it less often", whole, maxSize>>20))
		}
		return v
	})
}

// placeholder returns the text that replaces one placeholder.
func (r *renderer) placeholder(path []string, whole string) string {
	m := anyPattern.FindStringSubmatch(whole)
	switch {
	case escaped(whole):
		return whole[1:]
	case m[3] != "":
		return r.replica(path, whole, m[4])
	case m[1] == "":
		return r.seed
	}
	name := m[2]
	if v, ok := r.values[name]; ok {
		if inContainer(path) != nil {
			v = literal(v)
		}
		return v
	}
	e := &FieldError{FieldPath(path), fmt.Sprintf("placeholder %s is not declared: add a trialParameter with the name %q, or correct the name", whole, name), ErrUnknownPlaceholder}
	if p, ok := r.problems[name]; ok {
		e.Problem, e.Cause = "placeholder "+whole+" "+p.text, p.cause
	}
	r.errs = append(r.errs, e)
	return whole
}

// replica replaces a placeholder of the job's pods, once they are known.
func (r *renderer) replica(path []string, whole, name string) string {
	if !replicaNames.MatchString(name) {
		return whole
	}
	r.replicas.used = true
	if !r.replicas.asked {
		return whole
	}
	v, err := r.replicas.value(path, name)
	if err != nil {
		r.errs = append(r.errs, &FieldError{FieldPath(path), fmt.Sprintf("placeholder %s: %v", whole, err), ErrUnknownPlaceholder})
	}
	return v
}

// stringsOnly says whether Kubernetes accepts only a string at the path.
func stringsOnly(path []string) bool {
	n := len(path)
	if n < 2 {
		return false
	}
	switch path[n-2] {
	case "command", "args", "labels", "annotations", "matchLabels", "nodeSelector", "data", "stringData":
		return true
	}
	return n >= 3 && path[n-3] == "env" && (path[n-1] == "value" || path[n-1] == "name")
}

// scalar reads what a bare placeholder became as YAML readers would: number,
// boolean, or else string.
func scalar(s string) any {
	switch {
	case s == "true":
		return true
	case s == "false":
		return false
	case numberPattern.MatchString(s):
		if i, err := strconv.ParseInt(s, 10, 64); err == nil {
			return i
		}
		if f, err := strconv.ParseFloat(s, 64); err == nil {
			return f
		}
	}
	return s
}

// normalize gives the tree the Go types that unstructured objects have.
func normalize(tree map[string]any) (map[string]any, error) {
	raw, err := json.Marshal(tree)
	if err != nil {
		return nil, fmt.Errorf("encode the rendered template: %w", err)
	}
	return decodeJSON(raw)
}
