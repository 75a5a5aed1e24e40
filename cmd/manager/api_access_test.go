package main

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/fieldmaskpb"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrlclient "sigs.k8s.io/controller-runtime/pkg/client"

	vernierv1 "github.com/vernier-ml/vernier/api/proto/vernier/v1"
	"github.com/vernier-ml/vernier/api/v1beta1"
	"github.com/vernier-ml/vernier/client"
)

// account makes a service account that roles are bound to in its namespace, and returns
// a token of it.
func (w *world) account(name string, roles ...string) string {
	w.t.Helper()
	ctx := w.t.Context()
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: name}}
	if err := w.client.Create(ctx, account); err != nil {
		w.t.Fatal(err)
	}
	for _, role := range roles {
		binding := &rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: name + "-" + role},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
			Subjects:   []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: w.namespace, Name: name}},
		}
		if err := w.client.Create(ctx, binding); err != nil {
			w.t.Fatal(err)
		}
	}
	return w.tokenOf(w.namespace, name)
}

// tokenOf is a token of a service account.
func (w *world) tokenOf(namespace, name string) string {
	w.t.Helper()
	request := &authenticationv1.TokenRequest{}
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	if err := w.client.SubResource("token").Create(w.t.Context(), account, request); err != nil {
		w.t.Fatal(err)
	}
	return request.Status.Token
}

// A caller has its own rights on a cluster, in its own namespaces, and the manager's do
// not reach further than config/rbac says.
func rightsOfCallers(t *testing.T) {
	w := newWorld(t, never)
	w.actAsInstalled()
	w.start()
	here, there := w.experiment("exp", outside(4, 9)), w.experiment("exp", outside(4, 9))
	there.Namespace = newNamespace(t, w.client)
	w.create(here)
	w.create(there)
	tokens := map[string]string{
		"editor": w.account("editor", "vernier-edit", "vernier-view"), "viewer": w.account("viewer", "vernier-view"),
		"stranger": w.account("stranger"), "nobody": "", "forger": "eyJhbGciOiJub25lIn0.e30.",
	}
	calls := map[string]func(c *client.Client, parent string) error{
		"read": func(c *client.Client, parent string) error {
			_, err := c.ListTrials(t.Context(), &vernierv1.ListTrialsRequest{Parent: parent})
			return err
		},
		"get": func(c *client.Client, parent string) error {
			_, err := c.GetExperiment(t.Context(), &vernierv1.GetExperimentRequest{Name: parent})
			return err
		},
		"work": func(c *client.Client, parent string) error {
			answer, err := c.SuggestTrials(t.Context(), &vernierv1.SuggestTrialsRequest{Parent: parent, MaxWait: durationpb.New(20 * time.Second)})
			if err != nil {
				return err
			}
			_, err = c.CompleteTrial(t.Context(), succeeded(answer.GetTrials()[0], 1))
			return err
		},
		"report": func(c *client.Client, parent string) error {
			_, err := c.ReportTrial(t.Context(), &vernierv1.ReportTrialRequest{Name: parent + "/trials/exp-0000", Attempt: 1})
			return err
		},
		"steer": func(c *client.Client, parent string) error {
			_, err := c.UpdateTrial(t.Context(), &vernierv1.UpdateTrialRequest{Trial: &vernierv1.Trial{Name: parent + "/trials/exp-0000", Notes: "odd"},
				UpdateMask: &fieldmaskpb.FieldMask{Paths: []string{"notes"}}})
			return err
		},
		"delete": func(c *client.Client, parent string) error {
			_, err := c.DeleteExperiment(t.Context(), &vernierv1.DeleteExperimentRequest{Name: parent + "-new"})
			return err
		},
		"create": func(c *client.Client, parent string) error {
			got, err := c.GetExperiment(t.Context(), &vernierv1.GetExperimentRequest{Name: parent})
			for i := 0; i < 2 && err == nil; i++ { // again is no error
				got.Name = parent + "-new"
				_, err = c.CreateExperiment(t.Context(), &vernierv1.CreateExperimentRequest{Experiment: got})
			}
			return err
		},
	}
	const may, mayNot, unknown = "", "FORBIDDEN", "UNAUTHENTICATED"
	for _, c := range []struct {
		who, call   string
		here, there string
	}{
		{"editor", "work", may, mayNot},
		{"editor", "read", may, mayNot},
		{"editor", "get", may, mayNot},
		{"editor", "create", may, mayNot},
		{"editor", "steer", may, mayNot},
		{"editor", "delete", may, mayNot},
		{"viewer", "steer", mayNot, mayNot},
		{"viewer", "delete", mayNot, mayNot},
		{"viewer", "work", mayNot, mayNot},
		{"viewer", "report", mayNot, mayNot},
		{"viewer", "read", may, mayNot},
		{"viewer", "create", mayNot, mayNot},
		{"stranger", "read", mayNot, mayNot},
		{"stranger", "get", mayNot, mayNot},
		{"stranger", "report", mayNot, mayNot},
		{"nobody", "read", unknown, unknown},
		{"forger", "read", unknown, unknown},
	} {
		t.Run(c.who+" "+c.call, func(t *testing.T) {
			as := client.New(w.api, tokens[c.who], nil)
			if err := calls[c.call](as, w.resource(here)); client.Reason(err) != c.here || err != nil && c.here == may {
				t.Errorf("in its own namespace: %v", err)
			}
			if err := calls[c.call](as, w.resource(there)); client.Reason(err) != c.there {
				t.Errorf("in another namespace: %v", err)
			}
		})
	}
	w.logsAreForThoseWhoMayReadThem(here, tokens["editor"], w.account("reader", "vernier-view", "system:aggregate-to-view"))
	w.nodesAreForThoseWhoMayListThem(tokens["viewer"])
}

// The viewer may list nodes once a role of the cluster is bound to its account.
func (w *world) nodesAreForThoseWhoMayListThem(viewer string) {
	w.t.Helper()
	c := vernierv1.NewDashboardServiceClient(&http.Client{Transport: bearer{viewer, http.DefaultTransport}}, w.api)
	if got, err := c.ListDevices(w.t.Context(), &vernierv1.ListDevicesRequest{}); err != nil || !strings.Contains(got.GetHidden(), "may not list nodes") {
		w.t.Errorf("before it may: %v, %v", got, err)
	}
	name := "nodes-" + w.namespace
	for _, o := range []ctrlclient.Object{
		&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name}, Rules: []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"nodes"}, Verbs: []string{"list"}}}},
		&rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: name}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name},
			Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: w.namespace, Name: "viewer"}}},
	} {
		if err := w.client.Create(w.t.Context(), o); err != nil {
			w.t.Fatal(err)
		}
	}
	w.eventually("the viewer sees nodes", func() string {
		got, err := c.ListDevices(w.t.Context(), &vernierv1.ListDevicesRequest{})
		if err != nil {
			return err.Error()
		}
		return got.GetHidden()
	})
}

// logsAreForThoseWhoMayReadThem asks for the log of a pod that no node runs, which is
// empty.
func (w *world) logsAreForThoseWhoMayReadThem(e *v1beta1.Experiment, editor, reader string) {
	w.t.Helper()
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: e.Namespace, Name: "exp-0000-x", Labels: map[string]string{v1beta1.LabelTrial: "exp-0000"}},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "a"}}}}
	if err := w.client.Create(w.t.Context(), pod); err != nil {
		w.t.Fatal(err)
	}
	for token, want := range map[string]string{editor: "may not get pods/log", reader: ""} {
		c := vernierv1.NewDashboardServiceClient(&http.Client{Transport: bearer{token, http.DefaultTransport}}, w.api)
		stream, err := c.ReadLogs(w.t.Context(), &vernierv1.ReadLogsRequest{Name: w.resource(e) + "/trials/exp-0000", Container: "main"})
		if err != nil {
			w.t.Fatal(err)
		}
		for stream.Receive() {
			w.t.Errorf("the log: %q", stream.Msg().GetText())
		}
		if err := stream.Err(); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			w.t.Errorf("%v, want %q", err, want)
		}
	}
}
