# One word each. `make` alone lists them.

CARGO ?= cargo
DENY_VERSION := 0.20
NEXTEST_VERSION := 0.9

# With tools/clippy-rustc as the compiler, the build that the tests need finds the same faults.
ifneq ($(filter %/clippy-rustc,$(RUSTC_WORKSPACE_WRAPPER)),)
LINT := @echo 'lints are found by the compiler'
else
LINT := $(CARGO) clippy --workspace --all-targets -- -D warnings
endif

.DEFAULT_GOAL := help
.PHONY: help run worker dev migrate api api-fuzz test test-full proto-lint workflow-lint licences verify dist sign-dist try-dist bench bench-cluster performance matrix soak soak-kernel soak-cluster soak-sagas chaos chaos-cluster recovery observe sim docs sdk-python servers nextest deny

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

run: ## start the server with a built-in worker
	$(CARGO) run -p lockgate -- serve

worker: ## start one more worker, attached to a running server
	$(CARGO) run -p lockgate -- worker

test: nextest servers proto-lint workflow-lint ## formatting, lints, tidy and every test: what CI runs
	$(CARGO) fmt --all --check
	$(LINT)
	$(CARGO) xtask tidy
	$(CARGO) test --workspace --doc
	$(CARGO) xtask shared $(CARGO) nextest run --workspace

proto-lint: servers ## the rules of buf.yaml on proto/, and that every file compiles
	tools/lint-protos

workflow-lint: ## actionlint on .github/workflows
	tools/lint-workflows

licences: deny ## the licences, bans and sources of dependencies
	$(CARGO) deny check licenses bans sources

verify: test licences ## test, and licences, and the docs of the code
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc --workspace --no-deps

test-full: verify api api-fuzz docs sdk-python dist ## everything that ends by itself: verify, api, api-fuzz, docs, sdk-python, dist, try-dist
	tools/try-dist

dist: ## what users install, into target/dist/out: tarball, Debian package, wheel, npm packages, SBOM, provenance, checksums
	tools/make-dist

sign-dist: ## sign the checksums of what dist made with LOCKGATE_SIGNING_KEY
	tools/dist/sign

try-dist: ## install what dist made where nothing else is, start it, run a job; needs root
	tools/try-dist

bench: ## measure rates and latencies against a server of its own
	$(CARGO) run --release -p lockgate -- bench

dev: servers ## a cluster on this machine: PostgreSQL, Redis, NATS, gateways, schedulers, workers, Prometheus
	$(CARGO) xtask dev

migrate: ## bring the database of DATABASE_URL to the schema of this version
	$(CARGO) run -p lockgate -- migrate

bench-cluster: servers ## the same on PostgreSQL, Redis and NATS of its own
	$(CARGO) build --release -p lockgate
	$(CARGO) xtask servers $${CARGO_TARGET_DIR:-target}/release/lockgate bench --cluster

performance: servers ## bench and bench-cluster, and their figures into the tables of docs/performance.md; ten minutes
	$(CARGO) xtask performance

matrix: servers ## the adapters on other servers: PostgreSQL 18, Valkey 9, NATS 2.9
	@echo 'left out: TLS to PostgreSQL and to Valkey, which these packages are built without'
	env $$(tools/get-matrix) $(CARGO) xtask shared $(CARGO) nextest run --workspace \
		-E '(package(lockgate-testbed) | package(lockgate-postgres) | package(lockgate-redis) | package(lockgate-nats)) - (test(over_tls) & (package(lockgate-postgres) | package(lockgate-redis)))'

soak: ## kill -9 the server 50 times under load; a minute or two
	LOCKGATE_SOAK_KILLS=50 $(CARGO) test --workspace --test e2e -- kill_9 --nocapture

soak-kernel: ## a safety kernel dead for longer than its breaker's real 30 s; minutes
	LOCKGATE_SOAK_KERNEL=1 $(CARGO) test --workspace --test e2e -- while_the_kernel_is_dead --nocapture

soak-cluster: servers ## every fault of a cluster under 20,000 jobs, Redis paused for 30 s; minutes
	LOCKGATE_SOAK_JOBS=20000 LOCKGATE_SOAK_PAUSE_SECONDS=30 $(CARGO) test --workspace --test e2e -- every_fault --nocapture

soak-sagas: servers ## 2,000 runs that are rolled back while workers finish what was cancelled, and 333 random ones; minutes
	LOCKGATE_SOAK_SAGAS=2000 $(CARGO) test --workspace --test e2e -- a_cancelled_node_needed_is_undone --nocapture

chaos: ## break an installation on purpose, fault by fault, and show how it recovers; minutes
	$(CARGO) run -p lockgate -- chaos

chaos-cluster: servers ## the same with many processes on PostgreSQL, Redis and NATS of its own; minutes
	$(CARGO) build -p lockgate
	$(CARGO) xtask servers $${CARGO_TARGET_DIR:-target}/debug/lockgate chaos --cluster

recovery: servers ## both of them, and the measured times into the tables of docs/resilience.md; a quarter of an hour
	$(CARGO) xtask recovery

observe: servers ## a cluster under load and in trouble, scraped by Prometheus: does every dashboard show something, do the alerts fire when it is time, and end; a quarter of an hour
	$(CARGO) xtask observe

sim: ## 10,000 simulated stories of crashes and faults; minutes
	$(CARGO) xtask sim --seeds 10000

docs: ## build the documentation site into target/book/html and check its links
	tools/make-docs

api: ## validate /openapi.json, and run a tour with clients that are generated from it, in Python and TypeScript
	tools/check-api

sdk-python: ## the wheel of the Python package, in target/sdk-python/wheels: lints, types and tests against a real server
	tools/check-sdk-python

api-fuzz: ## send what /openapi.json allows and forbids to servers with and without --auth, by schemathesis; minutes
	tools/fuzz-api

servers:
	@tools/get-servers

nextest:
	@$(CARGO) nextest --version >/dev/null 2>&1 || $(CARGO) install --locked cargo-nextest --version "^$(NEXTEST_VERSION)"

deny:
	@$(CARGO) deny --version >/dev/null 2>&1 || $(CARGO) install --locked cargo-deny --version "^$(DENY_VERSION)"
