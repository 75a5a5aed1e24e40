package parse

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"

	"github.com/vernier-ml/vernier/collector"
)

// The framing of a W&B transaction log (run-<id>.wandb) is that of LevelDB's log:
// blocks of 32 KiB, counted from the beginning of the file, that hold fragments
// of records. A fragment is the CRC-32 (IEEE) of all that follows the length, the
// length (2 bytes), a type and the data, little endian; fewer than 7 bytes at the
// end of a block are filled with zeros. The file begins with a header of 7 bytes.
// A record is a wandb_internal.Record in protobuf form.
const (
	wandbBlock    = 32 << 10
	wandbFragment = 7
	wandbHeader   = ":W&B\xe1\xbe\x00"
	// maxWandbRecord bounds the records that are read, in bytes.
	maxWandbRecord = 8 << 20
	// maxWandbValues bounds the values of one record, and maxWandbName the names
	// that a reader of all metrics takes, in bytes.
	maxWandbValues = 1 << 16
	maxWandbName   = 1024
)

// The types of a fragment.
const (
	wandbZero = iota // space that was reserved and never written
	wandbFull
	wandbFirst
	wandbMiddle
	wandbLast
)

// ErrWandbRecord says that a part of a W&B log was passed over.
var ErrWandbRecord = errors.New("a part of the W&B log was passed over")

// ErrNotWandb says that a file is no W&B transaction log, or of a version that
// is not known.
var ErrNotWandb = errors.New("the file is not a W&B log of a known version")

// Wandb reads the history of W&B transaction logs, what run.log was given, and
// nothing else: system metrics are passed over. One Wandb may read many files in
// turn; it is not safe for concurrent use.
//
// A metric's name is its key; those of nested dictionaries are joined by dots.
// The step is W&B's own (_step), the time is its _timestamp. Values are numbers,
// or strings that hold numbers.
type Wandb struct {
	names  map[string]bool // nil: all
	block  []byte
	record []byte
}

// NewWandb returns a reader of the named metrics. It needs 32 KiB, and about
// 30 MiB while it reads a record of 8 MiB with 65,536 values, which are the most
// that it takes.
func NewWandb(metrics []string) *Wandb {
	w := &Wandb{names: map[string]bool{}, block: make([]byte, wandbBlock)}
	for _, n := range wanted(metrics) {
		w.names[n] = true
	}
	return w
}

// NewAnyWandb returns a reader of all metrics whose names have at most 1024
// bytes.
func NewAnyWandb() *Wandb { return &Wandb{block: make([]byte, wandbBlock)} }

// WandbNames returns the names in a log that is complete, each once, at most so
// many; never nil. What is wrong with the log is for who reads it.
func WandbNames(r io.ReaderAt, most int) []string {
	names, reader := []string{}, NewAnyWandb()
	known := map[string]bool{}
	for offset := int64(0); len(names) < most; {
		next, err := reader.Read(r, offset, true, func(s collector.Point) bool {
			if !known[s.Metric] {
				known[s.Metric] = true
				names = append(names, s.Metric)
			}
			return len(names) < most
		})
		if !errors.Is(err, ErrWandbRecord) || next <= offset {
			break
		}
		offset = next
	}
	return names
}

// Read reads the complete records of r from offset on, which must be 0 or what
// an earlier call returned, and calls emit for each sample until emit returns
// false. It returns the offset to go on from. Seq of a sample is a place in
// the file, inside of its record.
//
// Records that are not complete yet are no error: call again when the file has
// grown. Damage in a block that the writer has left is: it gives ErrWandbRecord, and
// the caller may go on at next, which is the next block. ended says that the
// writer will not write any more; then damage in its last block is reported too.
// After ErrNotWandb there is nothing to go on with.
func (w *Wandb) Read(r io.ReaderAt, offset int64, ended bool, emit func(collector.Point) bool) (next int64, err error) {
	c := &wandbCursor{w: w, r: r, ended: ended, at: offset, start: offset}
	defer func() {
		if cap(w.record) > wandbBlock { // what a large record needed
			w.record = nil
		}
	}()
	if offset == 0 {
		if ok, err := c.header(); !ok {
			return 0, err
		}
	}
	for {
		whole, err := c.next()
		if err != nil || !whole {
			return c.start, err
		}
		ok, err := w.history(c.start, emit)
		if err != nil {
			err = fmt.Errorf("%w: at byte %d: %w", ErrWandbRecord, c.start, err)
		}
		c.start = c.at
		if !ok || err != nil {
			return c.start, err
		}
	}
}

// wandbCursor walks over the records of a file.
type wandbCursor struct {
	w     *Wandb
	r     io.ReaderAt
	ended bool
	at    int64 // the next fragment
	start int64 // the first fragment of the record at hand

	inside bool // a fragment of that record was read

	loaded int64  // where the bytes at hand begin in the file
	bytes  []byte // of the block that holds at, as far as it is written
}

func (c *wandbCursor) header() (ok bool, err error) {
	var b [len(wandbHeader)]byte
	n, err := c.r.ReadAt(b[:], 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return false, fmt.Errorf("reading: %w", err)
	}
	if string(b[:n]) != wandbHeader[:n] {
		return false, fmt.Errorf("%w: it begins with %q", ErrNotWandb, b[:n])
	}
	if n < len(b) {
		return false, nil
	}
	c.at, c.start = int64(n), int64(n)
	return true, nil
}

// next reads the fragments of one record. whole is false when the record is not
// complete.
func (c *wandbCursor) next() (whole bool, err error) {
	c.inside = false
	c.w.record = c.w.record[:0]
	for {
		kind, data, err := c.fragment()
		if err != nil || data == nil {
			return false, err
		}
		switch kind {
		case wandbFull, wandbFirst:
			if c.inside {
				c.start = c.at - int64(len(data)) - wandbFragment
				return false, fmt.Errorf("%w: before byte %d, it has no end", ErrWandbRecord, c.start)
			}
			c.inside = true
		case wandbMiddle, wandbLast:
			if !c.inside { // its beginning was damaged, which was said
				c.start = c.at
				continue
			}
		default:
			return false, c.damaged(fmt.Sprintf("a fragment has the unknown type %d", kind))
		}
		if c.w.record = append(c.w.record, data...); len(c.w.record) > maxWandbRecord {
			c.start, c.w.record = c.at, c.w.record[:0]
			return false, fmt.Errorf("%w: before byte %d, it has more than %d bytes", ErrWandbRecord, c.at, maxWandbRecord)
		}
		if kind == wandbFull || kind == wandbLast {
			return true, nil
		}
	}
}

// fragment reads the next fragment. data is nil when it is not complete.
func (c *wandbCursor) fragment() (kind byte, data []byte, err error) {
	for {
		if left := wandbBlock - c.at%wandbBlock; left < wandbFragment {
			c.at += left
		}
		b, err := c.load()
		if err != nil || len(b) < wandbFragment {
			return 0, nil, err
		}
		size := int(binary.LittleEndian.Uint16(b[4:]))
		kind = b[6]
		switch {
		case kind == wandbZero && size == 0 && binary.LittleEndian.Uint32(b) == 0:
			if !c.complete() {
				return 0, nil, nil
			}
			if c.inside || len(bytes.TrimLeft(b, "\x00")) > 0 {
				return 0, nil, c.damaged("there is a hole")
			}
			c.at += int64(len(b)) // the rest of the block was never used
			c.start = c.at
			continue
		case wandbFragment+size > wandbBlock-int(c.at%wandbBlock):
			return 0, nil, c.torn("a fragment is longer than its block")
		case wandbFragment+size > len(b):
			return 0, nil, nil
		case crc32.ChecksumIEEE(b[6:wandbFragment+size]) != binary.LittleEndian.Uint32(b):
			return 0, nil, c.torn("the checksum of a fragment is wrong")
		}
		c.at += int64(wandbFragment + size)
		return kind, b[wandbFragment : wandbFragment+size : wandbFragment+size], nil
	}
}

// load returns what there is of the block from c.at on.
func (c *wandbCursor) load() ([]byte, error) {
	if block := c.at - c.at%wandbBlock; c.bytes == nil || block != c.loaded {
		n, err := c.r.ReadAt(c.w.block, block)
		if err != nil && !errors.Is(err, io.EOF) {
			return nil, fmt.Errorf("reading at byte %d: %w", block, err)
		}
		c.loaded, c.bytes = block, c.w.block[:n]
	}
	return c.bytes[min(int(c.at-c.loaded), len(c.bytes)):], nil
}

// complete says whether the writer has done with the block at hand.
func (c *wandbCursor) complete() bool {
	if c.ended {
		return true
	}
	var b [1]byte
	n, _ := c.r.ReadAt(b[:], c.loaded+wandbBlock) // what cannot be read is not there
	return n > 0
}

// torn is damage, unless the writer may still be about to write there.
func (c *wandbCursor) torn(what string) error {
	if !c.complete() {
		return nil
	}
	return c.damaged(what)
}

// damaged goes on at the next block.
func (c *wandbCursor) damaged(what string) error {
	at := c.at
	c.at = c.loaded + wandbBlock
	c.start = c.at
	return fmt.Errorf("%w: at byte %d, %s; the rest of its block was passed over", ErrWandbRecord, at, what)
}
