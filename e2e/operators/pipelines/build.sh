#!/usr/bin/env bash
# Builds the controllers of Argo Workflows and Tekton Pipelines, and what they put into
# pods, into a folder. argoexec needs a file that Argo's module lacks: signal_linux.go.
set -euo pipefail

out=$(mkdir -p "$1" && cd "$1" && pwd)
cd "$(dirname "$0")"
module=github.com/argoproj/argo-workflows/v3
temporary=$(mktemp -d)
trap 'rm -rf "$temporary"' EXIT

go mod download "$module"
cp -r --no-preserve=mode "$(go list -m -f '{{.Dir}}' "$module")" "$temporary/argo"
cp signal_linux.go "$temporary/argo/workflow/executor/osspecific/"
cp go.mod "$temporary/pipelines.mod"
cp go.sum "$temporary/pipelines.sum"
go mod edit -replace "$module=$temporary/argo" "$temporary/pipelines.mod"
CGO_ENABLED=0 go build -buildvcs=false -trimpath -modfile "$temporary/pipelines.mod" -ldflags="-s -w" -o "$out/" tool
touch "$out"/*
