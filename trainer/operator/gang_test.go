package operator

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// torchJob is a PyTorchJob of a master and two workers.
func torchJob(t *testing.T, policy, scheduler string) *job {
	t.Helper()
	raw, err := yaml.YAMLToJSON([]byte(`{apiVersion: kubeflow.org/v1, kind: PyTorchJob, metadata: {name: mnist, namespace: team}, spec: {
      runPolicy: {` + policy + `}, pytorchReplicaSpecs: {
      Master: {template: &t {spec: {schedulerName: "` + scheduler + `", containers: [{name: pytorch, image: train}]}}},
      Worker: {replicas: 2, template: *t}}}}`))
	obj := &unstructured.Unstructured{}
	if err == nil {
		err = obj.UnmarshalJSON(raw)
	}
	if err != nil {
		t.Fatal(err)
	}
	j, err := read(obj, pytorch())
	if err != nil {
		t.Fatal(err)
	}
	return j
}

func TestGangs(t *testing.T) {
	both := []gangScheduler{volcano, coscheduling}
	asked := "schedulingPolicy: {}"
	type gang struct {
		group     string // of the kind, "" for none
		scheduler string
		spec      map[string]any
		label     string
		task      string
	}
	ofVolcano := gang{group: "scheduling.volcano.sh", scheduler: "volcano", spec: map[string]any{"minMember": int64(3)}, task: "worker"}
	ofPlugin := gang{group: "scheduling.x-k8s.io", scheduler: "scheduler-plugins-scheduler", spec: map[string]any{"minMember": int64(3)}, label: "mnist"}
	with := func(g gang, scheduler string, spec map[string]any) gang {
		g.scheduler, g.spec = scheduler, spec
		return g
	}
	tests := map[string]struct {
		policy, scheduler string
		installed         []gangScheduler
		want              gang
	}{
		"a job that asks for none":             {"", "", both, gang{}},
		"where there is none":                  {asked, "", nil, gang{}},
		"Volcano, where both are":              {asked, "", both, ofVolcano},
		"the plugin, where it is alone":        {asked, "", both[1:], ofPlugin},
		"pods of Volcano ask by their name":    {"", "volcano", both, ofVolcano},
		"and find it only where it is":         {asked, "volcano", both[1:], gang{scheduler: "volcano"}},
		"another scheduler means the plugin's": {asked, "mine", both, with(ofPlugin, "mine", ofPlugin.spec)},
		"Volcano's fields": {"schedulingPolicy: {minAvailable: 2, queue: team, priorityClass: high, minResources: {cpu: 3000m}, scheduleTimeoutSeconds: 9}", "", both,
			with(ofVolcano, "volcano", map[string]any{"minMember": int64(2), "queue": "team", "priorityClassName": "high", "minResources": map[string]any{"cpu": "3"}})},
		"the plugin's fields": {"schedulingPolicy: {minAvailable: 2, queue: team, scheduleTimeoutSeconds: 9}", "", both[1:],
			with(ofPlugin, ofPlugin.scheduler, map[string]any{"minMember": int64(2), "scheduleTimeoutSeconds": int64(9)})},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			mapper := meta.NewDefaultRESTMapper(nil)
			for _, g := range tc.installed {
				mapper.Add(g.group, meta.RESTScopeNamespace)
			}
			j := torchJob(t, tc.policy, tc.scheduler)
			if err := j.chooseGang(mapper); err != nil {
				t.Fatal(err)
			}
			worker := j.pod(seat{"Worker", 1})
			got := gang{scheduler: worker.Spec.SchedulerName, label: worker.Labels["scheduling.x-k8s.io/pod-group"], task: worker.Annotations["volcano.sh/task-spec"]}
			for _, o := range j.objects([]seat{{"Worker", 1}}) {
				if g, ok := o.(*unstructured.Unstructured); ok {
					got.group, got.spec = g.GroupVersionKind().Group, g.Object["spec"].(map[string]any)
					if g.GetName() != "mnist" || g.GetNamespace() != "team" || len(g.GetOwnerReferences()) != 1 {
						t.Errorf("the group is %+v", g.Object["metadata"])
					}
				}
			}
			if diff := cmp.Diff(tc.want, got, cmp.AllowUnexported(gang{})); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

// The launcher of an MPIJob is made when its workers run: a group with it would never be
// whole.
func TestAGangOfMPIHasNoLauncher(t *testing.T) {
	j := torchJob(t, "schedulingPolicy: {}", "")
	j.framework, j.gang = mpi("kubectl"), &volcano
	j.replicas[0].name = "Launcher"
	if got := j.podGroup().Object["spec"]; !cmp.Equal(got, any(map[string]any{"minMember": int64(2)})) {
		t.Errorf("the group is %v", got)
	}
}

func TestAGangOfMPIWithMinAvailableOfAll(t *testing.T) {
	j := torchJob(t, "schedulingPolicy: {minAvailable: 3}", "")
	j.framework, j.gang = mpi("kubectl"), &volcano
	j.replicas[0].name = "Launcher"
	if got := j.podGroup().Object["spec"].(map[string]any)["minMember"]; got != int64(2) {
		t.Errorf("Volcano waits for %v pods, of which 2 are made before it starts any", got)
	}
}
