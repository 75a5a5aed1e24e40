package suggestion

import (
	"context"
	"fmt"
	"maps"
	"net"
	"net/http"
	"strings"
	"time"

	"connectrpc.com/connect"
	"k8s.io/apimachinery/pkg/util/validation"

	pb "github.com/vernier-ml/vernier/api/proto/katib/v1beta1"
	"github.com/vernier-ml/vernier/api/v1beta1"
	"github.com/vernier-ml/vernier/controllers/katib/message"
)

const (
	// validatePatience and suggestPatience are how long a service may take.
	validatePatience = time.Minute
	suggestPatience  = 5 * time.Minute
	dialPatience     = 10 * time.Second
	// maxReply bounds an answer, in bytes: all of it is kept in the Suggestion.
	maxReply = keptBytes
)

// question is what a service is asked.
type question struct {
	exp       *v1beta1.Experiment
	trials    []*v1beta1.Trial
	proposed  []v1beta1.TrialAssignment // so far; their trials may not be made yet
	count     int                       // of the proposals so far
	requests  int
	settings  []v1beta1.AlgorithmSetting
	validated bool
}

// answer is what came of it.
type answer struct {
	count     int // that of the question
	validated bool
	proposals []v1beta1.TrialAssignment
	settings  []v1beta1.AlgorithmSetting
	refused   string // why the service will never propose anything
	err       error
}

// ask calls the service. It may take minutes.
func (c *Controller) ask(ctx context.Context, q question) answer {
	a := answer{count: q.count, validated: q.validated}
	name := v1beta1.ServiceName(q.exp.Name, q.exp.Spec.Algorithm)
	transport := &http.Transport{Protocols: new(http.Protocols)}
	transport.Protocols.SetUnencryptedHTTP2(true)
	transport.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
		ctx, cancel := context.WithTimeout(ctx, dialPatience)
		defer cancel()
		if c.Dial != nil {
			return c.Dial(ctx, q.exp.Namespace, name, v1beta1.SuggestionPort)
		}
		return new(net.Dialer).DialContext(ctx, network, address)
	}
	defer transport.CloseIdleConnections()
	url := fmt.Sprintf("http://%s.%s.svc:%d", name, q.exp.Namespace, v1beta1.SuggestionPort)
	service := pb.NewSuggestionClient(&http.Client{Transport: transport}, url, connect.WithGRPC(), connect.WithReadMaxBytes(maxReply))

	if !a.validated {
		within, cancel := context.WithTimeout(ctx, validatePatience)
		_, err := service.ValidateAlgorithmSettings(within, &pb.ValidateAlgorithmSettingsRequest{Experiment: message.OfExperiment(q.exp, nil)})
		cancel()
		switch code := connect.CodeOf(err); {
		case err == nil || code == connect.CodeUnimplemented:
			a.validated = true
		case code == connect.CodeInvalidArgument || code == connect.CodeUnknown && isAnswer(err):
			a.refused = fmt.Sprintf("The service of algorithm %q refuses the experiment: %s", q.exp.Spec.Algorithm.AlgorithmName, said(err))
			return a
		default:
			a.err = err
			return a
		}
	}
	within, cancel := context.WithTimeout(ctx, suggestPatience)
	defer cancel()
	n := q.requests - q.count
	reply, err := service.GetSuggestions(within, &pb.GetSuggestionsRequest{
		Experiment: message.OfExperiment(q.exp, q.settings), Trials: message.OfTrials(q.trials),
		CurrentRequestNumber: int32(n), TotalRequestNumber: int32(q.requests),
	})
	if err != nil {
		a.err = err
		return a
	}
	if a.proposals, a.err = q.read(reply.GetParameterAssignments()[:min(n, len(reply.GetParameterAssignments()))]); a.err != nil {
		return a
	}
	if len(a.proposals) == 0 {
		a.err = fmt.Errorf("it was asked for %d trials and proposes none", n)
	}
	for _, s := range reply.GetAlgorithm().GetAlgorithmSettings() {
		a.settings = append(a.settings, v1beta1.AlgorithmSetting{Name: s.GetName(), Value: s.GetValue()})
	}
	return a
}

// read returns proposals as trials, none if one of them is invalid or has a name that
// is taken.
func (q question) read(reply []*pb.GetSuggestionsReply_ParameterAssignments) ([]v1beta1.TrialAssignment, error) {
	taken := q.names()
	var proposals []v1beta1.TrialAssignment
	for i, p := range reply {
		proposal, err := proposalOf(q.exp.Name, q.count+i, p)
		if err != nil {
			return nil, err
		}
		if taken[proposal.Name] {
			return nil, fmt.Errorf("it names a trial %q, and there is one of that name: each trial needs its own", proposal.Name)
		}
		taken[proposal.Name] = true
		proposals = append(proposals, proposal)
	}
	return proposals, nil
}

// names are those of the trials and proposals that there are.
func (q question) names() map[string]bool {
	taken := map[string]bool{}
	for _, t := range q.trials {
		taken[t.Name] = true
	}
	for _, p := range q.proposed {
		taken[p.Name] = true
	}
	return taken
}

// isAnswer says whether an error came from the service and not from the way to it.
func isAnswer(err error) bool { return connect.IsWireError(err) }

// said is what an error says, without its code.
func said(err error) string {
	if e, ok := err.(*connect.Error); ok { //nolint:errorlint // that of the client, not one that it wraps
		return e.Message()
	}
	return err.Error()
}

// proposalOf reads a proposal, whose name and labels may be anything.
func proposalOf(experiment string, number int, p *pb.GetSuggestionsReply_ParameterAssignments) (v1beta1.TrialAssignment, error) {
	out := v1beta1.TrialAssignment{Name: v1beta1.TrialName(experiment, number)}
	if name := p.GetTrialName(); name != "" {
		if problems := validation.IsDNS1035Label(name); len(problems) > 0 {
			return out, fmt.Errorf("it names a trial %.80q: %s", name, strings.Join(problems, ", "))
		}
		out.Name = name
	}
	for _, a := range p.GetAssignments() {
		out.ParameterAssignments = append(out.ParameterAssignments, v1beta1.ParameterAssignment{Name: a.GetName(), Value: a.GetValue()})
	}
	labels := maps.Clone(p.GetLabels())
	for key, value := range labels {
		problems := append(validation.IsQualifiedName(key), validation.IsValidLabelValue(value)...)
		if len(problems) > 0 {
			return out, fmt.Errorf("it gives a trial the label %.80q: %s", key, strings.Join(problems, ", "))
		}
		if strings.HasPrefix(key, "vernier.ml/") || key == v1beta1.LabelExperiment || key == v1beta1.LabelTrial {
			delete(labels, key) // those are ours to give
		}
	}
	out.Labels = labels
	return out, nil
}
