// Package v1beta1 holds the types of the group kubeflow.org: Experiment, Trial
// and Suggestion, with Katib's field names, and their defaults and conditions.
//
// Fields that Katib does not have are marked "Vernier" in their comment. The
// package imports nothing else of this project.
//
// +kubebuilder:object:generate=true
// +groupName=kubeflow.org
package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupVersion is the group and version of the types in this package.
var GroupVersion = schema.GroupVersion{Group: "kubeflow.org", Version: "v1beta1"}

// AddToScheme registers the types of this package with s.
func AddToScheme(s *runtime.Scheme) error {
	s.AddKnownTypes(GroupVersion,
		&Experiment{}, &ExperimentList{},
		&Trial{}, &TrialList{},
		&Suggestion{}, &SuggestionList{},
	)
	metav1.AddToGroupVersion(s, GroupVersion)
	return nil
}
