import { existsSync, mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import npmChromium, { inflate } from '@sparticuz/chromium'
import { type Browser, chromium } from 'playwright-core'

const SYSTEM_BROWSERS = [
  '/usr/bin/chromium',
  '/usr/bin/chromium-browser',
  '/usr/bin/google-chrome',
  '/Applications/Google Chrome.app/Contents/MacOS/Google Chrome',
]

type Executable = { path: string; env: Record<string, string> }

/**
 * Launches a headless browser: CHROMIUM_PATH if it is set, else the Chromium from npm (Linux on x64), else one that is
 * installed on this machine. Throws if there is none, or if none starts.
 */
export async function launchBrowser(): Promise<Browser> {
  const failures: string[] = []
  for (const candidate of candidates()) {
    try {
      const { path, env } = await candidate()
      return await chromium.launch({
        executablePath: path,
        args: ['--no-sandbox'],
        env: { ...process.env, ...env },
      })
    } catch (error) {
      failures.push(String(error))
    }
  }
  throw new Error(`No browser starts; install Chromium or set CHROMIUM_PATH.\n${failures.join('\n')}`)
}

function candidates(): (() => Promise<Executable>)[] {
  const installed = (path: string) => async () => ({ path, env: {} })
  if (process.env.CHROMIUM_PATH) return [installed(process.env.CHROMIUM_PATH)]
  const fromNpm = process.platform === 'linux' && process.arch === 'x64' ? [unpackedChromium] : []
  return [...fromNpm, ...SYSTEM_BROWSERS.filter(path => existsSync(path)).map(installed)]
}

/** Unpacks the Chromium from npm with its fonts and libraries, once for each version. */
async function unpackedChromium(): Promise<Executable> {
  const packageFolder = join(dirname(fileURLToPath(import.meta.resolve('@sparticuz/chromium'))), '..')
  const { version } = JSON.parse(readFileSync(join(packageFolder, 'package.json'), 'utf8')) as { version: string }
  const cache = join(import.meta.dirname, '../../node_modules/.cache')
  const folder = join(cache, `chromium-${version}`)
  if (!existsSync(folder)) {
    mkdirSync(cache, { recursive: true })
    const scratch = mkdtempSync(`${folder}-`)
    await unpack(join(packageFolder, 'bin'), scratch)
    try {
      renameSync(scratch, folder) // in one step, so that no other process sees half of it
    } catch (error) {
      rmSync(scratch, { recursive: true })
      if (!existsSync(folder)) throw error // otherwise another process was faster
    }
  }
  const fontsFile = join(folder, 'fonts.xml')
  writeFileSync(
    fontsFile,
    `<fontconfig><dir>${folder}/fonts</dir><cachedir>${folder}/font-cache</cachedir></fontconfig>`,
  )
  return {
    path: join(folder, 'chromium'),
    env: { FONTCONFIG_FILE: fontsFile, LD_LIBRARY_PATH: join(folder, 'al2023/lib') },
  }
}

async function unpack(archives: string, folder: string): Promise<void> {
  const { TMPDIR } = process.env
  process.env.TMPDIR = folder // the package unpacks into the temporary folder
  try {
    await npmChromium.executablePath()
    await inflate(join(archives, 'al2023.tar.br')) // NSS and expat, which minimal systems lack
  } finally {
    if (TMPDIR === undefined) delete process.env.TMPDIR
    else process.env.TMPDIR = TMPDIR
  }
}
