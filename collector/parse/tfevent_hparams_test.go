package parse

import (
	"bytes"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// What follows writes what the hparams plugin reads.

func hparamsValue(tag, plugin string, content []byte) []byte {
	metadata := submessage(9, submessage(1, submessage(1, []byte(plugin)), submessage(2, content)))
	return submessage(1, submessage(1, []byte(tag)), metadata)
}

// sessionStart is the session_start_info of entries.
func sessionStart(entries ...[]byte) []byte {
	return hparamsValue(tagHparams, "hparams", submessage(3, entries...))
}

func entry(name string, value ...[]byte) []byte {
	return submessage(1, submessage(1, []byte(name)), submessage(2, value...))
}

func numberEntry(name string, v float64) []byte { return entry(name, fixed64(2, math.Float64bits(v))) }

func textEntry(name, v string) []byte { return entry(name, submessage(3, []byte(v))) }

func readRecorded(t *testing.T, file []byte) (recorded []string, scalars []float64) {
	t.Helper()
	w := NewWanted([]string{"t"}, nil).Recording(func(p Recorded) {
		recorded = append(recorded, p.Name+"="+p.Value)
	})
	next, err := NewEvents().Read(bytes.NewReader(file), 0, w, func(s Scalar) bool {
		scalars = append(scalars, s.Value)
		return true
	})
	if err != nil || next != int64(len(file)) {
		t.Errorf("read %d of %d bytes, error %v", next, len(file), err)
	}
	return recorded, scalars
}

// tooManyEntries are one more than is read of a session.
func tooManyEntries() [][]byte {
	many := make([][]byte, MaxRecorded+1)
	for i := range many {
		many[i] = numberEntry(fmt.Sprintf("p%d", i), 1)
	}
	return many
}

func TestRecordedParameters(t *testing.T) {
	long := strings.Repeat("x", MaxRecordedText)
	tests := map[string]struct {
		value []byte
		want  []string
	}{
		"numbers, texts and truths": {
			value: sessionStart(numberEntry("lr", 0.1), textEntry("optimizer", "adam"), entry("nesterov", varint(4, 1)), entry("amsgrad", varint(4, 0))),
			want:  []string{"lr=0.1", "optimizer=adam", "nesterov=true", "amsgrad=false"},
		},
		"a whole number has no exponent below 1e21": {value: sessionStart(numberEntry("batch", 32)), want: []string{"batch=32"}},
		"no number is a number":                     {value: sessionStart(numberEntry("x", math.NaN())), want: []string{"x=NaN"}},
		"null, lists and structs are passed over": {
			value: sessionStart(entry("a", varint(1, 0)), entry("b", submessage(6)), entry("c", submessage(5)), numberEntry("d", 1)), want: []string{"d=1"}},
		"the last kind of a value counts":     {value: sessionStart(entry("a", varint(4, 1), submessage(3, []byte("b")))), want: []string{"a=b"}},
		"a name without a value":              {value: sessionStart(submessage(1, submessage(1, []byte("a"))))},
		"a value without a name":              {value: sessionStart(submessage(1, submessage(2, submessage(3, []byte("a")))))},
		"the group and the start":             {value: sessionStart(submessage(4, []byte("group")), fixed64(5, 1), numberEntry("a", 1)), want: []string{"a=1"}},
		"the experiment's record has others":  {value: hparamsValue("_hparams_/experiment", "hparams", submessage(2, numberEntry("a", 1)))},
		"the end of a session has none":       {value: hparamsValue("_hparams_/session_end_info", "hparams", submessage(4, varint(1, 1)))},
		"another plugin's data":               {value: hparamsValue(tagHparams, "text", submessage(3, numberEntry("a", 1)))},
		"no metadata":                         {value: submessage(1, submessage(1, []byte(tagHparams)))},
		"a scalar by that tag is none":        {value: simple(tagHparams, 1)},
		"content that is no message":          {value: hparamsValue(tagHparams, "hparams", []byte("\xff\xff"))},
		"what comes before what is torn":      {value: sessionStart(numberEntry("a", 1), []byte{0x0a, 0x7f}), want: []string{"a=1"}},
		"a name and a text at the bound":      {value: sessionStart(textEntry(long, long)), want: []string{long + "=" + long}},
		"a name and a text beyond the bound":  {value: sessionStart(textEntry(long+"x", "1"), textEntry("a", long+"x"), textEntry("b", "1")), want: []string{"b=1"}},
		"nothing that moves a terminal":       {value: sessionStart(textEntry("a\n\x1b[2J", "\xff\u202e"), textEntry("größe", "ä b")), want: []string{"a??[2J=??", "größe=ä b"}},
		"entries that are none count as well": {value: sessionStart(append([][]byte{bytes.Repeat(submessage(1), MaxRecorded-1)}, tooManyEntries()...)...), want: []string{"p0=1"}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got, scalars := readRecorded(t, append(version(), eventAt(1, simple("t", 1), tc.value, simple("t", 2))...))
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if diff := cmp.Diff([]float64{1, 2}, scalars); diff != "" {
				t.Errorf("the values beside it (-want +got):\n%s", diff)
			}
		})
	}
}

func TestASessionOfTooManyParametersEndsAtTheBound(t *testing.T) {
	if got, _ := readRecorded(t, append(version(), eventAt(0, sessionStart(tooManyEntries()...))...)); len(got) != MaxRecorded {
		t.Errorf("%d parameters", len(got))
	}
}

func TestParametersInARecordLargerThanTheWindow(t *testing.T) {
	image := submessage(1, submessage(1, []byte("x")), submessage(4, make([]byte, 2*eventWindow)))
	got, scalars := readRecorded(t, append(version(), eventAt(1, image, sessionStart(numberEntry("lr", 0.5)), simple("t", 2))...))
	if diff := cmp.Diff([]string{"lr=0.5"}, got); diff != "" || len(scalars) != 1 {
		t.Errorf("scalars %v (-want +got):\n%s", scalars, diff)
	}
}

func TestParametersThatAreNotAskedForAreNotTold(t *testing.T) {
	var seen []string
	w := NewWanted(nil, func(tag []byte) { seen = append(seen, string(tag)) })
	file := append(version(), eventAt(1, sessionStart(numberEntry("lr", 0.5)), simple("u", 1))...)
	if _, err := NewEvents().Read(bytes.NewReader(file), 0, w, func(Scalar) bool { return true }); err != nil || len(seen) != 1 || seen[0] != "u" {
		t.Errorf("seen %v, error %v", seen, err)
	}
}
