package local

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/client-go/util/keyutil"

	"github.com/vernier-ml/vernier/local/statefile"
	"github.com/vernier-ml/vernier/pki"
)

const (
	authorityLifetime   = 10 * 365 * 24 * time.Hour
	certificateLifetime = 365 * 24 * time.Hour
	// An authority that ends within renewBefore is replaced at start.
	renewBefore = 2 * certificateLifetime
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
		{file: "webhook/tls", name: "vernier-webhook", server: true, hosts: loopback},
		{file: "admin", name: "vernier-admin", groups: []string{masters}},
		{file: "controller-manager", name: "system:kube-controller-manager", groups: []string{masters}, server: true, hosts: loopback},
		{file: "scheduler", name: "system:kube-scheduler", groups: []string{masters}, server: true, hosts: loopback},
		{file: "manager", name: "vernier-manager", groups: []string{masters}},
		{file: "agent", name: "vernier-agent", groups: []string{masters}},
	}
}

// ensurePKI makes the authority and the key that signs service account tokens, if
// they are missing, cannot be read or are about to end, and all certificates anew.
func ensurePKI(dir, nodeName string, now time.Time) error {
	ca, err := ensureAuthority(dir, now)
	if err != nil {
		return fmt.Errorf("certificate authority: %w", err)
	}
	for _, id := range identities(nodeName) {
		if err := issue(ca, dir, id, now); err != nil {
			return fmt.Errorf("certificate %s: %w", id.file, err)
		}
	}
	file := filepath.Join(dir, "service-account.key")
	if _, err := keyutil.PrivateKeyFromFile(file); err == nil {
		return nil
	}
	// The API server reads the public half from the same file, and only from this
	// form.
	key, err := keyutil.MakeEllipticPrivateKeyPEM()
	if err != nil {
		return err
	}
	return statefile.Write(file, key, 0o600)
}

func ensureAuthority(dir string, now time.Time) (*tls.Certificate, error) {
	certFile, keyFile := filepath.Join(dir, "ca.crt"), filepath.Join(dir, "ca.key")
	ca, err := tls.LoadX509KeyPair(certFile, keyFile)
	if err == nil && ca.Leaf.NotAfter.Sub(now) > renewBefore {
		return &ca, nil
	}
	// What a power cut has emptied is as good as missing: everything that it signed
	// is made anew too.
	certPEM, keyPEM, err := pki.NewAuthority("vernier-local", now, authorityLifetime)
	if err != nil {
		return nil, err
	}
	// The key first: a certificate without its key would be trusted for nothing.
	if err := errors.Join(statefile.Write(keyFile, keyPEM, 0o600), statefile.Write(certFile, certPEM, 0o600)); err != nil {
		return nil, err
	}
	ca, err = tls.LoadX509KeyPair(certFile, keyFile)
	return &ca, err
}

// issue makes a certificate. It is made at each start, so it need not last.
func issue(ca *tls.Certificate, dir string, id identity, now time.Time) error {
	r := pki.Request{Name: id.name, Groups: id.groups, Hosts: id.hosts, Usages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}, Validity: certificateLifetime}
	if id.server {
		r.Usages = append(r.Usages, x509.ExtKeyUsageServerAuth)
	}
	certPEM, keyPEM, err := pki.Issue(ca, r, now)
	if err != nil {
		return err
	}
	file := filepath.Join(dir, id.file)
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return err
	}
	return errors.Join(statefile.Replace(file+".key", keyPEM, 0o600), statefile.Replace(file+".crt", certPEM, 0o600))
}

// contextName is the name of the cluster, user and context in our kubeconfigs.
const contextName = "vernier-local"

// kubeconfig is a kubeconfig with everything in it.
func kubeconfig(dir, server, user string) ([]byte, error) {
	files := make([][]byte, 3)
	for i, name := range []string{"ca.crt", user + ".crt", user + ".key"} {
		data, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			return nil, err
		}
		files[i] = data
	}
	return clientcmd.Write(clientcmdapi.Config{
		CurrentContext: contextName,
		Clusters: map[string]*clientcmdapi.Cluster{
			contextName: {Server: server, CertificateAuthorityData: files[0]},
		},
		AuthInfos: map[string]*clientcmdapi.AuthInfo{
			contextName: {ClientCertificateData: files[1], ClientKeyData: files[2]},
		},
		Contexts: map[string]*clientcmdapi.Context{
			contextName: {Cluster: contextName, AuthInfo: contextName, Namespace: "default"},
		},
	})
}

// writeKubeconfigs writes the user's kubeconfig and one for each component.
func (h Home) writeKubeconfigs(p ports) error {
	server := "https://" + address(p.APIServer)
	for user, file := range map[string]string{
		"admin":              h.Kubeconfig(),
		"controller-manager": h.componentKubeconfig("controller-manager"),
		"scheduler":          h.componentKubeconfig("scheduler"),
		"manager":            h.componentKubeconfig("manager"),
		"agent":              h.componentKubeconfig("agent"),
	} {
		data, err := kubeconfig(h.pki(), server, user)
		if err != nil {
			return err
		}
		if err := statefile.Replace(file, data, 0o600); err != nil {
			return err
		}
	}
	return nil
}
