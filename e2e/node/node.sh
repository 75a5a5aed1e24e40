#!/usr/bin/env bash
# A Kubernetes cluster for tests: a node with the control plane, containerd, kubelet,
# kube-proxy and CoreDNS, in namespaces of their own (network, mounts, processes, host
# name), and a second node with what a node needs, in namespaces inside of those.
# From outside the first is seen at 10.89.0.2; all files are in one folder, and when the
# first process ends, so does everything.
#
#   node.sh up                start what does not run; prints the kubeconfig. NODES=1: one node
#   node.sh lose              end all processes of the second node at once, as a power cut does
#   node.sh load ARCHIVE...   import images (OCI or docker-archive)
#   node.sh image NAME FILE...  make an image of busybox with these programs in /bin
#   node.sh kubectl ARGS...   kubectl, as the administrator
#   node.sh exec COMMAND...   run a command on the first node, for instance ctr or ps
#   node.sh containerd        build a later containerd than Debian's, which mounts images
#                             as volumes; while bin/containerd is there, nodes run it
#   node.sh down              end it, and remove what it left on this machine
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
bin=${VERNIER_BIN_DIR:-$here/../../bin}
state=${VERNIER_NODE_DIR:-/var/lib/vernier-node}
cgroup=vernier-node
outside=10.89.0.1
inside=10.89.0.2
addresses=([1]=$inside [2]=10.89.1.2) # of the nodes
subnets=([1]=10.88.0.0/17 [2]=10.88.128.0/17) # of their pods
dns=10.96.0.10
registry=$outside:5000 # that a test may serve
containerd=v2.4.2 # that containerd builds
# A containerd of ours takes precedence.
[ ! -d "$bin/containerd" ] || PATH=$(cd "$bin/containerd" && pwd):$PATH
# What is needed, and Debian's package of it.
declare -A packages=(
	[containerd]=containerd [runc]=runc [/usr/lib/cni/bridge]=containernetworking-plugins [iptables]=iptables [ip]=iproute2
	[conntrack]=conntrack [busybox]=busybox-static [curl]=curl [openssl]=openssl [pgrep]=procps
)
# What the kubelet sets for the whole machine.
sysctls=(vm/overcommit_memory vm/panic_on_oom kernel/panic kernel/panic_on_oops kernel/keys/root_maxkeys kernel/keys/root_maxbytes)

fail() { echo "node.sh: $*" >&2; exit 1; }

running() { [ -s "$state/pidns" ] && [ "$(readlink "/proc/$(cat "$state/pid")/ns/pid_for_children" 2>/dev/null)" = "$(cat "$state/pidns" 2>/dev/null)" ]; }

# init is the first process inside.
init() { pgrep -P "$(cat "$state/pid")"; }

enter() { nsenter --target "$(init)" --net --mount --pid --uts -- "$@"; }

# second is the parent of the second node's first process.
second() { pgrep -P "$(init)" -x unshare; }

enter_second() { nsenter --target "$(pgrep -P "$(second)")" --net --mount --pid --uts -- "$@"; }

# import gives the nodes that run images.
import() {
	local archive
	for archive in "$@"; do
		enter ctr -n k8s.io images import "$(readlink -f "$archive")"
		[ -z "$(second)" ] || enter_second ctr -n k8s.io images import "$(readlink -f "$archive")" >/dev/null
	done
}

kubectl() { VERNIER_HOME=$state "$bin/vernier" kubectl "$@"; }

install_packages() {
	local missing=()
	for program in "${!packages[@]}"; do
		command -v "$program" >/dev/null || missing+=("${packages[$program]}")
	done
	[ ${#missing[@]} -gt 0 ] || return 0
	echo "installing ${missing[*]}"
	export DEBIAN_FRONTEND=noninteractive
	{ apt-get update -qq && apt-get install -y -qq --no-install-recommends --no-remove "${missing[@]}" >/dev/null; } ||
		fail "the node needs Debian's packages ${missing[*]}, and apt-get cannot install them: see what it says above"
}

configure() {
	mkdir -p "$state"/{etcd,pki,logs,volumes}
	touch "$state/.vernier-node"
	for s in "${sysctls[@]}"; do echo "$s $(cat "/proc/sys/$s")"; done >"$state/sysctls"
	[ -e "$state/pki/sa.key" ] || openssl genrsa -out "$state/pki/sa.key" 2048 2>/dev/null
	[ -e "$state/token" ] || openssl rand -hex 16 >"$state/token"
	echo "$(cat "$state/token"),admin,admin,system:masters" >"$state/pki/tokens.csv"
	chmod 600 "$state/token" "$state/pki/tokens.csv" "$state/pki/sa.key"
	printf '127.0.0.1 localhost\n%s node-1\n%s node-2\n' "${addresses[@]}" >"$state/hosts"
	printf 'nameserver %s\n' $dns >"$state/resolv.conf"
	cat >"$state/Corefile" <<-END
		cluster.local:53 {
		    bind $dns
		    errors
		    kubernetes cluster.local {
		        kubeconfig $state/kubeconfig
		    }
		}
	END
	cat >"$state/kubeconfig" <<-END
		apiVersion: v1
		kind: Config
		current-context: node
		clusters: [{name: node, cluster: {server: "https://$inside:6443", certificate-authority: $state/pki/apiserver.crt}}]
		users: [{name: admin, user: {token: $(cat "$state/token")}}]
		contexts: [{name: node, context: {cluster: node, user: admin}}]
	END
	chmod 600 "$state/kubeconfig"
}

# configure_node N
configure_node() {
	local dir=$state/node-$1
	mkdir -p "$dir"/{containerd,kubelet,cni,logs/containers,var-cni,opt} "$dir/registries/$registry"
	echo "[host.\"http://$registry\"]" >"$dir/registries/$registry/hosts.toml"
	sed "s#STATE#$dir#g" >"$dir/containerd.toml" <<-'END'
		version = 2
		root = "STATE/containerd"
		state = "/run/containerd"
		[grpc]
		  address = "/run/containerd/containerd.sock"
		[plugins."io.containerd.internal.v1.opt"]
		  path = "STATE/opt"
		[plugins."io.containerd.grpc.v1.cri"]
		  sandbox_image = "vernier.test/busybox:1"
		  # Where tests run, a process may not lower its OOM score.
		  restrict_oom_score_adj = true
		  [plugins."io.containerd.grpc.v1.cri".registry]
		    config_path = "STATE/registries"
		  [plugins."io.containerd.grpc.v1.cri".cni]
		    bin_dir = "/usr/lib/cni"
		    conf_dir = "STATE/cni"
		  [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
		    runtime_type = "io.containerd.runc.v2"
		  [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
		    SystemdCgroup = false
	END
	cat >"$dir/cni/10-pods.conflist" <<-END
		{"cniVersion": "0.4.0", "name": "pods", "plugins": [
		  {"type": "bridge", "bridge": "pods0", "isGateway": true, "hairpinMode": true,
		   "ipam": {"type": "host-local", "ranges": [[{"subnet": "${subnets[$1]}"}]], "routes": [{"dst": "0.0.0.0/0"}]}},
		  {"type": "portmap", "capabilities": {"portMappings": true}}]}
	END
	cat >"$dir/kubelet.yaml" <<-END
		apiVersion: kubelet.config.k8s.io/v1beta1
		kind: KubeletConfiguration
		authentication: {anonymous: {enabled: true}, webhook: {enabled: false}}
		authorization: {mode: AlwaysAllow}
		cgroupDriver: cgroupfs
		cgroupRoot: /$cgroup/node-$1
		failCgroupV1: false
		failSwapOn: false
		clusterDNS: [$dns]
		clusterDomain: cluster.local
		resolvConf: $state/resolv.conf
		containerRuntimeEndpoint: unix:///run/containerd/containerd.sock
		podLogsDir: $dir/logs/pods
		maxPods: 250
		serializeImagePulls: false
		# A lost node is seen after 20 s, not after 50; see the controller manager.
		nodeLeaseDurationSeconds: 12
		# The disk of the machine is not the node's: however full it is, nothing is evicted
		# and no image that was loaded is removed.
		imageGCHighThresholdPercent: 100
		imageGCLowThresholdPercent: 99
		evictionHard: {memory.available: 100Mi, nodefs.available: 1%, imagefs.available: 1%}
	END
}

# cgroups makes the groups under which the kubelets put those of pods.
cgroups() {
	local d group
	for group in "$cgroup" "$cgroup"/node-{1,2}; do
		if [ -e /sys/fs/cgroup/cgroup.controllers ]; then
			mkdir -p "/sys/fs/cgroup/$group"
			continue
		fi
		for d in /sys/fs/cgroup/*/; do
			[ -e "$d/cgroup.procs" ] && mkdir -p "$d/$group" || continue
			if [ -e "$d/cpuset.cpus" ]; then
				cat "$d/cpuset.cpus" >"$d/$group/cpuset.cpus"
				cat "$d/cpuset.mems" >"$d/$group/cpuset.mems"
			fi
		done
	done
}

# remove_cgroups GROUP removes a group, whose processes were killed.
remove_cgroups() {
	local d group
	for d in /sys/fs/cgroup /sys/fs/cgroup/*/; do
		[ -d "$d/$1" ] || continue
		# A process that was just killed holds its group for a moment.
		for _ in $(seq 100); do
			find "$d/$1" -depth -type d 2>/dev/null | while read -r group; do rmdir "$group" 2>/dev/null || true; done
			[ -d "$d/$1" ] || break
			sleep 0.05
		done
	done
}

# image packs Debian's static busybox, and programs beside it, as an image. The first
# one, without programs, is the pause image too.
image() {
	local name=$1 archive=$2 d config layer
	shift 2
	d=$(mktemp -d)
	mkdir -p "$d/rootfs"/{bin,tmp,etc}
	chmod 1777 "$d/rootfs/tmp"
	cp "$(command -v busybox)" "$d/rootfs/bin/"
	busybox --list | grep -v '^busybox$' | while read -r applet; do ln -s busybox "$d/rootfs/bin/$applet"; done
	[ $# -eq 0 ] || cp -L "$@" "$d/rootfs/bin/"
	echo 'root:x:0:0::/:/bin/sh' >"$d/rootfs/etc/passwd"
	ln -s bin "$d/rootfs/ko-app" # where Tekton looks for its programs
	# With /usr of a Debian machine mounted there, its programs find their libraries.
	ln -s usr/lib usr/lib64 "$d/rootfs/"
	tar -C "$d/rootfs" --owner=0 --group=0 -cf "$d/layer.tar" .
	layer=$(sha256sum <"$d/layer.tar" | cut -d' ' -f1)
	# The pause process reaps what its pod leaves behind.
	config='{"architecture":"'$(dpkg --print-architecture)'","os":"linux","config":{"Env":["PATH=/bin"],"Cmd":["/bin/sh","-c","trap exit TERM INT; while :; do sleep 3600 & wait $!; done"]},"rootfs":{"type":"layers","diff_ids":["sha256:'$layer'"]}}'
	printf '%s' "$config" >"$d/config.json"
	echo '[{"Config":"config.json","RepoTags":["'"$name"'"],"Layers":["layer.tar"]}]' >"$d/manifest.json"
	tar -C "$d" -cf "$archive" manifest.json config.json layer.tar
	rm -rf "$d"
}

# keep runs a component, and starts it again whenever it ends.
keep() {
	local name=$1
	shift
	while :; do
		"$@" >>"$state/logs/$name.log" 2>&1 || true
		sleep 0.5
	done
}

# be_node N makes the namespaces of its first process those of a node, and starts its containerd.
be_node() {
	local dir=$state/node-$1 bound
	mount --make-rprivate /
	mount -t proc proc /proc
	mount -t tmpfs tmpfs /run
	if [ "$1" = 1 ]; then
		mount --bind "$state/hosts" /etc/hosts
		mount --bind "$state/resolv.conf" /etc/resolv.conf
	fi
	# What components write under fixed paths is kept apart from the machine's.
	for bound in kubelet:/var/lib/kubelet logs/containers:/var/log/containers var-cni:/var/lib/cni; do
		[ -d "${bound#*:}" ] || continue
		mount --bind "$dir/${bound%%:*}" "${bound#*:}"
	done
	mount --make-rshared /
	hostname "node-$1"
	ip link set lo up
	echo 1 >/proc/sys/net/ipv4/ip_forward
	keep "containerd-$1" containerd --config "$dir/containerd.toml" &
}

# run_node N starts what else each node has.
run_node() {
	local dir=$state/node-$1 kubeconfig="--kubeconfig=$state/kubeconfig" node
	node=$(readlink -f "$bin")/node
	until ctr -a /run/containerd/containerd.sock version >/dev/null 2>&1; do sleep 0.1; done
	ctr -n k8s.io images import "$state/busybox.tar" >/dev/null
	keep "kubelet-$1" "$node" kubelet --config="$dir/kubelet.yaml" "$kubeconfig" --hostname-override="node-$1" --node-ip="${addresses[$1]}" &
	keep "kube-proxy-$1" "$node" kube-proxy "$kubeconfig" --hostname-override="node-$1" --proxy-mode=iptables --conntrack-max-per-core=0 &
}

# inside_main is the first process of the namespaces.
inside_main() {
	be_node 1
	ip address add $dns/32 dev lo
	until ip link show vernier0 >/dev/null 2>&1; do sleep 0.05; done
	ip address add $inside/24 dev vernier0
	ip link set vernier0 up
	ip route add default via $outside
	iptables -t nat -A POSTROUTING -o vernier0 -j MASQUERADE
	local cp kubeconfig="--kubeconfig=$state/kubeconfig"
	cp=$(readlink -f "$bin")/controlplane

	keep etcd "$cp" etcd --data-dir "$state/etcd" --listen-client-urls http://127.0.0.1:2379 --advertise-client-urls http://127.0.0.1:2379 \
		--listen-peer-urls http://127.0.0.1:2380 --initial-advertise-peer-urls http://127.0.0.1:2380 --initial-cluster default=http://127.0.0.1:2380 &
	keep kube-apiserver "$cp" kube-apiserver --etcd-servers=http://127.0.0.1:2379 --service-cluster-ip-range=10.96.0.0/16 \
		--bind-address=0.0.0.0 --advertise-address=$inside --secure-port=6443 --cert-dir="$state/pki" \
		--token-auth-file="$state/pki/tokens.csv" --authorization-mode=Node,RBAC --allow-privileged=true \
		--default-not-ready-toleration-seconds=10 --default-unreachable-toleration-seconds=10 \
		--service-account-issuer=https://kubernetes.default.svc --service-account-key-file="$state/pki/sa.key" \
		--service-account-signing-key-file="$state/pki/sa.key" --kubelet-preferred-address-types=InternalIP &
	until curl -skf "https://127.0.0.1:6443/readyz" -H "Authorization: Bearer $(cat "$state/token")" >/dev/null; do sleep 0.1; done
	keep kube-controller-manager "$cp" kube-controller-manager "$kubeconfig" --leader-elect=false --node-monitor-grace-period=20s \
		--service-account-private-key-file="$state/pki/sa.key" --root-ca-file="$state/pki/apiserver.crt" &
	keep kube-scheduler "$cp" kube-scheduler "$kubeconfig" --leader-elect=false &
	run_node 1
	keep coredns "$(readlink -f "$bin")/node" coredns -conf "$state/Corefile" &
	wait
}

# second_main is the first process of the second node.
second_main() {
	be_node 2
	until ip link show second0 >/dev/null 2>&1; do sleep 0.05; done
	ip address add "${addresses[2]}/24" dev second0
	ip link set second0 up
	ip route add default via 10.89.1.1
	run_node 2
	wait
}

# up_second starts the second node, whose network is joined to that of the first.
up_second() {
	enter setsid --fork unshare --net --mount --pid --uts --fork --kill-child "$here/node.sh" second >>"$state/logs/second.log" 2>&1 </dev/null
	until pgrep -P "$(second)" >/dev/null; do sleep 0.05; done
	enter ip link delete second0h 2>/dev/null || true
	enter ip link add second0h type veth peer name second0
	nsenter --target "$(init)" --net -- ip link set second0 netns "$(pgrep -P "$(second)")"
	enter ip address add 10.89.1.1/24 dev second0h
	enter ip link set second0h up
	enter ip route replace "${subnets[2]}" via "${addresses[2]}"
}

# lose ends the second node.
lose() {
	local parent
	parent=$(second) || return 0
	kill -KILL "$parent"
	while [ -d "/proc/$parent" ]; do sleep 0.05; done
	remove_cgroups "$cgroup/node-2/kubepods"
}

# volumes makes what a cluster with storage has: claims without a class are bound.
volumes() {
	local i
	for i in $(seq 20); do
		mkdir -p "$state/volumes/$i"
		chmod 777 "$state/volumes/$i"
		cat <<-END
			apiVersion: v1
			kind: PersistentVolume
			metadata: {name: local-$i}
			spec:
			  capacity: {storage: 10Gi}
			  accessModes: [ReadWriteOnce, ReadWriteMany]
			  hostPath: {path: $state/volumes/$i}
			---
		END
	done | kubectl apply -f - >/dev/null
}

up() {
	[ "$(id -u)" = 0 ] || fail "a node needs root"
	running || up_first
	[ "${NODES:-2}" = 1 ] || [ -n "$(second)" ] || up_second
	SECONDS=0
	local n
	for n in $(seq "${NODES:-2}"); do
		until kubectl wait --for=condition=Ready "node/node-$n" --timeout=1s >/dev/null 2>&1; do
			running || fail "it ended: see $state/logs"
			[ $SECONDS -lt 120 ] || fail "node-$n is not ready after two minutes: see $state/logs"
			sleep 0.2
		done
	done
	until kubectl -n default get serviceaccount default >/dev/null 2>&1; do sleep 0.2; done
	kubectl get persistentvolume local-20 >/dev/null 2>&1 || volumes
	kubectl get nodes -o wide
	echo "ready: KUBECONFIG=$state/kubeconfig"
}

# up_first starts the first node, from nothing.
up_first() {
	[ ! -e "$state" ] || down
	made=()
	for d in /var/lib/kubelet /var/log/containers /var/lib/cni; do
		[ -d $d ] || { mkdir -p $d && made+=("$d"); }
	done
	for b in vernier controlplane node; do
		[ -x "$bin/$b" ] || fail "$bin/$b is missing: run make node-up"
	done
	install_packages
	configure
	configure_node 1
	configure_node 2
	printf '%s\n' "${made[@]}" >"$state/made"
	cgroups
	image vernier.test/busybox:1 "$state/busybox.tar"
	setsid unshare --net --mount --pid --uts --fork --kill-child "$here/node.sh" inside >>"$state/logs/init.log" 2>&1 </dev/null &
	echo $! >"$state/pid"
	until pgrep -P $! >/dev/null; do
		[ -d "/proc/$!" ] || fail "it did not start: $(cat "$state/logs/init.log")"
		sleep 0.05
	done
	readlink "/proc/$!/ns/pid_for_children" >"$state/pidns"
	ip link add vernier0h type veth peer name vernier0
	ip link set vernier0 netns "$(init)"
	ip address add $outside/24 dev vernier0h
	ip link set vernier0h up
}

# build_containerd builds it, and what it runs.
build_containerd() {
	mkdir -p "$bin/containerd"
	GOBIN=$(cd "$bin/containerd" && pwd) go install -ldflags="-s -w -X github.com/containerd/containerd/v2/version.Version=$containerd" \
		github.com/containerd/containerd/v2/cmd/{containerd,containerd-shim-runc-v2,ctr}@$containerd
}

down() {
	[ -e "$state" ] || return 0
	[ -e "$state/.vernier-node" ] || [ -z "$(ls -A "$state")" ] || fail "$state is not a node's folder: nothing is removed"
	if running; then
		kill -KILL "$(cat "$state/pid")" || true
		while [ -d "/proc/$(cat "$state/pid")" ]; do sleep 0.05; done
	fi
	ip link delete vernier0h 2>/dev/null || true
	remove_cgroups "$cgroup"
	[ ! -e "$state/sysctls" ] || while read -r name value; do echo "$value" >"/proc/sys/$name"; done <"$state/sysctls"
	[ ! -e "$state/made" ] || while read -r d; do [ -z "$d" ] || rmdir "$d" 2>/dev/null || true; done <"$state/made"
	rm -rf --one-file-system "$state"
}

command=${1:-}
[ $# -eq 0 ] || shift
case $command in
up) up ;;
containerd) build_containerd ;;
down) down ;;
inside) inside_main ;;
second) second_main ;;
lose)
	running || fail "the node does not run: node.sh up"
	lose
	;;
load)
	running || fail "the node does not run: node.sh up"
	import "$@"
	;;
image)
	running || fail "the node does not run: node.sh up"
	name=$1
	shift
	image "$name" "$state/image.tar" "$@"
	import "$state/image.tar"
	rm "$state/image.tar"
	;;
kubectl) kubectl "$@" ;;
exec)
	running || fail "the node does not run: node.sh up"
	enter "$@"
	;;
*) fail "up, containerd, lose, down, load, image, kubectl or exec?" ;;
esac
