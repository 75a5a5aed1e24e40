package experiment

import (
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/vernier-ml/vernier/api/v1beta1"
)

// keptModels bounds how many models are kept: one of a Gaussian process with
// 800 trials has some 40 MB.
const keptModels = 8

// models keeps what experiments' algorithms have learned, so that the next
// question does not start from nothing. Losing one costs time only. M is the
// space and algorithm of one experiment.
type models[M any] struct {
	mu   sync.Mutex
	kept []keptModel[M] // the one used last comes last
}

type keptModel[M any] struct {
	uid   types.UID
	name  types.NamespacedName
	spec  v1beta1.ExperimentSpec
	model M
	// held: it learns until then at most, and must not make way for another.
	held time.Time
}

// modelled is the part of a spec that a model is made of.
func modelled(spec *v1beta1.ExperimentSpec) v1beta1.ExperimentSpec {
	return v1beta1.ExperimentSpec{
		Parameters: spec.Parameters, ParameterConstraints: spec.ParameterConstraints,
		Algorithm: spec.Algorithm, EarlyStopping: spec.EarlyStopping, NasConfig: spec.NasConfig,
	}
}

// get gives the experiment's model, and builds it when there is none or when the
// experiment asks for another one by now. kept is false for one that is built and
// found no place, since all others learn: who begins to learn with it does so in
// vain.
func (m *models[M]) get(exp *v1beta1.Experiment, now time.Time, build func() (M, error)) (model M, kept bool, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if i := m.index(exp.UID); i >= 0 {
		k := m.kept[i]
		m.kept = slices.Delete(m.kept, i, i+1)
		if equality.Semantic.DeepEqual(k.spec, modelled(&exp.Spec)) {
			m.kept = append(m.kept, k)
			return k.model, true, nil
		}
	}
	if model, err = build(); err != nil {
		return model, false, err
	}
	if len(m.kept) >= keptModels {
		i := slices.IndexFunc(m.kept, func(k keptModel[M]) bool { return !now.Before(k.held) })
		if i < 0 {
			return model, false, nil
		}
		m.kept = slices.Delete(m.kept, i, i+1)
	}
	m.kept = append(m.kept, keptModel[M]{
		uid: exp.UID, name: client.ObjectKeyFromObject(exp), spec: modelled(exp.Spec.DeepCopy()), model: model,
	})
	return model, true, nil
}

// hold keeps the model of an experiment from making way until a time.
func (m *models[M]) hold(uid types.UID, until time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if i := m.index(uid); i >= 0 {
		m.kept[i].held = until
	}
}

// drop forgets the model of an experiment that needs it no more.
func (m *models[M]) drop(uid types.UID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if i := m.index(uid); i >= 0 {
		m.kept = slices.Delete(m.kept, i, i+1)
	}
}

// dropNamed forgets the models of experiments that had this name: all that is
// known of one that was deleted.
func (m *models[M]) dropNamed(name types.NamespacedName) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.kept = slices.DeleteFunc(m.kept, func(k keptModel[M]) bool { return k.name == name })
}

func (m *models[M]) index(uid types.UID) int {
	return slices.IndexFunc(m.kept, func(k keptModel[M]) bool { return k.uid == uid })
}
