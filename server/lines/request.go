package lines

import (
	"encoding/json"
	"fmt"

	"github.com/vernier-ml/vernier/suggest"
)

// request is what a line asks for: one of ask, tell and report.
type request struct {
	id     any // a string, a number or nil
	ask    int
	tell   []told
	report *report
}

// report is a measurement of a running trial.
type report struct {
	number int
	sample suggest.Sample
}

const oneRequest = `send one object a line, such as {"ask":1}, {"tell":[...]} or {"report":{...}}`

// readRequest reads a line. With an error, the request has the id, if that
// could be read.
func (s *Session) readRequest(line []byte) (request, error) {
	v, err := decode(line)
	if err != nil {
		return request{}, fmt.Errorf("the line is no JSON: %w; %s", err, oneRequest)
	}
	f, err := newFields("the line", v)
	if err != nil {
		return request{}, fmt.Errorf("%w: %s", err, oneRequest)
	}
	f.where = ""
	var r request
	if v, ok := f.take("id"); ok {
		if _, ok := textOf(v); !ok {
			return request{}, fmt.Errorf("id is %s; it must be a string or a number", describe(v))
		}
		r.id = v
	}
	ask, asks := f.take("ask")
	tell, tells := f.take("tell")
	measured, reports := f.take("report")
	if err := f.end(); err != nil {
		return r, err
	}
	switch {
	case asks && !tells && !reports:
		r.ask, err = readAsk(ask)
	case tells && !asks && !reports:
		r.tell, err = s.readTell(tell)
	case reports && !asks && !tells:
		r.report, err = readReport(measured)
	default:
		err = fmt.Errorf("the line has none or more than one of ask, tell and report; %s", oneRequest)
	}
	return r, err
}

func readAsk(v any) (int, error) {
	n, ok := wholeOf(v)
	if !ok || n < 0 || n > MaxAsk {
		return 0, fmt.Errorf("ask is %s; it must be a whole number from 0 to %d", describe(v), MaxAsk)
	}
	return int(n), nil
}

// readTell reads a list of trials, or a single one.
func (s *Session) readTell(v any) ([]told, error) {
	items, ok := v.([]any)
	if !ok {
		one, err := s.readOne("tell", v)
		return []told{one}, err
	}
	trials := make([]told, 0, len(items))
	for i, item := range items {
		t, err := s.readOne(fmt.Sprintf("tell[%d]", i), item)
		if err != nil {
			return nil, err
		}
		trials = append(trials, t)
	}
	return trials, nil
}

func (s *Session) readOne(where string, v any) (told, error) {
	f, err := newFields(where, v)
	if err != nil {
		return told{}, err
	}
	t := readTold(f, len(s.session.Study.Objectives))
	return t, f.end()
}

func readReport(v any) (*report, error) {
	f, err := newFields("report", v)
	if err != nil {
		return nil, err
	}
	number, numbered := f.whole("number")
	step, _ := f.take("step")
	value, measured := f.left["value"]
	f.skip("value")
	if err := f.end(); err != nil {
		return nil, err
	}
	if !numbered {
		return nil, fmt.Errorf("report.number is missing; say which trial it is")
	}
	r := &report{number: number}
	var ok bool
	if r.sample.Step, ok = wholeOf(step); !ok {
		return nil, fmt.Errorf("report.step is %s; it must be a whole number, such as the epoch", describe(step))
	}
	if r.sample.Value, ok = numberOf(value); !ok || !measured {
		return nil, fmt.Errorf("report.value is %s; it must be %s", describe(value), aNumber)
	}
	return r, nil
}

// isNumber says whether text is a number as JSON writes it.
func isNumber(text string) bool {
	if text == "" || text[0] != '-' && (text[0] < '0' || text[0] > '9') {
		return false
	}
	return json.Valid([]byte(text))
}
