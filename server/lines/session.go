// Package lines serves a study to a program in any language: JSON Lines in,
// JSON Lines out, one answer for each request, in their order. It knows nothing
// of Kubernetes. The protocol is described in docs/optimize.md.
package lines

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"runtime/debug"
	"time"

	"github.com/vernier-ml/vernier/suggest"
)

// MaxLine is how many bytes a request may have, without its newline.
const MaxLine = 8 << 20

// MaxAsk is how many trials one request may ask for.
const MaxAsk = 10_000

// Config of a Session.
type Config struct {
	// Study as it begins: what ReadStudy gives, and a seed.
	Study suggest.Study
	// Algorithm that is asked.
	Algorithm suggest.Algorithm
	// Stopper is asked at each report. Nil: no trial is stopped.
	Stopper suggest.Stopper
	// Deadline of one ask, after which the algorithm answers with the best that
	// it has. Zero: none.
	Deadline time.Duration
	// Diagnostics gets the stack of an algorithm that panics. Nil: it is not written.
	Diagnostics io.Writer
}

// Session is one study and the conversation about it. It is not for use by
// several goroutines at once.
type Session struct {
	config  Config
	session suggest.Session
}

// New starts a session.
func New(c Config) *Session {
	return &Session{config: c, session: suggest.Session{Study: c.Study, Algorithm: c.Algorithm, Stopper: c.Stopper}}
}

// Serve answers each line of in with one line on out, until the end of in,
// which is no error. What is wrong with a request is said in its answer. The
// error is one of reading or writing.
func (s *Session) Serve(ctx context.Context, in io.Reader, out io.Writer) error {
	reader := bufio.NewReaderSize(in, 1<<16)
	var line []byte
	for {
		var tooLong bool
		var err error
		line, tooLong, err = readLine(reader, line[:0])
		if err != nil && !errors.Is(err, io.EOF) {
			return fmt.Errorf("read a request: %w", err)
		}
		if err != nil && len(line) == 0 && !tooLong {
			return nil
		}
		answer := encode(failed{Error: fmt.Sprintf("the line is longer than %d bytes; split it into several requests", MaxLine)})
		if !tooLong {
			answer = s.Answer(ctx, line)
		}
		if _, err := out.Write(append(answer, '\n')); err != nil {
			return fmt.Errorf("write an answer: %w", err)
		}
		if err != nil {
			return nil
		}
	}
}

// readLine reads a line without its newline into buf. Of one that is too long
// nothing is kept. io.EOF comes with what stands after the last newline.
func readLine(r *bufio.Reader, buf []byte) (line []byte, tooLong bool, err error) {
	for {
		part, err := r.ReadSlice('\n')
		part, whole := bytes.CutSuffix(part, []byte("\n"))
		if tooLong = tooLong || len(buf)+len(part) > MaxLine; tooLong {
			buf = buf[:0]
		} else {
			buf = append(buf, part...)
		}
		if whole || !errors.Is(err, bufio.ErrBufferFull) {
			return buf, tooLong, err
		}
	}
}

// Answer answers one request. Neither has a newline.
func (s *Session) Answer(ctx context.Context, line []byte) []byte {
	r, err := s.readRequest(line)
	var answer any
	if err == nil {
		answer, err = s.do(ctx, r)
	}
	if err != nil {
		answer = failed{err.Error(), r.id}
	}
	return encode(answer)
}

func (s *Session) do(ctx context.Context, r request) (any, error) {
	switch {
	case r.tell != nil:
		numbers, err := s.tell(r.tell)
		if err == nil {
			s.prepare(ctx)
		}
		return learned{true, numbers, r.id}, err
	case r.report != nil:
		stop, why, err := s.report(*r.report)
		return judged{stop, why, r.id}, err
	}
	trials, exhausted, err := s.ask(ctx, r.ask)
	return asked{trials, exhausted, r.id}, err
}

// prepare lets the algorithm learn while the program waits for nothing.
func (s *Session) prepare(ctx context.Context) {
	ctx, cancel := s.limit(ctx)
	defer cancel()
	// What goes wrong goes wrong again, and is said, when trials are asked for.
	_ = s.guard("the algorithm", func() error { s.session.Prepare(ctx); return nil })
}

// limit puts the deadline of a request on ctx.
func (s *Session) limit(ctx context.Context) (context.Context, context.CancelFunc) {
	if s.config.Deadline > 0 {
		return context.WithTimeout(ctx, s.config.Deadline)
	}
	return context.WithCancel(ctx)
}

// ask makes at most n trials of what the algorithm proposes.
func (s *Session) ask(ctx context.Context, n int) (made []proposed, exhausted bool, err error) {
	next := s.session.Study.NextNumber()
	if left := maxNumber + 1 - next; n > left { // nothing could be told of them
		return nil, false, fmt.Errorf("trials have numbers up to %d, so that %d more can be asked for; number them from 0", maxNumber, left)
	}
	ctx, cancel := s.limit(ctx)
	defer cancel()
	var trials []suggest.Asked
	err = s.guard("the algorithm", func() (err error) {
		trials, err = s.session.Ask(ctx, n)
		return err
	})
	if errors.Is(err, suggest.ErrExhausted) {
		exhausted, err = true, nil
	}
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return nil, false, fmt.Errorf("the algorithm has no answer after %s; allow it more time, or use another algorithm", s.config.Deadline)
	case err != nil:
		return nil, false, err
	}
	made = []proposed{}
	for _, t := range trials {
		p := proposed{Number: t.Number, Params: params{s.session.Study.Space, t.Point}, Resource: t.Resource, Meta: t.Meta, Why: t.Why, Fallback: t.Fallback}
		if s.session.Study.Repeats {
			p.Seed = &t.Seed
		}
		made = append(made, p)
	}
	return made, exhausted || s.exhausted(ctx, len(made), n), nil
}

// exhausted says whether the trials just made are the last. It asks once more
// where that may be: when there were fewer than asked, or as many as the space
// has points.
func (s *Session) exhausted(ctx context.Context, made, asked int) (last bool) {
	size, finite := s.session.Study.Space.Size()
	if made == 0 || ctx.Err() != nil || made == asked && (!finite || uint64(len(s.session.Study.Trials)) < size) {
		return false
	}
	// What else goes wrong goes wrong again, and is said, when trials are asked for.
	_ = s.guard("the algorithm", func() error {
		_, err := s.config.Algorithm.Suggest(ctx, s.session.Study, 1)
		last = errors.Is(err, suggest.ErrExhausted)
		return err
	})
	return last
}

func (s *Session) report(r report) (stop bool, why string, err error) {
	err = s.guard("the stopping rule", func() (err error) {
		stop, why, err = s.session.Report(r.number, r.sample)
		return err
	})
	return stop, why, err
}

// guard turns a panic into an error: one bad request must not end the study.
func (s *Session) guard(who string, do func() error) (err error) {
	defer func() {
		if cause := recover(); cause != nil {
			err = fmt.Errorf("%s failed (%v): this is a mistake in vernier, please report it; the study goes on", who, cause)
			if s.config.Diagnostics != nil {
				fmt.Fprintf(s.config.Diagnostics, "%v\n%s", cause, debug.Stack())
			}
		}
	}()
	return do()
}
