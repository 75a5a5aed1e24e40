package architecture

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/vernier-ml/vernier/suggest"
)

func categorical(name string, values ...string) suggest.ParameterSpec {
	return suggest.ParameterSpec{Name: name, Kind: suggest.Categorical, List: values}
}

func filterSize(values ...string) suggest.ParameterSpec { return categorical("filter_size", values...) }

// enasExample has the operations of Katib's enas-cpu.yaml.
func enasExample(layers int) Config {
	filters := categorical("num_filter", "32", "48", "64", "96", "128")
	stride, depth := categorical("stride", "1", "2"), categorical("depth_multiplier", "1", "2")
	return Config{
		Layers: layers, InputSizes: []int{32, 32, 3}, OutputSizes: []int{10},
		Operations: []Operation{
			{Type: "convolution", Parameters: []suggest.ParameterSpec{filterSize("3", "5", "7"), filters, stride}},
			{Type: "separable_convolution", Parameters: []suggest.ParameterSpec{filterSize("3", "5", "7"), filters, stride, depth}},
			{Type: "depthwise_convolution", Parameters: []suggest.ParameterSpec{filterSize("3", "5", "7"), stride, depth}},
			{Type: "reduction", Parameters: []suggest.ParameterSpec{
				categorical("reduction_type", "max_pooling", "avg_pooling"),
				{Name: "pool_size", Kind: suggest.Int, Min: "2", Max: "3", Step: "1"},
			}},
		},
	}
}

// readmeExample has the operations with the numbers of the example in the README
// of Katib's ENAS service.
func readmeExample() Config {
	c := enasExample(8)
	c.Operations = []Operation{c.Operations[0], c.Operations[3]}
	return c
}

// The architecture and the content of nn_config are those of the README; their
// text is what Python's json.dumps makes of them, with " turned into '.
func TestENASWritesWhatKatibWrites(t *testing.T) {
	e, err := NewENAS(readmeExample())
	if err != nil {
		t.Fatal(err)
	}
	const architecture = "[[27], [29, 0], [22, 1, 0], [13, 0, 0, 0], [26, 1, 1, 0, 0], [30, 1, 0, 1, 0, 0], [11, 0, 1, 1, 0, 1, 1], [9, 1, 0, 0, 1, 0, 0, 0]]"
	p, ok := e.Parse([]suggest.Assignment{{Name: "nn_config", Value: "{}"}, {Name: "architecture", Value: architecture}})
	if !ok || !e.Space().Contains(p) {
		t.Fatalf("the architecture reads as %v, %v", p, ok)
	}
	want := []suggest.Assignment{
		{Name: "architecture", Value: architecture},
		{Name: "nn_config", Value: `{'num_layers': 8, 'input_sizes': [32, 32, 3], 'output_sizes': [10], 'embedding': {` +
			`'27': {'opt_id': 27, 'opt_type': 'convolution', 'opt_params': {'filter_size': '7', 'num_filter': '96', 'stride': '2'}}, ` +
			`'29': {'opt_id': 29, 'opt_type': 'convolution', 'opt_params': {'filter_size': '7', 'num_filter': '128', 'stride': '2'}}, ` +
			`'22': {'opt_id': 22, 'opt_type': 'convolution', 'opt_params': {'filter_size': '7', 'num_filter': '48', 'stride': '1'}}, ` +
			`'13': {'opt_id': 13, 'opt_type': 'convolution', 'opt_params': {'filter_size': '5', 'num_filter': '48', 'stride': '2'}}, ` +
			`'26': {'opt_id': 26, 'opt_type': 'convolution', 'opt_params': {'filter_size': '7', 'num_filter': '96', 'stride': '1'}}, ` +
			`'30': {'opt_id': 30, 'opt_type': 'reduction', 'opt_params': {'reduction_type': 'max_pooling', 'pool_size': 2}}, ` +
			`'11': {'opt_id': 11, 'opt_type': 'convolution', 'opt_params': {'filter_size': '5', 'num_filter': '32', 'stride': '2'}}, ` +
			`'9': {'opt_id': 9, 'opt_type': 'convolution', 'opt_params': {'filter_size': '3', 'num_filter': '128', 'stride': '2'}}}}`},
	}
	if diff := cmp.Diff(want, e.Assignments(p)); diff != "" {
		t.Error(diff)
	}
}

func TestENASSpace(t *testing.T) {
	e, err := NewENAS(enasExample(3))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	space := e.Space()
	for i := range space.Len() {
		got = append(got, space.At(i).Name())
	}
	want := []string{"layer_1", "layer_2", "layer_2_skip_0", "layer_3", "layer_3_skip_0", "layer_3_skip_1"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	choices := space.At(0).Choices()
	if len(choices) != 30+60+12+4 {
		t.Errorf("there are %d operations, want 106", len(choices))
	}
	for index, want := range map[int]string{
		0: "0 convolution filter_size=3 num_filter=32 stride=1", 1: "1 convolution filter_size=3 num_filter=32 stride=2",
		31: "31 separable_convolution filter_size=3 num_filter=32 stride=1 depth_multiplier=2", 105: "105 reduction reduction_type=avg_pooling pool_size=3",
	} {
		if choices[index] != want {
			t.Errorf("operation %d is %q, want %q", index, choices[index], want)
		}
	}
}

func TestENASReadsBackEachPoint(t *testing.T) {
	e, err := NewENAS(enasExample(4))
	if err != nil {
		t.Fatal(err)
	}
	space := e.Space()
	for k := range 50 {
		u := make([]float64, space.Len())
		for i := range u {
			u[i] = float64((k*37+i*53)%101) / 101
		}
		p := space.Decode(u)
		assignments := e.Assignments(p)
		if q, ok := e.Parse(assignments); !ok || !q.Equal(p) {
			t.Errorf("%v reads back as %v, %v", p, q, ok)
		}
		for _, a := range assignments {
			var parsed any
			if err := json.Unmarshal([]byte(strings.ReplaceAll(a.Value, "'", `"`)), &parsed); err != nil {
				t.Errorf("%s is no JSON: %v", a.Name, err)
			}
		}
	}
}

func TestENASReadsNoOtherArchitecture(t *testing.T) {
	e, err := NewENAS(enasExample(2))
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"", "[]", "[[0]]", "[[0], [0]]", "[[0], [0, 2]]", "[[106], [0, 0]]", "[[-1], [0, 0]]", "[[0], [0, 0], [0, 0, 0]]", "[[0, 0], [0]]", "[['0'], [0, 0]]"} {
		if p, ok := e.Parse([]suggest.Assignment{{Name: "architecture", Value: text}}); ok {
			t.Errorf("%s reads as %v", text, p)
		}
	}
}

// dartsExample has the operations of Katib's darts-gpu.yaml.
func dartsExample() Config {
	return Config{Layers: 3, Operations: []Operation{
		{Type: "separable_convolution", Parameters: []suggest.ParameterSpec{filterSize("3")}},
		{Type: "dilated_convolution", Parameters: []suggest.ParameterSpec{filterSize("3", "5")}},
		{Type: "avg_pooling", Parameters: []suggest.ParameterSpec{filterSize("3")}},
		{Type: "max_pooling", Parameters: []suggest.ParameterSpec{filterSize("3")}},
		{Type: "skip_connection"},
	}}
}

// The texts are what Python's json.dumps makes of Katib's defaults and the
// settings of its examples, with " turned into '.
func TestDARTSWritesWhatKatibWrites(t *testing.T) {
	cpu := Config{Layers: 1, Operations: []Operation{{Type: "max_pooling", Parameters: []suggest.ParameterSpec{filterSize("3")}}}}
	for name, c := range map[string]struct {
		config                       Config
		settings                     suggest.Settings
		options, operations, nLayers string
	}{
		"darts-cpu.yaml": {
			cpu,
			suggest.Settings{{Name: "num_epochs", Value: "1"}, {Name: "num_nodes", Value: "1"}, {Name: "init_channels", Value: "1"}, {Name: "stem_multiplier", Value: "1"}},
			"{'num_epochs': '1', 'w_lr': 0.025, 'w_lr_min': 0.001, 'w_momentum': 0.9, 'w_weight_decay': 0.0003, 'w_grad_clip': 5.0, 'alpha_lr': 0.0003, 'alpha_weight_decay': 0.001, 'batch_size': 128, 'num_workers': 4, 'init_channels': '1', 'print_step': 50, 'num_nodes': '1', 'stem_multiplier': '1'}",
			"['max_pooling_3x3']", "1",
		},
		"darts-gpu.yaml": {
			dartsExample(),
			suggest.Settings{{Name: "num_epochs", Value: "3"}, {Name: "batch_size", Value: "None"}},
			"{'num_epochs': '3', 'w_lr': 0.025, 'w_lr_min': 0.001, 'w_momentum': 0.9, 'w_weight_decay': 0.0003, 'w_grad_clip': 5.0, 'alpha_lr': 0.0003, 'alpha_weight_decay': 0.001, 'batch_size': null, 'num_workers': 4, 'init_channels': 16, 'print_step': 50, 'num_nodes': 4, 'stem_multiplier': 3}",
			"['separable_convolution_3x3', 'dilated_convolution_3x3', 'dilated_convolution_5x5', 'avg_pooling_3x3', 'max_pooling_3x3', 'skip_connection']", "3",
		},
	} {
		t.Run(name, func(t *testing.T) {
			d, err := NewDARTS(c.config, c.settings)
			if err != nil {
				t.Fatal(err)
			}
			if size, _ := d.Space().Size(); size != 1 {
				t.Errorf("the space has %d points, want 1", size)
			}
			want := []suggest.Assignment{{Name: "algorithm-settings", Value: c.options}, {Name: "search-space", Value: c.operations}, {Name: "num-layers", Value: c.nLayers}}
			if diff := cmp.Diff(want, d.Space().Assignments(d.Space().First())); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestWrongConfigsAreNamed(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*Config)
		field  string
	}{
		"no layers":         {func(c *Config) { c.Layers = 0 }, "graphConfig.numLayers"},
		"too many layers":   {func(c *Config) { c.Layers = 201 }, "graphConfig.numLayers"},
		"no input":          {func(c *Config) { c.InputSizes = nil }, "graphConfig.inputSizes"},
		"no output":         {func(c *Config) { c.OutputSizes = nil }, "graphConfig.outputSizes"},
		"a size of 0":       {func(c *Config) { c.InputSizes = []int{32, 0} }, "graphConfig.inputSizes"},
		"no operations":     {func(c *Config) { c.Operations = nil }, "operations"},
		"no type":           {func(c *Config) { c.Operations[1].Type = "" }, "operations[1].operationType"},
		"a quote":           {func(c *Config) { c.Operations[0].Type = "it's" }, "operations[0].operationType"},
		"a quote in a list": {func(c *Config) { c.Operations[0].Parameters[0].List = []string{`"`} }, "operations[0].parameters"},
		"an empty list":     {func(c *Config) { c.Operations[0].Parameters[0].List = nil }, "operations[0].parameters"},
		"a continuous parameter": {func(c *Config) {
			c.Operations[1].Parameters[1] = suggest.ParameterSpec{Name: "x", Kind: suggest.Double, Min: "0", Max: "1"}
		}, "operations[1].parameters"},
		"too many operations":     {func(c *Config) { c.Operations[1].Parameters[1].Max = "99999" }, "operations[1].parameters"},
		"too many, one by one":    {func(c *Config) { c.Operations[1].Parameters[1].Max = "5000" }, "operations"},
		"a parameter named twice": {func(c *Config) { c.Operations[1].Parameters[1].Name = "reduction_type" }, "operations[1].parameters"},
	} {
		config := readmeExample()
		c.change(&config)
		if name == "too many, one by one" {
			config.Operations = append(config.Operations, config.Operations[1])
			config.Operations[1].Parameters[0].List = []string{"one"}
		}
		_, err := NewENAS(config)
		var wrong *ConfigError
		if !errors.As(err, &wrong) || wrong.Field != c.field {
			t.Errorf("%s: got %v, want an error about %s", name, err, c.field)
		}
	}
	for name, settings := range map[string]suggest.Setting{
		"below": {Name: "num_epochs", Value: "0"}, "not whole": {Name: "num_nodes", Value: "1.5"}, "none": {Name: "num_epochs", Value: "None"},
		"negative": {Name: "w_lr", Value: "-0.1"}, "unknown": {Name: "lr", Value: "1"},
	} {
		_, err := NewDARTS(dartsExample(), suggest.Settings{settings})
		var wrong *suggest.SettingError
		if !errors.As(err, &wrong) || wrong.Name != settings.Name {
			t.Errorf("%s: got %v, want an error about %s", name, err, settings.Name)
		}
	}
	bare := dartsExample()
	bare.Operations[0].Parameters = nil
	if _, err := NewDARTS(bare, nil); err == nil {
		t.Error("a convolution without a filter's size is accepted")
	}
}

// The texts are Python's: repr of the numbers, json.dumps of the string.
func TestPythonLiterals(t *testing.T) {
	for x, want := range map[float64]string{
		1: "1.0", 0: "0.0", 0.1: "0.1", 1e-5: "1e-05", 0.0001: "0.0001", 1e16: "1e+16", 1e15: "1000000000000000.0",
		123456.75: "123456.75", -0.5: "-0.5", 2.5e-7: "2.5e-07", 1e22: "1e+22",
	} {
		if got := float(x); got != want {
			t.Errorf("%g is written %s, want %s", x, got, want)
		}
	}
	if got, want := quote("grün\t☃𝄞\x7f\x01"), `'gr\u00fcn\t\u2603\ud834\udd1e\u007f\u0001'`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func FuzzParse(f *testing.F) {
	e, err := NewENAS(enasExample(2))
	if err != nil {
		f.Fatal(err)
	}
	f.Add("[[1], [2, 0]]")
	f.Add("[[1], [2]]")
	f.Fuzz(func(t *testing.T, text string) {
		p, ok := e.Parse([]suggest.Assignment{{Name: "architecture", Value: text}})
		if ok && !e.Space().Contains(p) {
			t.Errorf("%q reads as %v, which is not in the space", text, p)
		}
	})
}
