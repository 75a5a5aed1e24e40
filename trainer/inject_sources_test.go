package trainer_test

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/vernier-ml/vernier/trainer"
	"github.com/vernier-ml/vernier/trainer/kind"
)

// variables are the environment of a container by name; those taken from a field
// stand as "@" and its path.
func variables(c corev1.Container) map[string]string {
	env := map[string]string{}
	for _, e := range c.Env {
		env[e.Name] = e.Value
		if e.ValueFrom != nil && e.ValueFrom.FieldRef != nil {
			env[e.Name] = "@" + e.ValueFrom.FieldRef.FieldPath
		}
	}
	return env
}

func TestInjectPrometheusMetric(t *testing.T) {
	trial := "@metadata.labels['katib.kubeflow.org/trial']"
	tests := map[string]struct {
		edit     func(*trainer.Collector)
		wantArgs []string
		wantEnv  map[string]string
	}{
		"a port of its own": {
			edit:     func(c *trainer.Collector) { c.Endpoint = trainer.Endpoint{Path: "/metrics"} },
			wantArgs: []string{"--url=http://localhost:22386/metrics"},
			wantEnv:  map[string]string{"KATIB_TRIAL_NAME": trial, "VERNIER_METRICS_PORT": "22386"},
		},
		"everything that Katib has": {
			edit: func(c *trainer.Collector) {
				c.Endpoint = trainer.Endpoint{Scheme: "HTTPS", Host: "::1", Port: 9090, Path: "/m?a=$(b)", Headers: []string{"X-A: $b", "X-C: d"}}
			},
			wantArgs: []string{"--url=https://[::1]:9090/m?a=$$(b)", "--header=X-A: $$b", "--header=X-C: d"},
			wantEnv:  map[string]string{"KATIB_TRIAL_NAME": trial, "VERNIER_METRICS_PORT": "9090"},
		},
		"a machine whose network trials share": {
			edit: func(c *trainer.Collector) {
				c.Endpoint, c.Binary = trainer.Endpoint{Port: 8080, Path: "/metrics"}, "/opt/collector"
			},
			wantArgs: []string{"--url=http://localhost:8080/metrics", "--shared-network"},
			wantEnv:  map[string]string{"KATIB_TRIAL_NAME": trial, "VERNIER_METRICS_PORT": "8080", "VERNIER_POD_UID": "@metadata.uid"},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			c := collector(trainer.PrometheusMetric)
			tc.edit(&c)
			obj := job(t, "containers: [{name: main, image: i}]")
			injected(t, obj, c)
			got := injected(t, obj, c)
			sidecar := got.Spec.InitContainers[0]
			want := slices.Concat([]string{"--kind=PrometheusMetric", "--dir=/var/run/vernier"}, tc.wantArgs,
				[]string{"--metric=loss", "--metric=acc=$$(x)", "--grace=25s"})
			if diff := cmp.Diff(want, sidecar.Args); diff != "" {
				t.Errorf("arguments (-want +got)\n%s", diff)
			}
			if diff := cmp.Diff(tc.wantEnv, variables(got.Spec.Containers[0])); diff != "" {
				t.Errorf("variables of the program (-want +got)\n%s", diff)
			}
			if sidecar.Name != trainer.Sidecar || sidecar.StartupProbe == nil || got.Spec.Containers[0].Command != nil {
				t.Errorf("sidecar %s with the probe %v beside the command %q", sidecar.Name, sidecar.StartupProbe, got.Spec.Containers[0].Command)
			}
		})
	}
}

// On the host's network a fixed port is one for all trials of a node.
func TestInjectRefusesAFixedPortOnTheHostsNetwork(t *testing.T) {
	tests := map[string]struct {
		network  string
		endpoint trainer.Endpoint
		refused  bool
	}{
		"a fixed port":                      {"hostNetwork: true", trainer.Endpoint{Port: 9090}, true},
		"a fixed port of localhost":         {"hostNetwork: true", trainer.Endpoint{Port: 9090, Host: "LocalHost"}, true},
		"a fixed port of another loopback":  {"hostNetwork: true", trainer.Endpoint{Port: 9090, Host: "127.0.0.2"}, true},
		"a fixed port of the sixth version": {"hostNetwork: true", trainer.Endpoint{Port: 9090, Host: "::1"}, true},
		"a fixed port of no address":        {"hostNetwork: true", trainer.Endpoint{Port: 9090, Host: "0.0.0.0"}, true},
		"a port of the trial's own":         {"hostNetwork: true", trainer.Endpoint{}, false},
		"another machine":                   {"hostNetwork: true", trainer.Endpoint{Port: 9090, Host: "metrics.example.com"}, false},
		"a network of the pod's own":        {"hostNetwork: false", trainer.Endpoint{Port: 9090}, false},
		"nothing is said about the network": {"restartPolicy: Never", trainer.Endpoint{Port: 9090}, false},
	}
	for name, tc := range tests {
		for _, binary := range []string{"", "/opt/collector"} {
			t.Run(name+" "+binary, func(t *testing.T) {
				c := collector(trainer.PrometheusMetric)
				c.Endpoint, c.Binary = tc.endpoint, binary
				obj := job(t, tc.network+"\ncontainers: [{name: main, image: i}]")
				before := obj.DeepCopy()
				err := trainer.Inject(obj, kind.For(obj.GroupVersionKind()), c)
				if !tc.refused {
					if err != nil {
						t.Error(err)
					}
					return
				}
				faults := trainer.FieldErrors(err)
				if len(faults) != 1 || faults[0].Field != "spec.template.spec.hostNetwork" || !strings.Contains(faults[0].Problem, "port: auto") {
					t.Errorf("the fault is %v", err)
				}
				if diff := cmp.Diff(before.Object, obj.Object); diff != "" {
					t.Errorf("the job changed\n%s", diff)
				}
			})
		}
	}
}

// TestTrialsGetPortsOfTheirOwn holds that ports differ between the trials of an
// experiment, and stay below those that Linux gives to outgoing connections.
func TestTrialsGetPortsOfTheirOwn(t *testing.T) {
	ports := map[int]bool{}
	for n := range 100 {
		trial := fmt.Sprintf("exp-%04d", n*97)
		port := ownPort(t, "a", trial)
		if port < 20000 || port > 31999 {
			t.Errorf("trial %s got the port %d", trial, port)
		}
		ports[port] = true
	}
	if len(ports) < 100 {
		t.Errorf("100 trials share %d ports", len(ports))
	}
}

// Experiments of one name in several namespaces run on one machine.
func TestNamespacesGetPortsOfTheirOwn(t *testing.T) {
	for _, trial := range []string{"exp-0001", "no-number"} {
		ports := map[int]string{}
		for _, namespace := range []string{"", "a", "b", "team-a", "team-b"} {
			port := ownPort(t, namespace, trial)
			if other, taken := ports[port]; taken {
				t.Errorf("%s has the port %d in the namespaces %q and %q", trial, port, other, namespace)
			}
			ports[port] = namespace
		}
	}
}

// ownPort is the port that a trial gets.
func ownPort(t *testing.T, namespace, trial string) int {
	t.Helper()
	c := collector(trainer.PrometheusMetric)
	c.Trial = trial
	obj := job(t, "containers: [{name: main, image: i}]")
	obj.SetNamespace(namespace)
	port, err := strconv.Atoi(variables(injected(t, obj, c).Spec.Containers[0])[trainer.EnvMetricsPort])
	if err != nil {
		t.Fatal(err)
	}
	return port
}

func TestInjectWandbWritesItsFilesOffline(t *testing.T) {
	tests := map[string]struct {
		env  string
		want map[string]string
	}{
		"a program that says nothing": {"[]", map[string]string{"WANDB_MODE": "offline", "WANDB_DIR": "/data/runs"}},
		"a program that chooses":      {"[{name: WANDB_DIR, value: /data/runs/mine}]", map[string]string{"WANDB_MODE": "offline", "WANDB_DIR": "/data/runs/mine"}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			c := collector(trainer.File)
			c.Path, c.Directory, c.Format = "/data/runs", true, trainer.FormatWandb
			obj := job(t, "containers: [{name: main, image: i, env: "+tc.env+"}]")
			injected(t, obj, c)
			got := injected(t, obj, c)
			env := variables(got.Spec.Containers[0])
			delete(env, trainer.EnvTrialName)
			if diff := cmp.Diff(tc.want, env); diff != "" {
				t.Errorf("variables of the program (-want +got)\n%s", diff)
			}
			args := got.Spec.InitContainers[0].Args
			if !slices.Contains(args, "--path=/data/runs/") || !slices.Contains(args, "--format=WANDB") {
				t.Errorf("arguments %q, want the directory with a slash and the format", args)
			}
			if mounts := got.Spec.InitContainers[0].VolumeMounts; len(mounts) != 2 || mounts[1].MountPath != "/data/runs" {
				t.Errorf("the sidecar's mounts are %v, want the directory itself", mounts)
			}
		})
	}
}
