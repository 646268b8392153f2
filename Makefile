# Everything is built from pinned Go modules into bin/. `make help` lists the targets.

GO      ?= go
VERSION := $(shell git describe --tags --always --dirty 2>/dev/null || echo unknown)
# The release of Kubernetes whose libraries are in go.mod: what the embedded kubectl says it is.
KUBERNETES := $(shell sed -n 's|^.*k8s.io/kubectl v0|v1|p' go.mod)
LDFLAGS := -s -w -X main.version=$(VERSION) -X k8s.io/component-base/version.gitVersion=$(KUBERNETES) \
	-X k8s.io/client-go/pkg/version.gitVersion=$(KUBERNETES) -X k8s.io/client-go/pkg/version.gitCommit=
STATIC  := CGO_ENABLED=0 $(GO)
TOOLS   := cd internal/tools &&

CNI_PLUGINS := main/bridge main/loopback ipam/host-local meta/portmap meta/bandwidth
CNI_MODULE  := github.com/containernetworking/plugins/plugins

# Seconds that each fuzz target gets.
FUZZTIME ?= 20s

# One set of flags for everything, so that builds, tests and linters share what is compiled. Without the
# revision in each program its bytes depend on its sources alone.
export GOFLAGS := -trimpath -buildvcs=false

.DEFAULT_GOAL := help

.PHONY: help
help: ## list the targets
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / {printf "  %-15s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

# ---- build ----

.PHONY: build
build: bin/kontiki bin/kontiki-shim bin/runc bin/cni/.built bin/images/hello.tar ## build everything that a node needs into bin/

# go build itself knows what is out of date, so these two are tried every time.
.PHONY: bin/kontiki bin/kontiki-shim
bin/kontiki bin/kontiki-shim:
	$(STATIC) build -ldflags "$(LDFLAGS)" -o $@ ./cmd/$(@F)

# runc needs cgo: part of it is C that runs before the Go runtime starts.
bin/runc: internal/tools/go.sum
	$(TOOLS) CGO_ENABLED=1 $(GO) build -ldflags "-s -w" -o ../../$@ github.com/opencontainers/runc

bin/cni/.built: internal/tools/go.sum Makefile
	mkdir -p bin/cni
	$(TOOLS) $(STATIC) build -ldflags "-s -w" -o ../../bin/cni/ $(addprefix $(CNI_MODULE)/,$(CNI_PLUGINS))
	touch $@

bin/hello: $(wildcard cmd/hello/*.go) go.sum
	$(STATIC) build -ldflags "-s -w" -o $@ ./cmd/hello

bin/images/hello.tar: bin/hello $(wildcard internal/testimage/*.go internal/testimage/mkimage/*.go)
	mkdir -p bin/images
	$(STATIC) run ./internal/testimage/mkimage bin/hello $@

bin/staticcheck: internal/tools/go.sum
	$(TOOLS) $(STATIC) build -o ../../$@ honnef.co/go/tools/cmd/staticcheck

bin/govulncheck: internal/tools/go.sum
	$(TOOLS) $(STATIC) build -o ../../$@ golang.org/x/vuln/cmd/govulncheck

# The operator of examples/, which the end-to-end tests run.
.PHONY: bin/site-operator
bin/site-operator:
	$(STATIC) build -ldflags "-s -w" -o $@ ./examples/operator

bin/etcdctl: internal/tools/go.sum
	$(TOOLS) $(STATIC) build -ldflags "-s -w" -o ../../$@ go.etcd.io/etcd/etcdctl/v3

.PHONY: nft
nft:
	@sh .ci/nft.sh

# ---- run ----

.PHONY: run
run: build nft ## build, start one node, run examples/hello.yaml on it, stay up until Ctrl-C
	@sh examples/run.sh

# ---- check ----

.PHONY: test
test: build bin/etcdctl bin/site-operator nft ## run all tests; as root they include real containers
	@sh .ci/gotest.sh ./...

.PHONY: race
race: build ## run the tests that need no node under the race detector (needs gcc)
	CGO_ENABLED=1 $(GO) test -race -short ./...

# Seeds of a soak, and the first of them: others each time.
SOAK       ?= 20000
SOAK_FIRST ?= $(shell date +%s)000
# How long a soak plagues real processes, and slows their disks down.
SOAK_FAULTS   ?= 10m
SOAK_SLOWDISK ?= 30m
# How long a soak breaks a lab of four machines while it is used.
SOAK_LAB ?= 30m
# MiB of the snapshot that it sends to a new member.
SOAK_SNAPSHOT ?= 1024

.PHONY: api-docs
api-docs: ## write the generated part of docs/api.md anew
	$(GO) test -count=1 -run TestAPITable ./docs -update

.PHONY: simulate
simulate: ## run the cluster simulation alone, with as many seeds as `make test`
	$(STATIC) test -count=1 -vet=off -timeout 40m ./raftstore/simulation

.PHONY: soak
soak: build nft ## break a lab while it is used for 30 minutes (SOAK_LAB); kill, stop and partition real members for 10 minutes, give them slow disks for 30 (SOAK_FAULTS, SOAK_SLOWDISK), send a snapshot of 1 GiB (SOAK_SNAPSHOT MiB); then many seeds of the cluster simulation (SOAK, SOAK_FIRST)
	$(STATIC) test -count=1 -vet=off -timeout 24h -v ./internal/e2e -run TestLabSoak -lab.strict -lab.duration $(SOAK_LAB)
	$(STATIC) test -count=1 -vet=off -timeout 24h -v ./raftstore/faults -faults.duration $(SOAK_FAULTS) -faults.slowdisk $(SOAK_SLOWDISK) -faults.snapshot $(SOAK_SNAPSHOT)
	$(STATIC) test -count=1 -vet=off -timeout 24h ./raftstore/simulation -sim.seeds $(SOAK) -sim.first $(SOAK_FIRST)

# Where Kubernetes' own test programs are described, and where their builds lie.
CONFORMANCE     ?= ../shared/conformance
CONFORMANCE_OUT ?= $(HOME)/.cache/kontiki-conformance

.PHONY: conformance
conformance: bin/kontiki ## run Kubernetes' conformance tests of CLASS (default A) against kontiki dev
	@CONFORMANCE="$(CONFORMANCE)" OUT="$(CONFORMANCE_OUT)" sh .ci/conformance.sh

.PHONY: conformance-lab
conformance-lab: build nft ## run those that need nodes (ONLY, SKIP or FOCUS: expressions) on a lab of three machines, as root
	@CONFORMANCE="$(CONFORMANCE)" OUT="$(CONFORMANCE_OUT)" sh .ci/conformance-images.sh
	@CONFORMANCE="$(CONFORMANCE)" OUT="$(CONFORMANCE_OUT)" sh .ci/conformance-lab.sh

.PHONY: diff-upstream
diff-upstream: ## send one corpus of requests to Kontiki and to a kube-apiserver, print what differs
	@test -x "$(CONFORMANCE_OUT)/kube-apiserver" || { echo "$(CONFORMANCE_OUT)/kube-apiserver is missing: $(CONFORMANCE)/build kube-apiserver makes it" >&2; exit 2; }
	KONTIKI_UPSTREAM="$(CONFORMANCE_OUT)/kube-apiserver" $(STATIC) test -count=1 -v -timeout 20m -run AgainstUpstream ./internal/differential

.PHONY: vuln
vuln: bin/govulncheck ## known vulnerabilities of what is linked (asks vuln.go.dev: needs the internet)
	bin/govulncheck ./...

.PHONY: fuzz
fuzz: ## run every fuzz target for FUZZTIME (default 20s)
	@sh .ci/fuzz.sh $(FUZZTIME)

.PHONY: lint
lint: bin/staticcheck ## gofmt, go vet, staticcheck
	@sh .ci/lint.sh

.PHONY: bench
bench: build nft ## compare the store with etcd, measure the API server and a node, and print the figures
	$(STATIC) build -o bin/ ./internal/bench/...
	bin/bench

UPSTREAM ?= $(CONFORMANCE_OUT)/kube-apiserver

.PHONY: bench-api
bench-api: bin/kontiki ## the API loads of the bench beside a kube-apiserver with an etcd (UPSTREAM)
	$(STATIC) build -o bin/ ./internal/bench/...
	sh .ci/bench-api.sh bin/kontiki bin/bench $(UPSTREAM)

.PHONY: e2e
e2e: build bin/site-operator nft ## run the end-to-end tests alone (needs root)
	CGO_ENABLED=0 $(GO) test -count=1 -v ./internal/e2e/...

# Where the image of a machine is made, and a bin/ of another version to upgrade from.
MACHINES_IMAGE ?= $(HOME)/.cache/kontiki-machines/image
OLD_BIN        ?=

.PHONY: three-machines
three-machines: build ## follow docs/three-nodes.md and drills on three Debian machines with systemd, as root (needs systemd-container, mmdebstrap, a Debian mirror)
	mkdir -p $(dir $(MACHINES_IMAGE))
	$(STATIC) test -count=1 -vet=off -timeout 60m -v ./internal/machines -machines.image "$(MACHINES_IMAGE)" -machines.old "$(OLD_BIN)"

.PHONY: validations
validations: ## write the declared validation anew, from the +k8s: tags of k8s.io/api
	apiserver/registry/validations/generate

.PHONY: clean
clean: ## remove what was built (not .kontiki/)
	rm -rf bin
