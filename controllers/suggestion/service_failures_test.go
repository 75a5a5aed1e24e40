package suggestion

import (
	"errors"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"
	"k8s.io/utils/ptr"

	pb "github.com/vernier-ml/vernier/api/proto/katib/v1beta1"
	"github.com/vernier-ml/vernier/api/v1beta1"
)

func TestAServiceThatFails(t *testing.T) {
	named := func(name string) func(*pb.GetSuggestionsRequest) (*pb.GetSuggestionsReply, error) {
		return func(r *pb.GetSuggestionsRequest) (*pb.GetSuggestionsReply, error) {
			reply, err := proposes(r)
			reply.ParameterAssignments[0].TrialName = name
			return reply, err
		}
	}
	fails := func(code connect.Code) func(*pb.GetSuggestionsRequest) (*pb.GetSuggestionsReply, error) {
		return func(*pb.GetSuggestionsRequest) (*pb.GetSuggestionsReply, error) {
			return nil, connect.NewError(code, errors.New("out of ideas"))
		}
	}
	cases := map[string]struct {
		service  *algorithm // nil: none runs
		requests int32      // default: 1
		later    time.Duration
		failed   string // the message of the condition Failed; empty: it is asked again
		trouble  string // that of DeploymentReady, False
	}{
		"refuses the settings": {service: &algorithm{validate: func() error { return connect.NewError(connect.CodeInvalidArgument, errors.New("gamma is unknown")) }}, failed: "gamma is unknown"},
		"says an error":        {service: &algorithm{suggest: fails(connect.CodeInternal)}, trouble: "out of ideas"},
		"names a trial badly":  {service: &algorithm{suggest: named("../x")}, later: time.Minute, trouble: "names a trial"},
		"names two trials alike": {service: &algorithm{suggest: func(r *pb.GetSuggestionsRequest) (*pb.GetSuggestionsReply, error) {
			reply, err := proposes(r)
			for _, p := range reply.ParameterAssignments {
				p.TrialName = "same"
			}
			return reply, err
		}}, requests: 2, later: time.Minute, trouble: `names a trial "same"`},
		"has just been started": {},
		"is not there for long": {later: time.Minute, trouble: "no pod runs"},
		"proposes nothing at all": {service: &algorithm{suggest: func(*pb.GetSuggestionsRequest) (*pb.GetSuggestionsReply, error) {
			return &pb.GetSuggestionsReply{}, nil
		}}, later: time.Minute, trouble: "proposes none"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			services := map[string]*algorithm{}
			if c.service != nil {
				services["e"] = c.service
			}
			w := newServiceWorld(t, services, theirs("e"))
			w.request(t, "e", max(1, c.requests))
			w.reconcile(t, "e")
			w.now = w.now.Add(c.later)
			s, result := w.answered(t, "e")
			if c.failed != "" && (!s.IsFailed() || !strings.Contains(lastMessage(s), c.failed)) {
				t.Errorf("the conditions %+v, want failed with %q", s.Status.Conditions, c.failed)
			}
			ready := ptr.Deref(s.Condition(v1beta1.SuggestionDeploymentReady), v1beta1.SuggestionCondition{})
			if c.trouble != "" && !strings.Contains(ready.Message, c.trouble) || c.trouble == "" && ready.Message != "" {
				t.Errorf("DeploymentReady says %q, want %q", ready.Message, c.trouble)
			}
			if result.RequeueAfter <= 0 || result.RequeueAfter > longestPause || s.Status.SuggestionCount != 0 {
				t.Errorf("asked again after %s, with %d proposals", result.RequeueAfter, s.Status.SuggestionCount)
			}
		})
	}
}

func TestAServiceThatFailsAgainAndAgain(t *testing.T) {
	w := newServiceWorld(t, map[string]*algorithm{"e": {suggest: func(*pb.GetSuggestionsRequest) (*pb.GetSuggestionsReply, error) {
		return nil, connect.NewError(connect.CodeInternal, errors.New("out of ideas"))
	}}}, theirs("e"))
	w.request(t, "e", 1)
	w.reconcile(t, "e")
	asked := 0
	for s := (&v1beta1.Suggestion{}); !s.IsFailed(); asked++ {
		if asked > maxRefusals {
			t.Fatal("it is asked on and on")
		}
		s, _ = w.answered(t, "e")
		w.now = w.now.Add(longestPause)
		if !s.IsFailed() {
			w.reconcile(t, "e")
		}
	}
	if asked != maxRefusals {
		t.Errorf("it was asked %d times, want %d", asked, maxRefusals)
	}
}
