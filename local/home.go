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
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/vernier-ml/vernier/local/statefile"
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

// maxSocketPath is how long the path of a unix socket may be.
const maxSocketPath = 107

// DBManager is the address at which Katib's SDK reads metrics (db_manager_address): a
// socket in the home, since that protocol has no credentials. It is empty where the
// home's path is too long for one.
func (h Home) DBManager() string {
	path, err := filepath.Abs(h.path("run", "katib-db-manager.sock"))
	if err != nil || len(path) > maxSocketPath {
		return ""
	}
	return "unix:" + path
}

func (h Home) pki() string                         { return h.path("pki") }
func (h Home) log(component string) string         { return h.path("logs", component+".log") }
func (h Home) componentKubeconfig(n string) string { return h.path("kubeconfigs", n) }

// The folders and files of an instance, and nothing else, are removed with it.
var (
	homeFolders = []string{"pki", "logs", "kubeconfigs", "etcd", "agent", "store", "run"}
	homeFiles   = []string{"kubeconfig", portsFile, resourcesFile, homeMarker}
)

const (
	portsFile = "ports.json"
	// homeMarker says that a directory is the home of an instance.
	homeMarker = "vernier-home.txt"
	markerText = "This directory is the home of a Vernier instance. To remove it: vernier down --delete\n"
)

// create makes the home and its folders, and checks that it is ours alone.
func (h Home) create() error {
	if err := os.MkdirAll(string(h), 0o700); err != nil {
		return fmt.Errorf("make the home: %w", err)
	}
	info, err := os.Stat(string(h))
	if err != nil {
		return err
	}
	if info.Mode().Perm()&0o077 != 0 {
		return fmt.Errorf("the home %s can be read by others (mode %o): it holds keys; run chmod 700 %s", h, info.Mode().Perm(), h)
	}
	entries, err := os.ReadDir(string(h))
	if err != nil {
		return err
	}
	// Another start may be writing the marker now.
	entries = slices.DeleteFunc(entries, func(e os.DirEntry) bool { return strings.HasPrefix(e.Name(), "."+homeMarker) })
	if len(entries) > 0 && !h.exists() {
		return fmt.Errorf("%s holds files of others (%s, for instance) and is not the home of an instance: name a directory that is empty or does not exist yet", h, entries[0].Name())
	}
	if !fileExists(h.path(homeMarker)) {
		if err := statefile.Write(h.path(homeMarker), []byte(markerText), 0o600); err != nil {
			return err
		}
	}
	for _, dir := range homeFolders {
		if err := os.MkdirAll(h.path(dir), 0o700); err != nil {
			return fmt.Errorf("make the home: %w", err)
		}
	}
	return nil
}

// exists reports whether the directory is a home. Those of before the marker are
// known by their ports.
func (h Home) exists() bool { return fileExists(h.path(homeMarker)) || fileExists(h.path(portsFile)) }

func fileExists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}
