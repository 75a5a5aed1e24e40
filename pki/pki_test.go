package pki

import (
	"crypto/tls"
	"crypto/x509"
	"testing"
	"time"
)

func TestACertificateIsGoodForWhatWasAskedOnly(t *testing.T) {
	now := time.Now()
	authority := func() *tls.Certificate {
		certificate, key, err := NewAuthority("authority", now, time.Hour)
		if err != nil {
			t.Fatal(err)
		}
		pair, err := tls.X509KeyPair(certificate, key)
		if err != nil {
			t.Fatal(err)
		}
		return &pair
	}
	ours, other := authority(), authority()
	certificate, key, err := Issue(ours, Request{Name: "server", Hosts: []string{"a.svc", "127.0.0.1"}, Usages: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}, Validity: time.Minute}, now)
	if err != nil {
		t.Fatal(err)
	}
	issued, err := tls.X509KeyPair(certificate, key)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		authority *tls.Certificate
		host      string
		usage     x509.ExtKeyUsage
		at        time.Time
		good      bool
	}{
		"as asked":          {ours, "a.svc", x509.ExtKeyUsageServerAuth, now, true},
		"an address":        {ours, "127.0.0.1", x509.ExtKeyUsageServerAuth, now, true},
		"another authority": {other, "a.svc", x509.ExtKeyUsageServerAuth, now, false},
		"another host":      {ours, "b.svc", x509.ExtKeyUsageServerAuth, now, false},
		"another use":       {ours, "a.svc", x509.ExtKeyUsageClientAuth, now, false},
		"too late":          {ours, "a.svc", x509.ExtKeyUsageServerAuth, now.Add(2 * time.Minute), false},
	} {
		roots := x509.NewCertPool()
		roots.AddCert(c.authority.Leaf)
		_, err := issued.Leaf.Verify(x509.VerifyOptions{Roots: roots, DNSName: c.host, KeyUsages: []x509.ExtKeyUsage{c.usage}, CurrentTime: c.at})
		if (err == nil) != c.good {
			t.Errorf("%s: %v", name, err)
		}
	}
}
