package problem

import "crypto/sha256"

// Real are the tasks whose losses are of real trainings. They come in two halves:
// what is changed in an algorithm is judged by the development half alone, and the
// verdict half is played by the command that writes the page.
func Real(verdict bool) []*Problem {
	var out []*Problem
	for _, p := range append(Tables(), Trainings()...) {
		if p.Verdict == verdict {
			out = append(out, p)
		}
	}
	return out
}

// verdict draws the half of a family by its name alone.
func verdict(family string) bool {
	sum := sha256.Sum256([]byte(family))
	return sum[0]%2 == 1
}
