import {
  type Described,
  describeCall,
  describeEvent,
  type KnownAddresses,
} from '@agent-trading-service/protocol/call-words'
import { type Address, getAddress, type Hex } from 'viem'
import { z } from 'zod'

const described = z
  .object({
    contract: z.string(),
    name: z.string().describe('Of the function or event, as in the ABI'),
    title: z.string().describe('What it does, in words'),
    terms: z.array(
      z.object({
        field: z.string().describe('The parameter, as in the ABI'),
        name: z.string(),
        value: z.string().describe('With its unit; tokens by symbol, vaults by slug'),
      }),
    ),
  })
  .meta({ id: 'Described', description: "A call or an event of this deployment's contracts, in words" })

/** What a call asks for. */
export const describedCalls = z
  .array(described)
  .describe('What it asks for: the call, then the calls that this makes, such as those of a batch')

/** What a transaction caused. */
export const describedEffects = z
  .array(described)
  .describe('What came of it, oldest first: the events of the contracts but for trades')

/** As many events of a transaction are described: anyone may cause more. */
const MAX_EVENTS = 50

export const presentCall = (to: Address, data: Hex, known: KnownAddresses): Described[] =>
  describeCall({ to: getAddress(to), data }, known)

/** What a log says; its address may be of any case. */
type EventLog = Parameters<typeof describeEvent>[0]

export const presentEffects = (logs: readonly EventLog[], known: KnownAddresses): Described[] =>
  logs.flatMap(log => describeEvent({ ...log, address: getAddress(log.address) }, known) ?? []).slice(0, MAX_EVENTS)
