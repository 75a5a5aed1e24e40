package suggest

import "strconv"

// Option changes the parameter that Float or Integer makes.
type Option func(*ParameterSpec)

// Log makes search look at all orders of magnitude alike.
func Log(p *ParameterSpec) { p.Distribution = LogUniform }

// Step puts the values on a grid that begins at the least one.
func Step(step float64) Option {
	return func(p *ParameterSpec) { p.Step = formatFloat(step) }
}

// Float is a parameter with the values from low to high, both included.
func Float(name string, low, high float64, options ...Option) ParameterSpec {
	p := ParameterSpec{Name: name, Kind: Double, Min: formatFloat(low), Max: formatFloat(high)}
	return p.with(options)
}

// Integer is a parameter with the whole numbers from low to high, both included.
func Integer(name string, low, high int, options ...Option) ParameterSpec {
	p := ParameterSpec{Name: name, Kind: Int, Min: strconv.Itoa(low), Max: strconv.Itoa(high)}
	return p.with(options)
}

// Choice is a parameter with one of some words, which have no order.
func Choice(name string, words ...string) ParameterSpec {
	return ParameterSpec{Name: name, Kind: Categorical, List: words}
}

func (p ParameterSpec) with(options []Option) ParameterSpec {
	for _, o := range options {
		o(&p)
	}
	return p
}
