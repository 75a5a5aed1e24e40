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

// Parts of the names of metrics. Names are split at punctuation, digits and capitals.
var (
	// goodParts and badParts may stand anywhere in a name; the others are whole words.
	goodParts = []string{"acc", "auc", "f1", "score", "reward", "precision", "recall", "r2", "bleu", "rouge", "iou", "dice", "ndcg", "psnr", "ssim"}
	goodWords = []string{"ap", "map", "mrr", "return", "em"}
	badParts  = []string{"loss", "error", "rmse", "mse", "mae", "mape", "nll", "entropy", "perplexity", "ppl", "deviance", "regret"}
	badWords  = []string{"err", "wer", "cer", "bpb", "bpc", "fid"}
	// sideWords are of what goes along with training, and measures no quality.
	sideWords = []string{"time", "seconds", "secs", "sec", "duration", "elapsed", "eta", "epoch", "epochs", "step", "steps", "iter", "iteration", "iterations", "batch", "lr", "rate", "memory", "mem", "gb", "mb", "gpu", "cpu", "throughput", "samples", "tokens", "speed", "norm", "grad", "params", "size"}
	heldWords = []string{"val", "valid", "validation", "eval", "evaluation", "test", "dev", "holdout", "cv"}
	// trainWords are of the data that was trained with.
	trainWords = []string{"train", "training", "batch"}
	nameWords  = regexp.MustCompile(`[A-Z]?[a-z]+|[A-Z]+`)
)

// guessObjective chooses among metrics in the order in which they appeared: one of held-out
// data before others, a measure of quality before others, the last of equals.
// Without any it returns the zero guess.
func guessObjective(metrics []probe.Metric) guess {
	best, high := guess{}, -1
	for _, m := range metrics {
		g, points := guess{name: m.Name, kind: v1beta1.ObjectiveTypeMinimize}, 10
		words, lower := nameWords.FindAllString(m.Name, -1), strings.ToLower(m.Name)
		has := func(list []string) bool {
			return slices.ContainsFunc(words, func(w string) bool { return slices.Contains(list, strings.ToLower(w)) })
		}
		contains := func(parts []string) bool {
			return slices.ContainsFunc(parts, func(part string) bool { return strings.Contains(lower, part) })
		}
		switch {
		case has(badWords), contains(badParts):
			g.sure = true
		case has(goodWords), contains(goodParts):
			g.sure, g.kind = true, v1beta1.ObjectiveTypeMaximize
		case has(sideWords):
			points = 0
		}
		if g.sure {
			points = 20
		}
		if has(heldWords) {
			points += 12 // also where the name says nothing else
		} else if !has(trainWords) {
			points++
		}
		switch {
		case m.Count > 0 && m.Min == nil:
			points = 0 // it is never a number
		case m.Count > 1 && *m.Min == *m.Max:
			points-- // it may be a constant
		}
		if points = max(points, 0); points >= high {
			best, high = g, points
		}
	}
	return best
}
