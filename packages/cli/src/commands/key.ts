import { text } from 'node:stream/consumers'
import type { Command } from 'commander'
import type { Hex } from 'viem'
import { generatePrivateKey } from 'viem/accounts'
import { findKey, homeFolder, listKeys, storeKey } from '../keys/key-folder.ts'
import { DEFAULT_SCRYPT_N, MIN_SCRYPT_N, parsePrivateKey } from '../keys/keystore.ts'
import { readPassword } from '../keys/password.ts'
import { createPrinter } from '../output/printer.ts'
import { createCommand, createGroup, integer, passwordFileOption, type ServiceOptions } from './options.ts'

type NewKeyOptions = ServiceOptions & { passwordFile?: string; scryptN: number }
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
        'import a private key from standard input or a prompt',
        'ats key import trader < key.txt',
      ).action((name, options) => store(name, options, readPrivateKey)),
    )
    .addCommand(
      createCommand('list', 'list the keys: name, address and file', 'ats key list -o json').action(
        ({ output }: ServiceOptions) => createPrinter(output).result(listKeys(homeFolder())),
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

const storingCommand = (name: string, description: string, example: string) =>
  createCommand(name, description, example)
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

async function readPrivateKey(): Promise<Hex> {
  if (!process.stdin.isTTY) return parsePrivateKey(await text(process.stdin))
  const { askPassword } = await import('../output/ask.ts')
  return parsePrivateKey(await askPassword('Private key (64 hex characters)'))
}
