import { readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { exitWith } from '../devnet/environment.ts'
import { writeGenerated } from './generated-file.ts'

// `npm run keccak`: extracts the WebAssembly of Keccak from hash-wasm, which embeds it in its scripts as base64,
// because a Worker must import it as a module. --check only compares.
const script = fileURLToPath(import.meta.resolve('hash-wasm/dist/keccak.umd.min.js'))
const [, base64] = /name:"sha3",data:"([^"]+)"/.exec(readFileSync(script, 'utf8')) ?? []
if (base64 === undefined) exitWith(`${script} does not contain the module "sha3"`)

const folder = join(import.meta.dirname, '../src/crypto')
writeGenerated(join(folder, 'keccak.wasm'), Buffer.from(base64, 'base64'), 'keccak')
const licence = readFileSync(join(dirname(script), '../LICENSE'), 'utf8')
writeGenerated(join(folder, 'keccak.wasm.LICENSE'), licence, 'keccak')
