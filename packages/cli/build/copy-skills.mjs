import { cpSync, existsSync, rmSync } from 'node:fs'

// The skills have one source, at the root of the repository; the package ships a copy.
const source = new URL('../../../skills', import.meta.url)
const copy = new URL('../skills', import.meta.url)
rmSync(copy, { recursive: true, force: true })
if (existsSync(source)) cpSync(source, copy, { recursive: true })
