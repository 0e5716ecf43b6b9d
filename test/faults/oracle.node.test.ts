import { pad } from 'viem'
import { describe, expect, test } from 'vitest'
import { type Execution, type History, type Intent, judge } from './oracle.ts'

const [A, B, TX, OTHER] = [pad('0xa'), pad('0xb'), pad('0x1'), pad('0x2')]
const success = { status: 201, body: { agentId: '1', positionId: '7', transactionHash: TX } }
const refusal = { status: 400, body: { code: 'INVALID_NONCE' } }
const lost = { status: 'no answer' } as const

const intent = (changes: Partial<Intent> = {}): Intent => ({
  digest: A,
  kind: 'open',
  wish: 'w',
  hasTwin: false,
  told: [success],
  ...changes,
})
const execution = (changes: Partial<Execution> = {}): Execution => ({
  ...{ hash: TX, digest: A, succeeded: true, agentId: '1', positionId: '7' },
  ...changes,
})
const history = (changes: Partial<History> = {}): History => ({
  intents: [intent()],
  executions: [execution()],
  accounts: [{ address: '0x1', mined: 1, nonce: 1, pendingNonce: 1, inPool: 0 }],
  texts: ['{"code":"INVALID_NONCE"}'],
  secrets: ['canary'],
  lostBlocks: false,
  ...changes,
})
const rules = (changes: Partial<History>) => judge(history(changes)).map(({ rule }) => rule)

describe('the oracle finds nothing wrong with', () => {
  test.each<[string, Partial<History>]>([
    ['an intent that was executed and answered', {}],
    [
      'answers that were lost before the right one came',
      { intents: [intent({ told: [lost, { status: 502, body: {} }, success] })] },
    ],
    ['an intent that was refused and not executed', { intents: [intent({ told: [refusal] })], executions: [] }],
    [
      'a refusal of what reverted on the chain',
      { intents: [intent({ told: [refusal] })], executions: [execution({ succeeded: false })] },
    ],
    [
      'a registration, which has no position',
      {
        intents: [intent({ kind: 'register' })],
        executions: [execution({ positionId: undefined })],
      },
    ],
    [
      'an intent whose block was lost and that is in another transaction since',
      { executions: [execution({ hash: OTHER })], lostBlocks: true },
    ],
    [
      'a refusal beside the success of a body that was posted twice at once',
      { intents: [intent({ hasTwin: true, told: [refusal, success] })] },
    ],
    ['a filler that carries no intent', { executions: [execution(), execution({ hash: OTHER, digest: undefined })] }],
  ])('%s', (_, changes) => {
    expect(judge(history(changes))).toEqual([])
  })
})

describe('the oracle tells of', () => {
  test.each<[string, string, Partial<History>]>([
    ['an intent that ran twice', 'executed twice', { executions: [execution(), execution({ hash: OTHER })] }],
    ['a success in another transaction than it named', 'false success', { executions: [execution({ hash: OTHER })] }],
    ['a success without a transaction', 'false success', { executions: [] }],
    ['a success that reverted', 'false success', { executions: [execution({ succeeded: false })] }],
    ['a success with the id of another position', 'false success', { executions: [execution({ positionId: '8' })] }],
    [
      'a registration with the id of another agent',
      'false success',
      { intents: [intent({ kind: 'register' })], executions: [execution({ agentId: '2' })] },
    ],
    [
      'the refusals of a body that was posted twice at once and was executed',
      'false refusal',
      { intents: [intent({ hasTwin: true, told: [refusal] })] },
    ],
    ['a refusal of what was executed', 'false refusal', { intents: [intent({ told: [refusal] })] }],
    ['a success that was refused before', 'false refusal', { intents: [intent({ told: [refusal, success] })] }],
    [
      'an intent that nobody was ever told about',
      'no verdict',
      { intents: [intent({ told: [lost] })], executions: [] },
    ],
    [
      'an execution that nobody asked for',
      'unknown execution',
      {
        executions: [execution(), execution({ hash: OTHER, digest: B })],
      },
    ],
    [
      'a nonce that was used elsewhere',
      'not at rest',
      {
        accounts: [{ address: '0x1', mined: 1, nonce: 2, pendingNonce: 2, inPool: 0 }],
      },
    ],
    [
      'a transaction that waits in the pool',
      'not at rest',
      {
        accounts: [{ address: '0x1', mined: 1, nonce: 1, pendingNonce: 1, inPool: 1 }],
      },
    ],
    ['a secret in a log', 'secret told', { texts: ['fetch failed: http://127.0.0.1/canary'] }],
  ])('%s', (_, rule, changes) => {
    expect(rules(changes)).toEqual([rule])
  })

  test('a client that signed anew after a false refusal and got its wish twice', () => {
    const intents = [
      intent({ told: [refusal] }),
      intent({ digest: B, told: [{ ...success, body: { ...success.body, transactionHash: OTHER } }] }),
    ]
    const executions = [execution(), execution({ hash: OTHER, digest: B })]
    expect(rules({ intents, executions })).toEqual(['false refusal', 'wish granted twice'])
  })
})
