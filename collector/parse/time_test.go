package parse

import (
	"fmt"
	"math/big"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"
	"time"
)

// strictRFC3339 is the form of a time; the standard library takes others too,
// such as hours of one digit.
var strictRFC3339 = regexp.MustCompile(`^\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d([.,]\d+)?(Z|[+-]([01]\d|2[0-3]):[0-5]\d)$`)

// slowTime is what scanRFC3339 must agree with.
func slowTime(text string) (time.Time, bool) {
	if !strictRFC3339.MatchString(text) {
		return time.Time{}, false
	}
	if len(text) > 10 && text[10] == ' ' {
		text = text[:10] + "T" + text[11:]
	}
	var at time.Time
	if at.UnmarshalText([]byte(text)) != nil {
		return time.Time{}, false
	}
	return at, true
}

// checkTime holds that what is a time is read as that time. The standard library
// also takes some forms that are not quite RFC 3339.
func checkTime(t *testing.T, text string) {
	t.Helper()
	want, wantOK := slowTime(text)
	if at, ok := scanRFC3339(text); wantOK && (!ok || !at.Equal(want)) {
		t.Fatalf("%q is %v (%v), want %v", text, at, ok, want)
	}
}

func TestScanRFC3339AgreesWithTheStandardLibrary(t *testing.T) {
	for _, text := range []string{
		"", "2026-03-04T05:06:07Z", "0000-01-01T00:00:00Z", "9999-12-31T23:59:59.999999999-23:59", "1600-02-29T00:00:00Z",
		"1900-02-29T00:00:00Z", "2000-02-29T23:59:59.5+00:30", "2023-02-29T00:00:00Z", "2026-04-31T00:00:00Z", "2026-03-04T05:06:60Z",
		"2026-03-04T24:00:00Z", "2026-03-04T05:06:07.Z", "2026-03-04T05:06:07,5Z", "2026-03-04t05:06:07z", "2026-03-04T05:06:07+24:00",
		"2026-03-04T05:06:07+0100", "2026-03-04T05:06:07", "2026-03-04 05:06:07.25+01:00", "20a6-03-04T05:06:07Z", "2026-03-04T05:06:07Zx",
	} {
		checkTime(t, text)
	}
	random := rand.New(rand.NewPCG(5, 6))
	for range 200000 {
		at := time.Unix(random.Int64N(253402300800+62135596800)-62135596800, random.Int64N(1e9)).In(time.FixedZone("", 60*(random.IntN(2*1439)-1439)))
		if at.Year() < 0 || at.Year() > 9999 {
			continue
		}
		text := []byte(at.Format(time.RFC3339Nano))
		checkTime(t, string(text))
		text[random.IntN(len(text))] = "0123456789-+:.TZ "[random.IntN(17)]
		checkTime(t, string(text))
	}
}

// slowEpoch is what since1970 must agree with, by exact arithmetic.
func slowEpoch(text string) (time.Time, bool) {
	r, ok := new(big.Rat).SetString(text)
	if !ok || strings.ContainsAny(text, "/_xXpPbBoO") {
		return time.Time{}, false
	}
	nanos := new(big.Rat).Abs(r)
	scale := int64(1)
	for _, limit := range []string{"1e11", "1e14", "1e17", "1e19"} {
		bound, _ := new(big.Rat).SetString(limit)
		if nanos.Cmp(bound) < 0 {
			break
		}
		scale *= 1000
	}
	if scale > 1e9 {
		return time.Time{}, false
	}
	nanos.Mul(nanos, big.NewRat(1e9/scale, 1))
	whole := new(big.Int).Quo(nanos.Num(), nanos.Denom())
	if r.Sign() < 0 {
		whole.Neg(whole)
	}
	second, nano := new(big.Int).QuoRem(whole, big.NewInt(1e9), new(big.Int))
	return time.Unix(second.Int64(), nano.Int64()), true
}

func TestSince1970IsExact(t *testing.T) {
	random := rand.New(rand.NewPCG(7, 8))
	for range 100000 {
		whole := random.Uint64N(1 << (1 + random.IntN(63)))
		text := fmt.Sprintf("%d", whole)
		switch random.IntN(4) {
		case 0:
			text += fmt.Sprintf(".%0*d", 1+random.IntN(12), random.IntN(1000))
		case 2:
			text = fmt.Sprintf("-0.00%d", whole)
		}
		want, wantOK := slowEpoch(text)
		if at, ok := since1970(text); ok != wantOK || ok && !at.Equal(want) {
			t.Fatalf("%s is %v (%v), want %v (%v)", text, at, ok, want, wantOK)
		}
	}
}

func FuzzTime(f *testing.F) {
	for _, s := range []string{"2026-03-04T05:06:07.123456789Z", "2026-03-04 05:06:07+01:00", "1772600767.123456789", "1.772600767123e12", "-0.5"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		checkTime(t, text)
		at, ok := since1970(text)
		want, wantOK := slowEpoch(text)
		if ok && !strings.ContainsAny(text, "eE") && (!wantOK || !at.Equal(want)) {
			t.Fatalf("%q is %v, want %v (%v)", text, at, want, wantOK)
		}
		leadingTime([]byte(text))
	})
}
