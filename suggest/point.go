package suggest

// Point holds one value for each parameter of a Space, in the Space's order.
type Point []Value

// Equal says whether both points hold the same values.
func (p Point) Equal(q Point) bool {
	if len(p) != len(q) {
		return false
	}
	for i := range p {
		if !p[i].Equal(q[i]) {
			return false
		}
	}
	return true
}

// Value is what one parameter is set to. It comes from a Parameter: by At,
// Parse or Decode. The zero Value is that of a parameter that was not set; it
// lies outside of every space.
type Value struct {
	text   string
	number float64
	index  int64
	in     bool
}

// String is the value as it goes into a template: an int without a dot, a
// double as the shortest decimal that reads back as the same number, a
// discrete or categorical value exactly as the user wrote it.
func (v Value) String() string { return v.text }

// Float is the value of a double, int or discrete; 0 for a categorical.
func (v Value) Float() float64 { return v.number }

// Index is the value's position among the values of its parameter, from 0. ok
// is false when the parameter is continuous or does not allow the value.
func (v Value) Index() (index int64, ok bool) { return v.index, v.in && v.index >= 0 }

// IsSet says whether this is more than the zero Value, which stands for a
// parameter that was not set or, in a conditional space, is not active.
func (v Value) IsSet() bool { return v != (Value{}) }

// InSpace says whether the parameter allows the value.
func (v Value) InSpace() bool { return v.in }

// Equal says whether both values are the same.
func (v Value) Equal(w Value) bool { return v == w }
