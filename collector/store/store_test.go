package store_test

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/vernier-ml/vernier/collector"
	"github.com/vernier-ml/vernier/collector/store"
	"github.com/vernier-ml/vernier/server"
)

// served are the drivers that need a server: see contract_servers_test.go.
var served = []string{"mysql", "postgres"}

// places says how to make a URL for each other driver; a driver that is missing
// here fails the test below.
var places = map[string]struct {
	url     func(dir, name string) string
	durable bool
}{
	"memory": {func(string, string) string { return "memory:" }, false},
	"sqlite": {func(dir, name string) string { return "sqlite:" + filepath.Join(dir, name+"?100% #ä.db") }, true},
}

func TestEveryDriverKeepsTheContract(t *testing.T) {
	for _, d := range store.Drivers() {
		if slices.Contains(served, d.Scheme) {
			continue
		}
		t.Run(d.Scheme, func(t *testing.T) {
			place, ok := places[d.Scheme]
			if !ok {
				t.Fatalf("no test place for scheme %s", d.Scheme)
			}
			dirs := map[string]string{}
			testContract(t, func(t *testing.T, name string) collector.Store {
				t.Helper()
				if dirs[t.Name()] == "" {
					dirs[t.Name()] = t.TempDir()
				}
				s, err := store.Open(t.Context(), place.url(dirs[t.Name()], name))
				if err != nil {
					t.Fatal(err)
				}
				return s
			}, place.durable)
		})
	}
}

func TestEveryWrappedStoreKeepsTheContract(t *testing.T) {
	wraps := map[string]func(collector.Store) (collector.Store, error){
		"measured": func(s collector.Store) (collector.Store, error) {
			return server.MeasureStore(s, prometheus.NewRegistry())
		},
		"limited": func(s collector.Store) (collector.Store, error) {
			return server.LimitStore(s, server.Quota{TrialPoints: 1 << 40, NamespacePoints: 1 << 40}, nil)
		},
	}
	for name, wrap := range wraps {
		t.Run(name, func(t *testing.T) {
			testContract(t, func(t *testing.T, _ string) collector.Store {
				t.Helper()
				plain, err := store.Open(t.Context(), "memory:")
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { _ = plain.Close() })
				s, err := wrap(plain)
				if err != nil {
					t.Fatal(err)
				}
				return s
			}, false)
		})
	}
}

func TestDriversAreSortedAndDistinct(t *testing.T) {
	var schemes []string
	for _, d := range store.Drivers() {
		schemes = append(schemes, d.Scheme)
	}
	if !slices.IsSorted(schemes) || len(slices.Compact(slices.Clone(schemes))) != len(schemes) {
		t.Errorf("schemes %v", schemes)
	}
}

func TestOpenRefuses(t *testing.T) {
	dir := t.TempDir()
	tests := map[string]struct{ url, want string }{
		"an unknown scheme":         {"oracle://root:secret@host/db", "sqlite:PATH"},
		"a bare path":               {"/var/lib/points.db", "sqlite:PATH"},
		"sqlite without a file":     {"sqlite:", "no file is named"},
		"sqlite in a missing place": {"sqlite:" + dir + "/no/such/points.db", "no such file"},
		"sqlite on a directory":     {"sqlite:" + dir, "is a directory"},
		"memory with a name":        {"memory:x", "nothing may follow"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			s, err := store.Open(t.Context(), tc.url)
			if err == nil {
				_ = s.Close()
				t.Fatal("no error")
			}
			if !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error %q does not say %q", err, tc.want)
			}
			if strings.Contains(err.Error(), "secret") {
				t.Errorf("error %q shows the password", err)
			}
		})
	}
}
