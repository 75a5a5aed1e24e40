package api

import (
	"cmp"
	"context"
	"encoding/json"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	vernierv1 "github.com/vernier-ml/vernier/api/proto/vernier/v1"
	"github.com/vernier-ml/vernier/api/v1beta1"
	"github.com/vernier-ml/vernier/collector"
	"github.com/vernier-ml/vernier/collector/contract"
	"github.com/vernier-ml/vernier/controllers/alert"
)

const (
	// maxMessage bounds a message in a table, in bytes.
	maxMessage = 300
	// maxRows bounds the rows of all tables that are remembered.
	maxRows = 200_000
)

// row is a trial as a line of a table, at one version of its object.
type row struct {
	uid                          types.UID
	version                      uint64
	number                       int32
	state                        vernierv1.Trial_State
	create, start, end, resource float64
	continues                    int32
	message, diverged            string
	texts                        []string  // of the categorical parameters
	numbers                      []float64 // of the others
	metrics                      []float64
	usage                        []float64 // by usageNames; nil where nothing was sampled
}

// table is what is remembered of an experiment's trials: each is read once for each
// version of its object. Losing it costs time only.
type table struct {
	mu   sync.Mutex
	spec int64 // the generation of the experiment whose columns they are
	rows []row // in ascending order of number
}

// tables are those of the experiments that were asked for last.
type tables struct {
	mu   sync.Mutex
	used []usedTable // the one used last comes last
}

type usedTable struct {
	uid  types.UID
	rows int
	*table
}

// of is the table of an experiment that has so many trials.
func (t *tables) of(uid types.UID, rows int) *table {
	t.mu.Lock()
	defer t.mu.Unlock()
	u := usedTable{uid: uid, table: &table{}}
	if i := slices.IndexFunc(t.used, func(u usedTable) bool { return u.uid == uid }); i >= 0 {
		u = t.used[i]
		t.used = slices.Delete(t.used, i, i+1)
	}
	u.rows = rows
	t.used = append(t.used, u)
	sum := 0
	for i := len(t.used) - 1; i >= 0; i-- {
		if sum += t.used[i].rows; sum > maxRows && i < len(t.used)-1 {
			t.used = slices.Delete(t.used, 0, i+1)
			break
		}
	}
	return u.table
}

// ListTrialColumns implements vernierv1.DashboardServiceHandler.
func (s *service) ListTrialColumns(ctx context.Context, r *vernierv1.ListTrialColumnsRequest) (*vernierv1.TrialColumns, error) {
	p, err := parsePlace("parent", r.GetParent(), experimentForm)
	if err != nil {
		return nil, err
	}
	return s.columns(ctx, p, r.GetSince())
}

func (s *service) columns(ctx context.Context, p place, since string) (*vernierv1.TrialColumns, error) {
	exp, trials, err := s.trials(ctx, p)
	if err != nil {
		return nil, err
	}
	t := s.tables.of(exp.UID, len(trials))
	t.mu.Lock()
	defer t.mu.Unlock()
	t.update(exp, trials, s.Now())
	from, known := seen(exp.UID, since)
	rows, newest := t.rows, from
	for i := range t.rows {
		newest = max(newest, t.rows[i].version)
	}
	if known {
		rows = nil
		for i := range t.rows {
			if t.rows[i].version > from {
				rows = append(rows, t.rows[i])
			}
		}
	}
	out := columnsOf(exp, rows)
	out.Revision, out.Whole, out.Total = revision(exp.UID, newest), !known, int32(len(t.rows))
	return out, nil
}

// revision names what was seen: the object that it is of, and the newest version in
// it. Versions are those of etcd, so it means the same to every manager.
func revision(uid types.UID, version uint64) string {
	return string(uid) + "." + strconv.FormatUint(version, 10)
}

// seen reads a revision of the object uid.
func seen(uid types.UID, text string) (version uint64, ok bool) {
	of, number, found := strings.Cut(text, ".")
	if !found || of != string(uid) {
		return 0, false
	}
	version, err := strconv.ParseUint(number, 10, 64)
	return version, err == nil
}

func versionOf(o metav1.Object) uint64 {
	version, err := strconv.ParseUint(o.GetResourceVersion(), 10, 64)
	if err != nil {
		return math.MaxInt64 // sent each time
	}
	return version
}

// update takes in the trials, in order of number. Those without a number were made by
// hand and are left out, as are those that repeat one.
func (t *table) update(exp *v1beta1.Experiment, trials []*v1beta1.Trial, now time.Time) {
	if t.spec != exp.Generation {
		t.rows, t.spec = nil, exp.Generation
	}
	metrics := metricNames(exp)
	rows := make([]row, 0, len(trials))
	at := 0
	for _, trial := range trials {
		number, ok := trial.Number()
		if !ok || len(rows) > 0 && int(rows[len(rows)-1].number) >= number {
			continue
		}
		for at < len(t.rows) && int(t.rows[at].number) < number {
			at++
		}
		version := versionOf(trial)
		if at < len(t.rows) && t.rows[at].uid == trial.UID && t.rows[at].version == version {
			rows = append(rows, t.rows[at])
			continue
		}
		rows = append(rows, rowOf(exp, trial, int32(number), version, metrics, now))
	}
	t.rows = rows
}

// metricNames are the metrics of an experiment's table, the objectives first.
func metricNames(exp *v1beta1.Experiment) (metrics []string) {
	add := func(name string) {
		if name != "" && !slices.Contains(metrics, name) {
			metrics = append(metrics, name)
		}
	}
	for _, o := range exp.Spec.AllObjectives() {
		add(o.ObjectiveMetricName)
	}
	if exp.Spec.Objective != nil {
		for _, name := range exp.Spec.Objective.AdditionalMetricNames {
			add(name)
		}
	}
	return metrics
}

func rowOf(exp *v1beta1.Experiment, t *v1beta1.Trial, number int32, version uint64, metrics []string, now time.Time) row {
	parameters := exp.Spec.Parameters
	lease, outside := t.Lease()
	r := row{
		uid: t.UID, version: version, number: number, state: trialState(t, outside && !lease.Held(now)),
		create: seconds(&t.CreationTimestamp), start: seconds(t.Status.StartTime), end: seconds(t.Status.CompletionTime), continues: -1,
		texts: make([]string, len(parameters)), numbers: make([]float64, len(parameters)), metrics: make([]float64, len(metrics)),
	}
	r.resource, _ = strconv.ParseFloat(t.Annotations[v1beta1.AnnotationResource], 64) // absent: 0
	if n, ok := parentOf(t); ok {
		r.continues = n
	}
	if c := t.LastCondition(); c != nil {
		r.message = contract.Shorten(c.Message, maxMessage)
		if why := t.Annotations[v1beta1.AnnotationWhy]; why != "" && t.IsSucceeded() {
			r.message = contract.Shorten(why, maxMessage)
		}
	}
	for i := range r.numbers {
		r.numbers[i] = math.NaN()
	}
	for i, a := range t.Spec.ParameterAssignments {
		if i >= len(parameters) || parameters[i].Name != a.Name { // most are in the order of the spec
			i = slices.IndexFunc(parameters, func(p v1beta1.ParameterSpec) bool { return p.Name == a.Name })
		}
		switch {
		case i < 0:
		case parameters[i].ParameterType == v1beta1.ParameterTypeCategorical:
			r.texts[i] = a.Value
		default:
			r.numbers[i] = numberOf(a.Value)
		}
	}
	values := valuesOut(t)
	for i, name := range metrics {
		r.metrics[i] = math.NaN()
		if v, ok := values[name]; ok {
			r.metrics[i] = v
		}
	}
	for _, o := range exp.Spec.AllObjectives() {
		if value, bad := alert.NotFinite(t, o.ObjectiveMetricName); bad {
			r.diverged = cmp.Or(r.diverged, o.ObjectiveMetricName+" "+value)
		}
	}
	r.usage = usageOf(t.Status.Usage)
	return r
}

// usageNames are the columns of what trials used of their machines.
var usageNames = []string{"gpu_utilization", "gpu_memory", "cpu_cores", "memory"}

// usageOf sums up what a trial used, by usageNames.
func usageOf(used []v1beta1.Metric) []float64 {
	if len(used) == 0 {
		return nil
	}
	out, gpus := []float64{math.NaN(), math.NaN(), math.NaN(), math.NaN()}, 0.0
	for _, m := range used {
		switch mean, most := numberOf(m.Value), numberOf(m.Max); {
		case m.Name == collector.SystemCPU:
			out[2] = mean
		case m.Name == collector.SystemMemory:
			out[3] = most
		case strings.HasSuffix(m.Name, collector.GPUUtilization):
			if gpus++; gpus == 1 {
				out[0] = 0
			}
			out[0] += (mean - out[0]) / gpus
		case strings.HasSuffix(m.Name, collector.GPUMemory):
			if math.IsNaN(out[1]) {
				out[1] = 0
			}
			out[1] += most
		}
	}
	return out
}

func seconds(t *metav1.Time) float64 {
	if t.IsZero() {
		return math.NaN()
	}
	return float64(t.UnixMilli()) / 1000
}

// parentOf is the number of the trial that t continues.
func parentOf(t *v1beta1.Trial) (number int32, ok bool) {
	text := t.Annotations[v1beta1.AnnotationMeta]
	if text == "" {
		return 0, false
	}
	var meta struct {
		Parent string `json:"parent"`
	}
	if json.Unmarshal([]byte(text), &meta) != nil {
		return 0, false // not written by us
	}
	n, err := strconv.ParseInt(meta.Parent, 10, 32)
	return int32(n), err == nil && n >= 0
}

// columnsOf turns rows into columns.
func columnsOf(exp *v1beta1.Experiment, rows []row) *vernierv1.TrialColumns {
	n := len(rows)
	out := &vernierv1.TrialColumns{
		Number: make([]int32, n), State: make([]vernierv1.Trial_State, n), CreateTime: make([]float64, n), StartTime: make([]float64, n),
		EndTime: make([]float64, n), Resource: make([]float64, n), Continues: make([]int32, n),
		Message: textColumn(n, func(i int) string { return rows[i].message }), Optimal: optimal(exp),
		Diverged: textColumn(n, func(i int) string { return rows[i].diverged }),
	}
	for i := range rows {
		r := &rows[i]
		out.Number[i], out.State[i], out.Resource[i], out.Continues[i] = r.number, r.state, r.resource, r.continues
		out.CreateTime[i], out.StartTime[i], out.EndTime[i] = r.create, r.start, r.end
	}
	for k, p := range exp.Spec.Parameters {
		c := &vernierv1.Column{Name: p.Name}
		if p.ParameterType == v1beta1.ParameterTypeCategorical {
			c.Text = textColumn(n, func(i int) string { return rows[i].texts[k] })
		} else {
			c.Number = make([]float64, n)
			for i := range rows {
				c.Number[i] = rows[i].numbers[k]
			}
		}
		out.Parameters = append(out.Parameters, c)
	}
	for k, name := range metricNames(exp) {
		c := &vernierv1.Column{Name: name, Number: make([]float64, n)}
		for i := range rows {
			c.Number[i] = rows[i].metrics[k]
		}
		out.Metrics = append(out.Metrics, c)
	}
	if slices.ContainsFunc(rows, func(r row) bool { return r.usage != nil }) {
		for k, name := range usageNames {
			c := &vernierv1.Column{Name: name, Number: make([]float64, n)}
			for i := range rows {
				if c.Number[i] = math.NaN(); rows[i].usage != nil {
					c.Number[i] = rows[i].usage[k]
				}
			}
			out.Usage = append(out.Usage, c)
		}
	}
	return out
}

func numberOf(text string) float64 {
	v, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return math.NaN()
	}
	return v
}

// textColumn is a column of n texts; an empty one is none.
func textColumn(n int, text func(i int) string) *vernierv1.TextColumn {
	out, index := &vernierv1.TextColumn{Index: make([]int32, n)}, map[string]int32{}
	for i := range n {
		t := text(i)
		at, known := index[t]
		if t == "" {
			at = -1
		} else if !known {
			at = int32(len(out.Texts))
			index[t] = at
			out.Texts = append(out.Texts, t)
		}
		out.Index[i] = at
	}
	return out
}

// optimal are the numbers of the best trials, in ascending order.
func optimal(exp *v1beta1.Experiment) (numbers []int32) {
	for _, name := range append([]string{exp.Status.CurrentOptimalTrial.BestTrialName}, exp.Status.ParetoTrialList...) {
		if n, ok := numberIn(exp, name); ok {
			numbers = append(numbers, n)
		}
	}
	slices.SortFunc(numbers, func(a, b int32) int { return cmp.Compare(a, b) })
	return slices.Compact(numbers)
}
