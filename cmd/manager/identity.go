package main

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/vernier-ml/vernier/local/statefile"
	"github.com/vernier-ml/vernier/pki"
)

const (
	// secretName is the Secret, in the manager's namespace, that holds what the
	// manager makes at its first start.
	secretName = "vernier-manager"
	keyEntry   = "report.key"
	caEntry    = "ca.crt"
	caKeyEntry = "ca.key"

	keySize      = 32
	caValidity   = 20 * 365 * 24 * time.Hour
	leafValidity = 365 * 24 * time.Hour
)

type identity struct {
	// reportKey signs the tokens of trials.
	reportKey []byte
	// ca signed certificate; PEM. Empty when there is no certificate.
	ca []byte
	// certificate gives the certificate of the report service and the webhook.
	// Nil when neither needs one.
	certificate func(*tls.ClientHelloInfo) (*tls.Certificate, error)
}

// loadIdentity reads what the options say, and makes what is not there yet.
func loadIdentity(ctx context.Context, c client.Client, o options, now func() time.Time) (identity, error) {
	var id identity
	if o.reportKeyFile != "" {
		key, err := secretFromFile(o.reportKeyFile, "report key", randomKey)
		if err != nil {
			return id, err
		}
		id.reportKey = key
	}
	if !o.needsSecret() {
		return id, nil
	}
	secret, err := ensureSecret(ctx, c, o.namespace, now())
	if err != nil {
		return id, err
	}
	if id.reportKey == nil {
		id.reportKey = secret.Data[keyEntry]
	}
	if len(id.reportKey) < keySize {
		return id, fmt.Errorf("the entry %s of secret %s/%s has %d bytes, %d are needed: delete the secret and start again", keyEntry, o.namespace, secretName, len(id.reportKey), keySize)
	}
	id.ca = secret.Data[caEntry]
	id.certificate = renewed(func() (*tls.Certificate, error) {
		cert, err := leaf(id.ca, secret.Data[caKeyEntry], o.namespace, now(), o.reportHost())
		if err != nil {
			return nil, fmt.Errorf("make a certificate with the authority in secret %s/%s: %w", o.namespace, secretName, err)
		}
		return cert, nil
	}, now)
	_, err = id.certificate(nil)
	return id, err
}

// secretFromFile reads a secret, or makes one that only this user can read.
func secretFromFile(path, name string, fresh func() []byte) ([]byte, error) {
	key, err := os.ReadFile(path)
	if err == nil && len(key) >= keySize {
		return key, nil
	}
	if err == nil {
		return nil, fmt.Errorf("the %s in %s has %d bytes, %d are needed: delete the file and start again", name, path, len(key), keySize)
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("read the %s: %w", name, err)
	}
	key = fresh()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, fmt.Errorf("write the %s: %w", name, err)
	}
	if err := statefile.Write(path, key, 0o600); err != nil {
		return nil, fmt.Errorf("write the %s: %w", name, err)
	}
	return key, nil
}

func randomToken() []byte { return []byte(rand.Text() + rand.Text() + "\n") }

func randomKey() []byte {
	key := make([]byte, keySize)
	_, _ = rand.Read(key) // never fails
	return key
}

// ensureSecret reads the manager's Secret, or makes it. Of two managers that
// start at once, one makes it and both use it.
func ensureSecret(ctx context.Context, c client.Client, namespace string, now time.Time) (*corev1.Secret, error) {
	secret := &corev1.Secret{}
	where := client.ObjectKey{Namespace: namespace, Name: secretName}
	err := c.Get(ctx, where, secret)
	if err == nil {
		return secret, nil
	}
	if !apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("read secret %s: %w", where, err)
	}
	ca, caKey, err := pki.NewAuthority("vernier", now, caValidity)
	if err != nil {
		return nil, fmt.Errorf("make a certificate authority: %w", err)
	}
	secret = &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: secretName},
		Data:       map[string][]byte{keyEntry: randomKey(), caEntry: ca, caKeyEntry: caKey},
	}
	if err = c.Create(ctx, secret); apierrors.IsAlreadyExists(err) {
		err = c.Get(ctx, where, secret)
	}
	if err != nil {
		return nil, fmt.Errorf("make secret %s: %w", where, err)
	}
	return secret, nil
}

// leaf is a certificate of the manager's Services, and of other hosts by which it is
// reached, with that of its authority.
func leaf(ca, caKey []byte, namespace string, now time.Time, others ...string) (*tls.Certificate, error) {
	authority, err := tls.X509KeyPair(ca, caKey)
	if err != nil {
		return nil, err
	}
	r := pki.Request{Name: serviceName, Hosts: others, Usages: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}, Validity: leafValidity}
	for _, service := range []string{serviceName, webhookService} {
		local := service + "." + namespace
		r.Hosts = append(r.Hosts, service, local, local+".svc", local+".svc.cluster.local")
	}
	certificate, key, err := pki.Issue(&authority, r, now)
	if err != nil {
		return nil, err
	}
	pair, err := tls.X509KeyPair(append(certificate, ca...), key)
	return &pair, err
}

// renewed makes a certificate when there is none or a third of its time is left.
func renewed(issue func() (*tls.Certificate, error), now func() time.Time) func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	var mu sync.Mutex
	var held *tls.Certificate
	var until time.Time
	return func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
		mu.Lock()
		defer mu.Unlock()
		if held != nil && now().Before(until) {
			return held, nil
		}
		cert, err := issue()
		if err != nil {
			return nil, err
		}
		held, until = cert, now().Add(leafValidity*2/3)
		return held, nil
	}
}
