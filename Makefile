# Requires GNU make, Go, git and a POSIX shell, and for `make race` and the image of nodes a C compiler. Other tools are built from source, and the programs of
# Kubernetes downloaded or built, into a cache folder ($SNO_CACHE, or sno/ in the user's cache folder) on first use.

SHELL := /bin/sh
.DEFAULT_GOAL := help

# The flags of every build, Kubernetes' own programs included, so that a package is compiled once for all, in whatever folder the clone is.
export CGO_ENABLED := 0
# Programs have no debug information: they are smaller, and linked faster.
export GOFLAGS := $(shell go env GOFLAGS) -trimpath -buildvcs=false -ldflags=-s
# The linter vets.
TEST := go test -vet=off -timeout=30m
# Half as many garbage collections for more memory, in API servers too.
export GOGC ?= 200

MODULES := $(shell sed -n 's|^[[:space:]]*\./\([^[:space:]]*\).*|\1|p' go.work)
# The folder of the module that % names.
dir = $(or $(filter $* %/$*,$(MODULES)),$(error no module is called "$*"; there are: $(notdir $(MODULES))))
# Programs for tests with a real API server.
with-kube-assets = KUBEBUILDER_ASSETS=$${KUBEBUILDER_ASSETS:-$$(go run ./testcluster/cmd/kube-assets)} && export KUBEBUILDER_ASSETS

.PHONY: help
help: ## Show these targets; CONTRIBUTING.md describes the others
	@awk -F ':.*## ' '/^[a-z0-9%-]+:.*## / { printf "  make %-14s %s\n", $$1, $$2 }' Makefile

MUST_GATHER ?= cli/testdata/gather/sno-with-workers/input
.PHONY: plan run shell
plan: ## What the modules would change on a cluster, from its must-gather: MUST_GATHER=folder
	@go run ./cli/cmd/kubectl-sno plan --must-gather '$(MUST_GATHER)'
run: ## The controllers on an embedded cluster; ONCE=1 ends after the checks, SCENARIO=name selects another (RUN_FLAGS=-list)
	@go run ./e2e/cmd/sno-run $(RUN_FLAGS) $(if $(SCENARIO),-scenario='$(SCENARIO)') $(if $(ONCE),-once)
shell: ## A shell with kubectl, kubectl-sno and sno-tests on such a cluster without controllers; its end removes the cluster
	@go run ./e2e/cmd/sno-run -shell $(RUN_FLAGS) $(if $(SCENARIO),-scenario='$(SCENARIO)')

# What starts clusters is in Ginkgo suites: Go's cache of results does not know what that depends on. The tables beside them run here.
SUITES := Bench|Faults|Fleet|Kubelets|Machines|Modules|Vendored
UNIT_TEST := $(TEST) -skip='^Test($(SUITES))$$'
UNIT = go list $(addprefix ./,$(addsuffix /...,$(filter-out testcluster/kube,$(MODULES))))
.PHONY: test race
test: ## Tests of all modules, without those that start clusters; results of unchanged packages come from Go's cache
	@$(with-kube-assets) && $(UNIT_TEST) -short -p 4 $$($(UNIT))
test-%:
	@$(with-kube-assets) && $(UNIT_TEST) -short $$($(UNIT) | grep -E '^github.com/solonode/sno/(testcluster/modules/)?$(dir)(/|$$)')
# The packages that start goroutines.
RACE := approver/approve approver/controller conformance/disturb conformance/existing conformance/extension conformance/runner conformance/traffic \
	fleet/controller patch/controller patch/run install/command install/credentials install/gather install/preflight render/loop \
	$(addprefix testcluster/modules/,approver approver/approve console etcdguard machineconfig patch/apply patch/run)
race: ## The packages that start goroutines, with the race detector (needs a C compiler)
	@$(with-kube-assets) && CGO_ENABLED=1 GORACE=atexit_sleep_ms=50 $(TEST) -race -short $(addprefix ./,$(RACE))

.PHONY: verify lint generate versions
verify: ## All checks except tests: versions, boundaries, generated files, documents, lint
	@go run -C hack ./cmd/verify
verify-%:
	@go run -C hack ./cmd/verify '$(dir)'
lint:
	@tools/run golangci-lint run $(addprefix ./,$(addsuffix /...,$(filter-out testcluster/kube,$(MODULES))))
lint-%:
	@tools/run golangci-lint run './$(dir)/...'
generate: ## Write generated files, such as RBAC roles from markers
	@go run -C hack ./cmd/verify -generate
versions:
	@go run -C hack ./cmd/versions

# The Ginkgo suites of e2e: LABELS selects specs, GINKGO_FLAGS such as --focus=REGEXP or --seed=1 are Ginkgo's, PROCS is how many run at the same
# time. Each has a folder for reports and logs, and flags of its own after them: GINKGO_FLAGS=--dry-run and e2e/README.md list what there is.
CONFORMANCE_OUT ?= .conformance
OUT = .conformance/$(@:e2e-%=%)
GINKGO = mkdir -p '$(abspath $(OUT))' && go run -C e2e github.com/onsi/ginkgo/v2/ginkgo -v --vet=off $(if $(MAKE_TERMOUT),,--no-color) --timeout=12h \
	--poll-progress-after=10m --procs='$(PROCS)' --output-dir='$(abspath $(OUT))' --junit-report=specs.xml --label-filter='$(LABELS)' $(GINKGO_FLAGS)
FLAGS = -- -test.run='^Test($(SUITES))$$' -out='$(abspath $(OUT))'
PROCS := 1
.PHONY: suite conformance conformance-vendored conformance-baseline conformance-controls
conformance conformance-baseline conformance-vendored e2e: OUT := $(CONFORMANCE_OUT)
conformance conformance-baseline conformance-vendored conformance-controls e2e proof: PROCS := 4
chosen = && $(if $(DISRUPTIVE),disturbed,undisturbed)$(if $(SCENARIOS), && ($(SCENARIOS)))
suite: # One suite: SUITE=modules, LABELS='none-sno && baseline'; a failed spec prints its own command.
	@$(GINKGO) ./$(SUITE) $(FLAGS) $(SUITE_FLAGS)
suite: OUT = .conformance/$(SUITE)
conformance: LABELS = sno $(chosen)
conformance: ## The conformance suite on every scenario, or on KUBECONFIG=file; DISRUPTIVE=1 for all tiers; SCENARIOS='none-sno || ha'
ifeq ($(origin KUBECONFIG),command line)
	@go run ./conformance/cmd/sno-tests run --kubeconfig '$(abspath $(KUBECONFIG))' --tiers 'static,scheduled$(if $(DISRUPTIVE),$(comma)disruptive)' \
		$(if $(IMAGE),--image '$(IMAGE)') -o '$(abspath $(CONFORMANCE_OUT))/existing'
else
	@$(GINKGO) ./modules $(FLAGS) $(CONFORMANCE_FLAGS)
endif
comma := ,
# The same with stand-ins for the stock operators: exactly the expected checks must fail.
conformance-baseline: LABELS = baseline $(chosen)
conformance-baseline:
	@$(GINKGO) ./modules $(FLAGS) $(CONFORMANCE_FLAGS)
# The same with operators that vendor the modules, without controllers.
conformance-vendored: LABELS = vendored $(chosen)
conformance-vendored:
	@$(GINKGO) ./modules $(FLAGS) $(CONFORMANCE_FLAGS)
# Faults of embedded clusters, which the checks that evaluate a record must detect; CONTROLS=regexp selects.
conformance-controls: LABELS = controls
conformance-controls:
	@$(GINKGO) $(if $(CONTROLS),--focus='$(CONTROLS)') ./modules $(FLAGS)

.PHONY: e2e proof soak guides
e2e: LABELS := smoke
e2e: ## The modules, the suite and faults on embedded clusters: a fixed part of `make nightly`
	@$(GINKGO) ./modules ./vendored $(FLAGS)
	@$(MAKE) --no-print-directory soak N=6
proof: LABELS := !conformance && !controls
proof: # Everything else that -short leaves out, in every package, and every spec on embedded clusters: every crash, every kind of cluster.
	@$(with-kube-assets) && $(UNIT_TEST) -shuffle=on -timeout=3h -p 2 -parallel=4 $$($(UNIT))
	@$(GINKGO) ./modules ./vendored $(FLAGS)
# N kills of the controllers, a bad API server, two leaders, or one of them: ONLY=kills, bad or leaders. SOAK_FLAGS such as -seed=2.
N ?= 20
soak: PROCS := 2
soak: LABELS = $(ONLY)
soak:
	@$(GINKGO) ./faults $(FLAGS) -kills='$(N)' $(SOAK_FLAGS)
guides: # The commands of the documents: GUIDES=docs/undo.md runs one, UPDATE=1 writes what they print.
	@$(with-kube-assets) && $(TEST) -count=1 -parallel=2 ./e2e/guides -run='^TestGuides$$/^$(or $(subst /,$$/^,$(GUIDES)),.*)$$' $(if $(UPDATE),-args -update)

.PHONY: fleet
fleet: LABELS := rollout
fleet: N = 3
fleet: ## A hub and N spokes: a rollout that stops at one that fails; ONCE=1 undoes it, without it is inspected until Ctrl-C
	@$(GINKGO) ./fleet $(FLAGS) -spokes='$(N)' $(if $(ONCE),,-inspect)

# Real kubelets and machines need a container engine: a running one, or that of hack/engine.
.PHONY: e2e-kind e2e-kind-interrupt e2e-kubernetes kind kind-delete e2e-node e2e-boot e2e-machine payload boot
e2e-kind: PROCS := 2
e2e-kind: LABELS := !opt-in
e2e-kind: ## The modules on real kubelets in containers; needs a container engine (hack/engine start)
	@$(GINKGO) ./kubelets $(FLAGS) $(KIND_FLAGS)
e2e-kind-interrupt: LABELS := interrupt
e2e-kind-interrupt: # Ctrl-C in every phase of e2e-kind leaves nothing behind.
	@$(GINKGO) ./kubelets $(FLAGS)
e2e-kubernetes: LABELS := kubernetes && !images
e2e-kubernetes: # Kubernetes' own conformance tests, with the modules on and off: an hour and a half.
	@$(GINKGO) ./kubelets $(FLAGS) $(KUBERNETES_FLAGS)
NAME ?= sno
kind: # An empty cluster of real kubelets that stays: NAME=sno, CLUSTER_FLAGS=-help
	@go run ./testcluster/cmd/kind-cluster -name '$(NAME)' $(CLUSTER_FLAGS)
kind-delete: # Removes a cluster of real kubelets: NAME=sno
	@go run ./testcluster/cmd/kind-cluster -name '$(NAME)' -delete
e2e-node: LABELS := render
e2e-node: # The static pods of sno-render on a real kubelet, timed in comparison with kubeadm's.
	@$(GINKGO) ./machines $(FLAGS) $(NODE_FLAGS)
e2e-boot: LABELS = $(or $(WAY),!long)
e2e-boot: ## Machines with real Ignition, systemd and kubelet, from the configs of sno-install; WAY=in-place for one way
	@$(GINKGO) ./machines $(FLAGS) $(BOOT_FLAGS)
e2e-machine: LABELS = $(or $(WAY),vm)
e2e-machine: # The same on virtual machines (QEMU), with firmware and a kernel of their own; WAY=vm-in-place for one way.
	@$(GINKGO) ./machines $(FLAGS) $(BOOT_FLAGS)
payload: # The renders of a real release, up to the static pods, with podman: RELEASE=image@sha256:... PULL_SECRET=file
	@RELEASE='$(or $(RELEASE),$(error RELEASE=image@sha256:... is missing))' PULL_SECRET='$(abspath $(or $(PULL_SECRET),$(error PULL_SECRET=file is missing)))' \
		$(TEST) -count=1 -v ./install/command -run='^TestRelease$$'
boot: OUT := .conformance/look
boot: LABELS = $(if $(MACHINE),$(MACHINE)-)$(or $(WAY),in-place)
boot: # A single node for inspection: WAY=in-place or all-in-one, JOURNAL=1, MACHINE=vm for a virtual machine; Ctrl-C removes it.
	@$(GINKGO) ./machines $(FLAGS) -name=sno-look -inspect $(if $(JOURNAL),-journal) $(BOOT_FLAGS)

.PHONY: nightly weekly
nightly: ## Everything in full: all scenarios, a thousand kills, all machines, every mutant; hours
	$(MAKE) conformance-baseline conformance-vendored conformance DISRUPTIVE=1
	$(MAKE) proof conformance-controls mutants
	$(MAKE) soak N=1000
	$(MAKE) suite SUITE=fleet LABELS='!figures'
	$(MAKE) e2e-kind e2e-boot
	$(MAKE) e2e-boot WAY='all-in-one-renewal || in-place-cuts || in-place-payload-cuts || all-in-one-cuts'
	$(MAKE) release-check
weekly: nightly ## The same, Kubernetes' own tests, interruptions and the figures
	$(MAKE) e2e-kubernetes e2e-kind-interrupt dist DIST_FLAGS=-check
	$(MAKE) e2e-boot WAY=interrupt
	$(MAKE) suite SUITE=fleet LABELS=figures
	$(MAKE) bench

.PHONY: images dist bundle release release-check
images: # Static, reproducible images with SBOMs in one archive, bin/images/images.tar; IMAGES_FLAGS=-help.
	@go run ./e2e/cmd/sno-release images $(IMAGES_FLAGS)
dist: # What a release has for downloads, in dist/; DIST_FLAGS=-help.
	@go run ./e2e/cmd/sno-release dist $(DIST_FLAGS)
# IMAGE and BUNDLE_IMAGE are names with digests, as a registry has them. Without IMAGE the digest is that of `make images`, which a push that
# compresses layers changes; without BUNDLE_IMAGE there is no catalogue.
bundle: # bundle/, and catalog/, for the Operator Lifecycle Manager; BUNDLE_FLAGS=-help.
	@image='$(IMAGE)'; test -n "$$image" || image=$$(go run ./e2e/cmd/sno-release images $(IMAGES_FLAGS) | \
		awk '$$1 == "kubectl-sno" { sub(/:[^:\/]*$$/, "", $$2); print $$2 "@" $$3 }') && \
		go run -C hack ./cmd/bundle -out '$(CURDIR)' -image "$$image" $(if $(BUNDLE_IMAGE),-bundle-image '$(BUNDLE_IMAGE)') $(BUNDLE_FLAGS)
release: # Commit and tag a release of all modules, after make verify and release-check; pushes nothing: VERSION=v0.1.0
	@$(with-kube-assets) && hack/release.sh '$(VERSION)'
release-check: ## What other repositories get: each library in an empty module, and its tests on the newest versions
	@$(with-kube-assets) && go run -C hack ./cmd/release

BENCH_FLAGS ?= -benchmem -count=6
BENCHED := $(filter-out e2e testcluster/kube,$(MODULES))
.PHONY: bench bench-e2e mutants
bench: $(addprefix bench-,$(notdir $(BENCHED))) bench-e2e ## All benchmarks; bench-MODULE for one module
bench-e2e: OUT := .conformance/bench
bench-e2e: # Figures on embedded clusters; writes the table in docs/benchmarks.md. LABELS selects, SCENARIO_FLAGS such as -changes=10.
	@$(GINKGO) ./bench $(FLAGS) -write=../../docs/benchmarks.md $(SCENARIO_FLAGS)
bench-%:
	@mkdir -p .bench
	@$(with-kube-assets) && { $(TEST) -run '^$$' -bench . $(BENCH_FLAGS) './$(dir)/...' >'.bench/$*.txt' 2>&1 || { cat '.bench/$*.txt'; exit 1; }; } && \
		tools/run benchstat '$*=.bench/$*.txt'
mutants: # The wrong versions in mutants.yaml, each of which a test must notice; MUTANT=regexp selects.
	@$(with-kube-assets) && go run -C hack ./cmd/mutants -run='$(MUTANT)'

.PHONY: kube-assets node-image
kube-assets: # Download or build etcd, kube-apiserver and other missing programs, and print their folder.
	@go run ./testcluster/cmd/kube-assets
node-image: # Make the image of kind's nodes if the container engine has none, and print its name.
	@go run ./testcluster/cmd/node-image
