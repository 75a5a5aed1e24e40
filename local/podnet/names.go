package podnet

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"slices"
	"strings"

	"golang.org/x/net/dns/dnsmessage"
)

const (
	// nameTTL is short: a pod that is started again has another address.
	nameTTL = 1
	// maxAddresses keeps an answer within the 512 bytes of a datagram.
	maxAddresses = 25
)

// lookup finds the IPv4 addresses of a name outside of the zone.
type lookup func(ctx context.Context, name string) ([]netip.Addr, error)

// answer answers one question for a name. An error means that it cannot be read.
func answer(ctx context.Context, query []byte, names map[string][]netip.Addr, outside lookup) ([]byte, error) {
	var p dnsmessage.Parser
	header, err := p.Start(query)
	if err != nil {
		return nil, err
	}
	q, err := p.Question()
	if err != nil {
		return nil, err
	}
	code := dnsmessage.RCodeSuccess
	name := strings.ToLower(strings.TrimSuffix(q.Name.String(), "."))
	addresses, ours := names[name]
	switch {
	case ours:
	case name == Zone || strings.HasSuffix(name, "."+Zone) || strings.HasSuffix(name, ".svc"):
		code = dnsmessage.RCodeNameError
	case q.Type == dnsmessage.TypeA:
		addresses, err = outside(ctx, name)
		addresses = slices.DeleteFunc(addresses, func(a netip.Addr) bool { return a.Unmap().IsLoopback() }) // the machine's, not the pod's
		missing := (*net.DNSError)(nil)
		switch {
		case errors.As(err, &missing) && missing.IsNotFound:
			code = dnsmessage.RCodeNameError
		case err != nil:
			code = dnsmessage.RCodeServerFailure
		}
	}
	b := dnsmessage.NewBuilder(nil, dnsmessage.Header{
		ID: header.ID, Response: true, Authoritative: ours, RecursionDesired: header.RecursionDesired, RecursionAvailable: true, RCode: code})
	b.EnableCompression()
	if err := errors.Join(b.StartQuestions(), b.Question(q), b.StartAnswers()); err != nil {
		return nil, err
	}
	if q.Type == dnsmessage.TypeA {
		for _, a := range addresses[:min(len(addresses), maxAddresses)] {
			h := dnsmessage.ResourceHeader{Name: q.Name, Class: dnsmessage.ClassINET, TTL: nameTTL}
			if err := b.AResource(h, dnsmessage.AResource{A: a.Unmap().As4()}); err != nil {
				return nil, err
			}
		}
	}
	return b.Finish()
}
