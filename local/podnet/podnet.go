// Package podnet gives pods a network of their own on one machine, for an
// ordinary user as for root.
//
// A process for each node, the holder, owns one network namespace with a bridge and
// one for each pod, joined to the bridge by a pair of virtual interfaces. It is a
// mode of the shim's binary. An ordinary user's holder is born in a user namespace,
// which only its children can enter, so it starts the shims of these pods. It
// outlives the node agent, as shims do; when it dies, its pods end with it, since
// nothing joins them any more. The network of the machine is not changed.
//
// Pods reach each other through the kernel. Everything else goes through the
// holder, which answers the pods' questions for names from the tables that the agent
// sends, and makes the connections that leave the network: TCP only. Such a
// connection is accepted before the other side has answered.
package podnet

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"time"

	"github.com/vernier-ml/vernier/local/shim"
)

// Options say where a holder is.
type Options struct {
	Binary string // of the shim
	// Dir is the holder's directory, for its socket and its log. It is made.
	Dir string
	// Mounts is what shim.ProbeMounts returned: MountsUser asks for a user namespace.
	Mounts shim.MountMode
}

// Pod is a pod that is to have a network.
type Pod struct {
	Shim     shim.Options `json:"shim"`
	Hostname string       `json:"hostname"` // at most 63 bytes
	// Loopback are ports of the machine's 127.0.0.1 that the pod finds at its own.
	Loopback []uint16 `json:"loopback,omitempty"`
}

// Address is where a pod is.
type Address struct {
	Pod     netip.Addr `json:"pod"`
	Gateway netip.Addr `json:"gateway"` // answers questions for names
}

// Tables are what the holder answers and forwards.
type Tables struct {
	// Names are the addresses of each name, in lower case, without a last dot.
	Names map[string][]netip.Addr `json:"names"`
	// Services are where connections to an address and port may go instead.
	Services map[netip.AddrPort][]netip.AddrPort `json:"services"`
	// ClusterIPs are the addresses of Services. Connections to a port that Services
	// lacks are refused: on the machine's network they may belong to something else.
	ClusterIPs []netip.Addr `json:"clusterIPs,omitempty"`
}

// Zone is the domain of the names in tables. Others are looked up as the machine
// does it.
const Zone = "cluster.local"

// request is the line that a client sends.
type request struct {
	Op     string  `json:"op"`
	Pod    *Pod    `json:"pod,omitempty"`    // start
	UID    string  `json:"uid,omitempty"`    // stop
	Tables *Tables `json:"tables,omitempty"` // publish
}

const (
	opStart    = "start"
	opStop     = "stop"
	opPublish  = "publish"
	opShutdown = "shutdown"
)

// response is the line that the holder answers.
type response struct {
	Error   string  `json:"error,omitempty"`
	Address Address `json:"address,omitzero"`
}

// Start makes the network of a pod and spawns its shim inside, unless they exist,
// and starts the holder if none runs; started tells so, also with an error, and that
// it has no tables.
func Start(ctx context.Context, o Options, p Pod) (at Address, started bool, err error) {
	r, err := call(ctx, o.Dir, request{Op: opStart, Pod: &p})
	if errors.Is(err, shim.ErrNotRunning) {
		started = true
		if err = launch(ctx, o); err != nil {
			return at, started, fmt.Errorf("start the holder of the pods' network in %s: %w", o.Dir, err)
		}
		r, err = call(ctx, o.Dir, request{Op: opStart, Pod: &p})
	}
	return r.Address, started, err
}

// Stop takes the network of a pod away whose processes are gone. That there is none
// is no error.
func Stop(ctx context.Context, dir, podUID string) error {
	return ignoreNotRunning(call(ctx, dir, request{Op: opStop, UID: podUID}))
}

// Publish replaces the tables of the holder, if one runs.
func Publish(ctx context.Context, dir string, t Tables) error {
	return ignoreNotRunning(call(ctx, dir, request{Op: opPublish, Tables: &t}))
}

// Shutdown ends the holder, if one runs, and what is left of its pods.
func Shutdown(ctx context.Context, dir string) error {
	return ignoreNotRunning(call(ctx, dir, request{Op: opShutdown}))
}

func ignoreNotRunning(_ response, err error) error {
	if errors.Is(err, shim.ErrNotRunning) {
		return nil
	}
	return err
}

func call(ctx context.Context, dir string, q request) (r response, err error) {
	conn, err := shim.DialIn(ctx, dir)
	if err != nil {
		return r, fmt.Errorf("%w in %s: %w", shim.ErrNotRunning, dir, err)
	}
	defer func() { _ = conn.Close() }()
	stop := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	if err = json.NewEncoder(conn).Encode(q); err == nil {
		err = json.NewDecoder(conn).Decode(&r)
	}
	switch {
	case err != nil && ctx.Err() != nil:
		return r, ctx.Err()
	case err != nil:
		return r, fmt.Errorf("the holder of the pods' network in %s: %w", dir, err)
	case r.Error != "":
		return r, errors.New(r.Error)
	}
	return r, nil
}
