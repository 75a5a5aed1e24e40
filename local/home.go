// Package local runs Vernier on one machine: a supervisor process that starts
// etcd, kube-apiserver, kube-controller-manager, kube-scheduler, the manager and
// a node agent, keeps them running, and stops them; and the functions by which
// commands start it, ask it and stop it.
//
// Everything of an instance lives under one directory of mode 0700, its home,
// and listens on loopback only. Several instances may run side by side, each in
// its own home.
package local

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// Home is the directory of one instance.
type Home string

// DefaultHome is $XDG_STATE_HOME/vernier, or ~/.local/state/vernier.
func DefaultHome(getenv func(string) string) (Home, error) {
	if state := getenv("XDG_STATE_HOME"); filepath.IsAbs(state) {
		return Home(filepath.Join(state, "vernier")), nil
	}
	home := getenv("HOME")
	if !filepath.IsAbs(home) {
		return "", errors.New("no home directory: set HOME, or VERNIER_HOME, or give --home")
	}
	return Home(filepath.Join(home, ".local", "state", "vernier")), nil
}

func (h Home) path(elements ...string) string {
	return filepath.Join(append([]string{string(h)}, elements...)...)
}

// Kubeconfig is the path of the user's kubeconfig.
func (h Home) Kubeconfig() string { return h.path("kubeconfig") }

// AgentRoot is the directory of the node agent.
func (h Home) AgentRoot() string { return h.path("agent") }

// StorePath is the file of the observation store.
func (h Home) StorePath() string { return h.path("store", "observations.db") }

func (h Home) pki() string                         { return h.path("pki") }
func (h Home) log(component string) string         { return h.path("logs", component+".log") }
func (h Home) componentKubeconfig(n string) string { return h.path("kubeconfigs", n) }

// create makes the home and its folders, and checks that nobody else can look
// into it.
func (h Home) create() error {
	for _, dir := range []string{"", "pki", "logs", "kubeconfigs", "etcd", "agent", "store", "run"} {
		if err := os.MkdirAll(h.path(dir), 0o700); err != nil {
			return fmt.Errorf("make the home: %w", err)
		}
	}
	info, err := os.Stat(string(h))
	if err != nil {
		return err
	}
	if info.Mode().Perm()&0o077 != 0 {
		return fmt.Errorf("the home %s can be read by others (mode %o): it holds keys; run chmod 700 %s", h, info.Mode().Perm(), h)
	}
	return nil
}

// exists says whether an instance was ever started in this home.
func (h Home) exists() bool {
	_, err := os.Stat(h.path("ports.json"))
	return err == nil
}

// writeFile replaces a file as a whole, with mode 0600.
func writeFile(path string, data []byte) error {
	temporary, err := os.CreateTemp(filepath.Dir(path), ".tmp-*")
	if err != nil {
		return err
	}
	_, err = temporary.Write(data)
	err = errors.Join(err, temporary.Close())
	if err == nil {
		err = os.Rename(temporary.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(temporary.Name()))
	}
	return nil
}

func writeJSON(path string, value any) error {
	data, err := json.MarshalIndent(value, "", "  ")
	if err != nil {
		return err
	}
	return writeFile(path, append(data, '\n'))
}

// readJSON reads path into value; found is false when there is no such file.
func readJSON(path string, value any) (found bool, err error) {
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	if err := json.Unmarshal(data, value); err != nil {
		return false, fmt.Errorf("%s: %w", path, err)
	}
	return true, nil
}
