package webhook

import (
	"errors"
	"fmt"
	"maps"
	"net"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strings"
	"unicode"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/vernier-ml/vernier/api/v1beta1"
	"github.com/vernier-ml/vernier/collector"
	"github.com/vernier-ml/vernier/collector/parse"
)

// groups is what Katib requires of a metricsFormat: two groups, for the name
// and the value of a metric.
const groups = 2

// formats are what the collectors read, by kind of collector and of path.
var (
	streamFormats    = []v1beta1.FileFormat{v1beta1.TextFormat, v1beta1.JSONFormat, v1beta1.LogfmtFormat}
	fileFormats      = append(slices.Clone(streamFormats), v1beta1.CSVFormat)
	directoryFormats = []v1beta1.FileFormat{v1beta1.CSVFormat, v1beta1.WandbFormat}
)

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
	case v1beta1.PushCollector, "":
	case v1beta1.StdOutCollector:
		if p := source.FileSystemPath; p != nil && p.Format != "" {
			errs = validateFormat(source, streamFormats, from)
		}
	case v1beta1.FileCollector:
		errs = validateFile(source, from)
	case v1beta1.TensorFlowEventCollector:
		errs = validatePath(source.FileSystemPath, from.Child("fileSystemPath"), v1beta1.DirectoryKind)
		if p := source.FileSystemPath; p != nil && p.Format != "" {
			errs = append(errs, field.Forbidden(from.Child("fileSystemPath", "format"), "event files have one format: remove it"))
		}
	case v1beta1.PrometheusMetricCollector:
		errs = validateHTTP(source, from.Child("httpGet"))
	case v1beta1.CustomCollector:
		errs = validateCustom(m, source, at)
	default: // the schema lets None pass too
		errs = field.ErrorList{field.Forbidden(at.Child("collector", "kind"), "None collects nothing: choose another kind")}
	}
	return append(errs, validateFilter(source.Filter, from.Child("filter", "metricsFormat"))...)
}

// validateRate checks the cap on the rate of points, unless it was so before.
func validateRate(exp, old *v1beta1.Experiment) (warnings []string, errs field.ErrorList) {
	const name = v1beta1.AnnotationCollectorRate
	text, set := exp.Annotations[name]
	if !set {
		return nil, nil
	}
	if old != nil {
		if before, had := old.Annotations[name]; had && before == text {
			return nil, nil
		}
	}
	at := field.NewPath("metadata", "annotations").Key(name)
	rate, err := v1beta1.CollectorRate(exp.Annotations)
	if err != nil {
		return nil, field.ErrorList{field.Invalid(at, text, err.Error())}
	}
	if o := exp.Spec.Objective; rate > 0 && o != nil {
		for _, s := range o.MetricStrategies {
			if collector.Strategy(s.Value).WholeCurve() {
				warnings = append(warnings, fmt.Sprintf("%s: it has no effect, because the strategy %s of the metric %s needs every point", at, s.Value, s.Name))
				break
			}
		}
	}
	return warnings, nil
}

// validateResources checks what annotations say the collector gets, unless they were so
// before.
func validateResources(exp, old *v1beta1.Experiment) field.ErrorList {
	_, err := v1beta1.CollectorResources(exp.Annotations, corev1.ResourceRequirements{})
	if err == nil || old != nil && maps.Equal(old.Annotations, exp.Annotations) {
		return nil
	}
	return field.ErrorList{field.Invalid(field.NewPath("metadata", "annotations"), field.OmitValueType{}, err.Error())}
}

// doubtfulCollector says what of the collector's source is not read, and what goes
// wrong on some clusters only.
func doubtfulCollector(s *v1beta1.ExperimentSpec) (warnings []string) {
	m := s.MetricsCollectorSpec
	if m == nil || m.Collector == nil || m.Source == nil {
		return nil
	}
	from := specPath().Child("metricsCollectorSpec", "source")
	switch m.Collector.Kind {
	case v1beta1.PushCollector:
		if m.Source.FileSystemPath != nil {
			warnings = append(warnings, fmt.Sprintf("%s: nothing is read from it, as the program sends its metrics (kind: Push): remove it, or use kind: File", from.Child("fileSystemPath")))
		}
		if m.Source.HTTPGet != nil {
			warnings = append(warnings, fmt.Sprintf("%s: nothing is read from it, as the program sends its metrics (kind: Push): remove it, or use kind: PrometheusMetric", from.Child("httpGet")))
		}
	case v1beta1.PrometheusMetricCollector:
		parallel := s.ParallelTrialCount == nil || *s.ParallelTrialCount > 1
		if h := m.Source.HTTPGet; h != nil && parallel && h.Port == intstr.FromInt32(v1beta1.DefaultPrometheusMetricPort) {
			warnings = append(warnings, fmt.Sprintf("%s: %d, the default, is one port for all trials; where trials share a network (the embedded mode, hostNetwork) those that run at the same time cannot all listen on it: auto gives each its own, in VERNIER_METRICS_PORT",
				from.Child("httpGet", "port"), h.Port.IntVal))
		}
	}
	return warnings
}

func validateFile(s v1beta1.SourceSpec, from *field.Path) field.ErrorList {
	errs := validatePath(s.FileSystemPath, from.Child("fileSystemPath"), v1beta1.FileKind, v1beta1.DirectoryKind)
	if s.FileSystemPath == nil {
		return errs
	}
	formats := fileFormats
	if s.FileSystemPath.Kind == v1beta1.DirectoryKind {
		formats = directoryFormats
	}
	return append(errs, validateFormat(s, formats, from)...)
}

// validateFormat checks the format of what is read, and that only text is
// filtered.
func validateFormat(s v1beta1.SourceSpec, formats []v1beta1.FileFormat, from *field.Path) field.ErrorList {
	format := s.FileSystemPath.Format
	if !slices.Contains(formats, format) {
		return field.ErrorList{field.NotSupported(from.Child("fileSystemPath", "format"), format, formats)}
	}
	if format != v1beta1.TextFormat && s.Filter != nil && len(s.Filter.MetricsFormat) > 0 {
		return field.ErrorList{field.Forbidden(from.Child("filter"), string(format)+" is read as it is: remove the filter, or use format TEXT")}
	}
	return nil
}

func validatePath(p *v1beta1.FileSystemPath, at *field.Path, kinds ...v1beta1.FileSystemKind) field.ErrorList {
	if p == nil {
		return field.ErrorList{field.Required(at, "say where the metrics are written")}
	}
	var errs field.ErrorList
	if !slices.Contains(kinds, p.Kind) {
		errs = append(errs, field.NotSupported(at.Child("kind"), p.Kind, kinds))
	}
	dir := path.Clean(p.Path)
	if p.Kind == v1beta1.FileKind {
		dir = path.Dir(dir)
	}
	switch {
	case !path.IsAbs(p.Path):
		errs = append(errs, field.Invalid(at.Child("path"), p.Path, "must be absolute: begin it with /"))
	case p.Kind == v1beta1.FileKind && strings.HasSuffix(p.Path, "/"):
		errs = append(errs, field.Invalid(at.Child("path"), p.Path, "must name a file, not a directory"))
	case dir == "/":
		errs = append(errs, field.Invalid(at.Child("path"), p.Path, "must lie in a directory of its own, which is shared with the collector; / cannot be"))
	case dir == "/var/run/vernier" || strings.HasPrefix(dir, "/var/run/vernier/"):
		errs = append(errs, field.Invalid(at.Child("path"), p.Path, "lies in the collector's own directory: choose another"))
	}
	return errs
}

func validateHTTP(s v1beta1.SourceSpec, at *field.Path) field.ErrorList {
	if s.HTTPGet == nil {
		return field.ErrorList{field.Required(at, "say where the metrics are served")}
	}
	var errs field.ErrorList
	if p := s.HTTPGet.Port; p != intstr.FromString(autoPort) && (p.Type != intstr.Int || p.IntVal < 1 || p.IntVal > 65535) {
		errs = append(errs, field.Invalid(at.Child("port"), p.String(), "must be a number from 1 to 65535, or auto for one of each trial's own"))
	}
	if scheme := strings.ToUpper(string(s.HTTPGet.Scheme)); scheme != "" && scheme != string(corev1.URISchemeHTTP) && scheme != string(corev1.URISchemeHTTPS) {
		errs = append(errs, field.NotSupported(at.Child("scheme"), s.HTTPGet.Scheme, []corev1.URIScheme{corev1.URISchemeHTTP, corev1.URISchemeHTTPS}))
	}
	if host := s.HTTPGet.Host; strings.ContainsAny(host, "/:@ ?#%\\") && net.ParseIP(host) == nil {
		errs = append(errs, field.Invalid(at.Child("host"), s.HTTPGet.Host, "must be a name or an address, without scheme or port"))
	}
	for i, h := range s.HTTPGet.HTTPHeaders {
		if !headerName.MatchString(h.Name) || strings.ContainsFunc(h.Value, func(r rune) bool { return r != '\t' && unicode.IsControl(r) }) {
			errs = append(errs, field.Invalid(at.Child("httpHeaders").Index(i), h.Name, "is not a header: give it a name of letters, digits and signs without spaces or a colon, and a value without control characters"))
		}
	}
	if !strings.HasPrefix(s.HTTPGet.Path, "/") {
		errs = append(errs, field.Invalid(at.Child("path"), s.HTTPGet.Path, "must begin with /"))
	} else if _, err := url.Parse("http://localhost" + s.HTTPGet.Path); err != nil {
		errs = append(errs, field.Invalid(at.Child("path"), s.HTTPGet.Path, errors.Unwrap(err).Error()))
	}
	return errs
}

// headerName is a token of HTTP (RFC 9110, 5.6.2).
var headerName = regexp.MustCompile("^[-!#$%&'*+.^_`|~0-9A-Za-z]+$")

// autoPort is the port of httpGet that stands for one of each trial's own.
const autoPort = "auto"

// validateSelectors checks that the metrics of a PrometheusMetric collector can
// be found by their names.
func validateSelectors(s *v1beta1.ExperimentSpec, at *field.Path) field.ErrorList {
	m, o := s.MetricsCollectorSpec, s.Objective
	if m == nil || m.Collector == nil || m.Collector.Kind != v1beta1.PrometheusMetricCollector || o == nil {
		return nil
	}
	var errs field.ErrorList
	check := func(name string, at *field.Path) {
		if _, err := parse.NewSelector(name); name != "" && err != nil {
			errs = append(errs, field.Invalid(at, name, err.Error()))
		}
	}
	check(o.ObjectiveMetricName, at.Child("objectiveMetricName"))
	for i, name := range o.AdditionalMetricNames {
		check(name, at.Child("additionalMetricNames").Index(i))
	}
	return errs
}

func validateCustom(m *v1beta1.MetricsCollectorSpec, s v1beta1.SourceSpec, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	own := at.Child("collector", "customCollector")
	if c := m.Collector.CustomCollector; c == nil {
		errs = append(errs, field.Required(own, "give the container that collects"))
	} else {
		for _, problem := range validation.IsDNS1123Label(c.Name) {
			errs = append(errs, field.Invalid(own.Child("name"), c.Name, problem))
		}
		if c.Image == "" {
			errs = append(errs, field.Required(own.Child("image"), "say which image collects"))
		}
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
