package main

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/vernier-ml/vernier/api/v1beta1"
)

func TestValuesChangeAPoint(t *testing.T) {
	type point = []v1beta1.ParameterAssignment
	cases := map[string]struct {
		from   point
		values []string
		want   point
		wrong  bool
	}{
		"new":         {values: []string{"lr=0.1", "text=a=b"}, want: point{{Name: "lr", Value: "0.1"}, {Name: "text", Value: "a=b"}}},
		"changed":     {from: point{{Name: "lr", Value: "0.1"}, {Name: "n", Value: "3"}}, values: []string{"lr=0.2"}, want: point{{Name: "lr", Value: "0.2"}, {Name: "n", Value: "3"}}},
		"no value":    {values: []string{"lr"}, wrong: true},
		"no name":     {values: []string{"=3"}, wrong: true},
		"as it is":    {from: point{{Name: "lr", Value: "0.1"}}, want: point{{Name: "lr", Value: "0.1"}}},
		"empty value": {values: []string{"note="}, want: point{{Name: "note"}}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := assigned(c.from, c.values)
			if diff := cmp.Diff(c.want, got); diff != "" || (err != nil) != c.wrong {
				t.Errorf("%v\n%s", err, diff)
			}
		})
	}
}
