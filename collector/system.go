package collector

import "regexp"

// SystemAttempt is the ID of the attempt under which the machine's use of a trial is
// kept, beside the attempts of its program. It never becomes final.
const SystemAttempt = "system"

// System says whether an attempt holds what the machine was used for, not what the
// program measured.
func (a Attempt) System() bool { return a.ID == SystemAttempt }

// The metrics of a trial's use of its machine, of all its pods together. GPUs are
// numbered from 0 in the order of the pods' names.
const (
	// SystemGPU begins those of a GPU, such as system/gpu0.utilization_percent.
	SystemGPU = "system/gpu"
	// GPUUtilization ends the part of the time, in percent, in which the GPU computed;
	// GPUMemory the most of its memory that was held, in GiB. Both are of the GPU, not
	// of one of several pods that share it.
	GPUUtilization, GPUMemory = ".utilization_percent", ".memory_gib"
	// SystemCPU is how many cores were busy.
	SystemCPU = "system/cpu_cores"
	// SystemMemory is the most resident memory of all processes, in GiB. Pages that
	// processes share count for each.
	SystemMemory = "system/memory_gib"
)

var systemMetric = regexp.MustCompile(`^system/(gpu\d+(\.utilization_percent|\.memory_gib)|cpu_cores|memory_gib)$`)

// IsSystemMetric says whether a name is that of a machine's use. MLflow's names, such as
// system/gpu_0_utilization_percentage, are not.
func IsSystemMetric(name string) bool { return systemMetric.MatchString(name) }
