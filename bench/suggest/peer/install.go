package peer

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/vernier-ml/vernier/bench/suggest/play"
	"github.com/vernier-ml/vernier/bench/suggest/problem"
)

// requirements are what pip installs into each environment.
func requirements(environment string) []string {
	return map[string][]string{
		"optuna":   {"optuna==5.0.0", "cmaes==0.13.1", "scipy==1.17.1", "torch==2.15.0"},
		"hyperopt": {"hyperopt==0.3.0", "setuptools==80.9.0"},
		"skopt":    {"scikit-optimize==0.10.2"},
	}[environment]
}

// Version of the peer: its package and version.
func (p Peer) Version() string { return requirements(p.Environment)[0] }

// Suits says whether the peer can play the problem under the regime.
func (p Peer) Suits(q *problem.Problem, _ play.Regime) bool {
	suites := p.Suites
	if len(suites) == 0 {
		suites = []string{problem.Continuous, problem.Mixed, problem.Noisy, problem.Learning}
	}
	return slices.Contains(suites, q.Suite)
}

// installing keeps two games from making the same environment at once.
var installing sync.Mutex

// Install makes the peer's environment under the folder, unless it is there, and
// returns its interpreter.
func (p Peer) Install(folder, _ string) (python string, err error) {
	installing.Lock()
	defer installing.Unlock()
	wanted := strings.Join(requirements(p.Environment), "\n") + "\n"
	home, err := filepath.Abs(filepath.Join(folder, p.Environment))
	if err != nil {
		return "", err
	}
	stamp, python := filepath.Join(home, "requirements"), filepath.Join(home, "bin", "python")
	if have, err := os.ReadFile(stamp); err == nil && string(have) == wanted {
		return python, nil
	}
	if out, err := exec.Command("python3", "-m", "venv", "--clear", home).CombinedOutput(); err != nil {
		return "", fmt.Errorf("cannot make a Python environment for %s: %w: %s", p.Name, err, lastLine(out))
	}
	install := exec.Command(python, append([]string{"-m", "pip", "install", "--quiet", "--disable-pip-version-check"}, requirements(p.Environment)...)...)
	if out, err := install.CombinedOutput(); err != nil {
		return "", fmt.Errorf("cannot install %s: %w: %s", p.Version(), err, lastLine(out))
	}
	return python, os.WriteFile(stamp, []byte(wanted), 0o644)
}

func lastLine(out []byte) string {
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	return lines[len(lines)-1]
}
