package agent

import (
	"context"

	"github.com/vernier-ml/vernier/local/podnet"
	"github.com/vernier-ml/vernier/local/shim"
)

// Survey is what an agent finds on a machine before it starts.
type Survey struct {
	// Mounts is how containers can have volumes; MountsErr says why not.
	Mounts    shim.MountMode
	MountsErr error
	// NetworkErr says why pods cannot have networks of their own; nil: they can.
	NetworkErr error
	// GPUs are the UUIDs of all GPUs and MIG devices, and GPUSource says how they were found.
	GPUs      []string
	GPUSource string
	// CPUs and Memory (bytes) are what this process may use.
	CPUs   int
	Memory int64
	// MemoryErr says why Memory is not known.
	MemoryErr error
}

// Look surveys this machine. shimBinary is the path of the shim; dir is writable, and
// is left as it was.
func Look(ctx context.Context, shimBinary, dir string) Survey {
	var s Survey
	s.Mounts, s.MountsErr = shim.ProbeMounts(ctx, shimBinary, dir)
	s.NetworkErr = podnet.Probe(ctx, podnet.Options{Binary: shimBinary, Dir: dir, Mounts: s.Mounts})
	found, source := findGPUs(ctx)
	s.GPUSource = source
	for _, d := range found {
		if d.uuid != "" {
			s.GPUs = append(s.GPUs, d.uuid)
		}
	}
	s.CPUs = cores()
	s.Memory, s.MemoryErr = availableMemory("/")
	return s
}
