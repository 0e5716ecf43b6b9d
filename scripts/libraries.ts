import { execFile, spawn } from 'node:child_process'
import { copyFileSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { parseArgs, promisify } from 'node:util'
import { clearSigningDescriptor } from '@agent-trading-service/protocol/clear-signing'
import { decodeEnvelope, reportParameters } from '@agent-trading-service/protocol/price-report'
import { type PrimaryType, signingTypes } from '@agent-trading-service/protocol/typed-data'
import { privateKeyToAccount } from 'viem/accounts'
import { eip712DomainFields } from '../src/resources/typed-data.ts'
import { randomReports } from '../test/support/random-reports.ts'

// `npm run libraries`: libraries of other people read our streams, sign our messages, lint our descriptors and decode
// price reports. `-- streams`, `-- signing`, `-- erc7730` or `-- reports` runs one part. Installs pinned versions from
// the package registries into a temporary folder; a language whose toolchain is not there is named and left out.

const root = join(import.meta.dirname, '..')
const programs = join(root, 'test/libraries')
const scratch = mkdtempSync(join(tmpdir(), 'agent-trading-service-clients-'))
const execute = promisify(execFile)

/** The libraries of each language, with their versions. */
const python = {
  'httpx-sse': '0.4.3',
  httpx: '0.28.1',
  'sseclient-py': '1.9.0',
  'requests-sse': '0.5.3',
  'eth-account': '0.14.0',
}
const javascript = { eventsource: '5.1.5', '@microsoft/fetch-event-source': '2.0.1', ethers: '6.17.0' }
const go = {
  'github.com/r3labs/sse/v2': 'v2.10.0',
  'github.com/tmaxmax/go-sse': 'v0.12.0',
  'github.com/ethereum/go-ethereum': 'v1.17.10',
}
const alloy = '2.5.0'
const dataStreamsReport = '1.3.0'
/** Version 5 needs Java 21. */
const web3j = '4.12.3'
const erc7730 = '1.0.12'

/** Starts a program in the folder of its language. */
type Start = (program: string, ...args: string[]) => [command: string, args: string[], cwd: string]

async function preparePython(packages: Record<string, string>, command = 'python3'): Promise<string> {
  const folder = join(scratch, `python-${Object.keys(packages)[0]}`)
  await execute(command, ['-m', 'venv', folder])
  const pinned = Object.entries(packages).map(([name, version]) => `${name}==${version}`)
  await execute(join(folder, 'bin/pip'), ['install', '--quiet', ...pinned])
  return join(folder, 'bin')
}

const languages: Record<string, () => Promise<Start>> = {
  async python() {
    const bin = await preparePython(python)
    return (program, ...args) => [join(bin, 'python'), [join(programs, `${program}.py`), ...args], scratch]
  },
  async javascript() {
    const folder = join(scratch, 'javascript')
    mkdirSync(folder)
    writeFileSync(join(folder, 'package.json'), JSON.stringify({ type: 'module', dependencies: javascript }))
    await execute('npm', ['install', '--silent'], { cwd: folder })
    return (program, ...args) => {
      copyFileSync(join(programs, `${program}.mjs`), join(folder, `${program}.mjs`))
      return [process.execPath, [`${program}.mjs`, ...args], folder]
    }
  },
  async go() {
    const folder = join(scratch, 'go')
    for (const program of ['streams', 'signing']) {
      mkdirSync(join(folder, program), { recursive: true })
      copyFileSync(join(programs, `${program}.go`), join(folder, program, 'main.go'))
    }
    await execute('go', ['mod', 'init', 'clients'], { cwd: folder })
    await execute('go', ['get', ...Object.entries(go).map(([name, version]) => `${name}@${version}`)], { cwd: folder })
    await execute('go', ['mod', 'tidy'], { cwd: folder })
    await execute('go', ['build', '-o', 'bin/', './...'], { cwd: folder })
    return (program, ...args) => [join(folder, 'bin', program), args, folder]
  },
}

/** Builds a program of test/libraries in Rust with crates. */
async function buildRust(program: string, crates: string): Promise<Start> {
  const folder = join(scratch, `rust-${program}`)
  mkdirSync(join(folder, 'src'), { recursive: true })
  copyFileSync(join(programs, `${program}.rs`), join(folder, 'src/main.rs'))
  writeFileSync(
    join(folder, 'Cargo.toml'),
    `[package]\nname = "${program}"\nedition = "2024"\n\n[dependencies]\n${crates}\n`,
  )
  await execute('cargo', ['build', '--quiet'], { cwd: folder })
  return (_, ...args) => [join(folder, 'target/debug', program), args, folder]
}

languages.rust = () =>
  buildRust(
    'signing',
    `alloy = { version = "=${alloy}", default-features = false, features = ["std", "dyn-abi", "eip712", "signer-local"] }
serde_json = "1"`,
  )

languages.reports = () => buildRust('reports', `chainlink-data-streams-report = "=${dataStreamsReport}"\nhex = "0.4"`)

languages.java = async () => {
  const folder = join(scratch, 'java')
  mkdirSync(folder)
  writeFileSync(
    join(folder, 'pom.xml'),
    `<project><modelVersion>4.0.0</modelVersion><groupId>clients</groupId><artifactId>clients</artifactId><version>0</version>
<dependencies><dependency><groupId>org.web3j</groupId><artifactId>crypto</artifactId><version>${web3j}</version></dependency></dependencies>
</project>`,
  )
  await execute('mvn', ['-q', 'dependency:build-classpath', '-Dmdep.outputFile=classpath'], { cwd: folder })
  const classpath = readFileSync(join(folder, 'classpath'), 'utf8')
  return (_, ...args) => ['java', ['-cp', classpath, join(programs, 'Signing.java'), ...args], folder]
}

languages.cast = async () => {
  await execute('cast', ['--version'])
  return (_, ...args) => ['bash', [join(programs, 'signing.sh'), ...args], scratch]
}

const position = (id: string) =>
  `id: ${id}\nevent: position\ndata: ${JSON.stringify({ id, blockNumber: id.split('-')[0] })}\n\n`
const trade = (id: string) => `id: ${id}\nevent: trade\ndata: {"agentId":"7"}\n\n`

/** Lets a library follow a stream that breaks off, and returns what it handed out and from where it resumed. */
async function follow([command, args, cwd]: ReturnType<Start>, streamUrl: (origin: string) => string) {
  const { promise: resumed, resolve } = Promise.withResolvers<string>()
  let connections = 0
  const server = createServer(async (request, response) => {
    response.writeHead(200, { 'Content-Type': 'text/event-stream' })
    if (++connections > 1) {
      const after = new URL(request.url ?? '', 'http://service').searchParams.get('after')
      resolve(`${request.headers['last-event-id'] ?? after ?? 'nothing'}`)
      response.write(trade('106-0'))
      return
    }
    // As the service sends them: its retry is shorter here, so that the run is.
    response.write(`retry: 100\n${position('100-0')}`)
    for (const text of [': heartbeat\n\n', trade('101-0'), ': heartbeat\n\n', position('105-0')]) {
      await new Promise(next => setTimeout(next, 200))
      response.write(text)
    }
    response.end()
  }).listen(0, '127.0.0.1')
  await new Promise(listening => server.once('listening', listening))
  const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const child = spawn(command, [...args, streamUrl(origin)], { cwd, stdio: ['ignore', 'pipe', 'inherit'] })
  const events: [type: string, data: string][] = []
  const lines = createInterface(child.stdout).on('line', line => events.push(JSON.parse(line)))
  const late = setTimeout(() => resolve('nothing, within 20 s'), 20_000)
  const from = await resumed
  await new Promise(next => setTimeout(next, 500))
  clearTimeout(late)
  child.kill()
  lines.close()
  server.closeAllConnections()
  server.close()
  return { from, events }
}

async function streams(): Promise<boolean> {
  const libraries = {
    python: ['httpx-sse', 'sseclient-py', 'requests-sse'],
    javascript: ['eventsource', '@microsoft/fetch-event-source'],
    go: ['github.com/r3labs/sse/v2', 'github.com/tmaxmax/go-sse'],
  }
  const versions: Record<string, string> = { ...python, ...javascript, ...go }
  let isGood = true
  for (const [language, names] of Object.entries(libraries)) {
    const start = await prepare(language)
    for (const name of start ? names : []) {
      const { from, events } = await follow(start?.('streams', name) ?? ['', [], ''], origin => `${origin}/events`)
      const empty = events.filter(([, data]) => !data).length
      const hasTrades = events.filter(([type]) => type === 'trade').length === 2
      isGood &&= hasTrades && from === '105-0'
      console.log(`${name} ${versions[name]}: resumed from ${from}, ${events.length} events, ${empty} of them empty`)
    }
  }
  return isGood
}

/** A value of each Solidity type that is signed. */
const values: Record<string, unknown> = {
  address: `0x${'a1'.repeat(20)}`,
  bool: true,
  bytes32: `0x${'5f'.repeat(32)}`,
  string: 'momentum-7 ✓',
  uint8: 2,
  uint16: 100,
  uint256: '250000000',
  'address[]': [`0x${'b2'.repeat(20)}`, `0x${'b3'.repeat(20)}`],
  'string[]': ['trade', 'exit'],
  'uint256[]': ['1', '2'],
}

/** Returns the typed data of a message of every type, as quotes have it. */
const allTypedData = () =>
  (Object.keys(signingTypes) as PrimaryType[]).map(primaryType => ({
    types: { EIP712Domain: eip712DomainFields, [primaryType]: [...signingTypes[primaryType]] },
    domain: { name: 'Messages', version: '1', chainId: 31337, verifyingContract: `0x${'1a'.repeat(20)}` as const },
    primaryType,
    message: Object.fromEntries(signingTypes[primaryType].map(({ name, type }) => [name, values[type]])),
  }))

/** Lets every library sign a message of every type by the line of docs/guides/signing.md, and compares with viem. */
async function signing(): Promise<boolean> {
  const privateKey = `0x${'01'.repeat(32)}` as const
  const all = allTypedData()
  const account = privateKeyToAccount(privateKey)
  const signatures = await Promise.all(all.map(typedData => account.signTypedData(typedData as never)))
  const file = join(scratch, 'typed-data.json')
  writeFileSync(file, JSON.stringify(all))
  let isGood = true
  for (const language of ['python', 'javascript', 'go', 'rust', 'java', 'cast']) {
    const start = await prepare(language)
    if (start === undefined) continue
    const [command, args, cwd] = start('signing', file, privateKey)
    const { stdout } = await execute(command, args, { cwd })
    const signed = stdout.trim().split('\n')
    const equal = signatures.filter((signature, index) => signed[index]?.replace(/^(0x)?/, '0x') === signature).length
    isGood &&= equal === signatures.length
    console.log(`${language}: ${equal} of ${signatures.length} signatures are those of viem`)
  }
  return isGood
}

async function lint(): Promise<boolean> {
  // It needs Python 3.12.
  const bin = await preparePython({ erc7730 }, process.env.PYTHON312 ?? 'python3.12').catch(() => undefined)
  if (bin === undefined) {
    console.log('erc7730: left out, because there is no Python 3.12 (PYTHON312 names it)')
    return true
  }
  const file = join(scratch, 'eip712-messages.json')
  const address = `0x${'1a'.repeat(20)}` as const
  const domain = { name: 'TradeRouter', version: '1', chainId: 42161n, verifyingContract: address }
  writeFileSync(
    file,
    JSON.stringify(clearSigningDescriptor(domain, address, Object.keys(signingTypes) as PrimaryType[])),
  )
  const { stdout } = await execute(join(bin, 'erc7730'), ['lint', file]).catch(failed => failed)
  console.log(stdout)
  return !/error/i.test(stdout)
}

const REPORTS = 10_000

/** Compares our decoder of price reports with that of another language. */
async function reports(): Promise<boolean> {
  const start = await prepare('reports')
  if (start === undefined) return true
  const random = randomReports(REPORTS)
  const file = join(scratch, 'reports')
  writeFileSync(file, random.map(({ payload }) => payload.slice(2)).join('\n'))
  const [command, args, cwd] = start('reports', file)
  const { stdout } = await execute(command, args, { cwd, maxBuffer: 100_000_000 })
  const theirs = stdout.trim().split('\n')
  const equal = random.filter(({ payload }, index) => {
    const report = decodeEnvelope(payload)
    const values = new Map(Object.entries(report))
    const names = reportParameters[report.schema][0].components.map(({ name }) => name)
    return theirs[index] === names.map(name => `${values.get(name)}`).join(' ')
  }).length
  console.log(`rust: ${equal} of ${REPORTS} reports are decoded as by us`)
  return equal === REPORTS
}

const prepared = new Map<string, Promise<Start | undefined>>()

/** Installs the libraries of a language once; undefined if its toolchain is not there. */
function prepare(language: string): Promise<Start | undefined> {
  const preparing =
    prepared.get(language) ??
    languages[language]?.().catch(error => {
      console.log(`${language}: left out: ${error instanceof Error ? error.message.split('\n')[0] : error}`)
      return undefined
    })
  if (preparing) prepared.set(language, preparing)
  return preparing ?? Promise.resolve(undefined)
}

const parts: Record<string, () => Promise<boolean>> = { streams, signing, erc7730: lint, reports }
const { positionals } = parseArgs({ allowPositionals: true })
try {
  for (const name of positionals.length > 0 ? positionals : Object.keys(parts)) {
    console.log(`\n${name}`)
    if (!(await parts[name]?.())) process.exitCode = 1
  }
} finally {
  rmSync(scratch, { recursive: true, force: true })
}
