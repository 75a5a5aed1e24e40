package kind

import (
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/vernier-ml/vernier/trainer"
)

// sparkApplication is the Spark operator's. Its driver may have a template; without one
// spark-submit makes its pod.
type sparkApplication struct{ generic }

var _ trainer.Opaque = sparkApplication{}

func newSparkApplication() sparkApplication {
	return sparkApplication{generic{schema.GroupVersionKind{Group: "sparkoperator.k8s.io", Version: "v1beta2", Kind: "SparkApplication"}}}
}

func (sparkApplication) Beside() bool { return true }

func (sparkApplication) PodLabels() []string { return []string{"spec", "driver", "labels"} }
