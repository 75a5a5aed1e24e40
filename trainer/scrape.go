package trainer

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"net"
	"regexp"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/vernier-ml/vernier/collector/contract"
)

// headerVariable is the prefix of the primary container's variables in the sidecar,
// so that they cannot collide with the sidecar's own.
const headerVariable = "VERNIER_SCRAPE_HEADER_"

// referencePattern finds $(NAME), and $$(NAME), which is literal text.
var referencePattern = regexp.MustCompile(`\$?\$\(([-._a-zA-Z][-._a-zA-Z0-9]*)\)`)

// Endpoint is where a program serves its metrics.
type Endpoint struct {
	// Scheme is http or https, in upper or lower case. Default: http.
	Scheme string
	// Host of the endpoint. Default: localhost.
	Host string
	// Port is its TCP port. 0 means the trial's own port, which depends on its name
	// and namespace, and is unique among 12,000 trials of an experiment.
	Port int
	// Path begins with a slash.
	Path string
	// Headers are sent with each request, as "Name: value". $(NAME) is replaced by a
	// variable of the primary container whose value comes from a Secret or a
	// ConfigMap; $$(NAME) is the text $(NAME).
	Headers []string
}

// EndpointOf converts the API's endpoint; a port that is not a number means the
// trial's own.
func EndpointOf(get *corev1.HTTPGetAction) Endpoint {
	e := Endpoint{Scheme: string(get.Scheme), Host: get.Host, Port: int(get.Port.IntVal), Path: get.Path}
	for _, h := range get.HTTPHeaders {
		e.Headers = append(e.Headers, h.Name+": "+h.Value)
	}
	return e
}

// The range of ports for trials. It is below the one that Linux uses for outgoing
// connections.
const (
	firstOwnPort = 20000
	ownPorts     = 12000
)

func (p pod) port() int {
	if p.c.Endpoint.Port != 0 {
		return p.c.Endpoint.Port
	}
	// Trials of an experiment are numbered, and so are their ports.
	h := fnv.New32a()
	_, _ = h.Write([]byte(p.namespace + "/" + p.c.Experiment)) // never fails
	if p.c.Number < 0 {
		_, _ = h.Write([]byte("/" + p.c.Trial))
	}
	return firstOwnPort + (int(h.Sum32()%ownPorts)+max(p.c.Number, 0))%ownPorts
}

func (p pod) url() string {
	e := p.c.Endpoint
	host := net.JoinHostPort(cmp.Or(e.Host, "localhost"), strconv.Itoa(p.port()))
	return strings.ToLower(cmp.Or(e.Scheme, "http")) + "://" + host + e.Path
}

// loopback says whether the endpoint is in the pod itself.
func (e Endpoint) loopback() bool {
	ip := net.ParseIP(e.Host)
	return e.Host == "" || strings.EqualFold(e.Host, "localhost") || ip != nil && (ip.IsLoopback() || ip.IsUnspecified())
}

// refuseNodePort rejects a port that trials of one node would share, because the
// sidecar cannot see which program is behind it. (In the embedded mode it can, but
// templates should mean the same there.)
func (p pod) refuseNodePort() error {
	host, _ := p.spec["hostNetwork"].(bool)
	if !host || p.c.Endpoint.Port == 0 || !p.c.Endpoint.loopback() {
		return nil
	}
	return fault(under(p.path, "hostNetwork"),
		"on the host's network the port %d is one for all trials of a node, so that metrics of another trial could be taken for this one's: write port: auto in httpGet and let the program listen at the port in %s, or leave hostNetwork out", p.c.Endpoint.Port, EnvMetricsPort)
}

// addScrape tells the primary container where to serve its metrics.
func (p pod) addScrape(main map[string]any) error {
	if err := p.refuseNodePort(); err != nil {
		return err
	}
	upsert(main, "env", map[string]any{"name": EnvMetricsPort, "value": strconv.Itoa(p.port())})
	if p.c.Binary != "" { // so that the sidecar can identify this trial's program
		upsert(main, "env", map[string]any{"name": contract.EnvPodUID, "valueFrom": fieldRef("metadata.uid")})
	}
	return nil
}

// headers are the sidecar's variables for Endpoint.Headers. They often contain
// credentials, and every user of the node can see arguments.
func (p pod) headers(main map[string]any, where []string) ([]corev1.EnvVar, error) {
	if p.c.Kind != PrometheusMetric || len(p.c.Endpoint.Headers) == 0 {
		return nil, nil
	}
	theirs, _ := main["env"].([]any)
	var env []corev1.EnvVar
	var lines []string
	for _, header := range p.c.Endpoint.Headers {
		if strings.ContainsAny(header, "\r\n") {
			name, _, _ := strings.Cut(header, ":")
			return nil, fmt.Errorf("the header %q of the endpoint has a line break: leave it out", name)
		}
		line := ""
		end := 0
		for _, m := range referencePattern.FindAllStringSubmatchIndex(header, -1) {
			line, end = line+literal(header[end:m[0]]), m[1]
			if header[m[0]+1] == '$' {
				line += literal(header[m[0]+1 : m[1]])
				continue
			}
			v, err := headerSource(theirs, header[m[2]:m[3]], where)
			if err != nil {
				return nil, err
			}
			if !slices.ContainsFunc(env, func(e corev1.EnvVar) bool { return e.Name == v.Name }) {
				env = append(env, v)
			}
			line += "$(" + v.Name + ")"
		}
		lines = append(lines, line+literal(header[end:]))
	}
	// The kubelet expands references to earlier variables.
	return append(env, corev1.EnvVar{Name: contract.EnvScrapeHeaders, Value: strings.Join(lines, "\n")}), nil
}

// headerSource is the primary container's variable for the sidecar.
func headerSource(theirs []any, name string, where []string) (corev1.EnvVar, error) {
	v := corev1.EnvVar{Name: headerVariable + name, ValueFrom: &corev1.EnvVarSource{}}
	from, _ := named(theirs, name)["valueFrom"].(map[string]any)
	if from["secretKeyRef"] == nil && from["configMapKeyRef"] == nil {
		return v, fault(under(where, "env"), "has no variable %s whose value comes from a Secret or a ConfigMap (valueFrom), which a header of the metrics collector's httpGet names: add it, or write $$(%s) if the header has this text", name, name)
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(from, v.ValueFrom); err != nil {
		return v, fault(under(where, "env"), "the source of the variable %s cannot be read: %v", name, err)
	}
	return v, nil
}
