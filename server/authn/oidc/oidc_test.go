package oidc

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"errors"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/vernier-ml/vernier/server/authn"
	"github.com/vernier-ml/vernier/server/authn/oidc/oidctest"
)

var noon = time.Date(2030, 1, 2, 12, 0, 0, 0, time.UTC)

// knows is our side of it, at noon.
func knows(t *testing.T, p *oidctest.Provider, change ...func(*Config)) *Provider {
	t.Helper()
	roots := x509.NewCertPool()
	roots.AddCert(p.Certificate())
	c := Config{IssuerURL: p.URL, ClientID: oidctest.ClientID, GroupsClaim: "groups", GroupsPrefix: "corp:", UsernameClaim: "email", Roots: roots, Now: func() time.Time { return noon }}
	for _, f := range change {
		f(&c)
	}
	o, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	return o
}

func bearer(token string) *http.Request {
	return &http.Request{Header: http.Header{"Authorization": {"Bearer " + token}}}
}

func TestTokensOfAProvider(t *testing.T) {
	p := oidctest.New(t, func() time.Time { return noon })
	other, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	claims := p.Claims
	public := x509.MarshalPKCS1PublicKey(&p.Key.PublicKey)
	for name, c := range map[string]struct {
		token   string
		config  func(*Config)
		user    string
		groups  []string
		refused string
		unknown bool
	}{
		"a good one":               {token: p.Sign(claims(nil)), user: "ann@example.com", groups: []string{"corp:ml", "corp:system:masters"}},
		"by its subject":           {token: p.Sign(claims(nil)), config: func(c *Config) { c.UsernameClaim = "" }, user: p.URL + "#u1", groups: []string{"corp:ml", "corp:system:masters"}},
		"without a prefix":         {token: p.Sign(claims(nil)), config: func(c *Config) { c.UsernameClaim, c.UsernamePrefix, c.GroupsPrefix = "sub", "-", "" }, user: "u1", groups: []string{"ml"}},
		"one group":                {token: p.Sign(claims(map[string]any{"groups": "ml"})), user: "ann@example.com", groups: []string{"corp:ml"}},
		"a claim that is required": {token: p.Sign(claims(map[string]any{"hd": "example.com"})), config: func(c *Config) { c.RequiredClaims = map[string]string{"hd": "example.com"}; c.GroupsClaim = "" }, user: "ann@example.com"},
		"without it":               {token: p.Sign(claims(nil)), config: func(c *Config) { c.RequiredClaims = map[string]string{"hd": "example.com"} }, refused: "claim hd"},
		"expired":                  {token: p.Sign(claims(map[string]any{"exp": noon.Add(-time.Second).Unix()})), refused: "has expired at 2030-01-02T11:59:59Z"},
		"without an end":           {token: p.Sign(claims(map[string]any{"exp": 0})), refused: "has expired"},
		"not good yet":             {token: p.Sign(claims(map[string]any{"nbf": noon.Add(time.Hour).Unix()})), refused: "nbf"},
		"for another program":      {token: p.Sign(claims(map[string]any{"aud": "shop"})), refused: "audience"},
		"of another issuer":        {token: p.Sign(claims(map[string]any{"iss": "https://evil.example"})), unknown: true},
		"signed by another":        {token: oidctest.Signed("RS256", claims(nil), oidctest.RSA(other)), refused: "not valid"},
		"not signed":               {token: oidctest.Signed("none", claims(nil), func([]byte) []byte { return nil }), refused: "not valid"},
		"signed by the public key": {token: oidctest.Signed("HS256", claims(nil), func(b []byte) []byte { h := hmac.New(sha256.New, public); h.Write(b); return h.Sum(nil) }), refused: "not valid"},
		"an email of another user": {token: p.Sign(claims(map[string]any{"email_verified": false})), refused: "not verified"},
		"an email said to be true": {token: p.Sign(claims(map[string]any{"email_verified": "true"})), refused: "not verified"},
		"without an email":         {token: p.Sign(claims(map[string]any{"email": ""})), refused: "no claim email"},
		"a user of Kubernetes":     {token: p.Sign(claims(map[string]any{"email": "system:admin"})), refused: "no name of a user"},
		"one behind a space":       {token: p.Sign(claims(map[string]any{"email": " system:admin"})), refused: "no name of a user"},
		"groups behind spaces":     {token: p.Sign(claims(map[string]any{"groups": []string{" system:masters", "ml", "ml "}})), config: func(c *Config) { c.GroupsPrefix = "" }, user: "ann@example.com", groups: []string{"ml"}},
		"groups that are none":     {token: p.Sign(claims(map[string]any{"groups": []any{1}})), refused: "no list of texts"},
		"no JWT":                   {token: "0123", unknown: true},
		"none":                     {unknown: true},
	} {
		t.Run(name, func(t *testing.T) {
			if c.config == nil {
				c.config = func(*Config) {}
			}
			o := knows(t, p, c.config)
			for range 2 { // the second answer is remembered
				got, ok, err := o.Authenticate(t.Context(), bearer(c.token))
				switch {
				case c.refused != "":
					if !errors.Is(err, authn.ErrRefused) || !strings.Contains(err.Error(), c.refused) || ok {
						t.Errorf("%t, %v, want %s", ok, err, c.refused)
					}
				case c.unknown:
					if ok || err != nil {
						t.Errorf("%t, %v, want that it is not known", ok, err)
					}
				default:
					if diff := cmp.Diff(append(c.groups, "system:authenticated"), got.Groups); diff != "" || err != nil || !ok || got.Username != c.user {
						t.Errorf("%q, %v (-want +got):\n%s", got.Username, err, diff)
					}
				}
			}
		})
	}
}

// A token is good until it expires, however it is remembered.
func TestARememberedTokenExpires(t *testing.T) {
	p, now := oidctest.New(t, func() time.Time { return noon }), noon
	o := knows(t, p, func(c *Config) { c.Now = func() time.Time { return now } })
	token := bearer(p.Sign(p.Claims(map[string]any{"exp": noon.Add(30 * time.Second).Unix()})))
	if _, ok, err := o.Authenticate(t.Context(), token); !ok {
		t.Fatal(err)
	}
	now = noon.Add(31 * time.Second)
	if _, ok, err := o.Authenticate(t.Context(), token); ok || !errors.Is(err, authn.ErrRefused) {
		t.Errorf("%t, %v", ok, err)
	}
}

// While a provider is away its users are told to try again, not refused.
func TestAProviderThatIsAway(t *testing.T) {
	p, now := oidctest.New(t, func() time.Time { return noon }), noon
	p.Away.Store(true)
	o := knows(t, p, func(c *Config) { c.Now = func() time.Time { return now } })
	token := bearer(p.Sign(p.Claims(nil)))
	if _, ok, err := o.Authenticate(t.Context(), token); ok || err == nil || errors.Is(err, authn.ErrRefused) {
		t.Fatalf("%t, %v", ok, err)
	}
	p.Away.Store(false)
	if _, ok, _ := o.Authenticate(t.Context(), token); ok {
		t.Error("it is asked for each call")
	}
	now = now.Add(unknownFor)
	if _, ok, err := o.Authenticate(t.Context(), token); !ok {
		t.Error(err)
	}
	now = now.Add(discoverEvery)
	p.Away.Store(true)
	if _, ok, err := o.Authenticate(t.Context(), bearer(p.Sign(p.Claims(map[string]any{"exp": now.Add(time.Hour).Unix()})))); !ok {
		t.Errorf("what is known of it is forgotten: %v", err)
	}
}

// A provider that hangs is asked by one call at a time, which others share while their
// own callers are there, and what is known of it goes on being used.
func TestAProviderThatHangs(t *testing.T) {
	p := oidctest.New(t, func() time.Time { return noon })
	var clock, calls atomic.Int64
	var hangs atomic.Bool
	asked, release := make(chan struct{}, 100), make(chan struct{})
	defer close(release)
	answers := p.Config.Handler
	p.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if hangs.Load() && strings.HasPrefix(r.URL.Path, "/.well-known/") {
			calls.Add(1)
			asked <- struct{}{}
			<-release
			clock.Add(int64(timeout))
			http.Error(w, "too late", http.StatusGatewayTimeout)
			return
		}
		answers.ServeHTTP(w, r)
	})
	o := knows(t, p, func(c *Config) { c.Now = func() time.Time { return noon.Add(time.Duration(clock.Load())) } })
	token := bearer(p.Sign(p.Claims(map[string]any{"exp": noon.Add(24 * time.Hour).Unix()})))

	hangs.Store(true)
	ctx, leave := context.WithCancel(t.Context())
	ends := make(chan error, 20)
	go func() {
		_, _, err := o.Authenticate(ctx, token)
		ends <- err
	}()
	<-asked
	leave()
	if err := <-ends; !errors.Is(err, context.Canceled) || errors.Is(err, authn.ErrRefused) {
		t.Fatalf("a caller that has left: %v", err)
	}
	for range cap(ends) {
		go func() {
			_, _, err := o.Authenticate(t.Context(), token)
			ends <- err
		}()
	}
	release <- struct{}{}
	for range cap(ends) {
		if err := <-ends; err == nil || errors.Is(err, authn.ErrRefused) {
			t.Error(err)
		}
	}
	if n := calls.Load(); n != 1 {
		t.Fatalf("%d calls", n)
	}

	hangs.Store(false)
	clock.Add(int64(unknownFor))
	if _, ok, err := o.Authenticate(t.Context(), token); !ok {
		t.Fatal(err)
	}
	hangs.Store(true)
	clock.Add(int64(discoverEvery))
	if _, ok, err := o.Authenticate(t.Context(), token); !ok { // it has not answered yet
		t.Error(err)
	}
	<-asked
	release <- struct{}{}
}

func TestGuessesCostNoCallOfTheProviderEach(t *testing.T) {
	p := oidctest.New(t, func() time.Time { return noon })
	o := knows(t, p)
	forged := bearer(p.Sign(p.Claims(nil)) + "x")
	for range 50 {
		_, _, _ = o.Authenticate(t.Context(), forged)
	}
	if n := p.Asked.Load(); n > 1 {
		t.Errorf("its keys were read %d times", n)
	}
}

func TestProvidersThatAreRefused(t *testing.T) {
	good := Config{IssuerURL: "https://idp.example", ClientID: "v", Now: time.Now}
	for name, change := range map[string]func(*Config){
		"over HTTP":           func(c *Config) { c.IssuerURL = "http://idp.example" },
		"no URL":              func(c *Config) { c.IssuerURL = "idp" },
		"for any program":     func(c *Config) { c.ClientID = "" },
		"unsigned tokens":     func(c *Config) { c.SigningAlgs = []string{"none"} },
		"a secret that isn't": func(c *Config) { c.SigningAlgs = []string{"RS256", "HS256"} },
	} {
		c := good
		if change(&c); true {
			if _, err := New(c); err == nil {
				t.Errorf("%s: it is taken", name)
			}
		}
	}
	if _, err := New(good); err != nil {
		t.Error(err)
	}
}
