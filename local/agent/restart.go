package agent

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// Restart back-off as the kubelet has it: the first restart is immediate, the
// next waits 10 s after the exit, then twice as long each time up to 300 s. A
// run of more than 10 minutes starts it anew.
const (
	backoffFirst = 10 * time.Second
	backoffMax   = 300 * time.Second
	backoffReset = 10 * time.Minute
)

// restartDelay is the time between the end of the newest run and the next
// start. It is derived from the runs alone, so it survives the agent. Where the
// oldest runs are no longer known, they count as short ones.
func restartDelay(runs []run) time.Duration {
	restarts := 0 // since the last run that was long enough
	for i, r := range runs {
		switch {
		case r.running():
		case r.FinishedAt.Sub(r.StartedAt) > backoffReset:
			restarts = 0
		case i == 0:
			restarts = r.Number
		default:
			restarts++
		}
	}
	if restarts == 0 {
		return 0
	}
	return min(backoffFirst<<min(restarts-1, 8), backoffMax)
}

// shouldRestart reports whether a container that ended with the exit code is
// to be started again under the rules of the container and its pod.
func shouldRestart(spec *corev1.PodSpec, c *corev1.Container, exitCode int32) bool {
	if isSidecar(c) {
		return true
	}
	for i := range c.RestartPolicyRules {
		rule := &c.RestartPolicyRules[i]
		if rule.ExitCodes != nil && ruleMatches(rule.ExitCodes, exitCode) {
			return rule.Action == corev1.ContainerRestartRuleActionRestart
		}
	}
	if c.RestartPolicy != nil {
		return policyRestarts(corev1.RestartPolicy(*c.RestartPolicy), exitCode)
	}
	return policyRestarts(spec.RestartPolicy, exitCode)
}

func ruleMatches(rule *corev1.ContainerRestartRuleOnExitCodes, exitCode int32) bool {
	in := slices.Contains(rule.Values, exitCode)
	if rule.Operator == corev1.ContainerRestartRuleOnExitCodesOpNotIn {
		return !in
	}
	return in
}

func policyRestarts(policy corev1.RestartPolicy, exitCode int32) bool {
	switch policy {
	case corev1.RestartPolicyNever:
		return false
	case corev1.RestartPolicyOnFailure:
		return exitCode != 0
	default:
		return true
	}
}
