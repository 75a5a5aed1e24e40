package architecture

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/vernier-ml/vernier/suggest"
)

// The names of what a trial of an ENAS experiment is given.
const (
	ArchitectureName = "architecture"
	NNConfigName     = "nn_config"
)

// ENAS is the search space of chains of layers with skip connections: one
// operation for each layer, and for each layer whether it also reads the input
// or a layer before the last one.
type ENAS struct {
	config     Config
	operations []operation
	space      suggest.Space
}

// operation is an Operation with values for its parameters.
type operation struct {
	kind       string
	parameters []pair
}

// NewENAS reads a config. The error, if any, is a *ConfigError.
func NewENAS(c Config) (*ENAS, error) {
	if err := c.checkLayers(); err != nil {
		return nil, err
	}
	for _, sizes := range []struct {
		field string
		sizes []int
	}{{"graphConfig.inputSizes", c.InputSizes}, {"graphConfig.outputSizes", c.OutputSizes}} {
		if len(sizes.sizes) == 0 {
			return nil, &ConfigError{sizes.field, "is missing; give at least one size"}
		}
		for _, n := range sizes.sizes {
			if n < 1 {
				return nil, &ConfigError{sizes.field, fmt.Sprintf("has %d; sizes are at least 1", n)}
			}
		}
	}
	if err := c.checkOperations(); err != nil {
		return nil, err
	}
	e := &ENAS{config: c}
	for i := range c.Operations {
		if err := e.combine(i); err != nil {
			return nil, err
		}
	}
	return e, e.build()
}

// combine adds all combinations of the parameters of the i-th operation, the
// last one changing first.
func (e *ENAS) combine(i int) error {
	names, literals, err := e.config.values(i)
	if err != nil {
		return err
	}
	total := 1
	for _, l := range literals {
		total *= len(l)
	}
	if len(e.operations)+total > maxOperations {
		return &ConfigError{"operations", fmt.Sprintf("are more than %d, counting each combination of parameters; narrow them", maxOperations)}
	}
	for k := range total {
		o := operation{kind: e.config.Operations[i].Type, parameters: make([]pair, len(names))}
		for d := len(names) - 1; d >= 0; d-- {
			o.parameters[d] = pair{names[d], literals[d][k%len(literals[d])]}
			k /= len(literals[d])
		}
		e.operations = append(e.operations, o)
	}
	return nil
}

// build makes the space. Layers count from 1, as 0 is the input.
func (e *ENAS) build() error {
	labels := make([]string, len(e.operations))
	for i, o := range e.operations {
		labels[i] = strconv.Itoa(i) + " " + o.kind
		for _, p := range o.parameters {
			labels[i] += fmt.Sprintf(" %s=%s", p.key, strings.Trim(p.value, "'"))
		}
	}
	var specs []suggest.ParameterSpec
	for layer := 1; layer <= e.config.Layers; layer++ {
		specs = append(specs, suggest.ParameterSpec{Name: fmt.Sprintf("layer_%d", layer), Kind: suggest.Categorical, List: labels})
		for from := range layer - 1 {
			specs = append(specs, suggest.ParameterSpec{
				Name: fmt.Sprintf("layer_%d_skip_%d", layer, from), Kind: suggest.Categorical, List: []string{"0", "1"},
			})
		}
	}
	var err error
	if e.space, err = suggest.NewSpace(specs); err != nil {
		return &ConfigError{"operations", "cannot be searched: " + err.Error()}
	}
	return nil
}

// Space has a parameter layer_N for the operation of the layer N, counted from
// 1, and a parameter layer_N_skip_M, 0 or 1, for a skip connection to it from
// the layer M, where 0 is the input. The connection from the layer before is
// always there.
func (e *ENAS) Space() suggest.Space { return e.space }

// rows are the numbers of the architecture, layer by layer: the operation, then
// the skip connections.
func (e *ENAS) rows(p suggest.Point) [][]int {
	rows, at := make([][]int, e.config.Layers), 0
	for layer := range rows {
		for range layer + 1 {
			index, _ := p[at].Index()
			rows[layer] = append(rows[layer], int(index))
			at++
		}
	}
	return rows
}

// Assignments are what the trial of a point of the space is given: architecture
// and nn_config, in the format of Katib's service.
func (e *ENAS) Assignments(p suggest.Point) []suggest.Assignment {
	var rows []string
	var embedding []pair
	seen := map[int]bool{}
	for _, row := range e.rows(p) {
		rows = append(rows, ints(row))
		if id := row[0]; !seen[id] {
			seen[id] = true
			embedding = append(embedding, pair{strconv.Itoa(id), e.describe(id)})
		}
	}
	return []suggest.Assignment{
		{Name: ArchitectureName, Value: list(rows)},
		{Name: NNConfigName, Value: dictionary(
			pair{"num_layers", strconv.Itoa(e.config.Layers)},
			pair{"input_sizes", ints(e.config.InputSizes)},
			pair{"output_sizes", ints(e.config.OutputSizes)},
			pair{"embedding", dictionary(embedding...)},
		)},
	}
}

func (e *ENAS) describe(id int) string {
	o := e.operations[id]
	return dictionary(
		pair{"opt_id", strconv.Itoa(id)},
		pair{"opt_type", quote(o.kind)},
		pair{"opt_params", dictionary(o.parameters...)},
	)
}

// Parse finds the point that the assignments of a trial stand for; what
// Assignments has written comes back. ok is false when there is none.
func (e *ENAS) Parse(assignments []suggest.Assignment) (p suggest.Point, ok bool) {
	var rows [][]int
	for _, a := range assignments {
		if a.Name == ArchitectureName && json.Unmarshal([]byte(a.Value), &rows) != nil {
			return nil, false
		}
	}
	if len(rows) != e.config.Layers {
		return nil, false
	}
	for layer, row := range rows {
		if len(row) != layer+1 {
			return nil, false
		}
		for _, index := range row {
			parameter := e.space.At(len(p))
			if count, _ := parameter.Count(); index < 0 || int64(index) >= count {
				return nil, false
			}
			p = append(p, parameter.At(int64(index)))
		}
	}
	return p, true
}
