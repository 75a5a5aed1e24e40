package file

import (
	"errors"

	"github.com/vernier-ml/vernier/collector"
	"github.com/vernier-ml/vernier/collector/parse"
	"github.com/vernier-ml/vernier/collector/source"
)

// newLog returns a source named "file:" and the path, of a file that a program
// appends lines to. The file may be created late; a line may come in pieces; a
// last line without an end is read when the source drains.
//
// When the file is renamed and a new one made, the old one is read to its end
// first, and files that came and went in between ("metrics.log.1") are read
// too.
//
// Seq is the byte offset of the match, plus 2^40 for each file or truncation
// that came before, so that it keeps growing.
func newLog(cfg Config) (collector.Source, error) {
	if _, err := newWantedLines(cfg, "", nil); err != nil {
		return nil, err
	}
	name := "file:" + cfg.Path
	return cfg.polled(name, func(said *source.Troubles) source.Poller {
		l := &logFile{cfg: cfg, said: said}
		l.lines, _ = newWantedLines(cfg, name, said.Yield) // it did a moment ago
		l.known.state = cfg.State
		if err := l.known.load(); err != nil && !said.Tell(err) {
			return nil
		}
		return newFollower(cfg, said, l, l.next)
	}), nil
}

// newWantedLines returns the lines of what is configured.
func newWantedLines(cfg Config, name string, yield source.Yield) (*lines, error) {
	parser, err := parse.NewLine(cfg.Format, cfg.Metrics, cfg.Filters)
	if err != nil {
		return nil, err
	}
	l := newLines(parser, name, cfg.Clock.Stamp, yield)
	l.echo = cfg.Echo
	return l, l.want(cfg)
}

// logFile is the lines of a file.
type logFile struct {
	*lines
	cfg   Config
	said  *source.Troubles
	known generations
	cur   *reading
}

var _ content = (*logFile)(nil)

// next opens what follows a file; at first the files that were read before,
// wherever rotation has put them.
func (l *logFile) next(cur *reading) ([]*reading, error) {
	if cur != nil {
		return successors(l.cfg.Path, cur, func(f *reading) bool { return l.known.match(f) >= 0 }), nil
	}
	if files := l.known.reopen(l.cfg.Path); len(files) > 0 {
		return files, nil
	}
	return first(l.cfg.Path)
}

func (l *logFile) begin(f *reading) bool {
	f.passOver(l.cfg.Before)
	l.cur = f
	l.reset()
	return true
}

func (l *logFile) feed(at int64, b []byte) bool {
	return (!l.cur.headComplete() || l.identify()) && l.lines.feed(at, b)
}

func (l *logFile) left() bool { return len(l.partial) == 0 || l.identify() && l.last() }

func (l *logFile) finish() bool {
	if l.names != nil && !l.any {
		return l.said.Tell(errors.New("the program wrote nothing to it"))
	}
	return l.left() && l.end()
}

func (l *logFile) nothing() error { return neverWritten(l.cfg.Path) }

// identify makes sure that the current file has its number, before anything of
// it is yielded.
func (l *logFile) identify() bool {
	ok := true
	if l.cur.generation < 0 {
		var err error
		if l.cur.generation, err = l.known.number(l.cur); err != nil {
			ok = l.said.Tell(err)
		}
	}
	l.base = int64(l.cur.generation) << generationShift
	return ok
}
