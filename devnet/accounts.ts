import { bytesToHex, type Hex } from 'viem'
import { mnemonicToAccount, privateKeyToAccount } from 'viem/accounts'

/** The public test mnemonic. Anyone has its keys: use them on embedded chains only. */
export const MNEMONIC = 'test test test test test test test test test test test junk'

/** The named accounts in the order of their derivation index; the agents follow. */
const roles = [
  'admin',
  'operator',
  'executor',
  'relayer',
  'oracleUpdater',
  'keeper',
  'depositor',
  'marketMaker',
  'payer',
  'treasury',
] as const
const AGENTS = 14

/** Accounts that came after the agents. */
const LATER_ACCOUNTS = 2

export const ACCOUNTS = roles.length + AGENTS + LATER_ACCOUNTS

export type Account = { address: `0x${string}`; privateKey: Hex }
export type Accounts = Record<(typeof roles)[number], Account> & {
  agents: Account[]
  /** Posts weekly results. */
  reporter: Account
  /** Sets prices for people and tests, because the service alone uses `oracleUpdater`. */
  priceSetter: Account
}

/** Returns the accounts of the embedded chain, which are the same at every start. */
export function devnetAccounts(): Accounts {
  const parent = mnemonicToAccount(MNEMONIC, { path: "m/44'/60'/0'/0" }).getHdKey()
  const derive = (index: number): Account => {
    const key = parent.deriveChild(index).privateKey
    if (!key) throw new Error(`Account ${index} has no private key.`)
    const privateKey = bytesToHex(key)
    return { address: privateKeyToAccount(privateKey).address, privateKey }
  }
  const named = Object.fromEntries(roles.map((role, index) => [role, derive(index)])) as Omit<
    Accounts,
    'agents' | 'reporter' | 'priceSetter'
  >
  return {
    ...named,
    agents: Array.from({ length: AGENTS }, (_, i) => derive(roles.length + i)),
    reporter: derive(roles.length + AGENTS),
    priceSetter: derive(roles.length + AGENTS + 1),
  }
}
