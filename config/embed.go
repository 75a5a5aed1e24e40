// Package config holds the manifests that install Vernier. Those that the
// embedded mode applies by itself are embedded.
package config

import "embed"

// CRDs are the custom resource definitions, as crd/bases/*.yaml.
//
//go:embed crd/bases/*.yaml
var CRDs embed.FS
