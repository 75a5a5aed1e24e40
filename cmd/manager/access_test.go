package main

import (
	"bytes"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/types/known/fieldmaskpb"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrlclient "sigs.k8s.io/controller-runtime/pkg/client"

	vernierv1 "github.com/vernier-ml/vernier/api/proto/vernier/v1"
	"github.com/vernier-ml/vernier/api/v1beta1"
	"github.com/vernier-ml/vernier/client"
	"github.com/vernier-ml/vernier/server/authn"
	"github.com/vernier-ml/vernier/server/authn/oidc/oidctest"
)

// headers sends headers with each request.
type headers struct{ http.Header }

func (h headers) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	maps.Copy(r.Header, h.Header)
	return http.DefaultTransport.RoundTrip(r)
}

// writers remembers in whose name experiments are written.
type writers struct {
	mu   sync.Mutex
	seen []string
}

func (w *writers) wrap(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(r *http.Request) (*http.Response, error) {
		if r.Method != http.MethodGet && strings.Contains(r.URL.Path, "/experiments") && !strings.HasSuffix(r.URL.Path, "/status") {
			w.mu.Lock()
			w.seen = append(w.seen, r.Method+" "+r.Header.Get("Impersonate-User"))
			w.mu.Unlock()
		}
		return next.RoundTrip(r)
	})
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

const proxySecret = "the-secret-of-the-proxy"

// fromElsewhere lets users of an OpenID provider and of a proxy call the manager, which
// writes in their names.
func (w *world) fromElsewhere() *oidctest.Provider {
	w.t.Helper()
	idp := oidctest.New(w.t, time.Now)
	roots := x509.NewCertPool()
	roots.AddCert(idp.Certificate())
	file := filepath.Join(w.t.TempDir(), "secret")
	ca := filepath.Join(w.t.TempDir(), "ca.pem")
	err := os.WriteFile(file, []byte(proxySecret+"\n"), 0o600)
	if err == nil {
		err = os.WriteFile(ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: idp.Certificate().Raw}), 0o600)
	}
	if err != nil {
		w.t.Fatal(err)
	}
	o, err := parseFlags([]string{
		"--oidc-issuer-url=" + idp.URL, "--oidc-client-id=" + oidctest.ClientID, "--oidc-ca-file=" + ca,
		"--oidc-username-claim=email", "--oidc-groups-claim=groups", "--oidc-groups-prefix=corp:",
		"--requestheader-username-headers=kubeflow-userid", "--requestheader-group-headers=kubeflow-groups", "--requestheader-secret=file:" + file,
		"--impersonate", "--dashboard-base-path=/tune/",
	}, io.Discard)
	if err != nil {
		w.t.Fatal(err)
	}
	w.access, w.basePath = o.access, o.basePath
	return idp
}

// A provider that is away does not hide the other ways to sign in.
func TestHowPeopleSignInWhileTheProviderIsAway(t *testing.T) {
	w := &world{t: t}
	idp := w.fromElsewhere()
	w.access.signOut = "/oauth2/sign_out"
	_, provider, err := w.access.authenticators()
	if err != nil {
		t.Fatal(err)
	}
	idp.Away.Store(true)
	mux, got := http.NewServeMux(), httptest.NewRecorder()
	w.access.mountSignIn(mux, provider, "/")
	mux.ServeHTTP(got, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/auth/config", nil))
	want := `{"proxy":true,"signOut":"/oauth2/sign_out","trouble":"The OpenID provider cannot be reached. The log of the manager says why."}` + "\n"
	if diff := cmp.Diff(want, got.Body.String()); diff != "" || got.Code != http.StatusOK {
		t.Errorf("%d (-want +got):\n%s", got.Code, diff)
	}
}

// rightsOfUsersFromElsewhere: users whom a provider or a proxy vouches for have the rights
// that roles give to their names and groups, and what they write is in their names.
func rightsOfUsersFromElsewhere(t *testing.T) {
	w := newWorld(t, never)
	w.actAsInstalled()
	for _, u := range optional(t) {
		if err := ctrlclient.IgnoreAlreadyExists(w.client.Create(t.Context(), u)); err != nil {
			t.Fatal(err)
		}
	}
	w.serviceAccount = "vernier-manager"
	var written writers
	w.wrap = written.wrap
	idp := w.fromElsewhere()
	w.start()
	here, there := w.experiment("exp", outside(4, 9)), w.experiment("exp", outside(4, 9))
	there.Namespace = newNamespace(t, w.client)
	w.create(here)
	w.create(there)
	w.bindUsers("vernier-edit", rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: "User", Name: "ann@example.com"}, rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: "Group", Name: "corp:ml"})
	w.bindUsers("vernier-view", rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: "User", Name: "ann@example.com"}, rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: "Group", Name: "corp:ml"})

	token := func(claims map[string]any) http.Header {
		return http.Header{"Authorization": {"Bearer " + idp.Sign(idp.Claims(claims))}}
	}
	through := func(user, groups string) http.Header {
		return http.Header{"Kubeflow-Userid": {user}, "Kubeflow-Groups": {groups}, authn.DefaultSecretHeader: {proxySecret}}
	}
	const may, mayNot, unknown = "", "FORBIDDEN", "UNAUTHENTICATED"
	for name, c := range map[string]struct {
		header http.Header
		as     string
		here   string
		there  string
	}{
		"by a token":                     {token(nil), "ann@example.com", may, mayNot},
		"by a group of a token":          {token(map[string]any{"email": "bob@example.com"}), "bob@example.com", may, mayNot},
		"by a token without the group":   {token(map[string]any{"email": "bob@example.com", "groups": []string{"ops"}}), "", mayNot, mayNot},
		"by a token that has expired":    {token(map[string]any{"exp": time.Now().Add(-time.Minute).Unix()}), "", unknown, unknown},
		"by a token for another program": {token(map[string]any{"aud": "shop"}), "", unknown, unknown},
		"by a token of another issuer":   {token(map[string]any{"iss": "https://evil.example"}), "", unknown, unknown},
		"by a token that is not signed":  {http.Header{"Authorization": {"Bearer " + oidctest.Signed("none", idp.Claims(nil), func([]byte) []byte { return nil })}}, "", unknown, unknown},
		"through the proxy":              {through("ann@example.com", ""), "ann@example.com", may, mayNot},
		"through the proxy, by a group":  {through("eve", "corp:ml"), "eve", may, mayNot},
		"through the proxy, without":     {through("eve", "ops,system:masters"), "", mayNot, mayNot},
		"round the proxy":                {http.Header{"Kubeflow-Userid": {"ann@example.com"}}, "", unknown, unknown},
		"round the proxy, with a token":  {merged(token(nil), http.Header{"Kubeflow-Userid": {"root"}}), "", unknown, unknown},
		"by an account of the cluster":   {http.Header{"Authorization": {"Bearer " + w.account("editor", "vernier-edit", "vernier-view")}}, "system:serviceaccount:" + w.namespace + ":editor", may, mayNot},
		"by nothing":                     {http.Header{}, "", unknown, unknown},
	} {
		t.Run(name, func(t *testing.T) {
			caller := &http.Client{Transport: headers{c.header}}
			e, d := vernierv1.NewExperimentServiceClient(caller, w.api), vernierv1.NewDashboardServiceClient(caller, w.api)
			for parent, want := range map[string]string{w.resource(here): c.here, w.resource(there): c.there} {
				_, err := e.GetExperiment(t.Context(), &vernierv1.GetExperimentRequest{Name: parent})
				if client.Reason(err) != want || err != nil && want == may {
					t.Errorf("%s: %v, want %q", parent, err, want)
				}
				stream, err := d.Watch(t.Context(), &vernierv1.WatchRequest{Subscriptions: []*vernierv1.Subscription{{Id: 1, Topic: &vernierv1.Subscription_Trials{Trials: parent}}}})
				if err != nil {
					t.Fatal(err)
				}
				if got := stream.Receive(); got != (want == may) || client.Reason(stream.Err()) != want {
					t.Errorf("%s: the stream %v, want %q", parent, stream.Err(), want)
				}
				_ = stream.Close()
			}
			if list, err := d.ListNamespaces(t.Context(), &vernierv1.ListNamespacesRequest{}); c.here == may {
				if diff := cmp.Diff([]string{"namespaces/" + w.namespace}, list.GetNamespaces()); diff != "" || err != nil {
					t.Errorf("%v (-want +got):\n%s", err, diff)
				}
			} else if len(list.GetNamespaces()) > 0 {
				t.Error(list)
			}
			written.mu.Lock()
			written.seen = nil
			written.mu.Unlock()
			w.writesExperiments(e, here, c.here)
			written.mu.Lock()
			defer written.mu.Unlock()
			if want := []string{"POST " + c.as, "PATCH " + c.as, "DELETE " + c.as}; c.here == may && !slices.Equal(written.seen, want) {
				t.Errorf("%v, want %v", written.seen, want)
			} else if c.here != may && len(written.seen) > 0 {
				t.Errorf("without rights: %v", written.seen)
			}
		})
	}
	w.otherPagesCannotCall(through("ann@example.com", ""), here)
}

// writesExperiments makes, pauses and deletes an experiment beside e.
func (w *world) writesExperiments(c vernierv1.ExperimentServiceClient, e *v1beta1.Experiment, want string) {
	w.t.Helper()
	name := w.resource(e) + "-new"
	text, err := json.Marshal(map[string]any{"apiVersion": "kubeflow.org/v1beta1", "kind": "Experiment", "metadata": map[string]string{"name": e.Name + "-new"}, "spec": e.Spec})
	if err != nil {
		w.t.Fatal(err)
	}
	_, err1 := c.CreateExperiment(w.t.Context(), &vernierv1.CreateExperimentRequest{Yaml: string(text), Parent: "namespaces/" + e.Namespace})
	_, err2 := c.UpdateExperiment(w.t.Context(), &vernierv1.UpdateExperimentRequest{Experiment: &vernierv1.Experiment{Name: name, Notes: "n"}, UpdateMask: &fieldmaskpb.FieldMask{Paths: []string{"notes"}}})
	_, err3 := c.DeleteExperiment(w.t.Context(), &vernierv1.DeleteExperimentRequest{Name: name})
	for _, err := range []error{err1, err2, err3} {
		if client.Reason(err) != want || err != nil && want == "" {
			w.t.Errorf("%v, want %q", err, want)
		}
	}
}

// otherPagesCannotCall: the proxy adds the user to whatever a browser sends.
func (w *world) otherPagesCannotCall(user http.Header, e *v1beta1.Experiment) {
	w.t.Helper()
	body := []byte(`{"name": "` + w.resource(e) + `"}`)
	for name, c := range map[string]struct {
		header http.Header
		code   int
	}{
		"the dashboard":            {http.Header{"Sec-Fetch-Site": {"same-origin"}, "Content-Type": {"application/json"}}, 200},
		"a program":                {http.Header{"Content-Type": {"application/json"}}, 200},
		"another page":             {http.Header{"Sec-Fetch-Site": {"cross-site"}, "Content-Type": {"application/json"}}, 403},
		"a page of a sibling":      {http.Header{"Sec-Fetch-Site": {"same-site"}, "Content-Type": {"application/json"}}, 403},
		"an old browser":           {http.Header{"Origin": {"https://evil.example"}, "Content-Type": {"application/json"}}, 403},
		"a form, if it got so far": {http.Header{"Content-Type": {"text/plain"}}, 415},
		"a form with fields":       {http.Header{"Content-Type": {"application/x-www-form-urlencoded"}}, 415},
	} {
		for _, base := range []string{"", "/tune"} {
			r, err := http.NewRequestWithContext(w.t.Context(), http.MethodPost, w.api+base+vernierv1.ExperimentServiceGetExperimentProcedure, bytes.NewReader(body))
			if err != nil {
				w.t.Fatal(err)
			}
			r.Header = merged(user, c.header)
			got, err := http.DefaultClient.Do(r)
			if err != nil {
				w.t.Fatal(err)
			}
			if _ = got.Body.Close(); got.StatusCode != c.code {
				w.t.Errorf("%s at %q: %d, want %d", name, base, got.StatusCode, c.code)
			}
		}
	}
	for _, path := range []string{vernierv1.ExperimentServiceDeleteExperimentProcedure, "/tune" + vernierv1.ExperimentServiceDeleteExperimentProcedure + "?encoding=json&message=%7B%7D"} {
		r, err := http.NewRequestWithContext(w.t.Context(), http.MethodGet, w.api+path, nil)
		if err != nil {
			w.t.Fatal(err)
		}
		r.Header = user
		got, err := http.DefaultClient.Do(r)
		if err != nil {
			w.t.Fatal(err)
		}
		if _ = got.Body.Close(); got.StatusCode != http.StatusMethodNotAllowed {
			w.t.Errorf("a GET of %s: %d", path, got.StatusCode)
		}
	}
}

func merged(a, b http.Header) http.Header {
	out := a.Clone()
	maps.Copy(out, b)
	return out
}

// bindUsers gives a role to users and groups in the world's namespace.
func (w *world) bindUsers(role string, subjects ...rbacv1.Subject) {
	w.t.Helper()
	if err := w.client.Create(w.t.Context(), &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "users-" + role},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role}, Subjects: subjects,
	}); err != nil {
		w.t.Fatal(err)
	}
}
