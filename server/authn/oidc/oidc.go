// Package oidc takes ID tokens of an OpenID provider as credentials, and lets a browser
// get one (OpenID Connect Core 1.0). Options mean what those of kube-apiserver with the
// same names do, so that a user has one name in both.
package oidc

import (
	"cmp"
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"
	authenticationv1 "k8s.io/api/authentication/v1"
	"k8s.io/apimachinery/pkg/util/cache"

	"github.com/vernier-ml/vernier/server/authn"
)

// Config of a provider. IssuerURL and ClientID are needed.
type Config struct {
	// IssuerURL begins with https://, and is the iss of its tokens. ClientID is in
	// their aud.
	IssuerURL, ClientID string
	// ClientSecret is for providers that give a code of the login only with it.
	ClientSecret string
	// UsernameClaim has the user's name (default: sub). UsernamePrefix comes before it;
	// default: nothing before an email, the issuer and # before others; "-" is nothing.
	UsernameClaim, UsernamePrefix string
	// GroupsClaim has the user's groups, a text or a list of them. None: no groups.
	GroupsClaim, GroupsPrefix string
	// RequiredClaims are texts that a token must have.
	RequiredClaims map[string]string
	// SigningAlgs are those that tokens may be signed with (default: RS256).
	SigningAlgs []string
	// Scopes of the login in a browser (default: openid, email).
	Scopes []string
	// Roots verify the provider's certificate; nil: those of the system.
	Roots *x509.CertPool
	Now   func() time.Time
}

// algorithms are those that can be verified with a public key: none and HMAC are not.
var algorithms = []string{oidc.RS256, oidc.RS384, oidc.RS512, oidc.ES256, oidc.ES384, oidc.ES512, oidc.PS256, oidc.PS384, oidc.PS512}

const (
	// A token is verified again after knownFor, and refused without a look for
	// unknownFor. A provider that does not answer is asked again after that, too.
	knownFor   = time.Minute
	unknownFor = 5 * time.Second
	maxTokens  = 4096
	// discoverEvery is how often the provider's addresses and keys are read anew: a
	// key that it has taken away is trusted no longer.
	discoverEvery = time.Hour
	timeout       = 10 * time.Second
)

// Provider knows the users of an OpenID provider.
type Provider struct {
	Config
	client *http.Client
	tokens *cache.LRUExpireCache // of known, by the hash of the token

	mu     sync.Mutex
	found  *discovered
	err    error
	next   time.Time     // when to look again
	asking chan struct{} // closed when the call in progress ends; nil without one
}

type known struct {
	user authenticationv1.UserInfo
	err  error
}

// discovered is what the provider says of itself.
type discovered struct {
	verifier *oidc.IDTokenVerifier
	oauth    oauth2.Config
}

// New checks the configuration. The provider is asked when the first token comes, so
// that one that is away keeps nothing from starting.
func New(c Config) (*Provider, error) {
	u, err := url.Parse(c.IssuerURL)
	switch {
	case err != nil || u.Scheme != "https" || u.Host == "" || u.RawQuery != "" || u.Fragment != "":
		return nil, fmt.Errorf("the issuer %q is no URL that begins with https://", c.IssuerURL)
	case c.ClientID == "":
		return nil, errors.New("no client ID is given, so tokens for other programs would be taken")
	}
	c.UsernameClaim = cmp.Or(c.UsernameClaim, "sub")
	switch {
	case c.UsernamePrefix == "-":
		c.UsernamePrefix = ""
	case c.UsernamePrefix == "" && c.UsernameClaim != "email":
		c.UsernamePrefix = c.IssuerURL + "#"
	}
	if len(c.SigningAlgs) == 0 {
		c.SigningAlgs = []string{oidc.RS256}
	}
	for _, alg := range c.SigningAlgs {
		if !slices.Contains(algorithms, alg) {
			return nil, fmt.Errorf("tokens may not be signed with %q: give some of %s", alg, strings.Join(algorithms, ", "))
		}
	}
	if len(c.Scopes) == 0 {
		c.Scopes = []string{oidc.ScopeOpenID, "email"}
	}
	transport, _ := http.DefaultTransport.(*http.Transport)
	transport = transport.Clone()
	// Calls are rare, and a code is good once: none may go into a connection that the
	// provider is just closing.
	transport.DisableKeepAlives = true
	transport.TLSClientConfig = &tls.Config{RootCAs: c.Roots, MinVersion: tls.VersionTLS12}
	return &Provider{Config: c, client: &http.Client{Transport: transport, Timeout: timeout}, tokens: cache.NewLRUExpireCacheWithClock(maxTokens, clock{c.Now})}, nil
}

// clock is that of a cache.
type clock struct{ now func() time.Time }

func (c clock) Now() time.Time { return c.now() }

// Authenticate implements authn.Authenticator. It knows nothing of tokens that other
// issuers have signed.
func (p *Provider) Authenticate(ctx context.Context, r *http.Request) (user authenticationv1.UserInfo, ok bool, err error) {
	token := authn.Bearer(r)
	if token == "" || !p.issued(token) {
		return user, false, nil
	}
	key := sha256.Sum256([]byte(token))
	if have, ok := p.tokens.Get(key); ok {
		k, _ := have.(known)
		return k.user, k.err == nil, k.err
	}
	user, until, err := p.verify(ctx, token, "")
	switch {
	case errors.Is(err, authn.ErrRefused):
		p.tokens.Add(key, known{err: err}, unknownFor)
	case err == nil:
		p.tokens.Add(key, known{user: user}, min(knownFor, until.Sub(p.Now())))
	}
	return user, err == nil, err
}

// issued says whether a token names this issuer. Nothing is verified yet.
func (p *Provider) issued(token string) bool {
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return false
	}
	text, err := base64.RawURLEncoding.DecodeString(parts[1])
	var claims struct {
		Issuer string `json:"iss"`
	}
	return err == nil && json.Unmarshal(text, &claims) == nil && claims.Issuer == p.IssuerURL
}

// verify finds the user of a token, and until when it is good. nonce is that of the login
// that it must come from, if there is one.
func (p *Provider) verify(ctx context.Context, token, nonce string) (user authenticationv1.UserInfo, until time.Time, err error) {
	d, err := p.discover(ctx)
	if err != nil {
		return user, until, err
	}
	away := new(bool)
	id, err := d.verifier.Verify(context.WithValue(ctx, awayKey{}, away), token)
	var expired *oidc.TokenExpiredError
	switch {
	case *away:
		return user, until, fmt.Errorf("read the keys of %s: %w", p.IssuerURL, err)
	case errors.As(err, &expired):
		return user, until, authn.Refuse("the token has expired at %s", expired.Expiry.UTC().Format(time.RFC3339))
	case err != nil:
		return user, until, authn.Refuse("the token is not valid: %v", err)
	case nonce != "" && id.Nonce != nonce:
		return user, until, authn.Refuse("the token is that of another login")
	}
	claims := map[string]any{}
	if err := id.Claims(&claims); err != nil {
		return user, until, authn.Refuse("the token is not valid: %v", err)
	}
	user, err = p.userOf(claims)
	return user, id.Expiry, err
}

// userOf is the user whom the claims of a token name.
func (p *Provider) userOf(claims map[string]any) (user authenticationv1.UserInfo, err error) {
	for name, want := range p.RequiredClaims {
		if got, ok := claims[name].(string); !ok || got != want {
			return user, authn.Refuse("the claim %s of the token is not %q", name, want)
		}
	}
	if verified, given := claims["email_verified"]; p.UsernameClaim == "email" && given && verified != true {
		return user, authn.Refuse("the email of the token is not verified")
	}
	name, ok := claims[p.UsernameClaim].(string)
	if !ok || name == "" {
		return user, authn.Refuse("the token has no claim %s", p.UsernameClaim)
	}
	var groups []string
	switch has := claims[p.GroupsClaim].(type) {
	case string:
		groups = []string{p.GroupsPrefix + has}
	case []any:
		for _, g := range has {
			text, ok := g.(string)
			if !ok {
				return user, authn.Refuse("the claim %s of the token is no list of texts", p.GroupsClaim)
			}
			groups = append(groups, p.GroupsPrefix+text)
		}
	}
	return authn.User(p.UsernamePrefix+name, groups)
}

// discover is what the provider says of itself: it is remembered, and read anew by one
// call at a time. What is known is good while that lasts, unless it is old.
func (p *Provider) discover(ctx context.Context) (*discovered, error) {
	p.mu.Lock()
	now := p.Now()
	if now.Before(p.next) {
		defer p.mu.Unlock()
		return p.found, p.err
	}
	if p.asking == nil {
		p.asking = make(chan struct{})
		go p.ask(context.WithoutCancel(ctx)) // for others, too
	}
	found, asking := p.found, p.asking
	usable := found != nil && now.Before(p.next.Add(discoverEvery))
	p.mu.Unlock()
	if usable {
		return found, nil
	}
	select {
	case <-asking:
	case <-ctx.Done():
		return nil, fmt.Errorf("wait for the OpenID provider %s: %w", p.IssuerURL, ctx.Err())
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.found, p.err
}

// ask reads what the provider says, and ends what discover waits for.
func (p *Provider) ask(ctx context.Context) {
	found, err := p.read(ctx)
	p.mu.Lock()
	defer p.mu.Unlock()
	close(p.asking)
	p.asking = nil
	// The clock is read after the call: one that lasted is not repeated at once.
	if err != nil {
		p.next = p.Now().Add(unknownFor)
		if p.found == nil { // else what is known is good for now
			p.err = fmt.Errorf("ask the OpenID provider %s: %w", p.IssuerURL, err)
		}
		return
	}
	p.found, p.err, p.next = found, nil, p.Now().Add(discoverEvery)
}

func (p *Provider) read(ctx context.Context) (*discovered, error) {
	ctx = oidc.ClientContext(ctx, p.client)
	provider, err := oidc.NewProvider(ctx, p.IssuerURL)
	if err != nil {
		return nil, err
	}
	var says struct {
		Keys    string   `json:"jwks_uri"`
		Methods []string `json:"token_endpoint_auth_methods_supported"`
	}
	if err := provider.Claims(&says); err != nil {
		return nil, err
	}
	end := provider.Endpoint()
	end.AuthStyle = oauth2.AuthStyleInHeader
	if p.ClientSecret == "" || len(says.Methods) > 0 && !slices.Contains(says.Methods, "client_secret_basic") {
		end.AuthStyle = oauth2.AuthStyleInParams
	}
	return &discovered{
		verifier: oidc.NewVerifier(p.IssuerURL, keys{oidc.NewRemoteKeySet(ctx, says.Keys)}, &oidc.Config{ClientID: p.ClientID, SupportedSigningAlgs: p.SigningAlgs, Now: p.Now}),
		oauth:    oauth2.Config{ClientID: p.ClientID, ClientSecret: p.ClientSecret, Endpoint: end, Scopes: p.Scopes},
	}, nil
}

// keys tell a signature that is wrong from keys that cannot be read.
type keys struct{ remote *oidc.RemoteKeySet }

type awayKey struct{}

func (k keys) VerifySignature(ctx context.Context, token string) ([]byte, error) {
	payload, err := k.remote.VerifySignature(ctx, token)
	if away, ok := ctx.Value(awayKey{}).(*bool); ok && err != nil {
		*away = errors.Unwrap(err) != nil // it wraps what went wrong on the way alone
	}
	return payload, err
}
