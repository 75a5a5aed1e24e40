package podnet

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/vernier-ml/vernier/local/shim"
)

const (
	// startTimeout bounds the start of a pod's network and shim.
	startTimeout = 15 * time.Second
	// idleExit ends a holder whose pods are all gone.
	idleExit = 10 * time.Minute
	// maxPending is how many connections to pods may be in the making, each of which
	// holds a thread, and how many questions for names without an answer.
	maxPending = 256
)

// holder owns the networks of the pods of a node.
type holder struct {
	log    *log.Logger
	net    *bridge
	tables atomic.Pointer[Tables]
	forks  chan func()   // run by the thread that starts shims
	dials  chan struct{} // connections to pods that are being made

	mu   sync.Mutex
	pods map[string]*podNetwork
	used time.Time
}

// Serve is the holder of a directory: it serves it until ctx is done, a client asks
// it to shut down, or it had no pods for 10 minutes. ready is called once clients
// can connect.
func Serve(ctx context.Context, dir string, logger *log.Logger, ready func() error) error {
	lock, err := shim.LockDir(dir)
	if err != nil {
		return err
	}
	defer lock.Close()
	h := &holder{log: logger, pods: map[string]*podNetwork{}, forks: make(chan func()), dials: make(chan struct{}, maxPending), used: time.Now()}
	h.tables.Store(&Tables{})
	if h.net, err = makeBridge(); err != nil {
		return err
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	go h.fork()
	go h.serveNames(ctx)
	if err := h.forward(ctx); err != nil {
		logger.Printf("pods reach no address outside of their network: %v", err)
	}
	l, err := shim.ListenIn(dir)
	if err != nil {
		return err
	}
	defer func() { _ = l.Close() }()
	go h.awaitIdle(ctx, stop)
	go func() {
		<-ctx.Done()
		_ = l.Close()
	}()
	if err := ready(); err != nil {
		return err
	}
	for {
		conn, err := l.Accept()
		if err != nil {
			if ctx.Err() != nil {
				return nil
			}
			return err
		}
		go func() {
			defer func() { _ = conn.Close() }()
			if h.serve(ctx, conn) == opShutdown {
				stop()
			}
		}()
	}
}

// TryNetwork makes what a pod needs and says whether that works here.
func TryNetwork() error {
	b, err := makeBridge()
	if err != nil {
		return err
	}
	h := &holder{net: b}
	if err := h.forward(context.Background()); err != nil {
		return err
	}
	_, err = b.attach(Pod{Hostname: "probe"}, func(netip.Addr) bool { return false })
	return err
}

// fork runs the functions that start shims, in a thread that lives as long as the
// process: a shim is killed when its thread ends.
func (h *holder) fork() {
	runtime.LockOSThread()
	// The shims inherit no rights over the user namespace.
	if err := unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0); err != nil {
		h.log.Fatalf("give up rights for the pods: %v", err)
	}
	for f := range h.forks {
		f()
	}
}

// serve answers one request and returns what it was.
func (h *holder) serve(ctx context.Context, conn net.Conn) string {
	var q request
	if err := json.NewDecoder(conn).Decode(&q); err != nil {
		return ""
	}
	var r response
	var err error
	switch q.Op {
	case opStart:
		r.Address, err = h.start(ctx, *q.Pod)
	case opStop:
		h.stop(q.UID)
	case opPublish:
		h.tables.Store(q.Tables)
	case opShutdown:
	default:
		err = fmt.Errorf("unknown request %q", q.Op)
	}
	if err != nil {
		r.Error = err.Error()
	}
	_ = json.NewEncoder(conn).Encode(r) // a client that is gone asks again
	return q.Op
}

// start makes a pod's network and has its shim run in it.
func (h *holder) start(ctx context.Context, p Pod) (at Address, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.used = time.Now()
	n := h.pods[p.Shim.PodUID]
	if n == nil {
		if n, err = h.net.attach(p, h.taken); err != nil {
			return at, fmt.Errorf("make the network of pod %s: %w", p.Shim.PodUID, err)
		}
		for _, port := range p.Loopback {
			if err := mirror(n, port); err != nil {
				n.close()
				return at, fmt.Errorf("forward the loopback port %d of pod %s: %w", port, p.Shim.PodUID, err)
			}
		}
		h.pods[p.Shim.PodUID] = n
	}
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	done := make(chan error)
	h.forks <- func() {
		if err := n.enter(); err != nil {
			done <- err
			return
		}
		p.Shim.Tied = true
		_, err := shim.Spawn(ctx, p.Shim)
		done <- err
	}
	return Address{Pod: n.address, Gateway: h.net.gateway}, <-done
}

// taken tells the addresses of pods. The caller has the lock.
func (h *holder) taken(a netip.Addr) bool {
	for _, n := range h.pods {
		if n.address == a {
			return true
		}
	}
	return false
}

func (h *holder) stop(uid string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.used = time.Now()
	if n := h.pods[uid]; n != nil {
		n.close()
		delete(h.pods, uid)
	}
}

// awaitIdle ends a holder without pods. Pods whose shims have ended count as gone:
// their end may not have been reported.
func (h *holder) awaitIdle(ctx context.Context, end func()) {
	tick := time.NewTicker(idleExit / 8)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		h.mu.Lock()
		for uid, n := range h.pods {
			if conn, err := shim.DialIn(ctx, n.shim); err == nil {
				_ = conn.Close()
			} else {
				n.close()
				delete(h.pods, uid)
			}
		}
		if len(h.pods) == 0 && time.Since(h.used) > idleExit {
			end() // with the lock: no pod starts any more
			return
		}
		h.mu.Unlock()
	}
}

// serveNames answers the pods' questions for names.
func (h *holder) serveNames(ctx context.Context) {
	outside := func(ctx context.Context, name string) ([]netip.Addr, error) {
		return net.DefaultResolver.LookupNetIP(ctx, "ip4", name+".") // without the machine's search list
	}
	query, pending := make([]byte, 4096), make(chan struct{}, maxPending)
	for {
		n, from, err := h.net.names.ReadFrom(query)
		if err != nil {
			h.log.Printf("names are not answered any more: %v", err)
			return
		}
		select {
		case pending <- struct{}{}:
		default: // who gets no answer asks again
			continue
		}
		packet := append([]byte(nil), query[:n]...)
		go func() {
			defer func() { <-pending }()
			ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
			defer cancel()
			if reply, err := answer(ctx, packet, h.tables.Load().Names, outside); err == nil {
				_, _ = h.net.names.WriteTo(reply, from)
			}
		}()
	}
}

// Probe finds out whether pods can have networks here, by making one in a process
// that ends at once.
func Probe(ctx context.Context, o Options) error {
	attr, err := attributes(o.Mounts)
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, o.Binary, "network", "--probe")
	cmd.SysProcAttr = attr
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%w: %s", err, bytes.TrimSpace(out))
	}
	return nil
}

// launch starts the holder.
func launch(ctx context.Context, o Options) error {
	attr, err := attributes(o.Mounts)
	if err != nil {
		return err
	}
	return shim.Launch(ctx, o.Binary, o.Dir, []string{"network", "--dir", o.Dir, "--ready-fd", "3"}, attr)
}

// attributes are those of a holder's process: it has a user namespace of its own
// where it needs one.
func attributes(mode shim.MountMode) (*syscall.SysProcAttr, error) {
	attr := &syscall.SysProcAttr{Setsid: true}
	switch mode {
	case shim.MountsRoot:
	case shim.MountsUser:
		uid, gid := os.Geteuid(), os.Getegid()
		attr.Cloneflags = unix.CLONE_NEWUSER
		attr.UidMappings = []syscall.SysProcIDMap{{ContainerID: uid, HostID: uid, Size: 1}}
		attr.GidMappings = []syscall.SysProcIDMap{{ContainerID: gid, HostID: gid, Size: 1}}
		attr.AmbientCaps = []uintptr{unix.CAP_SYS_ADMIN, unix.CAP_NET_ADMIN, unix.CAP_NET_BIND_SERVICE}
	default:
		return nil, errors.New("mount namespaces do not work here, which the pods' files for names need")
	}
	return attr, nil
}
