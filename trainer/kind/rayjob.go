package kind

import (
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/vernier-ml/vernier/trainer"
)

// rayJob is KubeRay's. It shows the templates of its cluster; the program may be run by
// another pod, which submits it and prints its output.
type rayJob struct{ generic }

var _ trainer.Opaque = rayJob{}

func newRayJob() rayJob {
	return rayJob{generic{schema.GroupVersionKind{Group: "ray.io", Version: "v1", Kind: "RayJob"}}}
}

func (rayJob) Beside() bool { return true }
