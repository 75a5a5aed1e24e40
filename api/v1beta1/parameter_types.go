package v1beta1

// ParameterType is the type of a parameter.
// +kubebuilder:validation:Enum=int;double;discrete;categorical;unknown
type ParameterType string

// The types of a parameter.
const (
	ParameterTypeInt         ParameterType = "int"
	ParameterTypeDouble      ParameterType = "double"
	ParameterTypeDiscrete    ParameterType = "discrete"
	ParameterTypeCategorical ParameterType = "categorical"
)

// Distribution is the prior of a numeric parameter.
// +kubebuilder:validation:Enum=uniform;logUniform;normal;logNormal;unknown
type Distribution string

// The distributions of a parameter.
const (
	DistributionUniform    Distribution = "uniform"
	DistributionLogUniform Distribution = "logUniform"
	DistributionNormal     Distribution = "normal"
	DistributionLogNormal  Distribution = "logNormal"
)

// ParameterSpec is one dimension of the search space.
// +kubebuilder:validation:XValidation:rule="!has(self.parameterType) || !(self.parameterType in ['int', 'double']) || !has(self.feasibleSpace) || !has(self.feasibleSpace.list) || size(self.feasibleSpace.list) == 0",message="an int or double has min and max, not a list"
// +kubebuilder:validation:XValidation:rule="!has(self.parameterType) || !(self.parameterType in ['discrete', 'categorical']) || !has(self.feasibleSpace) || ((!has(self.feasibleSpace.min) || size(self.feasibleSpace.min) == 0) && (!has(self.feasibleSpace.max) || size(self.feasibleSpace.max) == 0) && (!has(self.feasibleSpace.step) || size(self.feasibleSpace.step) == 0))",message="a discrete or categorical has a list, not min, max and step"
type ParameterSpec struct {
	// Name of the parameter.
	// +optional
	Name string `json:"name,omitempty"`
	// ParameterType is int, double, discrete or categorical.
	// +optional
	ParameterType ParameterType `json:"parameterType,omitempty"`
	// FeasibleSpace is the set of values that the parameter may take.
	// +optional
	FeasibleSpace FeasibleSpace `json:"feasibleSpace,omitempty"`
	// When (Vernier) says for which values of another parameter this one is
	// active. An inactive parameter has no value: an argument that consists of its
	// placeholder is omitted, and elsewhere the placeholder becomes empty.
	// Default: always active.
	// +optional
	When *ParameterCondition `json:"when,omitempty"`
}

// ParameterCondition is satisfied if another parameter has one of the given values.
type ParameterCondition struct {
	// Parameter that this one depends on. It must have finitely many values.
	// +kubebuilder:validation:MinLength=1
	Parameter string `json:"parameter"`
	// In lists the values.
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	In []string `json:"in"`
}

// FeasibleSpace is the set of values that a parameter may take. Numbers are strings,
// as in Katib.
type FeasibleSpace struct {
	// Max is the largest value of an int or double.
	// +optional
	Max string `json:"max,omitempty"`
	// Min is the smallest value of an int or double.
	// +optional
	Min string `json:"min,omitempty"`
	// List are the values of a discrete or categorical.
	// +optional
	// +listType=atomic
	List []string `json:"list,omitempty"`
	// Step between the values of an int or double.
	// +optional
	Step string `json:"step,omitempty"`
	// Distribution of an int or double. Default: uniform.
	// +optional
	Distribution Distribution `json:"distribution,omitempty"`
	// Prior (Vernier) is where good values are believed to be. The search begins there,
	// and believes its results more and more.
	// +optional
	Prior *ParameterPrior `json:"prior,omitempty"`
}

// ParameterPrior is where good values of a parameter are believed to be: around a value,
// or, of a list, by weights.
type ParameterPrior struct {
	// Value that is believed to be good. Of a categorical it is as likely as all others
	// together, or three times as likely as the only other one.
	// +optional
	Value string `json:"value,omitempty"`
	// Spread is how far from the value good values are likely to be, as a share of the
	// range on the scale of its distribution: above 0, at most 1. Default: 0.1.
	// +optional
	Spread string `json:"spread,omitempty"`
	// Weights of the values of a list, in its order, in place of value.
	// +optional
	// +listType=atomic
	Weights []string `json:"weights,omitempty"`
}
