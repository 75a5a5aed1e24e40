package parse

import (
	"strings"
	"testing"
	"time"
)

// What stands before a step is looked at once, not once for each step of the line.
func TestTextLooksForStepsInLinearTime(t *testing.T) {
	line := []byte("loss=0.5 " + strings.Repeat("/step 1", 1<<17))
	p, err := NewText([]string{"loss"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	samples, err := p.Parse(nil, line)
	if took := time.Since(began); took > 2*time.Second {
		t.Errorf("a line of %d bytes took %v", len(line), took)
	}
	if err != nil || len(samples) != 1 {
		t.Errorf("got %v, %v", samples, err)
	}
}
