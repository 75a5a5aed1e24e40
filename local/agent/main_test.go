package agent

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
)

// world is what the tests with an API server share.
var world struct {
	missing string // why there is none
	rest    *rest.Config
	client  kubernetes.Interface
	dir     string
	shim    string
}

func TestMain(m *testing.M) {
	if helper := os.Getenv(helperEnv); helper != "" {
		if err := runHelper(helper); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(runTests(m))
}

func runTests(m *testing.M) int {
	dir, err := os.MkdirTemp("", "agent-test-")
	if err != nil {
		panic(err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	world.dir = dir
	if os.Getenv("KUBEBUILDER_ASSETS") == "" {
		world.missing = "KUBEBUILDER_ASSETS is not set: run `make test`, which builds the control plane and sets it"
		return m.Run()
	}
	stop, err := startWorld(dir)
	if err != nil {
		world.missing = err.Error()
	}
	defer stop()
	return m.Run()
}

func startWorld(dir string) (stop func(), err error) {
	stop = func() {}
	world.shim = filepath.Join(dir, "shim")
	if out, err := exec.Command("go", "build", "-o", world.shim, "github.com/vernier-ml/vernier/cmd/shim").CombinedOutput(); err != nil {
		return stop, fmt.Errorf("building the shim: %w: %s", err, out)
	}
	if err := makeCerts(dir); err != nil {
		return stop, err
	}
	env := &envtest.Environment{}
	env.ControlPlane.GetAPIServer().Configure().
		Append("kubelet-client-certificate", filepath.Join(dir, "client.crt")).
		Append("kubelet-client-key", filepath.Join(dir, "client.key")).
		Append("kubelet-certificate-authority", filepath.Join(dir, "ca.crt")).
		Append("kubelet-preferred-address-types", "InternalIP").
		Append("disable-admission-plugins", "TaintNodesByCondition") // as in the embedded mode
	cfg, err := env.Start()
	stop = func() {
		if err := env.Stop(); err != nil {
			fmt.Fprintln(os.Stderr, "stopping the control plane:", err)
		}
	}
	if err != nil {
		return stop, fmt.Errorf("starting the control plane: %w", err)
	}
	cfg.QPS, cfg.Burst = 500, 1000
	world.rest = cfg
	world.client, err = kubernetes.NewForConfig(cfg)
	return stop, err
}

// makeCerts makes an authority, a certificate that serves 127.0.0.1 and the
// API server's client certificate.
func makeCerts(dir string) error {
	caKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	ca := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test-ca"}, NotBefore: time.Now().Add(-time.Hour),
		NotAfter: time.Now().Add(24 * time.Hour), IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	if err := writeCert(dir, "ca", ca, ca, caKey, caKey); err != nil {
		return err
	}
	for i, leaf := range []string{"server", "client"} {
		key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		if err != nil {
			return err
		}
		cert := &x509.Certificate{
			SerialNumber: big.NewInt(int64(i) + 2), Subject: pkix.Name{CommonName: leaf, Organization: []string{"system:masters"}},
			NotBefore: ca.NotBefore, NotAfter: ca.NotAfter, KeyUsage: x509.KeyUsageDigitalSignature,
			IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
			ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
		}
		if err := writeCert(dir, leaf, cert, ca, key, caKey); err != nil {
			return err
		}
	}
	return nil
}

func writeCert(dir, name string, cert, parent *x509.Certificate, key, parentKey *ecdsa.PrivateKey) error {
	der, err := x509.CreateCertificate(rand.Reader, cert, parent, &key.PublicKey, parentKey)
	if err != nil {
		return err
	}
	keyDER, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, name+".crt"), pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, name+".key"), pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: keyDER}), 0o600)
}

// needCluster returns the shared API server's client, or fails the test.
func needCluster(t testing.TB) kubernetes.Interface {
	t.Helper()
	if world.missing != "" {
		t.Fatal(world.missing)
	}
	return world.client
}

// eventually polls until the condition holds or a generous deadline passes.
func eventually(t testing.TB, what string, holds func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 60*time.Second)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for !holds() {
		select {
		case <-ctx.Done():
			t.Fatalf("never happened: %s", what)
		case <-tick.C:
		}
	}
}

// lowerName makes a test's name fit for an object.
func lowerName(t testing.TB) string {
	name := strings.ToLower(t.Name())
	name = strings.Map(func(r rune) rune {
		if (r >= 'a' && r <= 'z') || (r >= '0' && r <= '9') {
			return r
		}
		return '-'
	}, name)
	return strings.Trim(name[:min(len(name), 40)], "-")
}
