package fidelity

import (
	"github.com/vernier-ml/vernier/suggest"
	"github.com/vernier-ml/vernier/suggest/propose"
	"github.com/vernier-ml/vernier/suggest/tpe"
)

// BOHB is Hyperband whose new points come from the densities of tpe (Falkner,
// Klein and Hutter, "BOHB: robust and efficient hyperparameter optimization at
// scale", ICML 2018, algorithm 2). The densities are those of the trials with
// the largest resource that has at least two more results than there are
// parameters; a third of the points is drawn at random whatever the model says,
// so that it keeps the guarantees of Hyperband.
func BOHB() propose.Registration {
	summary := "Hyperband whose new points come from a model of the trials with the largest resource. For trials that can be short, when there are enough of them to learn from."
	return registration("bohb", summary, "hyperband", []propose.Setting{
		{Name: "num_samples", Default: "64", Help: "How many points are drawn from the density of good trials, of which the best one is proposed: from 1 to 10000."},
		{Name: "random_fraction", Default: "1/3", Help: "The share of new points that is drawn at random, from 0 to 1."},
		{Name: "top_n_percent", Default: "15", Help: "How many percent of the trials count as good, above 0 and below 100."},
	}, func(f *fidelity, r *suggest.SettingsReader) suggest.Algorithm {
		c := tpe.Default(tpe.Auto)
		c.Startup = f.space.Len() + 2
		c.Candidates = int(r.Int("num_samples", 64, suggest.Range{Min: 1, Max: 10000}))
		c.Random = r.Float("random_fraction", 1.0/3, suggest.Range{Min: 0, Max: 1})
		c.Gamma = r.Float("top_n_percent", 15, suggest.Between(0, 100)) / 100
		f.sampler, f.learns = tpe.NewWith(f.space, c, f.seeding), true
		return f.hyperband()
	})
}
