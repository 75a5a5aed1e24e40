// Package config has the manifests that install Vernier. Those that the embedded
// mode applies are embedded.
package config

import "embed"

// Manifests are the custom resource definitions, those of the jobs that Vernier runs
// itself among them, and the webhooks.
//
//go:embed crd/bases/*.yaml operator/crds.yaml webhook/manifests.yaml
var Manifests embed.FS
