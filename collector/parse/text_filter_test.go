package parse

import (
	"math/rand/v2"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// katib is the default filter of Katib.
var katib = regexp.MustCompile(`([\w|-]+)\s*=\s*([+-]?\d*(\.\d+)?([Ee][+-]?\d+)?)`)

// On lines without the differences that the documentation names, the scanner
// finds what Katib's filter finds.
func TestTextAgreesWithKatibsFilter(t *testing.T) {
	p := newText(t, []string{"loss", "acc", "a|b", "top-1"}, nil)
	pieces := []string{"loss", "acc", "a|b", "top-1", "val_", "=", " = ", "=\t", "0.5", "-1", "3e-4", ".25", "12", "+7.5E2", " ", "; ", "→", "x", "(", "9"}
	random := rand.New(rand.NewPCG(1, 2))
	for range 20000 {
		var b strings.Builder
		for range 1 + random.IntN(12) {
			b.WriteString(pieces[random.IntN(len(pieces))])
		}
		line := b.String()
		var want []got
		for _, m := range katib.FindAllStringSubmatchIndex(line, -1) {
			name, value := line[m[2]:m[3]], line[m[4]:m[5]]
			v, err := strconv.ParseFloat(value, 64)
			known := name == "loss" || name == "acc" || name == "a|b" || name == "top-1"
			// "1e5loss=2": the filter lets a name begin where a value ended.
			if begin := m[2]; !known || err != nil || begin > 0 && isName(line[begin-1]) {
				continue
			}
			want = append(want, got{name, v, textOf([]byte(value), v), m[2]})
		}
		samples, err := p.Parse(nil, []byte(line))
		if err != nil {
			continue // "0.5.25", of which the filter reads 0.5
		}
		if diff := cmp.Diff(want, brief(samples)); diff != "" {
			t.Fatalf("%q: error %v, samples (-filter +scanner):\n%s", line, err, diff)
		}
	}
}

// With a filter, what is found is what the expression alone finds.
func FuzzFilter(f *testing.F) {
	for _, s := range []string{"loss: 0.5", "val/loss = 97.5% loss:1,234", "loss=x loss=y"} {
		f.Add(s)
	}
	filters := []string{`([\w/]+)\s*[:=]\s*(\S*)`, `(loss)=(.)`}
	user := newText(f, []string{"loss", "val/loss"}, filters)
	f.Fuzz(func(t *testing.T, line string) {
		samples := checkedParse(t, user, line)
		checkSamples(t, line, samples)
		if strings.Contains(line, "\x1b") {
			return
		}
		found := map[string]bool{}
		for _, filter := range filters {
			for _, m := range regexp.MustCompile(filter).FindAllStringSubmatch(line, -1) {
				if value := strings.TrimSpace(m[2]); (m[1] == "loss" || m[1] == "val/loss") && value != "" {
					s := wholeSample("", []byte(value))
					found[m[1]+s.Text+strconv.FormatFloat(s.Value, 'g', -1, 64)] = true
				}
			}
		}
		for _, s := range samples {
			key := s.Metric + s.Text + strconv.FormatFloat(s.Value, 'g', -1, 64)
			if !found[key] {
				t.Fatalf("%q: %s is not what the filters find: %v", line, key, found)
			}
		}
		if len(found) > 0 && len(samples) == 0 {
			t.Fatalf("%q: nothing is found, the filters find %v", line, found)
		}
	})
}
