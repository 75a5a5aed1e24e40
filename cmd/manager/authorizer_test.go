package main

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
)

// right is what a service account of vernier-system may do, or has asked to do. Empty:
// anything (namespace, name).
type right struct{ account, verb, group, resource, namespace, name string }

// covers says whether a use is one of this right.
func (r right) covers(use right) bool {
	return r.account == use.account && r.verb == use.verb && r.group == use.group && r.resource == use.resource &&
		(r.namespace == "" || r.namespace == use.namespace) && (r.name == "" || r.name == use.name)
}

var trainingKind = regexp.MustCompile(`^[a-z]+jobs\b`)

// alike is the same for the resources of all kinds that the training operator has.
func alike(group, resource string) string {
	if group == "kubeflow.org" {
		return trainingKind.ReplaceAllString(resource, "jobs")
	}
	return resource
}

// listener is an authorizer without an opinion. It is asked before RBAC is, by requests
// and by admission plugins, and keeps what accounts of Vernier use.
type listener struct {
	mu   sync.Mutex
	uses []right
}

// authorizer listens to the API server of all tests in this package.
var authorizer listener

func (l *listener) asked() []right {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.uses)
}

func (l *listener) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var review authorizationv1.SubjectAccessReview
	if err := json.NewDecoder(r.Body).Decode(&review); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	account, ours := strings.CutPrefix(review.Spec.User, "system:serviceaccount:vernier-system:")
	if a := review.Spec.ResourceAttributes; ours && a != nil {
		resource := strings.TrimSuffix(a.Resource+"/"+a.Subresource, "/")
		l.mu.Lock()
		l.uses = append(l.uses, right{account, a.Verb, a.Group, alike(a.Group, resource), a.Namespace, a.Name})
		l.mu.Unlock()
	}
	review.Status = authorizationv1.SubjectAccessReviewStatus{Reason: "no opinion"}
	_ = json.NewEncoder(w).Encode(review)
}

// listen lets the API server ask l, and check owner references as some clusters do.
func (l *listener) listen(env *envtest.Environment, dir string) error {
	config := filepath.Join(dir, "authorizer")
	err := clientcmd.WriteToFile(clientcmdapi.Config{
		CurrentContext: "test",
		Contexts:       map[string]*clientcmdapi.Context{"test": {Cluster: "test"}},
		Clusters:       map[string]*clientcmdapi.Cluster{"test": {Server: httptest.NewServer(l).URL}},
	}, config)
	env.ControlPlane.GetAPIServer().Configure().
		Set("authorization-mode", "Webhook,RBAC").
		Set("authorization-webhook-config-file", config).
		Set("authorization-webhook-version", "v1").
		Append("enable-admission-plugins", "OwnerReferencesPermissionEnforcement")
	return err
}

// granted are the rights that config/default and config/operator give to service
// accounts. The kinds of jobs are used alike: trials use batch Jobs for all of them.
func granted(t *testing.T) (rights []right) {
	t.Helper()
	roles, bindings := map[string]rbacv1.ClusterRole{}, []rbacv1.RoleBinding{}
	for _, u := range append(append(manifests(t), rendered(t, "operator")...), optional(t)...) {
		switch kind := u.GetKind(); {
		case strings.HasSuffix(kind, "RoleBinding"):
			bindings = append(bindings, as[rbacv1.RoleBinding](t, u))
		case strings.HasSuffix(kind, "Role"):
			roles[kind+" "+u.GetName()] = as[rbacv1.ClusterRole](t, u)
		}
	}
	forPeople := map[string]bool{}
	for _, name := range []string{"vernier-view", "vernier-edit", "vernier-metrics-reader", "vernier-profiler"} {
		forPeople["ClusterRole "+name] = true
	}
	add := func(b rbacv1.RoleBinding, rules []rbacv1.PolicyRule, kinds bool) {
		for _, subject := range b.Subjects {
			for _, rule := range rules {
				rights = append(rights, rightsOf(subject.Name, b.Namespace, rule, kinds)...)
			}
		}
	}
	bound := map[string]bool{}
	for _, b := range bindings {
		name := b.RoleRef.Kind + " " + b.RoleRef.Name
		bound[name] = true
		add(b, roles[name].Rules, false)
		if roles[name].AggregationRule == nil {
			continue
		}
		for other, role := range roles {
			for _, s := range roles[name].AggregationRule.ClusterRoleSelectors {
				selector, err := metav1.LabelSelectorAsSelector(&s)
				if err != nil {
					t.Fatal(err)
				}
				if selector.Matches(labels.Set(role.Labels)) {
					bound[other] = true
					add(b, role.Rules, true)
				}
			}
		}
	}
	for name := range roles {
		if !bound[name] && !forPeople[name] {
			t.Errorf("the %s is bound to no account", name)
		}
	}
	return rights
}

func rightsOf(account, namespace string, rule rbacv1.PolicyRule, kinds bool) (rights []right) {
	names := rule.ResourceNames
	if len(names) == 0 {
		names = []string{""}
	}
	for _, verb := range rule.Verbs {
		for _, name := range names {
			for _, group := range rule.APIGroups {
				for _, resource := range rule.Resources {
					if kinds {
						group, resource = "batch", "jobs"
					}
					rights = append(rights, right{account, verb, group, alike(group, resource), namespace, name})
				}
			}
		}
	}
	return rights
}

func as[T any](t *testing.T, u *unstructured.Unstructured) (o T) {
	t.Helper()
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, &o); err != nil {
		t.Fatal(err)
	}
	return o
}
