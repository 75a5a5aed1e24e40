package podnet

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"runtime"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// mtu is the greatest of a bridge: pods move large tensors.
const mtu = 65520

// gatewayMAC is set because a bridge without one takes the least of its ports', which
// changes as pods come and go: those that know the old one lose the gateway until
// they ask again, half a minute later.
var gatewayMAC = net.HardwareAddr{0x02, 0x56, 0x65, 0x72, 0x6e, 0x01}

// bridge is the network that joins the pods.
type bridge struct {
	namespace *os.File
	index     int // of the interface
	prefix    netip.Prefix
	gateway   netip.Addr // the bridge's own address
	last      netip.Addr // given to a pod last
	names     net.PacketConn
	count     int // of pods so far
}

// podNetwork is the network of one pod.
type podNetwork struct {
	network, hostname *os.File // the namespaces
	address           netip.Addr
	shim              string // the directory of its shim
	mirrors           []net.Listener
}

// inside runs f in a thread that has entered a network namespace, or a new one if
// that is nil. The thread ends with it.
func inside(namespace *os.File, f func() error) error {
	done := make(chan error)
	go func() {
		runtime.LockOSThread() // never unlocked: nothing else may run in this thread
		var err error
		if namespace == nil {
			err = unix.Unshare(unix.CLONE_NEWNET)
		} else {
			err = unix.Setns(int(namespace.Fd()), unix.CLONE_NEWNET)
		}
		if err != nil {
			done <- fmt.Errorf("enter a network namespace: %w", err)
			return
		}
		done <- f()
	}()
	return <-done
}

// makeBridge makes a namespace with a bridge, in a range of addresses that no
// interface of the machine is in.
func makeBridge() (*bridge, error) {
	b := &bridge{}
	var err error
	if b.prefix, err = freePrefix(); err != nil {
		return nil, err
	}
	b.gateway = b.prefix.Addr().Next()
	b.last = b.gateway
	return b, inside(nil, func() (err error) {
		if b.namespace, err = os.Open("/proc/thread-self/ns/net"); err != nil {
			return err
		}
		if err := up("lo", netip.Prefix{}); err != nil {
			return err
		}
		link := &netlink.Bridge{LinkAttrs: netlink.LinkAttrs{Name: "pods", MTU: mtu, HardwareAddr: gatewayMAC}}
		if err := netlink.LinkAdd(link); err != nil {
			return fmt.Errorf("make a bridge: %w", err)
		}
		b.index = link.Index
		if err := up("pods", netip.PrefixFrom(b.gateway, b.prefix.Bits())); err != nil {
			return err
		}
		b.names, err = net.ListenPacket("udp4", netip.AddrPortFrom(b.gateway, 53).String())
		return err
	})
}

// freePrefix is a range of 65,534 addresses.
func freePrefix() (netip.Prefix, error) {
	own, err := net.InterfaceAddrs()
	if err != nil {
		return netip.Prefix{}, fmt.Errorf("list the addresses of this machine: %w", err)
	}
	for second := byte(88); second < 96; second++ { // from 10.96 on are Services
		prefix, taken := netip.PrefixFrom(netip.AddrFrom4([4]byte{10, second, 0, 0}), 16), false
		for _, a := range own {
			other, err := netip.ParsePrefix(a.String())
			taken = taken || err == nil && other.Overlaps(prefix)
		}
		if !taken {
			return prefix, nil
		}
	}
	return netip.Prefix{}, errors.New("this machine has an address in each of 10.88.0.0/16 to 10.95.0.0/16: none is left for pods")
}

// up gives an interface of this thread's namespace an address, if any, and enables it.
func up(name string, address netip.Prefix) error {
	link, err := netlink.LinkByName(name)
	if err == nil && address.IsValid() {
		err = netlink.AddrAdd(link, &netlink.Addr{IPNet: &net.IPNet{IP: address.Addr().AsSlice(), Mask: net.CIDRMask(address.Bits(), 32)}})
	}
	if err == nil {
		err = netlink.LinkSetUp(link)
	}
	if err != nil {
		return fmt.Errorf("set up the interface %s %s: %w", name, address, err)
	}
	return nil
}

// attach makes the network of a pod. Addresses are given in turn, so that a pod
// that is started again has another one; those in use are left out. It is not safe for concurrent use.
func (b *bridge) attach(p Pod, taken func(netip.Addr) bool) (*podNetwork, error) {
	n := &podNetwork{shim: p.Shim.Dir}
	for n.address = b.last.Next(); !b.prefix.Contains(n.address.Next()) || taken(n.address); n.address = n.address.Next() {
		if !b.prefix.Contains(n.address.Next()) { // the last one is for broadcasts
			n.address = b.gateway
		}
	}
	b.last = n.address
	b.count++
	err := inside(nil, func() (err error) {
		if err := unix.Unshare(unix.CLONE_NEWUTS); err != nil {
			return fmt.Errorf("make a namespace for the host's name: %w", err)
		}
		if err := unix.Sethostname([]byte(p.Hostname)); err != nil {
			return fmt.Errorf("name the pod's host: %w", err)
		}
		if n.hostname, err = os.Open("/proc/thread-self/ns/uts"); err != nil {
			return err
		}
		n.network, err = os.Open("/proc/thread-self/ns/net")
		return err
	})
	if err == nil {
		err = inside(b.namespace, func() error {
			link := &netlink.Veth{
				LinkAttrs: netlink.LinkAttrs{Name: fmt.Sprintf("pod%d", b.count), MTU: mtu, MasterIndex: b.index},
				PeerName:  "eth0", PeerMTU: mtu, PeerNamespace: netlink.NsFd(n.network.Fd()),
			}
			if err := netlink.LinkAdd(link); err != nil {
				return fmt.Errorf("make a pair of interfaces: %w", err)
			}
			return up(link.Name, netip.Prefix{})
		})
	}
	if err == nil {
		err = inside(n.network, func() error {
			if err := errors.Join(up("lo", netip.Prefix{}), up("eth0", netip.PrefixFrom(n.address, b.prefix.Bits()))); err != nil {
				return err
			}
			return netlink.RouteAdd(&netlink.Route{Gw: b.gateway.AsSlice()})
		})
	}
	if err != nil {
		n.close()
		return nil, err
	}
	return n, nil
}

// enter moves this thread into the pod.
func (n *podNetwork) enter() error {
	err := errors.Join(unix.Setns(int(n.network.Fd()), unix.CLONE_NEWNET), unix.Setns(int(n.hostname.Fd()), unix.CLONE_NEWUTS))
	if err != nil {
		return fmt.Errorf("enter the pod's network: %w", err)
	}
	return nil
}

// close lets go of the pod's namespaces; the kernel removes them, and the
// interfaces, with the pod's last process.
func (n *podNetwork) close() {
	for _, l := range n.mirrors {
		_ = l.Close()
	}
	for _, f := range []*os.File{n.network, n.hostname} {
		if f != nil {
			f.Close()
		}
	}
}
