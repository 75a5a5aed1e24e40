package algorithm

import (
	"github.com/vernier-ml/vernier/suggest"
	"github.com/vernier-ml/vernier/suggest/fidelity"
	"github.com/vernier-ml/vernier/suggest/propose"
)

// shortened is auto as it is with settings that ask for short trials.
func shortened(auto propose.Registration) propose.Registration {
	out := fidelity.MOBSTER()
	out.Name, out.Summary, out.Settings, out.New = auto.Name, auto.Summary, auto.Settings, fidelity.NewShort
	return out
}

// GetWith finds an algorithm by its name, as it is with the settings.
func GetWith(name string, settings suggest.Settings) (r propose.Registration, ok bool) {
	r, ok = Get(name)
	if name == autoName && fidelity.Shortens(settings) {
		build := r.New // which looks at the settings itself
		r = shortened(r)
		r.New = build
	}
	return r, ok
}

// orShort builds an algorithm that is another with settings that ask for short trials.
func orShort(whole, short suggest.New) suggest.New {
	return func(space suggest.Space, settings suggest.Settings) (suggest.Algorithm, error) {
		if fidelity.Shortens(settings) {
			return short(space, settings)
		}
		return whole(space, settings)
	}
}
