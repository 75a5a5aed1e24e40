// Package trainer defines what running a trial is about: Kind, Role, State. It
// renders a trial's template into a job, injects the collector into the job's pod
// templates, reads a job's state, and explains from its pods why it failed or is
// waiting.
//
// Jobs of any kind are unstructured objects: the package knows neither operators' Go
// types nor experiments. It does no I/O.
package trainer

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Identity is the namespace and name of a trial, and so of its job, and its seed, a
// whole number.
type Identity struct{ Namespace, Name, Seed string }

// Kind knows the pod templates of one kind of job.
type Kind interface {
	// GVK is the kind of job.
	GVK() schema.GroupVersionKind
	// Roles lists the pod templates of the job, in a stable order. At most one role
	// is primary. If none is, because the kind cannot tell, Inject chooses by the
	// primary container and pod labels. A job without a pod template is an error
	// that wraps ErrNoTemplate.
	Roles(job *unstructured.Unstructured) ([]Role, error)
}

// Opaque is a Kind whose controller makes pods that the job shows no template of: from
// another object, or from fields of its own.
type Opaque interface {
	Kind
	// Beside says whether it makes such pods beside those with templates.
	Beside() bool
	// PodLabels is the path of the labels in the job that its controller gives to all
	// of these pods; nil if there are none.
	PodLabels() []string
}

// Role is one pod template of a job.
type Role struct {
	// Name of the role, for people: Master, Worker. Empty if the job has only one
	// role.
	Name string
	// TemplatePath is the path of the pod template in the object. An element that is
	// a decimal number is a list index.
	TemplatePath []string
	// Primary is true for the role whose metrics are collected.
	Primary bool
}

// Sentinels for what can be wrong with a job.
var (
	// ErrNoTemplate: the job has no pod template.
	ErrNoTemplate = errors.New("no pod template found")
	// ErrNoCommand: the StdOut collector needs a command and there is none.
	ErrNoCommand = errors.New("no command")
	// ErrImage: what an image runs is not known now.
	ErrImage = errors.New("image not known")
)

// FieldError is an error in one field of a template or job.
type FieldError struct {
	// Field is the path of the field: spec.template.metadata.name. Empty means the
	// whole object.
	Field string
	// Problem says what is wrong and what to do.
	Problem string
	// Cause is a sentinel of this package, or nil.
	Cause error
}

// Error names the field and the problem.
func (e *FieldError) Error() string {
	if e.Field == "" {
		return e.Problem
	}
	return e.Field + ": " + e.Problem
}

// Unwrap returns the sentinel.
func (e *FieldError) Unwrap() error { return e.Cause }

func fault(path []string, format string, args ...any) *FieldError {
	return &FieldError{Field: FieldPath(path), Problem: fmt.Sprintf(format, args...)}
}

// FieldErrors lists the field errors that err joins, in order. An error of
// another type becomes one without a field.
func FieldErrors(err error) []*FieldError {
	if err == nil {
		return nil
	}
	joined, ok := err.(interface{ Unwrap() []error })
	if ok {
		var all []*FieldError
		for _, e := range joined.Unwrap() {
			all = append(all, FieldErrors(e)...)
		}
		return all
	}
	var fe *FieldError
	if errors.As(err, &fe) {
		return []*FieldError{fe}
	}
	return []*FieldError{{Problem: err.Error()}}
}

// FieldPath formats a path for people: spec.containers[0].image. Keys that are not
// plain words are bracketed and quoted.
func FieldPath(path []string) string {
	var b strings.Builder
	for _, p := range path {
		_, err := strconv.Atoi(p)
		switch {
		case err == nil:
			b.WriteString("[" + p + "]")
		case strings.ContainsAny(p, ".[]{}\"/ \t\n") || p == "":
			b.WriteString("[" + strconv.Quote(p) + "]")
		default:
			if b.Len() > 0 {
				b.WriteByte('.')
			}
			b.WriteString(p)
		}
	}
	return b.String()
}

// at follows path from v through maps and lists. It returns nil if there is nothing
// at the path.
func at(v any, path ...string) any {
	for _, p := range path {
		switch c := v.(type) {
		case map[string]any:
			v = c[p]
		case []any:
			i, err := strconv.Atoi(p)
			if err != nil || i < 0 || i >= len(c) {
				return nil
			}
			v = c[i]
		default:
			return nil
		}
	}
	return v
}

// under returns path with more elements, without sharing memory.
func under(path []string, more ...string) []string {
	return append(slices.Clone(path), more...)
}

// Template returns the pod template of role in job as a map that shares memory with
// it, or an error if there is none.
func Template(job *unstructured.Unstructured, role Role) (map[string]any, error) {
	tpl, ok := at(job.Object, role.TemplatePath...).(map[string]any)
	if !ok {
		return nil, fault(role.TemplatePath, "is not a pod template")
	}
	return tpl, nil
}
