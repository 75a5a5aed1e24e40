package script

import (
	"math"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/vernier-ml/vernier/api/v1beta1"
)

// Plain is the program's command line without a search: a macro, and a flag that the
// program needs, has the middle of its parameter's range, or the first value of its list.
func (s Spec) Plain() []string {
	argv := slices.Clone(s.Argv)
	for i := range argv {
		argv[i] = strings.ReplaceAll(argv[i], "{trial}", s.Name+"-probe")
		for _, p := range s.Parameters {
			argv[i] = strings.ReplaceAll(argv[i], "{"+p.Name+"}", middle(p))
		}
		argv[i] = strings.ReplaceAll(argv[i], "{seed}", "0")
	}
	for _, p := range s.Flagged() {
		if f, found := s.Flags.Flag(p.Name); found && f.Required && s.Pass == AsFlags {
			argv = append(argv, s.option(p.Name)+"="+middle(p))
		}
	}
	return argv
}

// PlainEnvironment is what a trial's environment has besides that of this process, without
// a search. file writes the parameters of a program that reads them there, and returns
// its path.
func (s Spec) PlainEnvironment(file func(text string) (path string, err error)) (env []string, err error) {
	for _, e := range s.Env {
		if value := strings.ReplaceAll(e.Value, "$$", "$"); value != os.Getenv(e.Name) {
			env = append(env, e.Name+"="+value)
		}
	}
	var parts []string
	for _, p := range s.Flagged() {
		switch s.Pass {
		case AsEnvironment:
			env = append(env, EnvironmentName(p.Name)+"="+middle(p))
		case AsFile:
			value, err := inFile(p)
			if err != nil {
				return nil, err
			}
			parts = append(parts, strconv.Quote(p.Name)+": "+strings.ReplaceAll(string(value), placeholder(p.Name), middle(p)))
		}
	}
	if len(parts) == 0 {
		return env, nil
	}
	path, err := file("{" + strings.Join(parts, ", ") + "}")
	return append(env, "VERNIER_PARAMS_FILE="+path), err
}

func middle(p v1beta1.ParameterSpec) string {
	if len(p.FeasibleSpace.List) > 0 {
		return p.FeasibleSpace.List[0]
	}
	low, _ := strconv.ParseFloat(p.FeasibleSpace.Min, 64)
	high, _ := strconv.ParseFloat(p.FeasibleSpace.Max, 64)
	mid := (low + high) / 2
	if d := p.FeasibleSpace.Distribution; low > 0 && (d == v1beta1.DistributionLogUniform || d == v1beta1.DistributionLogNormal) {
		mid = math.Sqrt(low * high)
	}
	if p.ParameterType == v1beta1.ParameterTypeInt {
		return strconv.FormatFloat(math.Floor(mid), 'f', 0, 64)
	}
	return strconv.FormatFloat(mid, 'g', 6, 64)
}
