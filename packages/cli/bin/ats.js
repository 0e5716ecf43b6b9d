#!/usr/bin/env node
import { existsSync } from 'node:fs'
import module from 'node:module'

// The package carries a build. A clone carries the sources, which Node 24 runs as they are.
const sources = new URL('../src/ats.ts', import.meta.url)
if (existsSync(sources)) {
  if (module.registerHooks === undefined) {
    process.stderr.write(
      `ats: a clone needs Node 22.19 or newer, and this is ${process.version}; the package needs Node 20.\n`,
    )
    process.exit(1)
  }
  module.registerHooks({
    resolve: (specifier, context, next) =>
      next(specifier, { ...context, conditions: [...context.conditions, '@agent-trading-service/source'] }),
  })
  await import(sources.href)
} else await import('../dist/ats.js')
