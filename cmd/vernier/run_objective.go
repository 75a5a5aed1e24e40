package main

import (
	"regexp"
	"slices"
	"strings"

	"github.com/vernier-ml/vernier/api/v1beta1"
	"github.com/vernier-ml/vernier/collector/probe"
)

// otherMetrics are those of --metric, but for objectives.
func (o *scriptOptions) otherMetrics() (names []string) {
	for _, name := range o.additional {
		counts := func(m v1beta1.ObjectiveMetric) bool { return m.ObjectiveMetricName == name }
		if !slices.Contains(names, name) && !slices.ContainsFunc(o.objectives, counts) {
			names = append(names, name)
		}
	}
	return names
}

// guess is the metric that a search of a program would be for.
type guess struct {
	name string
	kind v1beta1.ObjectiveType
	// sure is true where the name says that it is a measure of quality.
	sure bool
}

// What the names of metrics say. Names are split at punctuation and capitals.
var (
	// Anywhere in a name.
	goodParts = []string{"accuracy", "auroc", "score", "reward", "precision", "recall", "bleu", "rouge", "ndcg", "psnr"}
	badParts  = []string{"loss", "error", "rmse", "entropy", "perplexity", "deviance", "regret"}
	// At the end of a word, but for the number behind it.
	goodEnds = []string{"acc", "auc", "iou"}
	badEnds  = []string{"mse", "mae", "mape", "nll"}
	// Whole words.
	goodWords = []string{"f1", "r2", "ap", "map", "mrr", "em", "dice", "ssim", "return"}
	badWords  = []string{"err", "wer", "cer", "bpb", "bpc", "fid", "ppl", "cost"}
	// sideWords are of what goes along with training, and measures no quality.
	sideWords = []string{"time", "runtime", "seconds", "secs", "sec", "duration", "elapsed", "eta", "epoch", "step", "steps", "epochs", "iter", "iteration", "iterations", "batch", "lr", "rate", "memory", "mem", "gb", "mb", "gpu", "cpu", "throughput", "samples", "tokens", "speed", "norm", "grad", "params", "size", "count", "num", "length", "seen"}
	heldWords = []string{"val", "valid", "validation", "eval", "evaluation", "test", "dev", "holdout", "cv"}
	// trainWords are of the data that was trained with.
	trainWords = []string{"train", "training", "batch"}
	nameWords  = regexp.MustCompile(`[A-Z]?[a-z]+\d*|[A-Z]+\d*`)
)

// metricName is the name of a metric and the words in it.
type metricName struct {
	lower string
	words []string // also without the number behind them
}

func readName(name string) metricName {
	s := metricName{lower: strings.ToLower(name)}
	for _, w := range nameWords.FindAllString(name, -1) {
		w = strings.ToLower(w)
		s.words = append(s.words, w, strings.TrimRight(w, "0123456789"))
	}
	return s
}

func (s metricName) word(list []string) bool {
	return slices.ContainsFunc(s.words, func(w string) bool { return slices.Contains(list, w) })
}

func (s metricName) quality(parts, ends, words []string) bool {
	return s.word(words) ||
		slices.ContainsFunc(parts, func(p string) bool { return strings.Contains(s.lower, p) }) ||
		slices.ContainsFunc(ends, func(end string) bool {
			return slices.ContainsFunc(s.words, func(w string) bool { return strings.HasSuffix(w, end) })
		})
}

// guessObjective chooses among metrics in the order in which they appeared: a measure of
// quality of held-out data, another one, what is of held-out data at least before what was
// trained with, the last of equals. Without any it returns the zero guess.
func guessObjective(metrics []probe.Metric) guess {
	best, high := guess{}, -1
	for _, m := range metrics {
		g, points, name := guess{name: m.Name, kind: v1beta1.ObjectiveTypeMinimize}, 20, readName(m.Name)
		good := name.quality(goodParts, goodEnds, goodWords)
		bad := name.quality(badParts, badEnds, badWords)
		held, side := name.word(heldWords), name.word(sideWords)
		switch {
		case bad && !(side && name.word([]string{"cost"})):
			g.sure, points = true, 40
		case good:
			g.sure, g.kind, points = true, v1beta1.ObjectiveTypeMaximize, 40
		case side:
			points = 0
		}
		switch {
		case held && g.sure:
			points += 10
		case held && !side:
			points = 41 // behind a plain measure, before one of training
		case !name.word(trainWords):
			points += 2
		}
		switch {
		case m.Count > 0 && m.Min == nil:
			points = 0 // it is never a number
		case m.Count > 1 && *m.Min == *m.Max:
			points -= 2 // it may be a constant
		}
		if points = max(points, 0); points >= high {
			best, high = g, points
		}
	}
	return best
}
