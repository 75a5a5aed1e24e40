package parse

import (
	"math"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
)

// checkNumber compares a scanned number with strconv.
func checkNumber(t *testing.T, text string) {
	t.Helper()
	v, n := scanNumber([]byte(text))
	if n != len(text) {
		t.Fatalf("%d bytes of %q are a number", n, text)
	}
	want, err := strconv.ParseFloat(text, 64)
	if err != nil && !math.IsInf(want, 0) {
		t.Fatal(err)
	}
	if v != want && !(math.IsNaN(v) && math.IsNaN(want)) || math.Signbit(v) != math.Signbit(want) {
		t.Fatalf("%s is %v, want %v", text, v, want)
	}
}

func TestNumbersAgreeWithStrconv(t *testing.T) {
	for _, text := range []string{"0", "-0", "0.0", "00", "1", "9007199254740993", "9007199254740992", "4503599627370497", "18446744073709551615", "9999999999999999999",
		"0.1", "0.3", "1e22", "1e23", "5e-324", "1.7976931348623157e308", "1e999", "-1e-999", ".5", "+7", "nan", "-inf", "INFINITY", "123456.7", "1234567.5", "0.0001", "0.00012", "0.00001"} {
		checkNumber(t, text)
	}
}

func FuzzNumber(f *testing.F) {
	for _, s := range []string{"0.6931471805599453", "-12345678901234567.89", "1e-05", "1,234.5", "97.5%", "21.", "9007199254740993"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if _, n := scanNumber([]byte(text)); n > 0 && !strings.HasSuffix(strings.ToLower(text[:n]), "nan") { // strconv knows no NaN with a sign
			checkNumber(t, text[:n])
		}
		if v, ok := wholeNumber([]byte(text)); ok {
			bare := strings.ReplaceAll(strings.TrimSuffix(strings.TrimSuffix(text, "%"), "."), ",", "")
			want, err := strconv.ParseFloat(bare, 64)
			if err != nil && !math.IsInf(want, 0) || v != want && !math.IsNaN(want) {
				t.Fatalf("%q is %v, want %v", text, v, want)
			}
		}
	})
}

// What counts as the shortest form at a glance is it.
func TestAPlainNumberIsTheShortestForm(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	plains := 0
	for range 200_000 {
		text := strconv.FormatFloat(random.NormFloat64()*math.Pow(10, float64(random.IntN(16)-6)), "fg"[random.IntN(2)], random.IntN(18)-1, 64)
		text = []string{"", "+", "0", "-0"}[random.IntN(4)*random.IntN(2)] + text + []string{"", "0", ".0"}[random.IntN(3)*random.IntN(2)]
		v, err := strconv.ParseFloat(text, 64)
		if err != nil || !plain([]byte(text), v) {
			continue
		}
		plains++
		if want := strconv.FormatFloat(v, 'g', -1, 64); text != want {
			t.Fatalf("%s is not the shortest form of %s", text, want)
		}
	}
	if plains < 10_000 {
		t.Errorf("only %d numbers were plain", plains)
	}
}
