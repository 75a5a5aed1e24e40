package authn

import (
	"cmp"
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
)

// DefaultSecretHeader is that in which a proxy sends its secret.
const DefaultSecretHeader = "X-Vernier-Proxy-Secret"

// ProxyConfig says which proxy is believed, and where it says who calls. Of ClientCAs,
// Sources and Secret each one that is set must hold, and at least one must be set.
type ProxyConfig struct {
	// UserHeaders are looked at in this order; the first that is there has the user.
	UserHeaders []string
	// GroupHeaders have groups. GroupSeparator, if any, is between those of one header.
	GroupHeaders   []string
	GroupSeparator string
	// ClientCAs signed the certificate by which the proxy connects. Names are those
	// that it may have (its common name or one for DNS); none: any.
	ClientCAs *x509.CertPool
	Names     []string
	// Sources are the addresses from which the proxy connects.
	Sources []netip.Prefix
	// Secret is what the proxy sends in SecretHeader (default: DefaultSecretHeader).
	Secret, SecretHeader string
	Now                  func() time.Time
}

// Proxy believes the headers of a proxy that authenticates users.
type Proxy struct{ ProxyConfig }

// NewProxy checks the configuration.
func NewProxy(c ProxyConfig) (*Proxy, error) {
	c.SecretHeader = cmp.Or(c.SecretHeader, DefaultSecretHeader)
	switch {
	case len(c.UserHeaders) == 0:
		return nil, errors.New("no header is named that has the user")
	case c.ClientCAs == nil && len(c.Sources) == 0 && c.Secret == "":
		return nil, errors.New("everybody could send these headers: give the proxy's certificate authority, its addresses or a secret that it sends")
	case len(c.Names) > 0 && c.ClientCAs == nil:
		return nil, errors.New("names of the proxy's certificate need its authority")
	case c.Secret != "" && len(c.Secret) < 16:
		return nil, fmt.Errorf("the secret of the proxy has %d bytes: give 16 at least", len(c.Secret))
	}
	return &Proxy{c}, nil
}

// Authenticate implements Authenticator. It refuses requests with these headers that do
// not come from the proxy.
func (p *Proxy) Authenticate(_ context.Context, r *http.Request) (user authenticationv1.UserInfo, ok bool, err error) {
	named := func(header string) bool { return len(r.Header.Values(header)) > 0 }
	if !slices.ContainsFunc(p.UserHeaders, named) && !slices.ContainsFunc(p.GroupHeaders, named) && !named(p.SecretHeader) {
		return user, false, nil
	}
	if why := p.distrust(r); why != "" {
		return user, false, Refuse("headers that say who calls are believed from the proxy only, and %s", why)
	}
	name := ""
	for _, header := range p.UserHeaders {
		values := r.Header.Values(header)
		if len(values) > 1 { // the proxy has left what its caller sent
			return user, false, Refuse("the header %s is there %d times", header, len(values))
		}
		if len(values) == 1 && name == "" {
			name = strings.TrimSpace(values[0])
		}
	}
	if name == "" {
		return user, false, nil // the proxy let a user through who did not sign in
	}
	user, err = User(name, p.groups(r))
	return user, err == nil, err
}

func (p *Proxy) groups(r *http.Request) (groups []string) {
	for _, header := range p.GroupHeaders {
		for _, value := range r.Header.Values(header) {
			parts := []string{value}
			if p.GroupSeparator != "" {
				parts = strings.Split(value, p.GroupSeparator)
			}
			for _, part := range parts {
				groups = append(groups, strings.TrimSpace(part))
			}
		}
	}
	return groups
}

// distrust says why a request does not come from the proxy, "" if it does.
func (p *Proxy) distrust(r *http.Request) string {
	if len(p.Sources) > 0 {
		peer, err := netip.ParseAddrPort(r.RemoteAddr)
		from := peer.Addr().Unmap()
		if err != nil || !slices.ContainsFunc(p.Sources, func(s netip.Prefix) bool { return s.Contains(from) }) {
			return fmt.Sprintf("%s is not one of its addresses", r.RemoteAddr)
		}
	}
	if p.Secret != "" {
		want, sent := sha256.Sum256([]byte(p.Secret)), sha256.Sum256([]byte(r.Header.Get(p.SecretHeader)))
		if subtle.ConstantTimeCompare(want[:], sent[:]) != 1 {
			return "its secret is not sent"
		}
	}
	if p.ClientCAs != nil {
		return p.distrustCertificate(r)
	}
	return ""
}

// distrustCertificate looks at the certificate of the connection, which the server asks
// for and does not verify, since most of its clients have none.
func (p *Proxy) distrustCertificate(r *http.Request) string {
	if r.TLS == nil || len(r.TLS.PeerCertificates) == 0 {
		return "this connection has no certificate"
	}
	leaf, intermediates := r.TLS.PeerCertificates[0], x509.NewCertPool()
	for _, c := range r.TLS.PeerCertificates[1:] {
		intermediates.AddCert(c)
	}
	if _, err := leaf.Verify(x509.VerifyOptions{
		Roots: p.ClientCAs, Intermediates: intermediates, CurrentTime: p.Now(), KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}); err != nil {
		return "the certificate of this connection is not valid: " + err.Error()
	}
	if has := append([]string{leaf.Subject.CommonName}, leaf.DNSNames...); len(p.Names) > 0 &&
		!slices.ContainsFunc(has, func(name string) bool { return slices.Contains(p.Names, name) }) {
		return fmt.Sprintf("the certificate of this connection is that of %s", strings.Join(has, ", "))
	}
	return ""
}
