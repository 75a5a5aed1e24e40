package main

import "math"

// checkLimits says what is wrong with the numbers of the command line.
func (o *scriptOptions) checkLimits() error {
	s := &o.spec
	switch {
	case s.Trials < 1 || o.parallel < 1:
		return usageErrorf("-n %d -j %d: both must be at least 1", s.Trials, o.parallel)
	case s.GPUs < 0:
		return usageErrorf("--gpus %d: it must be at least 0", s.GPUs)
	case o.duration < 0:
		return usageErrorf("--max-duration %s is below zero", o.duration)
	case o.perTrial < 0:
		return usageErrorf("--max-trial-duration %s is below zero", o.perTrial)
	case math.IsNaN(o.goal) || math.IsInf(o.goal, 0):
		return usageErrorf("--goal %g: write a finite number", o.goal)
	case o.flags.Changed("max-gpu-hours"):
		return checkHours(o.gpuHours)
	}
	return nil
}
