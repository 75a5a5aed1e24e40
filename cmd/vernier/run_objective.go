package main

import (
	"regexp"
	"slices"
	"strings"

	"github.com/vernier-ml/vernier/api/v1beta1"
	"github.com/vernier-ml/vernier/collector/probe"
)

// guess is the metric that a search of a program would be for.
type guess struct {
	name string
	kind v1beta1.ObjectiveType
	// sure is true where the name says that it is a measure of quality.
	sure bool
}

// Words in the names of metrics. Longer names are split at punctuation and capitals.
var (
	goodWords = []string{"acc", "accuracy", "auc", "auroc", "ap", "map", "f1", "score", "reward", "return", "precision", "recall", "r2", "bleu", "rouge", "iou", "dice", "ndcg", "mrr", "psnr", "ssim"}
	badWords  = []string{"loss", "logloss", "error", "err", "rmse", "mse", "mae", "mape", "smape", "nll", "entropy", "perplexity", "ppl", "wer", "cer", "bpb", "bpc", "fid", "deviance", "regret", "cost"}
	// sideWords are of what goes along with training, and measures no quality.
	sideWords = []string{"time", "seconds", "secs", "sec", "duration", "elapsed", "eta", "epoch", "epochs", "step", "steps", "iter", "iteration", "iterations", "batch", "lr", "rate", "memory", "mem", "gb", "mb", "gpu", "cpu", "throughput", "samples", "tokens", "speed", "norm", "grad", "params", "size"}
	heldWords = []string{"val", "valid", "validation", "eval", "evaluation", "test", "dev", "holdout", "cv"}
	// trainWords are of the data that was trained with.
	trainWords = []string{"train", "training", "batch"}
	nameWords  = regexp.MustCompile(`[A-Z]?[a-z]+\d?|[A-Z]+\d?|\d+`)
)

// guessObjective chooses among metrics in the order in which they appeared: a measure of
// quality before others, of held-out data before that of training, the last of equals.
// Without any it returns the zero guess.
func guessObjective(metrics []probe.Metric) guess {
	best, high := guess{}, -1
	for _, m := range metrics {
		g, points := guess{name: m.Name, kind: v1beta1.ObjectiveTypeMinimize}, 10
		words := nameWords.FindAllString(m.Name, -1)
		has := func(list []string) bool {
			return slices.ContainsFunc(words, func(w string) bool { return slices.Contains(list, strings.ToLower(w)) })
		}
		switch {
		case has(badWords):
			g.sure = true
		case has(goodWords):
			g.sure, g.kind = true, v1beta1.ObjectiveTypeMaximize
		case has(sideWords):
			points = 0
		}
		if g.sure {
			points = 20
		}
		if has(heldWords) {
			points += 2
		} else if !has(trainWords) {
			points++
		}
		switch {
		case m.Count > 0 && m.Min == nil:
			points -= 5 // it is never a number
		case m.Count > 1 && *m.Min == *m.Max:
			points-- // it may be a constant
		}
		if points = max(points, 0); points >= high {
			best, high = g, points
		}
	}
	return best
}
