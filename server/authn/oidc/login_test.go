package oidc

import (
	"crypto/sha256"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/vernier-ml/vernier/server/authn/oidc/oidctest"
)

// login goes through the provider's page as a browser does, and gives its code.
func login(t *testing.T, p *oidctest.Provider, at Login, verifier, nonce string) string {
	t.Helper()
	sum := sha256.Sum256([]byte(verifier))
	c := p.Client()
	c.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	got, err := c.Get(at.Endpoint + "?" + url.Values{"client_id": {at.ClientID}, "scope": {strings.Join(at.Scopes, " ")}, "response_type": {"code"}, "redirect_uri": {oidctest.Redirect},
		"state": {"s"}, "nonce": {nonce}, "code_challenge": {oidctest.Encode(sum[:])}, "code_challenge_method": {"S256"}}.Encode())
	if err != nil {
		t.Fatal(err)
	}
	defer got.Body.Close()
	to, err := got.Location()
	if err != nil {
		t.Fatal(err)
	}
	return to.Query().Get("code")
}

// post is a call of the page, with a cookie if it has one.
func post(t *testing.T, o *Provider, path, body string, change ...func(*http.Request)) (code int, says map[string]any, cookie *http.Cookie) {
	t.Helper()
	mux := http.NewServeMux()
	o.Mount(mux, "/auth/", "/base/auth/")
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, path, strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	for _, f := range change {
		f(r)
	}
	w := httptest.NewRecorder()
	mux.ServeHTTP(w, r)
	if err := json.Unmarshal(w.Body.Bytes(), &says); err != nil {
		t.Fatal(err, w.Body)
	}
	if cookies := w.Result().Cookies(); len(cookies) > 0 {
		cookie = cookies[0]
	}
	return w.Code, says, cookie
}

func TestABrowserSignsInAndGoesOn(t *testing.T) {
	p := oidctest.New(t, func() time.Time { return noon })
	o := knows(t, p)
	at, err := o.Login(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	body := func(code, verifier, nonce string) string {
		text, _ := json.Marshal(map[string]string{"code": code, "verifier": verifier, "nonce": nonce, "redirect": oidctest.Redirect})
		return string(text)
	}
	code := login(t, p, at, "verifier", "n")
	status, says, cookie := post(t, o, "/auth/token", body(code, "verifier", "n"))
	token, _ := says["token"].(string)
	if status != http.StatusOK || cookie == nil || !cookie.HttpOnly || !cookie.Secure || cookie.SameSite != http.SameSiteStrictMode || cookie.Path != "/base/auth/" {
		t.Fatal(status, says, cookie)
	}
	if user, ok, err := o.Authenticate(t.Context(), bearer(token)); !ok || user.Username != "ann@example.com" {
		t.Error(user, err)
	}
	if strings.Contains(token, p.Refresh) || says["refresh"] != nil {
		t.Error("scripts see the refresh token")
	}

	with := func(c *http.Cookie) func(*http.Request) { return func(r *http.Request) { r.AddCookie(c) } }
	status, says, next := post(t, o, "/auth/refresh", "{}", with(cookie))
	if status != http.StatusOK || says["token"] == "" || next == nil || next.Value == cookie.Value {
		t.Fatal(status, says, next)
	}
	if status, says, _ := post(t, o, "/auth/refresh", "{}", with(cookie)); status != http.StatusUnauthorized || !strings.Contains(says["error"].(string), "invalid_grant") {
		t.Error("a session that went on is good twice:", status, says)
	}
	if _, _, cookie := post(t, o, "/auth/logout", "{}", with(next)); cookie == nil || cookie.MaxAge >= 0 {
		t.Error("the cookie stays:", cookie)
	}

	stolen := login(t, p, at, "verifier", "n")
	for name, c := range map[string]struct {
		path, body string
		change     func(*http.Request)
		code       int
	}{
		"a code without its verifier":  {path: "/auth/token", body: body(stolen, "guess", "n"), code: 401},
		"a code that was used":         {path: "/auth/token", body: body(code, "verifier", "n"), code: 401},
		"a code of another login":      {path: "/auth/token", body: body(login(t, p, at, "verifier", "theirs"), "verifier", "n"), code: 401},
		"no code":                      {path: "/auth/token", body: "{}", code: 401},
		"no session":                   {path: "/auth/refresh", body: "{}", code: 401},
		"a session that is not base64": {path: "/auth/refresh", body: "{}", change: with(&http.Cookie{Name: refreshCookie, Value: "?"}), code: 401},
		"what a form of a page sends":  {path: "/auth/refresh", body: "{}", change: func(r *http.Request) { with(next)(r); r.Header.Set("Content-Type", "text/plain") }, code: 415},
		"another form of another page": {path: "/auth/logout", body: "a=b", change: func(r *http.Request) { r.Header.Set("Content-Type", "application/x-www-form-urlencoded") }, code: 415},
	} {
		t.Run(name, func(t *testing.T) {
			change := c.change
			if change == nil {
				change = func(*http.Request) {}
			}
			status, says, cookie := post(t, o, c.path, c.body, change)
			if status != c.code || says["token"] != nil || cookie != nil {
				t.Error(status, says, cookie)
			}
		})
	}
}

// A provider that is busy has not said that a session is over: the page asks again.
func TestABusyProviderRefusesNoSession(t *testing.T) {
	for code, want := range map[int]int{
		http.StatusBadRequest: http.StatusUnauthorized, http.StatusTooManyRequests: http.StatusServiceUnavailable,
		http.StatusRequestTimeout: http.StatusServiceUnavailable, http.StatusBadGateway: http.StatusServiceUnavailable,
	} {
		p := oidctest.New(t, func() time.Time { return noon })
		o := knows(t, p)
		if _, err := o.Login(t.Context()); err != nil {
			t.Fatal(err)
		}
		busy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code) }))
		t.Cleanup(busy.Close)
		o.found.oauth.Endpoint.TokenURL = busy.URL
		cookie := &http.Cookie{Name: refreshCookie, Value: oidctest.Encode([]byte("refresh"))}
		if got, says, _ := post(t, o, "/auth/refresh", "{}", func(r *http.Request) { r.AddCookie(cookie) }); got != want {
			t.Errorf("the provider answers %d, the page %d %v, want %d", code, got, says, want)
		}
	}
}
