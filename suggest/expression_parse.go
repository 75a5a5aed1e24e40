package suggest

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// token of an expression.
type token struct {
	kind tokenKind
	text string // a name or string without its quotes
	at   int
}

type tokenKind int

const (
	endToken tokenKind = iota
	numberToken
	nameToken // in backquotes, too
	stringToken
	wordToken // and, or, not
	symbolToken
)

// symbols, the longer first.
var symbols = []string{"**", "<=", ">=", "==", "!=", "<", ">", "+", "-", "*", "/", "(", ")", ","}

// mistaken are symbols of other languages.
var mistaken = map[byte]string{
	'=': "write == to compare",
	'&': "write and",
	'|': "write or",
	'!': "write not",
	'^': "write ** for a power",
	'%': "there is no remainder; leave it out",
	'.': "put names with dots in backquotes: `model.depth`",
}

// parser reads an expression, one token ahead.
type parser struct {
	text  string
	rest  int // offset of what is not yet read
	next  token
	depth int
	err   *ConstraintError // the first
}

func parseExpression(text string) (*node, error) {
	if utf8.RuneCountInString(text) > maxExpression {
		return nil, expressionError(text, 0, "it has more than %d characters; split it at its ands", maxExpression)
	}
	if !utf8.ValidString(text) {
		return nil, expressionError(strings.ToValidUTF8(text, "\uFFFD"), 0, "it is not UTF-8; write it anew")
	}
	p := &parser{text: text}
	p.advance()
	root := p.or()
	if p.next.kind != endToken {
		p.fail(p.next.at, "%s is not expected here; %s", p.next.shown(), "remove it or put an operator before it")
	}
	if p.err != nil {
		return nil, p.err
	}
	return root, nil
}

func (t token) shown() string {
	if t.kind == endToken {
		return "the end"
	}
	return fmt.Sprintf("%q", t.text)
}

// fail keeps the first mistake and ends the reading.
func (p *parser) fail(at int, format string, args ...any) {
	if p.err == nil {
		p.err = expressionError(p.text, at, format, args...)
	}
	p.rest = len(p.text)
	p.next = token{kind: endToken, at: at}
}

// advance reads the next token.
func (p *parser) advance() {
	rest := strings.TrimLeft(p.text[p.rest:], " \t\r\n")
	at := len(p.text) - len(rest)
	t := token{at: at}
	switch first, _ := utf8.DecodeRuneInString(rest); {
	case rest == "":
		p.rest, p.next = at, t
		return
	case isDigit(first), first == '.' && len(rest) > 1 && isDigit(rune(rest[1])):
		t.kind, t.text = numberToken, rest[:numberLength(rest)]
	case first == '_', unicode.IsLetter(first):
		t.kind, t.text = nameToken, rest[:nameLength(rest)]
		if slices.Contains([]string{"and", "or", "not"}, t.text) {
			t.kind = wordToken
		}
	case strings.ContainsRune("`'\"", first):
		p.quoted(rest, t)
		return
	default:
		t.kind, t.text = symbolToken, symbol(rest)
		if t.text == "" {
			p.fail(at, "%q is not understood; %s", string(first), instead(rest[0]))
			return
		}
	}
	p.rest, p.next = at+len(t.text), t
}

func (p *parser) quoted(rest string, t token) {
	end := strings.IndexByte(rest[1:], rest[0])
	if end < 0 {
		p.fail(t.at, "the quote has no end; close it with %c", rest[0])
		return
	}
	t.kind, t.text = stringToken, rest[1:end+1]
	if rest[0] == '`' {
		t.kind = nameToken
	}
	if t.kind == nameToken && t.text == "" {
		p.fail(t.at, "the name is empty; write it between the backquotes")
		return
	}
	p.rest, p.next = t.at+end+2, t
}

func instead(c byte) string {
	if words, ok := mistaken[c]; ok {
		return words
	}
	return "remove it, or put a name with it in backquotes"
}

func symbol(rest string) string {
	for _, s := range symbols {
		if strings.HasPrefix(rest, s) {
			return s
		}
	}
	return ""
}

func isDigit(r rune) bool { return r >= '0' && r <= '9' }

// numberLength is how many bytes belong to the number that text begins with.
func numberLength(text string) int {
	i := 0
	for i < len(text) && (isDigit(rune(text[i])) || text[i] == '.') {
		i++
	}
	if i == len(text) || text[i] != 'e' && text[i] != 'E' {
		return i
	}
	j := i + 1
	if j < len(text) && (text[j] == '+' || text[j] == '-') {
		j++
	}
	if j == len(text) || !isDigit(rune(text[j])) {
		return i
	}
	for j < len(text) && isDigit(rune(text[j])) {
		j++
	}
	return j
}

func nameLength(text string) int {
	i := strings.IndexFunc(text, func(r rune) bool { return r != '_' && !unicode.IsLetter(r) && !unicode.IsDigit(r) })
	if i < 0 {
		return len(text)
	}
	return i
}

// accept passes over the next token if it is this symbol or word.
func (p *parser) accept(text string) bool {
	if p.next.kind != symbolToken && p.next.kind != wordToken || p.next.text != text {
		return false
	}
	p.advance()
	return true
}

// nested counts how deep read stands in others.
func (p *parser) nested(read func() *node) *node {
	if p.depth++; p.depth > maxNesting {
		p.fail(p.next.at, "this is nested more than %d deep; simplify it", maxNesting)
		return &node{}
	}
	defer func() { p.depth-- }()
	return read()
}

func (p *parser) or() *node  { return p.words(opOr, "or", p.and) }
func (p *parser) and() *node { return p.words(opAnd, "and", p.not) }

func (p *parser) words(op operator, word string, operand func() *node) *node {
	at := p.next.at
	n := &node{op: op, at: at, args: []*node{operand()}}
	for p.accept(word) {
		n.args = append(n.args, operand())
	}
	return n.orOnly()
}

// orOnly is the operand of a chain that has only one.
func (n *node) orOnly() *node {
	if len(n.args) == 1 {
		return n.args[0]
	}
	return n
}

func (p *parser) not() *node {
	at := p.next.at
	if p.accept("not") {
		return &node{op: opNot, at: at, args: []*node{p.nested(p.not)}}
	}
	return p.comparison()
}

var (
	comparisons = map[string]operator{
		"<": opLess, "<=": opLessEqual, ">": opGreater, ">=": opGreaterEqual, "==": opEqual, "!=": opUnequal,
	}
	signs   = map[string]operator{"+": opPlus, "-": opMinus}
	factors = map[string]operator{"*": opTimes, "/": opDivide}
)

func (p *parser) comparison() *node { return p.chain(opCompare, comparisons, p.sum) }
func (p *parser) sum() *node        { return p.chain(opSum, signs, p.product) }
func (p *parser) product() *node    { return p.chain(opProduct, factors, p.unary) }

func (p *parser) chain(op operator, between map[string]operator, operand func() *node) *node {
	at := p.next.at
	n := &node{op: op, at: at, args: []*node{operand()}}
	for p.next.kind == symbolToken {
		o, ok := between[p.next.text]
		if !ok {
			break
		}
		p.advance()
		n.between = append(n.between, o)
		n.args = append(n.args, operand())
	}
	return n.orOnly()
}

func (p *parser) unary() *node {
	at := p.next.at
	switch {
	case p.accept("-"):
		return &node{op: opNegate, at: at, args: []*node{p.nested(p.unary)}}
	case p.accept("+"):
		return p.nested(p.unary)
	}
	base := p.atom()
	if p.accept("**") { // binds tighter than a minus before it, and from the right
		return &node{op: opPower, at: at, args: []*node{base, p.nested(p.unary)}}
	}
	return base
}

func (p *parser) atom() *node {
	t := p.next
	n := &node{at: t.at, text: t.text}
	switch {
	case t.kind == numberToken:
		return p.constant(n)
	case t.kind == stringToken:
		p.advance()
		n.op = opText
		return n
	case t.kind == nameToken:
		quoted := p.text[t.at] == '`'
		p.advance()
		if p.next.kind == symbolToken && p.next.text == "(" && !quoted {
			return p.call(n)
		}
		n.op = opName
		return n
	case p.accept("("):
		inner := p.nested(p.or)
		p.close()
		return inner
	}
	p.fail(t.at, "%s stands where a number, a name or ( is expected; complete the constraint", t.shown())
	return n
}

func (p *parser) constant(n *node) *node {
	number, err := parseNumber(n.text)
	if err != nil {
		p.fail(n.at, "%q is not a finite number; write it like 0.01, 1e-3 or 10", n.text)
		return n
	}
	n.value = number.value
	p.advance()
	if k := p.next.kind; k == nameToken || k == numberToken {
		p.fail(p.next.at, "%s follows a number; put an operator between them, such as *", p.next.shown())
	}
	return n
}

func (p *parser) close() {
	if !p.accept(")") {
		p.fail(p.next.at, "%s stands where ) is expected; close the parenthesis", p.next.shown())
	}
}

// call reads the arguments of the function that n names.
func (p *parser) call(n *node) *node {
	f, ok := functions[n.text]
	if !ok {
		p.fail(n.at, "%q is no function; use one of abs, exp, log, log10, log2, max, min, pow, sqrt", n.text)
		return n
	}
	n.op, n.function = opCall, f
	p.advance()
	for {
		n.args = append(n.args, p.nested(p.or))
		if !p.accept(",") {
			break
		}
	}
	p.close()
	if c := len(n.args); p.err == nil && (c < f.least || f.most > 0 && c > f.most) {
		p.fail(n.at, "%s has %d arguments; it takes %d", n.text, c, f.least)
	}
	return n
}
