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
	delay, next := time.Duration(0), backoffFirst
	step := func() { delay, next = next, min(2*next, backoffMax) }
	for i, r := range runs {
		if r.running() {
			break
		}
		if r.FinishedAt.Sub(r.StartedAt) > backoffReset {
			delay, next = 0, backoffFirst
			continue
		}
		if i == 0 {
			for range min(r.Number, 8) {
				step()
			}
			continue
		}
		step()
	}
	return delay
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

// initShouldRestart is shouldRestart for a regular init container, which is
// never run again after it has succeeded.
func initShouldRestart(spec *corev1.PodSpec, c *corev1.Container, exitCode int32) bool {
	return exitCode != 0 && shouldRestart(spec, c, exitCode)
}
