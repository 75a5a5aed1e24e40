// Command goptuna plays Goptuna's samplers, in the protocol of ../peer.py. It is
// a module of its own, so that what it needs is not needed by anything else.
//
//	goptuna goptuna-tpe|goptuna-cmaes
package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"syscall"
	"time"
	"unsafe"

	"github.com/c-bata/goptuna"
	"github.com/c-bata/goptuna/cmaes"
	"github.com/c-bata/goptuna/tpe"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: goptuna NAME")
		os.Exit(2)
	}
	if err := serve(os.Args[1], os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "goptuna:", err)
		os.Exit(1)
	}
}

// request is a line of the input; one of its fields is set.
type request struct {
	Open *opening `json:"open"`
	Ask  int      `json:"ask"`
	Tell []result `json:"tell"`
	Load []past   `json:"load"`
}

type opening struct {
	Seed  int64 `json:"seed"`
	Space struct {
		Parameters []parameter `json:"parameters"`
	} `json:"space"`
}

type parameter struct {
	Name         string  `json:"name"`
	Type         string  `json:"type"`
	Min          float64 `json:"min"`
	Max          float64 `json:"max"`
	Step         float64 `json:"step"`
	Distribution string  `json:"distribution"`
	List         []any   `json:"list"`
	When         *struct {
		Parameter string `json:"parameter"`
		In        []any  `json:"in"`
	} `json:"when"`
}

type result struct {
	Number int       `json:"number"`
	State  string    `json:"state"`
	Values []float64 `json:"values"`
}

type past struct {
	Params map[string]float64 `json:"params"`
	Value  float64            `json:"value"`
}

type answer struct {
	Trials []trial `json:"trials,omitempty"`
	OK     bool    `json:"ok,omitempty"`
	Error  string  `json:"error,omitempty"`
	// CPU and Wall are seconds.
	CPU  float64 `json:"cpu"`
	Wall float64 `json:"wall"`
}

type trial struct {
	Number int            `json:"number"`
	Params map[string]any `json:"params"`
}

// serve answers requests until the input ends.
func serve(name string, in io.Reader, out io.Writer) error {
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, 1<<26)
	answers := json.NewEncoder(out)
	var g *game
	for lines.Scan() {
		cpu, wall := cpuTime(), time.Now()
		var a answer
		var r request
		err := json.Unmarshal(lines.Bytes(), &r)
		if err == nil {
			a, g, err = handle(name, g, r)
		}
		if err != nil {
			a = answer{Error: err.Error()}
		}
		a.CPU, a.Wall = (cpuTime() - cpu).Seconds(), time.Since(wall).Seconds()
		if err := answers.Encode(a); err != nil {
			return err
		}
	}
	return lines.Err()
}

func handle(name string, g *game, r request) (answer, *game, error) {
	if r.Open != nil {
		g, err := open(name, *r.Open)
		return answer{OK: true}, g, err
	}
	if g == nil {
		return answer{}, nil, errors.New("no game is open")
	}
	if r.Ask > 0 {
		a := answer{}
		for range r.Ask {
			t, err := g.ask()
			if err != nil {
				return answer{}, g, err
			}
			a.Trials = append(a.Trials, t)
		}
		return a, g, nil
	}
	for _, one := range r.Tell {
		if err := g.tell(one); err != nil {
			return answer{}, g, err
		}
	}
	for _, one := range r.Load {
		if err := g.load(one); err != nil {
			return answer{}, g, err
		}
	}
	return answer{OK: true}, g, nil
}

// game is a study that is being played.
type game struct {
	study      *goptuna.Study
	parameters []parameter
}

func open(name string, o opening) (*game, error) {
	options := []goptuna.StudyOption{
		goptuna.StudyOptionLogger(silent{}),
		goptuna.StudyOptionDirection(goptuna.StudyDirectionMinimize),
	}
	switch name {
	case "goptuna-tpe":
		options = append(options, goptuna.StudyOptionSampler(tpe.NewSampler(tpe.SamplerOptionSeed(o.Seed))))
	case "goptuna-cmaes":
		options = append(options,
			goptuna.StudyOptionSampler(goptuna.NewRandomSampler(goptuna.RandomSamplerOptionSeed(o.Seed))),
			goptuna.StudyOptionRelativeSampler(cmaes.NewSampler(cmaes.SamplerOptionSeed(o.Seed))))
	default:
		return nil, fmt.Errorf("there is no player %q", name)
	}
	study, err := goptuna.CreateStudy("game", options...)
	if err != nil {
		return nil, err
	}
	return &game{study: study, parameters: o.Space.Parameters}, nil
}

// ask starts a trial the way Study.Optimize does.
func (g *game) ask() (trial, error) {
	id, err := g.study.Storage.CreateNewTrial(g.study.ID)
	if err != nil {
		return trial{}, err
	}
	t := goptuna.Trial{Study: g.study, ID: id}
	if err := t.CallRelativeSampler(); err != nil {
		return trial{}, err
	}
	params := map[string]any{}
	for _, p := range g.parameters {
		if p.When != nil && !slices.ContainsFunc(p.When.In, func(v any) bool { return fmt.Sprint(v) == fmt.Sprint(params[p.When.Parameter]) }) {
			continue
		}
		if params[p.Name], err = suggest(&t, p); err != nil {
			return trial{}, fmt.Errorf("parameter %s: %w", p.Name, err)
		}
	}
	return trial{Number: id, Params: params}, nil
}

// suggest asks for one value. Goptuna has no whole numbers on a logarithmic
// scale, and no ordered lists; the first are rounded, of the second the position
// is asked for, counted from 0.
func suggest(t *goptuna.Trial, p parameter) (any, error) {
	log := p.Distribution == "logUniform"
	switch {
	case p.Type == "categorical":
		words := make([]string, len(p.List))
		for i, v := range p.List {
			words[i] = fmt.Sprint(v)
		}
		return t.SuggestCategorical(p.Name, words)
	case p.Type == "discrete":
		values := make([]float64, len(p.List))
		for i, v := range p.List {
			values[i], _ = v.(float64)
		}
		slices.Sort(values)
		k, err := t.SuggestInt(p.Name, 0, len(values)-1)
		return values[min(max(k, 0), len(values)-1)], err
	case log:
		v, err := t.SuggestLogFloat(p.Name, p.Min, p.Max)
		if p.Type == "int" {
			v = math.Min(math.Max(math.Round(v), p.Min), p.Max)
		}
		return v, err
	case p.Type == "int" && p.Step > 1:
		return t.SuggestStepInt(p.Name, int(p.Min), int(p.Max), int(p.Step))
	case p.Type == "int":
		return t.SuggestInt(p.Name, int(p.Min), int(p.Max))
	case p.Step > 0:
		return t.SuggestDiscreteFloat(p.Name, p.Min, p.Max, p.Step)
	}
	return t.SuggestFloat(p.Name, p.Min, p.Max)
}

func (g *game) tell(r result) error {
	if r.State != "succeeded" {
		return g.study.Storage.SetTrialState(r.Number, goptuna.TrialStateFail)
	}
	if err := g.study.Storage.SetTrialValue(r.Number, r.Values[0]); err != nil {
		return err
	}
	return g.study.Storage.SetTrialState(r.Number, goptuna.TrialStateComplete)
}

// load adds a trial that the study has not proposed; doubles only.
func (g *game) load(p past) error {
	t := goptuna.FrozenTrial{
		State: goptuna.TrialStateComplete, Value: p.Value, DatetimeStart: time.Now(), DatetimeComplete: time.Now(),
		InternalParams: p.Params, Params: map[string]any{}, Distributions: map[string]any{},
	}
	for _, q := range g.parameters {
		t.Params[q.Name] = p.Params[q.Name]
		t.Distributions[q.Name] = goptuna.UniformDistribution{Low: q.Min, High: q.Max}
	}
	_, err := g.study.Storage.CloneTrial(g.study.ID, t)
	return err
}

// silent is a logger that says nothing: standard output is for answers. The
// logger nil does not do, it fails at the first warning.
type silent struct{}

// Debug implements goptuna.Logger.
func (silent) Debug(string, ...any) {}

// Info implements goptuna.Logger.
func (silent) Info(string, ...any) {}

// Warn implements goptuna.Logger.
func (silent) Warn(string, ...any) {}

// Error implements goptuna.Logger.
func (silent) Error(string, ...any) {}

// cpuTime of this process, in all its threads. getrusage would do, but counts in
// ticks.
func cpuTime() time.Duration {
	const processCPU = 2 // as Linux calls it
	var t syscall.Timespec
	if _, _, errno := syscall.RawSyscall(syscall.SYS_CLOCK_GETTIME, processCPU, uintptr(unsafe.Pointer(&t)), 0); errno != 0 {
		return 0
	}
	return time.Duration(t.Nano())
}
