package parse

import (
	"math"
	"strconv"
	"strings"
	"unicode"
)

// Recorded is a parameter that a program recorded for TensorBoard's HPARAMS tab:
// the hparams plugin's session_start_info.
type Recorded struct {
	Name string
	// Value is what was recorded, as text: a number in its shortest form, true or
	// false, or the string.
	Value string
}

// Limits of what is read of one session. The rest is passed over.
const (
	// MaxRecorded bounds the parameters of a session.
	MaxRecorded = 200
	// MaxRecordedText bounds a name and a text, in bytes. A parameter with a
	// longer name, or a longer text, is passed over.
	MaxRecordedText = 200
)

// tagHparams is the tag of the value whose metadata have the parameters.
const tagHparams = "_hparams_/session_start_info"

// The fields that are read, with their wire types.
const (
	valueMetadata  = 9<<3 | wireBytes // tensorflow.Summary.Value.metadata
	metadataPlugin = 1<<3 | wireBytes // tensorflow.SummaryMetadata.plugin_data
	pluginName     = 1<<3 | wireBytes // .PluginData.plugin_name
	pluginContent  = 2<<3 | wireBytes // .PluginData.content
	hparamsStart   = 3<<3 | wireBytes // HParamsPluginData.session_start_info
	startHparams   = 1<<3 | wireBytes // SessionStartInfo.hparams, a map
	entryName      = 1<<3 | wireBytes
	entryValue     = 2<<3 | wireBytes
	valueNumber    = 2<<3 | wireFixed64 // google.protobuf.Value.number_value
	valueString    = 3<<3 | wireBytes   // .string_value
	valueBool      = 4<<3 | wireVarint  // .bool_value
)

// Recording returns a copy of w with which told is called for each parameter
// that the program recorded, session by session. What cannot be understood is
// passed over without an error, since it is no measurement.
func (w *Wanted) Recording(told func(Recorded)) *Wanted {
	c := *w
	c.recorded = told
	return &c
}

// settles reports whether a value, whose tag is not wanted, need not be looked at
// any further: it has the program's parameters, or its tag is not asked for.
func (w *Wanted) settles(tag, value []byte) bool {
	if w.recorded != nil && string(tag) == tagHparams {
		recordedSession(value, w.recorded)
		return true
	}
	return w.unknown == nil
}

// recordedSession reads a tensorflow.Summary.Value with the tag tagHparams.
func recordedSession(b []byte, told func(Recorded)) {
	plugin := within(within(b, valueMetadata), metadataPlugin)
	if string(within(plugin, pluginName)) != "hparams" {
		return
	}
	session := within(within(plugin, pluginContent), hparamsStart)
	m := message{whole: session}
	for n := 0; n < MaxRecorded && m.next(); {
		if m.key != startHparams {
			continue
		}
		n++
		if p, ok := recordedEntry(m.bytes()); ok {
			told(p)
		}
	}
}

func recordedEntry(b []byte) (p Recorded, ok bool) {
	name := within(b, entryName)
	if len(name) == 0 || len(name) > MaxRecordedText {
		return p, false
	}
	f := message{whole: within(b, entryValue)}
	for f.next() {
		switch f.key {
		case valueNumber:
			ok = true
			p.Value = strconv.FormatFloat(math.Float64frombits(f.value), 'g', -1, 64)
		case valueString:
			ok = len(f.bytes()) <= MaxRecordedText
			p.Value = printable(f.bytes()[:min(len(f.bytes()), MaxRecordedText)])
		case valueBool:
			p.Value, ok = strconv.FormatBool(f.value != 0), true
		default: // null, a list, or a struct
			ok = false
		}
	}
	p.Name = printable(name)
	return p, ok && f.err == nil
}

// printable returns a text that may stand in a message on a terminal.
func printable(b []byte) string {
	return strings.Map(func(r rune) rune {
		if r == unicode.ReplacementChar || !unicode.IsPrint(r) {
			return '?'
		}
		return r
	}, string(b))
}
