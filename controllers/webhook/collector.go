package webhook

import (
	"fmt"
	"path"
	"regexp"
	"strings"

	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/vernier-ml/vernier/api/v1beta1"
)

// groups is what Katib requires of a metricsFormat: two groups, for the name
// and the value of a metric.
const groups = 2

// validateCollector checks where metrics come from.
func validateCollector(m *v1beta1.MetricsCollectorSpec, at *field.Path) field.ErrorList {
	if m == nil || m.Collector == nil {
		return nil // the default, StdOut, needs nothing
	}
	source := v1beta1.SourceSpec{}
	if m.Source != nil {
		source = *m.Source
	}
	from := at.Child("source")
	var errs field.ErrorList
	switch m.Collector.Kind {
	case v1beta1.StdOutCollector, v1beta1.PushCollector, "":
	case v1beta1.FileCollector:
		errs = validatePath(source.FileSystemPath, v1beta1.FileKind, from.Child("fileSystemPath"))
		if p := source.FileSystemPath; p != nil && p.Format == v1beta1.JSONFormat && source.Filter != nil && len(source.Filter.MetricsFormat) > 0 {
			errs = append(errs, field.Forbidden(from.Child("filter"), "JSON lines are read as they are: remove the filter, or use format TEXT"))
		}
	case v1beta1.TensorFlowEventCollector:
		errs = validatePath(source.FileSystemPath, v1beta1.DirectoryKind, from.Child("fileSystemPath"))
		if p := source.FileSystemPath; p != nil && p.Format != "" {
			errs = append(errs, field.Forbidden(from.Child("fileSystemPath", "format"), "event files have one format: remove it"))
		}
	case v1beta1.PrometheusMetricCollector:
		errs = append(validateHTTP(source, from.Child("httpGet")), notYet(at, m.Collector.Kind))
	case v1beta1.CustomCollector:
		errs = append(validateCustom(m, source, at), notYet(at, m.Collector.Kind))
	default:
		errs = field.ErrorList{notYet(at, m.Collector.Kind)}
	}
	return append(errs, validateFilter(source.Filter, from.Child("filter", "metricsFormat"))...)
}

// notYet rejects a kind of collector that nothing would run.
func notYet(at *field.Path, kind v1beta1.CollectorKind) *field.Error {
	return field.NotSupported(at.Child("collector", "kind"), kind, []v1beta1.CollectorKind{
		v1beta1.StdOutCollector, v1beta1.FileCollector, v1beta1.TensorFlowEventCollector, v1beta1.PushCollector,
	})
}

func validatePath(p *v1beta1.FileSystemPath, kind v1beta1.FileSystemKind, at *field.Path) field.ErrorList {
	if p == nil {
		return field.ErrorList{field.Required(at, "say where the metrics are written")}
	}
	var errs field.ErrorList
	if p.Kind != kind {
		errs = append(errs, field.NotSupported(at.Child("kind"), p.Kind, []v1beta1.FileSystemKind{kind}))
	}
	dir := path.Clean(p.Path)
	if kind == v1beta1.FileKind {
		dir = path.Dir(dir)
	}
	switch {
	case !path.IsAbs(p.Path):
		errs = append(errs, field.Invalid(at.Child("path"), p.Path, "must be absolute: begin it with /"))
	case kind == v1beta1.FileKind && strings.HasSuffix(p.Path, "/"):
		errs = append(errs, field.Invalid(at.Child("path"), p.Path, "must name a file, not a directory"))
	case dir == "/":
		errs = append(errs, field.Invalid(at.Child("path"), p.Path, "must lie in a directory of its own, which is shared with the collector; / cannot be"))
	case dir == "/var/run/vernier" || strings.HasPrefix(dir, "/var/run/vernier/"):
		errs = append(errs, field.Invalid(at.Child("path"), p.Path, "lies in the collector's own directory: choose another"))
	}
	if kind != v1beta1.FileKind {
		return errs
	}
	if p.Format != v1beta1.TextFormat && p.Format != v1beta1.JSONFormat {
		errs = append(errs, field.NotSupported(at.Child("format"), p.Format, []v1beta1.FileFormat{v1beta1.TextFormat, v1beta1.JSONFormat}))
	}
	return errs
}

func validateHTTP(s v1beta1.SourceSpec, at *field.Path) field.ErrorList {
	if s.HTTPGet == nil {
		return field.ErrorList{field.Required(at, "say where the metrics are served")}
	}
	var errs field.ErrorList
	if p := s.HTTPGet.Port; p.Type != intstr.Int || p.IntVal < 1 || p.IntVal > 65535 {
		errs = append(errs, field.Invalid(at.Child("port"), p.String(), "must be a number from 1 to 65535"))
	}
	if !strings.HasPrefix(s.HTTPGet.Path, "/") {
		errs = append(errs, field.Invalid(at.Child("path"), s.HTTPGet.Path, "must begin with /"))
	}
	return errs
}

func validateCustom(m *v1beta1.MetricsCollectorSpec, s v1beta1.SourceSpec, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	if m.Collector.CustomCollector == nil {
		errs = append(errs, field.Required(at.Child("collector", "customCollector"), "give the container that collects"))
	}
	p := s.FileSystemPath
	if p == nil {
		return errs
	}
	where := at.Child("source", "fileSystemPath")
	if !path.IsAbs(p.Path) {
		errs = append(errs, field.Invalid(where.Child("path"), p.Path, "must be absolute: begin it with /"))
	}
	if p.Kind != v1beta1.FileKind && p.Kind != v1beta1.DirectoryKind {
		errs = append(errs, field.NotSupported(where.Child("kind"), p.Kind, []v1beta1.FileSystemKind{v1beta1.FileKind, v1beta1.DirectoryKind}))
	}
	return errs
}

func validateFilter(f *v1beta1.FilterSpec, at *field.Path) field.ErrorList {
	if f == nil {
		return nil
	}
	var errs field.ErrorList
	for i, text := range f.MetricsFormat {
		re, err := regexp.Compile(text)
		switch {
		case err != nil:
			errs = append(errs, field.Invalid(at.Index(i), text, fmt.Sprintf("is not a Go regular expression: %v", err)))
		case re.NumSubexp() < groups:
			errs = append(errs, field.Invalid(at.Index(i), text, `needs two groups, for the name and the value of a metric: ([\w-]+)\s*=\s*([+-]?\d+(\.\d+)?)`))
		}
	}
	return errs
}
