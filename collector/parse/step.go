package parse

// stepNames are the names of a step, the best first: where a line states
// several, the finest counts.
var stepNames = [...]string{"global_step", "step", "iteration", "epoch"}

// stepFinder keeps the best step seen in one line.
type stepFinder struct {
	step int64
	rank int
}

func newStepFinder() stepFinder { return stepFinder{step: NoStep, rank: len(stepNames)} }

// rankOf returns the rank of a step's name, or len(stepNames).
func rankOf(name []byte) int {
	if len(name) < 4 || len(name) > 11 {
		return len(stepNames)
	}
	for i, n := range stepNames {
		if foldEqual(name, n) {
			return i
		}
	}
	return len(stepNames)
}

// offer takes the value of a name if it is a better step. The first of equal
// names counts.
func (f *stepFinder) offer(rank int, v float64) {
	if rank >= f.rank {
		return
	}
	if s, ok := integral(v); ok {
		f.step, f.rank = s, rank
	}
}

// at looks for a step around the sign ('=' or ':') at line[sign].
func (f *stepFinder) at(line []byte, sign int) {
	end := sign
	for end > 0 && (isSpace(line[end-1]) || line[end-1] == '"') {
		end--
	}
	if end == 0 || !isWord(line[end-1]) {
		return
	}
	switch line[end-1] | 0x20 {
	case 'p', 'n', 'h':
	default:
		return
	}
	begin := end
	for begin > 0 && isWord(line[begin-1]) && end-begin <= 11 {
		begin--
	}
	rank := rankOf(line[begin:end])
	if rank >= f.rank {
		return
	}
	rest := trimLeft(line[sign+1:])
	if len(rest) > 0 && rest[0] == '"' {
		rest = rest[1:]
	}
	if v, n := scanNumber(rest); n > 0 {
		f.offer(rank, v)
	}
}
