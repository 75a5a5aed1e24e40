package imported

import (
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"

	_ "modernc.org/sqlite" // the driver

	"github.com/vernier-ml/vernier/api/v1beta1"
)

// readOptuna reads a study from Optuna's storage in a file of SQLite (RDBStorage,
// versions 2.4 to 5).
func readOptuna(path string, o Options) (*Study, error) {
	if _, err := os.Stat(path); err != nil {
		return nil, err
	}
	db, err := sql.Open("sqlite", "file:"+(&url.URL{Path: path}).EscapedPath()+"?mode=ro&_pragma=busy_timeout(10000)")
	if err != nil {
		return nil, err
	}
	defer db.Close()
	tx, err := db.Begin() // a program may be writing to it
	if err != nil {
		return nil, err
	}
	defer func() { _ = tx.Rollback() }() // nothing was written
	source := optuna{tx}
	id, name, err := source.study(o.Study)
	if err != nil {
		return nil, err
	}
	s := &Study{Name: name}
	if s.Objectives, err = source.objectives(id, o); err != nil {
		return nil, err
	}
	if err := source.trials(s, id); err != nil {
		return nil, err
	}
	s.conditions()
	return s, nil
}

type optuna struct{ tx *sql.Tx }

// study is the only one, or that of a name.
func (f optuna) study(name string) (id int64, found string, err error) {
	names := map[string]int64{}
	err = f.each("SELECT study_id, study_name FROM studies", func(scan func(...any) error) error {
		var id int64
		var n string
		err := scan(&id, &n)
		names[n] = id
		return err
	})
	if err != nil {
		return 0, "", fmt.Errorf("it is no storage of Optuna in SQLite, as a file is taken to be unless its name ends in .csv, .yaml, .yml or .json: %w", err)
	}
	var all []string
	for n := range names {
		all = append(all, n)
	}
	slices.Sort(all)
	switch id, ok := names[name]; {
	case ok:
		return id, name, nil
	case name == "" && len(all) == 1:
		return names[all[0]], all[0], nil
	case len(all) == 0:
		return 0, "", errors.New("it has no studies")
	}
	return 0, "", fmt.Errorf("say which study, with --study: there are %s", strings.Join(all, ", "))
}

// objectives have the names that the study gives them, or those of options, or value.
func (f optuna) objectives(study int64, o Options) (out []v1beta1.ObjectiveMetric, err error) {
	var names []string
	err = f.each("SELECT value_json FROM study_system_attributes WHERE key = 'study:metric_names' AND study_id = "+strconv.FormatInt(study, 10), func(scan func(...any) error) error {
		var text string
		if err := scan(&text); err != nil {
			return err
		}
		return json.Unmarshal([]byte(text), &names)
	})
	if err != nil {
		return nil, err
	}
	for _, objective := range objectives(o) {
		names = append(names, objective.ObjectiveMetricName)
	}
	err = f.each("SELECT direction, objective FROM study_directions WHERE study_id = "+strconv.FormatInt(study, 10)+" ORDER BY objective", func(scan func(...any) error) error {
		var direction string
		var n int
		if err := scan(&direction, &n); err != nil {
			return err
		}
		name := "value"
		if n > 0 {
			name = fmt.Sprintf("value_%d", n)
		}
		if n < len(names) {
			name = names[n]
		}
		kind := v1beta1.ObjectiveTypeMinimize
		if direction == "MAXIMIZE" {
			kind = v1beta1.ObjectiveTypeMaximize
		}
		out = append(out, v1beta1.ObjectiveMetric{Type: kind, ObjectiveMetricName: name})
		return nil
	})
	if err == nil && len(out) == 0 {
		err = errors.New("the study has no directions")
	}
	return out, err
}

func (f optuna) trials(s *Study, study int64) error {
	of := " WHERE trial_id IN (SELECT trial_id FROM trials WHERE study_id = " + strconv.FormatInt(study, 10) + " AND state NOT IN ('RUNNING', 'WAITING'))"
	params, space, err := f.params(of)
	if err != nil {
		return err
	}
	s.Parameters = space
	values := map[int64]map[string]float64{}
	err = f.each("SELECT trial_id, objective, value, value_type FROM trial_values"+of, func(scan func(...any) error) error {
		var id int64
		var n int
		var value sql.NullFloat64
		var kind string
		if err := scan(&id, &n, &value, &kind); err != nil || n >= len(s.Objectives) {
			return err
		}
		if values[id] == nil {
			values[id] = map[string]float64{}
		}
		values[id][s.Objectives[n].ObjectiveMetricName] = special(value, kind)
		return nil
	})
	if err != nil {
		return err
	}
	curves := map[int64][]Sample{}
	err = f.each("SELECT trial_id, step, intermediate_value, intermediate_value_type FROM trial_intermediate_values"+of+" ORDER BY step", func(scan func(...any) error) error {
		var id int64
		sample := Sample{Metric: s.Objectives[0].ObjectiveMetricName}
		var value sql.NullFloat64
		var kind string
		err := scan(&id, &sample.Step, &value, &kind)
		sample.Value = special(value, kind)
		curves[id] = append(curves[id], sample)
		return err
	})
	if err != nil {
		return err
	}
	return f.each("SELECT trial_id, number, state, CAST(datetime_start AS TEXT), CAST(datetime_complete AS TEXT) FROM trials WHERE study_id = "+strconv.FormatInt(study, 10)+" ORDER BY number", func(scan func(...any) error) error {
		var id, n int64
		var word string
		var start, end sql.NullString
		if err := scan(&id, &n, &word, &start, &end); err != nil {
			return err
		}
		t := Trial{ID: strconv.FormatInt(n, 10), Params: params[id], Values: values[id], Curve: curves[id], State: state(word), Started: when(start.String), Ended: when(end.String)}
		if t.Params == nil {
			t.Params = map[string]string{}
		}
		s.add(t)
		return nil
	})
}

// special is a value that may be one of those for which databases have no number.
func special(value sql.NullFloat64, kind string) float64 {
	switch kind {
	case "INF_POS":
		return math.Inf(1)
	case "INF_NEG":
		return math.Inf(-1)
	case "NAN":
		return math.NaN()
	}
	return value.Float64
}

// params are the values by trial and name, and the widest space of each name.
func (f optuna) params(of string) (map[int64]map[string]string, []v1beta1.ParameterSpec, error) {
	params := map[int64]map[string]string{}
	space := map[string]v1beta1.ParameterSpec{}
	err := f.each("SELECT trial_id, param_name, param_value, distribution_json FROM trial_params"+of+" ORDER BY param_id", func(scan func(...any) error) error {
		var id int64
		var name, text string
		var value float64
		if err := scan(&id, &name, &value, &text); err != nil {
			return err
		}
		var d distribution
		if err := json.Unmarshal([]byte(text), &d); err != nil {
			return fmt.Errorf("parameter %s: %w", name, err)
		}
		spec, err := d.spec(name)
		if err != nil {
			return err
		}
		before, seen := space[name]
		if seen {
			spec = widest(before, spec)
		}
		space[name] = spec
		if params[id] == nil {
			params[id] = map[string]string{}
		}
		params[id][name], err = d.value(value)
		return err
	})
	var out []v1beta1.ParameterSpec
	for _, p := range space {
		out = append(out, p)
	}
	slices.SortFunc(out, byName)
	return params, out, err
}

// distribution is how Optuna writes one.
type distribution struct {
	Name       string `json:"name"`
	Attributes struct {
		Low, High float64
		Step, Q   *float64
		Log       bool
		Choices   []json.RawMessage
	} `json:"attributes"`
}

func (d distribution) spec(name string) (v1beta1.ParameterSpec, error) {
	a := d.Attributes
	p := v1beta1.ParameterSpec{Name: name, ParameterType: v1beta1.ParameterTypeDouble, FeasibleSpace: v1beta1.FeasibleSpace{Min: number(a.Low), Max: number(a.High)}}
	if a.Log || strings.Contains(d.Name, "LogUniform") {
		p.FeasibleSpace.Distribution = v1beta1.DistributionLogUniform
	}
	switch {
	case d.Name == "CategoricalDistribution":
		p.ParameterType, p.FeasibleSpace = v1beta1.ParameterTypeCategorical, v1beta1.FeasibleSpace{}
		for _, choice := range a.Choices {
			p.FeasibleSpace.List = append(p.FeasibleSpace.List, choiceText(choice))
		}
		return p, nil
	case strings.HasPrefix(d.Name, "Int"):
		p.ParameterType = v1beta1.ParameterTypeInt
	case d.Name != "FloatDistribution" && !strings.HasSuffix(d.Name, "UniformDistribution"):
		return p, fmt.Errorf("parameter %s has a %s, which is not known", name, d.Name)
	}
	for _, step := range []*float64{a.Step, a.Q} {
		if step != nil && *step > 0 && (p.ParameterType == v1beta1.ParameterTypeDouble || *step != 1) {
			p.FeasibleSpace.Step = number(*step)
		}
	}
	return p, nil
}

// value is what a number of the database stands for.
func (d distribution) value(v float64) (string, error) {
	if d.Name != "CategoricalDistribution" {
		return number(v), nil
	}
	if i := int(v); i >= 0 && i < len(d.Attributes.Choices) {
		return choiceText(d.Attributes.Choices[i]), nil
	}
	return "", fmt.Errorf("choice %v of %d", v, len(d.Attributes.Choices))
}

// choiceText is a text, or anything else as JSON has it: 1000000 and not 1e+06.
func choiceText(choice json.RawMessage) string {
	var text string
	if err := json.Unmarshal(choice, &text); err != nil || choice[0] != '"' {
		return string(choice)
	}
	return text
}

// widest has the values of both.
func widest(a, b v1beta1.ParameterSpec) v1beta1.ParameterSpec {
	bound := func(x, y string, pick func(float64, float64) float64) string {
		p, err1 := strconv.ParseFloat(x, 64)
		q, err2 := strconv.ParseFloat(y, 64)
		if errors.Join(err1, err2) != nil {
			return x
		}
		return number(pick(p, q))
	}
	a.FeasibleSpace.Min = bound(a.FeasibleSpace.Min, b.FeasibleSpace.Min, math.Min)
	a.FeasibleSpace.Max = bound(a.FeasibleSpace.Max, b.FeasibleSpace.Max, math.Max)
	if a.FeasibleSpace.Step != b.FeasibleSpace.Step {
		a.FeasibleSpace.Step = ""
	}
	for _, v := range b.FeasibleSpace.List {
		if !slices.Contains(a.FeasibleSpace.List, v) {
			a.FeasibleSpace.List = append(a.FeasibleSpace.List, v)
		}
	}
	return a
}

// each calls row for each row of an answer.
func (f optuna) each(query string, row func(scan func(...any) error) error) error {
	rows, err := f.tx.Query(query)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		if err := row(rows.Scan); err != nil {
			return err
		}
	}
	return rows.Err()
}
