package parse

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/vernier-ml/vernier/collector"
)

func TestTextStepAndTime(t *testing.T) {
	at := time.Date(2026, 3, 4, 5, 6, 7, 123456789, time.UTC)
	tests := map[string]stepCase{
		"neither":                          {"loss=1", collector.NoStep, time.Time{}},
		"a step":                           {"step=7 loss=1", 7, time.Time{}},
		"a step after the value":           {"loss=1 step = 7", 7, time.Time{}},
		"an epoch":                         {"Epoch=3 loss=1", 3, time.Time{}},
		"a step is finer than an epoch":    {"epoch=3 step=70 loss=1", 70, time.Time{}},
		"that before a sign counts first":  {"step: 1 loss=1 step=2", 2, time.Time{}},
		"a global step in words":           {"step=1 loss=1 Global_Step: 20", 20, time.Time{}},
		"the first of two counts":          {"step=1 loss=1 step=2", 1, time.Time{}},
		"a global step is the finest":      {"step=5 global_step=70 loss=1", 70, time.Time{}},
		"a step in JSON":                   {`{"step": 12} loss=1`, 12, time.Time{}},
		"a step with a colon":              {"iteration: 9 loss=1", 9, time.Time{}},
		"a step of a total":                {"step=9/10 loss=1", 9, time.Time{}},
		"a whole number with a point":      {"epoch=2.0 loss=1", 2, time.Time{}},
		"a fraction is no step":            {"epoch=2.5 loss=1", collector.NoStep, time.Time{}},
		"a negative number is no step":     {"step=-1 loss=1", collector.NoStep, time.Time{}},
		"an iteration of Ray Tune":         {"training_iteration: 3 loss=1", 3, time.Time{}},
		"a name that ends alike":           {"last_step=3 loss=1", collector.NoStep, time.Time{}},
		"a time":                           {"2026-03-04T05:06:07.123456789Z loss=1", collector.NoStep, at},
		"a time with a zone":               {"2026-03-04T06:06:07.123456789+01:00 loss=1", collector.NoStep, at},
		"a time that is not at the front":  {"x 2026-03-04T05:06:07Z loss=1", collector.NoStep, time.Time{}},
		"a step with groups":               {"step 1,000 loss=1", 1000, time.Time{}},
		"a step with groups and a sign":    {"step=12,345 loss=1", 12345, time.Time{}},
		"a step before a comma":            {"step=12,loss=1", 12, time.Time{}},
		"a step in a list of numbers":      {"step=12, 345 loss=1", 12, time.Time{}},
		"a step in thousands":              {"step 12k loss=1", 12000, time.Time{}},
		"a step in broken thousands":       {"step: 1.5k loss=1", 1500, time.Time{}},
		"a step in millions":               {"step=2M, loss=1", 2000000, time.Time{}},
		"a step as e+":                     {"step=1e+06 loss=1", 1000000, time.Time{}},
		"a duration is no step":            {"step: 37ms loss=1", collector.NoStep, time.Time{}},
		"a percentage is no step":          {"epoch 50% loss=1", collector.NoStep, time.Time{}},
		"a rate is no step":                {"2s 1ms/step loss=1", collector.NoStep, time.Time{}},
		"Epoch 3/10":                       {"Epoch 3/10 loss=1", 3, time.Time{}},
		"an epoch and a step of it":        {"Epoch [3/10], Step [100/500], loss=1", 1100, time.Time{}},
		"an epoch and a batch":             {"Epoch: [3][ 100/5005] loss=1", 3, time.Time{}},
		"a train epoch":                    {"Train Epoch: 3 [25600/60000 (43%)]\tloss=1", 3, time.Time{}},
		"a mode and no blank":              {"step(ms): 341 iteration(s) 3 loss=1", collector.NoStep, time.Time{}},
		"capitals":                         {"EPOCH 3 STEP 40 loss=1", 40, time.Time{}},
		"iter":                             {"iter #300: loss=1", 300, time.Time{}},
		"global_step in a path":            {"trainer/global_step=12 epoch=1 loss=1", 12, time.Time{}},
		"a name that has step in it":       {"steps=3 stepwise 4 max_step=9 loss=1", collector.NoStep, time.Time{}},
		"words between name and number":    {"step was 3 loss=1", collector.NoStep, time.Time{}},
		"a number far from its name":       {"step          3 loss=1", collector.NoStep, time.Time{}},
		"a number at the end":              {"loss=1 step", collector.NoStep, time.Time{}},
		"a step that is too large":         {"step=99999999999999999999 loss=1", collector.NoStep, time.Time{}},
		"a dict of the HF trainer":         {"{'loss': 1, 'epoch': 2.0} loss=1", 2, time.Time{}},
		"a broken epoch of the HF trainer": {"{'loss': 1, 'epoch': 2.13} loss=1", collector.NoStep, time.Time{}},
		"a coloured step":                  {"\x1b[1mstep\x1b[0m=7 loss=1", 7, time.Time{}},
		"a time in brackets":               {"[2026-03-04T05:06:07.123456789Z] loss=1", collector.NoStep, at},
		"a time with a space":              {"2026-03-04 05:06:07.123456789+00:00 loss=1", collector.NoStep, at},
		"a time with more digits":          {"2026-03-04T05:06:07.1234567891234Z loss=1", collector.NoStep, at},
		"seconds since 1970":               {"1772600767.123456789 loss=1", collector.NoStep, at},
		"milliseconds since 1970":          {"1772600767123.456789 loss=1", collector.NoStep, at},
		"whole milliseconds since 1970":    {"1772600767123 loss=1", collector.NoStep, time.UnixMilli(1772600767123)},
		"microseconds since 1970":          {"1772600767123456.789 loss=1", collector.NoStep, at},
		"nanoseconds since 1970":           {"1772600767123456789 loss=1", collector.NoStep, at},
		"a number that is no time":         {"1000 loss=1", collector.NoStep, time.Time{}},
		"a number with a letter":           {"1772600767x loss=1", collector.NoStep, time.Time{}},
		"a date without a zone":            {"2026-03-04 05:06:07,123 INFO loss=1", collector.NoStep, time.Time{}},
		"almost a time":                    {"2026-03-04T25:06:07.123456789Z loss=1", collector.NoStep, time.Time{}},
	}
	checkStepsAndTimes(t, func(t testing.TB) Line { return newText(t, []string{"loss"}, nil) }, tests)
}

// A line that says only an epoch is the step of the lines after it.
func TestTextRemembersAnEpoch(t *testing.T) {
	tests := map[string]struct {
		lines string
		want  []int64
	}{
		"Keras":                                {"Epoch 1/2\n100/100 - loss=1\nEpoch 2/2\n50/100 - loss=1\n100/100 - loss=1", []int64{1, 2, 2}},
		"Katib's own example":                  {"epoch 1:\nloss=0.3\nloss=0.4\nepoch 2:\nloss=0.1", []int64{1, 1, 2}},
		"the quickstart of PyTorch":            {"Epoch 1\n-------\nloss=2.3", []int64{1}},
		"a frame":                              {"===== Epoch [3/10] =====\nloss=1", []int64{3}},
		"with a sign":                          {"epoch=4\nloss=1", []int64{4}},
		"a line's own epoch counts":            {"Epoch 1/2\nepoch=7 loss=1\nloss=1", []int64{7, 1}},
		"steps that are finer end it":          {"Epoch 1/2\nstep=500 loss=1\nloss=1\nEpoch 2/2\nloss=1", []int64{500, collector.NoStep, collector.NoStep}},
		"a line that says more is none":        {"Epoch 1 begins\nloss=1", []int64{collector.NoStep}},
		"an epoch that took some time is none": {"Epoch 1: 37s\nloss=1", []int64{collector.NoStep}},
		"a word that begins alike":             {"epochs 3\nloss=1", []int64{collector.NoStep}},
		"steps that begin anew":                {"Epoch [1/2], Step [300/600], loss=1\nEpoch [1/2], Step [600/600], loss=1\nEpoch [2/2], Step [300/600], loss=1\nEpoch [2/2], Step [600/600], loss=1", []int64{300, 600, 900, 1200}},
		"steps that begin anew, from epoch 0":  {"epoch 0 step 0/9 loss=1\nepoch 0 step 8/9 loss=1\nepoch 1 step 0/9 loss=1", []int64{0, 8, 9}},
		"without a total":                      {"epoch=1 step=100 loss=1\nepoch=1 step=200 loss=1\nepoch=2 step=100 loss=1\nepoch=4 step=100 loss=1", []int64{100, 200, 300, 700}},
		"epochs that become shorter":           {"Epoch [1/4], Step [900/900], loss=1\nEpoch [2/4], Step [50/100], loss=1\nEpoch [3/4], Step [50/100], loss=1\nEpoch [4/4], Step [50/100], loss=1", []int64{900, 950, 1050, 1150}},
		"below a heading":                      {"Epoch 1/2\nstep 50: loss=1\nEpoch 2/2\nstep 50: loss=1", []int64{50, 100}},
		"as many steps as before":              {"epoch=1 step=100 loss=1\nepoch=2 step=100 loss=1", []int64{100, 200}},
		"after a restart":                      {"Epoch [3/5], Step [100/600], loss=1\nEpoch [4/5], Step [100/600], loss=1", []int64{1300, 1900}},
		"steps of the whole run":               {"epoch=1 step=100 loss=1\nepoch=2 step=101 loss=1\nepoch=2 step=50 loss=1", []int64{100, 101, 50}},
		"a global step goes back":              {"epoch=1 global_step=100 loss=1\nepoch=2 global_step=50 loss=1", []int64{100, 50}},
		"another run in the same text":         {"epoch=1 step=9 loss=1\nepoch=2 step=1 loss=1\nepoch=1 step=3 loss=1", []int64{9, 10, 3}},
		"steps beyond all bounds":              {"epoch=1 step=9007199254740992 loss=1\nepoch=9 step=1 loss=1", []int64{1 << 53, 1 << 53}},
		"nothing before":                       {"loss=1\nEpoch 1/2", []int64{collector.NoStep}},
		"colours":                              {"\x1b[1mEpoch 5/9\x1b[0m =\nloss=1", []int64{5}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			p := newText(t, []string{"loss"}, nil)
			for range 2 { // the second time after a reset
				var steps []int64
				for line := range strings.SplitSeq(tc.lines, "\n") {
					samples, err := p.Parse(nil, []byte(line))
					if err != nil {
						t.Fatal(err)
					}
					for _, s := range samples {
						steps = append(steps, s.Step)
					}
				}
				if diff := cmp.Diff(tc.want, steps); diff != "" {
					t.Errorf("steps (-want +got):\n%s", diff)
				}
				p.Reset()
			}
		})
	}
}

func TestStepNamesAreInOrderOfRank(t *testing.T) {
	last := -1
	for _, name := range StepNames() {
		rank := rankOf([]byte(strings.ToUpper(name)))
		if rank < last || rank == noRank {
			t.Errorf("%s has rank %d after %d", name, rank, last)
		}
		last = rank
	}
	for _, name := range []string{"", "ste", "xstep", "global-step", "global_stepx", "epochs", "iterations", "last_iteration"} {
		if rank := rankOf([]byte(name)); rank != noRank {
			t.Errorf("%q has rank %d", name, rank)
		}
	}
}
