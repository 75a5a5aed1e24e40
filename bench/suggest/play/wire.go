package play

import (
	"encoding/json"
	"fmt"
	"math"
	"strconv"

	"github.com/vernier-ml/vernier/suggest"
)

// The words of the protocol between this program and a player in another
// process: one JSON object a line, a request and its answer in turn. It is that
// of `vernier optimize`, and has two requests in addition: "open", which takes the
// place of the command line's flags, and "load".

type request struct {
	Open   *opening     `json:"open,omitempty"`
	Ask    int          `json:"ask,omitempty"`
	Tell   []wireResult `json:"tell,omitempty"`
	Report *wireReport  `json:"report,omitempty"`
	// Load hands over trials that the player has not proposed.
	Load []wirePast `json:"load,omitempty"`
}

type opening struct {
	Algorithm string    `json:"algorithm"`
	Seed      uint64    `json:"seed"`
	Parallel  int       `json:"parallel"`
	Steps     int       `json:"steps,omitempty"`
	Space     WireSpace `json:"space"`
}

// WireSpace is a space file.
type WireSpace struct {
	Parameters  []WireParameter `json:"parameters"`
	Objectives  []WireObjective `json:"objectives"`
	Constraints []WireObjective `json:"constraints,omitempty"`
	Budget      int             `json:"budget,omitempty"`
}

// WireParameter is a parameter of a space file.
type WireParameter struct {
	Name         string    `json:"name"`
	Type         string    `json:"type"`
	Min          any       `json:"min,omitempty"`
	Max          any       `json:"max,omitempty"`
	Step         any       `json:"step,omitempty"`
	Distribution string    `json:"distribution,omitempty"`
	List         []any     `json:"list,omitempty"`
	When         *WireWhen `json:"when,omitempty"`
}

// WireWhen is the condition of a parameter.
type WireWhen struct {
	Parameter string `json:"parameter"`
	In        []any  `json:"in"`
}

// WireObjective is an objective or a constraint of a space file.
type WireObjective struct {
	Name string `json:"name"`
	Type string `json:"type,omitempty"`
}

type wireResult struct {
	Number      int         `json:"number"`
	State       string      `json:"state"`
	Values      []float64   `json:"values,omitempty"`
	Constraints []float64   `json:"constraints,omitempty"`
	Curve       [][]float64 `json:"curve,omitempty"`
}

type wirePast struct {
	Params map[string]any `json:"params"`
	Value  float64        `json:"value"`
}

type wireReport struct {
	Number int     `json:"number"`
	Step   int64   `json:"step"`
	Value  float64 `json:"value"`
}

type answer struct {
	Trials []struct {
		Number   int            `json:"number"`
		Params   map[string]any `json:"params"`
		Resource float64        `json:"resource"`
	} `json:"trials"`
	Exhausted bool   `json:"exhausted"`
	OK        bool   `json:"ok"`
	Stop      bool   `json:"stop"`
	Error     string `json:"error"`
	// Values and Failed are how a training ended, and Curve how it went; null once it
	// has diverged.
	Values []float64  `json:"values"`
	Failed bool       `json:"failed"`
	Curve  []*float64 `json:"curve"`
	// CPU and Wall are the seconds that the answer took, as measured by who
	// gave it.
	CPU  float64 `json:"cpu"`
	Wall float64 `json:"wall"`
}

// NewWireSpace writes a game's space.
func NewWireSpace(g Game) WireSpace {
	s := WireSpace{Budget: g.Budget}
	for _, p := range g.Parameters {
		w := WireParameter{Name: p.Name, Type: string(p.Kind), Distribution: string(p.Distribution), Min: wireNumber(p.Min), Max: wireNumber(p.Max), Step: wireNumber(p.Step)}
		for _, c := range p.List {
			w.List = append(w.List, wireChoice(p.Kind, c))
		}
		if p.When != nil {
			w.When = &WireWhen{Parameter: p.When.Parameter}
			j, _ := g.Space.Index(p.When.Parameter)
			for _, c := range p.When.In {
				w.When.In = append(w.When.In, wireChoice(g.Parameters[j].Kind, c))
			}
		}
		s.Parameters = append(s.Parameters, w)
	}
	for i := range g.Objectives {
		s.Objectives = append(s.Objectives, WireObjective{Name: fmt.Sprintf("f%d", i), Type: string(suggest.Minimize)})
	}
	for i := range g.Constraints {
		s.Constraints = append(s.Constraints, WireObjective{Name: fmt.Sprintf("g%d", i)})
	}
	return s
}

func wireNumber(text string) any {
	if text == "" {
		return nil
	}
	return json.Number(text)
}

func wireChoice(k suggest.Kind, text string) any {
	if k == suggest.Categorical {
		return text
	}
	return json.Number(text)
}

// WireParams writes a point: numbers as numbers, words as strings.
func WireParams(s suggest.Space, p suggest.Point) map[string]any {
	out := map[string]any{}
	for i, v := range p {
		if v.IsSet() {
			out[s.At(i).Name()] = wireChoice(s.At(i).Kind(), v.String())
		}
	}
	return out
}

// ParseParams reads a point. Numbers may carry the rounding noise of another
// program: a double is moved into its bounds when it is a billionth outside.
func ParseParams(s suggest.Space, params map[string]any) (suggest.Point, error) {
	var list []suggest.Assignment
	for i := range s.Len() {
		p := s.At(i)
		v, ok := params[p.Name()]
		if !ok {
			continue
		}
		text, err := wireText(p, v)
		if err != nil {
			return nil, err
		}
		list = append(list, suggest.Assignment{Name: p.Name(), Value: text})
	}
	if len(list) < len(params) {
		return nil, fmt.Errorf("%v has parameters that the space does not have", params)
	}
	point, ok := s.Parse(list)
	if !ok {
		return nil, fmt.Errorf("%v is not in the space", params)
	}
	return point, nil
}

func wireText(p suggest.Parameter, v any) (string, error) {
	switch v := v.(type) {
	case string:
		return v, nil
	case float64:
		if p.Kind() == suggest.Double {
			slack := 1e-9 * (p.Max() - p.Min())
			if v < p.Min() && v > p.Min()-slack || v > p.Max() && v < p.Max()+slack {
				v = math.Min(math.Max(v, p.Min()), p.Max())
			}
		}
		return strconv.FormatFloat(v, 'g', -1, 64), nil
	case bool:
		return strconv.FormatBool(v), nil
	}
	return "", fmt.Errorf("parameter %s has the value %v, which is neither a number nor a word", p.Name(), v)
}
