import { execFile } from 'node:child_process'
import { copyFileSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { convertV4MiniflareOptions, Miniflare } from 'miniflare'
import { build } from 'vite'
import { afterAll, beforeAll, expect, it } from 'vitest'
import type typescript from '../../packages/client/node_modules/typescript/lib/typescript.js'
import { launchBrowser } from '../e2e/browser.ts'
import { openContext } from '../e2e/watched-page.ts'
import { node20 } from '../support/node-20.ts'
import { type NpmRegistry, startNpmRegistry } from '../support/npm-registry.ts'
import { deployment, serviceUrl } from './support.ts'

// The packed tarball, installed by npm in an empty folder from a registry on loopback.

let registry: NpmRegistry
const run = promisify(execFile)
const root = join(import.meta.dirname, '../..')
const folder = mkdtempSync(join(tmpdir(), 'agent-trading-service-packed-'))
const input = {
  baseUrl: serviceUrl,
  rpcUrl: deployment.rpcUrl,
  chainId: deployment.chainId,
  usdc: deployment.contracts.USDC,
  payerKey: deployment.accounts.payer.privateKey,
}
const traded = { status: 'success', refused: true }

beforeAll(async () => {
  registry = await startNpmRegistry()
  writeFileSync(join(folder, 'package.json'), JSON.stringify({ type: 'module', private: true }))
  await run('npm', ['install', registry.tarballs.client, 'viem', '@x402/core', '@x402/evm'], {
    cwd: folder,
    env: registry.env,
  })
  copyFileSync(join(import.meta.dirname, 'program.js'), join(folder, 'program.js'))
})
afterAll(async () => {
  await registry.close()
  rmSync(folder, { recursive: true, force: true })
})

/** Bundles an entry that imports the program, as a site or a Worker is bundled. */
async function bundle(source: string): Promise<string> {
  writeFileSync(join(folder, 'entry.js'), source)
  const outDir = join(folder, 'bundle')
  await build({
    configFile: false,
    root: folder,
    define: { 'process.env.NODE_ENV': '"production"' },
    logLevel: 'error',
    build: {
      outDir,
      emptyOutDir: true,
      target: 'es2022',
      minify: false,
      // One file, which a page and a Worker load as it is.
      rolldownOptions: { output: { codeSplitting: false } },
      lib: { entry: join(folder, 'entry.js'), formats: ['es'], fileName: () => 'bundle.js' },
    },
  })
  return readFileSync(join(outDir, 'bundle.js'), 'utf8')
}

it.each([
  ['Node 20', node20],
  ['Node 24', process.execPath],
])('trades from %s', async (_, node) => {
  writeFileSync(
    join(folder, 'main.js'),
    "import { trade } from './program.js'\nconsole.log(JSON.stringify(await trade(JSON.parse(process.argv[2]))))",
  )
  const { stdout } = await run(node, ['main.js', JSON.stringify(input)], { cwd: folder })
  expect(JSON.parse(stdout)).toEqual(traded)
})

it('trades from workerd', async () => {
  const contents = await bundle(
    "import { trade } from './program.js'\nexport default { async fetch(request) { return Response.json(await trade(await request.json())) } }",
  )
  const options = {
    modules: [{ type: 'ESModule' as const, path: 'bundle.js', contents }],
    compatibilityDate: '2026-01-01',
  }
  const miniflare = new Miniflare(convertV4MiniflareOptions(options))
  try {
    const response = await miniflare.dispatchFetch('http://packed.test/', {
      method: 'POST',
      body: JSON.stringify(input),
    })
    expect(await response.json()).toEqual(traded)
  } finally {
    await miniflare.dispose()
  }
})

it('trades from Chromium', async () => {
  const content = await bundle("import { trade } from './program.js'\nglobalThis.trade = trade")
  const browser = await launchBrowser()
  try {
    // The API's own pages allow no scripts.
    const page = await (await openContext(browser, { bypassCSP: true })).newPage()
    await page.goto(`${serviceUrl}/health`)
    await page.addScriptTag({ content, type: 'module' })
    await page.waitForFunction(() => 'trade' in globalThis) // modules run later
    const result = await page.evaluate(
      given => (globalThis as unknown as { trade(input: unknown): Promise<unknown> }).trade(given),
      input,
    )
    expect(result).toEqual(traded)
  } finally {
    await browser.close()
  }
})

it('shows in an editor what each option, method, read and field does', () => {
  // The TypeScript of editors; the one of this repository has no language service of this kind.
  const ts = createRequire(join(root, 'packages/client/package.json'))('typescript') as typeof typescript
  const text = `import { createClient, type components } from '@agent-trading-service/client'
const client = createClient({ baseUrl: '', rpcUrl: '', requestTimeoutMs: 1 })
client.listPositions; client.agent('1').open; client.owner('1').stop
declare const quote: components['schemas']['TradeIntentQuote']
quote.maxUsdcAmount`
  const file = join(folder, 'probe.mts')
  writeFileSync(file, text)
  const service = ts.createLanguageService({
    getScriptFileNames: () => [file],
    getScriptVersion: () => '1',
    getScriptSnapshot: path => ts.ScriptSnapshot.fromString(readFileSync(path, 'utf8')),
    getCurrentDirectory: () => folder,
    getCompilationSettings: () => ({ module: ts.ModuleKind.NodeNext, strict: true, skipLibCheck: true }),
    getDefaultLibFileName: options => ts.getDefaultLibFilePath(options),
    fileExists: ts.sys.fileExists,
    readFile: ts.sys.readFile,
  })
  const infoOf = (name: string) => {
    const { documentation = [], tags = [] } = service.getQuickInfoAtPosition(file, text.indexOf(name) + 1) ?? {}
    return [...documentation, ...tags.flatMap(tag => tag.text ?? [])].map(part => part.text).join('')
  }
  expect(infoOf('baseUrl')).toContain('The service, such as')
  expect(infoOf('rpcUrl')).toContain('A node of your choice')
  expect(infoOf('requestTimeoutMs')).toContain('How long one request may take')
  expect(infoOf('listPositions')).toContain("Returns an agent's open positions")
  expect(infoOf('open;')).toContain('Opens a position with an exit ladder')
  expect(infoOf('stop\n')).toContain('Stops buying')
  expect(infoOf('maxUsdcAmount')).toContain('The largest amount that passes every check now')
  const declarations = readFileSync(join(folder, 'node_modules/@agent-trading-service/client/dist/index.d.ts'), 'utf8')
  expect(declarations.match(/\S \/\*\*/g)).toBeNull()
})
