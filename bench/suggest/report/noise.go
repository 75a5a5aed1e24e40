package report

import (
	"fmt"
	"maps"
	"math"
	"slices"

	gonum "gonum.org/v1/gonum/stat"

	"github.com/vernier-ml/vernier/bench/suggest/play"
	"github.com/vernier-ml/vernier/bench/suggest/problem"
)

// repeating is what the name of a method ends with that tries points again.
const repeating = "+repeats"

// noiseGame is one noisy task under one seed: of a method without repeats its path, whose
// recommendation is the point with the best value, and the best point that it tried; and
// the same of the method with repeats, which recommends by its model.
type noiseGame struct {
	plain, visited, again, againVisited play.Path
}

// noiseSection shows how much better the point is that a method with repeats recommends
// than the one with the best value of the same method without them, as a share of what
// lies between that and the best point that was tried. Losses are in points: 0 is the
// median of the first points of the games, 100 the best point of all games.
func noiseSection(p *page, records []play.Record) {
	for _, method := range slices.Sorted(maps.Keys(repeatingMethods(records))) {
		tasks := noiseGames(records, method)
		if len(tasks) == 0 {
			continue
		}
		p.line("Noise: what `%s%s` recommends, beside the point with the best value of `%s`, and the best point that that had tried. True losses in points: 0 is the median of first points, 100 the best point of all games. The gain is from the first to the recommendation, with a 95 %% interval whose unit is the task; the share, of the way from the first to the second.\n", method, repeating, method)
		var rows [][]string
		for _, at := range realTimes(records) {
			var plain, visited []float64
			gains := map[string][]float64{}
			for _, name := range slices.Sorted(maps.Keys(tasks)) {
				if points, best, again, ok := noisePoints(tasks[name], float64(at)); ok {
					plain, visited = append(plain, points), append(visited, best)
					gains[name] = []float64{again - points}
				}
			}
			low, high, gain := gonum.Mean(plain, nil), gonum.Mean(visited, nil), overFamilies(gains)
			if len(gains) < 2 || !(high > low) {
				continue // there is no interval, or nothing to be gained
			}
			rows = append(rows, []string{
				fmt.Sprint(at), fmt.Sprintf("%.1f", low), fmt.Sprintf("%.1f", high), fmt.Sprintf("%.1f", low+gain.mean),
				fmt.Sprintf("%+.1f (%+.1f to %+.1f)", gain.mean, gain.low, gain.high), fmt.Sprintf("%.0f %%", 100*gain.mean/(high-low)),
			})
		}
		p.table([]string{"trials", "best value", "best tried", "recommended", "gain", "share"}, rows)
	}
}

func repeatingMethods(records []play.Record) map[string]bool {
	out := map[string]bool{}
	for _, r := range records {
		if n := len(r.Method) - len(repeating); n > 0 && r.Method[n:] == repeating && r.Suite == problem.Tabular {
			out[r.Method[:n]] = true
		}
	}
	return out
}

// noiseGames are those that a method has played to the end without and with repeats, by task.
func noiseGames(records []play.Record, method string) map[string][]noiseGame {
	games := map[string]map[uint64]*noiseGame{}
	for _, r := range records {
		if r.Error != "" || r.Suite != problem.Tabular || r.Method != method && r.Method != method+repeating {
			continue
		}
		if games[r.Problem] == nil {
			games[r.Problem] = map[uint64]*noiseGame{}
		}
		if games[r.Problem][r.Seed] == nil {
			games[r.Problem][r.Seed] = &noiseGame{}
		}
		if g := games[r.Problem][r.Seed]; r.Method == method {
			g.plain, g.visited = r.Path, r.Visited
		} else {
			g.again, g.againVisited = r.Path, r.Visited
		}
	}
	out := map[string][]noiseGame{}
	for name, of := range games {
		for _, seed := range slices.Sorted(maps.Keys(of)) {
			if g := *of[seed]; g.plain != nil && g.visited != nil && g.again != nil && g.againVisited != nil {
				out[name] = append(out[name], g)
			}
		}
	}
	return out
}

// noisePoints are the means of a task's games after some trials, in points; ok is false
// where no game found anything better than first points are.
func noisePoints(games []noiseGame, at float64) (plain, visited, again float64, ok bool) {
	var first []float64
	best := math.Inf(1)
	for _, g := range games {
		first = append(first, g.visited[0][1])
		for _, path := range []play.Path{g.visited, g.againVisited} {
			best = math.Min(best, path.After(math.Inf(1)))
		}
	}
	zero := median(first)
	points := func(loss float64) float64 { return 100 * (zero - loss) / (zero - best) / float64(len(games)) }
	for _, g := range games {
		plain += points(g.plain.After(at))
		visited += points(g.visited.After(at))
		again += points(g.again.After(at))
	}
	return plain, visited, again, zero > best
}

func median(of []float64) float64 {
	return gonum.Quantile(0.5, gonum.LinInterp, slices.Sorted(slices.Values(of)), nil)
}
