package parse

import (
	"math"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// The grammar in pieces, for slowText.
var (
	slowNumber  = regexp.MustCompile(`^[+-]?(\d+(\.\d+)?([Ee][+-]?\d+)?|\.\d+([Ee][+-]?\d+)?|\d+\.[Ee][+-]?\d+)`)
	slowWord    = regexp.MustCompile(`^([+-]?(?i:infinity|nan|inf))(\W|$)`)
	slowDotted  = regexp.MustCompile(`^[+-]?\d*\.\d+\.\d`)
	slowHex     = regexp.MustCompile(`^[+-]?\d*0[xX]\w`)
	slowPlain   = regexp.MustCompile(`^[+-]?\d+[,_]\d`)
	slowJoined  = regexp.MustCompile(`^[+-]?\d+([.,_]\d+)+([Ee][+-]?\d+)?`)
	slowPoints  = regexp.MustCompile(`^[+-]?[1-9]\d{0,2}(\.\d{3})+,\d+([^.\d]|$)`)
	slowGrouped = regexp.MustCompile(`^[+-]?[1-9]\d{0,2}((,\d{3}){2,}(\.\d+)?|,\d{3}\.\d+|(_\d{3})+(\.\d+)?)([Ee][+-]?\d+)?$`)
	slowName    = regexp.MustCompile(`([\w|/\pL\pM\p{Nd}-]|(^|[^\pL\w])[\pL_][\pL\w]*[.:@#])$`)
)

// slowText finds what the default grammar must find, in a line without escape
// sequences.
func slowText(line string, names ...string) (found []got) {
	for eq := range len(line) {
		if line[eq] != '=' {
			continue
		}
		before := strings.TrimRight(line[:eq], " \t\n\f\r")
		name := ""
		for _, n := range names {
			if rest, ok := strings.CutSuffix(before, n); ok && len(n) > len(name) && !slowName.MatchString(rest) {
				name = n
			}
		}
		after := strings.TrimLeft(line[eq+1:], " \t\n\f\r")
		value := slowNumber.FindString(after)
		if m := slowWord.FindStringSubmatch(after); m != nil {
			value = m[1]
		}
		if slowHex.MatchString(after) {
			value = ""
		}
		if whole := slowJoined.FindString(after); whole != "" && (slowDotted.MatchString(after) || slowPlain.MatchString(after) || slowPoints.MatchString(after)) {
			if value = ""; slowGrouped.MatchString(whole) {
				value = whole
			}
		}
		if name == "" || value == "" {
			continue
		}
		v, err := strconv.ParseFloat(strings.NewReplacer(",", "", "_", "").Replace(value), 64)
		if err != nil && !math.IsInf(v, 0) { // a NaN with a sign
			v = math.NaN()
		}
		found = append(found, got{name, v, textOf([]byte(value), v), len(before) - len(name)})
	}
	return found
}

func checkText(t *testing.T, p *Text, line string) {
	t.Helper()
	p.Reset()
	samples := checkedParse(t, p, line)
	checkSamples(t, line, samples)
	if strings.Contains(line, "\x1b") {
		return
	}
	if diff := cmp.Diff(slowText(line, "loss", "val/loss", "a b"), brief(samples), cmpopts.EquateNaNs()); diff != "" {
		t.Fatalf("%q: samples (-slow +fast):\n%s", line, diff)
	}
}

func TestTextAgreesWithItsGrammar(t *testing.T) {
	p := newText(t, []string{"loss", "val/loss", "a b"}, nil)
	pieces := []string{"loss", "loss", "val/", "a b", "=", "=", " = ", "0.5", "12", ",", ",345", ".25", "e-3", "nan", "-inf", "+", "-", " ", "\r", "x", "é", "|", "%"}
	randomLines(30000, pieces, func(line string) { checkText(t, p, line) })
}

func FuzzText(f *testing.F) {
	for _, s := range []string{"loss=0.5", "step=3 loss=1,234.5 val/loss = -inf", "2026-03-04T05:06:07Z loss=1e-3", `{"step": 3} loss=nan`, "\x1b[1mloss\x1b[0m=1"} {
		f.Add(s)
	}
	def := newText(f, []string{"loss", "val/loss", "a b"}, nil)
	f.Fuzz(func(t *testing.T, line string) { checkText(t, def, line) })
}
