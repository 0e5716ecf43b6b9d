import { transferRefusalOf } from '@agent-trading-service/protocol/transfer-refusal'
import { encodeErrorResult, type Hex, parseAbi } from 'viem'
import { expect, it } from 'vitest'
import { refusalOfRevert } from '../../src/chain/contract-error-refusals.ts'

const textOf = (text: string) =>
  encodeErrorResult({ abi: parseAbi(['error Error(string)']), errorName: 'Error', args: [text] })

it.each<[string, Hex, string]>([
  ['AddressFrozen() of Paxos', '0x1fd1cc44', 'accountFrozen'],
  ['ContractPaused() of Paxos', '0xab35696f', 'transfersPaused'],
  ['the blacklist of Circle', textOf('Blacklistable: account is blacklisted'), 'accountFrozen'],
  ['the pause of Circle', textOf('Pausable: paused'), 'transfersPaused'],
  ['a pool that cannot pay out', textOf('TF'), 'transferFailed'],
])('a transfer that reverts with %s is refused by name', (_, data, reason) => {
  expect(refusalOfRevert(data).body).toMatchObject({
    code: 'TRANSFER_REFUSED',
    details: { reason },
    retryable: true,
  })
})

it('a revert for another reason is no refused transfer', () => {
  for (const data of [undefined, '0x', '0x800ab12c', textOf('STF')] as const) {
    expect(transferRefusalOf(data)).toBeUndefined()
    expect(refusalOfRevert(data).body).toMatchObject({ code: 'INTENT_REFUSED' })
  }
})
