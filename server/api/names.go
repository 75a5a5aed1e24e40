package api

import (
	"strings"

	"k8s.io/apimachinery/pkg/types"
)

// place is a resource name: a namespace, an experiment in it, a trial of that.
type place struct{ namespace, experiment, trial string }

const (
	namespaceForm  = "namespaces/NAMESPACE"
	experimentForm = namespaceForm + "/experiments/NAME"
	trialForm      = experimentForm + "/trials/TRIAL"
)

// parsePlace reads the name in a field that has one of the forms above.
func parsePlace(field, name, form string) (place, error) {
	parts, want := strings.Split(name, "/"), strings.Split(form, "/")
	ok := len(parts) == len(want)
	for i := 0; ok && i < len(parts); i++ {
		ok = parts[i] != "" && (i%2 == 1 || parts[i] == want[i])
	}
	if !ok {
		return place{}, invalid("write "+form, "%s is %q", field, name)
	}
	parts = append(parts, "", "", "", "")
	return place{parts[1], parts[3], parts[5]}, nil
}

func (p place) key() types.NamespacedName {
	return types.NamespacedName{Namespace: p.namespace, Name: p.experiment}
}

func (p place) trialKey() types.NamespacedName {
	return types.NamespacedName{Namespace: p.namespace, Name: p.trial}
}

func (p place) String() string {
	name := "namespaces/" + p.namespace
	if p.experiment != "" {
		name += "/experiments/" + p.experiment
	}
	if p.trial != "" {
		name += "/trials/" + p.trial
	}
	return name
}
