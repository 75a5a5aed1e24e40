package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/vernier-ml/vernier/bench/suggest/peer"
	"github.com/vernier-ml/vernier/bench/suggest/play"
	"github.com/vernier-ml/vernier/bench/suggest/problem"
	"github.com/vernier-ml/vernier/bench/suggest/report"
)

// options are the flags of run.
type options struct {
	suites, problems, methods, peers, regimes words

	seeds, version, out, folder, venvs string
	budget, jobs                       int
	limit                              time.Duration
	prepared                           bool
}

func (o *options) flags(set *flag.FlagSet) {
	set.Var(&o.suites, "suite", "suites: s1 to s5, all by default; or s6, live trainings, and s7, tables of trainings: their development halves; or s8, learning curves of live trainings")
	set.Var(&o.problems, "problem", "problems: names, families, or prefixes with a star; all of the suites by default")
	set.Var(&o.methods, "method", "our algorithms, with settings and a stopping rule if you like, tpe:gamma=0.2,prior_weight=2+asha; +repeats lets one try noisy points again")
	set.Var(&o.peers, "peers", "peers to play against")
	set.Var(&o.regimes, "regime", "regimes; by default sequential, and for s4 and s5 their own")
	set.StringVar(&o.seeds, "seeds", "5", "how many seeds, or a range such as 10-19")
	set.StringVar(&o.version, "version", "", "version of our algorithms in the results; by default what git describes")
	set.StringVar(&o.out, "out", "", "file to append results to; what it has is not played again")
	set.StringVar(&o.folder, "peer-folder", "bench/suggest/peers", "folder of peer.py")
	set.StringVar(&o.venvs, "venvs", ".cache/peers", "folder for the peers' environments")
	set.IntVar(&o.budget, "budget", 0, "evaluations of a game; by default what the regime says")
	set.IntVar(&o.jobs, "j", runtime.NumCPU(), "games at a time")
	set.DurationVar(&o.limit, "limit", 10*time.Minute, "time for one game")
}

func runCommand(ctx context.Context, args []string) error {
	var o options
	set := flag.NewFlagSet("run", flag.ContinueOnError)
	o.flags(set)
	if err := parse(set, args); err != nil {
		return err
	}
	store, err := play.OpenStore(o.out)
	if err != nil {
		return err
	}
	defer func() { _ = store.Close() }() // each result was written when it came
	jobs, err := o.plan()
	if err != nil {
		return err
	}
	bySeed(jobs)
	asked := map[play.Key]bool{}
	for _, j := range jobs {
		asked[j.key] = true
	}
	err = o.play(ctx, store, jobs)
	records := slices.DeleteFunc(store.Records(), func(r play.Record) bool { return !asked[r.Key] })
	return errors.Join(err, report.Print(os.Stdout, records), report.PrintReal(os.Stdout, records))
}

// job is a game to be played.
type job struct {
	key    play.Key
	run    play.Run
	method method
}

// method opens the games of one algorithm or peer.
type method struct {
	name, version string
	open          func() (play.Opener, error)
	suits         func(p *problem.Problem, r play.Regime) bool
}

// plan is all games that the flags ask for, the ones of a method together.
func (o *options) plan() ([]job, error) {
	problems, err := problem.Find(o.suites, o.problems)
	if err != nil {
		return nil, err
	}
	return o.planOf(problems)
}

// planOf is the games on some problems.
func (o *options) planOf(problems []*problem.Problem) ([]job, error) {
	seeds, err := parseSeeds(o.seeds)
	if err != nil {
		return nil, err
	}
	methods, err := o.players()
	if err != nil {
		return nil, err
	}
	var out []job
	for _, m := range methods {
		before := len(out)
		for _, p := range problems {
			regimes, err := o.regimesOf(p)
			if err != nil {
				return nil, err
			}
			for _, r := range regimes {
				if !m.suits(p, r) {
					continue
				}
				budget := o.budget
				if budget == 0 {
					budget = r.Evaluations(len(p.Parameters))
				}
				for _, seed := range seeds {
					p := p.Instance(seed)
					out = append(out, job{
						key:    play.Key{Suite: p.Suite, Problem: p.Name, Regime: r.Name, Method: m.name, Version: m.version, Seed: seed, Budget: budget, Draw: p.Drawn()},
						run:    play.Run{Problem: p, Regime: r, Seed: seed, Budget: budget, Evaluate: play.Evaluator(p, seed)},
						method: m,
					})
				}
			}
		}
		if len(out) == before {
			return nil, fmt.Errorf("%s plays none of these problems; the command list shows which suites it plays", m.name)
		}
	}
	return out, nil
}

// regimesOf are those that were asked for and suit the problem; when none was
// asked for, the first that suits.
func (o *options) regimesOf(p *problem.Problem) ([]play.Regime, error) {
	var out []play.Regime
	for _, r := range play.Regimes() {
		if !slices.Contains(r.Suites, p.Suite) {
			continue
		}
		if len(o.regimes) == 0 {
			return []play.Regime{r}, nil
		}
		if slices.Contains(o.regimes, r.Name) {
			out = append(out, r)
		}
	}
	for _, name := range o.regimes {
		if !slices.ContainsFunc(play.Regimes(), func(r play.Regime) bool { return r.Name == name }) {
			return nil, fmt.Errorf("there is no regime %q; the command list shows what there is", name)
		}
	}
	return out, nil
}

func (o *options) players() ([]method, error) {
	version := o.version
	if version == "" {
		version = gitVersion()
	}
	var out []method
	for _, name := range joinSettings(o.methods) {
		m, err := o.ours(name, version)
		if err != nil {
			return nil, err
		}
		out = append(out, m)
	}
	for _, name := range o.peers {
		p, err := peer.Get(name)
		if err != nil {
			return nil, err
		}
		out = append(out, method{name: p.Name, version: p.Version(), open: func() (play.Opener, error) { return p.Open(o.venvs, o.folder, o.jobs == 1) }, suits: p.Suits})
	}
	if len(out) == 0 {
		return nil, errors.New("name what should play: -method or -peers")
	}
	return out, nil
}

// ours is one of our algorithms, opened in this process.
func (o *options) ours(name, version string) (method, error) {
	ours, err := play.NewOurs(name)
	if err != nil {
		return method{}, err
	}
	ours.Alone = o.jobs == 1
	if ours.Prepared = o.prepared; o.prepared {
		name += " (prepared)"
	}
	return method{
		name: name, version: version,
		open:  func() (play.Opener, error) { return ours, nil },
		suits: func(*problem.Problem, play.Regime) bool { return true },
	}, nil
}

// joinSettings puts a method's settings together again, which the commas of the
// flag have parted: a word with an equals sign and no colon belongs to the one
// before.
func joinSettings(list []string) []string {
	var out []string
	for _, w := range list {
		if n := len(out); n > 0 && strings.Contains(w, "=") && !strings.Contains(w, ":") {
			out[n-1] += "," + w
		} else {
			out = append(out, w)
		}
	}
	return out
}

func parseSeeds(text string) ([]uint64, error) {
	first, last, ok := strings.Cut(text, "-")
	if !ok {
		first, last = "0", text
	}
	low, err1 := strconv.ParseUint(first, 10, 32)
	high, err2 := strconv.ParseUint(last, 10, 32)
	if err := errors.Join(err1, err2); err != nil {
		return nil, fmt.Errorf("seeds %q: write how many, or first-last: %w", text, err)
	}
	if !ok {
		if high == 0 {
			return nil, errors.New("seeds: at least one")
		}
		high--
	}
	var out []uint64
	for s := low; s <= high; s++ {
		out = append(out, s)
	}
	return out, nil
}

func gitVersion() string {
	out, err := exec.Command("git", "describe", "--always", "--dirty").Output()
	if err != nil {
		return "dev"
	}
	return strings.TrimSpace(string(out))
}
