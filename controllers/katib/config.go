package katib

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"
)

// The ConfigMap of Katib's that names algorithms, in Katib's namespace.
const (
	configName = "katib-config"
	configKey  = "katib-config.yaml"
)

// Algorithm is one that runs in a service of its own, as Katib's ConfigMap names it.
type Algorithm struct {
	Name             string `json:"algorithmName"`
	corev1.Container `json:",inline"`

	ServiceAccountName string `json:"serviceAccountName,omitempty"`
	// VolumeMountPath is where the volume is with the resume policy FromVolume.
	// Default: /opt/katib/data.
	VolumeMountPath string `json:"volumeMountPath,omitempty"`
	// PersistentVolumeClaimSpec is that of the volume. Default: 1 GiB, ReadWriteOnce.
	PersistentVolumeClaimSpec corev1.PersistentVolumeClaimSpec `json:"persistentVolumeClaimSpec,omitempty"`
}

// FindAlgorithm finds an algorithm in Katib's ConfigMap; found is false if there is no
// ConfigMap, or it does not name the algorithm.
func FindAlgorithm(ctx context.Context, c client.Reader, name string) (a Algorithm, found bool, err error) {
	var cm corev1.ConfigMap
	err = c.Get(ctx, client.ObjectKey{Namespace: home, Name: configName}, &cm)
	if apierrors.IsNotFound(err) {
		return a, false, nil
	}
	if err != nil {
		return a, false, fmt.Errorf("read the ConfigMap %s/%s: %w", home, configName, err)
	}
	var config struct {
		Runtime struct {
			Suggestions []Algorithm `json:"suggestions"`
		} `json:"runtime"`
	}
	if err := yaml.Unmarshal([]byte(cm.Data[configKey]), &config); err != nil {
		return a, false, fmt.Errorf("read the entry %s of the ConfigMap %s/%s: %w", configKey, home, configName, err)
	}
	list := config.Runtime.Suggestions
	i := slices.IndexFunc(list, func(a Algorithm) bool { return a.Name == name && a.Image != "" })
	if i < 0 {
		return a, false, nil
	}
	return list[i], true, nil
}
