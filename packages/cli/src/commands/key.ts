import type { Command } from 'commander'
import type { Hex } from 'viem'
import { generatePrivateKey } from 'viem/accounts'
import { Failure } from '../failure.ts'
import { findKey, homeFolder, keysFolder, listKeys, storeKey } from '../keys/key-folder.ts'
import { DEFAULT_SCRYPT_N, decryptKeystore, MIN_SCRYPT_N, parseKeystore, parsePrivateKey } from '../keys/keystore.ts'
import { readPassword } from '../keys/password.ts'
import { createPrinter, type Printer } from '../output/printer.ts'
import { readTextFile } from '../text-file.ts'
import { createCommand, createGroup, integer, passwordFileOption, type ServiceOptions } from './options.ts'
import { readStdin } from './read-stdin.ts'

type NewKeyOptions = ServiceOptions & { passwordFile?: string; scryptN: number }
type ImportOptions = NewKeyOptions & { keystore?: string; keystorePasswordFile?: string }
const DEFAULT_NAME = 'default'

/** `ats key`: the keys of this machine. */
export function keyCommand(): Command {
  return createGroup('key', 'create, import and list the keys of this machine', 'ats key new trader')
    .addCommand(
      storingCommand('new', 'create a key', 'ats key new trader').action((name, options) =>
        store(name, options, async () => generatePrivateKey()),
      ),
    )
    .addCommand(
      storingCommand(
        'import',
        'import a private key from standard input or a prompt, or a keystore of another program',
        'ats key import trader < key.txt',
        'ats key import trader --keystore ~/.foundry/keystores/trader',
      )
        .option('--keystore <path>', 'Web3 Secret Storage file of another program, such as `cast wallet`')
        .option('--keystore-password-file <path>', "file with the keystore's password; the new key's by default")
        .action((name: string, options: ImportOptions) => store(name, options, () => readPrivateKey(options))),
    )
    .addCommand(
      createCommand('list', 'list the keys: name, address and file', 'ats key list -o json').action(
        ({ output }: ServiceOptions) => list(createPrinter(output)),
      ),
    )
    .addCommand(
      createCommand('show', 'show the address of a key', 'ats key show trader')
        .argument('[name]', 'name or address of the key')
        .action((name: string | undefined, { output }: ServiceOptions) =>
          createPrinter(output).result(findKey(homeFolder(), name)),
        ),
    )
}

const storingCommand = (name: string, description: string, ...examples: string[]) =>
  createCommand(name, description, ...examples)
    .argument('[name]', 'name of the key', DEFAULT_NAME)
    .addOption(passwordFileOption())
    .option(
      '--scrypt-n <n>',
      `work factor of the encryption; the default takes 256 MiB and about a second, ${MIN_SCRYPT_N} is the least`,
      integer(MIN_SCRYPT_N, 2 ** 22),
      DEFAULT_SCRYPT_N,
    )

async function store(
  name: string,
  { output, scryptN, ...source }: NewKeyOptions,
  readKey: () => Promise<Hex>,
): Promise<void> {
  const privateKey = await readKey()
  const password = await readPassword(source, { name, isNew: true })
  const { address, path } = storeKey(homeFolder(), { name, privateKey, password, scryptN })
  createPrinter(output).result({ name, address, path })
}

/** Prints the keys. Throws for the first file that others can read; a file that is no key at all is only named. */
function list(printer: Printer): void {
  const { keys, unusable } = listKeys(homeFolder())
  const rows = keys.map(({ name, address }) => ({ name, address }))
  printer.result(printer.format === 'json' ? keys : { folder: keysFolder(homeFolder()), keys: rows })
  for (const { message } of unusable) printer.note(message)
  const isForeign = ({ facts }: Failure) => ['KEY_FILE_INVALID', 'NOT_UTF8'].includes(`${facts.code}`)
  const failure = unusable.find(each => !isForeign(each))
  if (failure) throw failure
}

/** Reads the private key to import: from a keystore, or as hex or a keystore on standard input, or from a prompt. */
async function readPrivateKey({ keystore, keystorePasswordFile, passwordFile }: ImportOptions): Promise<Hex> {
  const decrypt = async (text: string, path: string) => {
    const source = { passwordFile: keystorePasswordFile ?? passwordFile }
    const password = await readPassword(source, { name: path })
    return decryptKeystore(parseKeystore(text, path), password, path, '--keystore-password-file')
  }
  if (keystore !== undefined) return decrypt(readKeystore(keystore), keystore)
  if (!process.stdin.isTTY) {
    const text = await readStdin()
    return text.trimStart().startsWith('{') ? decrypt(text, 'Standard input') : parsePrivateKey(text)
  }
  const { askPassword } = await import('../output/ask.ts')
  return parsePrivateKey(await askPassword('Private key (64 hex characters)'))
}

function readKeystore(path: string): string {
  try {
    return readTextFile(path)
  } catch (error) {
    if (error instanceof Failure) throw error
    throw new Failure('key', `The keystore ${path} cannot be read (${(error as NodeJS.ErrnoException).code}).`, {
      code: 'KEY_FILE_INVALID',
      remedy: 'Check the path.',
    })
  }
}
