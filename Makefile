# Requires GNU make, Go, a C compiler (for the race detector), git and a POSIX shell; other tools are built from source, and the programs
# of Kubernetes downloaded or built, into a cache folder ($SNO_CACHE, or sno/ in the user's cache folder) on first use.
# `make VERB` works on all modules, `make VERB-MODULE` on one (make test-topology).

SHELL := /bin/sh
.DEFAULT_GOAL := help

# Folders of the modules: those in go.work, then those with Go code that build without it.
MODULES := $(shell sed -n 's|^[[:space:]]*\./\([^[:space:]]*\).*|\1|p' go.work)
OUTSIDE := $(patsubst %/go.mod,%,$(wildcard render/go.mod install/go.mod $(foreach host,ingress-operator-library-go console-operator,examples/hosts/$(host)/go.mod)))
NAMES := $(notdir $(MODULES) $(OUTSIDE))

# In the recipe of VERB-%: the folder of the module that % names, and whether it builds without the workspace.
dir = $(or $(filter $* %/$*,$(MODULES) $(OUTSIDE)),$(error no module is called "$*"; there are: $(NAMES)))
alone = $(if $(filter $(dir),$(OUTSIDE)),GOWORK=off )

# Programs for tests with a real API server. The first run downloads or builds them; set the variable to use others.
with-kube-assets = KUBEBUILDER_ASSETS=$${KUBEBUILDER_ASSETS:-$$(go run -C testcluster ./cmd/kube-assets)} && export KUBEBUILDER_ASSETS
needs-kube-assets = $(if $(filter topology hack,$*),:,$(with-kube-assets))

# vet is part of lint, and without debug information linking is faster. Without -shuffle Go caches the results of unchanged
# packages; CI shuffles, and so runs all.
TEST_FLAGS ?= -race -vet=off -ldflags=-s
# `make test` is for frequent use: it has fewer crashes, random sequences and kinds of clusters than `make proof`.
SHORT ?= -short
# The default is a second at the end of each of the many processes with the race detector.
export GORACE ?= atexit_sleep_ms=50
# Half as many garbage collections for more memory, in API servers too.
export GOGC ?= 200
# RERUN=1 repeats a failed test once. If it passes, the test (and not the code) needs a fix, mostly of a timeout for busy machines:
# it is listed in .flaky/. A data race is never repeated.
FLAKY := $(CURDIR)/.flaky
# In order: flags, packages, name of the file in .flaky/.
go-test = $(if $(filter-out 0 false no,$(RERUN)),'$(CURDIR)/tools/run' gotestsum --format=standard-quiet --hide-summary=skipped --rerun-fails=1 \
	--rerun-fails-max-failures=3 --rerun-fails-run-root-test --rerun-fails-abort-on-data-race --rerun-fails-report='$(FLAKY)/$(3).txt' \
	--packages="$(2)" -- $(1),go test $(1) $(2))
# PROVED=1 skips steps that have passed before on the same bytes, and reports that; FRESH=1 runs them. Arguments: name, inputs, folder, note.
# Modules include those that they require; also-NAME has other files that tests read.
prove = $(if $(filter-out 0 false no,$(PROVED)),go run -C '$(CURDIR)/hack' ./cmd/proved $(if $(filter-out 0 false no,$(FRESH)),-fresh) \
	-step '$(1)' -inputs '$(subst $(space),$(,),$(strip $(2)))' -dir '$(3)' $(if $(4),-note '$(4)') -- env)
, := ,
space := $(subst ,, )
# Inputs of tests that run the programs on clusters; sno-render and sno-install run before a cluster.
everything := $(filter-out hack,$(MODULES)) $(filter-out render install,$(OUTSIDE)) config
also-e2e := $(everything) hack/bundle hack/cmd/bundle docs/kubernetes-conformance.md
also-cli := config
also-render := docs/render-fields.md
also-install := docs/install-fields.md tools
also-conformance := docs/conformance.md
also-hack := .
also-ingress-operator := examples/hosts/ingress-operator-library-go
# SEED selects the sample of clusters; successive numbers cover all.
SEED ?= $(shell git rev-list --count HEAD 2>/dev/null || echo 0)

# Modules that are tested in parallel.
JOBS ?= 4
# Most of these tests wait for a cluster and use little CPU.
overlap = $(if $(filter e2e testcluster,$*),-p 4)
# Six samples give benchstat an interval.
BENCH_FLAGS ?= -benchmem -count=6
SCENARIO_FLAGS ?= -make-test -write ../docs/benchmarks.md

.PHONY: help
help: ## Show this list
	@echo 'make TARGET'
	@awk -F ':.*## ' '/^[a-z0-9%-]+:.*## / { sub(/%/, "MODULE", $$1); printf "  %-21s %s\n", $$1, $$2 }' Makefile
	@echo
	@echo 'MODULE is one of: $(NAMES)'

# RUN_FLAGS and CONFORMANCE_FLAGS such as "--operator 'ingress=COMMAND'": see sno-run -help and sno-conformance -help.
.PHONY: run
run: ## Run the controllers on an embedded cluster; SCENARIO=name selects another, ONCE=1 ends after the checks
	@$(if $(PROVED),$(call prove,make run,$(everything),.,$(RUN_FLAGS))) go run ./e2e/cmd/sno-run $(RUN_FLAGS) $(if $(SCENARIO),-scenario='$(SCENARIO)') $(if $(filter-out 0 false no,$(ONCE)),-once)

.PHONY: shell
shell: ## A shell with kubectl, kubectl-sno and sno-tests on the same cluster without controllers, as the documents have it: SCENARIO=name; its end removes the cluster
	@go run ./e2e/cmd/sno-run -shell $(RUN_FLAGS) $(if $(SCENARIO),-scenario='$(SCENARIO)')

# What counts for them besides the programs.
documents := docs README.md ARCHITECTURE.md CONTRIBUTING.md
.PHONY: guides
guides: ## Run the commands of the documents, each on a cluster of its own: GUIDES=docs/undo.md runs one, UPDATE=1 writes what they print
	@$(call prove,make guides,$(everything) $(documents),.,$(GUIDES)) go run ./e2e/cmd/sno-guides $(if $(filter-out 0 false no,$(UPDATE)),-update) $(GUIDES)

# Modules that wait most are first, so that others use the processors meanwhile.
EARLY := e2e testcluster authentication-operator console-operator etcd-operator machine-config-operator etcdguard
.PHONY: test
test: ## Test all modules with the race detector; GOWORK=off tests each on its own versions
	@mkdir -p '$(FLAKY)'
	@$(compile-during-kubernetes)
	@$(MAKE) --no-print-directory -j$(JOBS) --output-sync=target $(patsubst %,test-%,$(EARLY) $(filter-out $(EARLY),$(NAMES)))

# Without the Kubernetes programs, tests are compiled while these are downloaded or built: either alone leaves a processor idle half of the time.
kube-folder = $${SNO_CACHE:-$${XDG_CACHE_HOME:-$$HOME/.cache}/sno}/kube/current
compile-during-kubernetes = test -n "$$KUBEBUILDER_ASSETS" || test -e "$(kube-folder)" || { $(MAKE) --no-print-directory kube-assets & \
	go list -race -test -export $(patsubst %,./%/...,$(MODULES)) >/dev/null; \
	for dir in $(OUTSIDE); do (cd "$$dir" && GOWORK=off go list -race -test -export ./... >/dev/null); done; wait $$!; }

test-%: ## Test one module
	@echo '== test $(dir)'
	@$(needs-kube-assets) && cd '$(dir)' && \
		$(call prove,test $(dir),$(dir) $(also-$*),$(dir)) $(alone)$(call go-test,$(TEST_FLAGS) $(SHORT) $(overlap) -timeout=30m,$(packages),$*)
packages = $(if $(filter e2e,$*),$$(go list ./... | grep -v -e '/e2e/proof$$' -e '/e2e/embeddedtarget$$'),./...)

# Packages whose tests are shorter in `make test`. It excludes e2e/proof, and e2e/embeddedtarget, which needs the whole machine.
SHORTENED = $(filter-out e2e/proof e2e/embeddedtarget,$(sort $(shell grep -rl --include=*_test.go 'testing\.Short()' $(MODULES) $(OUTSIDE) | xargs -n 1 dirname)))

.PHONY: proof proof-modules proof-floor proof-clusters proof-suite
proof: proof-modules proof-floor proof-clusters proof-suite ## Tests that are too long for `make test`, on a sample of clusters: SEED=n repeats that of a run, ALL=1 runs all

SAMPLED := $(if $(filter-out 0 false no,$(ALL)),,yes)
seed = $(if $(SAMPLED),seed $(SEED))
every := $(if $(SAMPLED),a sample of clusters,every kind of cluster)
# The packages of a sample: all of the modules in CHANGED, and LONG others, beginning at SEED.
LONG ?= 4
changed-packages = $(foreach m,$(CHANGED),$(filter $m $m/%,$(SHORTENED)))
other-packages = $(filter-out $(changed-packages),$(SHORTENED))
sampled-packages = $(if $(SAMPLED),$(changed-packages) $(shell echo '$(other-packages)' | \
	awk -v seed='$(SEED)' -v most='$(LONG)' '{ for (i = 0; i < most && i < NF; i++) print $$((seed * most + i) % NF + 1) }'),$(SHORTENED))
proof-modules: ## The long tests of the modules: every crash, a million mutated requests
	@echo '== proof of the modules$(if $(SAMPLED), (SEED=$(SEED); ALL=1 takes every one)): $(sampled-packages)'
	@mkdir -p '$(FLAKY)' && $(MAKE) --no-print-directory -j$(JOBS) --output-sync=target $(addprefix proof/,$(sampled-packages))

proof/%:
	@echo '== proof of $*'
	@$(with-kube-assets) && cd '$(module-of)' && $(call prove,proof of $*,$(module-of) $(also-$(notdir $(module-of))),$(module-of)) \
		$(if $(filter $(module-of),$(OUTSIDE)),GOWORK=off )$(call long-test,.$(patsubst $(module-of)%,%,$*),$(subst /,-,$*))
module-of = $(firstword $(foreach m,$(MODULES) $(OUTSIDE),$(if $(filter $m $m/%,$*),$m)))

# The modules of the floor leg, and those in a sample. The race detector runs in the workspace only: other versions add no races.
FLOOR := $(filter $(MODULES),$(shell sed -n '/^  floor:/,/^  newest:/s/^ *- //p' hack/versions.yaml))
FLOORS ?= 2
other-floor = $(filter-out $(CHANGED),$(FLOOR))
sampled-floor = $(if $(SAMPLED),$(filter $(CHANGED),$(FLOOR)) $(shell echo '$(other-floor)' | \
	awk -v seed='$(SEED)' -v most='$(FLOORS)' '{ for (i = 0; i < most && i < NF; i++) print $$((seed * most + i) % NF + 1) }'),$(FLOOR))
proof-floor: ## All tests of the modules for vendoring, including long ones, on the oldest versions
	@echo '== proof on the oldest versions$(if $(SAMPLED), (SEED=$(SEED); ALL=1 takes every one)): $(sampled-floor)'
	@mkdir -p '$(FLAKY)'
	@$(if $(strip $(sampled-floor)),$(MAKE) --no-print-directory -j$(JOBS) --output-sync=target $(addprefix proof-floor/,$(sampled-floor)))

proof-floor/%:
	@echo '== proof of $* on the oldest versions'
	@$(needs-kube-assets) && cd '$*' && $(call prove,proof of $* on the oldest versions,$* $(also-$*),$*) \
		GOWORK=off $(call go-test,$(filter-out -race,$(TEST_FLAGS)) -timeout=30m,./...,$*-floor)

proof-clusters: ## The modules' guarantees on clusters with disruptions
	@echo "== proof on $(every)$(if $(SAMPLED), (SEED=$(SEED); ALL=1 takes every one))"
	@$(on-clusters) $(call prove,proof on $(every),$(everything),e2e,$(seed)) $(call long-test,./proof,proof,-parallel=4)

proof-suite: ## The guarantees of the conformance suite and its clusters
	@echo "== proof of the suite on $(every)$(if $(SAMPLED), (SEED=$(SEED); ALL=1 takes every one))"
	@$(on-clusters) $(call prove,proof of the suite on $(every),$(everything),e2e,$(seed)) $(call long-test,./embeddedtarget,embeddedtarget,-parallel=4)

on-clusters = mkdir -p '$(FLAKY)' && $(with-kube-assets) && export SNO_SAMPLE=$(if $(SAMPLED),$(SEED)) && cd e2e &&
# All kinds of clusters take hours on a busy machine.
long-test = $(call go-test,$(TEST_FLAGS) $(3) -timeout=$(if $(SAMPLED),30m,3h),$(1),$(2))

# N kills of the controllers at random moments; a bad API server, two leaders and a clock that jumps on a second cluster. A thousand kills take an hour,
# and the API server is then bad for ten minutes. SOAK_FLAGS such as -only=kills or -keep: see sno-soak -help.
N ?= 20
.PHONY: soak
soak: ## Faults on embedded clusters, with invariants from their audit logs: N=1000 kills, SEED=n repeats the moments of a run
	@$(call prove,make soak N=$(N),$(everything),.,$(seed) $(SOAK_FLAGS)) go run -C e2e ./cmd/sno-soak -kills='$(N)' -start='$(SEED)' $(SOAK_FLAGS)

# Folder of reports, JUnit and the page.
CONFORMANCE_OUT ?= .conformance
tiers = static,scheduled$(if $(filter-out 0 false no,$(DISRUPTIVE)),$(,)disruptive)

# A faulty KUBECONFIG ends make with one line and exit code 2, before anything is built.
check-kubeconfig = $(eval problem := $$(shell go run -C hack ./cmd/kubeconfig '$(if $(KUBECONFIG),$(abspath $(KUBECONFIG)))'))$(if $(problem),$(error $(problem)))

.PHONY: conformance conformance-vendored conformance-baseline conformance-controls
conformance: ## The conformance suite on every scenario, or on KUBECONFIG=file (IMAGE=image of workload copies); DISRUPTIVE=1 for all tiers
ifeq ($(origin KUBECONFIG),command line)
	$(check-kubeconfig)
	@go run -C conformance ./cmd/sno-tests run --kubeconfig '$(abspath $(KUBECONFIG))' --tiers $(tiers) $(if $(IMAGE),--image '$(IMAGE)') -o '$(abspath $(CONFORMANCE_OUT))/existing'
else
	@$(call prove,make conformance,$(everything),.,$(CONFORMANCE_FLAGS)) go run ./e2e/cmd/sno-conformance $(CONFORMANCE_FLAGS) -tiers $(tiers) -out '$(abspath $(CONFORMANCE_OUT))/sno' \
		-before '$(abspath $(CONFORMANCE_OUT))/baseline/report.yaml'
endif

conformance-vendored: ## The same with operators that vendor the modules, and without controllers: exactly the expected checks must fail
	@$(call prove,make conformance-vendored,$(everything),.,$(CONFORMANCE_FLAGS)) go run ./e2e/cmd/sno-conformance $(CONFORMANCE_FLAGS) -variant vendored -tiers $(tiers) -out '$(abspath $(CONFORMANCE_OUT))/vendored' \
		-before '$(abspath $(CONFORMANCE_OUT))/baseline/report.yaml' -expect e2e/matrix/vendored.yaml

conformance-baseline: ## The same with stand-ins for the stock operators: exactly the expected checks must fail
	@$(call prove,make conformance-baseline,$(everything),.,$(CONFORMANCE_FLAGS)) go run ./e2e/cmd/sno-conformance $(CONFORMANCE_FLAGS) -variant baseline -tiers $(tiers) -out '$(abspath $(CONFORMANCE_OUT))/baseline' -expect e2e/matrix/baseline.yaml

conformance-controls: ## Faults of embedded clusters, which the checks that evaluate a record must detect; a few minutes: CONTROLS=regexp selects by id or name
	@$(with-kube-assets) && SNO_SAMPLE= go test -C e2e/embeddedtarget -count=1 -vet=off -ldflags=-s -timeout=30m -run='^TestClusterControls' -controls='$(CONTROLS)'

# Folder of the report and measurements. KIND_FLAGS such as -keep, -scenario=none-sno or -experiments=NAME,NAME: see sno-kind -help.
KIND_OUT ?= .conformance/kind
.PHONY: e2e-kind
e2e-kind: ## The modules on real kubelets in containers: needs a container engine (hack/engine start starts one)
	@$(call prove,make e2e-kind,$(everything),.,$(KIND_FLAGS)) go run -C e2e ./cmd/sno-kind -out '$(abspath $(KIND_OUT))' $(KIND_FLAGS)

# Folder of the reports. KUBERNETES_FLAGS such as -modules=on, -some=40 or -focus=REGEXP: see sno-kubetests -help.
KUBERNETES_OUT ?= .conformance/kubernetes
.PHONY: e2e-kubernetes
e2e-kubernetes: ## Kubernetes' own conformance tests on one node, with the modules on and with them off: needs a container engine, takes an hour and a half
	@$(call prove,make e2e-kubernetes,$(everything),.,$(KUBERNETES_FLAGS)) go run -C e2e ./cmd/sno-kubetests -out '$(abspath $(KUBERNETES_OUT))' $(KUBERNETES_FLAGS)

.PHONY: e2e-kind-interrupt
e2e-kind-interrupt: ## Ctrl-C in every phase of e2e-kind leaves nothing behind; 15 minutes
	@cd e2e && SNO_E2E_KIND_INTERRUPT=1 go test -count=1 -timeout=1h -v -run='^TestInterrupted$$' ./cmd/sno-kind

# Folder of measurements and logs of failures. NODE_FLAGS such as -keep or -rounds=5: see sno-node -help. Without an engine the target prints what it
# needs and does not fail.
NODE_OUT ?= .conformance/node
.PHONY: e2e-node
e2e-node: ## The static pods of sno-render on a real kubelet, timed in comparison with kubeadm's: needs a container engine, as e2e-kind does
	@why=$$(go run -C e2e ./cmd/sno-node -print-unsupported) || exit 1; if [ -n "$$why" ]; then echo "make e2e-node  NOT RUN: $$why"; exit 0; fi; \
		$(call prove,make e2e-node,e2e approver render,.,$(NODE_FLAGS)) go run -C e2e ./cmd/sno-node -out '$(abspath $(NODE_OUT))' $(NODE_FLAGS)

# Folder of configs and logs of failures. BOOT_FLAGS such as -way=all-in-one or -keep: see sno-boot -help.
BOOT_OUT ?= .conformance/boot
.PHONY: e2e-boot
e2e-boot: ## Boot machines from the configs of sno-install: real Ignition, systemd and kubelet; needs a container engine, as e2e-kind does
	@why=$$(go run -C e2e ./cmd/sno-boot -print-unsupported) || exit 1; if [ -n "$$why" ]; then echo "make e2e-boot  NOT RUN: $$why"; exit 0; fi; \
		$(call prove,make e2e-boot,$(everything) install render,.,$(BOOT_FLAGS)) go run -C e2e ./cmd/sno-boot -out '$(abspath $(BOOT_OUT))' $(BOOT_FLAGS)

.PHONY: e2e-renewal
e2e-renewal: ## An all-in-one node outlives its certificates, once while it runs and once while it is off; 15 minutes
	@why=$$(go run -C e2e ./cmd/sno-boot -print-unsupported) || exit 1; if [ -n "$$why" ]; then echo "make e2e-renewal  NOT RUN: $$why"; exit 0; fi; \
		$(call prove,make e2e-renewal,e2e install render approver,.,$(BOOT_FLAGS)) \
		go run -C e2e ./cmd/sno-boot -name sno-renewal -way all-in-one-renewal -out '$(abspath $(BOOT_OUT))-renewal' $(BOOT_FLAGS)

# JOURNAL=1 also prints the machine's journal.
WAY ?= in-place
.PHONY: boot
boot: ## Boot a single node from a config for inspection: WAY=in-place or all-in-one, JOURNAL=1; Ctrl-C removes it
	@go run -C e2e ./cmd/sno-boot -name sno-look -way '$(WAY)' -until checks -wait -out '$(abspath $(BOOT_OUT))-look' $(if $(JOURNAL),-journal) $(BOOT_FLAGS)

# Writes bin/images/images.tar, and an SBOM for each image. IMAGES_FLAGS such as -arch arm64 or -prefix REGISTRY/: see IMAGES_FLAGS=-help.
.PHONY: images
images: ## Static, reproducible images with SBOMs in one archive for docker, podman or ctr: no engine, no registry
	@go run ./e2e/cmd/sno-images $(IMAGES_FLAGS)

# Writes dist/. DIST_FLAGS such as -only kubectl-sno -platforms linux/amd64,windows/amd64 or -check: see DIST_FLAGS=-help.
.PHONY: dist
dist: ## What a release has for downloads: archives for all platforms, checksums, SBOMs, krew's manifest, multi-arch images; no registry
	@$(if $(PROVED),$(call prove,make dist,$(everything) render install LICENSE NOTICE,.,$(DIST_FLAGS))) go run ./e2e/cmd/sno-dist $(DIST_FLAGS)

# IMAGE and BUNDLE_IMAGE are names with digests, as a registry has them. Without IMAGE the digest is that of `make images`, which a push that
# compresses layers changes; without BUNDLE_IMAGE there is no catalogue. BUNDLE_FLAGS such as -previous=FILE: see BUNDLE_FLAGS=-help.
.PHONY: bundle
bundle: ## Write bundle/, for the Operator Lifecycle Manager, and with BUNDLE_IMAGE=name@digest catalog/: IMAGE=name@digest
	@image='$(IMAGE)'; test -n "$$image" || image=$$(go run ./e2e/cmd/sno-images $(IMAGES_FLAGS) | \
		awk '$$1 == "kubectl-sno" { sub(/:[^:\/]*$$/, "", $$2); print $$2 "@" $$3 }') && \
		go run -C hack ./cmd/bundle -out '$(CURDIR)' -image "$$image" $(if $(BUNDLE_IMAGE),-bundle-image '$(BUNDLE_IMAGE)') $(BUNDLE_FLAGS)

.PHONY: lint
lint: ## Lint all modules
	@go run -C hack ./cmd/verify -only lint

lint-%: ## Lint one module
	@cd '$(dir)' && $(alone)$(CURDIR)/tools/run golangci-lint run --allow-parallel-runners ./...

.PHONY: verify
verify: ## All checks except tests: versions, formatting, builds, boundaries, generated files, lint
	@go run -C hack ./cmd/verify

verify-%: ## The same for one module
	@go run -C hack ./cmd/verify '$(dir)'

.PHONY: bench bench-e2e
bench: $(patsubst %,bench-%,$(filter-out e2e,$(NAMES))) bench-e2e ## Run all benchmarks and print tables

bench-e2e: ## Measure the scenarios on embedded clusters and write the table in docs/benchmarks.md
	@go run -C e2e ./cmd/sno-bench $(SCENARIO_FLAGS)

bench-%: ## Run the benchmarks of one module; the raw output stays in .bench/
	@echo '== bench $(dir)'
	@mkdir -p .bench
	@$(needs-kube-assets) && out='$(CURDIR)/.bench/$*.txt' && cd '$(dir)' && \
		{ $(alone)go test -run '^$$' -bench . $(BENCH_FLAGS) ./... >"$$out" 2>&1 || { cat "$$out"; exit 1; }; } && \
		'$(CURDIR)/tools/run' benchstat "$*=$$out"

# FRESH=1 also tries mutants that an earlier run caught on the same bytes; BUDGET=25m starts no mutant after that time, and SEED=n repeats
# the order of a run. SUITE=conformance runs the conformance suite on clusters with each mutant, and prints which check detects it.
mutants-flags = -run='$(RUN)' $(if $(filter-out 0 false no,$(FRESH)),-fresh) $(if $(BUDGET),-budget='$(BUDGET)') $(if $(SEED),-order='$(SEED)') \
	$(if $(SUITE),-suite='$(SUITE)' -tiers='$(tiers)' -out='$(abspath $(CONFORMANCE_OUT))/mutants.txt')
.PHONY: mutants
mutants: ## Try every mutant of the mutants.yaml files; fails if a test does not detect one (RUN=regexp selects; SUITE=conformance: which check detects it)
	@$(with-kube-assets) && go run -C hack ./cmd/mutants $(mutants-flags)

mutants-%: ## The same for one module
	@$(needs-kube-assets) && go run -C hack ./cmd/mutants $(mutants-flags) '$(dir)'

# PACKAGE='topology patch/workload' selects packages. BUDGET=60 (seconds) tries a sample of one package, which SEED selects.
.PHONY: gremlins
gremlins: ## Change the operators of packages that need no cluster, one at a time; fails if the tests detect fewer than hack/gremlins/least.yaml lists
	@BUDGET='$(BUDGET)' SEED='$(SEED)' hack/gremlins/run $(PACKAGE)

.PHONY: generate
generate: ## Write generated files (RBAC roles from markers)
	@go run -C hack ./cmd/verify -generate

generate-%: ## The same for one module
	@go run -C hack ./cmd/verify -generate '$(dir)'

.PHONY: versions
versions: ## Rewrite the go.mod files that differ from hack/versions.yaml
	@go run -C hack ./cmd/versions -write

# Modules that are released, and what their check reads besides.
RELEASED := $(shell sed -n '/^release:/,/^[^ r]/s/^ *- //p' hack/versions.yaml)
.PHONY: release release-check
release: ## Commit and tag a release of all modules, after make verify and release-check; pushes nothing: VERSION=v0.1.0
	@go run -C hack ./cmd/release -version '$(VERSION)'

release-check: ## Use each released module of the last commit in an empty module outside of the repository, on the oldest and the newest versions
	@$(call prove,make release-check,$(RELEASED) hack LICENSE go.work.sum,.) go run -C hack ./cmd/release -check

.PHONY: kube-assets
kube-assets: ## Download or build etcd, kube-apiserver and other missing programs, and print their folder (SNO_ASSETS: testcluster/README.md)
	@go run -C testcluster ./cmd/kube-assets

.PHONY: node-image
node-image: ## Make the image of kind's nodes if the container engine has none, and print its name
	@go run -C testcluster ./cmd/node-image
