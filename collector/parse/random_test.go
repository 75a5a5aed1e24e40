package parse

import (
	"math/rand/v2"
	"strings"
)

// randomLines calls check with lines made of pieces.
func randomLines(n int, pieces []string, check func(line string)) {
	random := rand.New(rand.NewPCG(11, uint64(n)))
	for range n {
		var b strings.Builder
		for range 1 + random.IntN(16) {
			b.WriteString(pieces[random.IntN(len(pieces))])
		}
		check(b.String())
	}
}
