package problem

// The minima of the small finite problems, found by weighing each point.
const (
	pairsMinimum = 3.5883780645055801
	pestsMinimum = 1.0996928563186723
)
