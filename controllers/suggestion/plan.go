package suggestion

import (
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/vernier-ml/vernier/api/v1beta1"
)

// kept is how many proposals the record holds at most, and keptBytes how many bytes
// of names and values: the newest. An object of the API server has at most 1.5 MB.
const (
	kept      = 256
	keptBytes = 512 << 10
)

const (
	messageCreated    = "Suggestion is created"
	messageReady      = "The algorithm is built in"
	messageRunning    = "Suggestion is running"
	messageRestarting = "Experiment is restarting"
	messageFailed     = "Experiment has failed"
	messageSucceeded  = "Suggestion is succeeded, the experiment has ended"
)

// plan is the record as it should be: have (nil when there is none), brought up
// to date with the experiment and its trials, in order of number. The arguments are not changed.
func plan(have *v1beta1.Suggestion, exp *v1beta1.Experiment, trials []*v1beta1.Trial, now time.Time) *v1beta1.Suggestion {
	s := base(have, exp)
	s.Spec.Requests = int32(len(trials))
	s.Status.SuggestionCount = int32(len(trials))
	s.Status.Suggestions = proposals(trials)
	follow(s, exp, len(trials), metav1.NewTime(now), messageReady)
	return s
}

// base is the Suggestion with what follows from the experiment alone.
func base(have *v1beta1.Suggestion, exp *v1beta1.Experiment) *v1beta1.Suggestion {
	s := &v1beta1.Suggestion{}
	if have != nil {
		s = have.DeepCopy()
	}
	s.Namespace, s.Name = exp.Namespace, exp.Name
	if have == nil {
		s.Labels = maps.Clone(exp.Labels)
		if s.Labels == nil {
			s.Labels = map[string]string{}
		}
		s.Labels[v1beta1.LabelExperiment] = exp.Name
		s.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(exp, v1beta1.GroupVersion.WithKind("Experiment"))}
	}
	s.Spec.Algorithm = exp.Spec.Algorithm.DeepCopy()
	s.Spec.EarlyStopping = exp.Spec.EarlyStopping.DeepCopy()
	s.Spec.ResumePolicy = exp.Spec.ResumePolicy
	return s
}

// volumeClaim is the claim for the checkpoints of the experiment's trials, of the size
// that Katib gives it; or, where the resume policy is FromVolume, the one that Katib's
// clients look for. What an algorithm needs is in the trials, so nothing is kept in
// that: it asks for a volume that exists nowhere, and takes no storage. Nil if neither
// is wanted.
func volumeClaim(exp *v1beta1.Experiment, s *v1beta1.Suggestion) (claim *corev1.PersistentVolumeClaim, forCheckpoints bool) {
	checkpoints := exp.Spec.Checkpoints()
	forCheckpoints = checkpoints != nil && checkpoints.ClaimName == ""
	if s.Spec.Algorithm == nil || !forCheckpoints && s.Spec.ResumePolicy != v1beta1.FromVolume {
		return nil, false
	}
	claim = &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: s.Namespace, Name: v1beta1.VolumeClaimName(s.Name, s.Spec.Algorithm),
			Labels: maps.Clone(s.Labels), OwnerReferences: slices.Clone(s.OwnerReferences),
		},
	}
	size := func(text string) corev1.VolumeResourceRequirements {
		return corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(text)}}
	}
	if forCheckpoints {
		claim.Spec = corev1.PersistentVolumeClaimSpec{
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteMany}, Resources: size("5Gi"),
		}
		return claim, true
	}
	claim.Spec = corev1.PersistentVolumeClaimSpec{
		AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}, Resources: size("1Mi"),
		StorageClassName: ptr.To(""),
		Selector:         &metav1.LabelSelector{MatchLabels: map[string]string{v1beta1.LabelExperiment: "none"}},
	}
	return claim, false
}

// proposals are the newest trials as the algorithm proposed them.
func proposals(trials []*v1beta1.Trial) []v1beta1.TrialAssignment {
	var out []v1beta1.TrialAssignment
	size := 0
	for _, t := range slices.Backward(trials[max(0, len(trials)-kept):]) {
		const markup = 32 // of an assignment in JSON
		size += markup + len(t.Name)
		for _, a := range t.Spec.ParameterAssignments {
			size += markup + len(a.Name) + len(a.Value)
		}
		if size > keptBytes {
			break
		}
		out = append(out, v1beta1.TrialAssignment{Name: t.Name, ParameterAssignments: t.Spec.ParameterAssignments, Labels: t.Spec.Labels})
	}
	slices.Reverse(out)
	return out
}

// follow brings the conditions up to date. ready is why the algorithm can be asked; ""
// when that is not known now.
func follow(s *v1beta1.Suggestion, exp *v1beta1.Experiment, trials int, now metav1.Time, ready string) {
	if s.Status.StartTime == nil {
		s.Status.StartTime = &now
	}
	s.MarkCreated(messageCreated, now)
	if ready != "" {
		s.MarkDeploymentReady(ready, now)
	}
	switch {
	case exp.IsSucceeded() && exp.Spec.ResumePolicy == v1beta1.LongRunning:
		s.MarkRunning(messageRunning, now) // as in Katib it waits for a larger budget
	case exp.IsCompleted():
		if s.Status.CompletionTime == nil {
			s.Status.CompletionTime = &now
		}
		if exp.IsFailed() {
			s.MarkFailed(messageFailed, now)
		} else {
			s.MarkSucceeded(messageSucceeded, now)
		}
	case s.IsSucceeded():
		s.Status.CompletionTime = nil
		s.MarkRestarting(messageRestarting, now)
	case trials > 0 && !s.IsFailed():
		s.MarkRunning(messageRunning, now)
	}
}

func sameSpec(a, b *v1beta1.Suggestion) bool {
	return equality.Semantic.DeepEqual(a.Spec, b.Spec)
}

func sameStatus(a, b *v1beta1.SuggestionStatus) bool {
	x, y := *a, *b
	x.LastReconcileTime, y.LastReconcileTime = nil, nil
	return equality.Semantic.DeepEqual(x, y)
}
