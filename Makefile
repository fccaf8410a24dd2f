# Thin: the presets say how things are built, scripts/ says what is done with them, docs/install.md explains.
PREFIX ?= /usr/local
FILE ?= examples/page.png
TASKS = build
CONFIGURE = -DFATHOM_TESTS=OFF -DFATHOM_BENCH=OFF

.PHONY: all run test bench install package format format-check clean

# Installs the tools and libraries that are missing (scripts/deps.sh) and builds the programs into build/bin/.
all:
	@scripts/deps.sh $(TASKS)
	@cmake --preset release $(CONFIGURE) >/dev/null
	@cmake --build --preset release

run: all
	build/bin/fathom $(FILE)

# PRESETS narrows it: make test PRESETS=release
test:
	@scripts/deps.sh build test package
	@scripts/test.sh $(PRESETS)

bench: TASKS += bench
bench: CONFIGURE = -DFATHOM_TESTS=OFF
bench: all
	@scripts/bench.sh

install: CONFIGURE += -DCMAKE_INSTALL_PREFIX=$(PREFIX)
install: all
	@DESTDIR=$(DESTDIR) cmake --install build

package:
	@scripts/deps.sh build package
	@cmake --preset package >/dev/null
	@cmake --build --preset package
	@cd build/package && cpack

format:
	@scripts/format.sh

format-check:
	@scripts/format.sh --check

clean:
	rm -rf build
