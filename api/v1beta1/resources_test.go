package v1beta1

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// resources are those of a text such as "cpu 10m..1, memory 24Mi..128Mi": requests to
// limits.
func resources(text string) corev1.ResourceRequirements {
	r := corev1.ResourceRequirements{Requests: corev1.ResourceList{}, Limits: corev1.ResourceList{}}
	for part := range strings.SplitSeq(text, ", ") {
		name, bounds, _ := strings.Cut(part, " ")
		request, limit, _ := strings.Cut(bounds, "..")
		if request != "" {
			r.Requests[corev1.ResourceName(name)] = resource.MustParse(request)
		}
		if limit != "" {
			r.Limits[corev1.ResourceName(name)] = resource.MustParse(limit)
		}
	}
	return r
}

func TestWhatAnnotationsGiveTheCollector(t *testing.T) {
	const byDefault = "cpu 10m..1, memory 24Mi..128Mi"
	tests := map[string]struct {
		annotations []string // of the namespace, then of the experiment: name=quantity
		byDefault   string
		want        string
		wantErr     string
	}{
		"none":                           {nil, byDefault, byDefault, ""},
		"a request":                      {[]string{"cpu-request=50m"}, byDefault, "cpu 50m..1, memory 24Mi..128Mi", ""},
		"both bounds":                    {[]string{"memory-request=64Mi memory-limit=1Gi"}, byDefault, "cpu 10m..1, memory 64Mi..1Gi", ""},
		"a request above the limit":      {[]string{"memory-request=256Mi"}, byDefault, "cpu 10m..1, memory 256Mi..256Mi", ""},
		"a limit below the request":      {[]string{"cpu-limit=5m"}, byDefault, "cpu 5m..5m, memory 24Mi..128Mi", ""},
		"nothing is reserved":            {[]string{"cpu-request=0"}, byDefault, "cpu 0..1, memory 24Mi..128Mi", ""},
		"the experiment is nearer":       {[]string{"cpu-limit=2 memory-limit=256Mi", "cpu-limit=3"}, byDefault, "cpu 10m..3, memory 24Mi..256Mi", ""},
		"a request of the experiment":    {[]string{"cpu-limit=2", "cpu-request=4"}, byDefault, "cpu 4..4, memory 24Mi..128Mi", ""},
		"no default":                     {[]string{"memory-limit=256Mi"}, "", "memory ..256Mi", ""},
		"bounds that exclude each other": {[]string{"cpu-request=2 cpu-limit=1"}, byDefault, "", "vernier.ml/collector-cpu-request: 2 is above the limit of 1"},
		"not a quantity":                 {[]string{"cpu-limit=much"}, byDefault, "", `vernier.ml/collector-cpu-limit: "much" must be a quantity above 0`},
		"less than nothing":              {[]string{"memory-request=-1"}, byDefault, "", `vernier.ml/collector-memory-request: "-1" must be`},
		"a limit of nothing":             {[]string{"memory-limit=0"}, byDefault, "", `vernier.ml/collector-memory-limit: "0" must be`},
		"another resource":               {[]string{"gpu-limit=1"}, byDefault, "", "vernier.ml/collector-gpu-limit: there is no such annotation"},
		"a bound that does not exist":    {[]string{"cpu-limits=1"}, byDefault, "", "vernier.ml/collector-cpu-limits: there is no such annotation"},
		"the rate, which is no resource": {[]string{"rate=off"}, byDefault, byDefault, ""},
		"a wrong one of the experiment":  {[]string{"cpu-limit=2", "cpu-limit=x"}, byDefault, "", `vernier.ml/collector-cpu-limit: "x"`},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := resources(tc.byDefault), error(nil)
			for _, level := range tc.annotations {
				annotations := map[string]string{"other": "x"}
				for one := range strings.FieldsSeq(level) {
					name, value, _ := strings.Cut(one, "=")
					annotations[AnnotationCollector+name] = value
				}
				if got, err = CollectorResources(annotations, got); err != nil {
					break
				}
			}
			if tc.wantErr != "" {
				if err == nil || !strings.Contains(err.Error(), tc.wantErr) {
					t.Errorf("error %v, want %q", err, tc.wantErr)
				}
				return
			}
			if diff := cmp.Diff(resources(tc.want), got); diff != "" || err != nil {
				t.Errorf("%v (-want +got):\n%s", err, diff)
			}
		})
	}
}
