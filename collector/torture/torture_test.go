package torture

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/vernier-ml/vernier/collector"
	"github.com/vernier-ml/vernier/collector/store"
)

// stored is the number of points in the store.
func (s *scene) stored() (n int) {
	points, err := store.Open(s.t.Context(), s.storeURL())
	if err != nil {
		return 0 // the service has not made it, or is being killed in it
	}
	observed, err := collector.Reduce(s.t.Context(), points, trial.UID, collector.Ask{Metric: "loss"})
	if err == nil {
		n = observed[0].Points
	}
	if err := points.Close(); err != nil {
		s.t.Errorf("close the store: %v", err)
	}
	return n
}

// targets are the sources, each made for a kind of writer.
var targets = []struct {
	name string
	make func(s *scene, writer string) target
}{
	{"stdout", func(s *scene, writer string) target {
		p := &printed{s: s}
		if writer == "copy and truncate" {
			p.limit = 64 << 10 // old output is thrown away all the time
		}
		return p
	}},
	{"file", func(s *scene, writer string) target {
		return &logFile{dir: s.dir, trunc: writer == "copy and truncate"}
	}},
	{"events", func(s *scene, writer string) target {
		return &events{dir: filepath.Join(s.dir, "events"), erase: writer == "rewrite"}
	}},
}

// killsOfEach is how often each victim dies for each writer and source.
func killsOfEach(t *testing.T) int {
	text := os.Getenv("TORTURE_KILLS")
	if text == "" {
		return 2
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		t.Fatalf("TORTURE_KILLS=%q is no positive number", text)
	}
	return n
}

func seed(t *testing.T) uint64 {
	text := os.Getenv("TORTURE_SEED")
	if text == "" {
		return uint64(time.Now().UnixNano())
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// killsOfScene bounds the kills of each victim in one scene, so that the data
// stays small.
const killsOfScene = 10

func TestWriters(t *testing.T) {
	kills, from := killsOfEach(t), seed(t)
	t.Logf("%d kills of each victim for each writer and source; TORTURE_SEED=%d", kills, from)
	for i, kind := range targets {
		for j, way := range writers {
			t.Run(kind.name+"/"+strings.ReplaceAll(way.name, " ", "-"), func(t *testing.T) {
				t.Parallel()
				random := rand.New(rand.NewPCG(from, uint64(i*len(writers)+j)))
				var sum [victims]int
				points, scenes := 0, 0
				for left := kills; left > 0; left -= killsOfScene {
					n := min(left, killsOfScene)
					s := newScene(t, random, [victims]int{n, n, n})
					points += s.play(way.round, way.name, kind.make(s, way.name))
					scenes++
					for v := range s.kills {
						sum[v] += s.kills[v]
					}
					if t.Failed() {
						return
					}
				}
				t.Logf("%d scenes, %d points; killed: collector %d, service %d, store %d", scenes, points,
					sum[killCollector], sum[killService], sum[killStore])
			})
		}
	}
}

// play lets one writer write until enough was killed, and returns the number of
// points.
func (s *scene) play(round func(*writer), name string, to target) int {
	s.t.Helper()
	w := &writer{s: s, to: to, random: rand.New(rand.NewPCG(s.random.Uint64(), 1))}
	s.begin(to.args()...)
	w.check(to.open())
	for end := time.Now().Add(patience); !s.done(); {
		round(w)
		if time.Now().After(end) {
			s.stop()
			s.t.Fatalf("not enough was killed in %v: %v left", patience, s.quota)
		}
	}
	want := w.next
	if name == "no end" {
		b, whole := to.cut(w.record())
		w.write(b)
		if whole {
			want++
		}
	}
	if err := to.close(); err != nil {
		s.t.Errorf("the program: %v", err)
	}
	s.end()
	if err := s.verify(want); err != nil {
		s.t.Errorf("%v\nthe sidecars said:\n%s", err, tail(s.said.String()))
	}
	return want
}

// verify checks that the store has the values 0 to n-1, once each.
func (s *scene) verify(n int) (err error) {
	points, err := store.Open(s.t.Context(), s.storeURL())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, points.Close()) }()
	series, err := collector.ReadSeries(s.t.Context(), points, trial.UID)
	if err != nil {
		return err
	}
	seen := map[int64]int{}
	var wrong []collector.Point
	for _, one := range series {
		for _, p := range one.Points {
			seen[p.Step]++
			if p.Metric != "loss" || p.Value != float64(p.Step)+.5 || p.Step < 0 || p.Step >= int64(n) || seen[p.Step] > 1 {
				wrong = append(wrong, p)
			}
		}
	}
	var lost []int
	for i := range n {
		if seen[int64(i)] == 0 {
			lost = append(lost, i)
		}
	}
	if len(wrong)+len(lost) > 0 {
		return fmt.Errorf("of %d points %d are lost (%v) and %d are torn or doubled (%+v)", n,
			len(lost), lost[:min(len(lost), 10)], len(wrong), wrong[:min(len(wrong), 3)])
	}
	return nil
}
