package parse

import (
	"strings"
	"testing"
)

func TestAssigned(t *testing.T) {
	tests := map[string]struct{ line, want string }{
		"names, signs and numbers":    {`loss=1 acc : .5 val/loss= -3`, "loss= acc: val/loss="},
		"quotes":                      {`{"val.loss": "0.3", "n":1}`, "val.loss: n:"},
		"nan and inf":                 {"a=NaN b=-inf c=nano d=info", "a= b="},
		"no number":                   {"a= b=x c: . d=", ""},
		"no name":                     {"=1 12:30:05 :2", ""},
		"a name begins with a letter": {"12abc=1 --lr=2", "abc= lr="},
		"nothing":                     {"", ""},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			var got []string
			for name, sign := range assigned([]byte(tc.line)) {
				got = append(got, name+sign)
			}
			if s := strings.Join(got, " "); s != tc.want {
				t.Errorf("%q, want %q", s, tc.want)
			}
		})
	}
}

func TestWrapped(t *testing.T) {
	digits := strings.Repeat("1", maxQuoted)
	tests := map[string]struct{ line, want string }{
		"a tensor and a list":     {"loss=tensor(0.5, device) acc : [-.5, 1]", "loss=tensor(0.5, device) acc: [-.5, 1]"},
		"several brackets":        {"loss=[[nan]] x", "loss=[[nan]"},
		"no number within":        {"a=(b) c=[] d=f(x) e=1 (2)", ""},
		"no name":                 {"=(1) 12:[3]", ""},
		"a value that is long":    {"a=(" + digits + ") b=[2]", "a=(" + digits[1:] + "... b=[2]"},
		"an end at the last byte": {"a=(" + digits[2:] + ") b", "a=(" + digits[2:] + ")"},
		"a value that is cut off": {"a=[1, 2", "a=[1, 2"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, written := range wrapped([]byte(tc.line)) {
				got = append(got, written)
			}
			if s := strings.Join(got, " "); s != tc.want {
				t.Errorf("%q, want %q", s, tc.want)
			}
		})
	}
}

// Each value is looked at up to where it is quoted: a long line of many would
// otherwise take an hour.
func TestWrappedOfALongLine(t *testing.T) {
	const values = 1_000_000
	n := 0
	for _, written := range wrapped([]byte(strings.Repeat("a=(1 ", values))) {
		if n++; len(written) > len("a=")+maxQuoted+len("...") {
			t.Fatalf("%q is quoted", written)
		}
	}
	if n != values {
		t.Errorf("%d values, want %d", n, values)
	}
}
