// Package oidctest is an OpenID provider for tests: discovery, keys, and the authorization
// code flow with PKCE.
package oidctest

import (
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"maps"
	"math/big"
	"net/http"
	"net/http/httptest"
	"net/url"
	"sync/atomic"
	"testing"
	"time"
)

// Provider serves over TLS, with a certificate of its own.
type Provider struct {
	*httptest.Server
	// Key signs its tokens.
	Key *rsa.PrivateKey
	// Refresh is the refresh token that is good now.
	Refresh string
	// Asked is how often its keys were read. While it is Away, it answers nothing.
	Asked atomic.Int32
	Away  atomic.Bool

	t     testing.TB
	now   func() time.Time
	codes map[string]url.Values // what the login of a code asked for
}

// The program that it knows, and where it sends browsers after a login.
const (
	ClientID = "vernier"
	Redirect = "https://vernier.example.com/auth/callback"
)

// New starts a provider, which ends with the test.
func New(t testing.TB, now func() time.Time) *Provider {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	p := &Provider{t: t, Key: key, now: now, codes: map[string]url.Values{}}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /.well-known/openid-configuration", func(w http.ResponseWriter, _ *http.Request) {
		if p.Away.Load() {
			http.Error(w, "down", http.StatusBadGateway)
			return
		}
		p.answer(w, http.StatusOK, map[string]any{"issuer": p.URL, "authorization_endpoint": p.URL + "/authorize", "token_endpoint": p.URL + "/token", "jwks_uri": p.URL + "/keys",
			"id_token_signing_alg_values_supported": []string{"RS256", "HS256", "none"}})
	})
	mux.HandleFunc("GET /keys", func(w http.ResponseWriter, _ *http.Request) {
		p.Asked.Add(1)
		p.answer(w, http.StatusOK, map[string]any{"keys": []any{map[string]any{"kty": "RSA", "use": "sig", "alg": "RS256", "kid": "1",
			"n": Encode(key.N.Bytes()), "e": Encode(big.NewInt(int64(key.E)).Bytes())}}})
	})
	mux.HandleFunc("GET /authorize", func(w http.ResponseWriter, r *http.Request) {
		q, code := r.URL.Query(), rand.Text()
		if q.Get("client_id") != ClientID || q.Get("redirect_uri") != Redirect || q.Get("code_challenge_method") != "S256" || q.Get("response_type") != "code" {
			http.Error(w, "no", http.StatusBadRequest)
			return
		}
		p.codes[code] = q
		http.Redirect(w, r, Redirect+"?"+url.Values{"code": {code}, "state": {q.Get("state")}}.Encode(), http.StatusFound)
	})
	mux.HandleFunc("POST /token", p.token)
	p.Server = httptest.NewTLSServer(mux)
	t.Cleanup(p.Close)
	return p
}

func (p *Provider) answer(w http.ResponseWriter, code int, with any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	if err := json.NewEncoder(w).Encode(with); err != nil {
		p.t.Error(err)
	}
}

// token is RFC 6749, section 4.1.3, with the check of RFC 7636, and section 6.
func (p *Provider) token(w http.ResponseWriter, r *http.Request) {
	nonce := ""
	switch r.FormValue("grant_type") {
	case "authorization_code":
		q, ok := p.codes[r.FormValue("code")]
		delete(p.codes, r.FormValue("code"))
		sum := sha256.Sum256([]byte(r.FormValue("code_verifier")))
		if !ok || q.Get("code_challenge") != Encode(sum[:]) || r.FormValue("redirect_uri") != Redirect {
			p.answer(w, http.StatusBadRequest, map[string]string{"error": "invalid_grant"})
			return
		}
		nonce = q.Get("nonce")
	case "refresh_token":
		if r.FormValue("refresh_token") != p.Refresh {
			p.answer(w, http.StatusBadRequest, map[string]string{"error": "invalid_grant"})
			return
		}
	}
	p.Refresh = rand.Text()
	p.answer(w, http.StatusOK, map[string]any{"access_token": "opaque", "token_type": "Bearer", "expires_in": 300, "refresh_token": p.Refresh,
		"id_token": p.Sign(p.Claims(map[string]any{"nonce": nonce}))})
}

// Encode is base64, as in tokens.
func Encode(b []byte) string { return base64.RawURLEncoding.EncodeToString(b) }

// Claims are those of a token that is good for five minutes, with others.
func (p *Provider) Claims(others map[string]any) map[string]any {
	c := map[string]any{"iss": p.URL, "aud": ClientID, "sub": "u1", "email": "ann@example.com", "email_verified": true, "groups": []string{"ml", "system:masters"},
		"iat": p.now().Unix(), "exp": p.now().Add(5 * time.Minute).Unix()}
	maps.Copy(c, others)
	return c
}

// Signed is a token with a signature of any kind.
func Signed(alg string, claims map[string]any, sign func(text []byte) []byte) string {
	head, _ := json.Marshal(map[string]string{"alg": alg, "kid": "1"})
	body, _ := json.Marshal(claims)
	text := Encode(head) + "." + Encode(body)
	return text + "." + Encode(sign([]byte(text)))
}

// Sign signs claims, as the provider does.
func (p *Provider) Sign(claims map[string]any) string { return Signed("RS256", claims, RSA(p.Key)) }

// RSA signs with a key (RS256).
func RSA(key *rsa.PrivateKey) func([]byte) []byte {
	return func(text []byte) []byte {
		sum := sha256.Sum256(text)
		out, err := rsa.SignPKCS1v15(rand.Reader, key, crypto.SHA256, sum[:])
		if err != nil {
			panic(err)
		}
		return out
	}
}
