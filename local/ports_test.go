package local

import (
	"net"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/vernier-ml/vernier/local/statefile"
)

func TestPortsAreDistinctAndOutOfTheWayOfOutgoingConnections(t *testing.T) {
	p, err := choosePorts(ports{}, notAgain)
	if err != nil {
		t.Fatal(err)
	}
	seen := map[int]bool{}
	for _, port := range p.all() {
		if *port < firstPort || *port > lastPort {
			t.Errorf("port %d is not from %d to %d", *port, firstPort, lastPort)
		}
		if seen[*port] {
			t.Errorf("port %d is chosen twice", *port)
		}
		seen[*port] = true
	}
}

func TestPortsStayTheSameWhileTheyAreFree(t *testing.T) {
	home := testHome(t)
	first, err := home.ensurePorts(notAgain)
	if err != nil {
		t.Fatal(err)
	}
	second, err := home.ensurePorts(notAgain)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(first, second); diff != "" {
		t.Errorf("ports of the second start (-first +second):\n%s", diff)
	}
}

func TestOnlyAPortThatIsTakenIsChosenAnew(t *testing.T) {
	home := testHome(t)
	first, err := home.ensurePorts(notAgain)
	if err != nil {
		t.Fatal(err)
	}
	squatter, err := net.Listen("tcp", address(first.Scheduler))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = squatter.Close() }()
	second, err := home.ensurePorts(notAgain)
	if err != nil {
		t.Fatal(err)
	}
	if second.Scheduler == first.Scheduler {
		t.Errorf("port %d was chosen though it is taken", second.Scheduler)
	}
	want := first
	want.Scheduler = second.Scheduler
	if diff := cmp.Diff(want, second); diff != "" {
		t.Errorf("other ports changed too (-want +got):\n%s", diff)
	}
	var recorded ports
	if err := statefile.ReadJSON(home.path("ports.json"), &recorded); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(second, recorded); diff != "" {
		t.Errorf("recorded ports (-chosen +recorded):\n%s", diff)
	}
}

// A supervisor that was killed leaves components that end at this moment, and pods whose
// collectors know where they report.
func TestAPortThatIsGivenBackSoonIsKept(t *testing.T) {
	home := testHome(t)
	first, err := home.ensurePorts(notAgain)
	if err != nil {
		t.Fatal(err)
	}
	ending, err := net.Listen("tcp", address(first.Report))
	if err != nil {
		t.Fatal(err)
	}
	looks := 0
	second, err := home.ensurePorts(func() bool {
		if looks++; looks == 3 {
			_ = ending.Close()
		}
		return looks < 10
	})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(first, second); diff != "" {
		t.Errorf("ports of the second start (-first +second):\n%s", diff)
	}
}

func TestInstancesThatRunSideBySideShareNoPort(t *testing.T) {
	first, err := testHome(t).ensurePorts(notAgain)
	if err != nil {
		t.Fatal(err)
	}
	taken := map[int]bool{}
	for _, port := range first.all() {
		l, err := net.Listen("tcp", address(*port))
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = l.Close() }()
		taken[*port] = true
	}
	second, err := testHome(t).ensurePorts(notAgain)
	if err != nil {
		t.Fatal(err)
	}
	for _, port := range second.all() {
		if taken[*port] {
			t.Errorf("port %d belongs to both", *port)
		}
	}
}
