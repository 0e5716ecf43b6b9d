import { execFile } from 'node:child_process'
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { delimiter, dirname, join } from 'node:path'
import { promisify } from 'node:util'
import { convertV4MiniflareOptions, Miniflare } from 'miniflare'
import { build } from 'vite'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { launchBrowser } from '../e2e/browser.ts'
import { deployment, serviceUrl } from './support.ts'

// The packed package in a folder that has nothing but it and the packages that it declares.

const root = join(import.meta.dirname, '../..')
const packageFolder = join(root, 'packages/client')
const run = promisify(execFile)
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
  const tsdown = createRequire(join(packageFolder, 'package.json')).resolve('tsdown')
  await run(process.execPath, [join(dirname(tsdown), 'run.mjs')], { cwd: packageFolder })
  await run('npm', ['pack', '--ignore-scripts', '--pack-destination', folder], { cwd: packageFolder })
  const manifest = JSON.parse(readFileSync(join(packageFolder, 'package.json'), 'utf8'))
  const installed = join(folder, 'node_modules/@agent-trading-service/client')
  mkdirSync(installed, { recursive: true })
  const tarball = join(folder, `agent-trading-service-client-${manifest.version}.tgz`)
  await run('tar', ['-xzf', tarball, '-C', installed, '--strip-components=1'])
  for (const name of Object.keys({ ...manifest.dependencies, ...manifest.peerDependencies })) {
    mkdirSync(dirname(join(folder, 'node_modules', name)), { recursive: true })
    symlinkSync(join(root, 'node_modules', name), join(folder, 'node_modules', name))
  }
  writeFileSync(join(folder, 'package.json'), JSON.stringify({ type: 'module', private: true }))
  copyFileSync(join(import.meta.dirname, 'program.js'), join(folder, 'program.js'))
})
afterAll(() => rmSync(folder, { recursive: true, force: true }))

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

/** The Node of the test, and one of each other major version that the machine has. */
async function nodes(): Promise<string[]> {
  const found = new Map([[majorOf(process.version), process.execPath]])
  for (const path of (process.env.PATH ?? '').split(delimiter)) {
    const node = join(path, 'node')
    if (path.includes('node_modules') || !existsSync(node)) continue
    const major = majorOf((await run(node, ['--version'])).stdout)
    if (major >= 20 && !found.has(major)) found.set(major, node)
  }
  return [...found.values()]
}

const majorOf = (version: string) => Number(/^v(\d+)\./.exec(version)?.[1])

it('trades from Node, in each version that is installed', async () => {
  writeFileSync(
    join(folder, 'main.js'),
    "import { trade } from './program.js'\nconsole.log(JSON.stringify(await trade(JSON.parse(process.argv[2]))))",
  )
  for (const node of await nodes()) {
    const { stdout } = await run(node, ['main.js', JSON.stringify(input)], { cwd: folder })
    expect(JSON.parse(stdout), node).toEqual(traded)
  }
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
    const page = await browser.newPage({ bypassCSP: true })
    await page.goto(`${serviceUrl}/health`)
    await page.addScriptTag({ content, type: 'module' })
    const result = await page.evaluate(
      given => (globalThis as unknown as { trade(input: unknown): Promise<unknown> }).trade(given),
      input,
    )
    expect(result).toEqual(traded)
  } finally {
    await browser.close()
  }
})
