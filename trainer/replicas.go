package trainer

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// VariableIndex has a pod's index among those of its role, in the containers whose
// templates ask for it by ${replica.index}.
const VariableIndex = "VERNIER_REPLICA_INDEX"

// Replicated is a Kind that knows the pods of a job before they are made.
type Replicated interface {
	Kind
	// Replicas are the pods of a job by roles. An error says why they are not known.
	Replicas(job *unstructured.Unstructured) ([]Replicas, error)
}

// Replicas are the pods of one role of a job.
type Replicas struct {
	// Role in lower case; empty if the job has only one.
	Role string
	// Path of what describes these pods in the job: their template.
	Path []string
	// Count of the pods.
	Count int
	// Host is the name of a pod by its index, with the port where it listens if one is
	// known: mnist-0000-worker-0.team.svc:2222.
	Host func(index int) string
	// NoHosts says why there are none, and what to do.
	NoHosts string
	// Index is the field of a pod that has its index, for the downward API. It is
	// empty for a role of one pod.
	Index string
	// NoIndex says why there is none, and what to do.
	NoIndex string
}

const replicaOpening = "${replica."

var (
	anyPattern = regexp.MustCompile(`\$\{(trialParameters)\.([^{}]*)\}|\$?\$\{(?:(replica)\.([^{}]*)|trialSeed)\}`)
	// replicaNames are those after ${replica. that are placeholders. Others are of
	// other languages, such as OmegaConf's, whose ${replica.id} is a key of its own.
	replicaNames = regexp.MustCompile(`^(?:index|role|hosts(?:[.\[].*)?)$`)
	hostsSyntax  = regexp.MustCompile(`^hosts(?:\.([^.\[\]]+))?(?:\[(\d*)(:?)(\d*)\])?$`)
)

// replicas are what ${replica...} stands for.
type replicas struct {
	used    bool // the template has such a placeholder
	asked   bool // the kind was asked
	known   []Replicas
	unknown error
	// indexed are the containers that need VariableIndex, and the field that has it.
	indexed map[string]indexed
}

type indexed struct {
	container []string
	field     string
}

// UnknownReplicas lists the distinct ${replica.<name>} of a template that Render leaves
// as they are, sorted.
func UnknownReplicas(template []byte) (found []string, err error) {
	obj, err := parse(template)
	if err != nil {
		return nil, err
	}
	names := map[string]bool{}
	visit(obj, func(s string) {
		for _, m := range anyPattern.FindAllStringSubmatch(s, -1) {
			if m[3] != "" && !escaped(m[0]) && !replicaNames.MatchString(m[4]) {
				names[m[0]] = true
			}
		}
	})
	return slices.Sorted(maps.Keys(names)), nil
}

// escaped says whether a match of anyPattern is only text.
func escaped(placeholder string) bool { return strings.HasPrefix(placeholder, "$$") }

// know asks the kind of the rendered job for its pods.
func (r *replicas) know(job *unstructured.Unstructured, kind Kind) {
	r.asked, r.indexed = true, map[string]indexed{}
	if k, ok := kind.(Replicated); ok {
		r.known, r.unknown = k.Replicas(job)
		return
	}
	r.unknown = fmt.Errorf("the pods of a %s are not known before they run: remove the placeholder", job.GetKind())
}

// value is what ${replica.<name>} at the path stands for.
func (r *replicas) value(path []string, name string) (string, error) {
	if r.unknown != nil {
		return "", r.unknown
	}
	own := slices.IndexFunc(r.known, func(p Replicas) bool {
		return len(path) >= len(p.Path) && slices.Equal(path[:len(p.Path)], p.Path)
	})
	switch {
	case !strings.HasPrefix(name, "hosts.") && own < 0:
		return "", fmt.Errorf("is in no pod's template: write it there")
	case name == "role":
		if r.known[own].Role == "" {
			return "", fmt.Errorf("the pods of this job have one role without a name: write what you call it")
		}
		return r.known[own].Role, nil
	case name == "index":
		return r.index(path, r.known[own])
	}
	m := hostsSyntax.FindStringSubmatch(name)
	if m == nil {
		return "", fmt.Errorf("there is no list of that name: write hosts, hosts.ROLE, hosts[0] or hosts[0:2], or $${replica.hosts if it is the program's")
	}
	if m[1] != "" {
		own = slices.IndexFunc(r.known, func(p Replicas) bool { return strings.EqualFold(p.Role, m[1]) })
	}
	if own < 0 {
		var roles []string
		for _, p := range r.known {
			roles = append(roles, p.Role)
		}
		return "", fmt.Errorf("this job has no such role: its roles are %q", roles)
	}
	if why := r.known[own].NoHosts; why != "" {
		return "", fmt.Errorf("%s", why)
	}
	return r.known[own].hosts(m[2], m[3], m[4])
}

// index is what becomes the index in the pod: the kubelet replaces it.
func (r *replicas) index(path []string, p Replicas) (string, error) {
	container := inContainer(path)
	switch {
	case p.NoIndex != "":
		return "", fmt.Errorf("%s", p.NoIndex)
	case p.Index == "":
		return "0", nil
	case container == nil:
		return "", fmt.Errorf("each pod has its own, so it can only be in the command, args, env or subPathExpr of a container")
	}
	r.indexed[FieldPath(container)] = indexed{container, p.Index}
	return "$(" + VariableIndex + ")", nil
}

// maxHosts is how many hosts a list may have, so that a template cannot fill the memory.
const maxHosts = 10_000

// hosts are those of all, of one, or of a range, as [from:to].
func (p Replicas) hosts(from, colon, to string) (string, error) {
	first, last := 0, p.Count
	if from != "" {
		first, _ = strconv.Atoi(from)
		if colon == "" {
			last = first + 1
		}
	}
	if to != "" {
		last, _ = strconv.Atoi(to)
	}
	if last > p.Count || first > last || last-first > maxHosts {
		return "", fmt.Errorf("there are %d of these pods, counted from 0, and a list may have %d", p.Count, maxHosts)
	}
	var all []string
	for i := first; i < last; i++ {
		all = append(all, p.Host(i))
	}
	return strings.Join(all, ","), nil
}

// tell gives the containers their indices. It comes before the container's own
// variables, which may refer to it.
func (r *replicas) tell(job map[string]any) {
	for _, i := range r.indexed {
		container, _ := at(job, i.container...).(map[string]any)
		env, _ := container["env"].([]any)
		container["env"] = append([]any{map[string]any{
			"name":      VariableIndex,
			"valueFrom": map[string]any{"fieldRef": map[string]any{"fieldPath": i.field}},
		}}, env...)
	}
}

// inContainer returns the path of the container in whose string at path the kubelet
// replaces $(NAME): of its command, arguments, environment and expanded subpaths. It is
// nil elsewhere.
func inContainer(path []string) []string {
	n := len(path)
	end := -1
	switch {
	case n >= 3 && (path[n-2] == "command" || path[n-2] == "args"):
		end = n - 2
	case n >= 4 && path[n-1] == "value" && path[n-3] == "env", n >= 4 && path[n-1] == "subPathExpr" && path[n-3] == "volumeMounts":
		end = n - 3
	default:
		return nil
	}
	if trainJob := end == 2 && path[0] == "spec" && path[1] == "trainer"; trainJob ||
		end >= 2 && (path[end-2] == "containers" || path[end-2] == "initContainers") {
		return path[:end]
	}
	return nil
}
