import {
  decodeTokenDescription,
  type EncodedTokenDescription,
  PLAIN_TOKEN,
  type TokenDescription,
} from '@agent-trading-service/protocol/token-description'
import type { Address } from 'viem'
import type { Chain } from './configured-chain.ts'
import { tokenRegistry } from './contracts.ts'
import { call, optional } from './read-tree.ts'

/** The call that reads what the registry records of a token, within a tree of calls. */
export const descriptionCall = (chain: Chain, token: Address) =>
  optional(call(tokenRegistry(chain), 'descriptionOf', [token]))

/** Returns a token's description from its call; that of a plain token if the registry records none. */
export const descriptionFrom = (encoded: EncodedTokenDescription | undefined): TokenDescription =>
  encoded === undefined ? PLAIN_TOKEN : decodeTokenDescription(encoded)
