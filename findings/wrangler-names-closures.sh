#!/usr/bin/env bash
# A Worker that wrangler bundles pays for the names of its functions on every request, not once at start-up. By default
# wrangler lets esbuild keep names, and esbuild wraps a function where it is created: `const twice = () => …` inside a
# handler becomes `const twice = __name(() => …, "twice")`, so each request defines the name of each such closure again.
# `keep_names = false` in the configuration turns it off.
#
# wrangler 4.155.0 (esbuild inside). Seen 2026-11-30. Needs node 22 and npm; bundles a Worker without an account and runs the
# bundle in node. Exits with 1 if another number of definitions is counted than recorded below.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm init --yes >/dev/null
npm install --silent --no-audit --no-fund --save-exact wrangler@4.155.0

cat >worker.js <<'JS'
export default {
  fetch() {
    const doubled = [1, 2, 3].map(value => {
      const twice = () => value * 2
      return twice()
    })
    return doubled.length
  },
}
JS

cat >count.mjs <<'JS'
const { default: worker } = await import(process.argv[2])
const define = Object.defineProperty
let definitions = 0
Object.defineProperty = (...parameters) => {
  definitions++
  return define(...parameters)
}
const counts = []
for (let request = 0; request < 3; request++) {
  definitions = 0
  worker.fetch()
  counts.push(definitions)
}
console.log(counts.join(' '))
JS

bundle() {
  npx --no-install wrangler deploy worker.js --dry-run --name names --compatibility-date 2026-01-01 --outdir "$1" "${@:2}" >/dev/null 2>&1
  cp "$1/worker.js" "$1/worker.mjs"
}
export WRANGLER_SEND_METRICS=false CI=1
bundle kept
printf 'name = "names"\nmain = "worker.js"\ncompatibility_date = "2026-01-01"\nkeep_names = false\n' >plain.toml
bundle plain --config plain.toml

# The bundle takes a reference to Object.defineProperty as it loads; it must see the counting one.
sed -i.bak -E 's/var __defProp = Object.defineProperty;/var __defProp = (...p) => Object.defineProperty(...p);/' kept/worker.mjs
kept=$(node count.mjs ./kept/worker.mjs)
plain=$(node count.mjs ./plain/worker.mjs)
echo "wrangler $(npx --no-install wrangler --version 2>/dev/null | tail -n 1): names defined in each of three requests: $kept by default, $plain with keep_names = false"
[ "$kept" = '3 3 3' ] && [ "$plain" = '0 0 0' ]
