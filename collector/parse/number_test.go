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
	v := scanDecimal([]byte(text))
	if v.n != len(text) {
		t.Fatalf("%d bytes of %q are a number", v.n, text)
	}
	want, err := strconv.ParseFloat(text, 64)
	if err != nil && !math.IsInf(want, 0) {
		t.Fatal(err)
	}
	if v.value != want && !(math.IsNaN(v.value) && math.IsNaN(want)) || math.Signbit(v.value) != math.Signbit(want) {
		t.Fatalf("%s is %v, want %v", text, v.value, want)
	}
	if shortest := strconv.FormatFloat(want, 'g', -1, 64); v.short && shortest != text {
		t.Fatalf("%s is said to be the shortest form, which is %s", text, shortest)
	}
}

func TestNumbersAgreeWithStrconv(t *testing.T) {
	random := rand.New(rand.NewPCG(21, 22))
	short := 0
	for range 300000 {
		v := math.Ldexp(random.Float64()-0.5, random.IntN(80)-60)
		text := strconv.FormatFloat(v, 'f', -1, 64) // as short as can be
		checkNumber(t, text)
		if len(text) < 20 && scanDecimal([]byte(text)).short {
			short++
		}
		checkNumber(t, strconv.FormatFloat(v, 'f', random.IntN(20), 64))
		checkNumber(t, strconv.FormatFloat(v, 'e', random.IntN(20)-1, 64))
		m := random.Uint64() >> random.IntN(64)
		digits := strconv.FormatUint(m, 10)
		checkNumber(t, digits)
		point := random.IntN(len(digits) + 1)
		if point < len(digits) {
			checkNumber(t, digits[:point]+"."+digits[point:])
			checkNumber(t, "0."+digits)
		}
		// Half way between two numbers, and just beside.
		half := strconv.FormatUint(m>>11<<11|1<<10, 10)
		checkNumber(t, half)
		checkNumber(t, half+".0")
		checkNumber(t, half+"."+strings.Repeat("0", random.IntN(25))+"1")
	}
	if short < 50000 {
		t.Errorf("only %d of 300000 shortest forms are known to be", short)
	}
	for _, text := range []string{"0", "-0", "0.0", "00", "1", "9007199254740993", "9007199254740992", "4503599627370497", "18446744073709551615", "9999999999999999999",
		"0.1", "0.3", "1e22", "1e23", "5e-324", "1.7976931348623157e308", "1e999", "-1e-999", ".5", "+7", "nan", "-inf", "INFINITY", "123456.7", "1234567.5", "0.0001", "0.00012", "0.00001"} {
		checkNumber(t, text)
	}
}

func FuzzNumber(f *testing.F) {
	for _, s := range []string{"0.6931471805599453", "-12345678901234567.89", "1e-05", "1,234.5", "97.5%", "9007199254740993"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if v := scanDecimal([]byte(text)); v.n > 0 {
			checkNumber(t, text[:v.n])
		}
		if v, ok := wholeNumber([]byte(text)); ok {
			bare := strings.ReplaceAll(strings.TrimSuffix(text, "%"), ",", "")
			want, err := strconv.ParseFloat(bare, 64)
			if err != nil && !math.IsInf(want, 0) || v.value != want && !math.IsNaN(want) || v.n != len(text) {
				t.Fatalf("%q is %v, want %v", text, v.value, want)
			}
		}
	})
}
