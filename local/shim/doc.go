// Package shim owns the processes of one pod.
//
// The node agent starts one shim per pod and may die; the shim and its
// containers go on, and the next agent attaches to it and finds what ran, what
// runs and how it ended. The shim starts, signals, watches and records single
// runs of containers. It decides nothing: order, restarts, back-off, probes and
// grace are the agent's. It knows nothing of Kubernetes.
//
// # Protocol
//
// A client connects to the socket shim.sock in the pod's directory and writes one
// line of JSON; the shim answers with one line and closes the connection. A watch
// is answered when there is something new. Each request carries the protocol's
// version. Requests are idempotent: a Start of a run that was already started
// answers what became of it.
//
// # State
//
// The file state.json in the pod's directory holds what State returns. It is
// replaced durably before any client is told of the change. It holds no
// environment, because that may hold secrets.
//
// # Mounts
//
// A container with mounts starts in a mount namespace of its own: as root, or as
// an ordinary user inside a user namespace that maps only that user. A mount path
// that does not exist on the machine is made there, as an empty directory or file.
// Where this user may not do so, a tmpfs takes the place of the deepest directory
// that exists, its entries are bound back into it, and the missing path is made on
// the tmpfs. It is read-only, as the directory was for this user, and what the
// machine adds there later is not seen.
//
// Where mount namespaces are refused, paths are mapped instead: a mount path in
// the arguments, in the environment and in the working directory is replaced by
// the path on the host. Paths that are written inside the program do not work
// there.
//
// # Limits
//
// A memory limit is enforced by looking at the processes every 150 ms and adding
// up what they hold, not by the kernel. A program that allocates faster than that
// overshoots the limit before it is killed, and page cache, kernel memory and
// files on a tmpfs do not count.
//
// Containers of the same user can see and signal each other's processes, and the
// shim's: this separates names of files, not users.
package shim
