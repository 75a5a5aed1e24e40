package api

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/types/known/timestamppb"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	vernierv1 "github.com/vernier-ml/vernier/api/proto/vernier/v1"
	"github.com/vernier-ml/vernier/api/v1beta1"
	"github.com/vernier-ml/vernier/collector/contract"
	"github.com/vernier-ml/vernier/trainer"
)

const (
	// mostArtifacts bounds a list, artifactsLooked what is looked at for it, deepest how
	// many directories deep that goes, and artifactsRead what is read of one at once.
	mostArtifacts, artifactsLooked, deepest, artifactsRead = 1_000, 20_000, 10, 256
	// maxArtifact is how large a file may be that is sent.
	maxArtifact  = 1 << 30
	artifactPart = 256 << 10
	// mlflowFiles is the directory that MLflow's artifacts are shown as.
	mlflowFiles = "mlflow"
)

// Volumes is where the node agent of this machine keeps the volumes of pods. The zero
// value: they are on other machines.
type Volumes struct {
	// Claims has the directory NAMESPACE/CLAIM-UID of each claim, Pods the directory
	// UID/volumes/VOLUME of each pod's volumes.
	Claims, Pods string
}

// shelf is a directory with files of a trial.
type shelf struct {
	// base is a directory that programs cannot exchange, below that of the trial.
	base, below string
	// name is that under which the files are shown.
	name string
}

// ListArtifacts implements vernierv1.DashboardServiceHandler.
func (s *service) ListArtifacts(ctx context.Context, r *vernierv1.ListArtifactsRequest) (*vernierv1.ListArtifactsResponse, error) {
	t, err := s.trialWithFiles(ctx, r.GetName())
	if err != nil {
		return nil, err
	}
	out := &vernierv1.ListArtifactsResponse{}
	if k := t.Spec.Checkpoints; k != nil {
		out.Place = fmt.Sprintf("claim %s, directory %s", k.ClaimName, path.Join(k.Folder, t.Name))
	}
	switch {
	case s.Volumes == Volumes{} && out.Place == "":
		out.Note = "The trial has no directory that outlives its pods. Set trialTemplate.checkpoints to give it one."
		return out, nil
	case s.Volumes == Volumes{}:
		out.Note = "This server does not mount the claim: read the files from a pod that does."
		return out, nil
	}
	shelves, err := s.shelves(ctx, t)
	if err != nil {
		return nil, err
	}
	looked := 0
	for _, at := range shelves {
		if at.name == "" {
			out.Place = filepath.Join(at.base, at.below)
		}
		if err := at.list(out, &looked); err != nil {
			return nil, explain(ctx, fmt.Errorf("list the files of trial %s: %w", t.Name, err))
		}
	}
	slices.SortFunc(out.Artifacts, func(a, b *vernierv1.Artifact) int { return strings.Compare(a.GetPath(), b.GetPath()) })
	if t.Spec.Checkpoints == nil && len(out.GetArtifacts()) == 0 {
		out.Note = "The trial has no directory that outlives its pods. Set trialTemplate.checkpoints to give it one."
	}
	return out, ctx.Err()
}

// ReadArtifact implements vernierv1.DashboardServiceHandler.
func (s *service) ReadArtifact(ctx context.Context, r *vernierv1.ReadArtifactRequest, to *connect.ServerStream[vernierv1.ReadArtifactResponse]) error {
	t, err := s.trialWithFiles(ctx, r.GetName())
	if err != nil {
		return err
	}
	absent := fault(connect.CodeNotFound, ReasonNotFound, "list the trial's files for those that there are", "trial %s has no file %q here", t.Name, r.GetPath())
	if !fs.ValidPath(r.GetPath()) || s.Volumes == (Volumes{}) {
		return absent
	}
	shelves, err := s.shelves(ctx, t)
	if err != nil {
		return err
	}
	for _, at := range shelves {
		file, size, err := at.open(r.GetPath())
		switch {
		case errors.Is(err, errNoArtifact):
			continue
		case err != nil:
			return explain(ctx, fmt.Errorf("read file %q of trial %s: %w", r.GetPath(), t.Name, err))
		}
		defer file.Close()
		if size > maxArtifact {
			return invalid("copy it from "+filepath.Join(at.base, at.below), "%s has %d bytes; at most %d are sent", r.GetPath(), size, maxArtifact)
		}
		return s.sendFile(ctx, io.LimitReader(file, maxArtifact), to)
	}
	return absent
}

func (s *service) sendFile(ctx context.Context, from io.Reader, to *connect.ServerStream[vernierv1.ReadArtifactResponse]) error {
	part := make([]byte, artifactPart)
	for {
		n, err := io.ReadFull(from, part)
		if n > 0 {
			if err := s.patiently(ctx, func() error { return to.Send(&vernierv1.ReadArtifactResponse{Data: part[:n]}) }); err != nil {
				return explain(ctx, err)
			}
		}
		switch {
		case errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF):
			return nil
		case err != nil:
			return explain(ctx, fmt.Errorf("read the file: %w", err))
		}
	}
}

// trialWithFiles is a trial whose files the caller may read. What a program wrote may
// hold what its logs do, so the right is the same.
func (s *service) trialWithFiles(ctx context.Context, name string) (*v1beta1.Trial, error) {
	p, err := parsePlace("name", name, trialForm)
	if err != nil {
		return nil, err
	}
	if err := s.allow(ctx, "get", "trials", p); err != nil {
		return nil, err
	}
	if err := s.allowLogs(ctx, p.namespace); err != nil {
		return nil, err
	}
	return s.trial(ctx, p)
}

// shelves are the directories of this machine with files of t.
func (s *service) shelves(ctx context.Context, t *v1beta1.Trial) (out []shelf, err error) {
	if k := t.Spec.Checkpoints; k != nil {
		claim := &corev1.PersistentVolumeClaim{}
		err := s.Reader.Get(ctx, types.NamespacedName{Namespace: t.Namespace, Name: k.ClaimName}, claim)
		switch {
		case apierrors.IsNotFound(err): // and its files with it
		case err != nil:
			return nil, explain(ctx, fmt.Errorf("read claim %s/%s: %w", t.Namespace, k.ClaimName, err))
		default:
			out = append(out, shelf{base: filepath.Join(s.Volumes.Claims, claim.Namespace, claim.Name+"-"+string(claim.UID)), below: path.Join(k.Folder, t.Name)})
		}
	}
	var pods corev1.PodList
	if err := s.Reader.List(ctx, &pods, client.InNamespace(t.Namespace), client.MatchingLabels{v1beta1.LabelTrial: t.Name}); err != nil {
		return nil, explain(ctx, err)
	}
	for i := range pods.Items {
		if p := &pods.Items[i]; trainer.Reports(t.Spec.PrimaryPodLabels, p.Labels) {
			out = append(out, shelf{base: filepath.Join(s.Volumes.Pods, string(p.UID), "volumes", trainer.MetricsVolume), below: mlflowFiles, name: mlflowFiles})
		}
	}
	return out, nil
}

// errNoArtifact says that there is no such file.
var errNoArtifact = errors.New("there is no such file")

// root opens the directory of the files. Nothing below it leads out of it: neither
// paths nor links that a program made.
func (s shelf) root() (*os.Root, error) {
	root, err := os.OpenRoot(s.base)
	if err != nil {
		return nil, err
	}
	return descend(root, s.below)
}

// descend opens a directory below root, "." for itself, and closes root. Links are no
// directories: they may be to another trial's.
func descend(root *os.Root, to string) (*os.Root, error) {
	for part := range strings.SplitSeq(to, "/") {
		next, err := child(root, part)
		root.Close()
		if err != nil {
			return nil, err
		}
		root = next
	}
	return root, nil
}

func child(root *os.Root, name string) (*os.Root, error) {
	info, err := root.Lstat(name)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		return nil, fs.ErrNotExist
	}
	return root.OpenRoot(name)
}

func (s shelf) list(out *vernierv1.ListArtifactsResponse, looked *int) error {
	root, err := s.root()
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer root.Close()
	if err := s.listIn(root, ".", out, looked); err != nil && !errors.Is(err, fs.SkipAll) {
		return err
	}
	return nil
}

// listIn lists a directory and those below it. It reads them in parts: a program may
// have put millions of files into one. fs.SkipAll says that the list is full.
func (s shelf) listIn(root *os.Root, at string, out *vernierv1.ListArtifactsResponse, looked *int) error {
	unreadable := func(err error) bool { // it has gone meanwhile, or is not this user's to read
		return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) || errors.Is(err, fs.ErrPermission)
	}
	dir, err := root.OpenFile(at, os.O_RDONLY|syscall.O_DIRECTORY|syscall.O_NONBLOCK, 0)
	if unreadable(err) {
		return nil
	}
	if err != nil {
		return err
	}
	defer dir.Close()
	for {
		entries, err := dir.ReadDir(artifactsRead)
		for _, d := range entries {
			if *looked++; *looked > artifactsLooked || len(out.GetArtifacts()) >= mostArtifacts {
				out.Note = fmt.Sprintf("These are %d files; there are more.", len(out.GetArtifacts()))
				return fs.SkipAll
			}
			name := path.Join(at, d.Name())
			switch {
			case d.IsDir() && strings.Count(name, "/") < deepest:
				if err := s.listIn(root, name, out, looked); err != nil {
					return err
				}
			case d.Type().IsRegular() && name != contract.ParentFile && name != contract.TrialFile:
				if info, err := root.Lstat(name); err == nil { // else it has gone meanwhile
					out.Artifacts = append(out.Artifacts, &vernierv1.Artifact{Path: path.Join(s.name, name), Size: info.Size(), ModifyTime: timestamppb.New(info.ModTime().Truncate(time.Millisecond))})
				}
			}
		}
		switch {
		case errors.Is(err, io.EOF) || unreadable(err):
			return nil
		case err != nil:
			return err
		}
	}
}

// open opens a regular file, by the path that list gave it. Links are no files, and
// lead to none.
func (s shelf) open(name string) (*os.File, int64, error) {
	if s.name != "" {
		below, ok := strings.CutPrefix(name, s.name+"/")
		if !ok {
			return nil, 0, errNoArtifact
		}
		name = below
	}
	file, info, err := s.openRegular(path.Dir(name), path.Base(name))
	switch {
	case errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.EINVAL) || errors.Is(err, syscall.ENAMETOOLONG):
		return nil, 0, errNoArtifact // such a name cannot be
	case err != nil:
		return nil, 0, err
	}
	return file, info.Size(), nil
}

func (s shelf) openRegular(dir, name string) (*os.File, fs.FileInfo, error) {
	root, err := s.root()
	if err != nil {
		return nil, nil, err
	}
	if root, err = descend(root, dir); err != nil {
		return nil, nil, err
	}
	defer root.Close()
	info, err := root.Lstat(name)
	if err == nil && !info.Mode().IsRegular() {
		err = fs.ErrNotExist
	}
	if err != nil {
		return nil, nil, err
	}
	file, err := root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, nil, err
	}
	info, err = file.Stat()
	if err == nil && !info.Mode().IsRegular() { // it was exchanged meanwhile
		err = fs.ErrNotExist
	}
	if err != nil {
		file.Close()
		return nil, nil, err
	}
	return file, info, nil
}
