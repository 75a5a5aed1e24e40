#!/usr/bin/env bash
# Installs Vernier on the node of node.sh and runs the end-to-end tests there whose names
# match an expression: first the chart and the images of an earlier commit, which are
# upgraded while trials run, then those of bin/images; at the end it removes everything.
#
#   suite.sh VERSION REGISTRY TESTS PREVIOUS-COMMIT
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
bin=$(cd "${VERNIER_BIN_DIR:-$root/bin}" && pwd)
state=${VERNIER_NODE_DIR:-/var/lib/vernier-node}
version=$1 registry=$2 tests=$3 previous=$4
export KUBECONFIG=$state/kubeconfig
node() { VERNIER_BIN_DIR=$bin "$here/node.sh" "$@"; }
temporary=$(mktemp -d)
trap 'rm -rf "$temporary"' EXIT

# These are commands of docs/install.md; tests run them too.
helm_with() { echo "'$bin/helm' $1 vernier '$2/charts/vernier' --namespace vernier-system --set-string 'image.registry=$registry,image.tag=$3'"; }
install="$(helm_with 'upgrade --install --create-namespace --wait --timeout 3m' "$root" "$version") >/dev/null &&
	'$here/node.sh' kubectl label namespace vernier-system --overwrite pod-security.kubernetes.io/enforce=restricted >/dev/null"
uninstall="'$bin/helm' uninstall vernier --namespace vernier-system --ignore-not-found --wait"
remove="'$here/node.sh' kubectl delete experiments --all-namespaces --all --ignore-not-found && $uninstall &&
	'$here/node.sh' kubectl delete --ignore-not-found crd/experiments.kubeflow.org crd/trials.kubeflow.org crd/suggestions.kubeflow.org clusterrole/vernier-manager-kinds clusterrole/vernier-webhook-owners namespace/vernier-system"

# run NAME EXPRESSION runs tests and keeps their lines of the table.
status=0
run() {
	(cd "$root/e2e" && VERNIER_BIN_DIR=$bin VERNIER_E2E_KUBECONFIG=$KUBECONFIG VERNIER_E2E_IMAGE=vernier.test/e2e:1 VERNIER_E2E_PROGRAM=/bin/e2e.test \
		VERNIER_E2E_REPORT=$bin/e2e-cluster-$1.tsv "$bin/e2e.test" -test.v -test.timeout 40m -test.run "$2") || status=$?
}
chosen() { [[ $1 =~ $tests ]]; }

# not_run NAME TEST WHY says, there and in the table, what this run lacks.
not_run() {
	echo "NOT RUN: $3" >&2
	printf '%s\tcluster\tNOT RUN\t-\n' "$2" >"$bin/e2e-cluster-$1.tsv"
}

# install_previous installs the earlier commit. It fails where the clone does not have it.
install_previous() {
	if ! git -C "$root" archive "$previous" >"$temporary/previous.tar" 2>"$temporary/error"; then
		not_run upgrade TestUpgrade "the upgrade from $previous, which this clone does not have (a shallow one?): $(cat "$temporary/error")"
		return 1
	fi
	mkdir "$temporary/previous"
	tar -x -C "$temporary/previous" -f "$temporary/previous.tar"
	echo "==> installing the chart and the images of $previous ($(git -C "$root" log -1 --format='%h %s' "$previous"))"
	make -s -C "$temporary/previous" images "ARCHES=$(go env GOARCH)" VERSION=previous "REGISTRY=$registry" &&
		node load "$temporary"/previous/bin/images/{manager,collector}.tar >/dev/null &&
		eval "$(helm_with 'install --wait --timeout 3m' "$temporary/previous" previous)" >/dev/null ||
		{ status=1 && echo "FAILED: $previous cannot be installed" >&2 && return 1; }
}

node load "$bin"/images/{manager,collector,vernier}.tar >/dev/null
(cd "$root/e2e" && CGO_ENABLED=0 go test -c -buildvcs=false -tags=e2e -o "$bin/e2e.test" .)
node image vernier.test/e2e:1 "$bin/e2e.test" >/dev/null
node kubectl create configmap vernier-e2e --dry-run=client -o yaml | node kubectl apply -f - >/dev/null
rm -f "$bin"/e2e-cluster*.tsv

# What a run before this one left, if it was interrupted.
if node kubectl get crd experiments.kubeflow.org >/dev/null 2>&1; then eval "$remove"; fi
node kubectl create namespace vernier-system --dry-run=client -o yaml | node kubectl apply -f - >/dev/null
node kubectl label namespace vernier-system --overwrite pod-security.kubernetes.io/{enforce,warn}=restricted >/dev/null

echo "==> helm template | kubectl apply --dry-run=server"
eval "$(helm_with template "$root" "$version")" | node kubectl apply --server-side --dry-run=server -f - 2>"$temporary/warnings" >/dev/null ||
	{ cat "$temporary/warnings" && exit 1; }
[ ! -s "$temporary/warnings" ] || { echo "the API server warns:" && cat "$temporary/warnings" && exit 1; } >&2

if chosen TestUpgrade && install_previous; then
	VERNIER_E2E_UPGRADE=$install run upgrade '^TestUpgrade$'
fi
echo "==> installing"
eval "$install"
VERNIER_E2E_INSTALL=$install VERNIER_E2E_UNINSTALL=$uninstall run suite "$tests"
if chosen TestKillsOnACluster; then
	if compgen -G '/usr/lib/postgresql/*/bin/postgres' >/dev/null; then
		echo "==> with PostgreSQL and two managers"
		node kubectl apply -f "$here/postgres.yaml" >/dev/null
		node kubectl -n database rollout status statefulset/postgres --timeout=2m
		eval "${install/--wait/--wait --values \'$here/postgres-values.yaml\'}"
		run postgres '^TestKillsOnACluster$'
		eval "$install"
		node kubectl delete namespace database --wait=false
	else
		not_run postgres TestKillsOnACluster/PostgreSQL "kills with PostgreSQL, which needs Debian's package postgresql"
	fi
fi
if chosen TestRemoved; then
	VERNIER_E2E_REMOVE=$remove run removal '^TestRemoved'
fi
echo
for report in "$bin"/e2e-{instance,cluster*}.tsv; do
	[ ! -e "$report" ] || cat "$report" # that of make e2e, if it was run
done | sort | awk -F'\t' '{printf "%-55s %-9s %-7s %6s\n", $1, $2, $3, $4}'
exit $status
