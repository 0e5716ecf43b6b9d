import { type KeyOptions, openSigner } from '../keys/signer.ts'
import { createReader } from './create-reader.ts'
import { pinsOf } from './pins.ts'
import { createTrader, type Trader } from './trader.ts'

export type TraderOptions = KeyOptions & {
  url: string
  timeout?: number | undefined
  rpc?: string | undefined
  /** The agent that is meant where a request names none. */
  agent?: string | undefined
  payer?: string | undefined
  payerPasswordFile?: string | undefined
  /** The largest registration fee to pay; USDC. */
  maxFee?: string | undefined
  /** Without a terminal to ask for a password. */
  canAskPassword?: boolean
}

/** Returns what a key can do at a service, held to the contracts that the service named at the first contact. */
export async function openTrader(home: string, options: TraderOptions): Promise<Trader> {
  const { url, timeout, rpc, agent, payer, payerPasswordFile, canAskPassword } = options
  const signer = openSigner(home, options, canAskPassword)
  const payerSigner =
    payer === undefined
      ? signer
      : openSigner(home, { key: payer, passwordFile: payerPasswordFile ?? options.passwordFile }, canAskPassword)
  const pins = await pinsOf(home, url, createReader({ url, timeout }))
  return createTrader({
    home,
    url,
    timeout,
    rpc,
    pins,
    agentId: agent,
    signer,
    payer: payerSigner,
    maxFee: options.maxFee,
  })
}
