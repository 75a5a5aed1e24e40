package tensorboard_test

import (
	"bytes"
	"testing"
	"time"

	"github.com/vernier-ml/vernier/collector/parse"
	"github.com/vernier-ml/vernier/collector/tensorboard"
)

// Our own reader takes the file for an event file without scalars. That
// TensorBoard reads it is tested with TensorBoard (e2e/writers).
func TestTheFileIsAnEventFile(t *testing.T) {
	tests := map[string]tensorboard.Session{
		"no parameters":         {Group: "t-0001"},
		"a number and a text":   {Group: "t-0001", Parameters: []tensorboard.Parameter{{Name: "lr", Value: "1e-3"}, {Name: "opt", Value: "adam"}}},
		"a name with 300 bytes": {Parameters: []tensorboard.Parameter{{Name: string(bytes.Repeat([]byte("n"), 300)), Value: "inf"}}},
	}
	for name, s := range tests {
		t.Run(name, func(t *testing.T) {
			s.Started = time.Unix(1_700_000_000, 250_000_000)
			file := append(tensorboard.Start(s), tensorboard.End(tensorboard.StatusSuccess, s.Started.Add(time.Minute))...)
			var unknown []string
			w := parse.NewWanted([]string{"loss"}, func(tag []byte) { unknown = append(unknown, string(tag)) })
			next, err := parse.NewEvents().Read(bytes.NewReader(file), 0, w, func(s parse.Scalar) bool {
				t.Errorf("a scalar: %+v", s)
				return true
			})
			if err != nil || next != int64(len(file)) || unknown != nil {
				t.Errorf("read %d of %d bytes, error %v, scalars %q", next, len(file), err, unknown)
			}
			if at, ok := parse.FirstTime(bytes.NewReader(file)); !ok || !at.Equal(s.Started) {
				t.Errorf("it began at %v", at)
			}
		})
	}
}

func TestParametersAreInOrderWhateverTheirOrder(t *testing.T) {
	a, b := tensorboard.Parameter{Name: "a", Value: "1"}, tensorboard.Parameter{Name: "b", Value: "x"}
	one := tensorboard.Start(tensorboard.Session{Parameters: []tensorboard.Parameter{a, b}})
	two := tensorboard.Start(tensorboard.Session{Parameters: []tensorboard.Parameter{b, a}})
	if !bytes.Equal(one, two) {
		t.Errorf("%q and %q", one, two)
	}
}
