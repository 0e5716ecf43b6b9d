import { existsSync, readdirSync, statSync, writeFileSync } from 'node:fs'
import { homedir } from 'node:os'
import { join } from 'node:path'
import { getAddress, type Hex } from 'viem'
import type { PrivateKeyAccount } from 'viem/accounts'
import { Failure } from '../failure.ts'
import { readTextFile } from '../text-file.ts'
import { decryptKey, encryptKey, type KeyFile, parseKeyFile } from './keystore.ts'
import { assertPrivate, makePrivateFolder } from './private-mode.ts'

/** Returns the folder of `ats`: ATS_HOME, else `ats` in the user's configuration folder. */
export const homeFolder = (env: NodeJS.ProcessEnv = process.env): string =>
  env.ATS_HOME || join(env.XDG_CONFIG_HOME || join(homedir(), '.config'), 'ats')

export type StoredKey = { name: string; address: Hex; path: string }

const NAME = /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/
/** Returns the folder of the keys. */
export const keysFolder = (home: string): string => join(home, 'keys')

/** The keys of a folder, and why each of its other files is not one. */
export type StoredKeys = { keys: StoredKey[]; unusable: Failure[] }

/**
 * Returns the stored keys, by name. A file that is no usable key hides no other one. Throws if others can read the
 * folder.
 */
export function listKeys(home: string): StoredKeys {
  const stored: StoredKeys = { keys: [], unusable: [] }
  const folder = keysFolder(home)
  if (!existsSync(folder)) return stored
  assertPrivate(folder)
  // Hidden files are those of other programs, such as the `._…` files of macOS.
  for (const file of readdirSync(folder).sort())
    if (file.endsWith('.json') && !file.startsWith('.'))
      try {
        stored.keys.push(readKey(home, file.slice(0, -'.json'.length)))
      } catch (error) {
        if (!(error instanceof Failure)) throw error
        stored.unusable.push(error)
      }
  return stored
}

const pathOf = (home: string, name: string) => join(keysFolder(home), `${name}.json`)

function readKey(home: string, name: string): StoredKey {
  const path = pathOf(home, name)
  return { name, address: addressOf(readKeyFile(path)), path }
}

/** Encrypts a private key and stores it under a name. Never replaces a file. */
export function storeKey(
  home: string,
  { name, privateKey, password, scryptN }: { name: string; privateKey: Hex; password: string; scryptN?: number },
): StoredKey {
  assertKeyName(name)
  const folder = keysFolder(home)
  makePrivateFolder(home)
  makePrivateFolder(folder)
  const path = pathOf(home, name)
  if (existsSync(path)) throw keyExists(path, name)
  const file = encryptKey(privateKey, password, scryptN)
  try {
    writeFileSync(path, `${JSON.stringify(file)}\n`, { mode: 0o600, flag: 'wx' })
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') throw keyExists(path, name)
    throw error
  }
  return { name, address: addressOf(file), path }
}

const keyExists = (path: string, name: string) =>
  new Failure('key', `There is a key named ${name} already: ${path}.`, {
    code: 'KEY_EXISTS',
    remedy: 'Choose another name.',
  })

/**
 * Returns the stored key with a name or an address, and reads no other file than a named one; without either, the only
 * key, or of several the one with the preferred address. Throws `KEY_AS_ARGUMENT` for what looks like a private key,
 * without repeating it.
 */
export function findKey(home: string, given: string | undefined, preferred?: string): StoredKey {
  if (given !== undefined && /^(0x)?[0-9a-f]{64}$/i.test(given))
    throw new Failure('usage', 'A private key is never an argument: other processes and the shell history see it.', {
      code: 'KEY_AS_ARGUMENT',
      remedy: 'Treat this key as known to others. Import a new one with `ats key import`, then pass its name.',
    })
  if (given !== undefined && NAME.test(given) && existsSync(pathOf(home, given))) {
    assertPrivate(keysFolder(home))
    return readKey(home, given)
  }
  const { keys, unusable } = listKeys(home)
  const [first, ...others] = keys
  if (given === undefined) {
    if (first === undefined)
      throw (
        unusable[0] ??
        new Failure('key', `There is no key in ${keysFolder(home)}.`, {
          code: 'KEY_NOT_FOUND',
          remedy: 'Create one with `ats key new`.',
        })
      )
    if (others.length === 0) return first
  }
  const wanted = (given ?? preferred)?.toLowerCase()
  const found = keys.find(({ address }) => address.toLowerCase() === wanted)
  if (found) return found
  const names = keys.map(({ name }) => name).join(', ')
  throw new Failure(
    'key',
    given === undefined
      ? `There are several keys: ${names}${preferred === undefined ? '' : `; none of them has the address ${preferred}, which has to sign`}.`
      : `There is no key ${given}; there are: ${names || 'none'}.`,
    { code: 'KEY_NOT_FOUND', remedy: 'Pass one of the names as --key, or set ATS_KEY.' },
  )
}

/** Decrypts a stored key. */
export async function unlockKey({ path }: StoredKey, password: string): Promise<PrivateKeyAccount> {
  return decryptKey(readKeyFile(path), password, path)
}

/** Throws unless a name is fit for a file. */
export function assertKeyName(name: string): void {
  if (NAME.test(name) && !/^(0x)?[0-9a-f]{64}$/i.test(name)) return
  throw new Failure('usage', 'The name of a key has letters, digits, dots, dashes and underscores, at most 64.', {
    code: 'KEY_NAME_INVALID',
    remedy: 'Choose a name such as `trader`.',
  })
}

function readKeyFile(path: string): KeyFile {
  if (statSync(path).isDirectory())
    throw new Failure('key', `${path} is a folder, not a key file.`, { code: 'KEY_FILE_INVALID', remedy: 'Remove it.' })
  assertPrivate(path)
  return parseKeyFile(readTextFile(path), path)
}

const addressOf = ({ address }: KeyFile): Hex => getAddress(`0x${address.replace(/^0x/, '')}`)
