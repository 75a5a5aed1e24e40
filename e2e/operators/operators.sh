#!/usr/bin/env bash
# Installs on the cluster of e2e/node what runs distributed jobs in earnest: the training
# operator, JobSet, Trainer and Kueue. Their programs and manifests are those of the Go
# modules in go.mod; changed are the image, the user and a path in it, since there is no
# registry.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
bin=$(cd "${VERNIER_BIN_DIR:-$here/../../bin}" && pwd)
image=vernier.test/operators:1
node() { VERNIER_BIN_DIR=$bin "$here/../node/node.sh" "$@"; }
temporary=$(mktemp -d)
trap 'rm -rf "$temporary"' EXIT

# manifests MODULE FOLDER prints what the module's kustomization makes.
manifests() {
	local copy
	copy=$temporary/$(basename "$1")
	[ -e "$copy" ] || { cp -r "$(cd "$here" && go list -m -f '{{.Dir}}' "$1")/$2" "$copy" && chmod -R u+w "$copy"; }
	# What another module has is not fetched from the network.
	sed -i '/third-party\/jobset/d' "$copy/$3/kustomization.yaml"
	node kubectl kustomize "$copy/$3"
}

# install PROGRAM applies manifests, whose controller is that program.
install() {
	sed -E -e "s#^( *)(- )?image: [a-z].*#\1\2image: $image#; s#imagePullPolicy: Always#imagePullPolicy: IfNotPresent#" \
		-e "s#^( *)- /manager\$#\1- /bin/$1#" -e 's#^( *)runAsNonRoot: true#&\n\1runAsUser: 65532#' >"$temporary/$1.yaml"
	node kubectl apply --server-side -f "$temporary/$1.yaml" >/dev/null
}

node image "$image" "$bin"/operators/* "$here/init-pytorch.yaml" >/dev/null
manifests github.com/kubeflow/training-operator manifests overlays/standalone |
	sed -E 's#^( *)- /manager$#&\n\1- --pytorch-init-container-template-file=/bin/init-pytorch.yaml#' |
	install training-operator.v1
manifests sigs.k8s.io/jobset config default | install jobset
manifests github.com/kubeflow/trainer/v2 manifests overlays/manager |
	sed -E "s#^( *)image: ghcr.*#&\n\1command: [/bin/trainer-controller-manager]#" |
	install trainer-controller-manager
# Kueue is told of the training operator's kinds too.
manifests sigs.k8s.io/kueue config default | sed -E 's#\# (- "kubeflow.org/(pytorch|tf)job")#\1#' |
	install kueue
# The node's API server does not ask others, and a namespace is only removed when all answer.
node kubectl delete apiservice v1beta{1,2}.visibility.kueue.x-k8s.io
for namespace in kubeflow jobset-system kubeflow-system kueue-system; do
	node kubectl -n $namespace rollout status deployment --timeout=3m
done
until manifests github.com/kubeflow/trainer/v2 manifests base/runtimes |
	node kubectl apply --server-side -f - >/dev/null 2>"$temporary/error"; do
	[ $SECONDS -lt 300 ] || { cat "$temporary/error" >&2 && exit 1; }
	sleep 1
done
