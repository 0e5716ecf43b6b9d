import { findKey, listKeys } from '../keys/key-folder.ts'
import { type KeyOptions, openSigner } from '../keys/signer.ts'
import { createReader } from './create-reader.ts'
import { pinsOf } from './pins.ts'
import { createTrader, type Trader, type TraderKeys } from './trader.ts'

export type TraderOptions = KeyOptions & {
  url: string
  timeout?: number | undefined
  rpc?: string | undefined
  /** The agent that is meant where a request names none. */
  agent?: string | undefined
  payer?: string | undefined
  payerPasswordFile?: string | undefined
  /** The stored key that owns an agent to register; the signing key by default. */
  owner?: string | undefined
  ownerPasswordFile?: string | undefined
  /** The largest registration fee to pay; USDC. */
  maxFee?: string | undefined
  /** Without a terminal to ask for a password. */
  canAskPassword?: boolean
}

/**
 * Returns what the keys of this machine can do at a service, held to the contracts that the service named at the first
 * contact.
 */
export async function openTrader(home: string, options: TraderOptions): Promise<Trader> {
  const { url, timeout, rpc, agent } = options
  // Without a key there is nothing to quote for.
  if (options.key !== undefined || listKeys(home).keys.length < 2) findKey(home, options.key)
  const pins = await pinsOf(home, url, createReader({ url, timeout }))
  return createTrader({
    home,
    url,
    timeout,
    rpc,
    pins,
    agentId: agent,
    keys: keysOf(home, options),
    maxFee: options.maxFee,
  })
}

function keysOf(home: string, { key, passwordFile, canAskPassword: canAsk, ...options }: TraderOptions): TraderKeys {
  const { payer, payerPasswordFile = passwordFile, owner, ownerPasswordFile = passwordFile } = options
  const open = (preferred?: string) => openSigner(home, { key, passwordFile }, { canAsk, preferred })
  const openPayer = (name: string) => openSigner(home, { key: name, passwordFile: payerPasswordFile }, { canAsk })
  const openOwner = (name: string) => openSigner(home, { key: name, passwordFile: ownerPasswordFile }, { canAsk })
  // Of several keys, the one that neither pays nor owns is registered.
  function toRegister() {
    const named = [
      ...(payer === undefined ? [] : [openPayer(payer).address]),
      ...(owner === undefined ? [] : [openOwner(owner).address]),
    ]
    const others = listKeys(home).keys.filter(({ address }) => !named.includes(address))
    return open(others.length === 1 ? others[0]?.address : undefined)
  }
  return {
    ofAddress: open,
    toRegister,
    toOwn: () => (owner === undefined ? undefined : openOwner(owner)),
    toPay: () => (payer === undefined ? toRegister() : openPayer(payer)),
  }
}
