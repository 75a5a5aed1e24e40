package trainer_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/vernier-ml/vernier/trainer"
	"github.com/vernier-ml/vernier/trainer/kind"
)

// told is what a program that pushes gets, and the sidecar's arguments.
type told struct {
	Command []string
	Env     map[string]string
	Hosts   bool // /etc/hosts is the sidecar's
	Aliases []corev1.HostAlias
	// Installs says that the sidecar copies the collector for the program.
	Installs bool
	Args     []string // of the sidecar, without those that all kinds have
}

func toldBy(spec corev1.PodSpec, token string) told {
	main, sidecar := spec.Containers[0], spec.InitContainers[len(spec.InitContainers)-1]
	out := told{Command: main.Command, Env: map[string]string{}, Aliases: spec.HostAliases}
	for _, e := range main.Env {
		if e.ValueFrom == nil {
			out.Env[e.Name] = strings.ReplaceAll(e.Value, token, "TOKEN")
		}
	}
	for _, m := range main.VolumeMounts {
		out.Hosts = out.Hosts || m.MountPath == "/etc/hosts" && m.SubPath == "hosts" && m.ReadOnly && m.Name == trainer.MetricsVolume
	}
	out.Installs = slices.Contains(sidecar.Args, "--install=/var/run/vernier/bin/collector")
	for _, a := range sidecar.Args {
		if strings.HasPrefix(a, "--trial") || strings.Contains(a, "address") {
			out.Args = append(out.Args, a)
		}
	}
	return out
}

func pushTokenOf(t *testing.T, spec corev1.PodSpec) string {
	t.Helper()
	for _, e := range spec.InitContainers[len(spec.InitContainers)-1].Env {
		if e.Name == "VERNIER_PUSH_TOKEN" {
			return e.Value
		}
	}
	t.Fatal("the sidecar has no token")
	return ""
}

func TestInjectPushTellsWhereToPush(t *testing.T) {
	hosts := []string{"katib-db-manager.kubeflow", "katib-db-manager.kubeflow.svc", "katib-db-manager.kubeflow.svc.cluster.local", "katib-db-manager"}
	socket := map[string]string{"VERNIER_PUSH_SOCKET": "/var/run/vernier/push.sock"}
	status := "http://127.0.0.1:6790/TOKEN/apis/trainer.kubeflow.org/v1alpha1/namespaces/default/trainjobs/TRIAL/status"
	all := map[string]string{
		"VERNIER_PUSH_SOCKET": "/var/run/vernier/push.sock", "VERNIER_PUSH_URL": "http://127.0.0.1:6790/TOKEN/report",
		"MLFLOW_TRACKING_URI": "http://127.0.0.1:6790/TOKEN", "KUBEFLOW_TRAINER_SERVER_URL": status,
		"KUBEFLOW_TRAINER_SERVER_TOKEN": "/var/run/vernier/push.token",
	}
	ours := map[string]string{"VERNIER_PUSH_SOCKET": all["VERNIER_PUSH_SOCKET"], "VERNIER_PUSH_URL": all["VERNIER_PUSH_URL"]}
	own := []string{"--push-address=127.0.0.1:6790", "--katib-address=127.0.0.1:6789"}
	shared := []string{"--push-address=127.0.0.1:0", "--katib-address=shared:6789"}
	tests := map[string]struct {
		spec   string
		binary string
		want   told
	}{
		"a pod with a network of its own": {
			spec: "containers: [{name: main, image: i}]",
			want: told{Env: all, Aliases: []corev1.HostAlias{{IP: "127.0.0.1", Hostnames: hosts}}, Args: own},
		},
		"what the template sets stays": {
			spec: "hostAliases: [{ip: 10.0.0.1, hostnames: [katib-db-manager.kubeflow]}]\ncontainers: [{name: main, image: i, env: [{name: MLFLOW_TRACKING_URI, value: 'http://mlflow'}]}]",
			want: told{
				Env: map[string]string{
					"VERNIER_PUSH_SOCKET": all["VERNIER_PUSH_SOCKET"], "VERNIER_PUSH_URL": all["VERNIER_PUSH_URL"], "MLFLOW_TRACKING_URI": "http://mlflow",
					"KUBEFLOW_TRAINER_SERVER_URL": status, "KUBEFLOW_TRAINER_SERVER_TOKEN": all["KUBEFLOW_TRAINER_SERVER_TOKEN"],
				},
				Aliases: []corev1.HostAlias{{IP: "10.0.0.1", Hostnames: hosts[:1]}}, Args: own,
			},
		},
		"a token goes to no other server": {
			spec: "hostAliases: [{ip: 10.0.0.1, hostnames: [katib-db-manager.kubeflow]}]\ncontainers: [{name: main, image: i, env: [{name: KUBEFLOW_TRAINER_SERVER_URL, value: 'http://trainer'}]}]",
			want: told{
				Env: map[string]string{
					"VERNIER_PUSH_SOCKET": all["VERNIER_PUSH_SOCKET"], "VERNIER_PUSH_URL": all["VERNIER_PUSH_URL"],
					"MLFLOW_TRACKING_URI": all["MLFLOW_TRACKING_URI"], "KUBEFLOW_TRAINER_SERVER_URL": "http://trainer",
				},
				Aliases: []corev1.HostAlias{{IP: "10.0.0.1", Hostnames: hosts[:1]}}, Args: own,
			},
		},
		"what may come by envFrom is set when the program starts": {
			spec: "containers: [{name: main, image: i, command: [python, train.py], envFrom: [{configMapRef: {name: mlflow}}]}]",
			want: told{
				Command: []string{"/var/run/vernier/bin/collector", "env", "--dir=/var/run/vernier", "--", "python", "train.py"},
				Env:     ours, Aliases: []corev1.HostAlias{{IP: "127.0.0.1", Hostnames: hosts}},
				Installs: true, Args: own,
			},
		},
		"what may come by envFrom is not set for an image's entrypoint": {
			spec: "containers: [{name: main, image: i, envFrom: [{prefix: AWS_, secretRef: {name: s3}}, {secretRef: {name: mlflow}}]}]",
			want: told{Env: ours, Aliases: []corev1.HostAlias{{IP: "127.0.0.1", Hostnames: hosts}}, Args: own},
		},
		"envFrom with a prefix that none of the variables has": {
			spec: "containers: [{name: main, image: i, command: [a], envFrom: [{prefix: AWS_, secretRef: {name: s3}}]}]",
			want: told{Command: []string{"a"}, Env: all, Aliases: []corev1.HostAlias{{IP: "127.0.0.1", Hostnames: hosts}}, Args: own},
		},
		"envFrom that may hold an address gets no token": {
			spec: "containers: [{name: main, image: i, envFrom: [{prefix: KUBEFLOW_TRAINER_SERVER_U, secretRef: {name: s}}]}]",
			want: told{
				Env: map[string]string{
					"VERNIER_PUSH_SOCKET": all["VERNIER_PUSH_SOCKET"], "VERNIER_PUSH_URL": all["VERNIER_PUSH_URL"], "MLFLOW_TRACKING_URI": all["MLFLOW_TRACKING_URI"],
				},
				Aliases: []corev1.HostAlias{{IP: "127.0.0.1", Hostnames: hosts}}, Args: own,
			},
		},
		"processes of one machine": {
			spec: "containers: [{name: main, image: i, command: [python, train.py]}]", binary: "/opt/collector",
			want: told{
				Command: []string{"/opt/collector", "env", "--dir=/var/run/vernier", "--", "python", "train.py"},
				Env:     socket, Hosts: true, Args: shared,
			},
		},
		"a pod on the host's network": {
			spec: "hostNetwork: true\ncontainers: [{name: main, image: i, command: [python, train.py]}]",
			want: told{
				Command: []string{"/var/run/vernier/bin/collector", "env", "--dir=/var/run/vernier", "--", "python", "train.py"},
				Env:     socket, Hosts: true, Installs: true, Args: shared,
			},
		},
		"a pod on the host's network that runs its image's entrypoint": {
			spec: "hostNetwork: true\ncontainers: [{name: main, image: i}]",
			want: told{Env: socket, Hosts: true, Args: shared},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			c := collector(trainer.Push)
			c.Binary = tc.binary
			got := injectedTwice(t, job(t, tc.spec), c)
			for k, v := range tc.want.Env {
				tc.want.Env[k] = strings.ReplaceAll(v, "TRIAL", c.Trial)
			}
			tc.want.Args = append([]string{"--trial=" + c.Trial}, tc.want.Args...)
			if diff := cmp.Diff(tc.want, toldBy(got, pushTokenOf(t, got))); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

func TestWarningsSayWhatTheProgramWillNotFind(t *testing.T) {
	const env = "envFrom: [{configMapRef: {name: c}}]"
	tests := map[string]struct {
		kind, spec string
		want       string // in the problem, or "" for no warning
	}{
		"nothing is missed":        {trainer.Push, "containers: [{name: main, image: i}]", ""},
		"an entrypoint, envFrom":   {trainer.Push, "containers: [{name: a, image: i}, {name: main, image: i, " + env + "}]", "envFrom may set MLFLOW_TRACKING_URI"},
		"a prefix":                 {trainer.Push, "containers: [{name: main, image: i, envFrom: [{prefix: A_, configMapRef: {name: c}}]}]", ""},
		"a command, envFrom":       {trainer.Push, "containers: [{name: main, image: i, command: [a], " + env + "}]", ""},
		"an entrypoint, the host":  {trainer.Push, "hostNetwork: true\ncontainers: [{name: a, image: i}, {name: main, image: i}]", "shares its network"},
		"a command on the host":    {trainer.Push, "hostNetwork: true\ncontainers: [{name: main, image: i, command: [a]}]", ""},
		"another kind":             {trainer.File, "containers: [{name: main, image: i, " + env + "}]", ""},
		"a job that is refused":    {trainer.Push, "containers: [{name: other, image: i, " + env + "}]", ""},
		"a job without containers": {trainer.Push, "restartPolicy: Never", ""},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			obj := job(t, tc.spec)
			var got []string
			for _, w := range trainer.Warnings(obj, kind.For(obj.GroupVersionKind()), collector(tc.kind)) {
				got = append(got, w.Error())
			}
			if tc.want == "" {
				if len(got) > 0 {
					t.Errorf("warnings %q", got)
				}
				return
			}
			if len(got) != 1 || !strings.HasPrefix(got[0], "spec.template.spec.containers[1].command: is missing") || !strings.Contains(got[0], tc.want) {
				t.Errorf("warnings %q, want one of %s", got, tc.want)
			}
		})
	}
}

// The token that the program sees is not the one that reports to the service,
// and no two trials share it.
func TestInjectPushTokensTellNothing(t *testing.T) {
	tokens := sets.New[string]()
	for _, secret := range []string{"a", "b"} {
		c := collector(trainer.Push)
		c.Token = secret
		spec := injected(t, job(t, "containers: [{name: main, image: i}]"), c).Spec
		token := pushTokenOf(t, spec)
		tokens.Insert(token)
		if len(token) < 20 {
			t.Errorf("the token %q can be guessed", token)
		}
		for _, e := range spec.Containers[0].Env {
			if e.Value == secret || e.Name == "VERNIER_REPORT_TOKEN" {
				t.Errorf("the program is told the trial's token: %v", e)
			}
		}
	}
	if tokens.Len() != 2 {
		t.Errorf("tokens: %v", tokens)
	}
}
