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
	"io/fs"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/vernier-ml/vernier/local/statefile"
	"github.com/vernier-ml/vernier/trainer"
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

// APIToken is the file with the token of the programmatic API.
func (h Home) APIToken() string { return h.path(apiTokenFile) }

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
	homeFiles   = []string{"kubeconfig", apiTokenFile, portsFile, resourcesFile, homeMarker}
)

const (
	portsFile    = "ports.json"
	apiTokenFile = "api.token"
	// homeMarker says that a directory is the home of an instance.
	homeMarker = "vernier-home.txt"
	markerText = "This directory is the home of a Vernier instance. To remove it: vernier down --delete\n"
)

// otherHome is what to do about a home that cannot be used.
const otherHome = "--home or VERNIER_HOME names another"

// create makes the home and its folders, and checks that it is ours alone.
func (h Home) create() error {
	if err := os.MkdirAll(string(h), 0o700); err != nil {
		return fmt.Errorf("make the home: %w; %s", err, otherHome)
	}
	if err := h.refuseOthers(); err != nil {
		return err
	}
	info, err := os.Stat(string(h))
	if err != nil {
		return err
	}
	if info.Mode().Perm()&0o077 != 0 {
		return fmt.Errorf("the home %s can be read by others (mode %o): it holds keys; run chmod 700 %s", h, info.Mode().Perm(), h)
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

// refuseOthers says what keeps a directory from being a home.
func (h Home) refuseOthers() error {
	entries, err := os.ReadDir(string(h))
	if err != nil {
		return err
	}
	// Another start may be writing the marker now.
	entries = slices.DeleteFunc(entries, func(e os.DirEntry) bool { return strings.HasPrefix(e.Name(), "."+homeMarker) })
	if len(entries) > 0 && !h.Exists() {
		return fmt.Errorf("%s holds files of others (%s, for instance) and is not the home of an instance: name a directory that is empty or does not exist yet", h, entries[0].Name())
	}
	return nil
}

// Exists reports whether the directory is a home. Those of before the marker are
// known by their ports.
func (h Home) Exists() bool { return fileExists(h.path(homeMarker)) || fileExists(h.path(portsFile)) }

func fileExists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// ports are the loopback ports of an instance. They are chosen once and kept, so
// that kubeconfigs stay good; one that another program has taken meanwhile is
// chosen anew.
type ports struct {
	EtcdClient        int `json:"etcdClient"`
	EtcdPeer          int `json:"etcdPeer"`
	APIServer         int `json:"apiServer"`
	ControllerManager int `json:"controllerManager"`
	Scheduler         int `json:"scheduler"`
	Kubelet           int `json:"kubelet"`
	Report            int `json:"report"`
	Webhook           int `json:"webhook"`
	Metrics           int `json:"metrics"`
	Health            int `json:"health"`
}

func (p *ports) all() []*int {
	return []*int{&p.EtcdClient, &p.EtcdPeer, &p.APIServer, &p.ControllerManager, &p.Scheduler, &p.Kubelet, &p.Report, &p.Webhook, &p.Metrics, &p.Health}
}

// Ports are chosen from firstPort to lastPort, below those that systems give to
// outgoing connections (from 32768 on Linux): a client that asks again and again
// for a component that is down could otherwise be given the component's own port
// and keep the component from coming back.
const (
	firstPort = 16384
	lastPort  = 32767
)

// choosePorts keeps those of before that are free and chooses the others. All
// are held open until all are chosen, so that none is chosen twice. While one of before is
// taken, again waits and says whether to try it again.
func choosePorts(before ports, again func() bool) (ports, error) {
	chosen := before
	var held []net.Listener
	defer func() {
		for _, l := range held {
			_ = l.Close()
		}
	}()
	for _, p := range chosen.all() {
		l, err := listenOrElse(*p, again)
		if err != nil {
			return ports{}, err
		}
		held = append(held, l)
		*p = l.Addr().(*net.TCPAddr).Port
	}
	return chosen, nil
}

// listenOrElse takes port if it is free, and otherwise any that is. It starts at
// a random place, so that instances that start together rarely meet.
func listenOrElse(port int, again func() bool) (net.Listener, error) {
	for try := port != 0; try; {
		l, err := net.Listen("tcp", address(port))
		if err == nil {
			return l, nil
		}
		try = errors.Is(err, syscall.EADDRINUSE) && again()
	}
	const count = lastPort - firstPort + 1
	start := rand.IntN(count)
	for i := range count {
		if l, err := net.Listen("tcp", address(firstPort+(start+i)%count)); err == nil {
			return l, nil
		}
	}
	return nil, fmt.Errorf("no port from %d to %d is free on 127.0.0.1", firstPort, lastPort)
}

// portsWait is how long the components of a supervisor that was killed may take to end.
const portsWait = 2 * time.Second

func notAgain() bool { return false }

// until tries again every few moments until a time.
func until(end time.Time) func() bool {
	return func() bool {
		<-time.After(20 * time.Millisecond)
		return time.Now().Before(end)
	}
}

// ensurePorts reads the instance's ports and chooses those that it lacks; see choosePorts.
func (h Home) ensurePorts(again func() bool) (ports, error) {
	var before ports
	err := statefile.ReadJSON(h.path(portsFile), &before)
	if err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, statefile.ErrCorrupt) {
		return ports{}, err
	}
	chosen, err := choosePorts(before, again)
	if err != nil {
		return ports{}, err
	}
	return chosen, statefile.WriteJSON(h.path(portsFile), chosen)
}

func address(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }

// Resources are what an instance's node offers, kept in its home. The zero value
// of a field is all that is found on the machine.
type Resources struct {
	CPU    string `json:"cpu,omitempty"`    // a quantity of cores
	Memory string `json:"memory,omitempty"` // a quantity of bytes
	// GPUs are UUIDs, joined by commas; "none" offers none.
	GPUs string `json:"gpus,omitempty"`
	// GPUSharing is how many pods may hold one GPU at a time; 0 is 1.
	GPUSharing int `json:"gpuSharing,omitempty"`
	// ImageCommands are what images run, as IMAGE=COMMAND; see trainer.ParseCommands.
	ImageCommands []string `json:"imageCommands,omitempty"`
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
	if r.GPUSharing < 0 || r.GPUSharing > 64 {
		return fmt.Errorf("a GPU can be shared by 1 to 64 trials, not %d", r.GPUSharing)
	}
	if _, err := trainer.ParseCommands(r.ImageCommands); err != nil {
		return err
	}
	if err := h.create(); err != nil {
		return err
	}
	return statefile.WriteJSON(h.path(resourcesFile), r)
}

// resourceFlags are the flags of the agent and of the manager for the resources of a
// home.
func (h Home) resourceFlags() (node, manager []string, err error) {
	var r Resources
	err = statefile.ReadJSON(h.path(resourcesFile), &r)
	if err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, statefile.ErrCorrupt) {
		return nil, nil, err
	}
	for _, f := range []struct{ name, value string }{{"cpu", r.CPU}, {"memory", r.Memory}, {"gpus", r.GPUs}} {
		if f.value != "" {
			node = append(node, "--"+f.name+"="+strings.TrimSuffix(f.value, "none"))
		}
	}
	if r.GPUSharing > 1 {
		node = append(node, fmt.Sprintf("--gpu-sharing=%d", r.GPUSharing))
	}
	for _, pair := range r.ImageCommands {
		manager = append(manager, "--image-command="+pair)
	}
	return node, manager, nil
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

// foldersOf are the folders of a PATH that are there, each once.
func foldersOf(path string) (folders []string) {
	for _, folder := range filepath.SplitList(path) {
		if info, err := os.Stat(folder); err == nil && info.IsDir() && !slices.Contains(folders, filepath.Clean(folder)) {
			folders = append(folders, filepath.Clean(folder))
		}
	}
	return folders
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
		if here := getenv(name); here != shell[name] && (name != "PATH" || !slices.Equal(foldersOf(here), foldersOf(shell[name]))) {
			differ = append(differ, fmt.Sprintf("%s is %q there and %q here", name, shell[name], here))
		}
	}
	if len(differ) == 0 {
		return ""
	}
	return "trials find their programs as the shell that started the instance did: " + strings.Join(differ, "; ") +
		". For those of this shell: vernier down, then vernier up"
}
