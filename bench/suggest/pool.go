package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/vernier-ml/vernier/bench/suggest/peer"
	"github.com/vernier-ml/vernier/bench/suggest/play"
)

// playInto plays the games that the file of results lacks, and makes it if there is none.
func (o *options) playInto(ctx context.Context, jobs []job) error {
	if err := os.MkdirAll(filepath.Dir(o.out), 0o755); err != nil {
		return err
	}
	store, err := play.OpenStore(o.out)
	if err != nil {
		return err
	}
	defer func() { _ = store.Close() }() // each result was written when it came
	return o.play(ctx, store, jobs)
}

// play plays the games that the store lacks, some at a time.
func (o *options) play(ctx context.Context, store *play.Store, jobs []job) error {
	jobs = slices.DeleteFunc(jobs, func(j job) bool { return store.Has(j.key) })
	tables := sync.OnceValues(func() (play.Tables, error) { return peer.Tables(o.venvs, o.folder) })
	queue := make(chan job)
	errs := make(chan error, o.jobs)
	done := progress{total: len(jobs), shown: time.Now()}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var wait sync.WaitGroup
	for range o.jobs {
		wait.Go(func() {
			w := worker{
				limit: o.limit, store: store, progress: &done, tables: tables,
				learn: func() (*play.Learner, error) { return peer.Learner(o.venvs, o.folder) },
			}
			defer w.close()
			if err := w.work(ctx, queue); err != nil {
				errs <- err
				cancel()
			}
		})
	}
	for _, j := range jobs {
		select {
		case queue <- j:
			continue
		case <-ctx.Done():
		}
		break
	}
	close(queue)
	wait.Wait()
	select {
	case err := <-errs:
		return err
	default:
		return context.Cause(ctx)
	}
}

// worker plays one game after the other, and keeps the process of a peer for the
// next game of the same peer.
type worker struct {
	limit    time.Duration
	store    *play.Store
	progress *progress

	method string
	opener play.Opener
	broken error

	learn   func() (*play.Learner, error)
	learner *play.Learner // nil until there is a training
	tables  func() (play.Tables, error)
}

func (w *worker) work(ctx context.Context, queue <-chan job) error {
	runtime.LockOSThread() // the thread's CPU time is what a suggestion costs
	defer runtime.UnlockOSThread()
	for j := range queue {
		r := w.game(ctx, j)
		if ctx.Err() != nil {
			return nil // what was interrupted is no result
		}
		if err := w.store.Add(r); err != nil {
			return err
		}
		w.progress.add(j.key)
	}
	return nil
}

func (w *worker) game(ctx context.Context, j job) play.Record {
	if w.method != j.method.name {
		w.leave()
		w.method = j.method.name
		w.opener, w.broken = j.method.open()
	}
	if w.broken != nil {
		return play.NewRecord(j.key, play.Played{}, w.broken)
	}
	if err := w.teach(&j.run); err != nil {
		return play.NewRecord(j.key, play.Played{}, err)
	}
	limited, cancel := context.WithTimeoutCause(ctx, w.limit, fmt.Errorf("it took longer than the limit of %s", w.limit))
	defer cancel()
	played, err := play.Play(limited, w.opener, j.run)
	return play.NewRecord(j.key, played, err)
}

// teach gives the run of a real task its evaluator.
func (w *worker) teach(r *play.Run) error {
	var err error
	switch {
	case r.Problem.Task != nil:
		if w.learner == nil {
			if w.learner, err = w.learn(); err != nil {
				return err
			}
		}
		r.Evaluate, r.Train = w.learner.Evaluator(r.Problem, r.Problem.Space()), w.learner.Trainer(r.Problem, r.Problem.Space())
	case r.Problem.Table != nil:
		tables, err := w.tables()
		if err != nil {
			return err
		}
		r.Evaluate, err = tables.Evaluator(r.Problem, r.Seed)
		return err
	}
	return nil
}

func (w *worker) close() {
	w.leave()
	if w.learner != nil {
		_ = w.learner.Close()
	}
}

func (w *worker) leave() {
	if w.opener != nil {
		_ = w.opener.Close() // a program that ends badly has given its answers before
	}
	w.opener, w.method = nil, ""
}

// progress is a line on standard error, every few seconds.
type progress struct {
	mu          sync.Mutex
	done, total int
	shown       time.Time
}

func (p *progress) add(k play.Key) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.done++
	if time.Since(p.shown) > 5*time.Second {
		p.shown = time.Now()
		fmt.Fprintf(os.Stderr, "%d of %d games: %s %s %s\n", p.done, p.total, k.Method, k.Regime, k.Problem)
	}
}
