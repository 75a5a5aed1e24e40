package main

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/structured-merge-diff/v6/typed"
)

// experimentSchema is a part of an experiment's, as server-side apply sees it.
const experimentSchema = `types:
- name: experiment
  map:
    fields:
    - {name: goal, type: {scalar: numeric}}
    - {name: retain, type: {scalar: boolean}}
    - {name: min, type: {scalar: string}}
    - {name: list, type: {list: {elementType: {scalar: string}, elementRelationship: atomic}}}
    - {name: source, type: {map: {fields: [{name: path, type: {scalar: string}}]}}}
`

func TestErrorsOfTheSchemaAreInTheWordsOfTheFile(t *testing.T) {
	parser, err := typed.NewParser(experimentSchema)
	if err != nil {
		t.Fatal(err)
	}
	tests := map[string]struct {
		file string
		want []string
	}{
		"a number for a string":   {"min: 0.01", []string{"min: must be a string", `"0.01"`, "with quotes"}},
		"a boolean in a list":     {"list: [on, a]", []string{"list[0]", "boolean true", "y, n, yes, no, on and off"}},
		"a number in quotes":      {`goal: "0.9"`, []string{"goal: must be a number: write it without quotes"}},
		"a word for a number":     {"goal: on", []string{"goal: must be a number, and YAML reads the value as a boolean"}},
		"a map for a number":      {"goal: {a: 1}", []string{"goal: must be a number, and the file has a map or a list there"}},
		"a boolean in quotes":     {`retain: "true"`, []string{"retain: must be true or false, without quotes"}},
		"a map for a list":        {"list: {name: lr}", []string{"list: must be a list, and the file has a map or a list there"}},
		"a list for a map":        {"source: [path]", []string{"source: must be a map, and the file has a map or a list there"}},
		"a list for a string":     {"min: [1]", []string{"min: must be a string, and the file has a map or a list there"}},
		"a field that is unknown": {"objektive: {}", []string{"objektive: there is no such field"}},
		"several":                 {`{goal: "1", min: 1}`, []string{"goal: must be a number", `min: must be a string: write "1"`}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			_, fault := parser.Type("experiment").FromYAML(typed.YAMLObject(test.file))
			err := schemaError(fmt.Errorf("failed to create typed patch object (default/a; kubeflow.org/v1beta1, Kind=Experiment): %w", fault))
			if exitCode(err) != exitInvalid || strings.ContainsAny(err.Error(), "&{}") {
				t.Errorf("code %d: %v\nof %v", exitCode(err), err, fault)
			}
			requireText(t, err.Error(), test.want...)
		})
	}
	if err := errors.New("failed to create typed patch object: duplicate entries"); schemaError(err).Error() != err.Error() || exitCode(schemaError(err)) != exitInvalid {
		t.Errorf("%v", schemaError(err))
	}
	if err := errors.New("x"); !errors.Is(schemaError(err), err) || schemaError(nil) != nil {
		t.Error("another error is changed")
	}
}

func TestWhatTheSchemaRefusesIsWrittenOnce(t *testing.T) {
	tests := map[string]struct {
		says  string
		tries int
	}{
		"a number for a string": {"failed to create typed patch object (default/a; kubeflow.org/v1beta1, Kind=Experiment): .spec.min: expected string, got &value.valueUnstructured{Value:0.01}", 1},
		"a webhook that starts": {"failed calling webhook", 2},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			tries := 0
			err := patiently(t.Context(), func() error {
				if tries++; tries == 2 {
					return nil
				}
				return apierrors.NewInternalError(errors.New(test.says))
			})
			if tries != test.tries || (err == nil) != (test.tries == 2) {
				t.Errorf("written %d times, want %d: %v", tries, test.tries, err)
			}
		})
	}
}
