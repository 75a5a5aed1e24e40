// Package imported reads what other tuners found: studies of Optuna, experiments of
// Katib, and tables.
package imported

import (
	"cmp"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/vernier-ml/vernier/api/v1beta1"
	"github.com/vernier-ml/vernier/suggest"
)

// Study is what a file holds.
type Study struct {
	Name       string
	Parameters []v1beta1.ParameterSpec
	Objectives []v1beta1.ObjectiveMetric
	// Metrics besides the objectives.
	Metrics []string
	Trials  []Trial
	// Left says which trials are not among them, and why.
	Left []string
	// unended are the IDs of trials that have not ended.
	unended []string
}

// Trial is one that has ended.
type Trial struct {
	// ID that no other one of the file has.
	ID     string
	Params map[string]string
	// Values by metric.
	Values map[string]float64
	State  v1beta1.TrialConditionType
	// Started and Ended are zero where the file does not say.
	Started, Ended time.Time
	Curve          []Sample
}

// Sample is one measurement of a curve.
type Sample struct {
	Metric string
	Step   int64
	Value  float64
}

// Options say what a file does not.
type Options struct {
	// Study of a file with several.
	Study string
	// Minimize and Maximize name the metrics of a table.
	Minimize, Maximize []string
	// Metrics of a table besides them: its other columns are parameters.
	Metrics []string
	// Space has parameters in place of those that are found.
	Space []v1beta1.ParameterSpec
}

// Read reads a file by its name's end: .csv, .yaml, .yml, .json, or a database of
// SQLite.
func Read(path string, o Options) (*Study, error) {
	read := readOptuna
	switch strings.ToLower(filepath.Ext(path)) {
	case ".csv":
		read = readCSV
	case ".yaml", ".yml", ".json":
		read = readKatib
	}
	s, err := read(path, o)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", path, err)
	}
	if err := s.replace(o.Space); err != nil {
		return nil, fmt.Errorf("read %s: %w", path, err)
	}
	switch n := len(s.unended); {
	case n == 1:
		s.Left = append(s.Left, "trial "+s.unended[0]+" has not ended")
	case n > 1:
		s.Left = append(s.Left, fmt.Sprintf("%d trials have not ended: the same command later adds them", n))
	}
	if len(s.Trials) == 0 {
		return nil, fmt.Errorf("read %s: there is no trial that has ended%s", path, strings.Join(append([]string{""}, s.Left...), "; "))
	}
	return s, nil
}

// observed is the space of values that were tried: categories, or the range of numbers.
func observed(name string, values []string) v1beta1.ParameterSpec {
	p := v1beta1.ParameterSpec{Name: name, ParameterType: v1beta1.ParameterTypeInt}
	low, high := math.Inf(1), math.Inf(-1)
	for _, text := range values {
		v, err := strconv.ParseFloat(text, 64)
		if err != nil || math.IsNaN(v) || math.IsInf(v, 0) {
			list := slices.Clone(values)
			slices.Sort(list)
			return v1beta1.ParameterSpec{Name: name, ParameterType: v1beta1.ParameterTypeCategorical, FeasibleSpace: v1beta1.FeasibleSpace{List: slices.Compact(list)}}
		}
		if _, err := strconv.ParseInt(text, 10, 64); err != nil {
			p.ParameterType = v1beta1.ParameterTypeDouble
		}
		low, high = min(low, v), max(high, v)
	}
	if low == high {
		return v1beta1.ParameterSpec{Name: name, ParameterType: v1beta1.ParameterTypeDiscrete, FeasibleSpace: v1beta1.FeasibleSpace{List: values[:1]}}
	}
	p.FeasibleSpace.Min, p.FeasibleSpace.Max = number(low), number(high)
	if decades(values) {
		p.FeasibleSpace.Distribution = v1beta1.DistributionLogUniform
	}
	return p
}

// decades guesses whether numbers were chosen by their order of magnitude: they span two
// decades, and those between the ends are small beside the largest. The geometric mean of
// numbers that are spread evenly is 0.37 of the largest, and of a grid at least 0.4.
func decades(values []string) bool {
	var x []float64
	for _, text := range values {
		v, _ := strconv.ParseFloat(text, 64) // they are numbers
		x = append(x, v)
	}
	slices.Sort(x)
	x = slices.Compact(x)
	low, high := x[0], x[len(x)-1]
	if low <= 0 || high < 100*low {
		return false
	}
	between, logs := x[1:len(x)-1], 0.0
	for _, v := range between {
		logs += math.Log(v / high)
	}
	return len(between) == 0 || math.Exp(logs/float64(len(between))) < 0.29
}

// replace takes parameters in place of those that were found. A trial with a value
// outside of one is left out.
func (s *Study) replace(space []v1beta1.ParameterSpec) error {
	for k, p := range space {
		same := func(q v1beta1.ParameterSpec) bool { return q.Name == p.Name }
		if slices.ContainsFunc(space[:k], same) {
			return fmt.Errorf("-p %s is given twice: keep one", p.Name)
		}
		i := slices.IndexFunc(s.Parameters, same)
		if i < 0 {
			var names []string
			for _, q := range s.Parameters {
				names = append(names, q.Name)
			}
			return fmt.Errorf("-p %s: the trials have no such parameter, but %s", p.Name, strings.Join(names, ", "))
		}
		f := p.FeasibleSpace
		alone, err := suggest.NewSpace([]suggest.ParameterSpec{{
			Name: p.Name, Kind: suggest.Kind(p.ParameterType), Min: f.Min, Max: f.Max, Step: f.Step, List: f.List, Distribution: suggest.Distribution(f.Distribution),
		}})
		if err != nil {
			return fmt.Errorf("-p %w", err)
		}
		p.When = cmp.Or(p.When, s.Parameters[i].When)
		s.Parameters[i] = p
		s.Trials = slices.DeleteFunc(s.Trials, func(t Trial) bool {
			value, has := t.Params[p.Name]
			_, allowed := alone.At(0).Parse(value)
			outside := has && !allowed
			if outside {
				s.Left = append(s.Left, fmt.Sprintf("trial %s: its %s is %s, outside of what -p says: %s", t.ID, p.Name, value, alone.At(0).Allowed()))
			}
			return outside
		})
	}
	return nil
}

// conditions finds, for each parameter that some trials lack, another one whose value
// says which do. A trial that still lacks a parameter, or has one too many, is left out.
func (s *Study) conditions() {
	for i := range s.Parameters {
		p := &s.Parameters[i]
		if p.When == nil && slices.ContainsFunc(s.Trials, func(t Trial) bool { _, has := t.Params[p.Name]; return !has }) {
			p.When = s.condition(p.Name)
		}
	}
	s.Trials = slices.DeleteFunc(s.Trials, func(t Trial) bool {
		for _, p := range s.Parameters {
			if _, has := t.Params[p.Name]; has != active(p, t.Params) {
				s.Left = append(s.Left, fmt.Sprintf("trial %s: no rule says when it has %s", t.ID, p.Name))
				return true
			}
		}
		return false
	})
}

func active(p v1beta1.ParameterSpec, params map[string]string) bool {
	return p.When == nil || slices.Contains(p.When.In, params[p.When.Parameter])
}

// condition is that on which a parameter depends; nil when no other parameter tells.
func (s *Study) condition(name string) *v1beta1.ParameterCondition {
	for _, q := range s.Parameters {
		if q.Name == name || q.ParameterType != v1beta1.ParameterTypeCategorical {
			continue
		}
		with := map[string]bool{}
		tells := true
		for _, t := range s.Trials {
			_, has := t.Params[name]
			value, ok := t.Params[q.Name]
			before, seen := with[value]
			tells = tells && ok && (!seen || before == has)
			with[value] = has
		}
		if !tells {
			continue
		}
		c := &v1beta1.ParameterCondition{Parameter: q.Name}
		for value, has := range with {
			if has {
				c.In = append(c.In, value)
			}
		}
		slices.Sort(c.In)
		return c
	}
	return nil
}

// number writes large whole numbers as such: programs read no integer in 1e+06.
func number(v float64) string {
	if v == math.Trunc(v) && math.Abs(v) < 1e18 {
		return strconv.FormatFloat(v, 'f', 0, 64)
	}
	return strconv.FormatFloat(v, 'g', -1, 64)
}

// objectives are those that options name.
func objectives(o Options) (out []v1beta1.ObjectiveMetric) {
	for _, name := range o.Minimize {
		out = append(out, v1beta1.ObjectiveMetric{Type: v1beta1.ObjectiveTypeMinimize, ObjectiveMetricName: name})
	}
	for _, name := range o.Maximize {
		out = append(out, v1beta1.ObjectiveMetric{Type: v1beta1.ObjectiveTypeMaximize, ObjectiveMetricName: name})
	}
	return out
}

// state is what a word of a table or of a database says of a trial; "" when it has not
// ended.
func state(word string) v1beta1.TrialConditionType {
	switch strings.ToUpper(word) {
	case "COMPLETE", "SUCCEEDED", "":
		return v1beta1.TrialSucceeded
	case "PRUNED", "EARLYSTOPPED":
		return v1beta1.TrialEarlyStopped
	case "FAIL", "FAILED", "KILLED", "METRICSUNAVAILABLE", "INFEASIBLE":
		return v1beta1.TrialFailed
	}
	return ""
}

// when reads a time in the forms that the sources use.
func when(text string) time.Time {
	for _, layout := range []string{time.RFC3339Nano, "2006-01-02 15:04:05.999999", "2006-01-02T15:04:05.999999"} {
		if t, err := time.Parse(layout, text); err == nil {
			return t
		}
	}
	return time.Time{}
}

func byName(a, b v1beta1.ParameterSpec) int { return cmp.Compare(a.Name, b.Name) }
