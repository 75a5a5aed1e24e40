package suggestion

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	pb "github.com/vernier-ml/vernier/api/proto/katib/v1beta1"
	"github.com/vernier-ml/vernier/api/v1beta1"
	"github.com/vernier-ml/vernier/controllers/katib/message"
	"github.com/vernier-ml/vernier/controllers/study"
)

// stateSetting is the algorithm setting in which the caller keeps what algorithms want
// back with their trials: Katib's controller sends what a reply says with each later
// request. It is a JSON object of notes by the trials' numbers.
const stateSetting = "vernier-state"

// maxState bounds that setting, in bytes: the notes of the newest trials. An object of
// the API server has at most 1.5 MB, and the proposals are in the same one.
const maxState = 256 << 10

// note is what an algorithm wants back with one trial.
type note struct {
	Meta     map[string]string `json:"meta,omitempty"`
	Resource float64           `json:"resource,omitempty"`
}

// takeState removes our setting from the experiment and reads it.
func takeState(exp *v1beta1.Experiment) (map[int]note, error) {
	settings := exp.Spec.Algorithm.AlgorithmSettings
	i := slices.IndexFunc(settings, func(s v1beta1.AlgorithmSetting) bool { return s.Name == stateSetting })
	if i < 0 {
		return map[int]note{}, nil
	}
	notes := map[int]note{}
	if err := json.Unmarshal([]byte(settings[i].Value), &notes); err != nil {
		return nil, fmt.Errorf("the setting %s is not as this service wrote it: %w", stateSetting, err)
	}
	exp.Spec.Algorithm.AlgorithmSettings = slices.Delete(slices.Clone(settings), i, i+1)
	return notes, nil
}

// writeState is the setting with these notes, without the oldest where there are too
// many; "" if there are none.
func writeState(notes map[int]note) (string, error) {
	numbers := make([]int, 0, len(notes))
	for n := range notes {
		numbers = append(numbers, n)
	}
	slices.SortFunc(numbers, func(a, b int) int { return cmp.Compare(b, a) })
	kept, size := map[int]note{}, 0
	for _, n := range numbers {
		text, err := json.Marshal(notes[n])
		if err != nil {
			return "", fmt.Errorf("encode what the algorithm wants back with trial %d: %w", n, err)
		}
		if size += len(text) + len(`"2147483647":,`); size > maxState {
			break
		}
		kept[n] = notes[n]
	}
	if len(kept) == 0 {
		return "", nil
	}
	text, err := json.Marshal(kept)
	return string(text), err
}

// named matches the names that we give, behind that of the experiment. What follows the
// number tells experiments of the same name apart: in Katib the metrics of all
// namespaces are in one table.
var named = regexp.MustCompile(`^-([0-9]{4,9})-[a-z0-9]{8}$`)

func trialName(experiment string, number int, suffix string) string {
	return v1beta1.TrialName(experiment, number) + "-" + suffix
}

// numberOf is the number in a name that we gave.
func numberOf(experiment, trial string) (n int, ok bool) {
	if len(trial) < len(experiment) || trial[:len(experiment)] != experiment {
		return 0, false
	}
	found := named.FindStringSubmatch(trial[len(experiment):])
	if found == nil {
		return 0, false
	}
	n, err := strconv.Atoi(found[1])
	return n, err == nil
}

// trialsOf are the trials of a request in order of number. Those that got their names
// elsewhere have the numbers that are free, in the order in which they began. Katib
// leaves some out, those without a result: the last number that was asked for counts as
// taken, so that no number is used twice.
func trialsOf(r *pb.GetSuggestionsRequest, notes map[int]note) []*v1beta1.Trial {
	experiment := r.GetExperiment().GetName()
	taken := map[int]bool{}
	var out []*v1beta1.Trial
	var others []*pb.Trial
	add := func(m *pb.Trial, n int) {
		t := message.ToTrial(m)
		metav1.SetMetaDataLabel(&t.ObjectMeta, v1beta1.LabelTrialNumber, strconv.Itoa(n))
		if kept := notes[n]; kept.Meta != nil || kept.Resource != 0 {
			text, _ := json.Marshal(kept.Meta) // strings can always be encoded
			metav1.SetMetaDataAnnotation(&t.ObjectMeta, v1beta1.AnnotationMeta, string(text))
			if kept.Resource > 0 {
				metav1.SetMetaDataAnnotation(&t.ObjectMeta, v1beta1.AnnotationResource, strconv.FormatFloat(kept.Resource, 'g', -1, 64))
			}
		}
		taken[n] = true
		out = append(out, t)
	}
	for _, m := range r.GetTrials() {
		if n, ok := numberOf(experiment, m.GetName()); ok && !taken[n] {
			add(m, n)
		} else {
			others = append(others, m)
		}
	}
	slices.SortStableFunc(others, func(a, b *pb.Trial) int {
		return cmp.Compare(started(a), started(b))
	})
	free := 0
	for _, m := range others {
		for taken[free] {
			free++
		}
		add(m, free)
	}
	if last := int(r.GetTotalRequestNumber()) - int(r.GetCurrentRequestNumber()) - 1; last >= 0 && !slices.ContainsFunc(out, func(t *v1beta1.Trial) bool {
		n, _ := t.Number()
		return n >= last
	}) {
		add(&pb.Trial{Status: &pb.TrialStatus{Condition: pb.TrialStatus_METRICSUNAVAILABLE}}, last)
	}
	slices.SortFunc(out, func(a, b *v1beta1.Trial) int {
		i, _ := a.Number()
		j, _ := b.Number()
		return cmp.Compare(i, j)
	})
	return out
}

// started is when a trial began; one that has not yet comes last.
func started(m *pb.Trial) string { return cmp.Or(m.GetStatus().GetStartTime(), "~") }

// next is the number of the first new trial.
func next(trials []*v1beta1.Trial) int {
	if len(trials) == 0 {
		return 0
	}
	n, _ := trials[len(trials)-1].Number()
	return min(n, math.MaxInt32) + 1
}

// objectiveOf takes the name of the objective from the trials if the experiment lacks
// it.
func objectiveOf(exp *v1beta1.Experiment, trials []*pb.Trial) {
	for _, t := range trials {
		if exp.Spec.Objective.ObjectiveMetricName != "" {
			return
		}
		exp.Spec.Objective.ObjectiveMetricName = t.GetSpec().GetObjective().GetObjectiveMetricName()
	}
}

// replyOf is the answer with these proposals, which begin with the number first.
func replyOf(r *pb.GetSuggestionsRequest, proposals []study.Proposal, first int, notes map[int]note, suffix func() string) (*pb.GetSuggestionsReply, error) {
	reply := &pb.GetSuggestionsReply{}
	noted := false
	for i, p := range proposals {
		out := &pb.GetSuggestionsReply_ParameterAssignments{TrialName: trialName(r.GetExperiment().GetName(), first+i, suffix())}
		for _, a := range p.Assignments {
			out.Assignments = append(out.Assignments, &pb.ParameterAssignment{Name: a.Name, Value: a.Value})
		}
		if len(p.Meta) > 0 || p.Resource != 0 {
			notes[first+i], noted = note{p.Meta, p.Resource}, true
		}
		reply.ParameterAssignments = append(reply.ParameterAssignments, out)
	}
	if !noted {
		return reply, nil
	}
	state, err := writeState(notes)
	if err != nil {
		return nil, err
	}
	reply.Algorithm = &pb.AlgorithmSpec{
		AlgorithmName:     r.GetExperiment().GetSpec().GetAlgorithm().GetAlgorithmName(),
		AlgorithmSettings: []*pb.AlgorithmSetting{{Name: stateSetting, Value: state}},
	}
	return reply, nil
}
