// Package config has the manifests that install Vernier. Those that the embedded
// mode applies are embedded.
package config

import "embed"

// Manifests are the custom resource definitions and the webhooks.
//
//go:embed crd/bases/*.yaml webhook/manifests.yaml
var Manifests embed.FS
