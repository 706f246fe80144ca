# Millstream. `make` alone says what there is.

# A fresh rustup is not in the shell's PATH yet, and the programs of administrators never are.
CARGO_HOME ?= $(HOME)/.cargo
export PATH := $(CARGO_HOME)/bin:$(PATH):/usr/sbin:/sbin

TARGET := $(or $(CARGO_TARGET_DIR),target)

.PHONY: help run test lab bench clean

help:
	@echo "make run     build Millstream and serve http://localhost:8080 (Ctrl-C ends it)"
	@echo "make test    everything a change must pass: format, rules, lints, tests, documentation"
	@echo "make lab     build Millstream and install what its lab can use"
	@echo "make bench   the measurements there are; cargo xtask bench NAME runs one"
	@echo "make clean   remove what was built"

# Started by root, the worker runs as the owner of this checkout, who can read it.
run:
	@setup/ensure run
	@cargo build --release --locked --package millstream
	@mkdir -p target
	@if [ "$$(id -u)" = 0 ]; then set -- -g "user $$(stat -c %U .);"; fi; \
	echo "Millstream serves http://localhost:8080; Ctrl-C ends it."; \
	exec "$(TARGET)/release/millstream" serve -p "$(CURDIR)" -c site/nginx.conf "$$@"

test:
	@setup/ensure test
	@cargo xtask check

lab:
	@setup/ensure lab
	@cargo build --release --locked --package millstream
	@echo "Now: $(TARGET)/release/millstream lab run first-look"

bench:
	@setup/ensure test
	@cargo xtask bench

clean:
	@cargo clean
