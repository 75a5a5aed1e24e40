//go:build e2e

package store_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/vernier-ml/vernier/collector"
	"github.com/vernier-ml/vernier/collector/store"
	"github.com/vernier-ml/vernier/e2e/servers"
)

// TestEveryServerKeepsTheContract runs the contract against real servers. One that is
// not there fails it.
func TestEveryServerKeepsTheContract(t *testing.T) {
	starters := map[string]func(testing.TB) *servers.Server{"mysql": servers.MySQL, "postgres": servers.PostgreSQL}
	for _, scheme := range slices.Sorted(slices.Values(served)) {
		t.Run(scheme, func(t *testing.T) {
			place := databases(starters[scheme](t))
			testContract(t, func(t *testing.T, name string) collector.Store {
				t.Helper()
				s, err := store.Open(t.Context(), place(t, name))
				if err != nil {
					t.Fatal(err)
				}
				return s
			}, true)
		})
	}
}

// databases gives each test a database of its own: equal names in one test mean
// the same one.
func databases(s *servers.Server) func(t *testing.T, name string) string {
	made := map[string]string{}
	return func(t *testing.T, name string) string {
		t.Helper()
		key := t.Name() + "/" + name
		if made[key] == "" {
			made[key] = fmt.Sprintf("db%d", len(made))
			if err := s.Create(t.Context(), made[key]); err != nil {
				t.Fatal(err)
			}
		}
		return s.URL(made[key])
	}
}
