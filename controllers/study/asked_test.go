package study

import (
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/vernier-ml/vernier/suggest"
)

// All that an algorithm sees of a trial that has ended is a part of what was known.
func TestTheHashOfATrialHasAllOfIt(t *testing.T) {
	trial := suggest.Trial{Number: 1, State: suggest.Succeeded, Values: []float64{1}, Constraints: []float64{2}, Curve: []suggest.Sample{{Step: 1, Value: 3}}}
	seen := map[uint64]string{printOf(&trial): "nothing"}
	other := map[string]any{
		"Number": 2, "State": suggest.Pruned, "Meta": suggest.Meta{"a": "b"}, "Point": suggest.Point{suggest.Value{}}, "Values": []float64{4},
		"Constraints": []float64{4}, "Resource": 5.0, "Duration": 6.0, "Curve": []suggest.Sample{{Step: 2, Value: 3}},
	}
	for i := range reflect.TypeFor[suggest.Trial]().NumField() {
		changed, name := trial, reflect.TypeFor[suggest.Trial]().Field(i).Name
		value, ok := other[name]
		if !ok {
			t.Errorf("the test does not know %s", name)
			continue
		}
		reflect.ValueOf(&changed).Elem().Field(i).Set(reflect.ValueOf(value))
		if was, twice := seen[printOf(&changed)]; twice {
			t.Errorf("with another %s the hash is that of another %s", name, was)
		}
		seen[printOf(&changed)] = name
	}
}

func TestNumbers(t *testing.T) {
	for text, want := range map[string][]int{"": nil, "0": {0}, "3,7-9": {3, 7, 8, 9}, "0-1,3": {0, 1, 3}} {
		r, err := readNumbers(text)
		if err != nil || r.String() != text {
			t.Errorf("%q is read as %q, %v", text, r, err)
		}
		var got []int
		for n := range 12 {
			if r.has(n) {
				got = append(got, n)
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%q: %s", text, diff)
		}
	}
	for _, text := range []string{"a", "1-", "3-1", "5,2", "1,,2", "-3", "9223372036854775807"} {
		if r, err := readNumbers(text); err == nil {
			t.Errorf("%q is read as %v", text, r)
		}
	}
}
