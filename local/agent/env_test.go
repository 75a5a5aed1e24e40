package agent

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
)

// stored is a set of objects by name.
type stored struct {
	configMaps map[string]map[string]string
	secrets    map[string]map[string]string
}

func (s stored) Data(_ context.Context, kind objectKind, _, name string) (map[string][]byte, error) {
	objects := s.configMaps
	if kind == secret {
		objects = s.secrets
	}
	data, ok := objects[name]
	if !ok {
		return nil, apierrors.NewNotFound(schema.GroupResource{Resource: string(kind)}, name)
	}
	out := map[string][]byte{}
	for k, v := range data {
		out[k] = []byte(v)
	}
	return out, nil
}

func TestExpand(t *testing.T) {
	vars := environment{"A": "1", "B": "$(A)", "EMPTY": ""}
	tests := map[string]struct{ in, want string }{
		"plain":                         {"abc", "abc"},
		"a reference":                   {"x$(A)y", "x1y"},
		"two references":                {"$(A)$(A)", "11"},
		"a value is not expanded again": {"$(B)", "$(A)"},
		"unknown stays":                 {"$(NONE)", "$(NONE)"},
		"empty value":                   {"[$(EMPTY)]", "[]"},
		"escaped":                       {"$$(A)", "$(A)"},
		"escaped dollar, then a value":  {"$$$(A)", "$1"},
		"two escapes":                   {"$$$$(A)", "$$(A)"},
		"shell variables stay":          {"$HOME ${HOME}", "$HOME ${HOME}"},
		"a dollar at the end":           {"cost $", "cost $"},
		"not closed":                    {"$(A", "$(A"},
		"not closed, then text":         {"$(A $$", "$(A $"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := expand(test.in, vars); got != test.want {
				t.Errorf("expand(%q) = %q, want %q", test.in, got, test.want)
			}
		})
	}
}

func FuzzExpand(f *testing.F) {
	for _, s := range []string{"$(A)", "$$(A)", "$(", "$", "$$", "a$(b$(A))"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		// Whatever the text, escaping each dollar gives the text back.
		if got := expand(strings.ReplaceAll(s, "$", "$$"), environment{"A": "!"}); got != s {
			t.Errorf("expand(escape(%q)) = %q", s, got)
		}
		expand(s, nil)
	})
}

func TestMakeEnv(t *testing.T) {
	objects := stored{
		configMaps: map[string]map[string]string{"c": {"A": "from-c", "B": "b", "bad=name": "x", "dotted.name": "d"}},
		secrets:    map[string]map[string]string{"s": {"key": "shh", "A": "from-s"}},
	}
	ref := func(name string) corev1.LocalObjectReference { return corev1.LocalObjectReference{Name: name} }
	fromC := corev1.EnvFromSource{ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: ref("c")}}
	fromS := corev1.EnvFromSource{SecretRef: &corev1.SecretEnvSource{LocalObjectReference: ref("s")}}
	key := func(name, key string, optional bool) corev1.EnvVar {
		return corev1.EnvVar{Name: "K", ValueFrom: &corev1.EnvVarSource{ConfigMapKeyRef: &corev1.ConfigMapKeySelector{LocalObjectReference: ref(name), Key: key, Optional: ptr.To(optional)}}}
	}
	field := func(path string) corev1.EnvVar {
		return corev1.EnvVar{Name: "F", ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: path}}}
	}
	amount := func(name, divisor string) corev1.EnvVar {
		sel := &corev1.ResourceFieldSelector{Resource: name}
		if divisor != "" {
			sel.Divisor = resource.MustParse(divisor)
		}
		return corev1.EnvVar{Name: "R", ValueFrom: &corev1.EnvVarSource{ResourceFieldRef: sel}}
	}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p", Namespace: "ns", UID: "u", Labels: map[string]string{"a/b": "l"}, Annotations: map[string]string{"x": "y"}},
		Spec: corev1.PodSpec{ServiceAccountName: "sa"}}
	tests := map[string]struct {
		container corev1.Container
		base      []corev1.EnvVar
		over      []corev1.EnvVar
		want      []string
		wantErr   string
	}{
		"base only": {base: []corev1.EnvVar{{Name: "PATH", Value: "/bin"}}, want: []string{"PATH=/bin"}},
		"envFrom, names that cannot be are skipped": {container: corev1.Container{EnvFrom: []corev1.EnvFromSource{fromC}}, want: []string{"A=from-c", "B=b", "dotted.name=d"}},
		"the later envFrom wins":                    {container: corev1.Container{EnvFrom: []corev1.EnvFromSource{fromC, fromS}}, want: []string{"A=from-s", "B=b", "dotted.name=d", "key=shh"}},
		"a prefix":                                  {container: corev1.Container{EnvFrom: []corev1.EnvFromSource{{Prefix: "P_", SecretRef: fromS.SecretRef}}}, want: []string{"P_A=from-s", "P_key=shh"}},
		"env beats envFrom":                         {container: corev1.Container{EnvFrom: []corev1.EnvFromSource{fromS}, Env: []corev1.EnvVar{{Name: "A", Value: "own"}}}, want: []string{"A=own", "key=shh"}},
		"references to what stands before":          {container: corev1.Container{Env: []corev1.EnvVar{{Name: "X", Value: "1"}, {Name: "Y", Value: "$(X)$(Z)"}, {Name: "Z", Value: "3"}}}, want: []string{"X=1", "Y=1$(Z)", "Z=3"}},
		"over beats all":                            {container: corev1.Container{Env: []corev1.EnvVar{{Name: "CUDA_VISIBLE_DEVICES", Value: "0"}}}, over: []corev1.EnvVar{{Name: "CUDA_VISIBLE_DEVICES", Value: "GPU-a"}}, want: []string{"CUDA_VISIBLE_DEVICES=GPU-a"}},
		"a missing ConfigMap":                       {container: corev1.Container{EnvFrom: []corev1.EnvFromSource{{ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: ref("none")}}}}, wantErr: `"none" not found`},
		"an optional ConfigMap":                     {container: corev1.Container{EnvFrom: []corev1.EnvFromSource{{ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: ref("none"), Optional: ptr.To(true)}}}}, want: []string{}},
		"a key":                                     {container: corev1.Container{Env: []corev1.EnvVar{key("c", "B", false)}}, want: []string{"K=b"}},
		"a missing key":                             {container: corev1.Container{Env: []corev1.EnvVar{key("c", "none", false)}}, wantErr: "couldn't find key none"},
		"an optional key":                           {container: corev1.Container{Env: []corev1.EnvVar{key("c", "none", true)}}, want: []string{}},
		"an optional object":                        {container: corev1.Container{Env: []corev1.EnvVar{key("none", "k", true)}}, want: []string{}},
		"a name":                                    {container: corev1.Container{Env: []corev1.EnvVar{field("metadata.name")}}, want: []string{"F=p"}},
		"a label":                                   {container: corev1.Container{Env: []corev1.EnvVar{field("metadata.labels['a/b']")}}, want: []string{"F=l"}},
		"an annotation":                             {container: corev1.Container{Env: []corev1.EnvVar{field("metadata.annotations['x']")}}, want: []string{"F=y"}},
		"a pod's address":                           {container: corev1.Container{Env: []corev1.EnvVar{field("status.podIP")}}, want: []string{"F=10.88.0.2"}},
		"its node's":                                {container: corev1.Container{Env: []corev1.EnvVar{field("status.hostIP")}}, want: []string{"F=10.0.0.1"}},
		"a service account":                         {container: corev1.Container{Env: []corev1.EnvVar{field("spec.serviceAccountName")}}, want: []string{"F=sa"}},
		"an unknown field":                          {container: corev1.Container{Env: []corev1.EnvVar{field("spec.what")}}, wantErr: "unsupported fieldPath"},
		"cpu is rounded up":                         {container: corev1.Container{Resources: corev1.ResourceRequirements{Limits: corev1.ResourceList{"cpu": resource.MustParse("1500m")}}, Env: []corev1.EnvVar{amount("limits.cpu", "")}}, want: []string{"R=2"}},
		"cpu in thousandths":                        {container: corev1.Container{Resources: corev1.ResourceRequirements{Limits: corev1.ResourceList{"cpu": resource.MustParse("1500m")}}, Env: []corev1.EnvVar{amount("limits.cpu", "1m")}}, want: []string{"R=1500"}},
		"memory in MiB":                             {container: corev1.Container{Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{"memory": resource.MustParse("1Gi")}}, Env: []corev1.EnvVar{amount("requests.memory", "1Mi")}}, want: []string{"R=1024"}},
		"an unset limit is the node's":              {container: corev1.Container{Env: []corev1.EnvVar{amount("limits.cpu", "")}}, want: []string{"R=4"}},
		"an unset request is 0":                     {container: corev1.Container{Env: []corev1.EnvVar{amount("requests.cpu", "")}}, want: []string{"R=0"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			env, err := makeEnv(t.Context(), envRequest{Pod: pod, Container: &test.container, Base: test.base, Over: test.over,
				Facts: facts{HostIP: "10.0.0.1", PodIP: "10.88.0.2", Allocatable: corev1.ResourceList{"cpu": resource.MustParse("4")}}}, objects)
			if test.wantErr != "" {
				var config *configError
				if err == nil || !strings.Contains(err.Error(), test.wantErr) || !errors.As(err, &config) {
					t.Fatalf("err = %v (%T), want a configuration error with %q", err, err, test.wantErr)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, env.list()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestMakeArgv(t *testing.T) {
	env := environment{"LR": "0.1"}
	got, err := makeArgv(&corev1.Container{Command: []string{"train", "--lr=$(LR)"}, Args: []string{"$$(LR)", "$(NO)"}}, env)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"train", "--lr=0.1", "$(LR)", "$(NO)"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if _, err := makeArgv(&corev1.Container{Args: []string{"x"}}, env); !errors.Is(err, errNoCommand) {
		t.Errorf("err = %v, want %v", err, errNoCommand)
	}
}

func TestContainersSeeChosenVariablesOfTheHost(t *testing.T) {
	host := map[string]string{"PATH": "/host", "VIRTUAL_ENV": "/venv", "SECRET": "x"}
	env := environment{}
	env.set(hostEnv([]string{"/opt/v"}, func(name string) string { return host[name] }))
	if diff := cmp.Diff(environment{"PATH": "/opt/v:/host", "VIRTUAL_ENV": "/venv"}, env); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
