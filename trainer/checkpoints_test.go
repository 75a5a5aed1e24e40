package trainer_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/vernier-ml/vernier/trainer"
	"github.com/vernier-ml/vernier/trainer/kind"
)

const checkpointed = `
restartPolicy: Never
containers:
- name: main
  image: train
  command: [train]
  securityContext: {runAsUser: 1000, readOnlyRootFilesystem: true}
`

func TestCheckpointsAreMadeByTheUserOfTheProgram(t *testing.T) {
	for _, kind := range []string{trainer.StdOut, trainer.File, trainer.Push} {
		t.Run(kind, func(t *testing.T) {
			c := collector(kind)
			c.Checkpoints = &trainer.Checkpoints{Path: "/ckpt", Claim: "exp-pbt", Folder: "exp-1234", Parent: "exp-0000", UID: "u1"}
			pod := injectedTwice(t, job(t, checkpointed), c)
			var names []string
			for _, init := range pod.InitContainers {
				names = append(names, init.Name)
			}
			if diff := cmp.Diff([]string{"vernier-install", "vernier-checkpoints"}, names[:2]); diff != "" {
				t.Errorf("init containers (-want +got):\n%s", diff)
			}
			user, readOnly := int64(1000), true
			want := corev1.Container{
				Name: "vernier-checkpoints", Image: "train",
				Command:                  []string{"/var/run/vernier/bin/collector", "checkpoints", "--to=/var/run/vernier-checkpoints/exp-0001", "--uid=u1", "--from=/var/run/vernier-checkpoints/exp-0000"},
				TerminationMessagePolicy: corev1.TerminationMessageFallbackToLogsOnError,
				SecurityContext:          &corev1.SecurityContext{RunAsUser: &user, ReadOnlyRootFilesystem: &readOnly},
				VolumeMounts: []corev1.VolumeMount{
					{Name: "vernier-checkpoints", MountPath: "/var/run/vernier-checkpoints", SubPath: "exp-1234"},
					{Name: "vernier-metrics", MountPath: "/var/run/vernier"},
				},
			}
			if diff := cmp.Diff(want, pod.InitContainers[1]); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			own := corev1.VolumeMount{Name: "vernier-checkpoints", MountPath: "/ckpt", SubPath: "exp-1234/exp-0001"}
			if !slices.Contains(pod.Containers[0].VolumeMounts, own) {
				t.Errorf("the program has the mounts %+v", pod.Containers[0].VolumeMounts)
			}
			if !slices.ContainsFunc(pod.Volumes, func(v corev1.Volume) bool {
				return v.PersistentVolumeClaim != nil && v.PersistentVolumeClaim.ClaimName == "exp-pbt"
			}) {
				t.Errorf("the pod has the volumes %+v", pod.Volumes)
			}
		})
	}
}

func TestAMountInThePlaceOfCheckpointsIsAFault(t *testing.T) {
	c := collector(trainer.StdOut)
	c.Checkpoints = &trainer.Checkpoints{Path: "/ckpt", Claim: "exp-pbt", Folder: "exp-1234"}
	obj := job(t, checkpointed+"  volumeMounts: [{name: mine, mountPath: /ckpt}]\nvolumes: [{name: mine, emptyDir: {}}]\n")
	err := trainer.Inject(obj, kind.For(obj.GroupVersionKind()), c)
	if err == nil || !strings.Contains(err.Error(), "mounts a volume at /ckpt") {
		t.Error(err)
	}
}

func TestPathsForCheckpoints(t *testing.T) {
	for place, ok := range map[string]bool{
		"/ckpt": true, "/var/log/katib/checkpoints": true,
		"": false, "ckpt": false, "/": false, "/a/../b": false, "/var/run/vernier/ckpt": false, "/var/run": false,
	} {
		if err := trainer.CheckCheckpointPath(place); (err == nil) != ok {
			t.Errorf("%q: %v", place, err)
		}
	}
}
