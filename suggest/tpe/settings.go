package tpe

import (
	"github.com/vernier-ml/vernier/suggest"
	"github.com/vernier-ml/vernier/suggest/numeric/parzen"
	"github.com/vernier-ml/vernier/suggest/propose"
)

// Config is what the settings say.
type Config struct {
	// startup is how many trials must be measured before the model is used.
	Startup int
	// candidates is how many points are drawn from the good densities, of which
	// the best one wins.
	Candidates int
	// gamma is the share of trials that counts as good.
	Gamma float64
	// random is the share of points that is drawn from the prior whatever the
	// model says.
	Random float64
	// multivariate and group are auto, true or false.
	multivariate, group string
	// turns: with several objectives each second trial is modelled by each
	// parameter on its own, unless the settings say how.
	turns bool
	// kernel is how the densities are made.
	kernel parzen.Config
	// wide bounds from below the bandwidths of the second density of bad trials,
	// and period says how often that one is asked: for each period-th trial.
	// Narrow kernels keep away from nothing but the bad trials themselves, which
	// finds the bottom of a valley fast; wide ones keep away from regions, which
	// finds another valley.
	wide   float64
	period int
}

// Default is what the algorithm has without settings.
func Default(multivariate string) Config {
	return Config{
		Startup: 10, Candidates: 24, Gamma: 0.15,
		multivariate: multivariate, group: no,
		kernel: parzen.Config{PriorWeight: 1, Clip: 100},
		wide:   0.3, period: 3,
	}
}

const (
	// tpeRecent is how many of the newest bad trials have full weight.
	tpeRecent = 25
	// tpeVisit: in a space with conditions, each third trial visits a branch
	// whatever the others came to.
	tpeVisit = 3
	// tpePrior: of each so many visited branches one is drawn from the prior.
	tpePrior = 4
	// tpeBranchFirst is how many trials each branch has before half of them are
	// left out.
	tpeBranchFirst = 4
	// tpeBranchLeast is how many results a branch must have to be judged by them.
	tpeBranchLeast = 4
	// tpeBranchesMost bounds how many branches are kept.
	tpeBranchesMost = 64
	// tpeWideMost is how many bad trials the wide density has at most, the
	// newest ones.
	tpeWideMost = 300

	// Auto leaves the choice of a setting to the algorithm.
	Auto = "auto"
	yes  = "true"
	no   = "false"
)

// Registration is the registration of the algorithm.
func Registration() propose.Registration {
	return propose.Registration{
		Name:     "tpe",
		Summary:  "Tree-structured Parzen estimator: looks where good trials are frequent and bad ones rare. For any kind of parameters, also conditional ones, for many trials, several objectives and constraints.",
		New:      newTPE(Auto),
		Settings: tpeSettings("true, unless half of the parameters or more are categorical and there are no conditions; by turns for several objectives without conditions"),
		Adaptive: true,
	}
}

// Multivariate is the registration of the algorithm.
func Multivariate() propose.Registration {
	return propose.Registration{
		Name:     "multivariate-tpe",
		Summary:  "The algorithm tpe with parameters modelled together whatever their kinds, under the name that Katib has for it.",
		New:      newTPE(yes),
		Settings: tpeSettings("true; by turns for several objectives without conditions"),
		Adaptive: true,
	}
}

// newTPE is the constructor with the setting multivariate as it is by default.
func newTPE(multivariate string) suggest.New {
	return suggest.Reading(func(space suggest.Space, r *suggest.SettingsReader) suggest.Algorithm {
		return NewWith(space, readTPE(r, multivariate), propose.ReadSeeding(r))
	})
}

// tpeSettings documents what readTPE reads.
func tpeSettings(multivariate string) []propose.Setting {
	return []propose.Setting{
		{Name: "consider_endpoints", Default: "false", Help: "Whether the ends of a range widen the kernels of the outermost trials: true or false."},
		{Name: "gamma", Default: "0.15", Help: "Share of the trials that count as good, above 0 and below 1; at most 25 trials when there is one objective."},
		{Name: "group", Default: "false", Help: "Whether parameters are modelled in groups, each of those that are active under the same condition, and not all together: true or false."},
		{Name: "multivariate", Default: multivariate, Help: "Whether parameters are modelled together (true) or each on its own (false)."},
		{Name: "n_EI_candidates", Default: "24", Help: "How many points are drawn from the good density, of which the best one is proposed: from 1 to 10000."},
		{Name: "n_ei_candidates", Default: "n_EI_candidates", Help: "Another spelling of n_EI_candidates."},
		{Name: "n_startup_trials", Default: "10", Help: "How many trials must be measured before the model is used, at least 0; until then points are spread evenly."},
		{Name: "prior_weight", Default: "1", Help: "Weight of the prior where that of a trial is 1, from 0 to 1000000."},
		propose.RandomStateSetting(),
	}
}

// readTPE reads the settings, where multivariate is what that setting is by
// default.
func readTPE(r *suggest.SettingsReader, multivariate string) Config {
	c := Default(multivariate)
	counts := suggest.Range{Min: 1, Max: 10000}
	candidates := r.Int("n_EI_candidates", int64(c.Candidates), counts)
	c.Candidates = int(r.Int("n_ei_candidates", candidates, counts))
	c.Startup = int(r.Int("n_startup_trials", int64(c.Startup), suggest.AtLeast(0)))
	c.Gamma = r.Float("gamma", c.Gamma, suggest.Between(0, 1))
	c.multivariate = r.Choice("multivariate", multivariate, yes, no)
	c.group = r.Choice("group", c.group, yes, no)
	c.turns = !r.Has("multivariate") && c.group == no
	c.kernel.PriorWeight = r.Float("prior_weight", c.kernel.PriorWeight, suggest.Range{Min: 0, Max: 1e6})
	c.kernel.Endpoints = r.Bool("consider_endpoints", c.kernel.Endpoints)
	return c
}
