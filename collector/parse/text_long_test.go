package parse

import (
	"strings"
	"testing"
)

// What stands before a step is looked at once, not once for each step of the line: that
// would take hours for this one.
func TestTextLooksForStepsInLinearTime(t *testing.T) {
	line := []byte("loss=0.5 " + strings.Repeat("/step 1", 1<<17))
	p, err := NewText([]string{"loss"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if samples, err := p.Parse(nil, line); err != nil || len(samples) != 1 {
		t.Errorf("got %v, %v", samples, err)
	}
}
