package play

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/vernier-ml/vernier/bench/suggest/problem"
	"github.com/vernier-ml/vernier/suggest"
)

// TestMain lets the test binary play a peer: how it behaves is in FAKE_PEER.
func TestMain(m *testing.M) {
	if how := os.Getenv("FAKE_PEER"); how != "" {
		fakePeer(how)
		return
	}
	os.Exit(m.Run())
}

// fakePeer walks along the first parameter and learns nothing.
func fakePeer(how string) {
	out := json.NewEncoder(os.Stdout)
	in := bufio.NewScanner(os.Stdin)
	in.Buffer(nil, 1<<20)
	number := 0
	for in.Scan() {
		var r struct {
			Open *opening `json:"open"`
			Ask  int      `json:"ask"`
			lesson
		}
		if err := json.Unmarshal(in.Bytes(), &r); err != nil {
			panic(err)
		}
		switch {
		case r.Task != nil && r.Steps > 0 && r.Params["c"] == 1e3: // it diverges after two steps
			_ = out.Encode(map[string]any{"failed": true, "curve": []any{3, 2, nil}[:min(r.Steps, 3)]})
		case r.Task != nil && r.Steps > 0:
			curve := []any{3, 2, 1}[:min(r.Steps, 3)]
			_ = out.Encode(map[string]any{"values": curve[len(curve)-1:], "curve": curve})
		case r.Task != nil && r.Params["c"] == 1e3: // the slope breaks at its end
			_ = out.Encode(map[string]any{"failed": true})
		case r.Task != nil:
			_ = out.Encode(map[string]any{"values": []any{r.Params["c"]}})
		case r.Open != nil:
			number = 0
			_ = out.Encode(map[string]any{"ok": true})
		case how == "dies" && number > 2:
			fmt.Fprintln(os.Stderr, "out of luck")
			os.Exit(3)
		case how == "hangs" && number > 2:
			for in.Scan() {
			}
		case how == "errs" && number > 2:
			_ = out.Encode(map[string]any{"error": "ValueError: no idea"})
		case r.Ask > 0:
			var trials []map[string]any
			for range r.Ask {
				x := float64(number % 10)
				if how == "strays" && number > 2 {
					x = 99
				}
				trials = append(trials, map[string]any{"number": number, "params": map[string]any{"x00": x, "x01": 2.5}})
				number++
			}
			_ = out.Encode(map[string]any{"trials": trials, "cpu": 0.25, "wall": 0.5})
		default:
			_ = out.Encode(map[string]any{"ok": true, "cpu": 0.125, "wall": 0.25})
		}
	}
}

func fake(how string) *Process {
	return &Process{Command: []string{os.Args[0]}, Env: []string{"FAKE_PEER=" + how}, Algorithm: "fake"}
}

func branin(t *testing.T) *problem.Problem {
	t.Helper()
	found, err := problem.Find([]string{"s1"}, []string{"branin-2"})
	if err != nil {
		t.Fatal(err)
	}
	return found[0]
}

func regime(t *testing.T, name string) Regime {
	t.Helper()
	i := slices.IndexFunc(Regimes(), func(r Regime) bool { return r.Name == name })
	if i < 0 {
		t.Fatalf("no regime %s", name)
	}
	return Regimes()[i]
}

func newRun(t *testing.T, regimeName string, budget int) Run {
	p := branin(t)
	return Run{Problem: p, Regime: regime(t, regimeName), Seed: 3, Budget: budget, Evaluate: Evaluator(p, 3)}
}

func TestPeersPlayManyGamesInOneProcess(t *testing.T) {
	p := fake("plays")
	defer func() { _ = p.Close() }()
	for _, name := range []string{Sequential, BatchOf8, Async32} {
		played, err := Play(t.Context(), p, newRun(t, name, 20))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if len(played.Spent) != 20 {
			t.Errorf("%s: %d suggestions have a cost, want 20", name, len(played.Spent))
		}
		// Of x = 0 to 9 with y = 2.5, nine is the best.
		if got := played.Path.After(20) - 0.39788735772973816; got < 0 || got > 2 {
			t.Errorf("%s: the best is %v above the optimum", name, got)
		}
	}
	played, err := Play(t.Context(), p, newRun(t, Sequential, 3))
	if err != nil {
		t.Fatal(err)
	}
	// The first suggestion costs what asking costs, the next ones what telling
	// the result before costs too.
	if played.Spent[0].CPU != 250*time.Millisecond || played.Spent[1].CPU != 375*time.Millisecond {
		t.Errorf("the costs are %v", played.Spent)
	}
}

func TestPeersThatBreakAreSaidSo(t *testing.T) {
	for how, want := range map[string]string{
		"dies":   "out of luck",
		"errs":   "ValueError: no idea",
		"strays": "not in the space",
		"hangs":  "deadline",
	} {
		t.Run(how, func(t *testing.T) {
			p := fake(how)
			defer func() { _ = p.Close() }()
			ctx, cancel := context.WithCancelCause(t.Context())
			defer cancel(nil)
			run := newRun(t, Sequential, 20)
			evaluate := run.Evaluate
			run.Evaluate = func(c context.Context, number int, point suggest.Point) (problem.Outcome, error) {
				if how == "hangs" && number == 2 { // the peer answers until it is told of this one
					cancel(errors.New("past the deadline"))
				}
				return evaluate(c, number, point)
			}
			played, err := Play(ctx, p, run)
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("the error is %v, want %q", err, want)
			}
			if len(played.Path) == 0 {
				t.Error("what was played before is lost")
			}
		})
	}
}
