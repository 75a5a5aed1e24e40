package server

import (
	"cmp"
	"context"
	"crypto/tls"
	"net"
	"slices"
	"sync"
	"time"
)

const (
	// maxConnections bounds the connections of one server: each trial that runs has
	// one, which idles between reports and takes some 30 KiB.
	maxConnections = 8_000
	// strangerTime is how long a connection lasts on which no call was accepted.
	strangerTime = time.Minute
	// maxCallsAtOnce bounds those of one connection. A collector makes one.
	maxCallsAtOnce = 16
)

// connections bounds the connections of a server. Beyond the bound, whoever has the
// most loses the first of them, so that nobody takes those of others: who has one is
// left alone while another has two.
type connections struct {
	limit    int
	patience time.Duration // strangerTime

	mu     sync.Mutex
	n      int
	owners map[owner][]*connection // the oldest first
}

// owner is who has a connection: a trial by its UID, or an address, which is a
// stranger until a call from there is accepted.
type owner struct {
	name     string
	stranger bool
}

func newConnections(limit int, patience time.Duration) *connections {
	return &connections{limit: limit, patience: patience, owners: map[owner][]*connection{}}
}

// connection is one of a server's.
type connection struct {
	net.Conn
	all     *connections
	address string
	since   time.Time
	timer   *time.Timer // ends a stranger
	// Guarded by all.mu.
	owner owner
	gone  bool
}

// boundListener accepts connections and takes note of them.
type boundListener struct {
	net.Listener
	all *connections
}

// Accept implements net.Listener.
func (l boundListener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return l.all.add(conn), nil
}

func (a *connections) add(conn net.Conn) *connection {
	address, _, err := net.SplitHostPort(conn.RemoteAddr().String())
	if err != nil {
		address = conn.RemoteAddr().String()
	}
	c := &connection{Conn: conn, all: a, address: address, since: time.Now(), owner: owner{address, true}}
	if most := a.put(c); most != nil {
		_ = most.Conn.Close() // nobody waits for it
	}
	return c
}

// put takes in a connection, and returns the one that makes way for it, if one must.
func (a *connections) put(c *connection) (most *connection) {
	a.mu.Lock()
	defer a.mu.Unlock()
	c.timer = time.AfterFunc(a.patience, func() { _ = c.Close() }) // likewise
	a.owners[c.owner] = append(a.owners[c.owner], c)
	if a.n++; a.n <= a.limit {
		return nil
	}
	most = a.surplus()
	a.remove(most)
	return most
}

// surplus is the first connection of who has the most; of several, strangers come
// before trials, and who came first before the others.
func (a *connections) surplus() *connection {
	var most []*connection
	for _, has := range a.owners {
		if most == nil || cmp.Or(cmp.Compare(len(has), len(most)), isStranger(has[0])-isStranger(most[0]), most[0].since.Compare(has[0].since)) > 0 {
			most = has
		}
	}
	return most[0]
}

func isStranger(c *connection) int {
	if c.owner.stranger {
		return 1
	}
	return 0
}

// remove forgets a connection that is there.
func (a *connections) remove(c *connection) {
	c.timer.Stop()
	c.gone = true
	a.n--
	a.leave(c)
}

func (a *connections) leave(c *connection) {
	has := a.owners[c.owner]
	if len(has) == 1 {
		delete(a.owners, c.owner)
		return
	}
	i := slices.Index(has, c)
	a.owners[c.owner] = slices.Delete(has, i, i+1)
}

// Close implements net.Conn.
func (c *connection) Close() error {
	c.all.forget(c)
	return c.Conn.Close()
}

func (a *connections) forget(c *connection) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !c.gone {
		a.remove(c)
	}
}

// connectionKey is that of the connection in a request's context.
type connectionKey struct{}

// inContext is http.Server's ConnContext.
func inContext(ctx context.Context, conn net.Conn) context.Context {
	if encrypted, ok := conn.(*tls.Conn); ok {
		conn = encrypted.NetConn()
	}
	return context.WithValue(ctx, connectionKey{}, conn)
}

// accepted notes that a call was accepted, and of whom: a trial's UID, or empty where
// only the address is known.
func accepted(ctx context.Context, trial string) {
	if c, ok := ctx.Value(connectionKey{}).(*connection); ok {
		c.all.accept(c, owner{name: cmp.Or(trial, c.address)})
	}
}

func (a *connections) accept(c *connection, by owner) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if c.gone || c.owner == by {
		return
	}
	c.timer.Stop()
	a.leave(c)
	c.owner = by
	a.owners[by] = append(a.owners[by], c)
}
