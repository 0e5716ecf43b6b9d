import { spawnSync } from 'node:child_process'
import { copyFileSync, existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { stripVTControlCharacters } from 'node:util'
import { generatePrivateKey, privateKeyToAccount } from 'viem/accounts'
import { exitWith } from '../devnet/environment.ts'
import { DEPLOYMENT_FILE } from '../devnet/index.ts'
import { createClient } from '../packages/client/src/index.ts'
import { createPayer } from '../packages/client/src/pay.ts'

// `npm run clients`: runs what others have made against a running `npm run dev`: the examples in other languages, code
// generators on the OpenAPI document, agent frameworks on the tools of /mcp, and libraries for server-sent events, each
// in a pinned version. Words select runs by name or kind: `npm run clients -- go sse`. A run whose toolchain is missing
// is skipped. BASE names the service; what is downloaded goes to .clients/. Not a part of CI.

const root = join(import.meta.dirname, '..')
const base = process.env.BASE || 'http://127.0.0.1:8787'
const scripts = join(root, 'test/compatibility')

type Step = [command: string, ...args: string[]]
type Given = { folder: string; agentId: string; after: string; env: NodeJS.ProcessEnv }
type Run = {
  kind: string
  name: string
  version: string
  steps: (given: Given) => Step[]
  files?: Record<string, string>
}

const uv = (packages: string[], ...args: string[]): Step => [
  'uv',
  ...['run', '-q', '--isolated', '--no-project'],
  ...packages.flatMap(name => ['--with', name]),
  ...args,
]
const npm = (...packages: string[]): Step => ['npm', 'install', '--silent', '--no-save', '--prefix', '.', ...packages]

const language = (name: string, version: string, ...steps: Step[]): Run => ({
  kind: 'language',
  name,
  version,
  steps: () => steps,
})
const goClient = (name: string, version: string, ...generate: Step[]): Run => ({
  kind: 'generator',
  name,
  version,
  steps: () => [...generate, ['go', 'mod', 'tidy'], ['go', 'build', './...']],
  files: { 'go.mod': 'module client\n\ngo 1.26.0\n' },
})
const typescriptClient = (name: string, version: string, generate: string[], ...more: string[]): Run => ({
  kind: 'generator',
  name,
  version,
  steps: () => [
    npm(`${name}@${version}`, 'typescript@5.9.3', ...more),
    ['npx', '--no-install', ...generate],
    ['npx', '--no-install', 'tsc', '--noEmit', '--strict', '--skipLibCheck', ...TYPESCRIPT],
  ],
})
const TYPESCRIPT = ['--module', 'esnext', '--moduleResolution', 'bundler', '--target', 'es2022', 'client/index.ts']
const pythonFramework = (name: string, version: string, packages: string[]): Run => ({
  kind: 'framework',
  name,
  version,
  steps: () => [uv(packages, 'python', join(scripts, 'mcp_tools.py'), name, `${base}/mcp`)],
})
/** Copies the script into the folder of its packages, because Node looks for them there. */
const nodeScript = (kind: string, script: string, name: string, version: string, packages: string[]): Run => ({
  kind,
  name,
  version,
  steps: ({ agentId, after }) => [
    npm(...packages),
    ['node', script, name, kind === 'sse' ? eventsUrl(agentId, after) : `${base}/mcp`],
  ],
  files: { [script]: readFileSync(join(scripts, script), 'utf8') },
})
const pythonSse = (name: string, version: string, ...more: string[]): Run => ({
  kind: 'sse',
  name,
  version,
  steps: ({ agentId, after }) => [
    uv([`${name}==${version}`, ...more], 'python', join(scripts, 'sse.py'), name, eventsUrl(agentId, after)),
  ],
})
const eventsUrl = (agentId: string, after: string) => `${base}/agents/${agentId}/events?after=${after}`

const PROGENITOR = '0.15.1'
const progenitorCrate = `[package]
name = "client"
version = "0.1.0"
edition = "2021"
[lib]
path = "lib.rs"
[dependencies]
chrono = { version = "0.4.45", features = ["serde"] }
progenitor = "=${PROGENITOR}"
progenitor-client = "=${PROGENITOR}"
regress = "0.12.0"
reqwest = { version = "0.13.5", features = ["json", "query", "stream"] }
serde = { version = "1.0.229", features = ["derive"] }
serde_json = "1.0.154"
[workspace]
`

const OPENAPI_GENERATOR = '7.25.0'
const generatorPom = `<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>
<groupId>client</groupId><artifactId>generate</artifactId><version>1</version><packaging>pom</packaging>
<build><plugins><plugin><groupId>org.openapitools</groupId><artifactId>openapi-generator-maven-plugin</artifactId>
<version>${OPENAPI_GENERATOR}</version><configuration><inputSpec>openapi.json</inputSpec><generatorName>java</generatorName>
<library>native</library><output>client</output></configuration></plugin></plugins></build></project>`

const KOTLIN = '2.2.20'
const kotlinPom = `<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>
<groupId>client</groupId><artifactId>client</artifactId><version>1</version><dependencies>
<dependency><groupId>org.jetbrains.kotlin</groupId><artifactId>kotlin-stdlib</artifactId><version>${KOTLIN}</version></dependency>
<dependency><groupId>com.squareup.okhttp3</groupId><artifactId>okhttp</artifactId><version>4.12.0</version></dependency>
<dependency><groupId>com.google.code.gson</groupId><artifactId>gson</artifactId><version>2.13.2</version></dependency>
</dependencies><build><sourceDirectory>client/src/main/kotlin</sourceDirectory><plugins>
<plugin><groupId>org.openapitools</groupId><artifactId>openapi-generator-maven-plugin</artifactId>
<version>${OPENAPI_GENERATOR}</version><configuration><inputSpec>openapi.json</inputSpec><generatorName>kotlin</generatorName>
<output>client</output><configOptions><serializationLibrary>gson</serializationLibrary></configOptions></configuration></plugin>
<plugin><groupId>org.jetbrains.kotlin</groupId><artifactId>kotlin-maven-plugin</artifactId><version>${KOTLIN}</version>
<executions><execution><phase>compile</phase><goals><goal>compile</goal></goals></execution></executions></plugin>
</plugins></build></project>`

const runs: Run[] = [
  language('go', 'go-ethereum 1.17.10', ['go', '-C', join(root, 'examples/go'), 'run', '.']),
  language('rust', 'alloy 2.5.0', ['cargo', 'run', '-q', '--manifest-path', join(root, 'examples/rust/Cargo.toml')]),
  language('java', 'web3j 5.0.2', ['mvn', '-q', '-B', '-f', join(root, 'examples/java'), 'compile', 'exec:java']),
  language(
    'python',
    'eth-account 0.13.7',
    uv(['requests==2.34.2', 'eth-account==0.13.7'], 'python', join(root, 'examples/agent.py')),
  ),
  goClient('oapi-codegen', '2.8.2', [
    'go',
    'run',
    'github.com/oapi-codegen/oapi-codegen/v2/cmd/oapi-codegen@v2.8.2',
    ...['-generate', 'types,client', '-package', 'client', '-o', 'client.go', 'openapi-3.0.json'],
  ]),
  goClient('ogen', '1.24.0', [
    ...(['go', 'run', 'github.com/ogen-go/ogen/cmd/ogen@v1.24.0'] as const),
    ...['--target', 'client', '--package', 'client', '--clean', 'openapi.json'],
  ]),
  {
    kind: 'generator',
    name: 'progenitor',
    version: PROGENITOR,
    steps: () => [['cargo', 'check', '-q']],
    files: { 'Cargo.toml': progenitorCrate, 'lib.rs': 'progenitor::generate_api!("openapi-3.0.json");\n' },
  },
  {
    kind: 'generator',
    name: 'openapi-generator',
    version: `${OPENAPI_GENERATOR} (java)`,
    steps: () => [
      ['mvn', '-q', '-B', 'org.openapitools:openapi-generator-maven-plugin:generate'],
      ['mvn', '-q', '-B', '-f', 'client', 'compile'],
    ],
    files: { 'pom.xml': generatorPom },
  },
  {
    kind: 'generator',
    name: 'openapi-generator-kotlin',
    version: OPENAPI_GENERATOR,
    steps: () => [
      ['mvn', '-q', '-B', 'org.openapitools:openapi-generator-maven-plugin:generate'],
      ['mvn', '-q', '-B', 'compile'],
    ],
    files: { 'pom.xml': kotlinPom },
  },
  {
    kind: 'generator',
    name: 'openapi-python-client',
    version: '0.29.1',
    steps: () => [
      uv(
        ['openapi-python-client==0.29.1'],
        ...['openapi-python-client', 'generate', '--overwrite', '--path', 'openapi.json', '--output-path', 'client'],
      ),
      ['python3', '-m', 'compileall', '-q', 'client'],
    ],
  },
  typescriptClient('openapi-typescript', '7.13.0', ['openapi-typescript', 'openapi.json', '-o', 'client/index.ts']),
  typescriptClient('@hey-api/openapi-ts', '0.99.0', ['openapi-ts', '-i', 'openapi.json', '-o', 'client']),
  typescriptClient('orval', '8.38.0', [
    ...['orval', '--input', 'openapi.json', '--output', 'client/index.ts', '--client', 'fetch'],
  ]),
  pythonFramework('google-genai', '3.3.0', ['google-genai==3.3.0', 'mcp==2.3.0']),
  pythonFramework('openai-agents', '0.24.0', ['openai-agents==0.24.0']),
  pythonFramework('langchain', '0.3.2', ['langchain-mcp-adapters==0.3.2']),
  pythonFramework('pydantic-ai', '2.68.0', ['pydantic-ai-slim[mcp]==2.68.0']),
  pythonFramework('fastmcp', '4.1.6', ['fastmcp==4.1.6']),
  pythonFramework('smolagents', '1.26.0', ['smolagents[mcp]==1.26.0', 'mcp==1.30.0']),
  pythonFramework('llama-index', '0.6.0', ['llama-index-tools-mcp==0.6.0']),
  pythonFramework('strands', '1.62.0', ['strands-agents==1.62.0', 'mcp==1.30.0']),
  pythonFramework('google-adk', '2.13.0', ['google-adk==2.13.0', 'mcp==1.30.0']),
  pythonFramework('agno', '3.1.10', ['agno==3.1.10', 'fastmcp==4.1.6']),
  nodeScript('framework', 'mcp-tools.mjs', 'langchain-js', '1.1.4', [
    '@langchain/mcp-adapters@1.1.4',
    '@langchain/core',
  ]),
  nodeScript('framework', 'mcp-tools.mjs', 'openai-agents-js', '0.20.0', ['@openai/agents@0.20.0', 'zod@4.6.6']),
  nodeScript('framework', 'mcp-tools.mjs', 'ai-sdk', '2.0.99', ['@ai-sdk/mcp@2.0.99', 'ai@7.0.173', 'zod@4.6.6']),
  nodeScript('framework', 'mcp-tools.mjs', 'google-genai-js', '3.1.0', [
    '@google/genai@3.1.0',
    '@modelcontextprotocol/sdk@1.32.2',
    'zod@4.6.6',
  ]),
  nodeScript('framework', 'mcp-tools.mjs', 'mastra', '2.0.0', ['@mastra/mcp@2.0.0']),
  pythonSse('httpx-sse', '0.4.3', 'httpx==0.28.1'),
  pythonSse('sseclient-py', '1.9.0', 'requests==2.34.2'),
  pythonSse('requests-sse', '0.5.3'),
  pythonSse('aiohttp-sse-client2', '0.3.0'),
  nodeScript('sse', 'sse.mjs', 'eventsource', '5.1.5', ['eventsource@5.1.5']),
  nodeScript('sse', 'sse.mjs', 'eventsource-client', '1.2.0', ['eventsource-client@1.2.0']),
  nodeScript('sse', 'sse.mjs', 'eventsource-parser', '4.1.3', ['eventsource-parser@4.1.3']),
  nodeScript('sse', 'sse.mjs', 'launchdarkly-eventsource', '2.2.0', ['launchdarkly-eventsource@2.2.0']),
  nodeScript('sse', 'sse.mjs', 'fetch-event-stream', '0.1.6', ['fetch-event-stream@0.1.6']),
  nodeScript('sse', 'sse.mjs', 'fetch-event-source', '2.0.1', ['@microsoft/fetch-event-source@2.0.1']),
]

/** Registers an agent that trades once, so that there are events to read. */
async function newAgent(): Promise<Omit<Given, 'folder'>> {
  if (!existsSync(DEPLOYMENT_FILE)) throw new Error('Start `npm run dev` first.')
  const { chainId, contracts, accounts } = JSON.parse(readFileSync(DEPLOYMENT_FILE, 'utf8'))
  const key = generatePrivateKey()
  const client = createClient({ baseUrl: base, account: privateKeyToAccount(key) })
  const payer = createPayer({
    account: privateKeyToAccount(accounts.payer.privateKey),
    chainId,
    asset: contracts.USDC,
    maxAmount: 1_000_000n,
  })
  const { asOf } = await client.listVaults()
  const { agentId } = await client.register({ vault: 'genesis', name: 'clients', payer })
  const agent = client.agent(agentId)
  const { positionId } = await agent.open({
    symbol: 'NVDA',
    usdcAmount: '10',
    exits: [{ triggerBps: -800, exitBps: 10_000 }],
  })
  await agent.close({ positionId })
  const env = { ...process.env, BASE: base, AGENT_KEY: key, ATS_AGENT: agentId, JAVA_HOME: javaHome() }
  return { agentId, after: `${asOf.blockNumber}-999999`, env }
}

/** Returns the newest JDK of this machine, unless JAVA_HOME is set. */
function javaHome(): string | undefined {
  const folder = '/usr/lib/jvm'
  const versionOf = (name: string) => Number(/\d{2}/.exec(name)?.[0] ?? 0)
  const [newest] = existsSync(folder) ? readdirSync(folder).sort((a, b) => versionOf(b) - versionOf(a)) : []
  return process.env.JAVA_HOME ?? (newest && join(folder, newest))
}

/** Runs the steps of a run. Returns its last line, or what failed. */
function carryOut({ name, steps, files = {} }: Run, given: Omit<Given, 'folder'>): [result: string, text: string] {
  const folder = join(root, '.clients', name.replaceAll('/', '-'))
  mkdirSync(folder, { recursive: true })
  for (const document of ['openapi.json', 'openapi-3.0.json'])
    copyFileSync(join(root, '.clients', document), join(folder, document))
  for (const [path, text] of Object.entries(files)) writeFileSync(join(folder, path), text)
  let last = ''
  for (const [command, ...args] of steps({ ...given, folder })) {
    const { status, error, stdout, stderr } = spawnSync(command, args, {
      cwd: folder,
      env: given.env,
      encoding: 'utf8',
      timeout: 1_200_000,
    })
    if (error && 'code' in error && error.code === 'ENOENT') return ['skipped', `${command} is not installed`]
    if (status !== 0) return ['FAILED', `${command} ${args.join(' ')}\n${stdout}${stderr}`.slice(-3_000)]
    last = stripVTControlCharacters(stdout).trim().split('\n').at(-1)?.slice(0, 100) ?? ''
  }
  return ['ok', last]
}

const words = process.argv.slice(2)
const chosen = runs.filter(({ kind, name }) => words.length === 0 || words.includes(kind) || words.includes(name))
if (chosen.length === 0)
  exitWith(new Error(`Name some of ${runs.map(({ name }) => name).join(', ')}, or kinds of them.`))
const given = await newAgent().catch(exitWith)
mkdirSync(join(root, '.clients'), { recursive: true })
for (const [document, path] of [
  ['openapi.json', '/docs/swagger.json'],
  ['openapi-3.0.json', '/openapi-3.0.json'],
] as const)
  writeFileSync(join(root, '.clients', document), await (await fetch(base + path)).text())
for (const run of chosen) {
  const [result, text] = carryOut(run, given)
  console.log(
    [result.padEnd(7), run.kind.padEnd(9), `${run.name} ${run.version}`.padEnd(34), text].join('  ').trimEnd(),
  )
  if (result === 'FAILED') process.exitCode = 1
}
