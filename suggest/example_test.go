package suggest_test

import (
	"context"
	"fmt"
	"math"

	"github.com/vernier-ml/vernier/suggest"
	"github.com/vernier-ml/vernier/suggest/algorithm"
	"github.com/vernier-ml/vernier/suggest/stop"
)

func ExampleSession() {
	space, err := suggest.NewSpace([]suggest.ParameterSpec{
		suggest.Float("lr", 1e-5, 1e-1, suggest.Log),
		suggest.Integer("layers", 1, 4),
		suggest.Choice("optimizer", "sgd", "adam"),
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	tpe, _ := algorithm.Get("tpe")
	search, err := tpe.New(space, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	s := suggest.Session{
		Algorithm: search,
		Study:     suggest.Study{Space: space, Objectives: []suggest.Objective{{Name: "loss"}}, Seed: 1},
	}
	for range 60 {
		asked, err := s.Ask(context.Background(), 1)
		if err != nil {
			fmt.Println(err)
			return
		}
		t := asked[0]
		// Where you would train:
		loss := math.Abs(math.Log10(t.Value("lr").Float())+3) + math.Abs(t.Value("layers").Float()-2)
		if t.Value("optimizer").String() == "sgd" {
			loss++
		}
		if err := s.Tell(suggest.Result{Number: t.Number, Values: []float64{loss}}); err != nil {
			fmt.Println(err)
			return
		}
	}
	best := s.Best()
	fmt.Printf("trials: %d, layers: %s, optimizer: %s, loss below 0.2: %t\n",
		len(s.Study.Trials), best.Point[1], best.Point[2], best.Values[0] < 0.2)
	// Output: trials: 60, layers: 2, optimizer: adam, loss below 0.2: true
}

func ExampleSession_Report() {
	space, err := suggest.NewSpace([]suggest.ParameterSpec{suggest.Float("lr", 1e-5, 1e-1, suggest.Log)})
	if err != nil {
		fmt.Println(err)
		return
	}
	random, _ := algorithm.Get("random")
	search, err := random.New(space, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	threshold, _ := stop.Get("threshold")
	rule, err := threshold.New(nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	s := suggest.Session{
		Algorithm: search, Stopper: rule,
		Study: suggest.Study{Space: space, Objectives: []suggest.Objective{{Name: "loss"}}},
	}
	asked, err := s.Ask(context.Background(), 1)
	if err != nil {
		fmt.Println(err)
		return
	}
	for step, loss := range []float64{0.9, 0.7, math.NaN(), 0.5} {
		stop, why, err := s.Report(asked[0].Number, suggest.Sample{Step: int64(step), Value: loss})
		if err != nil {
			fmt.Println(err)
			return
		}
		if stop {
			fmt.Println("stopped:", why)
			err = s.Tell(suggest.Result{Number: asked[0].Number, State: suggest.Pruned})
			fmt.Println(s.Study.Trials[0].State, err)
			return
		}
	}
	// Output:
	// stopped: its value at step 2 is not a finite number
	// pruned <nil>
}
