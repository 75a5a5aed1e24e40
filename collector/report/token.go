package report

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/vernier-ml/vernier/collector"
)

// MinKeySize is the smallest signing key that is accepted, in bytes.
const MinKeySize = 32

// Why a token is refused; Verify wraps one of these.
var (
	ErrTokenMalformed = errors.New("the token is malformed")
	ErrTokenForged    = errors.New("the token was not signed with any of the keys")
	ErrTokenExpired   = errors.New("the token has expired")
)

// Claims is what a token grants: reporting for one trial until a time.
type Claims struct {
	Trial collector.TrialID
	// Expires is kept to the second.
	Expires time.Time
}

// The token is "v1." + base64url(JSON of wireClaims) + "." + base64url(HMAC-SHA256
// of all before the last dot). The version is signed too.
const tokenVersion = "v1"

type wireClaims struct {
	Namespace string `json:"ns"`
	Name      string `json:"n"`
	UID       string `json:"u"`
	// Experiment came later; tokens without it stay good.
	Experiment string `json:"x,omitempty"`
	Expires    int64  `json:"e"`
}

var tokenEncoding = base64.RawURLEncoding.Strict()

// Sign makes the token of a trial. It consists of characters that need no
// quoting in URLs, headers or shells.
func Sign(key []byte, c Claims) (string, error) {
	if len(key) < MinKeySize {
		return "", fmt.Errorf("sign a report token: the key has %d bytes, at least %d are needed", len(key), MinKeySize)
	}
	if c.Trial.UID == "" {
		return "", fmt.Errorf("sign a report token: trial %s/%s has no UID", c.Trial.Namespace, c.Trial.Name)
	}
	body, err := json.Marshal(wireClaims{c.Trial.Namespace, c.Trial.Name, c.Trial.UID, c.Trial.Experiment, c.Expires.Unix()})
	if err != nil {
		return "", fmt.Errorf("sign a report token: %w", err)
	}
	signed := tokenVersion + "." + tokenEncoding.EncodeToString(body)
	return signed + "." + tokenEncoding.EncodeToString(mac(key, signed)), nil
}

// Verify returns what a token grants. keys are tried in order, so that a new
// key can be put first while tokens of the old one are still about.
func Verify(keys [][]byte, token string, now time.Time) (Claims, error) {
	end := strings.LastIndexByte(token, '.')
	if end < 0 {
		return Claims{}, fmt.Errorf("%w: it has no signature", ErrTokenMalformed)
	}
	signed := token[:end]
	version, body, _ := strings.Cut(signed, ".")
	if version != tokenVersion {
		return Claims{}, fmt.Errorf("%w: version %.8q is not known", ErrTokenMalformed, version)
	}
	signature, err := tokenEncoding.DecodeString(token[end+1:])
	if err != nil {
		return Claims{}, fmt.Errorf("%w: the signature is not base64url", ErrTokenMalformed)
	}
	// Nothing of the body is read before the signature is known to be ours.
	if !slices.ContainsFunc(keys, func(key []byte) bool { return len(key) >= MinKeySize && hmac.Equal(mac(key, signed), signature) }) {
		return Claims{}, ErrTokenForged
	}
	raw, err := tokenEncoding.DecodeString(body)
	if err != nil {
		return Claims{}, fmt.Errorf("%w: the body is not base64url", ErrTokenMalformed)
	}
	var w wireClaims
	if err := json.Unmarshal(raw, &w); err != nil || w.UID == "" {
		return Claims{}, fmt.Errorf("%w: the body names no trial", ErrTokenMalformed)
	}
	c := Claims{
		Trial:   collector.TrialID{Namespace: w.Namespace, Name: w.Name, Experiment: w.Experiment, UID: w.UID},
		Expires: time.Unix(w.Expires, 0).UTC(),
	}
	if !now.Before(c.Expires) {
		return Claims{}, fmt.Errorf("%w: at %s", ErrTokenExpired, c.Expires.Format(time.RFC3339))
	}
	return c, nil
}

func mac(key []byte, signed string) []byte {
	h := hmac.New(sha256.New, key)
	h.Write([]byte(signed))
	return h.Sum(nil)
}
