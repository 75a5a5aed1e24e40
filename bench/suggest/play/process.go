package play

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"time"

	"github.com/vernier-ml/vernier/suggest"
)

// Process opens games in another program, which speaks the protocol of wire.go
// on its standard input and output. The program starts with the first game and
// serves the later ones too.
type Process struct {
	// Command and its arguments.
	Command []string
	// Env is added to the environment.
	Env []string
	// Algorithm to ask for when a game is opened.
	Algorithm string

	cmd    *exec.Cmd
	in     io.WriteCloser
	out    *bufio.Reader
	stderr tail
}

// Open implements Opener.
func (p *Process) Open(ctx context.Context, g Game) (Player, error) {
	if p.cmd == nil {
		if err := p.start(); err != nil {
			return nil, err
		}
	}
	_, err := p.call(ctx, request{Open: &opening{
		Algorithm: p.Algorithm, Seed: g.Seed, Parallel: g.Parallel, Steps: g.Steps, Space: NewWireSpace(g),
	}})
	if err != nil {
		return nil, err
	}
	return &remote{process: p, game: g}, nil
}

func (p *Process) start() error {
	cmd := exec.Command(p.Command[0], p.Command[1:]...)
	cmd.Env = append(os.Environ(), p.Env...)
	p.stderr = tail{}
	cmd.Stderr = &p.stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start %s: %w", p.Command[0], err)
	}
	p.cmd, p.in, p.out = cmd, in, bufio.NewReaderSize(out, 1<<20)
	return nil
}

// call sends a request and reads its answer. When ctx ends first, the program is
// killed: it cannot be interrupted otherwise.
func (p *Process) call(ctx context.Context, r any) (answer, error) {
	line, err := json.Marshal(r)
	if err != nil {
		return answer{}, err
	}
	program := p.cmd.Process
	stop := context.AfterFunc(ctx, func() { _ = program.Kill() })
	defer stop()
	var text []byte
	if _, err = p.in.Write(append(line, '\n')); err == nil {
		text, err = p.out.ReadBytes('\n')
	}
	if err != nil {
		_ = p.Close()
		if cause := context.Cause(ctx); cause != nil {
			return answer{}, fmt.Errorf("%s: %w", p.Algorithm, cause)
		}
		return answer{}, fmt.Errorf("%s ended: %w: %s", p.Algorithm, err, p.stderr.String())
	}
	var a answer
	if err := json.Unmarshal(text, &a); err != nil {
		return answer{}, fmt.Errorf("%s answered %.200q: %w", p.Algorithm, text, err)
	}
	if a.Error != "" {
		return answer{}, fmt.Errorf("%s: %s", p.Algorithm, a.Error)
	}
	return a, nil
}

// Close implements Opener.
func (p *Process) Close() error {
	if p.cmd == nil {
		return nil
	}
	_ = p.in.Close()
	program := p.cmd.Process
	late := time.AfterFunc(5*time.Second, func() { _ = program.Kill() })
	_, _ = io.Copy(io.Discard, p.out)
	err := p.cmd.Wait()
	late.Stop()
	p.cmd = nil
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return nil // how it ended is of no interest once its games are over
	}
	return err
}

// remote is a game in the process.
type remote struct {
	Meter
	process *Process
	game    Game
}

// Ask implements Player.
func (p *remote) Ask(ctx context.Context, n int) ([]Candidate, error) {
	a, err := p.process.call(ctx, request{Ask: n})
	if err != nil {
		return nil, err
	}
	if a.Exhausted && len(a.Trials) == 0 {
		return nil, suggest.ErrExhausted
	}
	p.add(a)
	var out []Candidate
	for _, t := range a.Trials {
		point, err := ParseParams(p.game.Space, t.Params)
		if err != nil {
			return nil, fmt.Errorf("%s, trial %d: %w", p.process.Algorithm, t.Number, err)
		}
		out = append(out, Candidate{Number: t.Number, Point: point, Resource: t.Resource})
	}
	p.Share(len(out))
	return out, nil
}

func (p *remote) add(a answer) {
	p.Add(Cost{CPU: time.Duration(a.CPU * float64(time.Second)), Wall: time.Duration(a.Wall * float64(time.Second))})
}

// Tell implements Player.
func (p *remote) Tell(ctx context.Context, results []Result) error {
	var list []wireResult
	for _, r := range results {
		w := wireResult{Number: r.Number, State: r.State.String(), Constraints: r.Constraints}
		for _, v := range r.Values {
			if math.IsNaN(v) || math.IsInf(v, 0) { // JSON has no such numbers
				w.State, w.Values = suggest.Failed.String(), nil
				break
			}
			w.Values = append(w.Values, v)
		}
		list = append(list, w)
	}
	a, err := p.process.call(ctx, request{Tell: list})
	p.add(a)
	return err
}

// Load implements Loader.
func (p *remote) Load(ctx context.Context, points []suggest.Point, values []float64) error {
	list := make([]wirePast, len(points))
	for i := range points {
		list[i] = wirePast{Params: WireParams(p.game.Space, points[i]), Value: values[i]}
	}
	_, err := p.process.call(ctx, request{Load: list})
	return err
}

// Report implements Player.
func (p *remote) Report(ctx context.Context, number int, s suggest.Sample) (bool, error) {
	if math.IsNaN(s.Value) || math.IsInf(s.Value, 0) {
		return true, nil // all players see a diverged training end
	}
	a, err := p.process.call(ctx, request{Report: &wireReport{Number: number, Step: s.Step, Value: s.Value}})
	p.add(a)
	return a.Stop, err
}

// Close implements Player.
func (p *remote) Close() error { return nil }

// tail keeps the end of what a program complains about.
type tail struct{ buf bytes.Buffer }

// Write implements io.Writer.
func (t *tail) Write(b []byte) (int, error) {
	if t.buf.Len() > 1<<16 {
		t.buf.Next(t.buf.Len() - 1<<12)
	}
	return t.buf.Write(b)
}

// String is its last line, where Python says what went wrong.
func (t *tail) String() string {
	b := bytes.TrimSpace(t.buf.Bytes())
	return string(b[bytes.LastIndexByte(b, '\n')+1:])
}
