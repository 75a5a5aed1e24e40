package api

import (
	"strings"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
)

// place is a resource name: a namespace, an experiment in it, a trial of that.
type place struct{ namespace, experiment, trial string }

const (
	namespaceForm  = "namespaces/NAMESPACE"
	experimentForm = namespaceForm + "/experiments/NAME"
	trialForm      = experimentForm + "/trials/TRIAL"
)

// parsePlace reads the name in a field that has one of the forms above. Its parts are
// names that objects can have, so none is longer than 253 bytes.
func parsePlace(field, name, form string) (place, error) {
	parts, want := strings.Split(name, "/"), strings.Split(form, "/")
	ok := len(parts) == len(want)
	for i := 0; ok && i < len(parts); i++ {
		switch {
		case i%2 == 0:
			ok = parts[i] == want[i]
		case i == 1:
			ok = len(validation.IsDNS1123Label(parts[i])) == 0
		default:
			ok = len(validation.IsDNS1123Subdomain(parts[i])) == 0
		}
	}
	if !ok {
		return place{}, invalid("write "+form+" with the names of objects", "%s is %.600q", field, name)
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
