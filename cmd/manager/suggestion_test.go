package main

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pb "github.com/vernier-ml/vernier/api/proto/katib/v1beta1"
	"github.com/vernier-ml/vernier/api/v1beta1"
)

// theirs is an algorithm that proposes 0.01, 0.02, ... and names its trials.
type theirs struct {
	pb.UnimplementedSuggestionHandler
}

func (theirs) GetSuggestions(_ context.Context, r *pb.GetSuggestionsRequest) (*pb.GetSuggestionsReply, error) {
	reply := &pb.GetSuggestionsReply{}
	for i := r.TotalRequestNumber - r.CurrentRequestNumber; i < r.TotalRequestNumber; i++ {
		reply.ParameterAssignments = append(reply.ParameterAssignments, &pb.GetSuggestionsReply_ParameterAssignments{
			TrialName:   fmt.Sprintf("named-%d", i),
			Assignments: []*pb.ParameterAssignment{{Name: "lr", Value: fmt.Sprintf("0.0%d", i+1)}},
		})
	}
	return reply, nil
}

// An experiment whose algorithm katib-config names gets its trials from that service,
// with the rights of the manager's role, and the service goes with its end.
func TestAnAlgorithmsService(t *testing.T) {
	mux := http.NewServeMux()
	mux.Handle(pb.NewSuggestionHandler(theirs{}))
	s := httptest.NewUnstartedServer(mux)
	s.Config.Protocols = new(http.Protocols)
	s.Config.Protocols.SetUnencryptedHTTP2(true)
	s.Start()
	t.Cleanup(s.CloseClientConnections)

	w := newWorld(t, byNumber(0))
	w.dial = func(ctx context.Context, _, _ string, _ int) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "tcp", s.Listener.Addr().String())
	}
	w.actAsInstalled()
	home := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "kubeflow"}}
	if err := w.client.Create(t.Context(), home); err != nil && !apierrors.IsAlreadyExists(err) {
		t.Fatal(err)
	}
	config := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: home.Name, Name: "katib-config"}, Data: map[string]string{
		"katib-config.yaml": "runtime: {suggestions: [{algorithmName: theirs, image: example.com/theirs}]}"}}
	if err := w.client.Create(t.Context(), config); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = w.client.Delete(context.WithoutCancel(t.Context()), config) })
	w.start()
	e := w.experiment("exp", budget(3), func(e *v1beta1.Experiment) { e.Spec.Algorithm.AlgorithmName = "theirs" })
	w.create(e)
	w.ends(e, v1beta1.ReasonExperimentMaxTrialsReached)
	for i, trial := range w.trialsOf(e) {
		n, _ := trial.Number()
		if want := fmt.Sprintf("named-%d", n); trial.Name != want || trial.Spec.ParameterAssignments[0].Value != fmt.Sprintf("0.0%d", n+1) {
			t.Errorf("trial %d is %s with %v, want %s", i, trial.Name, trial.Spec.ParameterAssignments, want)
		}
	}
	w.eventually("the service is gone", func() string {
		err := w.client.Get(t.Context(), client.ObjectKey{Namespace: w.namespace, Name: "exp-theirs"}, &corev1.Service{})
		if apierrors.IsNotFound(err) {
			return ""
		}
		return fmt.Sprintf("the Service: %v", err)
	})
}
