//go:build e2e

package e2e

import (
	"io"
	"log"
	"net"
	"net/http"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

// privateRegistry is an address of this machine from which the nodes pull.
const privateRegistry = "10.89.0.1:5000"

// TestAPrivateImageSaysWhatItRuns runs an image that wants a password, in a container
// without a command. The kubelet has the password from the pull secret, and the manager
// after it may read that.
func TestAPrivateImageSaysWhatItRuns(t *testing.T) {
	i := cluster(t)
	image := privateRegistry + "/team/train:1"
	serveImage(t, image, filepath.Join(i.home, "busybox.tar"), &authn.Basic{Username: "ada", Password: "right"})
	i.kubectl(t, "create", "secret", "docker-registry", "registry-key", "--docker-server="+privateRegistry, "--docker-username=ada", "--docker-password=right")
	t.Cleanup(func() { i.kubectl(t, "delete", "secret/registry-key") })
	e := jobExperiment{name: "private", algorithm: "random", parallel: 1, max: 2, maxFailed: 0, command: `[]`}.object(t)
	changeJob(t, e, func(_, pod map[string]any) {
		c := pod["containers"].([]any)[0].(map[string]any)
		delete(c, "command")
		c["image"], c["args"] = image, []any{"echo loss=${trialParameters.x}"}
		pod["imagePullSecrets"] = []any{map[string]any{"name": "registry-key"}}
	})
	if err := i.client.Create(t.Context(), e); err != nil {
		t.Fatal(err)
	}
	i.awaitMessage(t, time.Minute, "private", image, "wants other credentials", "default/registry-key")
	// What docs/install.md says.
	i.kubectl(t, "create", "role", "vernier-pull-secrets", "--verb=get", "--resource=secrets", "--resource-name=registry-key")
	t.Cleanup(func() { i.kubectl(t, "delete", "role/vernier-pull-secrets") })
	i.kubectl(t, "create", "rolebinding", "vernier-pull-secrets", "--role=vernier-pull-secrets", "--serviceaccount=vernier-system:vernier-manager")
	t.Cleanup(func() { i.kubectl(t, "delete", "rolebinding/vernier-pull-secrets") })
	i.awaitEnd(t, "private")
	trials := i.trials(t, "private")
	checkTrials(t, "private", 2, trials)
	for _, trial := range trials {
		if o := trial.Status.Observation; o == nil || o.Metrics[0].Latest != trial.Spec.ParameterAssignments[0].Value {
			t.Errorf("%s observed %+v", trial.Name, o)
		}
	}
}

// serveImage has a registry with one image until the test ends: that of a file, made to
// run a shell.
func serveImage(t *testing.T, named, file string, key *authn.Basic) {
	t.Helper()
	l, err := net.Listen("tcp", privateRegistry)
	if err != nil {
		t.Fatal(err)
	}
	images := registry.New(registry.Logger(log.New(io.Discard, "", 0)))
	server := &http.Server{ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if user, password, _ := r.BasicAuth(); user != key.Username || password != key.Password {
			w.Header().Set("WWW-Authenticate", `Basic realm="test"`)
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		images.ServeHTTP(w, r)
	})}
	go func() { _ = server.Serve(l) }()
	t.Cleanup(func() { _ = server.Close() })
	image, err := tarball.ImageFromPath(file, nil)
	if err != nil {
		t.Fatal(err)
	}
	config, err := image.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	runs := *config.Config.DeepCopy()
	runs.Entrypoint, runs.Cmd = []string{"sh", "-c"}, []string{"exit 1"}
	if image, err = mutate.Config(image, runs); err != nil {
		t.Fatal(err)
	}
	ref, err := name.ParseReference(named)
	if err != nil {
		t.Fatal(err)
	}
	if err := remote.Write(ref, image, remote.WithAuth(key)); err != nil {
		t.Fatal(err)
	}
}
