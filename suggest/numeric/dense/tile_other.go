//go:build !amd64

package dense

const vectorized = false

func multiply4(int, *float64, int, int, *float64, *float64, int) {}

func multiply1(int, *float64, int, *float64, *float64) {}

func terms8(int, *float64, int, int, *float64, *float64) float64 { return 0 }

func squares4(int, *[4]float64, *float64, *float64, *float64, *float64, *float64) {}

func squares2(int, float64, float64, *float64, *float64, *float64) {}

func products2(int, float64, float64, *float64, *float64, *float64) {}

func quadratic(int, float64, *float64, *float64) {}

func scale(int, float64, *float64) {}

func pairSums(int, *float64, *float64, *float64, *float64, *float64, *[8]float64) {}

func solve4(*float64, int, *float64) {}

func weightedSquares(int, *float64, *[16]float64, *float64, *float64, *float64, *float64, *[16]float64) {
}
