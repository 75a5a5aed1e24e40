package entrypoint_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	containers "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/vernier-ml/vernier/controllers/entrypoint"
	"github.com/vernier-ml/vernier/trainer"
)

// aRegistry has the image team/train:1, which runs python train.py. It wants the user's
// name and password where there are some. It counts the requests.
func aRegistry(t *testing.T, user, password string) (host string, asked *atomic.Int32) {
	t.Helper()
	asked = &atomic.Int32{}
	images := registry.New()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		if u, p, _ := r.BasicAuth(); user != "" && (u != user || p != password) {
			w.Header().Set("WWW-Authenticate", `Basic realm="test"`)
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		images.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	host = strings.TrimPrefix(server.URL, "http://")
	image, err := mutate.Config(empty.Image, containers.Config{Entrypoint: []string{"python"}, Cmd: []string{"train.py"}})
	if err != nil {
		t.Fatal(err)
	}
	ref, err := name.ParseReference(host + "/team/train:1")
	if err != nil {
		t.Fatal(err)
	}
	if err := remote.Write(ref, image, remote.WithAuth(&authn.Basic{Username: user, Password: password})); err != nil {
		t.Fatal(err)
	}
	asked.Store(0)
	return host, asked
}

func pullSecret(named, place string) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ml", Name: named}, Type: corev1.SecretTypeDockerConfigJson,
		Data: map[string][]byte{corev1.DockerConfigJsonKey: []byte(`{"auths":{"https://` + place + `/v2/":{"username":"ada","password":"right"}}}`)},
	}
}

func TestWhatAnImageRuns(t *testing.T) {
	public, _ := aRegistry(t, "", "")
	private, _ := aRegistry(t, "ada", "right")
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "ml", Name: "trainer"}, ImagePullSecrets: []corev1.LocalObjectReference{{Name: "team"}}}
	reader := fake.NewClientBuilder().WithObjects(account, pullSecret("team", private+"/team"), pullSecret("elsewhere", "example.com"),
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "ml", Name: "broken"}}).Build()
	cases := map[string]struct {
		image trainer.Image
		wrong string
	}{
		"a public image":                        {image: trainer.Image{Name: public + "/team/train:1"}},
		"a public one, with secrets that lack":  {image: trainer.Image{Name: public + "/team/train:1", PullSecrets: []string{"absent", "broken"}}},
		"a private one":                         {image: trainer.Image{Name: private + "/team/train:1", PullSecrets: []string{"elsewhere", "team"}}},
		"a private one, by the service account": {image: trainer.Image{Name: private + "/team/train:1", ServiceAccount: "trainer"}},
		"a private one, without a secret":       {image: trainer.Image{Name: private + "/team/train:1"}, wrong: "credentials"},
		"a private one, with another secret":    {image: trainer.Image{Name: private + "/team/train:1", PullSecrets: []string{"elsewhere"}}, wrong: "credentials"},
		"a private one, with a broken secret":   {image: trainer.Image{Name: private + "/team/train:1", PullSecrets: []string{"broken"}}, wrong: "ml/broken"},
		"an image that is not there":            {image: trainer.Image{Name: public + "/team/other:1"}, wrong: "team/other:1"},
		"no image":                              {image: trainer.Image{Name: "Not An Image"}, wrong: "Not An Image"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			c.image.Namespace = "ml"
			first, rest, err := entrypoint.New(reader).Of(t.Context(), c.image)
			if c.wrong != "" {
				if !errors.Is(err, trainer.ErrImage) || !strings.Contains(err.Error(), c.wrong) {
					t.Errorf("%v, want %s", err, c.wrong)
				}
				return
			}
			if diff := cmp.Diff([][]string{{"python"}, {"train.py"}}, [][]string{first, rest}); diff != "" || err != nil {
				t.Error(err, diff)
			}
		})
	}
}

func TestSecretsThatMayNotBeReadAreNamed(t *testing.T) {
	private, _ := aRegistry(t, "ada", "right")
	reader := interceptor.NewClient(fake.NewClientBuilder().Build(), interceptor.Funcs{Get: func(_ context.Context, _ client.WithWatch, key client.ObjectKey, _ client.Object, _ ...client.GetOption) error {
		return apierrors.NewForbidden(schema.GroupResource{Resource: "secrets"}, key.Name, nil)
	}})
	_, _, err := entrypoint.New(reader).Of(t.Context(), trainer.Image{Name: private + "/team/train:1", Namespace: "ml", PullSecrets: []string{"team"}})
	if err == nil || !strings.Contains(err.Error(), "ml/team") || !strings.Contains(err.Error(), "forbidden") || !strings.Contains(err.Error(), "command") {
		t.Errorf("%v names neither the secret nor what to do", err)
	}
}

// Many trials run one image.
func TestAnImageIsAskedForOnce(t *testing.T) {
	host, asked := aRegistry(t, "", "")
	r := entrypoint.New(fake.NewClientBuilder().Build())
	image := trainer.Image{Name: host + "/team/train:1", Namespace: "ml"}
	var once int32
	for i := range 3 {
		if _, _, err := r.Of(t.Context(), image); err != nil {
			t.Fatal(err)
		}
		if i == 0 {
			once = asked.Load()
		}
	}
	if got := asked.Load(); got != once || once == 0 {
		t.Errorf("%d requests, %d of them for the first question", got, once)
	}
	absent := trainer.Image{Name: host + "/team/absent:1", Namespace: "ml"}
	for range 3 {
		once = asked.Load()
		if _, _, err := r.Of(t.Context(), absent); err == nil {
			t.Fatal("an image that is not there is known")
		}
	}
	if got := asked.Load(); got != once {
		t.Errorf("a registry that had failed was asked %d times more", got-once)
	}
	image.Namespace = "other" // whose pods may not have the same credentials
	if _, _, err := r.Of(t.Context(), image); err != nil || asked.Load() == once {
		t.Errorf("another namespace got the answer of the first: %v", err)
	}
}
