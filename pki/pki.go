// Package pki makes certificate authorities and the certificates that they sign:
// those of an embedded instance, and those of the manager in a cluster.
package pki

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"time"

	"k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/keyutil"
)

// Request says what a certificate is for.
type Request struct {
	// Name and Groups are the common name and the organizations: to Kubernetes, a
	// user and its groups.
	Name   string
	Groups []string
	// Hosts are names and addresses.
	Hosts    []string
	Usages   []x509.ExtKeyUsage
	Validity time.Duration
}

// NewAuthority makes a certificate authority, in PEM.
func NewAuthority(name string, now time.Time, validity time.Duration) (certificate, key []byte, err error) {
	return sign(&x509.Certificate{
		Subject:               pkix.Name{CommonName: name},
		NotAfter:              now.Add(validity),
		KeyUsage:              x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
		IsCA:                  true,
		BasicConstraintsValid: true,
	}, nil, now)
}

// Issue makes a key and a certificate that an authority signs, in PEM.
func Issue(authority *tls.Certificate, r Request, now time.Time) (certificate, key []byte, err error) {
	template := &x509.Certificate{
		Subject:     pkix.Name{CommonName: r.Name, Organization: r.Groups},
		NotAfter:    now.Add(r.Validity),
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: r.Usages,
	}
	for _, host := range r.Hosts {
		if ip := net.ParseIP(host); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else {
			template.DNSNames = append(template.DNSNames, host)
		}
	}
	return sign(template, authority, now)
}

// sign has a certificate signed by an authority, or, without one, by itself. It
// holds from an hour ago, for clocks that differ.
func sign(template *x509.Certificate, authority *tls.Certificate, now time.Time) (certificate, key []byte, err error) {
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	template.NotBefore = now.Add(-time.Hour)
	if template.SerialNumber, err = rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120)); err != nil {
		return nil, nil, err
	}
	parent, signer := template, crypto.PrivateKey(private)
	if authority != nil {
		parent, signer = authority.Leaf, authority.PrivateKey
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, private.Public(), signer)
	if err != nil {
		return nil, nil, err
	}
	key, err = keyutil.MarshalPrivateKeyToPEM(private)
	return pem.EncodeToMemory(&pem.Block{Type: cert.CertificateBlockType, Bytes: der}), key, err
}
