import { execFile, spawn } from 'node:child_process'
import {
  cpSync,
  createReadStream,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
} from 'node:fs'
import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'
import { promisify } from 'node:util'
import { sharedBuild } from '../../scripts/shared-build.ts'

const root = join(import.meta.dirname, '../..')
const run = promisify(execFile)
const ours = ['client', 'cli']

/** A version of a package: its manifest, and its tarball or the folder that the tarball is made of. */
type Version = { manifest: { name: string; version: string }; tarball?: string; folder?: string }
export type NpmRegistry = Awaited<ReturnType<typeof startNpmRegistry>>

/**
 * Packs the packages of this repository and starts a registry on loopback that serves them and everything in
 * node_modules. npm then installs as it does anywhere, with no other network and nothing in its cache.
 */
export async function startNpmRegistry() {
  const scratch = mkdtempSync(join(tmpdir(), 'npm-registry-'))
  const packed = await sharedBuild('packages', mkdtempSync(join(scratch, 'packed-')), packPackages)
  const tarballs = { client: tarballOf(packed, 'client'), cli: tarballOf(packed, 'cli') }
  const versions = installedVersions()
  for (const [name, tarball] of Object.entries(tarballs)) {
    const manifest = readManifest(join(root, 'packages', name))
    versions.set(manifest.name, new Map([[manifest.version, { manifest, tarball }]]))
  }
  let url = ''
  const server = createServer(({ url: path = '/' }, response) => {
    const [, name = '', version] = decodeURIComponent(path).match(/^\/((?:@[^/]+\/)?[^/]+)(?:\/-\/(.+)\.tgz)?$/) ?? []
    const known = versions.get(name)
    const chosen = version === undefined ? undefined : known?.get(version)
    if (known === undefined || (version !== undefined && chosen === undefined)) response.writeHead(404).end('{}')
    else if (chosen) sendTarball(chosen, response)
    else response.setHeader('content-type', 'application/json').end(JSON.stringify(packumentOf(url, known)))
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const prefix = join(scratch, 'global')
  mkdirSync(prefix)
  return {
    tarballs,
    /** An environment in which npm knows no registry but this one, and no cache and global folder of the machine. */
    env: {
      PATH: [join(prefix, 'bin'), join(root, 'node_modules/.bin'), process.env.PATH].join(delimiter),
      HOME: prefix,
      npm_config_registry: url,
      npm_config_cache: join(scratch, 'cache'),
      npm_config_prefix: prefix,
      npm_config_audit: 'false',
      npm_config_fund: 'false',
      npm_config_update_notifier: 'false',
    },
    async close() {
      server.closeAllConnections()
      await new Promise(resolve => server.close(resolve))
      rmSync(scratch, { recursive: true, force: true })
    },
  }
}

const readManifest = (folder: string) => JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'))

/** Builds and packs a copy of the packages in a folder, because others may build the original. */
async function packPackages(scratch: string): Promise<void> {
  for (const name of ['node_modules', 'scripts', 'skills', 'src', 'contracts-abi', 'tsconfig.json'])
    symlinkSync(join(root, name), join(scratch, name))
  await Promise.all(ours.map(name => packPackage(scratch, name)))
}

async function packPackage(scratch: string, name: string): Promise<void> {
  const folder = join(root, 'packages', name)
  const copy = join(scratch, 'packages', name)
  const generated = ['node_modules', 'dist', 'skills'].map(each => join(folder, each))
  cpSync(folder, copy, { recursive: true, filter: path => !generated.includes(path) })
  symlinkSync(join(folder, 'node_modules'), join(copy, 'node_modules'))
  await run('npm', ['pack', '--pack-destination', scratch], { cwd: copy })
}

function tarballOf(packed: string, name: string): string {
  const manifest = readManifest(join(root, 'packages', name))
  return join(packed, `${manifest.name.replace('@', '').replace('/', '-')}-${manifest.version}.tgz`)
}

/** Returns every package that the lockfile names and that is installed; the version at the top comes last. */
function installedVersions(): Map<string, Map<string, Version>> {
  const { packages } = JSON.parse(readFileSync(join(root, 'package-lock.json'), 'utf8')) as {
    packages: Record<string, { link?: boolean }>
  }
  const depth = (path: string) => path.split('node_modules/').length
  const found = new Map<string, Map<string, Version>>()
  for (const path of Object.keys(packages).sort((a, b) => depth(b) - depth(a))) {
    const folder = join(root, path)
    if (packages[path]?.link || !path.includes('node_modules/') || !existsSync(join(folder, 'package.json'))) continue
    const manifest = readManifest(folder)
    const versions = found.get(manifest.name) ?? new Map<string, Version>()
    found.set(manifest.name, versions)
    versions.delete(manifest.version)
    versions.set(manifest.version, { manifest, folder })
  }
  return found
}

function packumentOf(url: string, versions: Map<string, Version>) {
  const entries = [...versions].map(([version, { manifest }]) => {
    const tarball = `${url}/${manifest.name}/-/${version}.tgz`
    return [version, { ...manifest, dist: { tarball } }] as const
  })
  const [latest, { name } = { name: '' }] = entries.at(-1) ?? []
  return { name, 'dist-tags': { latest }, versions: Object.fromEntries(entries) }
}

function sendTarball({ tarball, folder = '' }: Version, response: ServerResponse): void {
  if (tarball) createReadStream(tarball).pipe(response)
  else spawn('tar', ['-cz', '--exclude', './node_modules', '-C', folder, '.']).stdout.pipe(response)
}
