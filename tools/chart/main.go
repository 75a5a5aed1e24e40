// Command chart writes the templates of the Helm chart from the manifests of
// config/default, and of config/prometheus and config/components beside it, so that they
// cannot differ. The rest of the chart (values, their schema, Chart.yaml) is written by
// hand.
//
//	chart -config config/default -out charts/vernier/templates
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/yaml"
)

// namespace of config/default; a release has its own.
const namespace = "vernier-system"

func main() {
	config := flag.String("config", "config/default", "`folder` of the kustomization")
	out := flag.String("out", "charts/vernier/templates", "`folder` for the templates")
	flag.Parse()
	if err := run(*config, *out); err != nil {
		fmt.Fprintln(os.Stderr, "chart:", err)
		os.Exit(1)
	}
}

func run(config, out string) error {
	objects, err := build(config)
	if err != nil {
		return err
	}
	monitoring, err := build(filepath.Join(config, "../prometheus"))
	if err != nil {
		return err
	}
	objects = append(objects, monitoring...)
	if err := os.RemoveAll(out); err != nil {
		return err
	}
	if err := os.MkdirAll(out, 0o755); err != nil {
		return err
	}
	all, err := conditional(config, objects)
	if err != nil {
		return err
	}
	for file, v := range all {
		if v.base.kind() == "Namespace" { // helm install --create-namespace
			continue
		}
		text, err := v.template()
		if err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
		if err := os.WriteFile(filepath.Join(out, file), []byte(text), 0o644); err != nil {
			return err
		}
	}
	return nil
}

type object map[string]any

func (o object) kind() string { return fmt.Sprint(o["kind"]) }

func (o object) name() string { return fmt.Sprint(o["metadata"].(map[string]any)["name"]) }

// file is the name of the object's template.
func (o object) file() string { return strings.ToLower(o.kind()) + "-" + o.name() + ".yaml" }

// build renders a kustomization.
func build(dir string) ([]object, error) {
	rendered, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), dir)
	if err != nil {
		return nil, err
	}
	var objects []object
	for _, r := range rendered.Resources() {
		m, err := r.Map()
		if err != nil {
			return nil, err
		}
		objects = append(objects, m)
	}
	return objects, nil
}

// edited is the text of an object, with marks, and the condition under which there is one.
func (e edits) edited(o object) (text, condition string, err error) {
	switch o.kind() {
	case "CustomResourceDefinition":
		condition = ".Values.crds.install"
		e.set(o["metadata"].(map[string]any)["annotations"].(map[string]any), "helm", "{{- if .Values.crds.keep }}\n    helm.sh/resource-policy: keep\n{{- end }}")
	case "PersistentVolumeClaim":
		condition = onVolume
		o["metadata"].(map[string]any)["annotations"] = map[string]any{"helm.sh/resource-policy": "keep"}
		spec := o["spec"].(map[string]any)
		e.set(spec["resources"].(map[string]any)["requests"].(map[string]any), "storage", "{{ .Values.persistence.size }}")
		e.set(spec, "class", "{{- with .Values.persistence.storageClassName }}\n  storageClassName: {{ . }}\n{{- end }}")
	case "ClusterRole":
		if o["aggregationRule"] != nil {
			// Kubernetes may fill the rules in after it was deleted, and so make it
			// again, as one that Helm refuses to install over.
			o["metadata"].(map[string]any)["annotations"] = map[string]any{"helm.sh/resource-policy": "keep"}
		}
	case "Deployment":
		e.deployment(o)
	case "ServiceMonitor", "PrometheusRule", "ConfigMap":
		value := map[string]string{"ServiceMonitor": "serviceMonitor", "PrometheusRule": "rules", "ConfigMap": "dashboard"}[o.kind()]
		condition = ".Values.monitoring." + value
		e.set(o["metadata"].(map[string]any)["labels"].(map[string]any), "more", "{{- with .Values.monitoring.labels }}\n    {{- toYaml . | nindent 4 }}\n{{- end }}")
	}
	raw, err := yaml.Marshal(o)
	if err != nil {
		return "", "", err
	}
	// What are expressions to Prometheus and Grafana are none to Helm.
	return strings.ReplaceAll(string(raw), "{{", `{{"{{"}}`), condition, nil
}

// The store is in one file, which one manager opens, and that is on the volume.
const (
	oneManager = `regexMatch "^(sqlite|memory):" .Values.store.url`
	onVolume   = "and .Values.persistence.enabled (" + oneManager + ")"
)

// edits are values that templates of Helm replace, by the marks that stand for them.
type edits map[string]string

func (e edits) mark(text string) string {
	for mark, has := range e {
		if has == text {
			return mark
		}
	}
	mark := fmt.Sprintf("EDIT%d", len(e))
	e[mark] = text
	return mark
}

// set puts an expression in the place of a string, or lines in that of a key.
func (e edits) set(m map[string]any, key, text string) { m[key] = e.mark(text) }

// deployment edits what people change in a deployment.
func (e edits) deployment(o object) {
	values := ".Values." + strings.TrimPrefix(o.name(), "vernier-")
	spec := o["spec"].(map[string]any)
	e.set(spec, "replicas", fmt.Sprintf("  replicas: {{ %s.replicas }}", values))
	pod := spec["template"].(map[string]any)["spec"].(map[string]any)
	for _, key := range []string{"imagePullSecrets", "nodeSelector", "tolerations", "affinity"} {
		from := values + "." + key
		if key == "imagePullSecrets" {
			from = ".Values.image.pullSecrets"
		}
		e.set(pod, key, fmt.Sprintf("{{- with %s }}\n      %s: {{- toYaml . | nindent 8 }}\n{{- end }}", from, key))
	}
	c := pod["containers"].([]any)[0].(map[string]any)
	e.set(c, "image", `{{ .Values.image.registry }}/manager:{{ .Values.image.tag | default .Chart.AppVersion }}`)
	e.set(c, "env", fmt.Sprintf("{{- with %s.env }}\n        env: {{- toYaml . | nindent 10 }}\n{{- end }}", values))
	e.set(c, "resources", fmt.Sprintf("        resources: {{- toYaml %s.resources | nindent 10 }}", values))
	args := c["args"].([]any)
	for i, arg := range args {
		if strings.HasPrefix(fmt.Sprint(arg), "--store=") {
			args[i] = e.mark("--store={{ .Values.store.url }}")
		}
		if strings.HasPrefix(fmt.Sprint(arg), "--alert-hosts=") {
			args[i] = e.mark(`--alert-hosts={{ join "," .Values.alerts.hosts }}`)
		}
	}
	more := fmt.Sprintf("{{- range %s.extraArgs }}\n        - {{ . | quote }}\n{{- end }}", values)
	if o.name() == "vernier-manager" {
		e.replicas(spec, c)
		more = "{{- range $name, $value := .Values.access.oidc }}\n        - {{ printf \"--oidc-%s=%v\" $name $value | quote }}\n{{- end }}\n" +
			"{{- range $name, $value := .Values.access.proxy }}\n        - {{ printf \"--requestheader-%s=%v\" $name $value | quote }}\n{{- end }}\n" +
			"{{- if ne .Values.access.basePath \"/\" }}\n        - --dashboard-base-path={{ .Values.access.basePath }}\n{{- end }}\n" + more
		more = "{{- if .Values.monitoring.katibMetrics }}\n        - --metrics-compat=katib\n{{- end }}\n" + more
	}
	if o.name() == "vernier-manager" || o.name() == "vernier-webhook" { // both make collectors
		more = "{{- range $bounds, $of := .Values.collector.resources }}\n{{- range $name, $quantity := $of }}\n        - --collector-{{ $name }}-{{ trimSuffix \"s\" $bounds }}={{ $quantity }}\n{{- end }}\n{{- end }}\n" + more
		more = "{{- with .Values.collector.image }}\n        - --collector-image={{ . }}\n{{- end }}\n" + more
	}
	c["args"] = append(args, e.mark(more))
	volumes, _ := pod["volumes"].([]any)
	for _, v := range volumes {
		if v := v.(map[string]any); v["persistentVolumeClaim"] != nil {
			delete(v, "persistentVolumeClaim")
			e.set(v, "source", "{{- if "+onVolume+" }}\n        persistentVolumeClaim:\n          claimName: vernier-store\n{{- else }}\n        emptyDir: {}\n{{- end }}")
		}
	}
}

// replicas edits what depends on the number of managers. The nodes learn later than a
// pod that its Service has one endpoint less: it takes reports until they know.
func (e edits) replicas(spec, container map[string]any) {
	e.set(spec, "strategy", "{{- if "+oneManager+` }}
{{- if gt (int .Values.manager.replicas) 1 }}
{{- fail "manager.replicas: one manager opens a SQLite file. Set store.url to env:NAME, with the URL of a PostgreSQL or MySQL database." }}
{{- end }}
  strategy:
    type: Recreate
{{- else }}
  strategy:
    rollingUpdate:
      maxUnavailable: 0
{{- end }}`)
	e.set(container, "lifecycle", `{{- if gt (int .Values.manager.replicas) 1 }}
        lifecycle:
          preStop:
            sleep:
              seconds: 5
{{- end }}`)
}

// marked is a line with a mark: a value of a key, or of a list.
var marked = regexp.MustCompile(`(?m)^( *)(- )?(?:([\w]+): )?(EDIT\d+)$`)

// apply puts the expressions in the place of their marks. One of several lines takes the
// place of its whole line.
func (e edits) apply(text string) string {
	return marked.ReplaceAllStringFunc(text, func(line string) string {
		found := marked.FindStringSubmatch(line)
		replacement := e[found[4]]
		if strings.Contains(replacement, "\n") || strings.HasPrefix(replacement, " ") {
			return replacement
		}
		return strings.TrimSuffix(line, found[4]) + `"` + replacement + `"`
	})
}
