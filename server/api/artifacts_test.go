package api

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/reflect/protoreflect"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	vernierv1 "github.com/vernier-ml/vernier/api/proto/vernier/v1"
	"github.com/vernier-ml/vernier/api/v1beta1"
)

// withFiles is a service whose trial exp-0000 has files, beside others that are not its.
func withFiles(t *testing.T) (s *service, own string) {
	t.Helper()
	exp, trial := runs(t)
	trial.Spec.Checkpoints = &v1beta1.TrialCheckpoints{CheckpointSpec: v1beta1.CheckpointSpec{Path: "/checkpoints", ClaimName: "models"}, Folder: "exp-1"}
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "ml", Name: "models", UID: "c"}}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ml", Name: "exp-0000-x", UID: "p", Labels: map[string]string{v1beta1.LabelTrial: trial.Name}}}
	root := t.TempDir()
	s = serve(t, interceptor.Funcs{}, exp, trial, claim, pod)
	s.Volumes = Volumes{Claims: filepath.Join(root, "claims"), Pods: filepath.Join(root, "pods")}
	own = filepath.Join(root, "claims/ml/models-c/exp-1/exp-0000")
	for file, text := range map[string]string{
		"claims/ml/models-c/exp-1/exp-0000/epoch-3/model.pt":      "weights",
		"claims/ml/models-c/exp-1/exp-0000/last.txt":              "3",
		"claims/ml/models-c/exp-1/exp-0000/.vernier-parent":       "",
		"claims/ml/models-c/exp-1/exp-0001/model.pt":              "another trial's",
		"claims/ml/secrets-d/key":                                 "another claim's",
		"pods/p/volumes/vernier-metrics/mlflow/1/artifacts/a.png": "picture",
		"pods/p/volumes/vernier-metrics/token":                    "secret",
	} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(root, file)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(root, file), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for name, to := range map[string]string{"link": "last.txt", "sibling": "../exp-0001/model.pt", "up": "../../../secrets-d", "passwd": "/etc/passwd"} {
		if err := os.Symlink(to, filepath.Join(own, name)); err != nil {
			t.Fatal(err)
		}
	}
	if err := syscall.Mkfifo(filepath.Join(own, "pipe"), 0o644); err != nil {
		t.Fatal(err)
	}
	return s, own
}

func methodOf(name string) protoreflect.MethodDescriptor {
	return vernierv1.File_vernier_v1_dashboard_proto.Services().Get(0).Methods().ByName(protoreflect.Name(name))
}

const trialName = parent + "/trials/exp-0000"

func TestTheFilesOfATrial(t *testing.T) {
	s, own := withFiles(t)
	got, err := s.ListArtifacts(t.Context(), &vernierv1.ListArtifactsRequest{Name: trialName})
	if err != nil {
		t.Fatal(err)
	}
	sizes := map[string]int64{}
	for _, a := range got.GetArtifacts() {
		sizes[a.GetPath()] = a.GetSize()
	}
	want := map[string]int64{"epoch-3/model.pt": 7, "last.txt": 1, "mlflow/1/artifacts/a.png": 7}
	if diff := cmp.Diff(want, sizes); diff != "" {
		t.Error(diff)
	}
	if got.GetPlace() != own || got.GetNote() != "" {
		t.Errorf("they are at %q, %q", got.GetPlace(), got.GetNote())
	}
}

func TestOnlyFilesOfTheTrialAreRead(t *testing.T) {
	s, own := withFiles(t)
	server := listen(t, s)
	read := func(path string) string {
		return call(t, server.URL, "any", methodOf("ReadArtifact"), `{"name": "`+trialName+`", "path": "`+path+`"}`)
	}
	for path, data := range map[string]string{"epoch-3/model.pt": "d2VpZ2h0cw==", "mlflow/1/artifacts/a.png": "cGljdHVyZQ=="} {
		if says := read(path); !strings.Contains(says, data) {
			t.Errorf("of %s it says %s", path, says)
		}
	}
	for _, path := range []string{"", ".", "epoch-3", "link", "sibling", "up/key", "passwd", "pipe", "../exp-0001/model.pt", "epoch-3/../../exp-0001/model.pt", "/etc/passwd", "mlflow", "mlflow/../token", "mlflow/../../vernier-metrics/token", "1/artifacts/a.png", `a\\u0000b`} {
		if says := read(path); !strings.Contains(says, "not_found") {
			t.Errorf("of %q it says %s", path, says)
		}
	}
	// A program cannot put a link to another trial's files in place of its directory.
	if err := os.RemoveAll(own); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("exp-0001", own); err != nil {
		t.Fatal(err)
	}
	if says := read("model.pt"); !strings.Contains(says, "not_found") {
		t.Errorf("through a link in place of the directory: %s", says)
	}
}

// A directory that cannot be read is not one without files.
func TestAFileThatCannotBeReadIsNotAbsent(t *testing.T) {
	s, own := withFiles(t)
	claim := filepath.Dir(filepath.Dir(own))
	if err := os.RemoveAll(claim); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(claim, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	says := call(t, listen(t, s).URL, "any", methodOf("ReadArtifact"), `{"name": "`+trialName+`", "path": "last.txt"}`)
	if !strings.Contains(says, "not a directory") || strings.Contains(says, "not_found") {
		t.Errorf("it says %s", says)
	}
}

func TestNoDirectoryOfFilesStaysOpen(t *testing.T) {
	_, own := withFiles(t)
	at := shelf{base: filepath.Dir(filepath.Dir(own)), below: "exp-1/exp-0000"}
	looked := 0
	if err := at.list(&vernierv1.ListArtifactsResponse{}, &looked); err != nil {
		t.Fatal(err)
	}
	file, _, err := at.open("epoch-3/model.pt")
	if err != nil {
		t.Fatal(err)
	}
	file.Close()
	if _, _, err := at.open("epoch-3/absent"); !errors.Is(err, errNoArtifact) {
		t.Error(err)
	}
	open, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	for _, fd := range open {
		if to, err := os.Readlink("/proc/self/fd/" + fd.Name()); err == nil && strings.HasPrefix(to, at.base) {
			t.Errorf("%s is open", to)
		}
	}
}

func TestAListOfFilesIsBounded(t *testing.T) {
	s, own := withFiles(t)
	for n := range mostArtifacts + artifactsRead {
		if err := os.WriteFile(filepath.Join(own, fmt.Sprint(n)), nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := s.ListArtifacts(t.Context(), &vernierv1.ListArtifactsRequest{Name: trialName})
	if err != nil {
		t.Fatal(err)
	}
	if len(got.GetArtifacts()) != mostArtifacts || got.GetNote() == "" {
		t.Errorf("%d files, %q", len(got.GetArtifacts()), got.GetNote())
	}
}

func TestALargeFileIsNotSent(t *testing.T) {
	s, own := withFiles(t)
	if err := os.Truncate(filepath.Join(own, "last.txt"), maxArtifact+1); err != nil {
		t.Fatal(err)
	}
	says := call(t, listen(t, s).URL, "any", methodOf("ReadArtifact"), `{"name": "`+trialName+`", "path": "last.txt"}`)
	if !strings.Contains(says, "invalid_argument") || !strings.Contains(says, own) {
		t.Errorf("it says %s", says)
	}
}

func TestWhereTheFilesAreThatAreElsewhere(t *testing.T) {
	s, _ := withFiles(t)
	s.Volumes = Volumes{}
	got, err := s.ListArtifacts(t.Context(), &vernierv1.ListArtifactsRequest{Name: trialName})
	if err != nil {
		t.Fatal(err)
	}
	if got.GetPlace() != "claim models, directory exp-1/exp-0000" || got.GetNote() == "" || len(got.GetArtifacts()) > 0 {
		t.Errorf("it says %v", got)
	}
}

// withoutLogs lets its caller do everything but read logs.
type withoutLogs struct{}

func (withoutLogs) Authenticate(context.Context, *http.Request) (authenticationv1.UserInfo, bool, error) {
	return authenticationv1.UserInfo{Username: "eve"}, true, nil
}

func (withoutLogs) Allowed(_ context.Context, _ authenticationv1.UserInfo, what authorizationv1.ResourceAttributes) (bool, error) {
	return what.Subresource != "log", nil
}

func TestFilesAreForWhoMayReadLogs(t *testing.T) {
	s, _ := withFiles(t)
	s.Access = withoutLogs{}
	server := listen(t, s)
	for _, method := range []string{"ListArtifacts", "ReadArtifact"} {
		if says := call(t, server.URL, "any", methodOf(method), `{"name": "`+trialName+`"}`); !strings.Contains(says, "permission_denied") {
			t.Errorf("%s says %s", method, says)
		}
	}
}
