package main

import (
	"errors"
	"strings"
	"testing"
)

func TestErrorsOfTheSchemaAreInTheWordsOfTheFile(t *testing.T) {
	const start = "failed to create typed patch object (default/a; kubeflow.org/v1beta1, Kind=Experiment): "
	tests := map[string]struct {
		err  string
		want []string
	}{
		"a number in a space": {start + ".spec.parameters[0].feasibleSpace.min: expected string, got &value.valueUnstructured{Value:0.01}",
			[]string{"spec.parameters[0].feasibleSpace.min", `"0.01"`, "with quotes"}},
		"a boolean in a list": {start + ".spec.parameters[1].feasibleSpace.list[0]: expected string, got &value.valueUnstructured{Value:true}",
			[]string{"spec.parameters[1].feasibleSpace.list[0]", "boolean true", "y, n, yes, no, on and off"}},
		"a goal in quotes": {start + `.spec.objective.goal: expected numeric (int or float), got &value.valueUnstructured{Value:"0.9"}`,
			[]string{"spec.objective.goal", "must be a number", "0.9, without quotes"}},
		"a map for a list": {start + ".spec.parameters: expected list, got &value.valueUnstructured{Value:map[string]interface {}{\"name\":\"lr\"}}",
			[]string{"spec.parameters", "must be a list"}},
		"a field that is unknown": {start + ".spec.objektive: field not declared in schema", []string{"spec.objektive", "no such field"}},
		"several": {start + "errors:\n  .spec.a: field not declared in schema\n  .spec.b: expected string, got &value.valueUnstructured{Value:1}",
			[]string{"spec.a: there is no such field", `spec.b: must be a string: write "1"`}},
		"anything else": {start + ".spec: duplicate entries for key", []string{"duplicate entries"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			err := schemaError(errors.New(test.err))
			if exitCode(err) != exitInvalid || strings.Contains(err.Error(), "valueUnstructured") {
				t.Errorf("code %d: %v", exitCode(err), err)
			}
			requireText(t, err.Error(), test.want...)
		})
	}
	if err := errors.New("x"); schemaError(err) != err || schemaError(nil) != nil {
		t.Error("another error is changed")
	}
}
