# Everything starts here. Needs GNU make, Go, a C compiler (for the race detector), git and a POSIX shell; whatever else is
# needed is built from source into a cache folder ($SNO_CACHE, or sno/ in the user's cache folder) the first time.
#
# `make VERB` works on all modules, `make VERB-MODULE` on one (make test-topology). Go modules are listed in go.work; those that
# stay outside it on purpose are found below.

SHELL := /bin/sh
.DEFAULT_GOAL := help

# Folders of the modules: those in go.work, then those with Go code that build on their own.
MODULES := $(shell sed -n 's|^[[:space:]]*\./\([^[:space:]]*\).*|\1|p' go.work)
OUTSIDE := $(patsubst %/go.mod,%,$(wildcard render/go.mod install/go.mod $(foreach host,ingress-operator-library-go console-operator,examples/hosts/$(host)/go.mod)))
NAMES := $(notdir $(MODULES) $(OUTSIDE))

# In the recipe of VERB-%: the folder of the module that % names, and whether it builds without the workspace.
dir = $(or $(filter $* %/$*,$(MODULES) $(OUTSIDE)),$(error no module is called "$*"; there are: $(NAMES)))
alone = $(if $(filter $(dir),$(OUTSIDE)),GOWORK=off )

# Tests that need a real API server find it here. Built by the first run, which takes some minutes; set the variable to use others.
with-kube-assets = KUBEBUILDER_ASSETS=$${KUBEBUILDER_ASSETS:-$$(go run -C testcluster ./cmd/kube-assets)} && export KUBEBUILDER_ASSETS
needs-kube-assets = $(if $(filter topology hack,$*),:,$(with-kube-assets))

# vet is part of lint, and nobody debugs these binaries: linking them is a good part of the time. Without -shuffle Go knows the
# packages that have passed already and have not changed; CI shuffles, and so runs all of them.
TEST_FLAGS ?= -race -vet=off -ldflags=-s
# `make test` is what is run all day: it crashes and walks less often, and goes through fewer kinds of clusters, than `make proof`.
SHORT ?= -short
# A second at the end of every process that the detector watches, of which tests start dozens, is its default.
export GORACE ?= atexit_sleep_ms=50
# Memory is cheaper than time here: collect garbage half as often, in API servers too.
export GOGC ?= 200
# RERUN=1 runs a test that failed once more. What passes then is a fault of the test (it waits for something that a busy machine does not
# give it in time) and to be mended, but none of the code: it goes to .flaky/. A data race is never run again.
FLAKY := $(CURDIR)/.flaky
# In order: flags, packages, name of the file in .flaky/.
go-test = $(if $(filter-out 0 false no,$(RERUN)),'$(CURDIR)/tools/run' gotestsum --format=standard-quiet --hide-summary=skipped --rerun-fails=1 \
	--rerun-fails-max-failures=3 --rerun-fails-run-root-test --rerun-fails-abort-on-data-race --rerun-fails-report='$(FLAKY)/$(3).txt' \
	--packages="$(2)" -- $(1),go test $(1) $(2))
# PROVED=1 leaves out what has passed before on the same bytes, and says so; FRESH=1 does it all the same. In order: what people call it, what it
# depends on, where it runs. Modules count with those that they require; what a test reads elsewhere stands in also-NAME.
prove = $(if $(filter-out 0 false no,$(PROVED)),go run -C '$(CURDIR)/hack' ./cmd/proved $(if $(filter-out 0 false no,$(FRESH)),-fresh) \
	-step '$(1)' -inputs '$(subst $(space),$(,),$(strip $(2)))' -dir '$(3)' $(if $(4),-note '$(4)') -- env)
, := ,
space := $(subst ,, )
# Whoever runs our programs on clusters depends on all of them; sno-render and sno-install run before a cluster.
everything := $(filter-out hack,$(MODULES)) $(filter-out render install,$(OUTSIDE)) config
also-e2e := $(everything)
also-cli := config
also-render := docs/render-fields.md
also-install := docs/install-fields.md tools
also-conformance := docs/conformance.md
also-hack := .
also-ingress-operator := examples/hosts/ingress-operator-library-go
# SEED decides which sample of all clusters is proved; successive numbers come round to all.
SEED ?= $(shell git rev-list --count HEAD 2>/dev/null || echo 0)

# How many modules are tested at a time.
JOBS ?= 4
# Most of these tests wait for a cluster, not for a processor.
overlap = $(if $(filter e2e testcluster,$*),-p 4)
# Six samples give benchstat an interval.
BENCH_FLAGS ?= -benchmem -count=6
# The measured scenarios, which go into docs/benchmarks.md.
SCENARIO_FLAGS ?= -make-test -write ../docs/benchmarks.md

.PHONY: help
help: ## Show this list
	@echo 'make TARGET'
	@awk -F ':.*## ' '/^[a-z0-9%-]+:.*## / { sub(/%/, "MODULE", $$1); printf "  %-21s %s\n", $$1, $$2 }' Makefile
	@echo
	@echo 'MODULE is one of: $(NAMES)'

.PHONY: run
run: ## The main job on an embedded cluster; SCENARIO=name picks another, ONCE=1 stops after the proof
	@$(if $(PROVED),$(call prove,make run,$(everything),.)) go run ./e2e/cmd/sno-run $(if $(SCENARIO),-scenario='$(SCENARIO)') $(if $(filter-out 0 false no,$(ONCE)),-once)

.PHONY: shell
shell: ## A shell with kubectl and kubectl-sno on the same cluster without controllers, as the documents have it: SCENARIO=name; its end removes the cluster
	@go run ./e2e/cmd/sno-run -shell $(if $(SCENARIO),-scenario='$(SCENARIO)')

# What counts for them besides the programs.
documents := docs README.md ARCHITECTURE.md CONTRIBUTING.md
.PHONY: guides
guides: ## Run the commands of the documents, each on a cluster of its own: GUIDES=docs/undo.md runs one, UPDATE=1 writes what they print
	@$(call prove,make guides,$(everything) $(documents),.,$(GUIDES)) go run ./e2e/cmd/sno-guides $(if $(filter-out 0 false no,$(UPDATE)),-update) $(GUIDES)

# First what waits most, so that the processors have something to do meanwhile.
EARLY := e2e testcluster authentication-operator console-operator etcdguard
.PHONY: test
test: ## Test all modules with the race detector; GOWORK=off tests each on its own versions
	@mkdir -p '$(FLAKY)'
	@$(compile-beside-kubernetes)
	@$(MAKE) --no-print-directory -j$(JOBS) --output-sync=target $(patsubst %,test-%,$(EARLY) $(filter-out $(EARLY),$(NAMES)))

# On a machine without the Kubernetes programs, tests are compiled while these are built: either alone leaves a processor idle half of the time.
kube-folder = $${SNO_CACHE:-$${XDG_CACHE_HOME:-$$HOME/.cache}/sno}/kube/current
compile-beside-kubernetes = test -n "$$KUBEBUILDER_ASSETS" || test -e "$(kube-folder)" || { $(MAKE) --no-print-directory kube-assets & \
	go list -race -test -export $(patsubst %,./%/...,$(MODULES)) >/dev/null; \
	for dir in $(OUTSIDE); do (cd "$$dir" && GOWORK=off go list -race -test -export ./... >/dev/null); done; wait $$!; }

test-%: ## Test one module
	@echo '== test $(dir)'
	@$(needs-kube-assets) && cd '$(dir)' && \
		$(call prove,test $(dir),$(dir) $(also-$*),$(dir)) $(alone)$(call go-test,$(TEST_FLAGS) $(SHORT) $(overlap) -timeout=30m,$(packages),$*)
packages = $(if $(filter e2e,$*),$$(go list ./... | grep -v -e '/e2e/proof$$' -e '/e2e/embeddedtarget$$'),./...)

# Packages whose tests are shorter in `make test`. Those of e2e/proof are not in it at all, and those of e2e/embeddedtarget want the machine to themselves.
SHORTENED = $(filter-out e2e/proof e2e/embeddedtarget,$(sort $(shell grep -rl --include=*_test.go 'testing\.Short()' $(MODULES) $(OUTSIDE) | xargs -n 1 dirname)))

.PHONY: proof proof-modules proof-floor proof-clusters proof-suite
proof: proof-modules proof-floor proof-clusters proof-suite ## What is too long for `make test`, on a sample of clusters: SEED=n has that of an earlier run, ALL=1 goes through everything

SAMPLED := $(if $(filter-out 0 false no,$(ALL)),,yes)
seed = $(if $(SAMPLED),seed $(SEED))
every := $(if $(SAMPLED),a sample of clusters,every kind of cluster)
# The packages that a sample takes: all of the modules in CHANGED, and of the others LONG, beginning where the seed says.
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

# The modules of the floor leg, and those of them that a sample takes. Races are looked for in the workspace: they are not another's on other versions.
FLOOR := $(filter $(MODULES),$(shell sed -n '/^  floor:/,/^  newest:/s/^ *- //p' hack/versions.yaml))
FLOORS ?= 2
other-floor = $(filter-out $(CHANGED),$(FLOOR))
sampled-floor = $(if $(SAMPLED),$(filter $(CHANGED),$(FLOOR)) $(shell echo '$(other-floor)' | \
	awk -v seed='$(SEED)' -v most='$(FLOORS)' '{ for (i = 0; i < most && i < NF; i++) print $$((seed * most + i) % NF + 1) }'),$(FLOOR))
proof-floor: ## All tests of the modules that others vendor, the long ones too, on the oldest versions
	@echo '== proof on the oldest versions$(if $(SAMPLED), (SEED=$(SEED); ALL=1 takes every one)): $(sampled-floor)'
	@mkdir -p '$(FLAKY)'
	@$(if $(strip $(sampled-floor)),$(MAKE) --no-print-directory -j$(JOBS) --output-sync=target $(addprefix proof-floor/,$(sampled-floor)))

proof-floor/%:
	@echo '== proof of $* on the oldest versions'
	@$(needs-kube-assets) && cd '$*' && $(call prove,proof of $* on the oldest versions,$* $(also-$*),$*) \
		GOWORK=off $(call go-test,$(filter-out -race,$(TEST_FLAGS)) -timeout=30m,./...,$*-floor)

proof-clusters: ## The modules' promises on clusters that are disturbed
	@echo "== proof on $(every)$(if $(SAMPLED), (SEED=$(SEED); ALL=1 takes every one))"
	@$(on-clusters) $(call prove,proof on $(every),$(everything),e2e,$(seed)) $(call long-test,./proof,proof,-parallel=4)

proof-suite: ## The promises of the conformance suite and its clusters
	@echo "== proof of the suite on $(every)$(if $(SAMPLED), (SEED=$(SEED); ALL=1 takes every one))"
	@$(on-clusters) $(call prove,proof of the suite on $(every),$(everything),e2e,$(seed)) $(call long-test,./embeddedtarget,embeddedtarget,-parallel=4)

on-clusters = mkdir -p '$(FLAKY)' && $(with-kube-assets) && export SNO_SAMPLE=$(if $(SAMPLED),$(SEED)) && cd e2e &&
# All kinds of cluster take hours on a busy machine.
long-test = $(call go-test,$(TEST_FLAGS) $(3) -timeout=$(if $(SAMPLED),30m,3h),$(1),$(2))

# Reports, JUnit and the page go here.
CONFORMANCE_OUT ?= .conformance
tiers = static,scheduled$(if $(filter-out 0 false no,$(DISRUPTIVE)),$(,)disruptive)

# What is wrong with KUBECONFIG ends make with one line and exit code 2, before anything is built.
check-kubeconfig = $(eval problem := $$(shell go run -C hack ./cmd/kubeconfig '$(if $(KUBECONFIG),$(abspath $(KUBECONFIG)))'))$(if $(problem),$(error $(problem)))

.PHONY: conformance conformance-baseline
conformance: ## The conformance suite on every scenario, or on KUBECONFIG=file (IMAGE=what copies run); DISRUPTIVE=1 for all tiers
ifeq ($(origin KUBECONFIG),command line)
	$(check-kubeconfig)
	@go run -C conformance ./cmd/sno-tests run --kubeconfig '$(abspath $(KUBECONFIG))' --tiers $(tiers) $(if $(IMAGE),--image '$(IMAGE)') -o '$(abspath $(CONFORMANCE_OUT))/existing'
else
	@$(call prove,make conformance,$(everything),.,$(CONFORMANCE_FLAGS)) go run -C e2e ./cmd/sno-conformance $(CONFORMANCE_FLAGS) -tiers $(tiers) -out '$(abspath $(CONFORMANCE_OUT))/sno' \
		-before '$(abspath $(CONFORMANCE_OUT))/baseline/report.yaml'
endif

conformance-baseline: ## The same with today's operators: exactly the expected failures must occur
	@$(call prove,make conformance-baseline,$(everything),.,$(CONFORMANCE_FLAGS)) go run -C e2e ./cmd/sno-conformance $(CONFORMANCE_FLAGS) -variant baseline -tiers $(tiers) -out '$(abspath $(CONFORMANCE_OUT))/baseline' -expect matrix/baseline.yaml

# The report and the figures go here. KIND_FLAGS such as -keep, -scenario=none-sno or -experiments=NAME,NAME: sno-kind -help tells.
KIND_OUT ?= .conformance/kind
.PHONY: e2e-kind
e2e-kind: ## The modules on real kubelets in containers: needs a container engine (hack/engine start has one where there is none)
	@$(call prove,make e2e-kind,$(everything),.,$(KIND_FLAGS)) go run -C e2e ./cmd/sno-kind -out '$(abspath $(KIND_OUT))' $(KIND_FLAGS)

.PHONY: e2e-kind-interrupt
e2e-kind-interrupt: ## Ctrl-C in every phase of e2e-kind, a quarter of an hour: nothing is left behind
	@cd e2e && SNO_E2E_KIND_INTERRUPT=1 go test -count=1 -timeout=1h -v -run='^TestInterrupted$$' ./cmd/sno-kind

# Figures, and logs of what went wrong, go here. NODE_FLAGS such as -keep or -rounds=5: sno-node -help tells. Where there is no engine nothing is proved, and that is
# no failure: what would be needed is said.
NODE_OUT ?= .conformance/node
.PHONY: e2e-node
e2e-node: ## The static pods of sno-render on a real kubelet, timed beside kubeadm's: needs a container engine, as e2e-kind does
	@why=$$(go run -C e2e ./cmd/sno-node -why-not) || exit 1; if [ -n "$$why" ]; then echo "make e2e-node  NOT RUN: $$why"; exit 0; fi; \
		$(call prove,make e2e-node,e2e approver render,.,$(NODE_FLAGS)) go run -C e2e ./cmd/sno-node -out '$(abspath $(NODE_OUT))' $(NODE_FLAGS)

# Configs, and logs of what went wrong, go here. BOOT_FLAGS such as -way=all-in-one or -keep: sno-boot -help tells.
BOOT_OUT ?= .conformance/boot
.PHONY: e2e-boot
e2e-boot: ## Machines that come up from the configs of sno-install: real Ignition, systemd and kubelet; needs a container engine, as e2e-kind does
	@why=$$(go run -C e2e ./cmd/sno-boot -why-not) || exit 1; if [ -n "$$why" ]; then echo "make e2e-boot  NOT RUN: $$why"; exit 0; fi; \
		$(call prove,make e2e-boot,$(everything) install render,.,$(BOOT_FLAGS)) go run -C e2e ./cmd/sno-boot -out '$(abspath $(BOOT_OUT))' $(BOOT_FLAGS)

.PHONY: e2e-renewal
e2e-renewal: ## An all-in-one node outlives its certificates, once while it runs and once while it is off; a quarter of an hour, most of it waiting
	@why=$$(go run -C e2e ./cmd/sno-boot -why-not) || exit 1; if [ -n "$$why" ]; then echo "make e2e-renewal  NOT RUN: $$why"; exit 0; fi; \
		$(call prove,make e2e-renewal,e2e install render approver,.,$(BOOT_FLAGS)) \
		go run -C e2e ./cmd/sno-boot -name sno-renewal -way all-in-one-renewal -out '$(abspath $(BOOT_OUT))-renewal' $(BOOT_FLAGS)

# JOURNAL=1 also shows what the machine writes into its journal.
WAY ?= in-place
.PHONY: boot
boot: ## A single node to look at, from a config to a running node: WAY=in-place or all-in-one, JOURNAL=1; Ctrl-C removes it
	@go run -C e2e ./cmd/sno-boot -name sno-look -way '$(WAY)' -until checks -wait -out '$(abspath $(BOOT_OUT))-look' $(if $(JOURNAL),-journal) $(BOOT_FLAGS)

# bin/images/images.tar, and an SBOM for each image beside it. IMAGES_FLAGS such as -arch arm64 or -prefix REGISTRY/: IMAGES_FLAGS=-help tells.
.PHONY: images
images: ## Static, reproducible images with SBOMs in one archive for docker, podman or ctr: no engine, no registry
	@go run ./e2e/cmd/sno-images $(IMAGES_FLAGS)

.PHONY: lint
lint: ## Lint all modules
	@go run -C hack ./cmd/verify -only lint

lint-%: ## Lint one module
	@cd '$(dir)' && $(alone)$(CURDIR)/tools/run golangci-lint run --allow-parallel-runners ./...

.PHONY: verify
verify: ## Everything but the tests: versions, formatting, builds, boundaries, generated files, lint
	@go run -C hack ./cmd/verify

verify-%: ## The same for one module
	@go run -C hack ./cmd/verify '$(dir)'

.PHONY: bench bench-e2e
bench: $(patsubst %,bench-%,$(filter-out e2e,$(NAMES))) bench-e2e ## Run all benchmarks and print tables

bench-e2e: ## Measure the scenarios on embedded clusters and put the table into docs/benchmarks.md
	@go run -C e2e ./cmd/sno-bench $(SCENARIO_FLAGS)

bench-%: ## Run the benchmarks of one module; the raw output stays in .bench/
	@echo '== bench $(dir)'
	@mkdir -p .bench
	@$(needs-kube-assets) && out='$(CURDIR)/.bench/$*.txt' && cd '$(dir)' && \
		{ $(alone)go test -run '^$$' -bench . $(BENCH_FLAGS) ./... >"$$out" 2>&1 || { cat "$$out"; exit 1; }; } && \
		'$(CURDIR)/tools/run' benchstat "$*=$$out"

# FRESH=1 tries also what an earlier run caught on the same bytes; BUDGET=25m starts no other mutant after that time, and SEED=n has
# the order of an earlier run. SUITE=conformance has the conformance suite look for each on clusters instead, and tells which check saw it.
mutants-flags = -run='$(RUN)' $(if $(filter-out 0 false no,$(FRESH)),-fresh) $(if $(BUDGET),-budget='$(BUDGET)') $(if $(SEED),-order='$(SEED)') \
	$(if $(SUITE),-suite='$(SUITE)' -tiers='$(tiers)' -out='$(abspath $(CONFORMANCE_OUT))/mutants.txt')
.PHONY: mutants
mutants: ## Try every wrong version in the mutants.yaml files; fails if a test does not notice one (RUN=regexp selects; SUITE=conformance: which check sees it?)
	@$(with-kube-assets) && go run -C hack ./cmd/mutants $(mutants-flags)

mutants-%: ## The same for one module
	@$(needs-kube-assets) && go run -C hack ./cmd/mutants $(mutants-flags) '$(dir)'

# PACKAGE='topology patch/workload' names some. BUDGET=60 has one of them in turn by SEED, and as many changes as there is time for in seconds.
.PHONY: gremlins
gremlins: ## Change the operators of packages that need no cluster, one at a time: fails if the tests notice fewer than hack/gremlins/least.yaml says
	@BUDGET='$(BUDGET)' SEED='$(SEED)' hack/gremlins/run $(PACKAGE)

.PHONY: generate
generate: ## Write generated files (RBAC roles from markers)
	@go run -C hack ./cmd/verify -generate

generate-%: ## The same for one module
	@go run -C hack ./cmd/verify -generate '$(dir)'

.PHONY: versions
versions: ## Rewrite the go.mod files that differ from hack/versions.yaml
	@go run -C hack ./cmd/versions -write

.PHONY: kube-assets
kube-assets: ## Build etcd, kube-apiserver and the rest if missing, and print their folder
	@go run -C testcluster ./cmd/kube-assets

.PHONY: node-image
node-image: ## Make the image of kind's nodes if the container engine has none, and print its name
	@go run -C testcluster ./cmd/node-image
