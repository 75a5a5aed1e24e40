package main

import (
	"testing"

	"github.com/vernier-ml/vernier/collector/probe"
)

func TestTheObjectiveThatAProbeGuesses(t *testing.T) {
	number := func(v float64) *probe.Number { return new(probe.Number(v)) }
	named := func(names ...string) (out []probe.Metric) {
		for _, n := range names {
			out = append(out, probe.Metric{Name: n, Count: 3, Min: number(0.1), Max: number(0.9)})
		}
		return out
	}
	const down, up = "minimize", "maximize"
	for name, c := range map[string]struct {
		metrics []probe.Metric
		want    guess
	}{
		"none":                          {nil, guess{}},
		"held out before training":      {named("val_loss", "train_loss"), guess{"val_loss", down, true}},
		"accuracy of the validation":    {named("loss", "valAccuracy", "lr"), guess{"valAccuracy", up, true}},
		"the last of equals":            {named("eval/loss", "eval/f1"), guess{"eval/f1", up, true}},
		"time is no objective":          {named("rmse", "epoch_time"), guess{"rmse", down, true}},
		"nor is a rate":                 {named("reward", "learning_rate", "grad_norm"), guess{"reward", up, true}},
		"an error rate is an error":     {named("top1_error_rate", "throughput"), guess{"top1_error_rate", down, true}},
		"a name that says nothing":      {named("epoch", "energy", "seconds"), guess{"energy", down, false}},
		"time, where there is no other": {named("seconds"), guess{"seconds", down, false}},
		"perplexity":                    {named("valid_ppl", "tokens"), guess{"valid_ppl", down, true}},
		"digits and capitals":           {named("train_loss", "test_acc1"), guess{"test_acc1", up, true}},
		"words that run together":       {named("train_loss", "valROCAUC"), guess{"valROCAUC", up, true}},
		"average precision":             {named("metrics/mAP50(B)", "box_norm"), guess{"metrics/mAP50(B)", up, true}},
		"held out, and unknown":         {named("train_loss", "eval_chrf"), guess{"eval_chrf", down, false}},
		"auroc":                         {named("train_loss", "val_BinaryAUROC"), guess{"val_BinaryAUROC", up, true}},
		"letters within words":          {named("loss", "layer2_norm", "encoder2.grad", "gradient_accumulation_steps", "previous_best_step", "indices_seen", "applied_lr", "buffer2"), guess{"loss", down, true}},
		"counts of held-out data":       {named("f1", "dev_count", "num_test", "eval_length", "eval_runtime"), guess{"f1", up, true}},
		"of an epoch":                   {named("train_loss_step", "val_loss_epoch"), guess{"val_loss_epoch", down, true}},
		"what time costs":               {named("rmse", "time_cost"), guess{"rmse", down, true}},
		"time of held-out data":         {named("train_loss", "eval_time"), guess{"train_loss", down, true}},
		"r2":                            {named("test_r2", "size_mb"), guess{"test_r2", up, true}},
		"what never changes":            {append(named("acc"), probe.Metric{Name: "f1", Count: 3, Min: number(0), Max: number(0)}), guess{"acc", up, true}},
		"what is never a number":        {append(named("loss"), probe.Metric{Name: "val_loss", Count: 3, NaNs: 3}), guess{"loss", down, true}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := guessObjective(c.metrics); got != c.want {
				t.Errorf("%+v, want %+v", got, c.want)
			}
		})
	}
}
