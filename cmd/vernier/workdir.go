package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// workdirHints are remarks about words of the template's commands that are files
// of the current directory cwd, and that a trial, which runs in /, will not find.
func workdirHints(experiment *unstructured.Unstructured, cwd string) (hints []string) {
	template, _, _ := unstructured.NestedMap(experiment.Object, "spec", "trialTemplate", "trialSpec")
	eachContainer(template, func(c map[string]any) {
		if dir, _, _ := unstructured.NestedString(c, "workingDir"); dir != "" {
			return
		}
		command, _, _ := unstructured.NestedStringSlice(c, "command")
		args, _, _ := unstructured.NestedStringSlice(c, "args")
		for _, word := range append(command, args...) {
			if filepath.IsAbs(word) || strings.HasPrefix(word, "-") || filepath.Ext(word) == "" {
				continue // an option, or a program of the PATH
			}
			if info, err := os.Stat(filepath.Join(cwd, word)); err == nil && info.Mode().IsRegular() {
				hints = append(hints, fmt.Sprintf("%s is in the current directory, but a trial runs in /: add \"workingDir: %s\" to container %v", word, cwd, c["name"]))
			}
		}
	})
	return hints
}

func eachContainer(value any, visit func(map[string]any)) {
	switch v := value.(type) {
	case map[string]any:
		for name, below := range v {
			list, isList := below.([]any)
			if name != "containers" || !isList {
				eachContainer(below, visit)
				continue
			}
			for _, item := range list {
				if c, ok := item.(map[string]any); ok {
					visit(c)
				}
			}
		}
	case []any:
		for _, below := range v {
			eachContainer(below, visit)
		}
	}
}
