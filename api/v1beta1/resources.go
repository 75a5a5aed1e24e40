package v1beta1

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// CollectorResources are what the collector beside a trial gets, where annotations change
// what it gets by default: AnnotationCollector and cpu-request, cpu-limit, memory-request
// or memory-limit, with a quantity. A request above a default limit raises the limit; a
// limit below a default request lowers the request.
func CollectorResources(annotations map[string]string, byDefault corev1.ResourceRequirements) (corev1.ResourceRequirements, error) {
	set := corev1.ResourceRequirements{Requests: corev1.ResourceList{}, Limits: corev1.ResourceList{}}
	for _, annotation := range slices.Sorted(maps.Keys(annotations)) {
		what, ours := strings.CutPrefix(annotation, AnnotationCollector)
		if !ours || annotation == AnnotationCollectorRate {
			continue
		}
		name, bound, _ := strings.Cut(what, "-")
		list, known := map[string]corev1.ResourceList{"request": set.Requests, "limit": set.Limits}[bound]
		if !known || name != string(corev1.ResourceCPU) && name != string(corev1.ResourceMemory) {
			return set, fmt.Errorf("%s: there is no such annotation: give cpu-request, cpu-limit, memory-request, memory-limit or rate", annotation)
		}
		text := annotations[annotation]
		quantity, err := resource.ParseQuantity(text)
		if err != nil || quantity.Sign() < 0 || bound == "limit" && quantity.IsZero() {
			return set, fmt.Errorf("%s: %q must be a quantity above 0, for instance 200m or 256Mi", annotation, text)
		}
		list[corev1.ResourceName(name)] = quantity
	}
	return over(set, byDefault)
}

// over puts what is set over what there is by default.
func over(set, byDefault corev1.ResourceRequirements) (corev1.ResourceRequirements, error) {
	r := corev1.ResourceRequirements{Requests: corev1.ResourceList{}, Limits: corev1.ResourceList{}}
	maps.Copy(r.Requests, byDefault.Requests)
	maps.Copy(r.Limits, byDefault.Limits)
	maps.Copy(r.Requests, set.Requests)
	maps.Copy(r.Limits, set.Limits)
	for name, limit := range r.Limits {
		request, reserved := r.Requests[name]
		if !reserved || request.Cmp(limit) <= 0 {
			continue
		}
		_, asked := set.Requests[name]
		_, bounded := set.Limits[name]
		switch {
		case asked && bounded:
			return r, fmt.Errorf("%s%s-request: %s is above the limit of %s", AnnotationCollector, name, request.String(), limit.String())
		case asked:
			r.Limits[name] = request
		default:
			r.Requests[name] = limit
		}
	}
	return r, nil
}
