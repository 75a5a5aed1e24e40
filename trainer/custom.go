package trainer

import (
	"errors"
	"fmt"
	"path"
	"slices"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/vernier-ml/vernier/collector/contract"
)

// pushes reports whether the sidecar accepts points from others.
func (p pod) pushes() bool { return p.c.Kind == Push || p.c.Kind == Custom }

// addCustom adds the user's collector container to the pod, as Katib does: as it is
// written, with the directory of the metrics mounted, and able to see the pod's
// processes. The sidecar stands in for Katib's DBManager, so that the collector's
// reports are delivered like all others.
func (p pod) addCustom(main map[string]any, where []string) error {
	switch {
	case p.c.Custom == nil:
		return errors.New("the Custom collector has no container: write customCollector")
	case p.sharesNetwork():
		return errors.New("a Custom collector reports to the DBManager in its pod, so the pod needs a network of its own: leave hostNetwork out, and the annotation vernier.ml/network: host")
	}
	custom, err := runtime.DefaultUnstructuredConverter.ToUnstructured(p.c.Custom)
	if err != nil {
		return fmt.Errorf("build the container of the Custom collector: %w", err)
	}
	if err := p.checkCustomName(p.c.Custom.Name); err != nil {
		return err
	}
	var shared []any
	if p.c.Path != "" {
		if shared, err = p.shareSource(main, where); err != nil {
			return err
		}
	}
	for _, m := range append(shared, mount(MetricsVolume, contract.DefaultDir)) {
		addMount(custom, m)
	}
	list, _ := custom["env"].([]any)
	if named(list, EnvTrialName) == nil {
		upsert(custom, "env", map[string]any{
			"name":      EnvTrialName,
			"valueFrom": fieldRef("metadata.labels['" + LabelTrial + "']"),
		})
	}
	addEnv(custom, contract.EnvPushSocket, contract.PushSocket)
	addEnv(custom, contract.EnvPushURL, "http://"+contract.PushAddress+"/"+p.c.pushToken()+"/report")
	upsert(p.spec, "containers", custom)
	hostPID, _ := p.spec["hostPID"].(bool)
	if _, set := p.spec["shareProcessNamespace"]; !set && !hostPID {
		p.spec["shareProcessNamespace"] = true
	}
	p.aliasKatib()
	return nil
}

// checkCustomName rejects the name of another container of the pod. A collector that
// was injected before is recognized by the sidecar's socket.
func (p pod) checkCustomName(name string) error {
	if slices.Contains([]string{SidecarLogger, Sidecar, InstallContainer}, name) {
		return fmt.Errorf("the container of the Custom collector is named %q, which the sidecar beside it has: rename it", name)
	}
	for _, key := range []string{"containers", "initContainers"} {
		list, _ := p.spec[key].([]any)
		have := named(list, name)
		if have == nil {
			continue
		}
		env, _ := have["env"].([]any)
		if key == "initContainers" || name == p.c.PrimaryContainer || named(env, contract.EnvPushSocket) == nil {
			return fault(under(p.path, key), "the container name %q is taken by the Custom collector: rename one of them", name)
		}
	}
	return nil
}

// addMount mounts a volume unless the container has one at that path.
func addMount(container map[string]any, m any) {
	place, _ := at(m, "mountPath").(string)
	list, _ := container["volumeMounts"].([]any)
	taken := slices.ContainsFunc(list, func(v any) bool {
		theirs, _ := at(v, "mountPath").(string)
		return path.Clean(theirs) == path.Clean(place)
	})
	if !taken {
		container["volumeMounts"] = append(slices.Clip(list), m)
	}
}
