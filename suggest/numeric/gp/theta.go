package gp

import (
	"encoding/base64"
	"math"
	"slices"
)

// Theta are the hyperparameters, all as natural logarithms: one lengthscale for
// each dimension, then the variance of the signal, that of the noise above
// MinNoise, and that of the trend.
type Theta []float64

// MinNoise is added to the variance of the noise.
const MinNoise = 1e-6

// The bounds of the logarithms.
var (
	logLengthscale = [2]float64{math.Log(5e-3), math.Log(1e3)}
	logSignal      = [2]float64{math.Log(1e-2), math.Log(1e2)}
	logNoise       = [2]float64{math.Log(1e-8), math.Log(2)}
	logTrend       = [2]float64{math.Log(1e-6), math.Log(1e2)}
)

func (t Theta) dims() int { return len(t) - 3 }

// Signal is the variance of the signal.
func (t Theta) Signal() float64 { return math.Exp(t[len(t)-3]) }

// Noise is the variance of the noise.
func (t Theta) Noise() float64 { return math.Exp(t[len(t)-2]) + MinNoise }

// WithNoise is t with another variance of the noise, as far as there are bounds.
func (t Theta) WithNoise(variance float64) Theta {
	t = slices.Clone(t)
	t[len(t)-2] = math.Log(math.Max(variance-MinNoise, 0))
	return t.clamped()
}

func (t Theta) trend() float64 { return math.Exp(t[len(t)-1]) }

// bounds of each element.
func bounds(dims int) (low, high []float64) {
	low, high = make([]float64, dims+3), make([]float64, dims+3)
	for i := range low {
		b := logLengthscale
		switch i - dims {
		case 0:
			b = logSignal
		case 1:
			b = logNoise
		case 2:
			b = logTrend
		}
		low[i], high[i] = b[0], b[1]
	}
	return low, high
}

// resolution of the text: a 64th in the logarithm, between -32 and 32.
const resolution = 64

// Text is a short form of t: two letters for each element.
func (t Theta) Text() string {
	buf := make([]byte, 0, len(t)*3/2+2)
	for i := 0; i < len(t); i += 2 {
		a, b := quantum(t[i]), 0
		if i+1 < len(t) {
			b = quantum(t[i+1])
		}
		buf = append(buf, byte(a>>4), byte(a<<4|b>>8), byte(b))
	}
	return base64.RawURLEncoding.EncodeToString(buf)[:2*len(t)]
}

func quantum(x float64) int {
	return int(math.Min(math.Max(math.Round((x+32)*resolution), 0), 4095))
}

// Rounded is t as ParseTheta reads it from Text.
func (t Theta) Rounded() Theta {
	out := make(Theta, len(t))
	for i, x := range t {
		out[i] = float64(quantum(x))/resolution - 32
	}
	return out.clamped()
}

func (t Theta) clamped() Theta {
	low, high := bounds(t.dims())
	for i := range t {
		t[i] = math.Min(math.Max(t[i], low[i]), high[i])
	}
	return t
}

// ParseTheta reads Text for the given number of dimensions; ok is false when it
// is not that.
func ParseTheta(text string, dims int) (t Theta, ok bool) {
	if len(text) != 2*(dims+3) {
		return nil, false
	}
	for len(text)%4 != 0 {
		text += "A"
	}
	buf, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil || len(buf) != len(text)/4*3 { // line breaks are skipped
		return nil, false
	}
	for i := 0; i+2 < len(buf); i += 3 {
		a := int(buf[i])<<4 | int(buf[i+1])>>4
		b := int(buf[i+1]&15)<<8 | int(buf[i+2])
		t = append(t, float64(a)/resolution-32, float64(b)/resolution-32)
	}
	return t[:dims+3].clamped(), true
}
