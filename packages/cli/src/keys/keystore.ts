import { scrypt as deriveScrypt } from 'node:crypto'
import { promisify } from 'node:util'
import * as Keystore from 'ox/Keystore'
import { type Hex, isHex } from 'viem'
import { type PrivateKeyAccount, privateKeyToAccount } from 'viem/accounts'
import { Failure } from '../failure.ts'

/** A Web3 Secret Storage file (version 3). Other programs, such as `cast wallet`, leave the address out. */
export type KeystoreFile = Keystore.Keystore & { address?: string }
/** A file of `keys/`. The address lets `key list` work without a password. */
export type KeyFile = KeystoreFile & { address: string }

/** The scrypt cost of new key files: 256 MiB and about a second. */
export const DEFAULT_SCRYPT_N = 262_144
export const MIN_SCRYPT_N = 8_192
const SCRYPT_R = 8

/** Encrypts a private key with a password. */
export function encryptKey(privateKey: Hex, password: string, n = DEFAULT_SCRYPT_N): KeyFile {
  const [key, options] = Keystore.scrypt({ password, n, r: SCRYPT_R, p: 1 })
  const { address } = privateKeyToAccount(privateKey)
  return { address: address.slice(2).toLowerCase(), ...Keystore.encrypt(privateKey, key, options) }
}

/** Decrypts a key file. Throws `WRONG_PASSWORD`; no error carries the key or the password. */
export async function decryptKey(file: KeyFile, password: string, path: string): Promise<PrivateKeyAccount> {
  const account = privateKeyToAccount(await decryptKeystore(file, password, path, '--password-file'))
  if (account.address.slice(2).toLowerCase() === file.address.replace(/^0x/, '').toLowerCase()) return account
  throw new Failure('key', `${path} names the address 0x${file.address}, but holds the key of ${account.address}.`, {
    code: 'KEY_FILE_INVALID',
    remedy: 'Import the key again.',
  })
}

/** Returns the private key of a keystore. Throws `WRONG_PASSWORD`, which names the option for the password. */
export async function decryptKeystore(
  file: KeystoreFile,
  password: string,
  path: string,
  option: string,
): Promise<Hex> {
  const privateKey = decrypted(file, await derivedKey(file, password))
  if (privateKey !== undefined) return privateKey
  throw new Failure('key', `The password does not open ${path}.`, {
    code: 'WRONG_PASSWORD',
    remedy: `Check ${option}, or ATS_PASSWORD_FILE or ATS_PASSWORD.`,
  })
}

/** Returns the content of a key file. Throws `KEY_FILE_INVALID`. */
export function parseKeyFile(text: string, path: string): KeyFile {
  const file = parseKeystore(text, path)
  if (/^(0x)?[0-9a-fA-F]{40}$/.test(`${file.address}`)) return file as KeyFile
  throw new Failure('key', `${path} has no address, as keystores of \`cast wallet\` have none.`, {
    code: 'KEY_FILE_INVALID',
    remedy: `Move it out of this folder, then import it: ats key import <name> --keystore <path>`,
  })
}

/** Returns the content of a keystore of any program. Throws `KEY_FILE_INVALID`. */
export function parseKeystore(text: string, path: string): KeystoreFile {
  const file = parsedJson(text) as Partial<KeystoreFile> | null | undefined
  const { kdf } = file?.crypto ?? {}
  if (file?.version === 3 && (kdf === 'scrypt' || kdf === 'pbkdf2')) return file as KeystoreFile
  throw new Failure('key', `${path} is not a Web3 Secret Storage file (version 3).`, {
    code: 'KEY_FILE_INVALID',
    remedy: 'Create one with `ats key new` or `ats key import`.',
  })
}

const scrypt = promisify<string, Buffer, number, object, Buffer>(deriveScrypt)

/** Node's scrypt is faster than a JavaScript one and does not block; pbkdf2 files come from other programs. */
async function derivedKey(file: KeystoreFile, password: string): Promise<Keystore.Key> {
  const { kdfparams } = file.crypto
  if (!('n' in kdfparams)) return Keystore.toKeyAsync(file, { password })
  const { n: N, r, p, salt } = kdfparams
  const options = { N, r, p, maxmem: 256 * N * r }
  return `0x${(await scrypt(password, Buffer.from(salt, 'hex'), 32, options)).toString('hex')}`
}

function decrypted(file: KeystoreFile, key: Keystore.Key): Hex | undefined {
  try {
    return Keystore.decrypt(file, key)
  } catch {
    return undefined
  }
}

/** Returns a private key from text, with or without 0x. Throws `KEY_INVALID` without repeating the text. */
export function parsePrivateKey(text: string): Hex {
  const trimmed = text.trim()
  const key = trimmed.startsWith('0x') ? trimmed : `0x${trimmed}`
  if (isHex(key) && key.length === 66) {
    try {
      privateKeyToAccount(key)
      return key
    } catch {
      // Zero and numbers beyond the curve's order are no keys.
    }
  }
  throw new Failure('key', 'The input is not a private key: 64 hex characters are expected, with or without 0x.', {
    code: 'KEY_INVALID',
    remedy: 'Pass the key on standard input, or type it when asked.',
  })
}

function parsedJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
