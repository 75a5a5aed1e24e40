//go:build e2e

package main

import (
	"testing"

	"github.com/vernier-ml/vernier/e2e/servers"
)

func init() {
	for name, start := range map[string]func(testing.TB) *servers.Server{"postgres": servers.PostgreSQL, "mysql": servers.MySQL} {
		sharedStores[name] = func(t *testing.T) string {
			s := start(t)
			if err := s.Create(t.Context(), "points"); err != nil {
				t.Fatal(err)
			}
			return s.URL("points")
		}
	}
}
