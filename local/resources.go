package local

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/vernier-ml/vernier/local/statefile"
)

// Resources are what an instance's node offers, kept in its home. The zero value
// of a field is all that is found on the machine.
type Resources struct {
	CPU    string `json:"cpu,omitempty"`    // a quantity of cores
	Memory string `json:"memory,omitempty"` // a quantity of bytes
	// GPUs are UUIDs, joined by commas; "none" offers none.
	GPUs string `json:"gpus,omitempty"`
}

const resourcesFile = "resources.json"

// SetResources says what the node offers from the next start on.
func (h Home) SetResources(r Resources) error {
	for name, text := range map[string]string{"cpu": r.CPU, "memory": r.Memory} {
		if text == "" {
			continue
		}
		if q, err := resource.ParseQuantity(text); err != nil || q.Sign() <= 0 {
			return fmt.Errorf("%s %q is not a quantity above 0, such as 4 or 16Gi", name, text)
		}
	}
	if err := h.create(); err != nil {
		return err
	}
	return statefile.WriteJSON(h.path(resourcesFile), r)
}

// resourceFlags are the agent's flags for the resources of a home.
func (h Home) resourceFlags() ([]string, error) {
	var r Resources
	err := statefile.ReadJSON(h.path(resourcesFile), &r)
	if err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, statefile.ErrCorrupt) {
		return nil, err
	}
	var flags []string
	for _, f := range []struct{ name, value string }{{"cpu", r.CPU}, {"memory", r.Memory}, {"gpus", r.GPUs}} {
		if f.value != "" {
			flags = append(flags, "--"+f.name+"="+strings.TrimSuffix(f.value, "none"))
		}
	}
	return flags, nil
}

// shellVariables decide which programs a trial finds.
var shellVariables = []string{"PATH", "VIRTUAL_ENV", "CONDA_PREFIX"}

// recordShell keeps what the programs of this instance are found by: the
// environment of the process that starts it.
func (h Home) recordShell() error {
	shell := map[string]string{}
	for _, name := range shellVariables {
		shell[name] = os.Getenv(name)
	}
	return statefile.WriteJSON(h.path("run", "shell.json"), shell)
}

// DifferentShell says how the caller's environment differs from that in which the
// running instance finds programs; "" when it does not.
func (h Home) DifferentShell(getenv func(string) string) string {
	var shell map[string]string
	if statefile.ReadJSON(h.path("run", "shell.json"), &shell) != nil {
		return "" // nothing is known
	}
	var differ []string
	for _, name := range shellVariables {
		if here := getenv(name); here != shell[name] {
			differ = append(differ, fmt.Sprintf("%s is %q there and %q here", name, shell[name], here))
		}
	}
	if len(differ) == 0 {
		return ""
	}
	return "trials find their programs as the shell that started the instance did: " + strings.Join(differ, "; ") +
		". For those of this shell: vernier down, then vernier up"
}
