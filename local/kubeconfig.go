package local

import (
	"os"
	"path/filepath"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/vernier-ml/vernier/local/statefile"
)

// contextName is the name of the cluster, user and context in our kubeconfigs.
const contextName = "vernier-local"

// kubeconfig is a kubeconfig with everything in it.
func kubeconfig(pki, server, user string) ([]byte, error) {
	files := make([][]byte, 3)
	for i, name := range []string{"ca.crt", user + ".crt", user + ".key"} {
		data, err := os.ReadFile(filepath.Join(pki, name))
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
