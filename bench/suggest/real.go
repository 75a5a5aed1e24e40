package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/vernier-ml/vernier/bench/suggest/play"
	"github.com/vernier-ml/vernier/bench/suggest/problem"
	"github.com/vernier-ml/vernier/bench/suggest/report"
)

// resultsFolder has the games that are kept.
const resultsFolder = "bench/suggest/results"

// realPage is what is written when the verdict half was played one trial at a time.
const realPage = "docs/benchmarks-real.md"

// pageOf is the page of the verdict half under a regime.
func pageOf(regime string) string {
	return strings.TrimSuffix(realPage, ".md") + suffixOf(regime) + ".md"
}

func suffixOf(regime string) string {
	if regime == play.Sequential {
		return ""
	}
	return "-" + regime
}

// realCommand plays real tasks, seed by seed. What is in the file
// of results for this source of the algorithms is not played again, so that games
// add up over days and machines.
func realCommand(ctx context.Context, args []string) error {
	var o options
	var verdict, kept bool
	set := flag.NewFlagSet("real", flag.ContinueOnError)
	o.flags(set)
	o.limit = 2 * time.Hour
	set.BoolVar(&verdict, "verdict", false, "play the verdict half, with all methods, and write "+realPage+"; with -regime batch8 "+pageOf(play.BatchOf8))
	set.BoolVar(&kept, "kept", false, "play nothing: show the games that are kept, of which a peer may have fewer than another")
	if err := parse(set, args); err != nil {
		return err
	}
	if err := o.completeReal(verdict); err != nil {
		return err
	}
	problems := problem.Real(verdict)
	if !verdict {
		problems = append(problems, problem.CurveTrainings()...)
	}
	problems = slices.DeleteFunc(problems, func(p *problem.Problem) bool {
		return len(o.suites) > 0 && !slices.Contains(o.suites, p.Suite) || len(o.suites) == 0 && p.Suite == problem.LiveCurves ||
			len(o.problems) > 0 && !slices.Contains(o.problems, p.Name) && !slices.Contains(o.problems, p.Family)
	})
	jobs, err := o.planOf(problems)
	if err != nil {
		return err
	}
	bySeed(jobs)
	if !kept {
		err = o.playInto(ctx, jobs)
	}
	all, wrong := play.ReadRecords([]string{o.out})
	if wrong != nil {
		return errors.Join(err, wrong)
	}
	asked := map[play.Key]bool{}
	for _, j := range jobs {
		asked[j.key] = true
	}
	records := slices.DeleteFunc(slices.Clone(all), func(r play.Record) bool { return !asked[r.Key] })
	if len(records) == 0 {
		return errors.Join(err, fmt.Errorf("none of these games is kept in %s for %s; play them, or name the -version", o.out, o.version))
	}
	var page bytes.Buffer
	fmt.Fprintf(&page, "`suggest` %s, with up to %d seeds.\n\n", o.version, seedsOf(records))
	if err := errors.Join(err, report.PrintReal(&page, records)); err != nil || !verdict {
		_, wrong := os.Stdout.Write(page.Bytes())
		return errors.Join(err, wrong)
	}
	seen, err := seenVerdicts(all)
	if err != nil {
		return err
	}
	return os.WriteFile(pageOf(o.regimes[0]), append(verdictHead(seen, o.regimes[0]), page.Bytes()...), 0o644)
}

// seenVerdicts are the records by which the verdict half was seen under any regime, those
// of earlier sources first: the tasks are the same.
func seenVerdicts(here []play.Record) ([]play.Record, error) {
	var files []string
	for _, name := range []string{"verdict-earlier", "verdict", "verdict" + suffixOf(play.BatchOf8)} {
		files = append(files, filepath.Join(resultsFolder, name+".jsonl"))
	}
	before, err := play.ReadRecords(files)
	return append(before, here...), err
}

// completeReal fills in what the flags leave open.
func (o *options) completeReal(verdict bool) (err error) {
	half := "development"
	if verdict {
		half = "verdict"
		if len(o.problems)+len(o.suites) > 0 {
			return errors.New("the verdict half is played as a whole: leave -problem and -suite out")
		}
		if len(o.regimes) == 0 {
			o.regimes = words{play.Sequential}
		}
		if len(o.regimes) > 1 {
			return errors.New("each regime has a page of its own: name one -regime")
		}
		half += suffixOf(o.regimes[0])
	} else if slices.Equal(o.suites, words{problem.LiveCurves}) {
		half = "curves"
	}
	if o.out == "" {
		o.out = filepath.Join(resultsFolder, half+".jsonl")
	}
	if o.budget == 0 && !slices.Contains(o.suites, problem.LiveCurves) { // which has its own
		o.budget = 60
	}
	if len(o.methods)+len(o.peers) == 0 {
		o.methods, o.peers = words{"auto", "tpe", "cmaes", "random"}, words{"optuna-tpe"}
	}
	if o.version == "" {
		o.version, err = sourceVersion("suggest")
	}
	return err
}

func seedsOf(records []play.Record) int {
	seeds := map[uint64]bool{}
	for _, r := range records {
		seeds[r.Seed] = true
	}
	return len(seeds)
}

// verdictHead says whose verdict was seen: of each source that ours was played with,
// all but the first were made after one.
func verdictHead(records []play.Record, regime string) []byte {
	var seen []string
	how := ""
	if regime != play.Sequential {
		how = " with `REAL=\"-regime " + regime + "\"`"
	}
	for _, r := range records {
		if r.Method == "auto" && !slices.Contains(seen, r.Version) {
			seen = append(seen, r.Version)
		}
	}
	return fmt.Appendf(nil, "# Real tasks: the verdict half\n\nWritten by `make bench-suggest-verdict`%s. Nothing was chosen by these tasks before the first of the sources that they were played with; the later ones were made after a verdict was seen: %s.\n\n", how, strings.Join(seen, ", "))
}

// sourceVersion names the source of our algorithms, whether it is committed or not:
// a hash of the Go files of a folder, without tests.
func sourceVersion(folder string) (string, error) {
	sum := sha256.New()
	err := filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		fmt.Fprintf(sum, "%s %d\n%s", filepath.ToSlash(path), len(text), text)
		return err
	})
	if err != nil {
		return "", fmt.Errorf("cannot read the source of our algorithms; run this in the root of the repository: %w", err)
	}
	return fmt.Sprintf("src-%.5x", sum.Sum(nil)), nil
}
