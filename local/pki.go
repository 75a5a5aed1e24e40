package local

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"
)

const (
	authorityLifetime   = 10 * 365 * 24 * time.Hour
	certificateLifetime = 365 * 24 * time.Hour
	// A certificate that ends within renewBefore is made anew at start.
	renewBefore = 90 * 24 * time.Hour
)

// identity is a certificate that an instance needs.
type identity struct {
	file string
	// name is the common name: the user, for client certificates.
	name string
	// groups are the organizations: the user's groups.
	groups []string
	server bool
	hosts  []string
}

const (
	masters    = "system:masters"
	serviceIP  = "10.96.0.1"
	serviceNet = "10.96.0.0/16"
)

// identities are all certificates of an instance. The components are people of
// one group, because all of them run as the user who owns the home and can read
// each other's keys: a narrower role would protect nothing.
func identities(nodeName string) []identity {
	loopback := []string{"127.0.0.1", "::1", "localhost"}
	return []identity{
		{file: "etcd", name: "etcd", server: true, hosts: loopback},
		{file: "etcd-client", name: "kube-apiserver"},
		{file: "apiserver", name: "kube-apiserver", server: true, hosts: append([]string{serviceIP, "kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local"}, loopback...)},
		{file: "kubelet-client", name: "kube-apiserver-kubelet-client", groups: []string{masters}},
		{file: "kubelet", name: "system:node:" + nodeName, groups: []string{"system:nodes"}, server: true, hosts: append([]string{nodeName}, loopback...)},
		{file: "webhook", name: "vernier-webhook", server: true, hosts: loopback},
		{file: "admin", name: "vernier-admin", groups: []string{masters}},
		{file: "controller-manager", name: "system:kube-controller-manager", groups: []string{masters}, server: true, hosts: loopback},
		{file: "scheduler", name: "system:kube-scheduler", groups: []string{masters}, server: true, hosts: loopback},
		{file: "manager", name: "vernier-manager", groups: []string{masters}},
		{file: "agent", name: "vernier-agent", groups: []string{masters}},
	}
}

// ensurePKI makes the authority, the certificates and the key that signs service
// account tokens, as far as they are missing, about to end, or no longer what
// is wanted.
func ensurePKI(dir, nodeName string, now time.Time) error {
	ca, err := ensureAuthority(dir, now)
	if err != nil {
		return fmt.Errorf("certificate authority: %w", err)
	}
	for _, id := range identities(nodeName) {
		if err := ca.ensure(dir, id, now); err != nil {
			return fmt.Errorf("certificate %s: %w", id.file, err)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "service-account.key")); errors.Is(err, fs.ErrNotExist) {
		key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		if err != nil {
			return err
		}
		// The API server reads the public half from the same file, and only from
		// this form.
		der, err := x509.MarshalECPrivateKey(key)
		if err != nil {
			return err
		}
		return writeFile(filepath.Join(dir, "service-account.key"), pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der}))
	} else if err != nil {
		return err
	}
	return nil
}

// authority signs certificates.
type authority struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
}

func ensureAuthority(dir string, now time.Time) (*authority, error) {
	certFile, keyFile := filepath.Join(dir, "ca.crt"), filepath.Join(dir, "ca.key")
	certificate, key, err := readPair(certFile, keyFile)
	if err == nil && certificate.NotAfter.Sub(now) > renewBefore {
		return &authority{certificate, key}, nil
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{
		Subject:               pkix.Name{CommonName: "vernier-local"},
		NotBefore:             now.Add(-time.Hour),
		NotAfter:              now.Add(authorityLifetime),
		KeyUsage:              x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
		IsCA:                  true,
		BasicConstraintsValid: true,
	}
	a := &authority{certificate: template, key: key}
	if a.certificate, err = a.sign(template, key, certFile); err != nil {
		return nil, err
	}
	return a, writeKey(keyFile, key)
}

// ensure makes the certificate of id unless a good one is there.
func (a *authority) ensure(dir string, id identity, now time.Time) error {
	certFile, keyFile := filepath.Join(dir, id.file+".crt"), filepath.Join(dir, id.file+".key")
	certificate, _, err := readPair(certFile, keyFile)
	if err == nil && a.isGood(certificate, id, now) {
		return nil
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	template := &x509.Certificate{
		Subject:     pkix.Name{CommonName: id.name, Organization: id.groups},
		NotBefore:   now.Add(-time.Hour),
		NotAfter:    now.Add(certificateLifetime),
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
	if id.server {
		template.ExtKeyUsage = append(template.ExtKeyUsage, x509.ExtKeyUsageServerAuth)
	}
	for _, host := range id.hosts {
		if ip := net.ParseIP(host); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else {
			template.DNSNames = append(template.DNSNames, host)
		}
	}
	if err := writeKey(keyFile, key); err != nil {
		return err
	}
	_, err = a.sign(template, key, certFile)
	return err
}

func (a *authority) isGood(c *x509.Certificate, id identity, now time.Time) bool {
	if c.NotAfter.Sub(now) < renewBefore || now.Before(c.NotBefore) || c.CheckSignatureFrom(a.certificate) != nil || c.Subject.CommonName != id.name {
		return false
	}
	for _, host := range id.hosts {
		if c.VerifyHostname(host) != nil {
			return false
		}
	}
	return true
}

func (a *authority) sign(template *x509.Certificate, key *ecdsa.PrivateKey, file string) (*x509.Certificate, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return nil, err
	}
	template.SerialNumber = serial
	der, err := x509.CreateCertificate(rand.Reader, template, a.certificate, &key.PublicKey, a.key)
	if err != nil {
		return nil, err
	}
	if err := writeFile(file, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})); err != nil {
		return nil, err
	}
	return x509.ParseCertificate(der)
}

func writeKey(file string, key *ecdsa.PrivateKey) error {
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return err
	}
	return writeFile(file, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}))
}

func readPair(certFile, keyFile string) (*x509.Certificate, *ecdsa.PrivateKey, error) {
	certPEM, err := os.ReadFile(certFile)
	if err != nil {
		return nil, nil, err
	}
	keyPEM, err := os.ReadFile(keyFile)
	if err != nil {
		return nil, nil, err
	}
	certBlock, _ := pem.Decode(certPEM)
	keyBlock, _ := pem.Decode(keyPEM)
	if certBlock == nil || keyBlock == nil {
		return nil, nil, fmt.Errorf("%s or %s is not PEM", certFile, keyFile)
	}
	certificate, err := x509.ParseCertificate(certBlock.Bytes)
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", certFile, err)
	}
	parsed, err := x509.ParsePKCS8PrivateKey(keyBlock.Bytes)
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", keyFile, err)
	}
	key, ok := parsed.(*ecdsa.PrivateKey)
	if !ok || !key.PublicKey.Equal(certificate.PublicKey) {
		return nil, nil, fmt.Errorf("%s does not belong to %s", keyFile, certFile)
	}
	return certificate, key, nil
}
