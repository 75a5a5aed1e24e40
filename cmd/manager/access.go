package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"strings"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	"k8s.io/apimachinery/pkg/util/cache"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/vernier-ml/vernier/server/authn"
	"github.com/vernier-ml/vernier/server/authn/oidc"
)

// access are the options about who may call the API and the dashboard.
type access struct {
	oidc                 oidc.Config
	oidcSecret, oidcCA   string
	proxy                authn.ProxyConfig
	proxySecret, proxyCA string
	impersonate          bool
	origins, signOut     string
}

// list is a flag of words between commas; an empty text has none.
func list(f *flag.FlagSet, into *[]string, name, usage string) {
	f.Func(name, usage, func(text string) error {
		*into = nil
		for word := range strings.SplitSeq(text, ",") {
			if word = strings.TrimSpace(word); word != "" {
				*into = append(*into, word)
			}
		}
		return nil
	})
}

// flags defines the options. Those of kube-apiserver have its names.
func (a *access) flags(f *flag.FlagSet) {
	a.oidc.RequiredClaims = map[string]string{}
	f.StringVar(&a.oidc.IssuerURL, "oidc-issuer-url", "", "`URL` of the OpenID provider whose ID tokens the API and the dashboard take beside the cluster's; empty: none")
	f.StringVar(&a.oidc.ClientID, "oidc-client-id", "", "`name` of the dashboard at the OpenID provider, for which its tokens must be")
	f.StringVar(&a.oidcSecret, "oidc-client-secret", "", "the secret that goes with --oidc-client-id: env:NAME or file:PATH, where it is; empty: the provider wants none")
	f.StringVar(&a.oidc.UsernameClaim, "oidc-username-claim", "sub", "`claim` of a token that has the name of its user")
	f.StringVar(&a.oidc.UsernamePrefix, "oidc-username-prefix", "", "`text` before the name of a user; -: none; empty: the issuer and #, or none before an email")
	f.StringVar(&a.oidc.GroupsClaim, "oidc-groups-claim", "", "`claim` of a token that has the groups of its user; empty: they have none")
	f.StringVar(&a.oidc.GroupsPrefix, "oidc-groups-prefix", "", "`text` before the name of a group")
	f.Func("oidc-required-claim", "`claim=value` that a token must have; may be given several times", func(text string) error {
		name, value, ok := strings.Cut(text, "=")
		if !ok || name == "" {
			return errors.New("give claim=value")
		}
		a.oidc.RequiredClaims[name] = value
		return nil
	})
	list(f, &a.oidc.SigningAlgs, "oidc-signing-algs", "`algorithms` with which tokens may be signed, between commas (default RS256)")
	list(f, &a.oidc.Scopes, "oidc-scopes", "`scopes` that the dashboard asks for at a login, between commas; with offline_access most providers let it go on when a token expires (default openid,email)")
	f.StringVar(&a.oidcCA, "oidc-ca-file", "", "`file`, or env:NAME, with the authorities of the OpenID provider's certificate; empty: those of the system")
	list(f, &a.proxy.UserHeaders, "requestheader-username-headers", "`headers`, between commas, in which a proxy that authenticates users says who calls, such as kubeflow-userid; empty: no proxy is believed")
	list(f, &a.proxy.GroupHeaders, "requestheader-group-headers", "`headers`, between commas, in which the proxy says of which groups the user is")
	f.StringVar(&a.proxy.GroupSeparator, "requestheader-group-separator", ",", "`text` between the groups in one header; empty: a header has one")
	f.StringVar(&a.proxyCA, "requestheader-client-ca-file", "", "`file`, or env:NAME, with the authorities of the certificate by which the proxy connects")
	list(f, &a.proxy.Names, "requestheader-allowed-names", "`names`, between commas, of which the proxy's certificate has one; empty: any")
	f.Func("requestheader-source-cidrs", "`ranges` of addresses, between commas, from which the proxy connects", func(text string) error {
		for s := range strings.SplitSeq(text, ",") {
			prefix, err := netip.ParsePrefix(s)
			if err != nil {
				return err
			}
			a.proxy.Sources = append(a.proxy.Sources, prefix)
		}
		return nil
	})
	f.StringVar(&a.proxySecret, "requestheader-secret", "", "the secret that the proxy sends in --requestheader-secret-header: env:NAME or file:PATH, where it is")
	f.StringVar(&a.proxy.SecretHeader, "requestheader-secret-header", authn.DefaultSecretHeader, "`header` in which the proxy sends its secret")
	f.StringVar(&a.signOut, "requestheader-sign-out-url", "", "`URL` at which the proxy ends a session, such as /oauth2/sign_out; empty: the dashboard has no button for it")
	f.BoolVar(&a.impersonate, "impersonate", false, "create, change and delete experiments in the name of the user who asks for it; needs the role of config/components/impersonation")
	f.StringVar(&a.origins, "trusted-origins", "", "`origins` whose pages may call the API, between commas, such as https://tune.example.com behind a proxy that changes the header Host")
}

// given says whether anything but the API server knows users.
func (a *access) given() bool {
	return a.oidc.IssuerURL != "" || len(a.proxy.UserHeaders) > 0 || a.impersonate
}

// check reads the files and variables that options name, and checks the options.
func (a *access) check() (err error) {
	if a.oidc.IssuerURL == "" && a.oidc.ClientID != "" || len(a.proxy.UserHeaders) == 0 && (a.proxySecret != "" || a.proxyCA != "" || a.proxy.Sources != nil) {
		return errors.New("--oidc-client-id needs --oidc-issuer-url, and what is said of a proxy --requestheader-username-headers")
	}
	if a.oidc.ClientSecret, err = secretAt(a.oidcSecret); err != nil {
		return fmt.Errorf("--oidc-client-secret: %w", err)
	}
	if a.oidc.Roots, err = authorities(a.oidcCA); err != nil {
		return fmt.Errorf("--oidc-ca-file: %w", err)
	}
	if a.proxy.Secret, err = secretAt(a.proxySecret); err != nil {
		return fmt.Errorf("--requestheader-secret: %w", err)
	}
	if a.proxy.ClientCAs, err = authorities(a.proxyCA); err != nil {
		return fmt.Errorf("--requestheader-client-ca-file: %w", err)
	}
	a.oidc.Now, a.proxy.Now = time.Now, time.Now
	if _, _, err = a.authenticators(); err != nil {
		return err
	}
	if _, err = a.sameOrigin(); err != nil {
		return err
	}
	return endsSession(a.signOut)
}

// secretAt reads a secret, which does not belong on a command line.
func secretAt(where string) (string, error) {
	kind, at, _ := strings.Cut(where, ":")
	var text string
	switch kind {
	case "":
		return "", nil
	case "env":
		text = os.Getenv(at)
	case "file":
		raw, err := os.ReadFile(at)
		if err != nil {
			return "", err
		}
		text = string(raw)
	default:
		return "", errors.New("give env:NAME or file:PATH, since every user of the machine can read a command line")
	}
	if text = strings.TrimSpace(text); text == "" {
		return "", fmt.Errorf("%s is empty", where)
	}
	return text, nil
}

// authorities reads certificates of a file or a variable.
func authorities(where string) (*x509.CertPool, error) {
	if where == "" {
		return nil, nil
	}
	if !strings.HasPrefix(where, "env:") {
		where = "file:" + where
	}
	text, err := secretAt(where)
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM([]byte(text)) {
		return nil, errors.New("there is no certificate (PEM)")
	}
	return pool, nil
}

// authenticators are those that are asked before the API server. The provider is nil
// without one.
func (a *access) authenticators() (all []authn.Authenticator, provider *oidc.Provider, err error) {
	if len(a.proxy.UserHeaders) > 0 {
		proxy, err := authn.NewProxy(a.proxy)
		if err != nil {
			return nil, nil, fmt.Errorf("--requestheader-username-headers: %w", err)
		}
		all = append(all, proxy)
	}
	if a.oidc.IssuerURL != "" {
		if provider, err = oidc.New(a.oidc); err != nil {
			return nil, nil, fmt.Errorf("--oidc-issuer-url: %w", err)
		}
		all = append(all, provider)
	}
	return all, provider, nil
}

// askCertificates lets connections have certificates, which proxy.go looks at.
func (a *access) askCertificates(c *tls.Config) {
	if a.proxy.ClientCAs != nil {
		c.ClientAuth = tls.RequestClientCert
	}
}

// sameOrigin refuses what pages of other origins send. A proxy, and a browser that sends
// its cookie with everything, would make them calls of the user.
func (a *access) sameOrigin() (func(http.Handler) http.Handler, error) {
	protection := http.NewCrossOriginProtection()
	for origin := range strings.SplitSeq(a.origins, ",") {
		if origin == "" {
			continue
		}
		if err := protection.AddTrustedOrigin(origin); err != nil {
			return nil, fmt.Errorf("--trusted-origins: %w", err)
		}
	}
	return protection.Handler, nil
}

// signIn says to the dashboard how people sign in.
type signIn struct {
	OIDC *oidc.Login `json:"oidc,omitempty"`
	// Proxy: a proxy in front of it signs people in; SignOut ends its session.
	Proxy   bool   `json:"proxy"`
	SignOut string `json:"signOut,omitempty"`
	// Trouble says why OIDC is not there now, although people sign in by it.
	Trouble string `json:"trouble,omitempty"`
}

// loginPatience is how long a page waits for the provider.
const loginPatience = 3 * time.Second

// signInPath is where mountSignIn has its services, beside a place of the page.
const signInPath = "/auth/"

// mountSignIn adds what the dashboard needs for people to sign in. base is the path below
// which browsers find it.
func (a *access) mountSignIn(mux *http.ServeMux, provider *oidc.Provider, base string) {
	mux.HandleFunc("GET "+signInPath+"config", func(w http.ResponseWriter, r *http.Request) {
		says := signIn{Proxy: len(a.proxy.UserHeaders) > 0, SignOut: a.signOut}
		if provider != nil {
			ctx, stop := context.WithTimeout(r.Context(), loginPatience)
			defer stop()
			if login, err := provider.Login(ctx); err == nil {
				says.OIDC = &login
			} else {
				slog.WarnContext(ctx, "people cannot sign in", "error", err)
				says.Trouble = "The OpenID provider cannot be reached. The log of the manager says why."
			}
		}
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Cache-Control", "no-store")
		_ = json.NewEncoder(w).Encode(says) // a browser that went away needs no answer
	})
	if provider != nil {
		provider.Mount(mux, signInPath, strings.TrimSuffix(base, "/")+signInPath)
	}
}

const (
	// maxWriters bounds the users whose clients are kept, writerFor how long.
	maxWriters = 1_000
	writerFor  = 10 * time.Minute
)

// impersonator writes in the name of users.
func impersonator(cfg *rest.Config, direct client.Client) func(authenticationv1.UserInfo) (client.Writer, error) {
	kept := cache.NewLRUExpireCache(maxWriters)
	return func(user authenticationv1.UserInfo) (client.Writer, error) {
		key := fmt.Sprintf("%q %q", user.Username, user.Groups)
		if have, ok := kept.Get(key); ok {
			writer, _ := have.(client.Writer)
			return writer, nil
		}
		as := rest.CopyConfig(cfg)
		as.Impersonate = rest.ImpersonationConfig{UserName: user.Username, Groups: user.Groups}
		writer, err := client.New(as, client.Options{Scheme: direct.Scheme(), Mapper: direct.RESTMapper()})
		if err != nil {
			return nil, fmt.Errorf("write in the name of %s: %w", user.Username, err)
		}
		kept.Add(key, writer, writerFor)
		return writer, nil
	}
}

// endsSession is the URL of a page or of a path.
func endsSession(text string) error {
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "" && u.Scheme != "https" {
		return fmt.Errorf("--requestheader-sign-out-url %q: give a path or a URL that begins with https://", text)
	}
	return nil
}
