package trainer_test

import (
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"

	"github.com/vernier-ml/vernier/trainer"
	"github.com/vernier-ml/vernier/trainer/kind"
)

// variables are the environment of a container by name; the value of one from a
// field is "@" and the field's path.
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
			wantArgs: []string{"--url=https://[::1]:9090/m?a=$$(b)"},
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
			if sidecar.Name != trainer.Sidecar || hook(sidecar) == nil || got.Spec.Containers[0].Command != nil {
				t.Errorf("sidecar %s with the hook %v beside the command %q", sidecar.Name, hook(sidecar), got.Spec.Containers[0].Command)
			}
		})
	}
}

// Headers contain credentials, so they are not arguments, which every user of the
// node can see.
func TestInjectHandsHeadersOverByTheEnvironment(t *testing.T) {
	secret := func(name, key string) *corev1.EnvVarSource {
		return &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{LocalObjectReference: corev1.LocalObjectReference{Name: name}, Key: key}}
	}
	optional := true
	tests := map[string]struct {
		env     string // of the primary container
		headers []string
		want    []corev1.EnvVar
		fault   string
	}{
		"none": {env: "[]"},
		"values that stand in the experiment": {
			env: "[]", headers: []string{"Authorization: Bearer s3cret", "X-B: $b$"},
			want: []corev1.EnvVar{{Name: "VERNIER_SCRAPE_HEADERS", Value: "Authorization: Bearer s3cret\nX-B: $$b$$"}},
		},
		"values of a Secret and a ConfigMap, one twice": {
			env: `[{name: TOKEN, valueFrom: {secretKeyRef: {name: api, key: token}}},
  {name: PATH, valueFrom: {configMapKeyRef: {name: c, key: k, optional: true}}}, {name: OTHER, value: x}]`,
			headers: []string{"Authorization: Bearer $(TOKEN)", "X: $(PATH)$(TOKEN)$"},
			want: []corev1.EnvVar{
				{Name: "VERNIER_SCRAPE_HEADER_TOKEN", ValueFrom: secret("api", "token")},
				{Name: "VERNIER_SCRAPE_HEADER_PATH", ValueFrom: &corev1.EnvVarSource{ConfigMapKeyRef: &corev1.ConfigMapKeySelector{LocalObjectReference: corev1.LocalObjectReference{Name: "c"}, Key: "k", Optional: &optional}}},
				{Name: "VERNIER_SCRAPE_HEADERS", Value: "Authorization: Bearer $(VERNIER_SCRAPE_HEADER_TOKEN)\nX: $(VERNIER_SCRAPE_HEADER_PATH)$(VERNIER_SCRAPE_HEADER_TOKEN)$$"},
			},
		},
		"text that looks like a variable": {
			env: "[]", headers: []string{"X: $$(TOKEN) $(a b) $()"},
			want: []corev1.EnvVar{{Name: "VERNIER_SCRAPE_HEADERS", Value: "X: $$(TOKEN) $$(a b) $$()"}},
		},
		"a variable that is not there": {env: "[{name: TOKEN, value: x}]", headers: []string{"X: $(TOKN)"}, fault: "spec.template.spec.containers[0].env: has no variable TOKN whose value comes from a Secret or a ConfigMap"},
		"a variable with a value":      {env: "[{name: TOKEN, value: x}]", headers: []string{"X: $(TOKEN)"}, fault: "spec.template.spec.containers[0].env: has no variable TOKEN whose value comes from"},
		"a variable of a field":        {env: "[{name: TOKEN, valueFrom: {fieldRef: {fieldPath: metadata.name}}}]", headers: []string{"X: $(TOKEN)"}, fault: "no variable TOKEN whose value comes from"},
		"a source that is none":        {env: "[{name: TOKEN, valueFrom: {secretKeyRef: a}}]", headers: []string{"X: $(TOKEN)"}, fault: "the source of the variable TOKEN cannot be read"},
		"a line break":                 {env: "[]", headers: []string{"X: a\nY: b"}, fault: `the header "X" of the endpoint has a line break`},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			c := collector(trainer.PrometheusMetric)
			c.Endpoint = trainer.Endpoint{Port: 9090, Path: "/metrics", Headers: tc.headers}
			obj := job(t, "containers: [{name: main, image: i, env: "+tc.env+"}]")
			if tc.fault != "" {
				if err := trainer.Inject(obj, kind.For(obj.GroupVersionKind()), c); err == nil || !strings.Contains(err.Error(), tc.fault) {
					t.Errorf("the fault is %v, want %s", err, tc.fault)
				}
				return
			}
			injected(t, obj, c)
			sidecar := injected(t, obj, c).Spec.InitContainers[0]
			got := slices.DeleteFunc(sidecar.Env, func(e corev1.EnvVar) bool { return !strings.HasPrefix(e.Name, "VERNIER_SCRAPE_") })
			if diff := cmp.Diff(tc.want, got, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("variables (-want +got)\n%s", diff)
			}
			if args := strings.Join(sidecar.Args, " "); strings.Contains(args, "s3cret") || strings.Contains(args, "header") {
				t.Errorf("everybody on the node sees %s", args)
			}
		})
	}
}

// On the host's network, all trials of a node share a fixed port.
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

// TestTrialsGetPortsOfTheirOwn verifies that ports differ between the trials of an
// experiment, and are below those that Linux uses for outgoing connections.
func TestTrialsGetPortsOfTheirOwn(t *testing.T) {
	ports := map[int]bool{}
	for n := range 100 {
		port := ownPort(t, "a", n*97)
		if port < 20000 || port > 31999 {
			t.Errorf("trial %d got the port %d", n*97, port)
		}
		ports[port] = true
	}
	if len(ports) < 100 {
		t.Errorf("100 trials share %d ports", len(ports))
	}
}

// Experiments of one name in several namespaces run on one machine.
func TestNamespacesGetPortsOfTheirOwn(t *testing.T) {
	for _, trial := range []int{1, -1} {
		ports := map[int]string{}
		for _, namespace := range []string{"", "a", "b", "team-a", "team-b"} {
			port := ownPort(t, namespace, trial)
			if other, taken := ports[port]; taken {
				t.Errorf("trial %d has the port %d in the namespaces %q and %q", trial, port, other, namespace)
			}
			ports[port] = namespace
		}
	}
}

// ownPort is the port that the trial with a number gets.
func ownPort(t *testing.T, namespace string, number int) int {
	t.Helper()
	c := collector(trainer.PrometheusMetric)
	c.Number = number
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

func TestInjectTellsTheSeed(t *testing.T) {
	for name, tc := range map[string]struct{ env, seed, want string }{
		"the seed of the trial":      {"[]", "77", "77"},
		"the template's own is kept": {"[{name: VERNIER_TRIAL_SEED, value: \"1\"}]", "77", "1"},
		"a trial made by hand":       {"[]", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			c := collector(trainer.File)
			c.Path, c.Seed = "/data/metrics", tc.seed
			got := injected(t, job(t, "containers: [{name: main, image: i, env: "+tc.env+"}]"), c)
			if seed := variables(got.Spec.Containers[0])[trainer.EnvTrialSeed]; seed != tc.want {
				t.Errorf("%s is %q, want %q", trainer.EnvTrialSeed, seed, tc.want)
			}
		})
	}
}

// A container that may be restarted in its pod tells the sidecar about each start.
func TestInjectTellsOfFurtherStarts(t *testing.T) {
	const binary = "/var/run/vernier/bin/collector"
	for name, test := range map[string]struct {
		kind string
		spec string
		want []string
	}{
		"File":             {trainer.File, "restartPolicy: OnFailure\ncontainers: [{name: main, image: i, command: [train, now]}]", []string{binary, "env", "--dir=/var/run/vernier", "--", "train", "now"}},
		"Push":             {trainer.Push, "restartPolicy: Always\ncontainers: [{name: main, image: i, command: [train]}]", []string{binary, "env", "--dir=/var/run/vernier", "--", "train"}},
		"PrometheusMetric": {trainer.PrometheusMetric, "restartPolicy: OnFailure\ncontainers: [{name: main, image: i, command: [train]}]", []string{binary, "env", "--dir=/var/run/vernier", "--", "train"}},
		"event files":      {trainer.TensorFlowEvent, "restartPolicy: OnFailure\ncontainers: [{name: main, image: i, command: [train]}]", []string{"train"}},
		"never":            {trainer.File, "restartPolicy: Never\ncontainers: [{name: main, image: i, command: [train]}]", []string{"train"}},
		"no command":       {trainer.File, "restartPolicy: OnFailure\ncontainers: [{name: main, image: i}]", nil},
	} {
		t.Run(name, func(t *testing.T) {
			c := collector(test.kind)
			c.Endpoint.Port = 9090
			got := injected(t, job(t, test.spec), c)
			if diff := cmp.Diff(test.want, got.Spec.Containers[0].Command); diff != "" {
				t.Errorf("command (-want +got):\n%s", diff)
			}
		})
	}
}
