package parse_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/vernier-ml/vernier/collector/parse"
)

func TestWandbBounds(t *testing.T) {
	for name, record := range map[string][]byte{
		"a history of 9 MiB":          logged(1, 1, "pad", `"`+strings.Repeat("x", 9<<20)+`"`, "loss", "1"),
		"64 MiB of some other record": wandbRecord(1, 8, make([]byte, 64<<20)),
	} {
		log := newWandbLog()
		log.record(record)
		log.record(logged(2, 2, "loss", "2"))
		w := wandbReader(t, "loss")
		got, _ := readWandb(t, w, log.b, 0, false)
		if diff := cmp.Diff([]string{"loss=2 at 2"}, got.Points); diff != "" || len(got.Errors) != 1 || !strings.Contains(got.Errors[0], "more than 8388608 bytes") {
			t.Errorf("%s (-want +got)\n%s\nerrors %q", name, diff, got.Errors)
		}
		parse.CheckHeld(t, w)
	}
}

// A record of far too many values costs itself alone.
func TestWandbBoundsTheValuesOfARecord(t *testing.T) {
	many := func(n int) []byte {
		pairs := make([]string, 0, 2*n)
		for range n {
			pairs = append(pairs, "loss", "1")
		}
		return logged(1, 1, pairs...)
	}
	log := newWandbLog()
	log.record(logged(1, 0, "loss", "7"))
	log.record(many(1<<16 + 1))
	log.record(many(1 << 16))
	log.record(logged(1, 2, "loss", "8"))
	w := wandbReader(t, "loss")
	got, end := readWandb(t, w, log.b, 0, true)
	if n := len(got.Points); n != 1<<16+2 || got.Points[0] != "loss=7 at 0" || got.Points[n-1] != "loss=8 at 2" || int(end) != len(log.b) {
		t.Errorf("%d points up to byte %d of %d", n, end, len(log.b))
	}
	if len(got.Errors) != 1 || !strings.Contains(got.Errors[0], "more than 65536 values") {
		t.Errorf("errors %q", got.Errors)
	}
	parse.CheckHeld(t, w)
}

// A reader of all metrics takes names that a metric may have.
func TestWandbPassesOverEndlessNames(t *testing.T) {
	long := strings.Repeat("n", 1024)
	log := newWandbLog()
	log.record(logged(1, 0, long, "1", long+"n", "2", "loss", "3"))
	w := parse.NewAnyWandb()
	got, _ := readWandb(t, w, log.b, 0, true)
	if diff := cmp.Diff([]string{long + "=1 at 0", "loss=3 at 0"}, got.Points); diff != "" || len(got.Errors) > 0 {
		t.Errorf("errors %q, points (-want +got)\n%s", got.Errors, diff)
	}
	parse.CheckHeld(t, w)
}
