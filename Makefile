# make without a target lists the targets. Only Go is needed.

GO      ?= go
ARGS    ?=
VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo devel)
COMMIT  ?= $(shell git rev-parse HEAD 2>/dev/null)
DATE    ?= $(shell git log -1 --format=%cI 2>/dev/null)
LDFLAGS := -s -w -X main.version=$(VERSION) -X main.commit=$(COMMIT) -X main.date=$(DATE)

# The packages with goroutines are tested under the race detector; the pure ones
# have none, by law (internal/purity), and are spared its cost. The detector needs
# a C compiler: without one Go turns cgo off, and the tests run without it.
RACED := $(addsuffix /...,$(wildcard ./bench ./checkpoint ./cmd ./faultinject ./filestore ./proxy ./redisstore ./statuspage ./telemetry ./upstream))
OTHER  = $(filter-out $(shell $(GO) list $(RACED)) %/e2e/agents,$(shell $(GO) list ./...))
RACE  := $(if $(filter 1,$(shell $(GO) env CGO_ENABLED)),-race)

# For machines without golangci-lint; pinned, so that it says tomorrow what it says today.
STATICCHECK := honnef.co/go/tools/cmd/staticcheck@v0.8.2

FUZZTIME ?= 20s
BATTERY  ?= Everywhere
BENCH    ?= .
PKG      ?= ./...

.DEFAULT_GOAL := help

.PHONY: help
help: ## Show this help
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-12s %s\n", $$1, $$2}'

.PHONY: build
build: ## Build bin/unbroken, static
	CGO_ENABLED=0 $(GO) build -trimpath -ldflags '$(LDFLAGS)' -o bin/unbroken ./cmd/proxy

# What a release is built for, and the tool that lists what is in it.
PLATFORMS := linux/amd64 linux/arm64 darwin/amd64 darwin/arm64
GOMOD_SBOM := github.com/CycloneDX/cyclonedx-gomod/cmd/cyclonedx-gomod@v1.9.0

.PHONY: release
release: ## Build dist/ for all platforms, with checksums and an SBOM
	@rm -rf dist && mkdir -p dist
	@set -e; for p in $(PLATFORMS); do \
	  out=dist/unbroken_$(VERSION)_$${p%/*}_$${p#*/}; echo "$$out"; \
	  CGO_ENABLED=0 GOOS=$${p%/*} GOARCH=$${p#*/} $(GO) build -trimpath -ldflags '$(LDFLAGS)' -o $$out ./cmd/proxy; \
	done
	$(GO) run $(GOMOD_SBOM) app -json -licenses -main cmd/proxy -output dist/unbroken_$(VERSION).sbom.json .
	cd dist && sha256sum * > SHA256SUMS

.PHONY: run
run: build ## Build and serve; ARGS are passed on
	./bin/unbroken $(ARGS)

.PHONY: demo
demo: build ## See streams break and heal
	./bin/unbroken demo

.PHONY: test
test: ## Test everything, batteries by samples; packages with goroutines under the race detector
	$(GO) test $(OTHER)
	$(if $(RACE),,@echo "no C compiler: testing without the race detector")
	$(GO) test $(RACE) -parallel 8 $(RACED)

.PHONY: check
check: fmt vet lint purity test ## All that CI runs

.PHONY: fmt
fmt: ## Fail on files that gofmt would change
	@changed=$$(gofmt -l .); test -z "$$changed" || { echo "gofmt -w these:"; echo "$$changed"; exit 1; }

.PHONY: vet
vet: ## go vet
	$(GO) vet ./...

.PHONY: lint
lint: ## golangci-lint where it is installed, else staticcheck
	@if command -v golangci-lint >/dev/null; then golangci-lint run; else $(GO) run $(STATICCHECK) ./...; fi

.PHONY: purity
purity: ## The laws of imports, purity and file length
	$(GO) test -count=1 ./internal/purity

.PHONY: battery
battery: ## Cut every recorded stream at every event boundary (minutes); BATTERY is a pattern
	$(GO) test -count=1 -v -timeout 40m -run '$(BATTERY)' ./relay -battery.full

.PHONY: every
every: ## Every client meets every fault, every point of a run is died at, longer models (minutes)
	$(GO) test -count=1 -v -timeout 20m -run 'Test(Go|Node)Clients|KilledAtEveryPoint' ./e2e -clients.nth 1 -points.full
	$(GO) test -count=1 -v -run 'TestModel$$' ./ledger -model.programs 150
	$(GO) test -count=1 -v -run TestSim ./relay -sim.n 500

.PHONY: support
support: ## Play the sampled batteries and write docs/SUPPORT.md from what they saw
	$(GO) test -count=1 -timeout 20m -run 'CutEverywhere|StructuredAnswer|HeldIsByteEqual|SupportTable' ./relay -support
	git diff --stat -- docs/SUPPORT.md

.PHONY: clients
clients: ## Install the npm clients that make test then runs against the proxy
	cd e2e/clients && npm ci --no-audit --no-fund --ignore-scripts

.PHONY: clients-full
clients-full: clients ## Every client, every fault, every scenario (many minutes)
	$(GO) test -count=1 -v -timeout 40m -run 'Test(Go|Node)Clients' ./e2e -clients.full

.PHONY: agents
agents: ## Run coding agents (npm) through broken streams, some minutes
	e2e/agents/install
	$(GO) test -count=1 -timeout 30m -v ./e2e/agents

.PHONY: fuzz
fuzz: ## Run every fuzz test for FUZZTIME (20s each); PKG narrows it
	@set -e; for pkg in $$($(GO) list $(PKG)); do \
		for f in $$($(GO) test -list '^Fuzz' $$pkg | grep '^Fuzz' || true); do \
			echo "$$pkg $$f"; $(GO) test -run '^$$' -fuzz "^$$f\$$" -fuzztime $(FUZZTIME) $$pkg; \
		done; \
	done

.PHONY: microbench
microbench: ## Run the Go benchmarks; BENCH is a pattern, PKG narrows it
	$(GO) test -run '^$$' -bench '$(BENCH)' -benchmem $(PKG)

.PHONY: redis-faults
redis-faults: ## Break Redis in five ways under 500 streams, two minutes, or ten on a machine that stutters
	$(GO) test -count=1 -v -timeout 20m -run StreamsDoNotFeelRedis ./e2e -streams 500

# The peers of the comparison, and the store that it is run with.
BENCHED := nginx haproxy redis-server
APT     := $(if $(filter 0,$(shell id -u)),,sudo) apt-get

# What is committed is of a whole run. One with ARGS is a look, and goes where git does not.
RESULTS := bench/results$(if $(strip $(ARGS)),/local)
SAID    := a look with ARGS: its results go to $(RESULTS), which git ignores
SAY_LOOK = $(if $(strip $(ARGS)),@echo "$(SAID)")

.PHONY: bench
bench: build bench-peers ## Compare with nginx, HAProxy and ReverseProxy, an hour; writes bench/results, with ARGS bench/results/local
	$(SAY_LOOK)
	@mkdir -p $(RESULTS)
	$(GO) run ./bench -unbroken bin/unbroken -scenarios flood,paced1000,paced250,idle5000,json,body50,store250,linear,heal,faultrate \
		-json $(RESULTS)/bench.json -html $(RESULTS)/bench.html $(ARGS) >$(RESULTS)/bench.txt || failed=$$?; cat $(RESULTS)/bench.txt; exit $$failed

.PHONY: bench-peers
bench-peers:
	@for p in $(BENCHED); do command -v $$p >/dev/null || $(APT) install -y --no-install-recommends $$p; done

# What the baseline is of.
CHECKED := -scenarios flood,paced250,json,body50 -peers nginx,unbroken-redis,unbroken-memory -baseline bench/baseline.json

.PHONY: bench-check
bench-check: build bench-peers ## Fail if a ratio to nginx is more than 15 % worse than bench/baseline.json
	$(GO) run ./bench -unbroken bin/unbroken $(CHECKED) $(ARGS)

.PHONY: bench-baseline
bench-baseline: build bench-peers ## Write bench/baseline.json anew
	$(GO) run ./bench -unbroken bin/unbroken $(CHECKED) -write-baseline $(ARGS)

.PHONY: soak
soak: build bench-peers ## Half an hour of turns, a tenth of all attempts cut; fails if anything grows. Writes where bench does
	$(SAY_LOOK)
	$(GO) run ./bench -unbroken bin/unbroken -soak -out $(RESULTS) $(ARGS)

.PHONY: bench-redis
bench-redis: build ## What checkpoints cost Redis: bytes for each byte of text, commands a second
	$(GO) run ./bench -redis -unbroken bin/unbroken $(ARGS)

.PHONY: drill
drill: ## Play the outage drill, about four minutes; writes where bench does
	$(SAY_LOOK)
	$(GO) run ./bench/drill -out $(RESULTS) $(ARGS)

.PHONY: golden
golden: ## Write golden files anew and show what changed
	@set -e; for pkg in $$($(GO) list $(PKG)); do \
		if $(GO) list -deps -test $$pkg | grep -qE '/(internal/golden|dialect/dialecttest)$$'; then $(GO) test -count=1 $$pkg -rewrite; fi; \
	done
	git diff --stat -- ':(glob)**/testdata/**' unbroken.example.yaml

.PHONY: cover
cover: ## Test with coverage of the whole module; cover.out
	$(GO) test -coverpkg=./... -coverprofile=cover.out ./...
	$(GO) tool cover -func=cover.out | tail -1

.PHONY: image
image: ## Build the container image unbroken:VERSION, which is unbroken:latest too
	docker build --build-arg VERSION=$(VERSION) --build-arg COMMIT=$(COMMIT) --build-arg DATE=$(DATE) -t unbroken:$(VERSION) -t unbroken:latest .

.PHONY: compose
compose: ## Build and run the proxy with Redis, Prometheus and Grafana (deploy/compose)
	VERSION=$(VERSION) COMMIT=$(COMMIT) DATE=$(DATE) docker compose -f deploy/compose/compose.yaml up --build
