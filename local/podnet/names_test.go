package podnet

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/net/dns/dnsmessage"
)

func TestAnswer(t *testing.T) {
	one, two := netip.MustParseAddr("10.88.0.2"), netip.MustParseAddr("10.88.0.3")
	names := map[string][]netip.Addr{"job.default.svc.cluster.local": {one, two}}
	for i := range 40 {
		names["many.default.svc.cluster.local"] = append(names["many.default.svc.cluster.local"], netip.AddrFrom4([4]byte{10, 88, 1, byte(i)}))
	}
	outside := func(_ context.Context, name string) ([]netip.Addr, error) {
		switch name {
		case "example.com":
			return []netip.Addr{netip.MustParseAddr("::ffff:192.0.2.1")}, nil
		case "machine":
			return []netip.Addr{netip.MustParseAddr("127.0.1.1")}, nil
		case "job.other.svc":
			return []netip.Addr{netip.MustParseAddr("192.0.2.2")}, nil
		case "broken.example.com":
			return nil, errors.New("the resolver is down")
		}
		return nil, &net.DNSError{Err: "no such host", Name: name, IsNotFound: true}
	}
	tests := map[string]struct {
		name string
		kind dnsmessage.Type
		want []string
		code dnsmessage.RCode
	}{
		"a name of a Service":               {"job.default.svc.cluster.local.", dnsmessage.TypeA, []string{"10.88.0.2", "10.88.0.3"}, dnsmessage.RCodeSuccess},
		"in capitals":                       {"Job.Default.svc.cluster.local.", dnsmessage.TypeA, []string{"10.88.0.2", "10.88.0.3"}, dnsmessage.RCodeSuccess},
		"its IPv6 addresses, of which none": {"job.default.svc.cluster.local.", dnsmessage.TypeAAAA, nil, dnsmessage.RCodeSuccess},
		"an unknown name of the zone":       {"example.com.default.svc.cluster.local.", dnsmessage.TypeA, nil, dnsmessage.RCodeNameError},
		"a name outside":                    {"example.com.", dnsmessage.TypeA, []string{"192.0.2.1"}, dnsmessage.RCodeSuccess},
		"a Service in short, unknown":       {"job.other.svc.", dnsmessage.TypeA, nil, dnsmessage.RCodeNameError},
		"a loopback address of the machine": {"machine.", dnsmessage.TypeA, nil, dnsmessage.RCodeSuccess},
		"an unknown name outside":           {"nowhere.example.com.", dnsmessage.TypeA, nil, dnsmessage.RCodeNameError},
		"a name that cannot be looked up":   {"broken.example.com.", dnsmessage.TypeA, nil, dnsmessage.RCodeServerFailure},
	}
	for title, test := range tests {
		t.Run(title, func(t *testing.T) {
			reply := ask(t, test.name, test.kind, names, outside)
			var got []string
			for _, a := range reply.Answers {
				if a.Header.Name.String() != test.name {
					t.Errorf("an answer for %s", a.Header.Name)
				}
				got = append(got, netip.AddrFrom4(a.Body.(*dnsmessage.AResource).A).String())
			}
			if diff := cmp.Diff(test.want, got); diff != "" || reply.RCode != test.code || reply.ID != 7 || !reply.Response {
				t.Errorf("header %+v (-want +got)\n%s", reply.Header, diff)
			}
		})
	}
	if got := len(ask(t, "many.default.svc.cluster.local.", dnsmessage.TypeA, names, outside).Answers); got != maxAddresses {
		t.Errorf("%d addresses of 40, want %d", got, maxAddresses)
	}
	if _, err := answer(t.Context(), []byte("not a question"), names, outside); err == nil {
		t.Error("nonsense was answered")
	}
}

func ask(t *testing.T, name string, kind dnsmessage.Type, names map[string][]netip.Addr, outside lookup) (reply dnsmessage.Message) {
	t.Helper()
	query := dnsmessage.Message{Header: dnsmessage.Header{ID: 7, RecursionDesired: true},
		Questions: []dnsmessage.Question{{Name: dnsmessage.MustNewName(name), Type: kind, Class: dnsmessage.ClassINET}}}
	packet, err := query.Pack()
	if err != nil {
		t.Fatal(err)
	}
	data, err := answer(t.Context(), packet, names, outside)
	if err != nil {
		t.Fatal(err)
	}
	if len(data) > 512 {
		t.Errorf("the answer has %d bytes", len(data))
	}
	if err := reply.Unpack(data); err != nil {
		t.Fatal(err)
	}
	return reply
}
