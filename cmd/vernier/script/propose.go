package script

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/vernier-ml/vernier/api/v1beta1"
	"github.com/vernier-ml/vernier/collector/parse"
)

var (
	// unsearched are names of numbers that decide how long or where a program runs
	// instead of how well.
	unsearched = regexp.MustCompile(`(?i)seed|epoch|step|iter|worker|thread|port|gpu|device|rank|log|eval|print|every|freq|save|limit|budget|version|patience|max_len`)
	// lengths are names of numbers that say how long a program trains.
	lengths = regexp.MustCompile(`(?i)^((n|num|max)[-_]?)?(epochs?|iters?|iterations|rounds)$|^((num|max)[-_]?)?steps$`)
	// shares are names of numbers between 0 and 1.
	shares = regexp.MustCompile(`(?i)dropout|momentum|prob|ratio|fraction|beta|gamma|smooth|subsample|colsample`)
)

// Propose is a range for a flag, by its choices or around its default; ok is false
// where none suggests itself.
func Propose(f Flag) (p v1beta1.ParameterSpec, ok bool) {
	name := strings.TrimLeft(f.Option, "-")
	if f.Kind == "bool" || unsearched.MatchString(name) || !parameterName.MatchString(name) {
		return p, false
	}
	form := ""
	switch value, err := strconv.ParseFloat(f.Default, 64); {
	case len(f.Choices) > 1:
		for i, c := range f.Choices {
			if strings.ContainsAny(c, `,"`) {
				return p, false
			}
			form += []string{"choice(", ","}[min(i, 1)] + c
		}
		form += ")"
	case err != nil || value <= 0:
	case f.Kind == "float" && value < 1 && shares.MatchString(name):
		form = "uniform(0,0.99)"
	case f.Kind == "float":
		form = fmt.Sprintf("log(%.3g,%.3g)", value/10, value*10)
	case f.Kind == "int" && value >= 16:
		form = fmt.Sprintf("logint(%d,%d)", int(value/4), int(value*4))
	case f.Kind == "int" && value >= 2:
		form = fmt.Sprintf("int(%d,%d)", max(int(value/2), 1), int(value*2))
	case f.Kind == "int":
		form = "int(1,4)"
	}
	if form == "" {
		return p, false
	}
	p, err := ParseParameter(name + "=" + form)
	return p, err == nil
}

// Length is the range of a flag that says how long the program trains, up to its default;
// ok is false for other flags, and where the default leaves no room for short trials.
func Length(f Flag) (p v1beta1.ParameterSpec, ok bool) {
	const shortest = 3 // with less, a third of it says nothing
	name := strings.TrimLeft(f.Option, "-")
	whole, err := strconv.Atoi(f.Default)
	if f.Kind != "int" || !lengths.MatchString(name) || err != nil || whole < 3*shortest {
		return p, false
	}
	p, err = ParseParameter(fmt.Sprintf("%s=int(%d,%d)", name, max(1, whole/27), whole))
	return p, err == nil
}

// GivenIn says whether arguments have the flag.
func (f Flag) GivenIn(argv []string) bool {
	return slices.ContainsFunc(argv, func(w string) bool { return w == f.Option || strings.HasPrefix(w, f.Option+"=") })
}

// Flag finds the flag that a parameter means: its name, where "-" and "_" are alike.
func (i Interface) Flag(name string) (Flag, bool) {
	same := func(f Flag) bool { return plainName(f.Option) == plainName(name) }
	if at := slices.IndexFunc(i.Flags, same); at >= 0 {
		return i.Flags[at], true
	}
	return Flag{}, false
}

func plainName(option string) string {
	return strings.ReplaceAll(strings.TrimLeft(option, "-"), "_", "-")
}

// Check says why the program would refuse the values of a parameter, which is given
// to it as a flag.
func (i Interface) Check(p v1beta1.ParameterSpec) error {
	f, found := i.Flag(p.Name)
	names := make([]string, len(i.Flags))
	for at, f := range i.Flags {
		names[at] = strings.TrimLeft(f.Option, "-")
	}
	switch {
	case !found:
		hint := fmt.Sprintf("it has %s", strings.Join(names, ", "))
		if near := parse.Nearest(p.Name, names, 1); len(near) > 0 {
			hint = "did you mean " + near[0] + "?"
		}
		return fmt.Errorf("-p %s: the program has no flag of this name (found by %s): %s", p.Name, i.Source, hint)
	case f.Kind == "bool" && i.Source != FromHydra:
		return fmt.Errorf("-p %s: %s is a switch without a value: write it after --, or search it by an environment variable or a file (--pass)", p.Name, f.Option)
	case f.Kind == "int" && i.Source != FromHydra && p.ParameterType == v1beta1.ParameterTypeDouble:
		return fmt.Errorf("-p %s: %s takes whole numbers: write int(%s,%s) or logint", p.Name, f.Option, p.FeasibleSpace.Min, p.FeasibleSpace.Max)
	}
	if len(f.Choices) > 0 && len(p.FeasibleSpace.List) == 0 && !within(p, f.Choices) {
		return fmt.Errorf("-p %s: %s takes %s: write choice(%s)", p.Name, f.Option, strings.Join(f.Choices, ", "), strings.Join(f.Choices, ","))
	}
	for _, v := range p.FeasibleSpace.List {
		if f.Kind == "int" && i.Source != FromHydra {
			if _, err := strconv.ParseInt(v, 10, 64); err != nil {
				return fmt.Errorf("-p %s: %s takes whole numbers, and %q is none", p.Name, f.Option, v)
			}
		}
		if f.Kind == "float" && i.Source != FromHydra {
			if _, err := strconv.ParseFloat(v, 64); err != nil {
				return fmt.Errorf("-p %s: %s takes numbers, and %q is none", p.Name, f.Option, v)
			}
		}
		if len(f.Choices) > 0 && !slices.Contains(f.Choices, v) {
			return fmt.Errorf("-p %s: %s does not take %q: it takes %s", p.Name, f.Option, v, strings.Join(f.Choices, ", "))
		}
	}
	return nil
}

// within says whether all values of a range are among the choices.
func within(p v1beta1.ParameterSpec, choices []string) bool {
	low, err1 := strconv.Atoi(p.FeasibleSpace.Min)
	high, err2 := strconv.Atoi(p.FeasibleSpace.Max)
	if p.ParameterType != v1beta1.ParameterTypeInt || errors.Join(err1, err2) != nil {
		return false
	}
	step, err := strconv.Atoi(p.FeasibleSpace.Step)
	if err != nil || step < 1 {
		step = 1
	}
	for v := low; v <= high; v += step {
		if !slices.Contains(choices, strconv.Itoa(v)) {
			return false
		}
	}
	return true
}

// Missing lists the flags that the program needs and that neither the parameters nor
// the arguments give.
func (i Interface) Missing(parameters []v1beta1.ParameterSpec, argv []string) (options []string) {
	for _, f := range i.Flags {
		given := slices.ContainsFunc(parameters, func(p v1beta1.ParameterSpec) bool { return plainName(p.Name) == plainName(f.Option) }) || f.GivenIn(argv)
		if f.Required && !given {
			options = append(options, f.Option)
		}
	}
	return options
}

// MissingWords lists the positional arguments that the program needs and that argv certainly
// lacks. Any word of argv may be one, also the value of a flag.
func (i Interface) MissingWords(argv []string) []string {
	given := 0
	for _, word := range argv[min(len(argv), pythonScript(argv)+1):] {
		if strings.HasPrefix(word, "@") {
			return nil // a file of arguments
		}
		if len(word) < 2 || word[0] != '-' || '0' <= word[1] && word[1] <= '9' || word[1] == '.' {
			given++
		}
	}
	return i.Words[min(given, len(i.Words)):]
}
