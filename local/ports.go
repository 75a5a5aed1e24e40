package local

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"net"
	"strconv"

	"github.com/vernier-ml/vernier/local/statefile"
)

// ports are the loopback ports of an instance. They are chosen once and kept, so
// that kubeconfigs stay good; one that somebody else has taken meanwhile is
// chosen anew.
type ports struct {
	EtcdClient        int `json:"etcdClient"`
	EtcdPeer          int `json:"etcdPeer"`
	APIServer         int `json:"apiServer"`
	ControllerManager int `json:"controllerManager"`
	Scheduler         int `json:"scheduler"`
	Kubelet           int `json:"kubelet"`
	Report            int `json:"report"`
	Webhook           int `json:"webhook"`
	Metrics           int `json:"metrics"`
	Health            int `json:"health"`
}

func (p *ports) all() []*int {
	return []*int{&p.EtcdClient, &p.EtcdPeer, &p.APIServer, &p.ControllerManager, &p.Scheduler, &p.Kubelet, &p.Report, &p.Webhook, &p.Metrics, &p.Health}
}

// Ports are chosen from firstPort to lastPort, below those that systems give to
// outgoing connections (from 32768 on Linux): a client that asks again and again
// for a component that is down could otherwise be given the component's own port
// and keep the component from coming back.
const (
	firstPort = 16384
	lastPort  = 32767
)

// choosePorts keeps those of before that are free and chooses the others. All
// are held open until all are chosen, so that none is chosen twice.
func choosePorts(before ports) (ports, error) {
	chosen := before
	var held []net.Listener
	defer func() {
		for _, l := range held {
			_ = l.Close()
		}
	}()
	for _, p := range chosen.all() {
		l, err := listenOrElse(*p)
		if err != nil {
			return ports{}, err
		}
		held = append(held, l)
		*p = l.Addr().(*net.TCPAddr).Port
	}
	return chosen, nil
}

// listenOrElse takes port if it is free, and otherwise any that is. It starts at
// a random place, so that instances that start together rarely meet.
func listenOrElse(port int) (net.Listener, error) {
	if port != 0 {
		if l, err := net.Listen("tcp", address(port)); err == nil {
			return l, nil
		}
	}
	const count = lastPort - firstPort + 1
	start := rand.IntN(count)
	for i := range count {
		if l, err := net.Listen("tcp", address(firstPort+(start+i)%count)); err == nil {
			return l, nil
		}
	}
	return nil, fmt.Errorf("no port from %d to %d is free on 127.0.0.1", firstPort, lastPort)
}

// ensurePorts reads the instance's ports and chooses those that it lacks.
func (h Home) ensurePorts() (ports, error) {
	var before ports
	err := statefile.ReadJSON(h.path(portsFile), &before)
	if err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, statefile.ErrCorrupt) {
		return ports{}, err
	}
	chosen, err := choosePorts(before)
	if err != nil {
		return ports{}, err
	}
	return chosen, statefile.WriteJSON(h.path(portsFile), chosen)
}

func address(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }
