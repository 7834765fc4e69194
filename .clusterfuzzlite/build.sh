#!/usr/bin/env bash
# Builds every target of fuzz/ into $OUT, each beside a zip of its seeds. Run by the image of
# Dockerfile, which sets OUT, SRC, SANITIZER and the flags of the compilers.
set -euo pipefail
cd "$SRC/shakedown"

# Coverage needs flags of its own, which the image has put into RUSTFLAGS, and no sanitizer.
sanitizer=address
[ "${SANITIZER:-address}" = address ] || sanitizer=none

targets=$(cargo fuzz list)
[ -n "$targets" ] || { echo "fuzz/ has no target" >&2 && exit 1; }
cargo fuzz build --release --sanitizer "$sanitizer"

triple=$(rustc -vV | sed -n 's/^host: //p')
for target in $targets; do
  cp "fuzz/target/$triple/release/$target" "$OUT/"
  # The folder of a contract is its target with hyphens.
  seeds=corpora/${target//_/-}/seeds
  if [ -d "$seeds" ]; then
    zip --quiet --recurse-paths --junk-paths "$OUT/${target}_seed_corpus.zip" "$seeds"
  fi
done
