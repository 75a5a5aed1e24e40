package main

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/pmezard/go-difflib/difflib"
	"sigs.k8s.io/yaml"
)

// components are those of config/components that a value of the chart turns on.
var components = map[string]string{
	"alerts":           ".Values.alerts.enabled",
	"cert-manager":     ".Values.certManager.enabled",
	"impersonation":    ".Values.access.impersonate",
	"kubeflow":         ".Values.kubeflow.enabled",
	"network-policies": ".Values.networkPolicies.enabled",
}

// buildWith renders a kustomization with components of the folder beside it.
func buildWith(dir string, components ...string) ([]object, error) {
	overlay, err := os.MkdirTemp("", "vernier-chart")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(overlay) }()
	if dir, err = filepath.Abs(dir); err != nil {
		return nil, err
	}
	if dir, err = filepath.Rel(overlay, dir); err != nil {
		return nil, err
	}
	k := map[string]any{"resources": []string{dir}}
	for _, c := range components {
		paths, _ := k["components"].([]string)
		k["components"] = append(paths, filepath.Join(dir, "..", "components", c))
	}
	raw, err := yaml.Marshal(k)
	if err != nil {
		return nil, err
	}
	if err := os.WriteFile(filepath.Join(overlay, "kustomization.yaml"), raw, 0o600); err != nil {
		return nil, err
	}
	return build(overlay)
}

// change is what a component puts in the place of the lines [from, to).
type change struct {
	from, to  int
	with      []string
	condition string
}

// merge is a text that is, under each condition, the one which the condition has here.
func merge(text string, under map[string]string) (string, error) {
	base := strings.SplitAfter(text, "\n")
	var changes []change
	for condition, other := range under {
		lines := strings.SplitAfter(other, "\n")
		for _, op := range difflib.NewMatcher(base, lines).GetOpCodes() {
			if op.Tag != 'e' {
				changes = append(changes, change{op.I1, op.I2, lines[op.J1:op.J2], condition})
			}
		}
	}
	slices.SortFunc(changes, func(a, b change) int { return a.from - b.from })
	var merged strings.Builder
	done := 0
	for i, c := range changes {
		if i > 0 && c.from <= changes[i-1].to {
			return "", fmt.Errorf("%s and %s change the same lines: %q", changes[i-1].condition, c.condition, base[c.from])
		}
		merged.WriteString(strings.Join(base[done:c.from], ""))
		was, is := strings.Join(base[c.from:c.to], ""), strings.Join(c.with, "")
		switch {
		case is == "":
			fmt.Fprintf(&merged, "{{- if not %s }}\n%s{{- end }}\n", c.condition, was)
		case was == "":
			fmt.Fprintf(&merged, "{{- if %s }}\n%s{{- end }}\n", c.condition, is)
		default:
			fmt.Fprintf(&merged, "{{- if %s }}\n%s{{- else }}\n%s{{- end }}\n", c.condition, is, was)
		}
		done = c.to
	}
	merged.WriteString(strings.Join(base[done:], ""))
	return merged.String(), nil
}

// conditional are the objects of a kustomization, by file, each with those of the
// components that differ; and those that there are under a condition only.
func conditional(dir string, objects []object) (map[string]versions, error) {
	all := map[string]versions{}
	for _, o := range objects {
		all[o.file()] = versions{base: o, under: map[string]object{}}
	}
	for name, condition := range components {
		with, err := buildWith(dir, name)
		if err != nil {
			return nil, fmt.Errorf("with the component %s: %w", name, err)
		}
		for _, o := range with {
			if v, ok := all[o.file()]; ok {
				v.under[condition] = o
			} else {
				all[o.file()] = versions{base: o, only: condition}
			}
		}
	}
	return all, nil
}

type versions struct {
	base  object
	under map[string]object
	// only is the condition without which there is none.
	only string
}

// template is an object as a template of Helm.
func (v versions) template() (string, error) {
	e := edits{}
	text, condition, err := e.edited(v.base)
	if err != nil {
		return "", err
	}
	under := map[string]string{}
	for _, c := range slices.Sorted(maps.Keys(v.under)) {
		if under[c], _, err = e.edited(v.under[c]); err != nil {
			return "", err
		}
	}
	if text, err = merge(text, under); err != nil {
		return "", err
	}
	text = strings.ReplaceAll(e.apply(text), namespace, "{{ .Release.Namespace }}")
	for _, c := range []string{condition, v.only} {
		if c != "" {
			text = "{{- if " + c + " }}\n" + text + "{{- end }}\n"
		}
	}
	return "# Made by make chart from config/default.\n" + text, nil
}
