package algorithm

import (
	"github.com/vernier-ml/vernier/suggest"
	"github.com/vernier-ml/vernier/suggest/numeric/parzen"
)

// tpeConfig is what the settings say.
type tpeConfig struct {
	// startup is how many trials must be measured before the model is used.
	startup int
	// candidates is how many points are drawn from the good densities, of which
	// the best one wins.
	candidates int
	// gamma is the share of trials that counts as good.
	gamma float64
	// multivariate and group are auto, true or false.
	multivariate, group string
	// kernel is how the densities are made.
	kernel parzen.Config
}

const (
	// tpeRecent is how many of the newest bad trials have full weight.
	tpeRecent = 25
	// tpeClip: no bandwidth is below 1/100 of the range (Bergstra et al. 2013).
	tpeClip = 100
)

const (
	auto = "auto"
	yes  = "true"
	no   = "false"
)

func tpeRegistration() Registration {
	return Registration{
		Name:    "tpe",
		Summary: "Tree-structured Parzen estimator: looks where good trials are frequent and bad ones rare. For any kind of parameters, also conditional ones, for many trials, several objectives and constraints.",
		New: func(space suggest.Space, settings suggest.Settings) (suggest.Algorithm, error) {
			return newTPE(space, settings, auto)
		},
		Settings: tpeSettings("true, unless half of the parameters or more are categorical and there are no conditions"),
		Adaptive: true,
	}
}

func multivariateTPERegistration() Registration {
	return Registration{
		Name:    "multivariate-tpe",
		Summary: "The algorithm tpe with parameters modelled together whatever their kinds, under the name that Katib has for it.",
		New: func(space suggest.Space, settings suggest.Settings) (suggest.Algorithm, error) {
			return newTPE(space, settings, yes)
		},
		Settings: tpeSettings("true"),
		Adaptive: true,
	}
}

// tpeSettings documents what readTPE reads.
func tpeSettings(multivariate string) []Setting {
	return []Setting{
		{Name: "consider_endpoints", Default: "false", Help: "Whether the ends of a range widen the kernels of the outermost trials: true or false."},
		{Name: "gamma", Default: "0.1", Help: "Share of the trials that count as good, above 0 and below 1; at most 25 trials when there is one objective."},
		{Name: "group", Default: "false", Help: "Whether parameters are modelled in groups, each of those that are active under the same condition, and not all together: true or false."},
		{Name: "multivariate", Default: multivariate, Help: "Whether parameters are modelled together (true) or each on its own (false)."},
		{Name: "n_EI_candidates", Default: "24", Help: "How many points are drawn from the good density, of which the best one is proposed: from 1 to 10000."},
		{Name: "n_ei_candidates", Default: "24", Help: "Another spelling of n_EI_candidates."},
		{Name: "n_startup_trials", Default: "10", Help: "How many trials must be measured before the model is used, at least 0; until then points are spread evenly."},
		{Name: "prior_weight", Default: "1", Help: "Weight of the prior where that of a trial is 1, from 0 to 1000000."},
		randomStateSetting(),
	}
}

// readTPE reads the settings, where multivariate is what that setting is by
// default.
func readTPE(r *suggest.SettingsReader, multivariate string) tpeConfig {
	counts := suggest.Range{Min: 1, Max: 10000}
	candidates := r.Int("n_EI_candidates", 24, counts)
	c := tpeConfig{
		startup:      int(r.Int("n_startup_trials", 10, suggest.AtLeast(0))),
		candidates:   int(r.Int("n_ei_candidates", candidates, counts)),
		gamma:        r.Float("gamma", 0.1, suggest.Between(0, 1)),
		multivariate: r.Choice("multivariate", multivariate, yes, no),
		group:        r.Choice("group", auto, yes, no),
		kernel: parzen.Config{
			PriorWeight: r.Float("prior_weight", 1, suggest.Range{Min: 0, Max: 1e6}),
			Endpoints:   r.Bool("consider_endpoints", false),
			Clip:        tpeClip,
		},
	}
	return c
}
