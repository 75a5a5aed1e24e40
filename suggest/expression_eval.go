package suggest

import "math"

// operator of a node.
type operator int

// The operators. Those of a chain (opSum, opProduct, opCompare, opAnd, opOr)
// have any number of operands.
const (
	opConstant operator = iota
	opText
	opName
	opSum
	opProduct
	opNegate
	opPower
	opCall
	opCompare
	opAnd
	opOr
	opNot

	// What stands between the operands of a chain.
	opPlus
	opMinus
	opTimes
	opDivide
	opLess
	opLessEqual
	opGreater
	opGreaterEqual
	opEqual
	opUnequal
)

// node is a part of an expression.
type node struct {
	op       operator
	at       int     // offset in the text
	value    float64 // of a constant
	text     string  // of a string or name
	index    int     // of the parameter with that name
	args     []*node
	between  []operator // of opSum, opProduct and opCompare: one less than args
	function function   // of a call
	words    bool       // of a comparison: its operands are categories
}

// function of numbers. A call with one argument passes it as a and b.
type function struct {
	least, most int // how many arguments; most 0: any number, taken pair by pair
	apply       func(a, b float64) float64
}

var functions = map[string]function{
	"log":   {1, 1, func(a, _ float64) float64 { return math.Log(a) }},
	"log2":  {1, 1, func(a, _ float64) float64 { return math.Log2(a) }},
	"log10": {1, 1, func(a, _ float64) float64 { return math.Log10(a) }},
	"exp":   {1, 1, func(a, _ float64) float64 { return math.Exp(a) }},
	"sqrt":  {1, 1, func(a, _ float64) float64 { return math.Sqrt(a) }},
	"abs":   {1, 1, func(a, _ float64) float64 { return math.Abs(a) }},
	"min":   {1, 0, math.Min},
	"max":   {1, 0, math.Max},
	"pow":   {2, 2, math.Pow},
}

// visit calls f for the node and all below.
func (n *node) visit(f func(*node)) {
	f(n)
	for _, arg := range n.args {
		arg.visit(f)
	}
}

// isArithmetic says whether the expression is a number, if its names are.
func (n *node) isArithmetic() bool {
	switch n.op {
	case opText, opCompare, opAnd, opOr, opNot:
		return false
	}
	for _, arg := range n.args {
		if !arg.isArithmetic() {
			return false
		}
	}
	return true
}

// number is the value of arithmetic; NaN when any part of it is not finite.
func (n *node) number(p Point) float64 {
	var x float64
	switch n.op {
	case opConstant:
		return n.value
	case opName:
		return p[n.index].number
	case opNegate:
		x = -n.args[0].number(p)
	case opPower:
		x = power(n.args[0].number(p), n.args[1].number(p))
	case opCall:
		x = n.call(p)
	default:
		x = n.chain(p)
	}
	if math.IsInf(x, 0) {
		return math.NaN()
	}
	return x
}

// power is a**b, and NaN when one of them is; math.Pow says 1 to NaN**0.
func power(a, b float64) float64 {
	if math.IsNaN(a) || math.IsNaN(b) {
		return math.NaN()
	}
	return math.Pow(a, b)
}

func (n *node) call(p Point) float64 {
	x := n.args[0].number(p)
	if len(n.args) == 1 {
		if n.function.most == 0 || math.IsNaN(x) {
			return x
		}
		return n.function.apply(x, x)
	}
	for _, arg := range n.args[1:] {
		y := arg.number(p)
		if math.IsNaN(x) || math.IsNaN(y) {
			return math.NaN()
		}
		x = n.function.apply(x, y)
	}
	return x
}

func (n *node) chain(p Point) float64 {
	x := n.args[0].number(p)
	for i, op := range n.between {
		y := n.args[i+1].number(p)
		switch op {
		case opPlus:
			x += y
		case opMinus:
			x -= y
		case opTimes:
			x *= y
		case opDivide:
			x /= y // by zero: not finite
		}
	}
	return x
}

// truth is the value of a condition. defined is false when a number that
// decides it is not finite. What the first operands of and and or decide alone
// is defined, as b == 0 or a/b > 1 where b is 0.
func (n *node) truth(p Point) (truth, defined bool) {
	switch n.op {
	case opNot:
		truth, defined = n.args[0].truth(p)
		return !truth, defined
	case opAnd, opOr:
		for _, arg := range n.args {
			if truth, defined = arg.truth(p); !defined || truth == (n.op == opOr) {
				return truth, defined
			}
		}
		return truth, true
	}
	for i, op := range n.between {
		holds, defined := false, true
		if left, right := n.args[i], n.args[i+1]; n.words {
			holds = (left.category(p) == right.category(p)) == (op == opEqual)
		} else {
			holds, defined = compare(op, left, right, p)
		}
		if !holds || !defined {
			return false, defined
		}
	}
	return true, true
}

func (n *node) category(p Point) string {
	if n.op == opText {
		return n.text
	}
	return p[n.index].text
}

func compare(op operator, left, right *node, p Point) (holds, defined bool) {
	a, b := left.number(p), right.number(p)
	if math.IsNaN(a) || math.IsNaN(b) {
		return false, false
	}
	order := 0
	if !nearlyEqual(a, b) {
		order = 1
		if a < b {
			order = -1
		}
	}
	switch op {
	case opLess:
		return order < 0, true
	case opLessEqual:
		return order <= 0, true
	case opGreater:
		return order > 0, true
	case opGreaterEqual:
		return order >= 0, true
	case opEqual:
		return order == 0, true
	}
	return order != 0, true
}

// nearlyEqual forgives the rounding of a few additions of decimals.
func nearlyEqual(a, b float64) bool {
	if a == b {
		return true
	}
	if a == math.Trunc(a) && b == math.Trunc(b) {
		return false
	}
	return math.Abs(a-b) <= 16*0x1p-52*math.Max(math.Abs(a), math.Abs(b))
}
