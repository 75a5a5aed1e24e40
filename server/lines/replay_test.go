package lines_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/vernier-ml/vernier/server/lines"
	"github.com/vernier-ml/vernier/suggest/algorithm"
)

const steppedSpace = `{"parameters":[
	{"name":"lr","type":"double","min":0.001,"max":1,"step":0.001},
	{"name":"layers","type":"int","min":1,"max":5},
	{"name":"batch","type":"discrete","list":[16,32,64]},
	{"name":"model","type":"categorical","list":["svm","mlp"]},
	{"name":"C","type":"double","min":0,"max":1,"step":0.1,"when":{"parameter":"model","in":["svm"]}}],
	"constraints":["lr * layers <= 4"],"budget":30,"parallel":3}`

// client plays a program that keeps each trial as it was answered, so that it
// can tell its history to another process.
type client struct {
	t       testing.TB
	session *lines.Session
	trials  []map[string]json.RawMessage
	running []int
}

func (c *client) send(request any) map[string]json.RawMessage {
	c.t.Helper()
	line, err := json.Marshal(request)
	if err != nil {
		c.t.Fatal(err)
	}
	var got map[string]json.RawMessage
	if err := json.Unmarshal(c.session.Answer(c.t.Context(), line), &got); err != nil {
		c.t.Fatal(err)
	}
	if got["error"] != nil {
		c.t.Fatalf("%s: %s", line, got["error"])
	}
	return got
}

// ask starts n trials.
func (c *client) ask(n int) {
	c.t.Helper()
	var made []map[string]json.RawMessage
	if err := json.Unmarshal(c.send(map[string]int{"ask": n})["trials"], &made); err != nil {
		c.t.Fatal(err)
	}
	for _, t := range made {
		t["state"] = json.RawMessage(`"pending"`)
		c.running = append(c.running, len(c.trials))
		c.trials = append(c.trials, t)
	}
}

// finish ends the trial that began first: each fifth one fails.
func (c *client) finish() {
	c.t.Helper()
	if len(c.running) == 0 {
		return
	}
	trial := c.trials[c.running[0]]
	c.running = c.running[1:]
	trial["state"] = json.RawMessage(`"failed"`)
	if number := string(trial["number"]); !strings.HasSuffix(number, "3") {
		trial["state"] = json.RawMessage(`"succeeded"`)
		trial["values"] = fmt.Appendf(nil, "[%v]", math.Mod(float64(len(trial["params"]))*1.7+float64(len(c.trials)), 5))
	}
	c.send(map[string]any{"tell": []any{map[string]any{"number": trial["number"], "state": trial["state"], "values": trial["values"]}}})
}

// TestARestartedProcessGoesOnEqually plays a study with each algorithm. Before
// each question a second process is told the history as the first one answered
// it, in another order, and must give the same answer.
func TestARestartedProcessGoesOnEqually(t *testing.T) {
	for _, r := range algorithm.All() {
		t.Run(r.Name, func(t *testing.T) {
			fresh := func() *lines.Session {
				st := study(t, steppedSpace)
				return lines.New(lines.Config{Study: st, Algorithm: build(t, r.Name, st.Space)})
			}
			first := &client{t: t, session: fresh()}
			for turn := range 12 {
				second := &client{t: t, session: fresh()}
				history := append([]map[string]json.RawMessage{}, first.trials...)
				slices.Reverse(history)
				second.send(map[string]any{"tell": history})
				before := len(first.trials)
				first.ask(1 + turn%2)
				second.ask(1 + turn%2)
				if diff := cmp.Diff(first.trials[before:], second.trials); diff != "" {
					t.Fatalf("after %d trials (-first +second):\n%s", before, diff)
				}
				first.finish()
			}
			if len(first.trials) < 12 {
				t.Errorf("only %d trials", len(first.trials))
			}
		})
	}
}

// TestAReplayIsIdentical gives the lines of a whole study to a second session.
func TestAReplayIsIdentical(t *testing.T) {
	var requests []string
	for i := range 10 {
		requests = append(requests,
			`{"ask":2}`,
			fmt.Sprintf(`{"report":{"number":%d,"step":1,"value":%d}}`, 2*i, i),
			fmt.Sprintf(`{"tell":[{"number":%d,"state":"succeeded","values":[%d.5]},{"number":%d,"state":"pruned"}]}`, 2*i, i*7%5, 2*i+1),
			`{"tell":[{"number":1000,"state":"failed"}]}`,
			"nonsense",
		)
	}
	for _, r := range algorithm.All() {
		t.Run(r.Name, func(t *testing.T) {
			var got [2][]string
			for i := range got {
				st := study(t, steppedSpace)
				got[i] = converse(t, lines.New(lines.Config{Study: st, Algorithm: build(t, r.Name, st.Space)}), requests...)
			}
			if diff := cmp.Diff(got[0], got[1]); diff != "" {
				t.Errorf("(-first +second):\n%s", diff)
			}
			if len(got[0]) != len(requests) {
				t.Errorf("%d answers to %d requests", len(got[0]), len(requests))
			}
		})
	}
}

// TestMemoryIsLinear holds that a trial costs as much memory in a study of
// 20,000 as in one of 2,000.
func TestMemoryIsLinear(t *testing.T) {
	perTrial := func(n int) float64 {
		st := study(t, mixedSpace)
		s := lines.New(lines.Config{Study: st, Algorithm: build(t, "random", st.Space)})
		before := heap()
		for from := 0; from < n; from += 100 {
			s.Answer(t.Context(), []byte(`{"ask":100}`))
			var tell bytes.Buffer
			for number := from; number < from+100; number++ {
				fmt.Fprintf(&tell, `,{"number":%d,"state":"succeeded","value":1,"curve":[[1,2],[2,1]]}`, number)
			}
			if got := string(s.Answer(t.Context(), []byte(`{"tell":[`+tell.String()[1:]+`]}`))); got != `{"ok":true}` {
				t.Fatal(got)
			}
		}
		used := heap() - before
		if got := string(s.Answer(t.Context(), []byte(`{"ask":1}`))); !strings.Contains(got, fmt.Sprintf(`"number":%d,`, n)) {
			t.Fatal(got)
		}
		return float64(used) / float64(n)
	}
	few, many := perTrial(2000), perTrial(20_000)
	t.Logf("%.0f and %.0f bytes a trial", few, many)
	if many > 2*few || many > 4000 {
		t.Errorf("a trial takes %.0f bytes in a study of 2,000 and %.0f in one of 20,000", few, many)
	}
}

// heap is how many bytes are in use.
func heap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// FuzzSession holds that any bytes get one answer a line, each of them JSON,
// and the same answers in a second session.
func FuzzSession(f *testing.F) {
	f.Add([]byte("{\"ask\":3}\n{\"tell\":[{\"number\":0,\"state\":\"succeeded\",\"values\":[NaN]}]}\n{\"report\":{\"number\":1,\"step\":3,\"value\":0.4}}\n{\"ask\":1,\"id\":\"a\"}"))
	f.Add([]byte("{\"tell\":[{\"number\":9,\"params\":{\"lr\":0.002,\"layers\":2,\"batch\":32,\"model\":\"svm\",\"C\":0.3},\"state\":\"pruned\",\"curve\":[[1,null]],\"meta\":{\"a\":\"b\"},\"constraints\":[-Infinity]}]}\n{\"ask\":2}"))
	f.Add([]byte("{\"ask\":1e1,\"id\":-Infinity}\n\n[]\r\n{\"ask\":\"\\ud800\xff\"}\n{\"tell\":{\"value\":null,\"number\":0,\"state\":\"killed\",\"resource\":1}}\n\x00"))
	f.Fuzz(func(t *testing.T, in []byte) {
		want := bytes.Count(in, []byte("\n"))
		if len(in) > 0 && in[len(in)-1] != '\n' {
			want++
		}
		var answers [2]bytes.Buffer
		for i := range answers {
			st := study(t, steppedSpace)
			s := lines.New(lines.Config{Study: st, Algorithm: build(t, "random", st.Space), Stopper: atStep(3)})
			if err := s.Serve(t.Context(), bytes.NewReader(in), &answers[i]); err != nil {
				t.Fatal(err)
			}
		}
		if !bytes.Equal(answers[0].Bytes(), answers[1].Bytes()) {
			t.Fatal("two sessions differ")
		}
		got := 0
		for line := range bytes.Lines(answers[0].Bytes()) {
			if got++; !json.Valid(line) {
				t.Fatalf("no JSON: %s", line)
			}
		}
		if got != want {
			t.Fatalf("%d answers to %d lines", got, want)
		}
	})
}

// FuzzReadStudy holds that a space file never makes the reader panic, and that
// what it accepts can be searched.
func FuzzReadStudy(f *testing.F) {
	f.Add([]byte(mixedSpace))
	f.Add([]byte(steppedSpace))
	f.Add([]byte(twoSpace))
	f.Add([]byte(`{"parameters":[{"name":"x","type":"double","min":-1e308,"max":0.5}],"constraints":["x < 0","l<3"],"initial":[{"x":-1}],"warm":[{"params":{"x":1},"state":"failed"}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		st, err := lines.ReadStudy(bytes.NewReader(data))
		if err != nil {
			return
		}
		s := lines.New(lines.Config{Study: st, Algorithm: build(t, "random", st.Space)})
		if got := s.Answer(t.Context(), []byte(`{"ask":2}`)); !json.Valid(got) || bytes.Contains(got, []byte("mistake in vernier")) {
			t.Fatalf("got %s", got)
		}
	})
}

// BenchmarkRound is what the protocol costs: one trial asked for and told, by a
// proposer that does nothing.
func BenchmarkRound(b *testing.B) {
	st := study(b, mixedSpace)
	p := point(b, st.Space, "lr", "0.0123456789", "layers", "3", "batch", "8", "model", "svm", "C", "0.3")
	s := lines.New(lines.Config{Study: st, Algorithm: constant{p}})
	b.ReportAllocs()
	for i := range b.N {
		s.Answer(b.Context(), []byte(`{"ask":1}`))
		if got := s.Answer(b.Context(), fmt.Appendf(nil, `{"tell":[{"number":%d,"state":"succeeded","values":[0.3]}]}`, i)); len(got) != 11 {
			b.Fatalf("%s", got)
		}
	}
}
