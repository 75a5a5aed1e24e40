package authn

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	authenticationv1 "k8s.io/api/authentication/v1"

	"github.com/vernier-ml/vernier/pki"
)

var noon = time.Date(2030, 1, 2, 12, 0, 0, 0, time.UTC)

// authority signs certificates for clients; pool has it.
func authority(t *testing.T) (issue func(name string, usage x509.ExtKeyUsage) *x509.Certificate, pool *x509.CertPool) {
	t.Helper()
	ca, key, err := pki.NewAuthority("proxies", noon.Add(-time.Hour), 24*time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	pair, err := tls.X509KeyPair(ca, key)
	if err != nil {
		t.Fatal(err)
	}
	pool = x509.NewCertPool()
	pool.AppendCertsFromPEM(ca)
	return func(name string, usage x509.ExtKeyUsage) *x509.Certificate {
		t.Helper()
		text, _, err := pki.Issue(&pair, pki.Request{Name: name, Usages: []x509.ExtKeyUsage{usage}, Validity: time.Hour}, noon)
		if err != nil {
			t.Fatal(err)
		}
		block, _ := pem.Decode(text)
		c, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			t.Fatal(err)
		}
		return c
	}, pool
}

func TestAProxyIsBelievedThatIsKnown(t *testing.T) {
	issue, pool := authority(t)
	foreign, _ := authority(t)
	const secret = "0123456789abcdef"
	inside := []netip.Prefix{netip.MustParsePrefix("10.1.0.0/16")}
	users := []string{"Kubeflow-Userid", "X-Forwarded-User"}
	for name, c := range map[string]struct {
		config  ProxyConfig
		from    string
		with    *x509.Certificate
		header  http.Header
		user    string
		groups  []string
		refused string
	}{
		"from its addresses": {
			config: ProxyConfig{Sources: inside}, from: "10.1.2.3:5000", header: http.Header{"Kubeflow-Userid": {"ann@example.com"}},
			user: "ann@example.com",
		},
		"with groups": {
			config: ProxyConfig{Sources: inside, GroupHeaders: []string{"X-Forwarded-Groups"}, GroupSeparator: ","}, from: "[::ffff:10.1.2.3]:5000",
			header: http.Header{"X-Forwarded-User": {"ann"}, "X-Forwarded-Groups": {"ml, vision", "ops"}}, user: "ann", groups: []string{"ml", "vision", "ops"},
		},
		"a group with a comma in its name": {
			config: ProxyConfig{Sources: inside, GroupHeaders: []string{"X-Forwarded-Groups"}}, from: "10.1.2.3:5000",
			header: http.Header{"X-Forwarded-User": {"ann"}, "X-Forwarded-Groups": {"cn=ml,o=x"}}, user: "ann", groups: []string{"cn=ml,o=x"},
		},
		"from elsewhere": {
			config: ProxyConfig{Sources: inside}, from: "10.2.2.3:5000", header: http.Header{"Kubeflow-Userid": {"ann"}}, refused: "10.2.2.3:5000 is not one of its addresses",
		},
		"what another proxy says of an address counts nothing": {
			config: ProxyConfig{Sources: inside}, from: "10.2.2.3:5000", header: http.Header{"Kubeflow-Userid": {"ann"}, "X-Forwarded-For": {"10.1.2.3"}}, refused: "not one of its addresses",
		},
		"groups alone, from elsewhere": {
			config: ProxyConfig{Sources: inside, GroupHeaders: []string{"X-Forwarded-Groups"}}, from: "10.2.2.3:5000", header: http.Header{"X-Forwarded-Groups": {"ops"}}, refused: "not one of its addresses",
		},
		"with its secret": {
			config: ProxyConfig{Secret: secret}, header: http.Header{"X-Forwarded-User": {"ann"}, DefaultSecretHeader: {secret}}, user: "ann",
		},
		"with another secret": {
			config: ProxyConfig{Secret: secret}, header: http.Header{"X-Forwarded-User": {"ann"}, DefaultSecretHeader: {"0123456789abcdeg"}}, refused: "its secret is not sent",
		},
		"without its secret": {
			config: ProxyConfig{Secret: secret}, header: http.Header{"X-Forwarded-User": {"ann"}}, refused: "its secret is not sent",
		},
		"its address, but not its secret": {
			config: ProxyConfig{Secret: secret, Sources: inside}, from: "10.1.2.3:5000", header: http.Header{"X-Forwarded-User": {"ann"}}, refused: "its secret is not sent",
		},
		"by its certificate": {
			config: ProxyConfig{ClientCAs: pool, Names: []string{"gate"}}, with: issue("gate", x509.ExtKeyUsageClientAuth), header: http.Header{"X-Forwarded-User": {"ann"}}, user: "ann",
		},
		"by a certificate of another name": {
			config: ProxyConfig{ClientCAs: pool, Names: []string{"gate"}}, with: issue("other", x509.ExtKeyUsageClientAuth), header: http.Header{"X-Forwarded-User": {"ann"}}, refused: "is that of other",
		},
		"by a certificate of another authority": {
			config: ProxyConfig{ClientCAs: pool}, with: foreign("gate", x509.ExtKeyUsageClientAuth), header: http.Header{"X-Forwarded-User": {"ann"}}, refused: "is not valid",
		},
		"by the certificate of a server": {
			config: ProxyConfig{ClientCAs: pool}, with: issue("gate", x509.ExtKeyUsageServerAuth), header: http.Header{"X-Forwarded-User": {"ann"}}, refused: "is not valid",
		},
		"by no certificate": {
			config: ProxyConfig{ClientCAs: pool}, header: http.Header{"X-Forwarded-User": {"ann"}}, refused: "has no certificate",
		},
		"a user that its caller slipped in": {
			config: ProxyConfig{Sources: inside}, from: "10.1.2.3:5000", header: http.Header{"X-Forwarded-User": {"admin", "ann"}}, refused: "is there 2 times",
		},
		"a user of Kubernetes": {
			config: ProxyConfig{Sources: inside}, from: "10.1.2.3:5000", header: http.Header{"X-Forwarded-User": {"system:serviceaccount:kube-system:default"}}, refused: "is no name of a user",
		},
		"groups of Kubernetes": {
			config: ProxyConfig{Sources: inside, GroupHeaders: []string{"G"}, GroupSeparator: ","}, from: "10.1.2.3:5000",
			header: http.Header{"X-Forwarded-User": {"ann"}, "G": {"system:masters,ml"}}, user: "ann", groups: []string{"ml"},
		},
		"no one is signed in":      {config: ProxyConfig{Sources: inside}, from: "10.1.2.3:5000", header: http.Header{"X-Forwarded-User": {""}}},
		"a program with its token": {config: ProxyConfig{Sources: inside}, from: "10.2.2.3:5000", header: http.Header{"Authorization": {"Bearer x"}}},
	} {
		t.Run(name, func(t *testing.T) {
			c.config.UserHeaders, c.config.Now = users, func() time.Time { return noon }
			p, err := NewProxy(c.config)
			if err != nil {
				t.Fatal(err)
			}
			r := &http.Request{Header: c.header, RemoteAddr: c.from, TLS: &tls.ConnectionState{}}
			if c.with != nil {
				r.TLS.PeerCertificates = []*x509.Certificate{c.with}
			}
			got, ok, err := p.Authenticate(t.Context(), r)
			if c.refused != "" {
				if !errors.Is(err, ErrRefused) || !strings.Contains(err.Error(), c.refused) || ok {
					t.Fatalf("%t, %v, want %s", ok, err, c.refused)
				}
				return
			}
			var want authenticationv1.UserInfo
			if c.user != "" {
				want = authenticationv1.UserInfo{Username: c.user, Groups: append(c.groups, "system:authenticated")}
			}
			if diff := cmp.Diff(want, got); diff != "" || err != nil || ok != (c.user != "") {
				t.Errorf("%t, %v (-want +got):\n%s", ok, err, diff)
			}
		})
	}
}

func TestAProxyThatCannotBeKnownIsRefused(t *testing.T) {
	_, pool := authority(t)
	user := []string{"X-Forwarded-User"}
	for name, c := range map[string]ProxyConfig{
		"nothing says which":      {UserHeaders: user},
		"no header":               {ClientCAs: pool},
		"names without authority": {UserHeaders: user, Names: []string{"gate"}, Secret: "0123456789abcdef"},
		"a secret to guess":       {UserHeaders: user, Secret: "secret"},
	} {
		if _, err := NewProxy(c); err == nil {
			t.Errorf("%s: it is taken", name)
		}
	}
}
