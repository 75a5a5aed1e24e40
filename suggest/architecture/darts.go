package architecture

import (
	"errors"
	"fmt"
	"strconv"

	"github.com/vernier-ml/vernier/suggest"
)

// The names of what a trial of a DARTS experiment is given.
const (
	AlgorithmSettingsName = "algorithm-settings"
	SearchSpaceName       = "search-space"
	NumLayersName         = "num-layers"
)

// skipConnection is the operation that has no parameters.
const skipConnection = "skip_connection"

// Option is a setting of the training program of DARTS, which does the search.
type Option struct {
	// Name of the setting.
	Name string
	// Default as Python writes it.
	Default string
	// Whole says that it is a whole number.
	Whole bool
	// Min is the least value.
	Min float64
	// None says that the word None is allowed, too.
	None bool
	// Help says in a few words what it is.
	Help string
}

// DARTSOptions are the settings, in the order in which they are written.
func DARTSOptions() []Option {
	return []Option{
		{Name: "num_epochs", Default: "50", Whole: true, Min: 1, Help: "Epochs of the search"},
		{Name: "w_lr", Default: "0.025", Help: "Learning rate of the weights"},
		{Name: "w_lr_min", Default: "0.001", Help: "Learning rate of the weights at the end"},
		{Name: "w_momentum", Default: "0.9", Help: "Momentum of the weights"},
		{Name: "w_weight_decay", Default: "0.0003", Help: "Decay of the weights"},
		{Name: "w_grad_clip", Default: "5.0", Help: "Bound of the gradient of the weights"},
		{Name: "alpha_lr", Default: "0.0003", Help: "Learning rate of the architecture"},
		{Name: "alpha_weight_decay", Default: "0.001", Help: "Decay of the architecture's parameters"},
		{Name: "batch_size", Default: "128", Whole: true, Min: 1, None: true, Help: "Samples in a batch"},
		{Name: "num_workers", Default: "4", Whole: true, Help: "Processes that load data"},
		{Name: "init_channels", Default: "16", Whole: true, Min: 1, Help: "Channels of the first layer"},
		{Name: "print_step", Default: "50", Whole: true, Min: 1, Help: "Batches between two lines of the log"},
		{Name: "num_nodes", Default: "4", Whole: true, Min: 1, Help: "Nodes in a cell"},
		{Name: "stem_multiplier", Default: "3", Whole: true, Min: 1, Help: "Channels of the stem, as a multiple of init_channels"},
	}
}

// maxOption bounds the settings, to find slips of the pen.
const maxOption = 1e9

// CheckDARTS says what is wrong with the settings: errors of the kind
// *suggest.SettingError, joined.
func CheckDARTS(settings suggest.Settings) error {
	r := settings.Read()
	for _, o := range DARTSOptions() {
		within := suggest.Range{Min: o.Min, Max: maxOption}
		switch {
		case o.None && r.Text(o.Name, "") == "None":
		case o.Whole:
			r.Int(o.Name, 0, within)
		default:
			r.Float(o.Name, 0, within)
		}
	}
	return r.Err()
}

// DARTS is a search that one trial does by itself: the trial is given the
// settings, the operations and the number of layers.
type DARTS struct {
	space suggest.Space
}

// NewDARTS reads a config and the settings of the algorithm. The error is a
// *ConfigError, or that of CheckDARTS.
func NewDARTS(c Config, settings suggest.Settings) (*DARTS, error) {
	if err := errors.Join(c.checkLayers(), c.checkOperations(), CheckDARTS(settings)); err != nil {
		return nil, err
	}
	var operations []string
	for i, o := range c.Operations {
		names, err := c.primitives(i)
		if err != nil {
			return nil, err
		}
		if o.Type == skipConnection {
			names = []string{quote(skipConnection)}
		}
		operations = append(operations, names...)
	}
	d := &DARTS{}
	var err error
	d.space, err = suggest.NewSpace([]suggest.ParameterSpec{
		{Name: AlgorithmSettingsName, Kind: suggest.Categorical, List: []string{optionText(settings)}},
		{Name: SearchSpaceName, Kind: suggest.Categorical, List: []string{list(operations)}},
		{Name: NumLayersName, Kind: suggest.Categorical, List: []string{strconv.Itoa(c.Layers)}},
	})
	return d, err
}

// primitives are the names of the i-th operation: one for each value of its
// first parameter, the filter's size.
func (c Config) primitives(i int) ([]string, error) {
	o := c.Operations[i]
	if len(o.Parameters) == 0 {
		if o.Type == skipConnection {
			return nil, nil
		}
		return nil, &ConfigError{fmt.Sprintf("operations[%d].parameters", i), fmt.Sprintf("is missing; %s needs the sizes of its filter", o.Type)}
	}
	space, err := suggest.NewSpace(o.Parameters[:1])
	if err != nil {
		return nil, &ConfigError{fmt.Sprintf("operations[%d].parameters", i), "cannot be read: " + err.Error()}
	}
	count, finite := space.At(0).Count()
	if !finite || count > maxOperations {
		return nil, &ConfigError{fmt.Sprintf("operations[%d].parameters", i), "has too many values; give a list, or a step"}
	}
	var names []string
	for k := range count {
		// In the user's order, also where the values are numbers.
		text := space.At(0).At(k).String()
		if list := o.Parameters[0].List; len(list) > 0 {
			text = list[k]
		}
		names = append(names, quote(fmt.Sprintf("%s_%sx%s", o.Type, text, text)))
	}
	return names, nil
}

// optionText writes all settings: defaults as numbers, the user's as strings,
// as Katib's service does.
func optionText(settings suggest.Settings) string {
	given := map[string]string{}
	for _, s := range settings {
		given[s.Name] = quote(s.Value)
		if s.Value == "None" {
			given[s.Name] = "null"
		}
	}
	var pairs []pair
	for _, o := range DARTSOptions() {
		value, ok := given[o.Name]
		if !ok {
			value = o.Default
		}
		pairs = append(pairs, pair{o.Name, value})
	}
	return dictionary(pairs...)
}

// Space has one point: algorithm-settings, search-space and num-layers with the
// strings that Katib's service writes.
func (d *DARTS) Space() suggest.Space { return d.space }
