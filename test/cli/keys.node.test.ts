import { execFileSync } from 'node:child_process'
import { createDecipheriv, scryptSync } from 'node:crypto'
import { chmodSync, copyFileSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { type Hex, keccak256, toHex } from 'viem'
import { generatePrivateKey, privateKeyToAccount } from 'viem/accounts'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { encryptKey } from '../../packages/cli/src/keys/keystore.ts'
import { ATS, type Ats, createAts, FAST_SCRYPT } from '../support/ats.ts'
import type { Body } from '../support/body.ts'

let ats: Ats
beforeEach(() => {
  ats = createAts()
})
afterEach(() => ats.remove())

/** Opens a key file as another program would: by the definition of Web3 Secret Storage. */
function openKeyFile(path: string, password: string): Hex {
  const { crypto } = JSON.parse(readFileSync(path, 'utf8')) as Body
  const { n: N, r, p, salt } = crypto.kdfparams
  const key = scryptSync(password, Buffer.from(salt, 'hex'), 32, { N, r, p })
  const ciphertext = Buffer.from(crypto.ciphertext, 'hex')
  if (keccak256(Buffer.concat([key.subarray(16), ciphertext])).slice(2) !== crypto.mac)
    throw new Error('wrong password')
  const cipher = createDecipheriv('aes-128-ctr', key.subarray(0, 16), Buffer.from(crypto.cipherparams.iv, 'hex'))
  return toHex(Buffer.concat([cipher.update(ciphertext), cipher.final()]))
}

const modeOf = (path: string) => (statSync(path).mode & 0o777).toString(8)

describe('ats key', () => {
  it('ats key stores a new key as Web3 Secret Storage that only its owner can read', async () => {
    const { address, path } = await ats.json(['key', 'new', 'trader', ...FAST_SCRYPT])
    expect([modeOf(path), modeOf(join(ats.home, 'keys'))]).toEqual(['600', '700'])
    expect(JSON.parse(readFileSync(path, 'utf8'))).toMatchObject({
      version: 3,
      crypto: { kdf: 'scrypt', kdfparams: { n: 8192, r: 8, p: 1 } },
    })
    const key = openKeyFile(path, 'correct horse')
    expect(privateKeyToAccount(key).address).toBe(address)
    expect(await ats.json(['key', 'list'])).toEqual([{ name: 'trader', address, path }])
    expect((await ats.run(['key', 'list'])).stdout).toMatch(new RegExp(`^trader +${address}$[^]*${dirname(path)}`, 'm'))
    expect(ats.transcript).not.toContain(key.slice(2))
  })

  it('ats key imports a key from standard input and never prints it', async () => {
    const key = generatePrivateKey()
    const { address } = await ats.importKey('imported', key)
    expect(address).toBe(privateKeyToAccount(key).address)
    const { code, error } = await ats.failure(['key', 'import', 'imported'], { input: key })
    expect([code, error]).toEqual(['KEY_EXISTS', expect.stringContaining('imported')])
    const invalid = await ats.failure(['key', 'import', 'other'], { input: `${key}00` })
    expect(invalid).toMatchObject({ exit: 3, code: 'KEY_INVALID' })
    expect(ats.transcript).not.toContain(key.slice(2))
  })

  it('ats key takes the password from a file', async () => {
    const file = join(ats.home, 'password')
    writeFileSync(file, 'from a file\n')
    const { path } = await ats.json(['key', 'new', ...FAST_SCRYPT, '--password-file', file], {
      env: { ATS_PASSWORD: '' },
    })
    expect(openKeyFile(path, 'from a file')).toMatch(/^0x[0-9a-f]{64}$/)
    const none = await ats.failure(['key', 'new', 'second', ...FAST_SCRYPT], { env: { ATS_PASSWORD: '' } })
    expect(none).toMatchObject({ exit: 3, code: 'PASSWORD_MISSING' })
  })

  it.each([
    ['a key file', (home: string) => join(home, 'keys/trader.json'), 0o640],
    ['the folder of the keys', (home: string) => join(home, 'keys'), 0o750],
  ])('ats key refuses %s that others can read', async (_, pathIn, mode) => {
    await ats.json(['key', 'new', 'trader', ...FAST_SCRYPT])
    chmodSync(pathIn(ats.home), mode)
    const failure = await ats.failure(['key', 'list'])
    expect(failure).toMatchObject({ exit: 3, code: 'MODE_TOO_WIDE', remedy: expect.stringContaining('chmod') })
  })

  it.each([
    ['--key', (key: string) => ['open', 'NVDA', '250', '--agent', '1', '--key', key]],
    ['--key=', (key: string) => ['open', 'NVDA', '250', '--agent', '1', `--key=${key}`]],
    ['an argument', (key: string) => ['key', 'import', 'trader', key]],
    ['a name', (key: string) => ['key', 'new', key]],
    ['an unknown option', (key: string) => ['register', `--private-key=${key}`]],
  ])('ats key refuses a private key as %s and does not repeat it', async (_, argsWith) => {
    const key = generatePrivateKey()
    const { code, stdout, stderr } = await ats.run(argsWith(key))
    expect(code).toBe(2)
    expect(stderr).not.toBe('')
    expect(stdout + stderr).not.toContain(key.slice(2))
  })
})

/** Returns a keystore as `cast wallet` writes it: without an address, in a file without an extension. */
function castKeystore(privateKey: Hex, password: string): string {
  const { address: _, ...keystore } = encryptKey(privateKey, password, 8192)
  return JSON.stringify(keystore)
}

describe('files of others', () => {
  it('files of others in the folder of keys hide no key', async () => {
    const key = generatePrivateKey()
    const { address } = await ats.importKey('trader', key)
    const keys = join(ats.home, 'keys')
    writeFileSync(join(keys, '._trader.json'), Buffer.from('0005160700020000', 'hex'))
    writeFileSync(join(keys, 'notes.json'), '{"note":"mine"}', { mode: 0o600 })
    writeFileSync(join(keys, 'open.json'), '{}', { mode: 0o644 })
    expect(await ats.json(['key', 'show'])).toMatchObject({ name: 'trader', address })
    expect(await ats.json(['key', 'show', address])).toMatchObject({ name: 'trader' })
    const { stdout, stderr, code } = await ats.run(['key', 'list'])
    expect(stdout).toContain(address)
    expect([code, stderr]).toEqual([3, expect.stringContaining('notes.json is not a Web3 Secret Storage file')])
  })

  it('files of others such as keystores of cast are imported, from a path or standard input', async () => {
    const key = generatePrivateKey()
    const path = join(ats.home, 'trader')
    writeFileSync(path, castKeystore(key, 'their password'))
    const password = join(ats.home, 'theirs')
    writeFileSync(password, 'their password\n')
    const args = ['--keystore', path, '--keystore-password-file', password]
    const { address } = await ats.json(['key', 'import', 'trader', ...args, ...FAST_SCRYPT])
    expect(address).toBe(privateKeyToAccount(key).address)
    const piped = ['key', 'import', 'piped', '--keystore-password-file', password, ...FAST_SCRYPT]
    expect((await ats.json(piped, { input: readFileSync(path, 'utf8') })).address).toBe(address)
    const wrong = await ats.failure(['key', 'import', 'other', '--keystore', path])
    expect(wrong).toMatchObject({ code: 'WRONG_PASSWORD', remedy: expect.stringContaining('--keystore-password-file') })
    copyFileSync(path, join(ats.home, 'keys/copied.json'))
    chmodSync(join(ats.home, 'keys/copied.json'), 0o600)
    expect(await ats.failure(['key', 'show', 'copied'])).toMatchObject({
      code: 'KEY_FILE_INVALID',
      remedy: expect.stringContaining('--keystore'),
    })
    expect(ats.transcript).not.toContain(key.slice(2))
  })

  it('files of others may start with a byte order mark, and UTF-16 is named', async () => {
    writeFileSync(join(ats.home, 'limits.json'), '\ufeff{"perTradeUsdc":"100"}', { mode: 0o600 })
    expect(await ats.json(['limits'])).toMatchObject({ perTradeUsdc: '100000000' })
    const bom = Buffer.from('\ufeff')
    writeFileSync(join(ats.home, 'password'), Buffer.concat([bom, Buffer.from('with a mark\n')]))
    const key = ['key', 'new', 'marked', '--password-file', join(ats.home, 'password'), ...FAST_SCRYPT]
    const { path } = await ats.json(key)
    expect(openKeyFile(path, 'with a mark')).toMatch(/^0x/)
    writeFileSync(path, Buffer.concat([bom, readFileSync(path)]))
    expect((await ats.json(['key', 'list'])).length).toBe(1)
    for (const encoded of [
      Buffer.from('\ufeff{"perTradeUsdc":"100"}', 'utf16le'),
      Buffer.from('{"perTradeUsdc":"100"}', 'utf16le'),
      Buffer.from('{"perTradeUsdc":"100"}', 'utf16le').swap16(),
    ]) {
      writeFileSync(join(ats.home, 'limits.json'), encoded)
      expect(await ats.failure(['limits'])).toMatchObject({
        code: 'NOT_UTF8',
        error: expect.stringContaining('is UTF-16; UTF-8 is expected'),
      })
    }
  })

  it('files of others that modes cannot protect are copied by the commands of the remedy', async () => {
    await ats.json(['key', 'new', 'trader', ...FAST_SCRYPT])
    chmodSync(join(ats.home, 'keys'), 0o777)
    const { code, remedy } = await ats.failure(['key', 'list'])
    expect(code).toBe('MODE_TOO_WIDE')
    const [, command] = /keeps modes: `(.*)`$/.exec(remedy) ?? []
    const shown = `${command} && ${process.execPath} ${ATS} key list -o json`
    const home = mkdtempSync(join(tmpdir(), 'ats-'))
    const keys = JSON.parse(execFileSync('bash', ['-c', shown], { env: { ...ats.env, HOME: home } }).toString())
    expect(keys).toMatchObject([{ name: 'trader', path: join(home, 'ats-home/keys/trader.json') }])
    rmSync(home, { recursive: true })
  })
})

describe('ats', () => {
  it('ats names a URL without a scheme, and one of a node', async () => {
    const without = await ats.run(['health', '--url', 'localhost:8787'])
    expect([without.code, without.stderr]).toEqual([2, expect.stringContaining('http://localhost:8787')])
    const node = createServer((request, response) => {
      if (request.method === 'POST') response.end('{"jsonrpc":"2.0","id":1,"result":"0x7a69"}')
      else response.writeHead(405).end()
    })
    await new Promise<void>(resolve => node.listen(0, '127.0.0.1', resolve))
    const url = `http://127.0.0.1:${(node.address() as AddressInfo).port}`
    expect(await ats.failure(['vaults', '--url', url])).toMatchObject({ code: 'URL_OF_A_NODE' })
    node.close()
  })

  it('ats shows an example in the help of every command', () => {
    // In one process, because there are many commands.
    const program = join(import.meta.dirname, '../../packages/cli/src/program.ts')
    const script = `
      import { createProgram } from ${JSON.stringify(program)}
      const helps = command => {
        let help = ''
        command.configureOutput({ writeOut: text => (help += text) }).outputHelp()
        return [[command.name(), help], ...command.commands.flatMap(helps)]
      }
      console.log(JSON.stringify(helps(createProgram())))`
    const helps: [string, string][] = JSON.parse(
      execFileSync(process.execPath, [
        '--conditions=@agent-trading-service/source',
        '--input-type=module-typescript',
        '-e',
        script,
      ]).toString(),
    )
    expect(helps.length).toBeGreaterThan(50)
    const without = helps.filter(([, help]) => !/Example:\n {2}\$ .*ats /.test(help)).map(([name]) => name)
    expect(without).toEqual([])
  })

  it('ats completes commands and options in bash', async () => {
    const { stdout } = await ats.run(['completion', 'bash'])
    const complete = (...words: string[]) =>
      execFileSync('bash', [
        '-c',
        `${stdout}\nCOMP_WORDS=("$@"); COMP_CWORD=$((\${#COMP_WORDS[@]} - 1)); _ats; echo "\${COMPREPLY[*]}"`,
        'bash',
        ...words,
      ])
        .toString()
        .trim()
    expect(complete('ats', 'pos')).toBe('positions position position-automation')
    expect(complete('ats', 'key', 'i')).toBe('import')
    expect(complete('ats', 'quote', 'open', '--max')).toBe('--max-slippage-bps --max-loss --max-amount')
  })

  it.each(['zsh', 'fish'])('ats prints a completion script for %s', async shell => {
    const { code, stdout } = await ats.run(['completion', shell])
    expect(code).toBe(0)
    expect(stdout).toContain('risk-state')
  })

  it('ats exits with 2 for wrong usage and suggests the command that was meant', async () => {
    const { code, stderr } = await ats.run(['positons'])
    expect([code, stderr]).toEqual([2, expect.stringContaining('Did you mean positions?')])
    const noAgent = await ats.failure(['positions'])
    expect(noAgent).toMatchObject({ exit: 2, code: 'AGENT_MISSING' })
  })

  it('ats exits with 7 if the service cannot be reached', async () => {
    const failure = await ats.failure(['health', '--url', 'http://127.0.0.1:1', '--timeout', '1'])
    expect(failure).toMatchObject({ exit: 7, kind: 'unavailable', code: 'NETWORK_ERROR', retryable: true })
  })
})
