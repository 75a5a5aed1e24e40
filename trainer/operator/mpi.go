package operator

import (
	"fmt"
	"path"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// mpi runs MPIJobs of kubeflow.org/v1, and those of v2beta1 in the same way: mpirun
// starts its processes in the workers by kubectl, so that these need no sshd and no
// keys. kubectl is the command, as a shell reads it.
func mpi(kubectl string) framework {
	return framework{
		kind: "MPIJob", plural: "mpijobs", field: "mpiReplicaSpecs", types: []string{"Launcher", "Worker"},
		container: "mpi", restart: never, leaders: []string{"Launcher"}, last: "Launcher", workersDone: allWorkers,
		check: func(j *job) error {
			if j.count("Launcher") != 1 {
				return fault("spec.mpiReplicaSpecs.Launcher", "an MPIJob has one launcher")
			}
			return nil
		},
		environ: mpiEnviron,
		beside:  func(j *job) []client.Object { return []client.Object{mpiConfig(j, kubectl)} },
	}
}

const (
	mpiDir    = "/etc/mpi"
	mpiVolume = "mpi-job-config"
)

// mpiEnviron lets the launcher find the workers. Open MPI wants the script in each
// worker too.
func mpiEnviron(j *job, s seat, pod *corev1.PodSpec) {
	pod.Volumes = append(pod.Volumes, corev1.Volume{Name: mpiVolume, VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{
		LocalObjectReference: corev1.LocalObjectReference{Name: j.Name + "-config"}, DefaultMode: ptr.To[int32](0o555),
	}}})
	c := &pod.Containers[0]
	c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{Name: mpiVolume, MountPath: mpiDir})
	if s.replica == "Worker" {
		if len(c.Command) == 0 {
			c.Command, c.Args = []string{"sleep"}, []string{"365d"}
		}
		c.Env = append(c.Env, variable("K_MPI_JOB_ROLE", "worker"))
		return
	}
	script, hosts := path.Join(mpiDir, "kubexec.sh"), path.Join(mpiDir, "hostfile")
	c.Env = append(c.Env, variable("K_MPI_JOB_ROLE", "launcher"))
	switch j.spec.MPIImplementation {
	case "MPICH":
		c.Env = append(c.Env, variable("HYDRA_HOST_FILE", hosts), variable("HYDRA_LAUNCHER", "rsh"), variable("HYDRA_LAUNCHER_EXEC", script))
	case "Intel":
		c.Env = append(c.Env, variable("I_MPI_HYDRA_HOST_FILE", hosts))
	}
	c.Env = append(c.Env, variable("OMPI_MCA_plm_rsh_agent", script), variable("OMPI_MCA_orte_default_hostfile", hosts))
	if !usesGPU(pod) {
		c.Env = append(c.Env, variable("NVIDIA_VISIBLE_DEVICES", ""), variable("NVIDIA_DRIVER_CAPABILITIES", ""))
	}
	for _, v := range []corev1.EnvVar{variable("I_MPI_HYDRA_BOOTSTRAP", "rsh"), variable("I_MPI_HYDRA_BOOTSTRAP_EXEC", script)} {
		if !has(c.Env, v.Name) {
			c.Env = append(c.Env, v)
		}
	}
}

func has(env []corev1.EnvVar, name string) bool {
	for _, v := range env {
		if v.Name == name {
			return true
		}
	}
	return false
}

func usesGPU(pod *corev1.PodSpec) bool {
	for _, c := range pod.Containers {
		for name := range c.Resources.Limits {
			if strings.Contains(string(name), "gpu") {
				return true
			}
		}
	}
	return false
}

// mpiConfig has the list of the workers, and the script that mpirun starts processes
// in them with.
func mpiConfig(j *job, kubectl string) *corev1.ConfigMap {
	var hosts []string
	if launcher := j.of("Launcher"); usesGPU(&launcher.template.Spec) || j.spec.RunLauncherAsWorker {
		hosts = append(hosts, j.podName("Launcher", 0))
	}
	for i := range j.count("Worker") {
		hosts = append(hosts, j.podName("Worker", i))
	}
	slots := ptr.Deref(j.spec.SlotsPerWorker, 1)
	hostfile, discover := "", "#!/bin/sh\n"
	for _, h := range hosts {
		switch j.spec.MPIImplementation {
		case "Intel", "MPICH":
			hostfile += fmt.Sprintf("%s:%d\n", h, slots)
		default:
			hostfile += fmt.Sprintf("%s slots=%d\n", h, slots)
		}
		discover += fmt.Sprintf("echo %s:%d\n", h, slots)
	}
	container := ""
	if j.spec.MainContainer != "" {
		container = " --container " + j.spec.MainContainer
	}
	return &corev1.ConfigMap{ObjectMeta: j.meta(j.Name+"-config", nil), Data: map[string]string{
		"hostfile":          hostfile,
		"discover_hosts.sh": discover,
		"kubexec.sh": fmt.Sprintf("#!/bin/sh\npod=$1\nshift\nexec %s exec --namespace %s $pod%s -- /bin/sh -c \"$*\"\n",
			kubectl, j.Namespace, container),
	}}
}
