package agent

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
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

func (s stored) ConfigMap(_ context.Context, _, name string) (*v1.ConfigMap, error) {
	if data, ok := s.configMaps[name]; ok {
		return &v1.ConfigMap{Data: data}, nil
	}
	return nil, apierrors.NewNotFound(schema.GroupResource{Resource: "configmaps"}, name)
}

func (s stored) Secret(_ context.Context, _, name string) (*v1.Secret, error) {
	data, ok := s.secrets[name]
	if !ok {
		return nil, apierrors.NewNotFound(schema.GroupResource{Resource: "secrets"}, name)
	}
	out := &v1.Secret{Data: map[string][]byte{}}
	for k, v := range data {
		out.Data[k] = []byte(v)
	}
	return out, nil
}

func TestExpand(t *testing.T) {
	vars := map[string]string{"A": "1", "B": "$(A)", "EMPTY": ""}
	lookup := func(name string) (string, bool) { v, ok := vars[name]; return v, ok }
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
			if got := expand(test.in, lookup); got != test.want {
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
		if got := expand(strings.ReplaceAll(s, "$", "$$"), func(string) (string, bool) { return "!", true }); got != s {
			t.Errorf("expand(escape(%q)) = %q", s, got)
		}
		expand(s, func(string) (string, bool) { return "", false })
	})
}

func TestMakeEnv(t *testing.T) {
	objects := stored{
		configMaps: map[string]map[string]string{"c": {"A": "from-c", "B": "b", "bad=name": "x", "dotted.name": "d"}},
		secrets:    map[string]map[string]string{"s": {"key": "shh", "A": "from-s"}},
	}
	ref := func(name string) v1.LocalObjectReference { return v1.LocalObjectReference{Name: name} }
	fromC := v1.EnvFromSource{ConfigMapRef: &v1.ConfigMapEnvSource{LocalObjectReference: ref("c")}}
	fromS := v1.EnvFromSource{SecretRef: &v1.SecretEnvSource{LocalObjectReference: ref("s")}}
	key := func(name, key string, optional bool) v1.EnvVar {
		return v1.EnvVar{Name: "K", ValueFrom: &v1.EnvVarSource{ConfigMapKeyRef: &v1.ConfigMapKeySelector{LocalObjectReference: ref(name), Key: key, Optional: ptr.To(optional)}}}
	}
	field := func(path string) v1.EnvVar {
		return v1.EnvVar{Name: "F", ValueFrom: &v1.EnvVarSource{FieldRef: &v1.ObjectFieldSelector{FieldPath: path}}}
	}
	amount := func(name, divisor string) v1.EnvVar {
		sel := &v1.ResourceFieldSelector{Resource: name}
		if divisor != "" {
			sel.Divisor = resource.MustParse(divisor)
		}
		return v1.EnvVar{Name: "R", ValueFrom: &v1.EnvVarSource{ResourceFieldRef: sel}}
	}
	pod := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p", Namespace: "ns", UID: "u", Labels: map[string]string{"a/b": "l"}, Annotations: map[string]string{"x": "y"}},
		Spec: v1.PodSpec{ServiceAccountName: "sa"}}
	tests := map[string]struct {
		container v1.Container
		base      []v1.EnvVar
		over      []v1.EnvVar
		want      []string
		wantErr   string
	}{
		"base only": {base: []v1.EnvVar{{Name: "PATH", Value: "/bin"}}, want: []string{"PATH=/bin"}},
		"envFrom, names that cannot be are skipped": {container: v1.Container{EnvFrom: []v1.EnvFromSource{fromC}}, want: []string{"A=from-c", "B=b", "dotted.name=d"}},
		"the later envFrom wins":                    {container: v1.Container{EnvFrom: []v1.EnvFromSource{fromC, fromS}}, want: []string{"A=from-s", "B=b", "dotted.name=d", "key=shh"}},
		"a prefix":                                  {container: v1.Container{EnvFrom: []v1.EnvFromSource{{Prefix: "P_", SecretRef: fromS.SecretRef}}}, want: []string{"P_A=from-s", "P_key=shh"}},
		"env beats envFrom":                         {container: v1.Container{EnvFrom: []v1.EnvFromSource{fromS}, Env: []v1.EnvVar{{Name: "A", Value: "own"}}}, want: []string{"A=own", "key=shh"}},
		"references to what stands before":          {container: v1.Container{Env: []v1.EnvVar{{Name: "X", Value: "1"}, {Name: "Y", Value: "$(X)$(Z)"}, {Name: "Z", Value: "3"}}}, want: []string{"X=1", "Y=1$(Z)", "Z=3"}},
		"over beats all":                            {container: v1.Container{Env: []v1.EnvVar{{Name: "CUDA_VISIBLE_DEVICES", Value: "0"}}}, over: []v1.EnvVar{{Name: "CUDA_VISIBLE_DEVICES", Value: "GPU-a"}}, want: []string{"CUDA_VISIBLE_DEVICES=GPU-a"}},
		"a missing ConfigMap":                       {container: v1.Container{EnvFrom: []v1.EnvFromSource{{ConfigMapRef: &v1.ConfigMapEnvSource{LocalObjectReference: ref("none")}}}}, wantErr: `"none" not found`},
		"an optional ConfigMap":                     {container: v1.Container{EnvFrom: []v1.EnvFromSource{{ConfigMapRef: &v1.ConfigMapEnvSource{LocalObjectReference: ref("none"), Optional: ptr.To(true)}}}}, want: []string{}},
		"a key":                                     {container: v1.Container{Env: []v1.EnvVar{key("c", "B", false)}}, want: []string{"K=b"}},
		"a missing key":                             {container: v1.Container{Env: []v1.EnvVar{key("c", "none", false)}}, wantErr: "couldn't find key none"},
		"an optional key":                           {container: v1.Container{Env: []v1.EnvVar{key("c", "none", true)}}, want: []string{}},
		"an optional object":                        {container: v1.Container{Env: []v1.EnvVar{key("none", "k", true)}}, want: []string{}},
		"a name":                                    {container: v1.Container{Env: []v1.EnvVar{field("metadata.name")}}, want: []string{"F=p"}},
		"a label":                                   {container: v1.Container{Env: []v1.EnvVar{field("metadata.labels['a/b']")}}, want: []string{"F=l"}},
		"an annotation":                             {container: v1.Container{Env: []v1.EnvVar{field("metadata.annotations['x']")}}, want: []string{"F=y"}},
		"a pod's address":                           {container: v1.Container{Env: []v1.EnvVar{field("status.podIP")}}, want: []string{"F=10.0.0.1"}},
		"a service account":                         {container: v1.Container{Env: []v1.EnvVar{field("spec.serviceAccountName")}}, want: []string{"F=sa"}},
		"an unknown field":                          {container: v1.Container{Env: []v1.EnvVar{field("spec.what")}}, wantErr: "not supported"},
		"cpu is rounded up":                         {container: v1.Container{Resources: v1.ResourceRequirements{Limits: v1.ResourceList{"cpu": resource.MustParse("1500m")}}, Env: []v1.EnvVar{amount("limits.cpu", "")}}, want: []string{"R=2"}},
		"cpu in thousandths":                        {container: v1.Container{Resources: v1.ResourceRequirements{Limits: v1.ResourceList{"cpu": resource.MustParse("1500m")}}, Env: []v1.EnvVar{amount("limits.cpu", "1m")}}, want: []string{"R=1500"}},
		"memory in MiB":                             {container: v1.Container{Resources: v1.ResourceRequirements{Requests: v1.ResourceList{"memory": resource.MustParse("1Gi")}}, Env: []v1.EnvVar{amount("requests.memory", "1Mi")}}, want: []string{"R=1024"}},
		"an unset limit is the node's":              {container: v1.Container{Env: []v1.EnvVar{amount("limits.cpu", "")}}, want: []string{"R=4"}},
		"an unset request is 0":                     {container: v1.Container{Env: []v1.EnvVar{amount("requests.cpu", "")}}, want: []string{"R=0"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			env, err := makeEnv(t.Context(), envRequest{Pod: pod, Container: &test.container, Base: test.base, Over: test.over,
				Facts: facts{NodeName: "n", PodIP: "10.0.0.1", Allocatable: v1.ResourceList{"cpu": resource.MustParse("4")}}}, objects)
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
	env := newEnvironment()
	env.set("LR", "0.1")
	got, err := makeArgv(&v1.Container{Command: []string{"train", "--lr=$(LR)"}, Args: []string{"$$(LR)", "$(NO)"}}, env)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"train", "--lr=0.1", "$(LR)", "$(NO)"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if _, err := makeArgv(&v1.Container{Args: []string{"x"}}, env); !errors.Is(err, errNoCommand) {
		t.Errorf("err = %v, want %v", err, errNoCommand)
	}
}
