// Package architecture translates the architecture searches of Katib's
// nasConfig into words of search and back: a graph of layers and a list of
// operations become a suggest.Space, and a point of it becomes the strings that
// Katib's training programs read. It does no input or output.
package architecture

import (
	"fmt"
	"strings"

	"github.com/vernier-ml/vernier/suggest"
)

// Config is what the user wrote in nasConfig.
type Config struct {
	// Layers of the network, at least 1: graphConfig.numLayers.
	Layers int
	// InputSizes and OutputSizes of the network: graphConfig.inputSizes and
	// graphConfig.outputSizes.
	InputSizes, OutputSizes []int
	// Operations that a layer may be, with the values that their parameters may
	// have.
	Operations []Operation
}

// Operation is a kind of layer: a convolution, a pooling.
type Operation struct {
	// Type is operationType, a word of the training program's.
	Type string
	// Parameters of the operation, each with finitely many values.
	Parameters []suggest.ParameterSpec
}

// ConfigError says what is wrong with a Config and what to do.
type ConfigError struct {
	// Field at fault, in the words of the Experiment: graphConfig.numLayers or
	// operations[2].parameters.
	Field string
	// Problem, and what to do about it.
	Problem string
}

// Error names the field.
func (e *ConfigError) Error() string { return fmt.Sprintf("nasConfig.%s %s", e.Field, e.Problem) }

const (
	// maxOperations bounds how many operations there are, counting each
	// combination of parameters.
	maxOperations = 10_000
	// maxLayers bounds the layers; the skip connections grow with their square.
	maxLayers = 200
)

func (c Config) checkLayers() error {
	if c.Layers < 1 || c.Layers > maxLayers {
		return &ConfigError{"graphConfig.numLayers", fmt.Sprintf("is %d; give a number from 1 to %d", c.Layers, maxLayers)}
	}
	return nil
}

func (c Config) checkOperations() error {
	if len(c.Operations) == 0 {
		return &ConfigError{"operations", "is empty; give at least one"}
	}
	for i, o := range c.Operations {
		field := fmt.Sprintf("operations[%d].operationType", i)
		if o.Type == "" {
			return &ConfigError{field, "is missing; name the operation"}
		}
		if err := checkText(field, o.Type); err != nil {
			return err
		}
		for _, p := range o.Parameters {
			for _, text := range append([]string{p.Name}, p.List...) {
				if err := checkText(fmt.Sprintf("operations[%d].parameters", i), text); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// checkText refuses what would not survive the exchange of quotes: the training
// programs turn each ' into " before they parse.
func checkText(field, text string) error {
	if strings.ContainsAny(text, "'\"\\") {
		return &ConfigError{field, fmt.Sprintf("has %q; quotes and backslashes are not understood by training programs, remove them", text)}
	}
	return nil
}

// values lists the values of each parameter of the i-th operation, as literals.
func (c Config) values(i int) (names []string, literals [][]string, err error) {
	field := fmt.Sprintf("operations[%d].parameters", i)
	space, err := suggest.NewSpace(c.Operations[i].Parameters)
	if err != nil {
		return nil, nil, &ConfigError{field, "cannot be read: " + err.Error()}
	}
	if space.Conditional() {
		return nil, nil, &ConfigError{field, "has a condition; remove it"}
	}
	if size, finite := space.Size(); !finite || size > maxOperations {
		return nil, nil, &ConfigError{field, fmt.Sprintf("has too many values; give each double a step, and at most %d combinations", maxOperations)}
	}
	for k := range space.Len() {
		p := space.At(k)
		count, _ := p.Count()
		var list []string
		for index := range count {
			list = append(list, literal(p, p.At(index)))
		}
		names, literals = append(names, p.Name()), append(literals, list)
	}
	return names, literals, nil
}

// literal writes a value as Katib's services do: numbers as numbers, and what
// came from a list as a string.
func literal(p suggest.Parameter, v suggest.Value) string {
	switch p.Kind() {
	case suggest.Int:
		return v.String()
	case suggest.Double:
		return float(v.Float())
	}
	return quote(v.String())
}
