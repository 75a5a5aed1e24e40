package api

import (
	"strings"
	"testing"

	"connectrpc.com/connect"
)

func TestNamesAreThoseOfObjects(t *testing.T) {
	for name, c := range map[string]struct {
		name string
		form string
		ok   bool
	}{
		"a trial":                 {"namespaces/ml/experiments/exp.v2/trials/exp.v2-0003", trialForm, true},
		"the longest":             {"namespaces/" + strings.Repeat("n", 63) + "/experiments/" + strings.Repeat("e", 253), experimentForm, true},
		"a long namespace":        {"namespaces/" + strings.Repeat("n", 64), namespaceForm, false},
		"a long experiment":       {"namespaces/ml/experiments/" + strings.Repeat("e", 254), experimentForm, false},
		"a long trial":            {"namespaces/ml/experiments/exp/trials/" + strings.Repeat("t", 3<<20), trialForm, false},
		"capitals":                {"namespaces/ML", namespaceForm, false},
		"a space":                 {"namespaces/ml/experiments/an exp", experimentForm, false},
		"no name":                 {"namespaces/", namespaceForm, false},
		"another form":            {"namespaces/ml", experimentForm, false},
		"another kind of objects": {"namespaces/ml/studies/exp", experimentForm, false},
	} {
		t.Run(name, func(t *testing.T) {
			p, err := parsePlace("name", c.name, c.form)
			switch {
			case c.ok && (err != nil || p.String() != c.name):
				t.Errorf("%v, %v", p, err)
			case !c.ok && (connect.CodeOf(err) != connect.CodeInvalidArgument || len(err.Error()) > 1024):
				t.Errorf("%.2000v", err)
			}
		})
	}
}
