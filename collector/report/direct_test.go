package report_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"connectrpc.com/connect"

	vernierv1 "github.com/vernier-ml/vernier/api/proto/vernier/v1"
)

// direct calls a service without a network.
type direct struct {
	service http.Handler
	token   string
}

func (d direct) RoundTrip(r *http.Request) (*http.Response, error) {
	defer r.Body.Close()
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+d.token)
	w := httptest.NewRecorder()
	d.service.ServeHTTP(w, r)
	return w.Result(), nil
}

// newDirectService is one for a bubble, in which no batch lingers: how many points
// are in each does not depend on who is scheduled when.
func newDirectService(t *testing.T, limit int64, front func(http.ResponseWriter, *http.Request, http.Handler)) *service {
	t.Helper()
	s := openService(t, "memory:", limit, front)
	s.dial = func(token string) (vernierv1.ReportServiceClient, error) {
		return vernierv1.NewReportServiceClient(&http.Client{Transport: direct{s, token}}, "http://direct", connect.WithGRPC()), nil
	}
	return s
}
