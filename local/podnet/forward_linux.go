package podnet

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/netip"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/google/nftables"
	"github.com/google/nftables/expr"
	"golang.org/x/sys/unix"
)

// dialTimeout bounds a connection that is made for a pod.
const dialTimeout = 30 * time.Second

// forward has the TCP connections of pods that leave the network end here, and
// makes them anew.
func (h *holder) forward(ctx context.Context) error {
	var l net.Listener
	err := inside(h.net.namespace, func() (err error) {
		if l, err = net.Listen("tcp4", "0.0.0.0:0"); err != nil {
			return err
		}
		return redirect(h.net.prefix, uint16(l.Addr().(*net.TCPAddr).Port))
	})
	if err != nil {
		return err
	}
	go accept(l, func(conn *net.TCPConn) {
		to, err := originalTarget(conn)
		if err != nil {
			return
		}
		if other, err := h.dial(ctx, to); err == nil {
			join(conn, other)
		}
	})
	return nil
}

// mirror has a port of the machine's loopback address answer in a pod.
func mirror(n *podNetwork, port uint16) error {
	address := netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), port).String()
	return inside(n.network, func() error {
		l, err := net.Listen("tcp4", address)
		if err != nil {
			return err
		}
		n.mirrors = append(n.mirrors, l)
		go accept(l, func(conn *net.TCPConn) {
			if other, err := net.DialTimeout("tcp4", address, dialTimeout); err == nil {
				join(conn, other.(*net.TCPConn))
			}
		})
		return nil
	})
}

func accept(l net.Listener, serve func(*net.TCPConn)) {
	for {
		conn, err := l.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			<-time.After(time.Second) // out of descriptors
			continue
		}
		go func() {
			defer func() { _ = conn.Close() }()
			serve(conn.(*net.TCPConn))
		}()
	}
}

// dial connects to where a connection of a pod is to go: to a pod of a Service, or
// as the machine would.
func (h *holder) dial(ctx context.Context, to netip.AddrPort) (conn *net.TCPConn, err error) {
	connect := func(to netip.AddrPort) error {
		c, err := (&net.Dialer{Timeout: dialTimeout}).DialContext(ctx, "tcp4", to.String())
		if err == nil {
			conn = c.(*net.TCPConn)
		}
		return err
	}
	tables := h.tables.Load()
	if pods := tables.Services[to]; len(pods) > 0 {
		to = pods[rand.IntN(len(pods))]
	} else if slices.Contains(tables.ClusterIPs, to.Addr()) {
		return nil, fmt.Errorf("no ready pod is behind %s", to)
	}
	if !h.net.prefix.Contains(to.Addr()) {
		return conn, connect(to)
	}
	select {
	case h.dials <- struct{}{}:
	default:
		return nil, fmt.Errorf("%d connections to pods are being made", cap(h.dials))
	}
	defer func() { <-h.dials }()
	return conn, inside(h.net.namespace, func() error { return connect(to) })
}

// join copies between two connections until both have said all.
func join(a, b *net.TCPConn) {
	var both sync.WaitGroup
	for _, c := range []struct{ from, to *net.TCPConn }{{a, b}, {b, a}} {
		both.Go(func() {
			if _, err := io.Copy(c.to, c.from); err != nil {
				_ = c.from.Close() // no client is left to read it
				_ = c.to.Close()   // and what it took was not all
			}
			_ = c.to.CloseWrite()
		})
	}
	both.Wait()
	_ = b.Close() // a is its server's
}

// originalTarget is where a redirected connection was to go.
func originalTarget(conn *net.TCPConn) (to netip.AddrPort, err error) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return to, err
	}
	failed := raw.Control(func(fd uintptr) {
		var m *unix.IPv6Mreq // as large as the address that is asked for
		if m, err = unix.GetsockoptIPv6Mreq(int(fd), syscall.IPPROTO_IP, unix.SO_ORIGINAL_DST); err == nil {
			a := m.Multiaddr
			to = netip.AddrPortFrom(netip.AddrFrom4([4]byte(a[4:8])), binary.BigEndian.Uint16(a[2:4]))
		}
	})
	return to, errors.Join(failed, err)
}

// redirect sends the TCP connections to all addresses outside of a range, 16 bits
// of which are fixed, to a port of this thread's namespace.
func redirect(prefix netip.Prefix, port uint16) error {
	c, err := nftables.New()
	if err != nil {
		return err
	}
	table := c.AddTable(&nftables.Table{Family: nftables.TableFamilyIPv4, Name: "vernier"})
	chain := c.AddChain(&nftables.Chain{Name: "leaving", Table: table, Type: nftables.ChainTypeNAT,
		Hooknum: nftables.ChainHookPrerouting, Priority: nftables.ChainPriorityNATDest})
	network := prefix.Addr().As4()
	const destination = 16 // offset in the IPv4 header
	c.AddRule(&nftables.Rule{Table: table, Chain: chain, Exprs: []expr.Any{
		&expr.Meta{Key: expr.MetaKeyL4PROTO, Register: 1},
		&expr.Cmp{Op: expr.CmpOpEq, Register: 1, Data: []byte{unix.IPPROTO_TCP}},
		&expr.Payload{DestRegister: 1, Base: expr.PayloadBaseNetworkHeader, Offset: destination, Len: 2},
		&expr.Cmp{Op: expr.CmpOpNeq, Register: 1, Data: network[:2]},
		&expr.Immediate{Register: 1, Data: binary.BigEndian.AppendUint16(nil, port)},
		&expr.Redir{RegisterProtoMin: 1},
	}})
	if err := c.Flush(); err != nil {
		return fmt.Errorf("redirect connections with nftables: %w", err)
	}
	return nil
}
