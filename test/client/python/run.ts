import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { secp256k1 } from '@noble/curves/secp256k1'
import { loadPyodide } from 'pyodide'
import { type Hex, hashTypedData, numberToHex, serializeSignature, type TypedDataDefinition } from 'viem'
import { privateKeyToAddress } from 'viem/accounts'

// Runs a Python program in CPython, which the package pyodide brings as WebAssembly:
//   node run.ts PROGRAM.py
// The program sees this process's environment. PyPI is not needed: `packages/` has stand-ins for what the program
// imports. They call the functions below, because WebAssembly has no sockets.

const [path = ''] = process.argv.slice(2)
const folder = '/packages'

/** Sends a request in a process of its own, so that Python can wait for it. */
const SEND = `
  let text = ''
  for await (const part of process.stdin) text += part
  const { method, url, headers, body, timeout } = JSON.parse(text)
  const signal = timeout === null ? undefined : AbortSignal.timeout(timeout * 1000)
  const answer = await fetch(url, { method, headers, body, signal })
    .then(async response => ({ status: response.status, body: await response.text() }))
    .catch(error => ({ failure: error.name === 'TimeoutError' ? 'timeout' : 'connection' }))
  process.stdout.write(JSON.stringify(answer))`

const host = {
  send(request: string): string {
    const { status, stdout, stderr } = spawnSync(process.execPath, ['--input-type=module', '-e', SEND], {
      input: request,
      encoding: 'utf8',
    })
    if (status !== 0) throw new Error(stderr)
    return stdout
  },
  addressOf: (key: Hex): string => privateKeyToAddress(key),
  signTypedData(key: Hex, typedData: string): string {
    const hash = hashTypedData(JSON.parse(typedData) as TypedDataDefinition)
    const { r, s, recovery } = secp256k1.sign(hash.slice(2), key.slice(2), { lowS: true })
    return serializeSignature({
      r: numberToHex(r, { size: 32 }),
      s: numberToHex(s, { size: 32 }),
      yParity: recovery,
    })
  },
}

const python = await loadPyodide({
  env: { HOME: '/', ...process.env } as Record<string, string>,
  stdout: line => process.stdout.write(`${line}\n`),
  stderr: line => process.stderr.write(`${line}\n`),
})
python.registerJsModule('host', host)
python.FS.mkdirTree(folder)
for (const name of ['requests.py', 'eth_account.py'])
  python.FS.writeFile(`${folder}/${name}`, readFileSync(join(import.meta.dirname, 'packages', name), 'utf8'))
const program = `/${basename(path)}`
python.FS.writeFile(program, readFileSync(path, 'utf8'))
process.exitCode = python.runPython(`
import runpy, sys, traceback
sys.path.insert(0, ${JSON.stringify(folder)})
sys.argv = [${JSON.stringify(program)}]

def run():
    try:
        runpy.run_path(sys.argv[0], run_name="__main__")
        return 0
    except SystemExit as exit:
        if isinstance(exit.code, str):
            print(exit.code, file=sys.stderr)
        return exit.code if isinstance(exit.code, int) else int(exit.code is not None)
    except BaseException:
        traceback.print_exc()
        return 1

run()
`)
