package shim

import (
	"errors"
	"time"
)

// Version is the version of the protocol and of state.json that this package
// speaks. A shim outlives the agent that started it, so it changes only for a
// change that an older peer would get wrong.
const Version = 1

// Names of the environment variables that the shim adds to each container.
const (
	// EnvPodUID marks every process of the pod; KillOrphans looks for it.
	EnvPodUID = "VERNIER_POD_UID"
	// EnvContainer is "name/run". It tells the containers of one pod apart when
	// their processes were orphaned.
	EnvContainer = "VERNIER_CONTAINER"
	// EnvPathMap lists "mountPath=hostPath" pairs, joined by ":". It is set only
	// where paths are mapped instead of mounted.
	EnvPathMap = "PATHMAP"
)

const (
	// LogMaxBytes is the size at which a log is rotated.
	LogMaxBytes = 10 << 20
	// LogMaxFiles is how many files of a log are kept, the newest included.
	LogMaxFiles = 3
	// DefaultTerminationPath is where containers see their termination message.
	DefaultTerminationPath = "/dev/termination-log"
	// MaxTerminationMessage is the most that is read of a termination message,
	// in bytes, as in the kubelet.
	MaxTerminationMessage = 4096
)

// Errors that callers test for. They survive the way through the socket.
var (
	// ErrNotRunning says that no shim answers for the directory. ReadState still
	// tells what it recorded.
	ErrNotRunning = errors.New("no shim is running")
	// ErrUnknownRun says that the shim has no such run of such a container.
	ErrUnknownRun = errors.New("unknown container run")
	// ErrConflict says that the request contradicts what has happened: an earlier
	// run of the container is still running, or a later one was already started.
	ErrConflict = errors.New("conflicting container run")
	// ErrVersion says that the shim speaks another version of the protocol.
	ErrVersion = errors.New("unsupported protocol version")
)

// Mount puts a file or directory of the host at an absolute path of the container.
type Mount struct {
	HostPath  string `json:"hostPath"`  // absolute; must exist
	MountPath string `json:"mountPath"` // absolute; need not exist on the host
	ReadOnly  bool   `json:"readOnly,omitempty"`
	File      bool   `json:"file,omitempty"` // HostPath is a file: a subPath, /etc/hosts
}

// ContainerSpec is one run of one container. Name and Run identify it.
type ContainerSpec struct {
	Name string `json:"name"` // unique in the pod; no "/"
	Run  int    `json:"run"`  // restart number, from 0

	// Argv is the command and its arguments. A command without "/" is looked for
	// in the PATH of Env.
	Argv []string `json:"argv"`
	// Env is the whole environment, "NAME=value". The shim adds EnvPodUID and
	// EnvContainer, and EnvPathMap where paths are mapped.
	Env []string `json:"env,omitempty"`
	// Dir is the working directory, as the container sees it. Default: "/".
	Dir    string  `json:"dir,omitempty"`
	Mounts []Mount `json:"mounts,omitempty"`

	// LogPath is the host path of this run's log in CRI format. Its directory is
	// made. At LogMaxBytes it is rotated to LogPath.1. Empty: output is discarded.
	LogPath string `json:"logPath,omitempty"`

	// TerminationPath is the host path of the termination message file, emptied
	// when the run starts. Empty: none. Mounted at TerminationMountPath.
	TerminationPath string `json:"terminationPath,omitempty"`
	// TerminationMountPath is where the container sees it. Default:
	// DefaultTerminationPath.
	TerminationMountPath string `json:"terminationMountPath,omitempty"`

	// MemoryLimitBytes is the most that all processes of the run may hold
	// together; above it they are killed with reason OOMKilled. 0: no limit. See
	// the package comment for what it cannot do.
	MemoryLimitBytes int64 `json:"memoryLimitBytes,omitempty"`

	// UID and GID to run as. nil: the shim's own. Others need root. A UID without
	// a GID runs with group 0, as in the kubelet.
	UID                *int64  `json:"uid,omitempty"`
	GID                *int64  `json:"gid,omitempty"`
	SupplementalGroups []int64 `json:"supplementalGroups,omitempty"` // need root

	// ReadOnly says that the run may write to its mounts, /dev and /proc only. It
	// means nothing where paths are mapped.
	ReadOnly bool `json:"readOnly,omitempty"`
	// DropCapabilities are numbers of capabilities that root does without.
	DropCapabilities []int `json:"dropCapabilities,omitempty"`

	// StopGrace is how long the run may take to end after a SIGTERM that the shim
	// itself got, before it is killed.
	StopGrace time.Duration `json:"stopGrace,omitempty"`

	TTY   bool `json:"tty,omitempty"`   // output of both streams is logged as stdout
	Stdin bool `json:"stdin,omitempty"` // false: standard input is /dev/null
}

// Phase is how far a run has come.
type Phase string

// The phases. A run never goes back.
const (
	Starting Phase = "Starting" // the process is being made; PID is 0
	Running  Phase = "Running"
	Exited   Phase = "Exited"
)

// Reasons of an exited run.
const (
	ReasonCompleted  = "Completed"              // exit code 0
	ReasonError      = "Error"                  // another exit code, or a signal
	ReasonOOMKilled  = "OOMKilled"              // above MemoryLimitBytes
	ReasonStartError = "StartError"             // the program never ran; exit code 128
	ReasonLost       = "ContainerStatusUnknown" // the shim died with it; exit code 137
)

// ExitCodeStartError is the exit code of a run whose program could not be started.
const ExitCodeStartError = 128

// Run is what is known of one run of a container.
type Run struct {
	Name  string `json:"name"`
	Run   int    `json:"run"`
	Phase Phase  `json:"phase"`
	PID   int    `json:"pid,omitempty"` // also its process group and session

	StartedAt  time.Time `json:"startedAt,omitzero"`
	FinishedAt time.Time `json:"finishedAt,omitzero"`

	// ExitCode is 128+Signal for a run that a signal ended. It means something
	// only when Phase is Exited.
	ExitCode int    `json:"exitCode"`
	Signal   int    `json:"signal,omitempty"`
	Reason   string `json:"reason,omitempty"`
	// Message is the shim's own remark: why a start failed, the figures of a
	// memory kill, lost output.
	Message string `json:"message,omitempty"`
	// StandIns names the directories of the machine, if any, that the container sees
	// as they were at its start, because a mount path is missing in them and could
	// not be made there.
	StandIns string `json:"standIns,omitempty"`
	// TerminationMessage is what the program wrote to its termination message
	// file, at most MaxTerminationMessage bytes.
	TerminationMessage string `json:"terminationMessage,omitempty"`
}

// Running reports whether the run goes on, or is about to.
func (r Run) Running() bool { return r.Phase != Exited }

// State is a snapshot of a shim.
type State struct {
	Version int    `json:"version"`
	PodUID  string `json:"podUID"`
	// Revision grows by one or more with each change.
	Revision uint64 `json:"revision"`
	// Runs are ordered by the time of their start. Of each container the newest
	// runs are kept, KeepRuns at most.
	Runs []Run `json:"runs"`

	// Terminating is when the shim itself got a SIGTERM, as every process does when
	// a session or the machine ends; zero while it did not.
	Terminating time.Time `json:"terminating,omitzero"`

	Mounts MountMode `json:"mounts"`

	// PID, StartTicks and BootID identify the shim's process for as long as the
	// machine runs.
	PID        int    `json:"pid"`
	StartTicks uint64 `json:"startTicks,omitempty"`
	BootID     string `json:"bootID,omitempty"`
}

// KeepRuns is the number of runs of one container that a state keeps.
const KeepRuns = 3

// Find returns the run with that name and number.
func (s State) Find(name string, run int) (Run, bool) {
	for _, r := range s.Runs {
		if r.Name == name && r.Run == run {
			return r, true
		}
	}
	return Run{}, false
}

// Latest returns the newest run of a container.
func (s State) Latest(name string) (Run, bool) {
	latest, found := Run{}, false
	for _, r := range s.Runs {
		if r.Name == name && (!found || r.Run > latest.Run) {
			latest, found = r, true
		}
	}
	return latest, found
}

// MountMode is how volumes get to their mount paths.
type MountMode string

// The modes.
const (
	MountsRoot MountMode = "root" // a mount namespace, made as root
	MountsUser MountMode = "user" // a mount namespace inside a user namespace
	MountsNone MountMode = "none" // paths are mapped instead
)

// Options say how to start a shim.
type Options struct {
	// Binary is the path of the shim's binary.
	Binary string
	// Dir is the pod's directory, for the socket, the state and the shim's log. It
	// is made with mode 0700. A long path is fine on Linux.
	Dir string
	// PodUID identifies the pod. Required.
	PodUID string
	// Mounts is what ProbeMounts returned.
	Mounts MountMode
	// Tied has the shim killed when the thread that spawns it ends.
	Tied bool
	// IdleExit ends a shim that runs no container and is asked nothing for so
	// long; its state stays. Default: 10 minutes.
	IdleExit time.Duration
}

// Usage is what the processes of a pod use.
type Usage struct {
	// CPU is the time that they have computed, with that of processes that have ended
	// as far as one that lives has waited for them. It may go back.
	CPU time.Duration
	// Memory is the sum of their resident sizes, in bytes: pages that they share count
	// for each.
	Memory int64
}
