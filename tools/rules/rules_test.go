// Package rules holds the alerts and the dashboard of config/prometheus to the metrics
// that docs/observability.md lists, which a test of cmd/manager holds to the code.
package rules

import (
	"encoding/json"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"
	"sigs.k8s.io/yaml"
)

const config = "../../config/prometheus/"

func read(t *testing.T, file string) []byte {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

type rule struct {
	Alert, Expr         string
	Labels, Annotations map[string]string
}

func alerts(t *testing.T) (all []rule) {
	t.Helper()
	var file struct{ Groups []struct{ Rules []rule } }
	if err := yaml.Unmarshal(read(t, config+"alerts.yaml"), &file); err != nil {
		t.Fatal(err)
	}
	for _, g := range file.Groups {
		all = append(all, g.Rules...)
	}
	return all
}

// query is one of the dashboard's, and the labels that its legend shows.
type query struct {
	where, expr string
	legend      []string
}

var inLegend = regexp.MustCompile(`\{\{(\w+)\}\}`)

func queries(t *testing.T) (all []query) {
	t.Helper()
	var dashboard struct {
		Panels []struct {
			Title   string
			Targets []struct{ Expr, LegendFormat string }
		}
	}
	if err := json.Unmarshal(read(t, config+"dashboard.json"), &dashboard); err != nil {
		t.Fatal(err)
	}
	variables := strings.NewReplacer("$namespace", "ml", "$__rate_interval", "5m")
	for _, p := range dashboard.Panels {
		for _, target := range p.Targets {
			q := query{where: "panel " + p.Title, expr: variables.Replace(target.Expr)}
			for _, m := range inLegend.FindAllStringSubmatch(target.LegendFormat, -1) {
				q.legend = append(q.legend, m[1])
			}
			all = append(all, q)
		}
	}
	for _, r := range alerts(t) {
		q := query{where: "alert " + r.Alert, expr: r.Expr}
		for _, m := range regexp.MustCompile(`\$labels\.(\w+)`).FindAllStringSubmatch(r.Annotations["summary"]+r.Annotations["description"], -1) {
			q.legend = append(q.legend, m[1])
		}
		all = append(all, q)
	}
	if len(all) < 20 {
		t.Fatalf("%d queries only", len(all))
	}
	return all
}

// ofTargets are labels that Prometheus itself gives all metrics.
var ofTargets = []string{"instance", "job", "pod"}

// metrics are the labels of each series that there is.
func metrics(t *testing.T) map[string][]string {
	t.Helper()
	row := regexp.MustCompile("(?m)^\\| `(\\w+)` \\| (counter|gauge|histogram) \\| ([^|]*) \\|")
	known := map[string][]string{}
	for _, m := range row.FindAllStringSubmatch(string(read(t, "../../docs/observability.md")), -1) {
		names := append(strings.FieldsFunc(m[3], func(c rune) bool { return strings.ContainsRune("`, ", c) }), ofTargets...)
		if m[2] != "histogram" {
			known[m[1]] = names
			continue
		}
		known[m[1]+"_bucket"], known[m[1]+"_sum"], known[m[1]+"_count"] = append(slices.Clip(names), "le"), names, names
	}
	return known
}

func TestQueriesAskForMetricsThatThereAre(t *testing.T) {
	known := metrics(t)
	for _, q := range queries(t) {
		expr, err := parser.NewParser(parser.Options{}).ParseExpr(q.expr)
		if err != nil {
			t.Errorf("%s: %v", q.where, err)
			continue
		}
		for _, problem := range check(expr, known) {
			t.Errorf("%s: %s: %s", q.where, q.expr, problem)
		}
		shown := labelsOf(expr, known)
		for _, l := range q.legend {
			if !slices.Contains(shown, l) {
				t.Errorf("%s: %s has no label %s, which is shown", q.where, q.expr, l)
			}
		}
	}
}

func check(expr parser.Expr, known map[string][]string) (problems []string) {
	parser.Inspect(expr, func(node parser.Node, _ []parser.Node) error {
		switch n := node.(type) {
		case *parser.VectorSelector:
			have, ok := known[n.Name]
			if !ok {
				problems = append(problems, "there is no metric "+n.Name)
			}
			for _, m := range n.LabelMatchers {
				if ok && m.Name != labels.MetricName && !slices.Contains(have, m.Name) {
					problems = append(problems, n.Name+" has no label "+m.Name)
				}
			}
		case *parser.AggregateExpr:
			for _, l := range n.Grouping {
				if !slices.Contains(labelsOf(n.Expr, known), l) {
					problems = append(problems, "grouped by "+l+", which is no label of "+n.Expr.String())
				}
			}
		}
		return nil
	})
	return problems
}

// labelsOf are those that the result of an expression has.
func labelsOf(expr parser.Expr, known map[string][]string) []string {
	switch e := expr.(type) {
	case *parser.VectorSelector:
		return known[e.Name]
	case *parser.MatrixSelector:
		return labelsOf(e.VectorSelector, known)
	case *parser.AggregateExpr:
		return e.Grouping
	case *parser.ParenExpr:
		return labelsOf(e.Expr, known)
	case *parser.BinaryExpr:
		if left := labelsOf(e.LHS, known); len(left) > 0 {
			return left
		}
		return labelsOf(e.RHS, known)
	case *parser.Call:
		if e.Func.Name == "absent" {
			return nil
		}
		for _, a := range e.Args {
			if l := labelsOf(a, known); len(l) > 0 {
				return slices.DeleteFunc(slices.Clone(l), func(l string) bool { return e.Func.Name == "histogram_quantile" && l == "le" })
			}
		}
	}
	return nil
}

func TestEachAlertSaysWhatToDo(t *testing.T) {
	const runbooks = "https://github.com/vernier-ml/vernier/blob/main/docs/troubleshooting.md#"
	page := string(read(t, "../../docs/troubleshooting.md"))
	for _, r := range alerts(t) {
		if want := runbooks + strings.ToLower(r.Alert); r.Annotations["runbook_url"] != want {
			t.Errorf("%s: runbook_url %s, want %s", r.Alert, r.Annotations["runbook_url"], want)
		}
		if !strings.Contains(page, "\n## "+r.Alert+"\n") {
			t.Errorf("docs/troubleshooting.md has no section %s", r.Alert)
		}
		if r.Annotations["summary"] == "" || r.Annotations["description"] == "" || !slices.Contains([]string{"critical", "warning"}, r.Labels["severity"]) {
			t.Errorf("%s: %v %v", r.Alert, r.Labels, r.Annotations)
		}
	}
}

func TestThePrometheusRuleIsTheFile(t *testing.T) {
	var rule struct{ Spec map[string]any }
	var file map[string]any
	if err := yaml.Unmarshal(read(t, config+"prometheusrule.yaml"), &rule); err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal(read(t, config+"alerts.yaml"), &file); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(file, rule.Spec); diff != "" {
		t.Errorf("run make chart and commit (-alerts.yaml +prometheusrule.yaml):\n%s", diff)
	}
}
