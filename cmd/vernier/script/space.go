// Package script makes an experiment of a program on this machine: it reads search
// spaces as people write them on a command line, finds out which flags a program
// has, and writes the Experiment that runs it.
package script

import (
	"encoding/csv"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/vernier-ml/vernier/api/v1beta1"
)

// Forms are the forms of a parameter, for help and errors.
const Forms = "log(1e-5,1e-1), uniform(0,1), normal(0,1), lognormal(1,10), int(1,8), logint(1,1024), each also with a step as a third number, choice(a,b,c), each with ~VALUE behind it where good values are believed to be"

var parameterName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_./-]*$`)

// ParseParameter reads a parameter such as "lr=log(1e-5,1e-1)", "layers=int(2,8,2)",
// "opt=choice(sgd,adam)" or "momentum=uniform(0,0.9) if opt=sgd". Numbers in a choice
// make an ordered one. A prior stands behind the range: "lr=log(1e-5,1e-1)~1e-3",
// "lr=log(1e-5,1e-1)~1e-3/0.2" with its spread, "opt=choice(sgd,adam)~adam", or
// "opt=choice(sgd,adam)~1:3" with weights. The ranges themselves are not checked.
func ParseParameter(text string) (v1beta1.ParameterSpec, error) {
	fail := func(format string, args ...any) (v1beta1.ParameterSpec, error) {
		return v1beta1.ParameterSpec{}, fmt.Errorf("-p %q: %w", text, fmt.Errorf(format, args...))
	}
	name, form, found := strings.Cut(text, "=")
	name = strings.TrimSpace(name)
	if !parameterName.MatchString(name) {
		return fail("%q is no name of a parameter: write NAME=FORM with one of %s", name, Forms)
	}
	if !found {
		return fail("it has no range: write %s=FORM with one of %s", name, Forms)
	}
	p := v1beta1.ParameterSpec{Name: name}
	if all := conditionStart.FindAllStringIndex(form, -1); all != nil {
		last := all[len(all)-1]
		parent, values, found := strings.Cut(form[last[1]:], "=")
		parent = strings.TrimSpace(parent)
		if !found || !parameterName.MatchString(parent) || strings.TrimSpace(values) == "" {
			return fail("write the condition as: if OTHER=VALUE, or if OTHER=VALUE|VALUE")
		}
		p.When = &v1beta1.ParameterCondition{Parameter: parent}
		for value := range strings.SplitSeq(values, "|") {
			p.When.In = append(p.When.In, strings.TrimSpace(value))
		}
		form = form[:last[1]-len(" if ")]
	}
	form, prior, believed := cutPrior(form)
	if strings.ContainsAny(prior, "\n\r") {
		return fail("the value behind ~ has a line break")
	}
	word, rest, found := strings.Cut(strings.TrimSpace(form), "(")
	inner, closed := strings.CutSuffix(rest, ")")
	if !found || !closed {
		return fail("%q is no range: use one of %s. A value that does not change belongs after --", form, Forms)
	}
	values, err := splitValues(inner)
	if err != nil {
		return fail("%w", err)
	}
	if err := setForm(&p, word, values); err != nil {
		return fail("%w", err)
	}
	if believed {
		p.FeasibleSpace.Prior = parsePrior(prior, p.FeasibleSpace.List)
	}
	return p, nil
}

// quoted is a text in double quotes.
const quoted = `"(?:[^"]|"")*"`

var (
	// conditionStart is where a condition begins, behind a range and perhaps a prior.
	conditionStart = regexp.MustCompile(`\)(~(` + quoted + `|\S+))? if `)
	quotedPrior    = regexp.MustCompile(`\)~(` + quoted + `)\s*$`)
)

// cutPrior cuts off what stands behind a range, if there is something.
func cutPrior(form string) (rest, prior string, found bool) {
	if at := quotedPrior.FindStringSubmatchIndex(form); at != nil {
		return form[:at[0]+1], form[at[2]:at[3]], true
	}
	if i := strings.LastIndex(form, ")~"); i >= 0 {
		return form[:i+1], strings.TrimSpace(form[i+len(")~"):]), true
	}
	return form, "", false
}

// parsePrior reads VALUE, VALUE/SPREAD or WEIGHT:WEIGHT:WEIGHT. What is in the list, or
// in quotes, is a value. Values in a list that are not numbers may have a slash or colon.
func parsePrior(text string, list []string) *v1beta1.ParameterPrior {
	whole, err := splitValues(text)
	weights := strings.Split(text, ":")
	noNumber := func(v string) bool { return !isNumber(v) }
	switch value, spread, _ := strings.Cut(text, "/"); {
	case slices.Contains(list, text):
		return &v1beta1.ParameterPrior{Value: text}
	case strings.HasPrefix(text, `"`) && err == nil && len(whole) == 1:
		return &v1beta1.ParameterPrior{Value: whole[0]}
	case len(weights) > 1 && !slices.ContainsFunc(weights, noNumber):
		return &v1beta1.ParameterPrior{Weights: weights}
	case !slices.ContainsFunc(list, noNumber):
		return &v1beta1.ParameterPrior{Value: value, Spread: spread}
	}
	return &v1beta1.ParameterPrior{Value: text}
}

func priorText(p *v1beta1.ParameterPrior) string {
	switch {
	case p == nil:
		return ""
	case len(p.Weights) > 0:
		return "~" + strings.Join(p.Weights, ":")
	case p.Spread != "":
		return "~" + p.Value + "/" + p.Spread
	case strings.ContainsAny(p.Value, "\" \t\f\v") || strings.Contains(p.Value, ")~"):
		return `~"` + strings.ReplaceAll(p.Value, `"`, `""`) + `"`
	}
	return "~" + p.Value
}

// splitValues splits at commas; quotes hold a comma.
func splitValues(text string) ([]string, error) {
	if strings.ContainsAny(text, "\n\r") {
		return nil, fmt.Errorf("the values have a line break")
	}
	r := csv.NewReader(strings.NewReader(text))
	r.TrimLeadingSpace = true
	values, err := r.Read()
	if err != nil {
		return nil, fmt.Errorf("its values cannot be read: separate them by commas, and put one that has a comma into double quotes")
	}
	for i, v := range values {
		if values[i] = strings.TrimSpace(v); values[i] == "" {
			return nil, fmt.Errorf("value %d is empty", i+1)
		}
	}
	return values, nil
}

type form struct {
	kind         v1beta1.ParameterType
	distribution v1beta1.Distribution
}

var forms = map[string]form{
	"uniform":   {v1beta1.ParameterTypeDouble, v1beta1.DistributionUniform},
	"log":       {v1beta1.ParameterTypeDouble, v1beta1.DistributionLogUniform},
	"normal":    {v1beta1.ParameterTypeDouble, v1beta1.DistributionNormal},
	"lognormal": {v1beta1.ParameterTypeDouble, v1beta1.DistributionLogNormal},
	"int":       {v1beta1.ParameterTypeInt, v1beta1.DistributionUniform},
	"logint":    {v1beta1.ParameterTypeInt, v1beta1.DistributionLogUniform},
}

func setForm(p *v1beta1.ParameterSpec, word string, values []string) error {
	if word == "choice" {
		p.ParameterType = v1beta1.ParameterTypeDiscrete
		if slices.ContainsFunc(values, func(v string) bool { return !isNumber(v) }) {
			p.ParameterType = v1beta1.ParameterTypeCategorical
		}
		p.FeasibleSpace.List = values
		return nil
	}
	f, known := forms[word]
	if !known {
		return fmt.Errorf("there is no form %q: use one of %s", word, Forms)
	}
	if len(values) < 2 || len(values) > 3 {
		return fmt.Errorf("%s takes the smallest and the largest value, and perhaps a step: write %s(1,10) or %s(1,10,1); for these values alone, choice(%s)",
			word, word, word, strings.Join(values, ","))
	}
	for _, v := range values {
		if !isNumber(v) {
			return fmt.Errorf("%q is not a number", v)
		}
	}
	if len(values) == 3 {
		if err := stepFits(word, values[0], values[1], strings.TrimPrefix(values[2], "step=")); err != nil {
			return err
		}
	}
	p.ParameterType = f.kind
	p.FeasibleSpace.Min, p.FeasibleSpace.Max = values[0], values[1]
	if f.distribution != v1beta1.DistributionUniform {
		p.FeasibleSpace.Distribution = f.distribution
	}
	if len(values) == 3 {
		p.FeasibleSpace.Step = strings.TrimPrefix(values[2], "step=")
	}
	return nil
}

// stepFits refuses a step that leaves a single value: a person who writes int(8,64,100)
// means a list.
func stepFits(word, low, high, step string) error {
	least, _ := strconv.ParseFloat(low, 64) // they are numbers
	most, _ := strconv.ParseFloat(high, 64)
	by, _ := strconv.ParseFloat(step, 64)
	if least >= most || by <= (most-least)*(1+1e-9) { // 0.3-0.1 is less than 0.2
		return nil
	}
	return fmt.Errorf("the third number is the step, and %s is more than from %s to %s: write %s(%s,%s) for all values between, a smaller step, or choice(%s,%s,%s) for these values alone",
		step, low, high, word, low, high, low, high, step)
}

func isNumber(text string) bool {
	_, err := strconv.ParseFloat(strings.TrimPrefix(text, "step="), 64)
	return err == nil && !strings.ContainsAny(text, "xXnN_")
}

// Form is the parameter as a person would write it; ParseParameter reads it.
func Form(p v1beta1.ParameterSpec) string {
	s := p.FeasibleSpace
	word, values := "choice", make([]string, 0, 3)
	if len(s.List) > 0 {
		for _, v := range s.List {
			if strings.ContainsAny(v, `",`) {
				v = `"` + strings.ReplaceAll(v, `"`, `""`) + `"`
			}
			values = append(values, v)
		}
	} else {
		values = append(values, s.Min, s.Max)
		if s.Step != "" {
			values = append(values, s.Step)
		}
		for name, f := range forms {
			if f.kind == p.ParameterType && (f.distribution == s.Distribution || s.Distribution == "" && f.distribution == v1beta1.DistributionUniform) {
				word = name
			}
		}
	}
	text := p.Name + "=" + word + "(" + strings.Join(values, ",") + ")" + priorText(s.Prior)
	if p.When != nil {
		text += " if " + p.When.Parameter + "=" + strings.Join(p.When.In, "|")
	}
	return text
}
