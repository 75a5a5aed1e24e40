package main

import (
	"bufio"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"

	"github.com/vernier-ml/vernier/bench/suggest/play"
	"github.com/vernier-ml/vernier/bench/suggest/problem"
	"github.com/vernier-ml/vernier/suggest"
)

func oracleCommand(ctx context.Context, args []string) error {
	if err := parse(flag.NewFlagSet("oracle", flag.ContinueOnError), args); err != nil {
		return err
	}
	return oracle(ctx, os.Stdin, os.Stdout)
}

// question is a line of the oracle's input: {"eval":{...}}.
type question struct {
	Eval *struct {
		Problem string         `json:"problem"`
		Params  map[string]any `json:"params"`
		// Number of the trial and Seed of the game choose the noise.
		Number int    `json:"number"`
		Seed   uint64 `json:"seed"`
	} `json:"eval"`
	// Space asks for the space file of a problem.
	Space string `json:"space"`
}

// reply is the answer. Value is the first of Values, for those who want but one.
type reply struct {
	Value *float64 `json:"value,omitempty"`
	problem.Outcome
	Space *play.WireSpace `json:"space,omitempty"`
	Error string          `json:"error,omitempty"`
}

// oracle answers questions until its input ends. A bad question gets an error
// for an answer and ends nothing.
func oracle(ctx context.Context, in io.Reader, out io.Writer) error {
	known := map[string]*problem.Problem{}
	spaces := map[string]suggest.Space{}
	for _, p := range problem.All() {
		if p.Truth != nil {
			known[p.Name], spaces[p.Name] = p, p.Space()
		}
	}
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, 1<<22)
	answers := json.NewEncoder(out)
	for lines.Scan() && ctx.Err() == nil {
		r, err := answer(ctx, known, spaces, lines.Bytes())
		if err != nil {
			r = reply{Error: err.Error()}
		}
		if err := answers.Encode(r); err != nil {
			return err
		}
	}
	return lines.Err()
}

func answer(ctx context.Context, known map[string]*problem.Problem, spaces map[string]suggest.Space, line []byte) (reply, error) {
	var q question
	if err := json.Unmarshal(line, &q); err != nil {
		return reply{}, err
	}
	name := q.Space
	if q.Eval != nil {
		name = q.Eval.Problem
	}
	p, ok := known[name]
	if !ok {
		return reply{}, fmt.Errorf("there is no problem %q; the command list shows what there is", name)
	}
	if q.Eval == nil {
		s := play.NewWireSpace(play.Game{Space: spaces[name], Parameters: p.Parameters, Objectives: p.Objectives(), Constraints: p.Constraints()})
		return reply{Space: &s}, nil
	}
	point, err := play.ParseParams(spaces[name], q.Eval.Params)
	if err != nil {
		return reply{}, err
	}
	o, err := play.Evaluator(p, q.Eval.Seed)(ctx, q.Eval.Number, point)
	if err != nil {
		return reply{}, err
	}
	r := reply{Outcome: o}
	if len(o.Values) > 0 {
		r.Value = &o.Values[0]
	}
	return r, nil
}
