# What a person or a machine does with this repository. `make help` lists it.
#
# Every target builds what it needs. Nothing is installed outside of caches under ~/.cache and cargo's own.

ifeq ($(filter 4.% 5.%,$(MAKE_VERSION)),)
$(error GNU make 4 or later is needed, this is $(MAKE_VERSION))
endif

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DELETE_ON_ERROR:
.DEFAULT_GOAL := help

CACHE := $(or $(XDG_CACHE_HOME),$(HOME)/.cache)
CONTROLPLANE_CACHE := $(or $(WFE_CONTROLPLANE_CACHE),$(CACHE)/wfe-controlplane)
TOOLS_CACHE := $(CACHE)/wfe-tools

# Tools from crates.io, pinned: NAME-VERSION.
DENY := $(TOOLS_CACHE)/cargo-deny-0.20.2/bin/cargo-deny
AUDITABLE := $(TOOLS_CACHE)/cargo-auditable-0.7.7/bin/cargo-auditable
CYCLONEDX := $(TOOLS_CACHE)/cargo-cyclonedx-0.5.9/bin/cargo-cyclonedx
AUDIT_INFO := $(TOOLS_CACHE)/rust-audit-info-0.5.4/bin/rust-audit-info
MDBOOK := $(TOOLS_CACHE)/mdbook-0.5.4/bin/mdbook
ZIZMOR := $(TOOLS_CACHE)/zizmor-1.26.1/bin/zizmor
# And one from Go's module proxy.
ACTIONLINT := $(TOOLS_CACHE)/actionlint-1.7.12/bin/actionlint
RELEASE_PATH = $(dir $(AUDITABLE)):$(dir $(CYCLONEDX)):$(dir $(AUDIT_INFO)):$(PATH)

# Tests mostly wait, so there are more of them at once than cores. The long variants load the API server more.
RUST_TEST_THREADS ?= 12
test-all: RUST_TEST_THREADS := 8
export RUST_TEST_THREADS

.PHONY: help
help: ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-15s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

# --- to look at and to try -------------------------------------------------------------------------------------------

.PHONY: demo
demo: versions-rust $(if $(KUBECONFIG),,assets) bins ## Show on a real control plane what the operator does
	@cargo run --quiet --bin demo

.PHONY: control-plane
control-plane: versions-rust assets bins ## Run a control plane with Tekton in the foreground
	@cargo run --quiet --bin control-plane -- up $(ARGS)

# --- to test ---------------------------------------------------------------------------------------------------------

.PHONY: test
test: versions-rust assets assets-helm assets-prometheus bins ## Run all tests (minutes)
	@.ci/test

.PHONY: test-all
test-all: versions-rust assets assets-oldest assets-helm assets-prometheus assets-previous assets-clients bins ## Run all tests, the long variants too (half an hour)
	@WFE_TEST_ALL=1 .ci/test
	@.ci/test-clients
	cargo run --quiet --bin soak -- --minutes 1
	cargo run --quiet --release -p wfe-model --bin model
	$(MAKE) --no-print-directory test-page
	$(MAKE) --no-print-directory test-release

.PHONY: test-clients
test-clients: versions-rust assets assets-clients bins ## Test the Go types and the programs in Go and Python, also on a control plane
	@.ci/test-clients
	WFE_TEST_ALL=1 cargo test --package wfe-tests --test cluster -- the_program_in_

.PHONY: test-page
test-page: versions-rust ## Look at the page of kubectl wfe in a headless Chromium, if one is there (SHOTS=dir keeps screenshots)
	@tests/page/check $(if $(SHOTS),--shots $(SHOTS))

# Also runs the static binary as the chart deploys it.
.PHONY: test-release
test-release: versions-rust check-workflows assets assets-helm bins $(AUDITABLE) $(CYCLONEDX) $(AUDIT_INFO) ## Build a release, and look whether all in it is as it should be
	@PATH="$(RELEASE_PATH)" .ci/test-release

.PHONY: simulate
simulate: versions-rust ## Play the operator in virtual time, by the plans of SEEDS seeds
	cargo run --quiet --profile harness --package wfe-simulation --bin simulate -- seeds --count $(or $(SEEDS),1000) $(ARGS)

.PHONY: soak
soak: versions-rust assets bins ## Run two operators under load and faults for MINUTES, and judge what happened
	cargo run --quiet --bin soak -- --minutes $(or $(MINUTES),10) $(ARGS)

# The operator as it is released, beside a program that measures it; and what the micro-benchmarks left.
BENCH = cargo run --quiet --profile harness --package wfe-tests --bin bench --
MICRO = --criterion target/criterion --bytes target/memory.jsonl

.PHONY: bench
bench: versions-rust assets $(if $(QUICK),,bench-micro) ## Measure what the operator costs (QUICK=1: in minutes; KEEP=1: for the docs; RATIOS=1: on a noisy machine)
	cargo build --quiet --release --package wfe-operator
	cargo build --quiet --release --package kubectl-wfe
	cargo build --quiet --profile harness --package wfe-testkit --bin control-plane
	$(BENCH) run --operator target/release/wfe-operator $(if $(QUICK),--quick,$(MICRO)) $(if $(KEEP),--keep) $(if $(RATIOS),--ratios-only) $(if $(KUBECONFIG),--kubeconfig $(KUBECONFIG)) $(ARGS)

# What criterion measures is below target/criterion, and what the index holds in target/memory.jsonl.
.PHONY: bench-micro
bench-micro: versions-rust ## Measure decisions, index, reading, and the bytes of the index (two minutes, and the build)
	cargo bench --package wfe-core --package wfe-tekton --package wfe-view --bench circuits --bench decide --bench parsing --bench index
	WFE_MEMORY_REPORT=$(CURDIR)/target/memory.jsonl cargo test --release --package wfe-view --test memory -- --nocapture

.PHONY: fixtures
fixtures: versions-rust assets assets-oldest bins ## Record again what both versions of Tekton write of each outcome
	cargo run --quiet --bin recorder -- $(ARGS)
	cargo run --quiet --bin recorder -- --tekton oldest $(ARGS)

.PHONY: outcomes
outcomes: versions-rust assets assets-oldest bins ## Write the reference page of outcomes anew, from what both versions of Tekton do
	WFE_TEST_ALL=1 WFE_WRITE_OUTCOMES=1 cargo test --package wfe-tests --test cluster -- executions_tell_the_truth

.PHONY: plots
plots: versions-rust assets assets-prometheus bins ## Draw anew what the dashboard shows, for docs/monitoring.md
	WFE_WRITE_PLOTS=1 cargo test --package wfe-tests --test cluster -- prometheus::story

.PHONY: golden
golden: versions-rust assets assets-helm bins ## Write anew what the chart renders and the plugin answers, on record in tests/golden
	WFE_WRITE_GOLDEN=1 cargo test --package wfe-tests --test cluster -- chart::rendered kubectl_wfe::six_questions

# The examples are built by all that `cargo test` builds; the one of an orchestrator is run here.
.PHONY: tutorial
tutorial: versions-rust assets bins ## Write anew what the commands of docs/tutorial.md and docs/writing-workflows.md answer
	cargo build --quiet --package wfe-api --example remediation_orchestrator
	WFE_WRITE_TUTORIAL=1 cargo test --package wfe-tests --test cluster -- tutorial::

# --- to check --------------------------------------------------------------------------------------------------------

.PHONY: check
check: check-format check-comments check-prose check-files check-commits check-scripts check-clippy check-rustdoc check-generated check-docs check-deny ## Check everything but the tests
	@echo "check: all is well"

.PHONY: check-format
check-format: versions-rust
	@.ci/timed $@ cargo fmt --all --check

.PHONY: check-comments
check-comments:
	@.ci/timed $@ .ci/check-comments

.PHONY: check-prose
check-prose:
	@.ci/timed $@ .ci/prose check

.PHONY: sample-prose
sample-prose: ## Print sentences of pages and comments to judge, drawn with SEED=n
	@.ci/prose sample $(or $(SEED),1)

.PHONY: check-files
check-files:
	@.ci/timed $@ .ci/check-files

.PHONY: check-commits
check-commits:
	@.ci/timed $@ .ci/check-commits

.PHONY: check-scripts
check-scripts:
	@.ci/timed $@ .ci/check-scripts

.PHONY: check-clippy
check-clippy: versions-rust
	@.ci/timed $@ cargo clippy --quiet --workspace --all-targets -- -D warnings

# Private items are documented too, so links to them lead somewhere.
.PHONY: check-rustdoc
check-rustdoc: versions-rust
	@RUSTDOCFLAGS="-D warnings -A rustdoc::private-intra-doc-links" .ci/timed $@ cargo doc --quiet --workspace --no-deps --document-private-items

.PHONY: check-generated
check-generated: versions-rust
	@.ci/timed $@ .ci/generate --check

.PHONY: check-docs
check-docs:
	@.ci/timed $@ .ci/check-docs

# Not in `check`: it builds mdBook first.
.PHONY: docs
docs: $(MDBOOK) ## Build the documentation as a site into target/docs/book, and check its links
	@.ci/docs $(MDBOOK)

.PHONY: check-deny
check-deny: $(DENY)
	@.ci/timed $@ $(DENY) --log-level warn check bans licenses sources

# No part of `check`: it needs the network, and its answer changes without a change of ours.
.PHONY: check-advisories
check-advisories: $(DENY) ## Ask the RustSec database about the dependencies
	@.ci/timed $@ $(DENY) --log-level warn check advisories

# Not even zizmor asks the network here.
.PHONY: check-workflows
check-workflows: $(ACTIONLINT) $(ZIZMOR) ## Check the workflows of GitHub
	@.ci/timed actionlint $(ACTIONLINT) -no-color
	@.ci/timed zizmor $(ZIZMOR) --offline --quiet --persona=pedantic .

$(ACTIONLINT): | versions-go
	@echo "building $(@F), once: a minute of one core"
	@root=$(patsubst %/bin/,%,$(@D)/) && GOBIN=$(@D) go install github.com/rhysd/actionlint/cmd/actionlint@v"$${root##*/$(@F)-}"

# mdBook's server for authors is left out.
$(MDBOOK): CARGO_INSTALL := --no-default-features --features search
# It runs for two seconds, so to optimize it would cost more than it saves.
$(DENY): CARGO_INSTALL := --debug

# The directory that a tool is installed into, NAME-VERSION, says which version.
$(DENY) $(AUDITABLE) $(CYCLONEDX) $(AUDIT_INFO) $(MDBOOK) $(ZIZMOR): | versions-rust
	@echo "building $(@F), once: some minutes of one core"
	@root=$(patsubst %/bin/,%,$(@D)/) && cargo install --quiet --locked $(CARGO_INSTALL) --version "$${root##*/$(@F)-}" --root "$$root" $(@F)

# --- to build --------------------------------------------------------------------------------------------------------

.PHONY: generate
generate: versions-rust ## Write the generated files: the CRD, the Go types, the reference pages, the lists of settings
	@.ci/generate

.PHONY: release
release: versions-rust assets-helm $(AUDITABLE) $(CYCLONEDX) ## Build all that a release consists of into dist (docs/releasing.md)
	@PATH="$(RELEASE_PATH)" .ci/release

.PHONY: assets
assets: versions-go
	@tests/controlplane/build

# The control plane with the oldest Tekton that is supported.
.PHONY: assets-oldest
assets-oldest: versions-go
	@tests/controlplane/build --tekton oldest

# The Prometheus that the tests of metrics and alerts run.
.PHONY: assets-prometheus
assets-prometheus:
	@tests/prometheus/fetch

# Helm, which the tests of the chart need.
.PHONY: assets-helm
assets-helm: versions-go
	@tests/controlplane/build --helm

# The example programs in Go and Python.
.PHONY: assets-clients
assets-clients: versions-go
	@clients/build >/dev/null

# The operator that the upgrade test starts from, of an earlier commit.
.PHONY: assets-previous
assets-previous: versions-rust
	@tests/upgrade/build

.PHONY: bins
bins: versions-rust
	@cargo build --workspace --bins

.PHONY: versions-rust
versions-rust:
	@.ci/versions rust cc

.PHONY: versions-go
versions-go:
	@.ci/versions go

# --- to clean --------------------------------------------------------------------------------------------------------

.PHONY: clean
clean: ## Remove what was built in this checkout
	cargo clean
	rm -rf .run dist

.PHONY: clean-cache
clean-cache: ## Remove what was built once for all checkouts: the control plane and the tools
	rm -rf $(CONTROLPLANE_CACHE) $(TOOLS_CACHE)
