package parse

import (
	"bytes"
	"fmt"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"slices"
	"strings"
	"testing"
	"unsafe"

	"github.com/google/go-cmp/cmp"

	"github.com/vernier-ml/vernier/collector"
)

// What one call may allocate: so many times the input, since a value of a few
// bytes becomes a sample and slices grow by copies, and a piece beside.
const (
	allocFactor = 160
	allocPiece  = 1 << 20
)

// CheckMemory fails when f, which reads n bytes, allocates more than a parser
// may. It costs little: large pieces are counted at once, small ones when a thread
// asks for more room.
func CheckMemory(t testing.TB, n int, f func()) {
	t.Helper()
	// The runtime counts small objects late. This counts those of before, which
	// would be counted during the call.
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	before := stats.TotalAlloc
	sample := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
	f()
	metrics.Read(sample)
	if used, most := sample[0].Value.Uint64()-before, uint64(allocPiece+allocFactor*n); used > most && !raced() {
		t.Fatalf("%d bytes were allocated to read %d; at most %d may be", used, n, most)
	}
}

// raced says that the race detector is on. Then a sync.Pool, as regexp has them, throws
// away a part of what it gets, so that memory is allocated again and again.
func raced() bool {
	info, _ := debug.ReadBuildInfo()
	return slices.Contains(info.Settings, debug.BuildSetting{Key: "-race", Value: "true"})
}

// CheckHeld fails when a parser keeps more from one call to the next than it may,
// whatever it has read. Sizes are in bytes.
func CheckHeld(t testing.TB, parser any) {
	t.Helper()
	var held, most int
	switch p := parser.(type) {
	case *Text, *Logfmt, *JSON: // which keep no more than their names
	case *CSV:
		name := int(unsafe.Sizeof(""))
		held = 3*name/2*cap(p.cells) + name*cap(p.columns)
		most = 4 * name * maxCells // append makes room for up to twice as many
	case *Wandb:
		held = cap(p.block) + cap(p.record)
		most = 2 * wandbBlock
	case *Events:
		held, most = cap(p.window.buf), eventWindow
	default:
		t.Fatalf("nothing is known of a %T", parser)
	}
	if held > most {
		t.Fatalf("a %T holds %d bytes; at most %d may be held", parser, held, most)
	}
}

// checkedParse reads a line, whose errors do not matter, in little memory.
func checkedParse(t testing.TB, p Line, line string) (samples []collector.Point) {
	t.Helper()
	CheckMemory(t, len(line), func() { samples, _ = p.Parse(nil, []byte(line)) })
	CheckHeld(t, p)
	return samples
}

// members returns an object of n members.
func members(n int, member func(i int) string) string {
	var b strings.Builder
	for i := range n {
		b.WriteString(member(i))
		b.WriteByte(',')
	}
	return "{" + strings.TrimSuffix(b.String(), ",") + "}"
}

// Lines that ask for as much memory as they can get none beyond the limits.
func TestHostileLinesTakeLittleMemory(t *testing.T) {
	const long = 1 << 20 // the longest line that is read from a file
	text := func(t *testing.T) Line { return newText(t, []string{"loss"}, nil) }
	object := func(t *testing.T) Line { return newJSON(t, "loss", "a") }
	any := func(*testing.T) Line { return NewAnyJSON() }
	table := func(t *testing.T) Line { return newCSV(t, "loss") }
	pairs := func(t *testing.T) Line { return newLogfmt(t, "loss", "a") }
	tests := map[string]struct {
		parser func(*testing.T) Line
		line   string
		count  int // of samples; -1: any
	}{
		"text of nothing but values":              {text, strings.Repeat("loss=1 ", long/7), long / 7},
		"text of nothing but escapes":             {text, strings.Repeat("\x1b[m", long/3) + "loss=1", 1},
		"text of escapes that end nowhere":        {text, strings.Repeat("\x1b]", long/2) + "loss=1", -1},
		"text of escapes between letters":         {text, strings.Repeat("\x1b1", long/2) + " loss=1", 1},
		"an object with one key, many times":      {object, members(long/9, func(int) string { return `"loss":1` }), 1},
		"an object with two keys, many times":     {object, members(long/9, func(i int) string { return []string{`"loss":1`, `"a":2`}[i%2] }), 2},
		"an object of empty keys":                 {object, members(long/5, func(int) string { return `"":1` }), 0},
		"a key of a MiB":                          {object, `{"` + strings.Repeat("k", long) + `":{"a":1}}`, 0},
		"a long key above many short ones":        {any, `{"` + strings.Repeat("k", long/2) + `":` + members(long/16, func(i int) string { return `"` + fmt.Sprint(i) + `":1` }) + "}", 0},
		"a key above many short ones":             {any, `{"` + strings.Repeat("k", 1000) + `":` + members(long/9, func(i int) string { return `"` + fmt.Sprint(i%1e5) + `":1` }) + "}", 0},
		"more names than are remembered":          {any, members(long/16, func(i int) string { return `"` + fmt.Sprint("name", i) + `":1` }), long / 16},
		"names of more bytes than remembered":     {any, members(1000, func(i int) string { return `"` + strings.Repeat("k", 1500) + fmt.Sprint(i) + `":1` }), 1000},
		"a header of nothing but commas":          {table, strings.Repeat(",", long), 0},
		"pairs of one key":                        {pairs, strings.Repeat("loss=1 ", long/7), 1},
		"pairs of one key with a text of its own": {pairs, strings.Repeat("loss=x ", long/7), 1},
		"an empty line":                           {text, "", 0},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			p := tc.parser(t)
			samples := checkedParse(t, p, tc.line)
			if tc.count >= 0 && len(samples) != tc.count {
				t.Errorf("%d samples, want %d", len(samples), tc.count)
			}
			checkSamples(t, tc.line, samples)
			if room := cap(samples); room > 16+2*len(samples) {
				t.Errorf("there is room for %d samples, there are %d", room, len(samples))
			}
		})
	}
}

// Beyond the most columns a table is read as if it had no more.
func TestCSVReadsAsManyColumnsAsItMay(t *testing.T) {
	c := newCSV(t, "loss", "late")
	wide := strings.Repeat("x,", maxCells-1)
	got := readTable(t, c, wide+"loss,late\n"+strings.Repeat(",", maxCells-1)+"1,2\n"+strings.Repeat(",", maxCells-1)+"3")
	want := []string{"0:0 loss=1"}
	if diff := cmp.Diff(want, got[:1]); diff != "" || len(c.Columns()) != maxCells {
		t.Errorf("%d columns, samples (-want +got):\n%s", len(c.Columns()), diff)
	}
	CheckHeld(t, c)
}

// An event of nothing but empty summaries, larger than the window.
func TestALargeEventOfManySummariesTakesLittleMemory(t *testing.T) {
	data := slices.Concat(submessage(5, simple("t", 1)), bytes.Repeat(submessage(5), 4<<20), submessage(5, simple("t", 2)))
	file := bytes.NewReader(framed(data))
	e, w := NewEvents(), NewWanted([]string{"t"}, nil)
	var got []float64
	CheckMemory(t, len(data), func() {
		if _, err := e.Read(file, 0, w, func(s Scalar) bool { got = append(got, s.Value); return true }); err != nil {
			t.Error(err)
		}
	})
	if diff := cmp.Diff([]float64{1, 2}, got); diff != "" {
		t.Errorf("values (-want +got):\n%s", diff)
	}
}
