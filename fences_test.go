package vernier_test

import (
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/vernier-ml/vernier"

// A fence says what the packages under some folders may depend on, however
// indirectly. The linter holds the same fences for direct imports; this test
// holds what the linter cannot see.
type fence struct {
	packages []string // patterns of go list
	// allow names the import path prefixes outside the standard library that
	// may be reached; nil means that only deny counts.
	allow []string
	// deny names import path prefixes that may not be reached.
	deny []string
	// self names import path prefixes that deny does not mean.
	self []string
}

func TestFences(t *testing.T) {
	kubernetes := []string{"k8s.io/", "sigs.k8s.io/"}
	fences := map[string]fence{
		"suggest reaches the standard library and gonum only": {
			// The contract suite is a test helper: it starts processes.
			packages: []string{"./suggest", "./suggest/algorithm/...", "./suggest/stop/...", "./suggest/analysis/...", "./suggest/numeric/..."},
			allow:    []string{module + "/suggest", "gonum.org/v1/gonum"},
			deny:     []string{"log", "net", "net/http", "math/rand", "os/exec"},
		},
		"api reaches none of ours": {
			packages: []string{"./api/v1beta1"},
			deny:     []string{module + "/"},
			self:     []string{module + "/api/v1beta1"},
		},
		"the words of collector reach the standard library only": {
			packages: []string{"./collector"},
			allow:    []string{module + "/collector"},
		},
		"what manager, collector and pods agree on reaches the standard library only": {
			packages: []string{"./collector/contract"},
			allow:    []string{module + "/collector"},
		},
		"parsing reaches the standard library and the readers of JSON and protobuf only": {
			packages: []string{"./collector/parse"},
			allow:    []string{module + "/collector", "github.com/tidwall/", "google.golang.org/protobuf/"},
		},
		"writing event files reaches the standard library only": {
			packages: []string{"./collector/tensorboard"},
			allow:    []string{module + "/collector"},
		},
		"the journal reaches the standard library only": {
			packages: []string{"./collector/journal"},
			allow:    []string{module + "/collector/journal"},
		},
		"stores reach no Kubernetes": {
			packages: []string{"./collector/store/..."},
			deny:     kubernetes,
		},
		"the collector command reaches no Kubernetes": {
			packages: []string{"./cmd/collector"},
			deny:     kubernetes,
		},
		"a study served as lines reaches the words of search only": {
			packages: []string{"./server/lines"},
			allow:    []string{module + "/suggest", module + "/server/lines", "gonum.org/v1/gonum"},
		},
		"the shim reaches no Kubernetes": {
			packages: []string{"./cmd/shim"},
			deny:     kubernetes,
		},
		"trainer reaches neither the API types nor a training operator": {
			packages: []string{"./trainer/..."},
			deny:     []string{module + "/api/v1beta1", "github.com/kubeflow/", "sigs.k8s.io/jobset", "sigs.k8s.io/kueue"},
		},
		"the experiment controller does not reach the trial controller": {
			packages: []string{"./controllers/experiment"},
			deny:     []string{module + "/controllers/trial", module + "/collector/store"},
		},
		"the trial controller does not reach the experiment controller": {
			packages: []string{"./controllers/trial"},
			deny:     []string{module + "/controllers/experiment", module + "/suggest"},
		},
	}
	for name, f := range fences {
		t.Run(name, func(t *testing.T) {
			for _, dep := range dependencies(t, f.packages) {
				if isUnder(dep.ImportPath, f.deny) && !isUnder(dep.ImportPath, f.self) {
					t.Errorf("%s is reached", dep.ImportPath)
				}
				if f.allow != nil && !dep.Standard && !isUnder(dep.ImportPath, f.allow) {
					t.Errorf("%s is reached", dep.ImportPath)
				}
			}
		})
	}
}

// TestOneControllerPackageKnowsSearch holds that controllers/study alone imports
// both the API's types and those of search; the other controllers use its words.
func TestOneControllerPackageKnowsSearch(t *testing.T) {
	out, err := exec.Command("go", "list", "-f", "{{.ImportPath}}: {{join .Imports \" \"}}", "./controllers/...", "./cmd/manager").Output()
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(out)) {
		pkg, imports, _ := strings.Cut(strings.TrimSpace(line), ": ")
		both := slices.ContainsFunc(strings.Fields(imports), func(p string) bool { return isUnder(p, []string{module + "/suggest"}) })
		if study := pkg == module+"/controllers/study"; both != study {
			t.Errorf("%s imports suggest: %v", pkg, both)
		}
	}
}

// TestTheBenchmarkOfTheAlgorithmsCompiles vets bench/suggest, which is a module
// of its own and so not part of ./... here.
func TestTheBenchmarkOfTheAlgorithmsCompiles(t *testing.T) {
	cmd := exec.Command("go", "vet", "./...")
	cmd.Dir = "bench/suggest"
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("go vet in bench/suggest: %v\n%s", err, out)
	}
}

type dependency struct {
	ImportPath string
	Standard   bool
}

func dependencies(t *testing.T, patterns []string) []dependency {
	t.Helper()
	cmd := exec.Command("go", append([]string{"list", "-deps", "-json=ImportPath,Standard"}, patterns...)...)
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: %v", cmd, err)
	}
	var deps []dependency
	for decoder := json.NewDecoder(strings.NewReader(string(out))); ; {
		var d dependency
		if err := decoder.Decode(&d); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		deps = append(deps, d)
	}
	if len(deps) == 0 {
		t.Fatalf("go list found nothing for %v", patterns)
	}
	return deps
}

func isUnder(path string, prefixes []string) bool {
	return slices.ContainsFunc(prefixes, func(p string) bool {
		return path == p || strings.HasPrefix(path, strings.TrimSuffix(p, "/")+"/")
	})
}
