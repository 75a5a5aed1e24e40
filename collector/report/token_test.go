package report

import (
	"bytes"
	"errors"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/vernier-ml/vernier/collector"
)

var (
	keyA = bytes.Repeat([]byte("a"), MinKeySize)
	keyB = bytes.Repeat([]byte("b"), MinKeySize)
	now  = time.Date(2026, 5, 6, 7, 8, 9, 0, time.UTC)
	some = Claims{Trial: collector.TrialID{Namespace: "ns", Name: "random-0001", Experiment: "random", UID: "uid-1"}, Expires: now.Add(time.Hour)}
)

func sign(t testing.TB, key []byte, c Claims) string {
	t.Helper()
	token, err := Sign(key, c)
	if err != nil {
		t.Fatal(err)
	}
	return token
}

func TestAVerifiedTokenSaysWhatWasSigned(t *testing.T) {
	token := sign(t, keyA, some)
	for name, keys := range map[string][][]byte{"the only key": {keyA}, "the older key": {keyB, keyA}} {
		got, err := Verify(keys, token, now)
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if d := cmp.Diff(some, got); d != "" {
			t.Errorf("%s (-want +got):\n%s", name, d)
		}
	}
	if url.QueryEscape(token) != token {
		t.Errorf("%s needs quoting", token)
	}
}

// A manager that was replaced meets the tokens of trials that still run.
func TestATokenOfAnOlderReleaseNamesNoExperiment(t *testing.T) {
	body := tokenVersion + "." + tokenEncoding.EncodeToString([]byte(`{"ns":"ns","n":"random-0001","u":"uid-1","e":`+
		strconv.FormatInt(some.Expires.Unix(), 10)+`}`))
	got, err := Verify([][]byte{keyA}, body+"."+tokenEncoding.EncodeToString(mac(keyA, body)), now)
	if err != nil {
		t.Fatal(err)
	}
	want := some
	want.Trial.Experiment = ""
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("claims (-want +got):\n%s", d)
	}
}

func TestTokensAreRefused(t *testing.T) {
	good := sign(t, keyA, some)
	other := sign(t, keyA, Claims{Trial: collector.TrialID{UID: "uid-2"}, Expires: some.Expires})
	parts, others := strings.Split(good, "."), strings.Split(other, ".")
	tests := map[string]struct {
		keys  [][]byte
		token string
		now   time.Time
		want  error
	}{
		"empty":                          {[][]byte{keyA}, "", now, ErrTokenMalformed},
		"no dots":                        {[][]byte{keyA}, "token", now, ErrTokenMalformed},
		"another version":                {[][]byte{keyA}, "v0" + good[2:], now, ErrTokenMalformed},
		"signature not base64":           {[][]byte{keyA}, good + "!", now, ErrTokenMalformed},
		"another key":                    {[][]byte{keyB}, good, now, ErrTokenForged},
		"no keys":                        {nil, good, now, ErrTokenForged},
		"a key that is too short":        {[][]byte{keyA[:8]}, good, now, ErrTokenForged},
		"no signature":                   {[][]byte{keyA}, parts[0] + "." + parts[1] + ".", now, ErrTokenForged},
		"the body of another trial":      {[][]byte{keyA}, "v1." + others[1] + "." + parts[2], now, ErrTokenForged},
		"half a signature":               {[][]byte{keyA}, good[:len(good)-23], now, ErrTokenForged},
		"expired":                        {[][]byte{keyA}, good, some.Expires, ErrTokenExpired},
		"an old key that was taken away": {[][]byte{keyB}, good, now, ErrTokenForged},
	}
	for name, tc := range tests {
		if _, err := Verify(tc.keys, tc.token, tc.now); !errors.Is(err, tc.want) {
			t.Errorf("%s: %v, want %v", name, err, tc.want)
		}
	}
	if _, err := Verify([][]byte{keyA}, good, some.Expires.Add(-time.Second)); err != nil {
		t.Errorf("a second before it expires: %v", err)
	}
}

// Whatever one byte is changed to, the token is refused.
func TestEveryByteOfATokenCounts(t *testing.T) {
	good := sign(t, keyA, some)
	for i := range good {
		for _, c := range []byte("A_z.0-=\x00") {
			if good[i] == c {
				continue
			}
			forged := good[:i] + string(c) + good[i+1:]
			if _, err := Verify([][]byte{keyA}, forged, now); err == nil {
				t.Errorf("byte %d changed from %q to %q is accepted", i, good[i], c)
			}
		}
	}
}

func TestSignRefuses(t *testing.T) {
	if _, err := Sign(keyA[:31], some); err == nil {
		t.Error("a short key is accepted")
	}
	if _, err := Sign(keyA, Claims{Expires: now}); err == nil {
		t.Error("a trial without UID is accepted")
	}
}

func FuzzVerify(f *testing.F) {
	f.Add(sign(f, keyA, some))
	f.Add("v1.e30.")
	f.Fuzz(func(t *testing.T, token string) {
		c, err := Verify([][]byte{keyA}, token, now)
		if err == nil && token != sign(t, keyA, c) {
			t.Errorf("%q is accepted for %+v but was not signed for it", token, c)
		}
	})
}
