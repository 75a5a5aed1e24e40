package report

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"text/tabwriter"

	gonum "gonum.org/v1/gonum/stat"

	"github.com/vernier-ml/vernier/bench/suggest/play"
	"github.com/vernier-ml/vernier/bench/suggest/problem"
	"github.com/vernier-ml/vernier/bench/suggest/stat"
)

// liveTimes are the numbers of trials after which live trainings are compared, as
// far as all games have so many.
func liveTimes(records []play.Record) []int {
	return slices.DeleteFunc([]int{15, 30, 60}, func(n int) bool {
		return slices.ContainsFunc(records, func(r play.Record) bool { return r.Budget < n })
	})
}

// PrintLive shows the methods' mean ranks in the games of live trainings: on all of
// them, and on those that algorithms were tuned on and those that were kept aside.
// Before that it says what broke off.
func PrintLive(out io.Writer, records []play.Record) error {
	aside := map[string]bool{}
	for _, p := range problem.Trainings() {
		aside[p.Name] = p.Task.Aside
	}
	broken, why := map[string]int{}, map[string]string{}
	for _, r := range records {
		if _, live := aside[r.Problem]; live && r.Error != "" {
			broken[r.Method]++
			why[r.Method] = short(r.Error)
		}
	}
	for _, m := range slices.Sorted(maps.Keys(broken)) {
		fmt.Fprintf(out, "%s broke off in %d games, which count for no method: %s\n", m, broken[m], why[m])
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	for _, part := range []struct {
		title string
		has   func(aside bool) bool
	}{
		{"all", func(bool) bool { return true }},
		{"looked at", func(aside bool) bool { return !aside }},
		{"kept aside", func(aside bool) bool { return aside }},
	} {
		list := slices.DeleteFunc(slices.Clone(records), func(r play.Record) bool {
			kept, live := aside[r.Problem]
			return !live || !part.has(kept)
		})
		methods, games := liveGames(list)
		if len(games) == 0 {
			continue
		}
		fmt.Fprintf(w, "mean rank, live trainings, %s: %d games\t", part.title, len(games))
		for _, m := range methods {
			fmt.Fprintf(w, "%s\t", m)
		}
		fmt.Fprintln(w)
		for _, at := range liveTimes(list) {
			fmt.Fprintf(w, "after %d trials\t", at)
			for _, r := range meanRanks(games, float64(at)) {
				fmt.Fprintf(w, "%.2f ± %.2f\t", r.mean, r.standardError)
			}
			fmt.Fprintln(w)
		}
	}
	return w.Flush()
}

// liveGames are the games that all methods have played to the end, with the path of
// each method.
func liveGames(records []play.Record) (methods []string, games [][]play.Path) {
	byGame := map[play.Key]map[string]play.Path{}
	for _, r := range records {
		if !slices.Contains(methods, r.Method) {
			methods = append(methods, r.Method)
		}
		k := r.Key
		k.Method, k.Version = "", ""
		if byGame[k] == nil {
			byGame[k] = map[string]play.Path{}
		}
		if r.Error == "" {
			byGame[k][r.Method] = r.Path
		}
	}
	slices.Sort(methods)
	for _, paths := range byGame {
		if len(paths) < len(methods) {
			continue
		}
		var game []play.Path
		for _, m := range methods {
			game = append(game, paths[m])
		}
		games = append(games, game)
	}
	return methods, games
}

// rank of a method over games, and the standard error of its mean.
type rank struct{ mean, standardError float64 }

// meanRanks of the methods by the best loss after some trials. Equal losses share
// the mean of their ranks.
func meanRanks(games [][]play.Path, at float64) []rank {
	ranks := make([][]float64, len(games[0]))
	for _, paths := range games {
		losses := make([]float64, len(paths))
		for i, p := range paths {
			losses[i] = p.After(at)
		}
		for i, r := range stat.Ranks(losses) {
			ranks[i] = append(ranks[i], r)
		}
	}
	out := make([]rank, len(ranks))
	for i, list := range ranks {
		mean, deviation := gonum.MeanStdDev(list, nil)
		out[i] = rank{mean, gonum.StdErr(deviation, float64(len(list)))}
	}
	return out
}
