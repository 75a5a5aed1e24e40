#!/usr/bin/env bash
# Installs the Helm chart with the images of bin/images on the node of node.sh, and runs
# the end-to-end tests there whose names match an argument.
#
#   suite.sh VERSION REGISTRY TESTS
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
bin=$(cd "${VERNIER_BIN_DIR:-$here/../../bin}" && pwd)
state=${VERNIER_NODE_DIR:-/var/lib/vernier-node}
node() { VERNIER_BIN_DIR=$bin "$here/node.sh" "$@"; }

node load "$bin"/images/{manager,collector,vernier}.tar >/dev/null
(cd "$here/.." && CGO_ENABLED=0 go test -c -buildvcs=false -tags=e2e -o "$bin/e2e.test" .)
node image vernier.test/e2e:1 "$bin/e2e.test" >/dev/null

version=$1 registry=$2 tests=$3
export KUBECONFIG=$state/kubeconfig
for run in install upgrade; do
	echo "==> $run"
	"$bin/helm" upgrade --install vernier "$here/../../charts/vernier" --namespace vernier-system --create-namespace \
		--set "image.registry=$registry,image.tag=$version" --wait --timeout 3m >/dev/null
	node kubectl label namespace vernier-system --overwrite pod-security.kubernetes.io/enforce=restricted >/dev/null
done
node kubectl create configmap vernier-e2e --dry-run=client -o yaml | node kubectl apply -f - >/dev/null

cd "$here/.."
status=0
VERNIER_BIN_DIR=$bin VERNIER_E2E_KUBECONFIG=$state/kubeconfig VERNIER_E2E_IMAGE=vernier.test/e2e:1 VERNIER_E2E_PROGRAM=/bin/e2e.test \
	VERNIER_E2E_REPORT=$bin/e2e-cluster.tsv "$bin/e2e.test" -test.v -test.timeout 40m -test.run "$tests" || status=$?
echo
for report in "$bin"/e2e-{instance,cluster}.tsv; do
	[ ! -e "$report" ] || cat "$report" # that of make e2e, if it was run
done | sort | awk -F'\t' '{printf "%-55s %-9s %-7s %6s\n", $1, $2, $3, $4}'
exit $status
