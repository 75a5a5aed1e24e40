#!/bin/sh
# Writes the Go code of all .proto files beside them, the code of the dashboard, and
# server/api/openapi.yaml. Needs protoc (Debian and Ubuntu: protobuf-compiler) and the
# packages of web/ (make web/node_modules); the other plugins are tools of Go modules.
set -eu
cd "$(dirname "$0")/../.."

if ! command -v protoc >/dev/null; then
	echo "generate.sh: protoc not found; install it (Debian: apt-get install protobuf-compiler)" >&2
	exit 1
fi

plugins=$(mktemp -d)
trap 'rm -rf "$plugins"' EXIT
for tool in protoc-gen-go protoc-gen-connect-go; do
	printf '#!/bin/sh\nexec go tool %s "$@"\n' "$tool" >"$plugins/$tool"
	chmod +x "$plugins/$tool"
done
printf '#!/bin/sh\nexec go tool -modfile=tools/openapi/go.mod protoc-gen-connect-openapi "$@"\n' >"$plugins/protoc-gen-connect-openapi"
chmod +x "$plugins/protoc-gen-connect-openapi"

PATH="$plugins:$PATH" protoc --proto_path=api/proto \
	--plugin=protoc-gen-es=web/node_modules/.bin/protoc-gen-es --es_out=web/src/api/gen --es_opt=target=ts \
	--connect-openapi_out=server/api --connect-openapi_opt=path=openapi.yaml,content-types=json,base=api/proto/openapi.base.yaml \
	vernier/v1/experiment.proto vernier/v1/dashboard.proto

PATH="$plugins:$PATH" protoc --proto_path=api/proto \
	--go_out=api/proto --go_opt=paths=source_relative \
	--connect-go_out=api/proto --connect-go_opt=paths=source_relative,simple,package_suffix \
	vernier/v1/report.proto vernier/v1/experiment.proto vernier/v1/dashboard.proto katib/v1beta1/dbmanager.proto katib/v1beta1/suggestion.proto
