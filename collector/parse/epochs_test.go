package parse_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/vernier-ml/vernier/collector/parse"
)

// Steps that begin anew in each epoch are counted on, in whatever format they are
// written; steps that count through all epochs stay as they are.
func TestStepsThatBeginAnewInEachEpochAreCountedOn(t *testing.T) {
	tests := map[string]struct {
		epochs, steps []string
		want          []int64
	}{
		"within each epoch":            {[]string{"1", "1", "2", "2", "3"}, []string{"100", "200", "100", "200", "100"}, []int64{100, 200, 300, 400, 500}},
		"once at the end of each":      {[]string{"0", "1", "2"}, []string{"500", "500", "500"}, []int64{500, 1000, 1500}},
		"counted from 0":               {[]string{"0", "0", "1", "1", "3"}, []string{"0", "50", "0", "50", "0"}, []int64{0, 50, 51, 101, 153}},
		"only the first of each":       {[]string{"0", "1", "2"}, []string{"0", "0", "0"}, []int64{0, 1, 2}},
		"through all epochs":           {[]string{"1", "1", "2", "2"}, []string{"100", "200", "300", "400"}, []int64{100, 200, 300, 400}},
		"epochs in parts, as HF's":     {[]string{"0.5", "1.0", "1.5", "2.0"}, []string{"10", "20", "30", "40"}, []int64{10, 20, 30, 40}},
		"of two processes":             {[]string{"1", "1", "2", "2", "3", "2", "3", "3", "4"}, []string{"1", "100", "1", "100", "1", "100", "1", "100", "1"}, []int64{1, 100, 101, 200, 201, 200, 201, 300, 301}},
		"of two, late in the first":    {[]string{"0", "0", "1", "0", "0", "1", "2"}, []string{"0", "9", "0", "5", "9", "3", "0"}, []int64{0, 9, 10, 5, 9, 13, 20}},
		"of two, through all epochs":   {[]string{"1", "2", "1", "2", "3"}, []string{"100", "200", "100", "200", "300"}, []int64{100, 200, 100, 200, 300}},
		"of two, one from the start":   {[]string{"1", "1", "2", "3", "1", "1", "3", "4"}, []string{"0", "9", "0", "5", "0", "3", "6", "0"}, []int64{0, 9, 10, 25, 0, 3, 26, 30}},
		"trained twice":                {[]string{"1", "1", "2", "1", "1", "2"}, []string{"1", "9", "1", "1", "5", "1"}, []int64{1, 9, 10, 1, 5, 10}},
		"a validation at the same one": {[]string{"0", "0", "1", "1"}, []string{"49", "49", "99", "99"}, []int64{49, 49, 99, 99}},
	}
	forms := map[string]struct {
		head, row string
		parser    func() (parse.Line, error)
	}{
		"JSON":   {"", `{"epoch": EPOCH, "step": STEP, "loss": 1}`, func() (parse.Line, error) { return parse.NewLine("JSON", []string{"loss"}, nil) }},
		"LOGFMT": {"", `epoch=EPOCH step=STEP loss=1`, func() (parse.Line, error) { return parse.NewLine("LOGFMT", []string{"loss"}, nil) }},
		"CSV":    {"epoch,loss,step", `EPOCH,1,STEP`, func() (parse.Line, error) { return parse.NewCSV([]string{"loss"}), nil }},
		"TEXT":   {"", `epoch=EPOCH step=STEP loss=1`, func() (parse.Line, error) { return parse.NewLine("TEXT", []string{"loss"}, nil) }},
	}
	for format, form := range forms {
		for name, tc := range tests {
			t.Run(format+": "+name, func(t *testing.T) {
				p, err := form.parser()
				if err != nil {
					t.Fatal(err)
				}
				for range 2 { // a text that is begun anew is read as the first time
					p.Reset()
					var got []int64
					lines := []string{form.head}
					for i := range tc.steps {
						lines = append(lines, strings.NewReplacer("EPOCH", tc.epochs[i], "STEP", tc.steps[i]).Replace(form.row))
					}
					for _, line := range lines {
						samples, err := p.Parse(nil, []byte(line))
						if err != nil {
							t.Error(err)
						}
						for _, s := range samples {
							got = append(got, s.Step)
						}
					}
					if diff := cmp.Diff(tc.want, got); diff != "" {
						t.Errorf("steps (-want +got):\n%s", diff)
					}
				}
			})
		}
	}
}

// Reports that are pushed are not lines of one text: each says its own step.
func TestReportsKeepTheirSteps(t *testing.T) {
	p := parse.NewJSON([]string{"loss"})
	for range 2 {
		samples, err := p.ParseAll(nil, []byte(`[{"epoch": 1, "step": 100, "loss": 1}, {"epoch": 2, "step": 50, "loss": 1}]`))
		if err != nil || len(samples) != 2 || samples[0].Step != 100 || samples[1].Step != 50 {
			t.Errorf("%v, %v", samples, err)
		}
	}
}
