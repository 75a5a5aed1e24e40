package api

import (
	"context"
	"net/http"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"google.golang.org/protobuf/types/known/timestamppb"

	vernierv1 "github.com/vernier-ml/vernier/api/proto/vernier/v1"
)

var _ vernierv1.DashboardServiceHandler = (*service)(nil)

// GetServer implements vernierv1.DashboardServiceHandler.
func (s *service) GetServer(ctx context.Context, _ *vernierv1.GetServerRequest) (*vernierv1.GetServerResponse, error) {
	return &vernierv1.GetServerResponse{Version: s.Version, User: caller(ctx).Username, Time: timestamppb.New(s.Now())}, nil
}

// ListNamespaces implements vernierv1.DashboardServiceHandler.
func (s *service) ListNamespaces(ctx context.Context, _ *vernierv1.ListNamespacesRequest) (*vernierv1.ListNamespacesResponse, error) {
	all, err := s.namespaces(ctx)
	if err != nil {
		return nil, err
	}
	out := &vernierv1.ListNamespacesResponse{}
	for _, name := range all {
		out.Namespaces = append(out.Namespaces, place{namespace: name}.String())
	}
	return out, nil
}

// namespaces are those whose experiments the caller may list.
func (s *service) namespaces(ctx context.Context) (names []string, err error) {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("NamespaceList"))
	if err := s.Client.List(ctx, list); err != nil {
		return nil, explain(ctx, err)
	}
	may := func(namespace string) (bool, error) {
		return s.Access.Allowed(ctx, caller(ctx), authorizationv1.ResourceAttributes{
			Namespace: namespace, Verb: "list", Group: "kubeflow.org", Version: "v1beta1", Resource: "experiments",
		})
	}
	all, err := may("")
	for i := 0; i < len(list.Items) && err == nil; i++ {
		ok, name := all, list.Items[i].Name
		if !all {
			ok, err = may(name)
		}
		if ok {
			names = append(names, name)
		}
	}
	return names, explain(ctx, err)
}

// connectionKey is that of the connection of a stream in its context.
type connectionKey struct{}

var noDeadline time.Time

// endless lets a stream outlive the time-outs of the server, which are for single
// calls: each of its sends has its own. A shared page may take long, but not for ever.
func endless(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case vernierv1.DashboardServiceWatchProcedure, vernierv1.DashboardServiceReadLogsProcedure, vernierv1.DashboardServiceReadArtifactProcedure,
			vernierv1.DashboardServiceShareExperimentProcedure:
			c := http.NewResponseController(w)
			// A connection that cannot do this ends with the server's time-outs, and the
			// caller calls again.
			_, _ = c.SetReadDeadline(noDeadline), c.SetWriteDeadline(noDeadline)
			r = r.WithContext(context.WithValue(r.Context(), connectionKey{}, c))
		}
		next.ServeHTTP(w, r)
	})
}
