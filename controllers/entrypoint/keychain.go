package entrypoint

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	corev1 "k8s.io/api/core/v1"
)

// keychain has the credentials of pull secrets, the first ones first.
type keychain []credential

type credential struct {
	// place is a registry, or a path there: registry.example.com/team.
	place string
	auth  authn.AuthConfig
}

// add takes the credentials of a pull secret.
func (k *keychain) add(s *corev1.Secret) error {
	var config struct {
		Auths map[string]authn.AuthConfig `json:"auths"`
	}
	text, into := s.Data[corev1.DockerConfigJsonKey], any(&config)
	if s.Type == corev1.SecretTypeDockercfg {
		text, into = s.Data[corev1.DockerConfigKey], &config.Auths
	}
	if err := json.Unmarshal(text, into); err != nil {
		return fmt.Errorf("it is no %s: %w", corev1.SecretTypeDockerConfigJson, err)
	}
	for place, auth := range config.Auths {
		place = strings.TrimPrefix(strings.TrimPrefix(place, "https://"), "http://")
		place = strings.TrimSuffix(strings.TrimSuffix(strings.TrimSuffix(place, "/"), "/v1"), "/v2")
		*k = append(*k, credential{place, auth})
	}
	return nil
}

// Resolve implements authn.Keychain: of the credentials that cover a repository, those of
// the longest path count.
func (k keychain) Resolve(target authn.Resource) (authn.Authenticator, error) {
	found, longest := authn.Anonymous, -1
	for _, c := range k {
		place := c.place
		if place == "docker.io" || place == "registry-1.docker.io" {
			place = name.DefaultRegistry
		}
		covers := target.String() == place || strings.HasPrefix(target.String(), place+"/") || target.RegistryStr() == place
		if covers && len(place) > longest {
			found, longest = authn.FromConfig(c.auth), len(place)
		}
	}
	return found, nil
}
