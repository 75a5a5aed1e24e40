package parse_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/vernier-ml/vernier/collector"
	"github.com/vernier-ml/vernier/collector/parse"
)

func TestItems(t *testing.T) {
	type found struct {
		Metric string
		Value  float64
		Step   int64
	}
	const none = collector.NoStep
	tests := map[string]struct {
		metrics []string
		lines   []string
		want    []found
	}{
		"Keras": {[]string{"loss", "val_loss"}, []string{"Epoch 3/10", "1875/1875 - 2s - 1ms/step - loss: 0.2583 - accuracy: 0.9 - val_loss: 8.7654e-04"},
			[]found{{"loss", 0.2583, 3}, {"val_loss", 8.7654e-04, 3}}},
		"Hugging Face's Trainer": {[]string{"loss", "eval_loss"}, []string{"{'loss': 0.4321, 'grad_norm': 2.1, 'epoch': 1.0}", "{'eval_loss': '0.25', 'epoch': '2.13'}"},
			[]found{{"loss", 0.4321, 1}, {"eval_loss", 0.25, none}}},
		"numpy 2 in a dictionary": {[]string{"f1"}, []string{"{'f1': np.float64(0.9), 'x': 1}"}, []found{{"f1", 0.9, none}}},
		"JSON behind a time":      {[]string{"loss"}, []string{`2026-03-04 INFO {"step": 7, "loss": 0.5}`}, []found{{"loss", 0.5, 7}}},
		"XGBoost":                 {[]string{"eval-rmse", "rmse"}, []string{"[10]\ttrain-rmse:0.31\teval-rmse:0.25"}, []found{{"eval-rmse", 0.25, 10}}},
		"a deviation":             {[]string{"test-rmse"}, []string{"[2]\ttrain-rmse:0.3+0.01\ttest-rmse:0.25+0.02"}, []found{{"test-rmse", 0.25, 2}}},
		"LightGBM":                {[]string{"valid_0's l2"}, []string{"[3]\tvalid_0's l2: 0.25"}, []found{{"valid_0's l2", 0.25, 3}}},
		"CatBoost":                {[]string{"test", "best"}, []string{"7:\tlearn: 0.6\ttest: 0.5\tbest: 0.4 (3)\ttotal: 5ms"}, []found{{"test", 0.5, 7}, {"best", 0.4, 7}}},
		"PyTorch's tutorials":     {[]string{"loss", "Loss"}, []string{"loss: 2.304  [   64/60000]", "Train Epoch: 1 [0/60000 (0%)]\tLoss: 2.3"}, []found{{"loss", 2.304, none}, {"Loss", 2.3, 1}}},
		"a level, and a percent":  {[]string{"acc"}, []string{"10:00:01 INFO acc: 97.5%", "[INFO] acc: 98%."}, []found{{"acc", 97.5, none}, {"acc", 98, none}}},
		"NaN":                     {[]string{"loss"}, []string{"loss: nan,", "loss: None"}, []found{{"loss", 0, none}}},
		"words that are none":     {[]string{"loss"}, []string{"Epoch 5 loss: 0.5", "37ms loss: 0.25", "lr 1e-4  loss: 0.2", "acc nan loss: 0.1"}, []found{{"loss", 0.5, 5}, {"loss", 0.25, none}, {"loss", 0.2, none}, {"loss", 0.1, none}}},
		"the end of a sentence":   {[]string{"loss"}, []string{"step 3, loss: 0.5. Done.", "loss: 0.25."}, []found{{"loss", 0.5, 3}, {"loss", 0.25, none}}},
		"a name with a blank":     {[]string{"valid loss"}, []string{"train loss: 0.5 valid loss: 0.25"}, []found{{"valid loss", 0.25, none}}},

		"print of Python":              {[]string{"val_loss", "acc"}, []string{"epoch 3 val_loss 0.25 acc 1e-3", "val_loss\t0.2"}, []found{{"val_loss", 0.25, 3}, {"acc", 1e-3, 3}, {"val_loss", 0.2, none}}},
		"no sign, and no metric":       {[]string{"loss"}, []string{"loss 5 of 10", "Best loss 0.5", "loss_0.5", "loss0.5", "loss  6.9 (7.0)", "'loss' 0.5", "loss is 0.5", "loss"}, nil},
		"the last word of a name":      {[]string{"loss"}, []string{"valid loss: 0.25", "Average loss: 0.1", "{'val loss': 1}", "x.loss: 1", "val_loss: 2"}, nil},
		"a part of the whole":          {[]string{"Accuracy"}, []string{"Accuracy: 9918/10000 (99%)"}, nil},
		"a word with a digit":          {[]string{"loss", "accuracy"}, []string{"L1 loss: 0.30, L2 loss: 0.20", "top5 accuracy: 0.93", "val   loss: 0.60", "model_1 loss 0.3"}, nil},
		"what goes on after a blank":   {[]string{"accuracy"}, []string{"accuracy: 9918 / 10000", "accuracy: 9918 of 10000", "accuracy: 37 ms", "accuracy: 1 234.5", "accuracy: 0.3, 0.4, 0.5", "accuracy: f(0.5)"}, nil},
		"the bar of tqdm":              {[]string{"test"}, []string{"test:  45%|####5     | 45/100 [00:10<00:12]"}, nil},
		"a batch beside its mean":      {[]string{"loss"}, []string{"loss: 6.94 (6.95)", "loss: 6.94 ( 7e-1)", "loss 6.94 (6.95)"}, nil},
		"a unit, a time, an address":   {[]string{"time", "at"}, []string{"time: 37ms", "time: 12:30:45", "at: 0x10", "at: 10.0.0.1"}, nil},
		"a decimal comma":              {[]string{"loss"}, []string{"loss: 0,31"}, nil},
		"a tensor on a device, a list": {[]string{"loss"}, []string{"loss: tensor(0.5, device='cuda:0')", "loss: [0.5]"}, nil},
		"name=value":                   {[]string{"loss"}, []string{"loss=0.5"}, nil},
		"a quote without another":      {[]string{"loss"}, []string{"loss': 0.5", `loss: "0.5`}, nil},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			items := parse.NewTextItems(tc.metrics)
			var got []found
			for _, line := range tc.lines {
				points, err := items.Parse(nil, []byte(line))
				if err != nil {
					t.Fatal(err)
				}
				for _, p := range points {
					if p.Value != p.Value {
						p.Value = 0
					}
					got = append(got, found{p.Metric, p.Value, p.Step})
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// A line of a MiB must not keep the collector from the others.
func TestItemsOfLongLines(t *testing.T) {
	items := parse.NewTextItems([]string{"loss", "f"})
	for _, piece := range []string{"a training loss of ", "batch loss 0.123 ", "INFO:a.lossa.loss: 1 ", "loss ", "loss: ", "'loss': 'x' "} {
		points, err := items.Parse(nil, []byte(strings.Repeat(piece, 1<<20/len(piece))))
		if err != nil || len(points) > 1<<20 {
			t.Errorf("%q: %d points, %v", piece, len(points), err)
		}
	}
}
