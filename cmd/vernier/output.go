package main

import (
	"encoding/json"
	"fmt"
	"io"

	"github.com/vernier-ml/vernier/api/v1beta1"
	"sigs.k8s.io/yaml"
)

// writeObjects writes items in the formats that are not tables; done is false
// when output names a table.
func writeObjects[T any](out io.Writer, output, kind string, items []T, name func(T) string) (done bool, err error) {
	switch output {
	case "table", "wide", "":
		return false, nil
	case "name":
		for _, item := range items {
			if _, err := fmt.Fprintln(out, name(item)); err != nil {
				return true, err
			}
		}
		return true, nil
	}
	if items == nil {
		items = []T{}
	}
	list := struct {
		APIVersion string `json:"apiVersion"`
		Kind       string `json:"kind"`
		Items      []T    `json:"items"`
	}{v1beta1.GroupVersion.String(), kind, items}
	return true, writeValue(out, output, list)
}

// writeValue writes one value as json or yaml.
func writeValue(out io.Writer, output string, value any) error {
	var data []byte
	var err error
	switch output {
	case "json":
		data, err = json.MarshalIndent(value, "", "  ")
		data = append(data, '\n')
	case "yaml":
		data, err = yaml.Marshal(value)
	default:
		return usageErrorf("unknown output format %q", output)
	}
	if err != nil {
		return err
	}
	_, err = out.Write(data)
	return err
}
