#!/usr/bin/env bash
# Installs on the cluster of e2e/node what runs pipelines in earnest: the controllers of
# Argo Workflows and Tekton Pipelines. Their programs and manifests are those of the Go
# modules in pipelines/go.mod; changed are the image, and what names a program in it.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
bin=$(cd "${VERNIER_BIN_DIR:-$here/../../bin}" && pwd)
image=vernier.test/pipelines:1
node() { VERNIER_BIN_DIR=$bin "$here/../node/node.sh" "$@"; }
folder() { (cd "$here/pipelines" && go list -m -f '{{.Dir}}' "$1"); }
apply() { node kubectl apply --server-side -f - >/dev/null; }
temporary=$(mktemp -d)
trap 'rm -rf "$temporary"' EXIT

node image "$image" "$bin"/pipelines/* >/dev/null

# Argo, without its server.
cp -r "$(folder github.com/argoproj/argo-workflows/v3)/manifests" "$temporary/argo"
chmod -R u+w "$temporary/argo"
sed -i '/argo-server/d' "$temporary/argo/cluster-install-no-crds/kustomization.yaml"
node kubectl create namespace argo --dry-run=client -o yaml | apply
node kubectl kustomize "$temporary/argo/base/crds/minimal" | apply
node kubectl kustomize "$temporary/argo/cluster-install-no-crds" |
	sed -E -e "s#image: quay.*#image: $image#" -e "s#args: \[\]#args: [--executor-image, $image, --executor-image-pull-policy, IfNotPresent]#" \
		-e 's#^( *)runAsNonRoot: true#&\n\1runAsUser: 65532#' | apply
# What a pod of a workflow does with its service account.
cat <<-'END' | node kubectl apply -f - >/dev/null
	apiVersion: rbac.authorization.k8s.io/v1
	kind: Role
	metadata: {name: argo-executor, namespace: default}
	rules: [{apiGroups: [argoproj.io], resources: [workflowtaskresults], verbs: [create, patch]}]
	---
	apiVersion: rbac.authorization.k8s.io/v1
	kind: RoleBinding
	metadata: {name: argo-executor, namespace: default}
	roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: argo-executor}
	subjects: [{kind: ServiceAccount, name: default, namespace: default}]
END

# Tekton, without the server of its events.
tekton=$(folder github.com/tektoncd/pipeline)/config
for file in "$tekton"/100-namespace/*.yaml "$tekton"/300-crds/*.yaml "$tekton"/*.yaml; do
	case $file in */events.yaml | */webhook-hpa.yaml) continue ;; esac
	echo "---"
	sed -E -e "s#^( *)image: ko://.*/cmd/(.*)#\1image: $image\n\1command: [/bin/\2]#" -e "s#ko://[^\"]*#$image#g" "$file"
done | apply
for namespace in argo tekton-pipelines; do
	node kubectl -n $namespace rollout status deployment --timeout=3m
done
