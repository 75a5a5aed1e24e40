package parse

import (
	"strings"
	"testing"
)

// What is found stands right after its name, which is a word of its own.
func FuzzItems(f *testing.F) {
	for _, s := range []string{"loss: 0.5", "step 3 loss 0.5 'val/loss': '0.25',", `{"loss": np.float64(1e-3)}`, "a b: 97.5%", "x loss: 1\tloss 0.5 (1)", "\x1b[1mloss\x1b[0m: 1"} {
		f.Add(s)
	}
	names := []string{"loss", "val/loss", "a b", "loss: 1 loss"}
	items := NewTextItems(names)
	f.Fuzz(func(t *testing.T, line string) {
		items.Reset()
		samples := checkedParse(t, items, line)
		checkSamples(t, line, samples)
		if strings.Contains(line, "\x1b") {
			return
		}
		for _, s := range samples {
			after, ok := strings.CutPrefix(line[s.Seq:], s.Metric)
			before := line[:s.Seq]
			if !ok && len(samples) == 1 || ok && after == "" || before != "" && isWord(before[len(before)-1]) {
				t.Fatalf("%q: %s at %d, which is no name of its own", line, s.Metric, s.Seq)
			}
		}
	})
}
