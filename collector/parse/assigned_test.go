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
