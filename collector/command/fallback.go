package command

import (
	"fmt"
	"strings"
	"sync"

	"github.com/vernier-ml/vernier/collector/contract"
)

// ending is how an attempt ended.
type ending struct {
	n           int
	summary     contract.Summary
	undelivered int64
}

// fallback writes the termination message of a pod: the summary of the newest
// attempt that has ended. It is final if all attempts are, and else says what the
// earlier ones lack.
type fallback struct {
	put func(contract.Summary) error

	mu           sync.Mutex
	begun, ended int // attempts
	newest       ending
	// Of the others, those that are not final, and what they lack.
	cut, lost int64
}

// begin counts an attempt that goes on.
func (f *fallback) begin() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.begun++
}

// end takes in an attempt that has ended, and writes the message.
func (f *fallback) end(e ending) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.ended++
	other := e
	if f.ended == 1 || e.n > f.newest.n {
		f.newest, other = e, f.newest
	}
	if f.ended > 1 && !other.summary.Final {
		f.cut++
		f.lost += other.undelivered
	}
	return f.put(f.summary())
}

func (f *fallback) summary() contract.Summary {
	s := f.newest.summary
	s.Final = s.Final && f.cut == 0 && f.ended == f.begun
	if f.cut > 0 {
		lost := fmt.Sprintf("earlier attempts that were not reported to their end: %d; %d of their points were not delivered", f.cut, f.lost)
		s.Note = strings.TrimSuffix(lost+"; "+s.Note, "; ")
	}
	return s
}
