# `make help` lists the targets. Building, make demo and make test need Go and git
# alone; CONTRIBUTING.md says what the others need.

SHELL := /bin/bash
BIN := $(CURDIR)/bin
VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
# The version of Kubernetes is stamped in, as its own build does.
KUBERNETES := -X k8s.io/component-base/version.gitVersion=v1.36.3 -X k8s.io/component-base/version.gitMajor=1 -X k8s.io/component-base/version.gitMinor=36
LDFLAGS := -s -w -X main.version=$(VERSION) $(KUBERNETES)
TOOLS := go tool -modfile=$(CURDIR)/tools/go.mod
# One build cache serves binaries and tests: the same flags for both, and cgo
# off only for the two that are copied into other people's pods.
GO_BUILD := go build -buildvcs=false -ldflags="$(LDFLAGS)"
say = @printf '==> %s\n' "$(1)"

.DEFAULT_GOAL := help

.PHONY: help
help: ## List the targets.
	@awk 'BEGIN {FS = ":.*## "} /^[a-z0-9-]+:.*## / {printf "  %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: build
build: controlplane ## Build all binaries into bin/.
	$(call say,building vernier and manager and collector and shim (client-go and kubectl: about 2 minutes the first time))
	@$(GO_BUILD) -o $(BIN)/ ./cmd/vernier ./cmd/manager
	@CGO_ENABLED=0 $(GO_BUILD) -o $(BIN)/ ./cmd/collector ./cmd/shim

.PHONY: controlplane
controlplane: $(BIN)/controlplane ## Build the control plane (etcd, API server, controller manager, scheduler).

$(BIN)/controlplane: controlplane/main.go controlplane/go.mod $(wildcard controlplane/*.go)
	$(call say,building the control plane: etcd and kube-apiserver and kube-controller-manager and kube-scheduler (about 4 minutes the first time on 2 cores))
	@cd controlplane && go build -buildvcs=false -ldflags="-s -w $(KUBERNETES)" -o $(BIN)/controlplane .

# The names under which controller-runtime's envtest looks for its binaries.
ASSETS := $(BIN)/envtest
.PHONY: assets
assets: $(BIN)/controlplane
	@mkdir -p $(ASSETS) && ln -sf ../controlplane $(ASSETS)/etcd && ln -sf ../controlplane $(ASSETS)/kube-apiserver

.PHONY: examples
examples: ## Build the programs of the examples into bin/.
	$(call say,building the program that is tuned: examples/charlm)
	@$(GO_BUILD) -o $(BIN)/charlm ./examples/charlm

.PHONY: demo
demo: build examples ## Tune a small language model on this machine: 24 trials, live, under 3 minutes.
	@PATH="$(BIN):$$PATH" $(BIN)/vernier run -f examples/charlm/experiment.yaml --replace
	$(call say,the control plane keeps running: bin/vernier get trials charlm shows the trials and bin/vernier down stops it)

# One archive for each image, with all architectures: for a registry, or for
# containerd (ctr images import).
ARCHES ?= amd64,arm64
REGISTRY ?= ghcr.io/vernier-ml
.PHONY: images
images: ## Build the container images (OCI archives) and what is in them (SPDX) into bin/images, without a container engine.
	$(call say,building the images of manager, collector, vernier, suggestion and earlystopping for $(ARCHES))
	@cd tools/images && go run . -root $(CURDIR) -out $(BIN)/images -version $(VERSION) -registry $(REGISTRY) -architectures $(ARCHES)

# With the flags of make images, so that both share a build cache. WHEEL_VERNIER is a
# program that is there already: tests take it, as the build is minutes without a cache.
WHEELS ?= $(BIN)/wheels
.PHONY: wheel
wheel: ## Build the wheels of the Python client, with vernier in them, into bin/wheels (needs Python with venv).
	@work=$$(mktemp -d) && trap 'rm -rf "$$work"' EXIT && python3 -m venv "$$work/venv" && for arch in $$(echo $(ARCHES) | tr ',' ' '); do \
		rm -rf "$$work/python" && cp -r clients/python "$$work/python" && \
		{ if [ -n "$(WHEEL_VERNIER)" ]; then install -D "$(WHEEL_VERNIER)" "$$work/python/src/vernier_hpo/bin/vernier"; else \
		CGO_ENABLED=0 GOOS=linux GOARCH=$$arch go build -trimpath -buildvcs=false -ldflags="$(LDFLAGS)" -o "$$work/python/src/vernier_hpo/bin/vernier" ./cmd/vernier; fi; } && \
		"$$work/venv/bin/pip" wheel --quiet --disable-pip-version-check --no-deps --wheel-dir $(WHEELS) \
			--config-settings="--build-option=--plat-name=manylinux2014_$$(echo $$arch | sed 's/amd64/x86_64/; s/arm64/aarch64/')" "$$work/python" || exit 1; \
	done; ls $(WHEELS)

.PHONY: manifest
manifest: build ## Write what installs this version, with its images, into bin/vernier.yaml.
	@$(BIN)/vernier kubectl kustomize config/default | sed 's#ghcr.io/vernier-ml/manager:latest#$(REGISTRY)/manager:$(VERSION)#' > $(BIN)/vernier.yaml
	@echo "$(BIN)/vernier.yaml"

$(BIN)/node: e2e/node/main.go e2e/node/go.mod
	$(call say,building kubelet and kube-proxy and CoreDNS (about 2 minutes after the control plane))
	@cd e2e/node && go build -buildvcs=false -ldflags="-s -w $(KUBERNETES)" -o $(BIN)/node .

.PHONY: node-up
node-up: build $(BIN)/node ## Start two Kubernetes nodes with containerd for tests, in namespaces of its own (root; Debian).
	@VERNIER_BIN_DIR=$(BIN) e2e/node/node.sh up

.PHONY: chart
chart: ## Write the templates of the Helm chart from config/default and config/prometheus.
	@{ printf '# Made by make chart from alerts.yaml.\napiVersion: monitoring.coreos.com/v1\nkind: PrometheusRule\nmetadata:\n  name: vernier\n  namespace: vernier-system\n  labels:\n    app.kubernetes.io/name: vernier\nspec:\n'; \
		sed '/^#/d; s/^./  &/' config/prometheus/alerts.yaml; } > config/prometheus/prometheusrule.yaml
	@cd tools/chart && go run . -config $(CURDIR)/config/default -out $(CURDIR)/charts/vernier/templates

# E2E_TESTS chooses some of them; VERNIER_SOAK_TRIALS and VERNIER_SOAK_KILLS make the
# kills more. The node is there afterwards: make node-down.
E2E_TESTS ?= TestBroken|TestCollectors|TestEarlyStopping|TestTrialsGoOn|TestARunAway|TestTrialsSay|TestRestricted|TestAPrivateImage|TestDisruptions|TestExperimentsAre|TestKillsOnACluster|TestADeadManager|TestALostNode|TestADrainedNode|TestUpgrade|TestUninstall|TestRemoved
# The commit whose chart and images are upgraded, with trials running.
E2E_PREVIOUS ?= HEAD~1
.PHONY: e2e-cluster
e2e-cluster: node-up $(BIN)/helm ## Install on that node, and run the tests that speak the Kubernetes API there: about 25 minutes.
	@$(MAKE) -s images ARCHES=$$(go env GOARCH)
	$(call say,running the tests on the node)
	@VERNIER_BIN_DIR=$(BIN) e2e/node/suite.sh '$(VERSION)' '$(REGISTRY)' '$(E2E_TESTS)' '$(E2E_PREVIOUS)'

# What is built are the controllers, and no control plane.
$(BIN)/operators/kueue: e2e/operators/go.mod
	$(call say,building the training operator and JobSet and Trainer and Kueue (about 5 minutes the first time))
	@cd e2e/operators && CGO_ENABLED=0 go build -buildvcs=false -ldflags="-s -w" -o $(BIN)/operators/ tool && touch $(BIN)/operators/*

$(BIN)/pipelines/controller: e2e/operators/pipelines/go.mod
	$(call say,building the controllers of Argo Workflows and Tekton Pipelines (about 5 minutes the first time))
	@e2e/operators/pipelines/build.sh $(BIN)/pipelines

.PHONY: e2e-operators
e2e-operators: node-up $(BIN)/helm $(BIN)/operators/kueue $(BIN)/pipelines/controller ## Run trials under the training operator, JobSet, Trainer, Kueue, Argo and Tekton, most of them on that node: about 15 minutes.
	@$(MAKE) -s images ARCHES=$$(go env GOARCH)
	$(call say,installing the operators)
	@VERNIER_BIN_DIR=$(BIN) e2e/operators/operators.sh
	@VERNIER_BIN_DIR=$(BIN) e2e/operators/pipelines.sh
	@VERNIER_BIN_DIR=$(BIN) e2e/node/suite.sh '$(VERSION)' '$(REGISTRY)' 'TestOperators|TestKueue|TestPipelines' ''
	@VERNIER_BIN_DIR=$(BIN) go test -buildvcs=false -tags=e2e -count=1 -timeout 10m -v -run TestTrainJobsOnAnInstance ./e2e

.PHONY: bench-cluster
bench-cluster: ## Measure trials beside bare Jobs on that node, where make e2e-cluster E2E_TESTS=none has installed Vernier: 7 minutes.
	@CGO_ENABLED=0 $(GO_BUILD) -o $(BIN)/bench-throughput ./bench/throughput
	@$(BIN)/bench-throughput -kubeconfig $${VERNIER_NODE_DIR:-/var/lib/vernier-node}/kubeconfig -trials 12 -parallel 3 -work 2s -rounds 2
	@$(BIN)/bench-throughput -kubeconfig $${VERNIER_NODE_DIR:-/var/lib/vernier-node}/kubeconfig -trials 60 -parallel 20 -work 100ms -rounds 2

$(BIN)/helm: tools/chart/go.mod
	$(call say,building helm (about a minute))
	@cd tools/chart && go build -buildvcs=false -ldflags="-X helm.sh/helm/v3/pkg/chartutil.k8sVersionMajor=1 -X helm.sh/helm/v3/pkg/chartutil.k8sVersionMinor=36" -o $(BIN)/helm helm.sh/helm/v3/cmd/helm

.PHONY: node-down
node-down: ## End that node, and remove what it left.
	@VERNIER_BIN_DIR=$(BIN) e2e/node/node.sh down

.PHONY: test
test: build assets ## Run all tests.
	$(call say,running the tests)
	@KUBEBUILDER_ASSETS=$(ASSETS) VERNIER_BIN_DIR=$(BIN) go test -buildvcs=false -timeout 20m ./...
	@cd controlplane && go vet ./...
	@cd tools/images && go vet ./... && go test -buildvcs=false ./...
	@cd tools/chart && go vet ./... && go test -buildvcs=false ./...
	@cd bench/suggest && go vet ./... && go test -buildvcs=false ./...
	@if $(MAKE) -s node-is-new; then $(MAKE) -s web-browser-test; \
	else echo "NOT RUN: the tests of the dashboard in a browser: they need npm and Node 20.19 or later" >&2; fi

.PHONY: node-is-new
node-is-new: # Whether the dashboard can be built here.
	@command -v npm >/dev/null && node -e 'const [a, b] = process.versions.node.split("."); process.exit(+a > 20 || (+a == 20 && +b >= 19) ? 0 : 1)'

$(BIN)/promtool: tools/rules/go.mod
	$(call say,building promtool (about 2 minutes))
	@cd tools/rules && go build -buildvcs=false -tags remove_all_sd -o $(BIN)/promtool github.com/prometheus/prometheus/cmd/promtool

.PHONY: rules-test
rules-test: $(BIN)/promtool ## Test the alerts, and that they and the dashboard ask for metrics that there are.
	@cd config/prometheus && $(BIN)/promtool check rules --lint=all --lint-fatal alerts.yaml && $(BIN)/promtool test rules alerts_test.yaml
	@cd tools/rules && go vet ./... && go test -buildvcs=false ./...

.PHONY: lint
lint: ## Run the linter, which also holds the import fences.
	$(TOOLS) golangci-lint run ./...

.PHONY: generate
generate: web/node_modules ## Generate deep copies, CRDs, protocol code and the reference of the command line.
	go tool controller-gen object crd:crdVersions=v1,maxDescLen=200,allowDangerousTypes=true paths=./api/v1beta1 output:crd:dir=config/crd/bases
	./api/proto/generate.sh
	go test ./cmd/vernier -run TestTheReferenceIsUpToDate -update

# npm ci takes exactly what web/package-lock.json says, from the registry of the
# machine: the file records no addresses.
web/node_modules: web/package.json web/package-lock.json
	@cd web && npm ci --silent && touch node_modules

.PHONY: web
web: web/node_modules ## Build the dashboard into web/dist (Node 20 or later).
	@cd web && npm run --silent build -- --logLevel warn

.PHONY: web-test
web-test: web ## Test the dashboard, and that web/dist is what its sources build to.
	@git diff --exit-code --stat -- web/dist && test -z "$$(git ls-files --others --exclude-standard web/dist)" || { echo "web/dist is not what the sources build to: run make web and commit"; exit 1; }
	@cd web && npm test --silent

.PHONY: web-browser-test
web-browser-test: web build ## Test the dashboard in Chromium, and measure it with 10,000 trials.
	@cd web && npm run --silent test-browser

.PHONY: verify
verify: generate web ## Check that what is generated is committed, and that the code is formatted and vetted.
	@test -z "$$(gofmt -l $$(git ls-files '*.go'))" || { echo "not formatted:"; gofmt -l $$(git ls-files '*.go'); exit 1; }
	go vet ./...
	@git diff --exit-code -- api config docs/cli-reference.md server/api/openapi.yaml web/src/api/gen web/dist || { echo "generated files differ: run make generate web and commit"; exit 1; }

.PHONY: bench
bench: build ## Measure trials a second beside bare Jobs, in one run.
	@$(GO_BUILD) -o $(BIN)/bench-throughput ./bench/throughput
	@PATH="$(BIN):$$PATH" $(BIN)/bench-throughput

.PHONY: bench-api
bench-api: build ## Measure the programmatic API: cycles a second, and questions in a study of 10,000 trials; 6 minutes.
	@$(GO_BUILD) -o $(BIN)/bench-throughput ./bench/throughput
	@PATH="$(BIN):$$PATH" $(BIN)/bench-throughput -ask random -parallel 64 -trials 2000
	@PATH="$(BIN):$$PATH" $(BIN)/bench-throughput -ask tpe -parallel 8 -trials 10000

.PHONY: bench-store
bench-store: ## Measure the stores of points, with servers of its own: speed, and bytes for each point.
	@go test -buildvcs=false -tags=e2e -run '^$$' -bench Store -benchtime 100x -timeout 30m ./e2e

.PHONY: bench-suggest-smoke
bench-suggest-smoke: ## Play a small part of the benchmark of the algorithms beside other tuners: 10 minutes.
	@cd bench/suggest && $(GO_BUILD) -o $(BIN)/bench-suggest .
	@rm -f $(BIN)/bench-suggest-results/smoke.jsonl
	@$(BIN)/bench-suggest smoke -version $(VERSION) -out $(BIN)/bench-suggest-results/smoke.jsonl

# Results are kept in the repository, so that games add up; REAL adds flags.
.PHONY: bench-suggest-real
bench-suggest-real: ## Tune real trainings, live ones and tables, beside Optuna: the half to develop with; it goes on where it was stopped.
	@cd bench/suggest && $(GO_BUILD) -o $(BIN)/bench-suggest .
	@$(BIN)/bench-suggest real -seeds 10 $(REAL)

.PHONY: bench-suggest-verdict
bench-suggest-verdict: ## Play the verdict half of the real trainings, days of one core, and write docs/benchmarks-real.md; it goes on where it was stopped.
	@cd bench/suggest && $(GO_BUILD) -o $(BIN)/bench-suggest .
	@$(BIN)/bench-suggest real -verdict -seeds 20 -budget 100 -method auto,tpe,random -peers optuna-tpe,hyperopt-tpe,nevergrad-ngopt,smac-forest,optuna-gp,optuna-auto,hebo-default $(REAL)

.PHONY: bench-suggest
bench-suggest: ## Play what docs/benchmarks.md shows, seed by seed, and write it; it goes on where it was stopped.
	@cd bench/suggest && $(GO_BUILD) -o $(BIN)/bench-suggest .
	@$(BIN)/bench-suggest full -version $(VERSION) -out $(BIN)/bench-suggest-results/full.jsonl

.PHONY: bench-collector
bench-collector: build ## Measure the collector beside TensorBoard's readers, and the report service with 1,000 trials; writes docs/benchmarks-collector.md.
	@$(GO_BUILD) -o $(BIN)/bench-collector ./bench/collector
	@$(BIN)/bench-collector -collector $(BIN)/collector -venv $(BIN)/venv-tensorboard

# The seed is printed; TORTURE_SEED repeats the kills, though not their moments.
.PHONY: torture
torture: ## Kill the collector, the report service and the store, 100 times each, under 24 kinds of writers: 15 minutes.
	TORTURE_KILLS=$${TORTURE_KILLS:-100} go test -buildvcs=false -count=1 -timeout 60m -parallel 6 -v ./collector/torture

# One finding ends it: the input then lies with the package, to be committed with
# what puts it right.
FUZZ_TIME ?= 10m
FUZZ_PROCS ?= 1
.PHONY: fuzz
fuzz: ## Fuzz all that the collector reads, one function after another: FUZZ_TIME each (10m), with FUZZ_PROCS workers (1).
	@set -eo pipefail; \
	go test -buildvcs=false -list '^Fuzz' ./collector/... | \
	awk '/^Fuzz/ {names[++n] = $$1} /^ok/ {for (i = 1; i <= n; i++) print $$2, names[i]; n = 0}' | \
	while read -r package name; do \
		printf '==> fuzzing %s of %s for %s\n' "$$name" "$$package" "$(FUZZ_TIME)"; \
		go test -buildvcs=false -timeout 0 -run '^$$' -fuzz "^$$name\$$" -fuzztime "$(FUZZ_TIME)" -parallel "$(FUZZ_PROCS)" "$$package" < /dev/null || { \
			printf '%s\n' "==> $$name found an input that fails. It is named above, and lies in" "    $$(go list -f '{{.Dir}}' "$$package")/testdata/fuzz/$$name"; \
			exit 1; }; \
	done

.PHONY: e2e
e2e: build examples assets ## Run whole instances: kill each component in turn, try broken experiments, and each kind of collector and store.
	@KUBEBUILDER_ASSETS=$(ASSETS) VERNIER_BIN_DIR=$(BIN) VERNIER_E2E_REPORT=$(BIN)/e2e-instance.tsv go test -buildvcs=false -tags=e2e -count=1 -timeout 30m -v ./e2e
	@KUBEBUILDER_ASSETS=$(ASSETS) go test -buildvcs=false -tags=e2e -count=1 -v -run TestReplicas ./cmd/manager
	@go test -buildvcs=false -tags=e2e -count=1 -v -run TestEveryServerKeepsTheContract ./collector/store
	@VERNIER_BIN_DIR=$(BIN) go test -buildvcs=false -tags=e2e -count=1 -timeout 30m -v -run TestBlocks .

# The seed is printed; VERNIER_SOAK_SEED repeats what is killed, though not when.
.PHONY: soak
soak: build ## Run 300 trials under 100 random kills and 10 reboots in miniature, and a run-away experiment for 10 minutes: about half an hour.
	@VERNIER_BIN_DIR=$(BIN) VERNIER_SOAK_TRIALS=$${VERNIER_SOAK_TRIALS:-300} VERNIER_SOAK_KILLS=$${VERNIER_SOAK_KILLS:-100} \
		VERNIER_SOAK_REBOOTS=$${VERNIER_SOAK_REBOOTS:-10} VERNIER_RUNAWAY=10m \
		go test -buildvcs=false -tags=e2e -count=1 -timeout 3h -v -run 'TestSoak|TestARunAway' ./e2e

# The packages that write event files take 7 GB, most of it what PyTorch brings
# along for GPUs. WRITERS chooses some of them, PIP_FLAGS is for pip.
WRITERS ?= tensorboard tensorboardX torch tensorflow keras lightning transformers
WRITERS_VENV := $(BIN)/writers
WRITERS_ALL := $(subst transformers,transformers accelerate,$(subst keras,tensorflow-cpu,$(subst tensorflow,tensorflow-cpu,$(WRITERS))))
.PHONY: e2e-writers
e2e-writers: ## Read files that TensorBoard, PyTorch, Keras, Lightning and Transformers write (Python; 7 GB of packages).
	$(call say,installing $(WRITERS) into $(WRITERS_VENV))
	@python3 -m venv $(WRITERS_VENV) && $(WRITERS_VENV)/bin/pip install -q --no-cache-dir $(PIP_FLAGS) tensorboard setuptools $(WRITERS_ALL)
	@VERNIER_WRITERS_PYTHON=$(WRITERS_VENV)/bin/python VERNIER_WRITERS="$(WRITERS)" \
		go test -buildvcs=false -tags=writers -count=1 -timeout 30m -v -run 'Real|TensorBoardShows' ./collector/source/events

# FRAMEWORKS chooses some of them. Keras trains with PyTorch here. The examples of several
# ranks are also tuned by an ordinary user if FRAMEWORKS_VENV is where every user can read
# it, such as /opt/frameworks, and so is the python3 that it is made of.
FRAMEWORKS ?= tqdm xgboost lightgbm catboost torch keras tf_keras lightning transformers accelerate mmengine fastai ultralytics wandb
FRAMEWORKS_VENV ?= $(BIN)/frameworks
.PHONY: e2e-frameworks
e2e-frameworks: build ## Train with each framework of docs/collectors-text.md and compare what is read; tune the examples of PyTorch and TensorFlow of several ranks (Python; 10 GB of packages).
	$(call say,installing $(FRAMEWORKS) into $(FRAMEWORKS_VENV))
	@python3 -m venv $(FRAMEWORKS_VENV) && $(FRAMEWORKS_VENV)/bin/pip install -q --no-cache-dir $(PIP_FLAGS) $(patsubst keras,keras torch,$(patsubst xgboost,xgboost-cpu,$(FRAMEWORKS)))
	@VERNIER_BIN_DIR=$(BIN) VERNIER_FRAMEWORKS_PYTHON=$(FRAMEWORKS_VENV)/bin/python VERNIER_FRAMEWORKS="$(FRAMEWORKS)" \
		go test -buildvcs=false -tags=e2e -count=1 -timeout 60m -v -run 'WhatFrameworksPrint|OfSeveralRanks' ./e2e

.PHONY: clean
clean: ## Remove what was built.
	rm -rf $(BIN)
