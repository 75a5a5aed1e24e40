package collector

import "time"

// Record is a point as a line of JSON keeps it, whose place gives it Source and Seq.
type Record struct {
	Metric string `json:"m"`
	// Value is text, since JSON has no NaN.
	Value string `json:"v"`
	Text  string `json:"x,omitempty"`
	Step  int64  `json:"s"`
	// Time is as UnixNano returns it, and 0 where it does not fit.
	Time int64 `json:"t"`
}

// RecordOf returns what is kept of a point.
func RecordOf(p Point) Record {
	at, _ := UnixNano(p.Time)
	return Record{p.Metric, FormatValue(p.Value), p.Text, p.Step, at}
}

// Point returns the point that lies at a place.
func (r Record) Point(source string, seq int64) Point {
	value, _ := ParseValue(r.Value, 0)
	return Point{Metric: r.Metric, Value: value, Text: r.Text, Step: r.Step, Time: FromUnixNano(r.Time), Source: source, Seq: seq}
}

// FromUnixNano is the reverse of UnixNano; 0 is the zero time.
func FromUnixNano(nanos int64) time.Time {
	if nanos == 0 {
		return time.Time{}
	}
	return time.Unix(0, nanos).UTC()
}
