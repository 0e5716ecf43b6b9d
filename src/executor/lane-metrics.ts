import type { Address, Hex } from 'viem'
import type { Config } from '../config/config.ts'
import { count, observe } from '../metrics/recorder.ts'
import { addressOfKey } from './address-of-key.ts'
import type { Attempt } from './attempt-table.ts'

export type LaneMetrics = ReturnType<typeof createLaneMetrics>

type Keys = Pick<Config, 'executorKeys' | 'relayerKey' | 'oracleUpdaterKey' | 'keeper' | 'reporterKey'>

/** The names of accounts in metrics, by address: their role, and for executors the place of their key in the variable. */
export function accountNames({
  executorKeys,
  relayerKey,
  oracleUpdaterKey,
  keeper,
  reporterKey,
}: Keys): Map<Address, string> {
  const named: [Hex | undefined, string][] = [
    [reporterKey, 'reporter'],
    [keeper?.key, 'keeper'],
    [oracleUpdaterKey, 'updater'],
    [relayerKey, 'relayer'],
    ...executorKeys.map((key, index): [Hex, string] => [key, `executor ${index + 1}`]),
  ]
  return new Map(named.flatMap(([key, name]) => (key ? [[addressOfKey(key), name] as const] : [])))
}

/** Records the results and costs of a lane's transactions. */
export function createLaneMetrics(account: string) {
  return {
    /** `gas` is the gas not recorded before: after a reorg the same transaction may be mined again. */
    recordInclusion(
      { purpose, sentAt }: Pick<Attempt, 'purpose' | 'sentAt'>,
      {
        kind,
        result,
        gas,
        gasPrice,
      }: { kind: string | undefined; result: 'mined' | 'reverted'; gas: number; gasPrice: bigint | undefined },
    ) {
      const labels = { account, kind: purpose === 'cancel' ? 'cancel' : (kind ?? 'unknown') }
      count('ats_transactions', { ...labels, result })
      observe('ats_inclusion_duration_seconds', { account }, (Date.now() - sentAt) / 1_000)
      if (gas <= 0) return
      count('ats_transaction_gas', labels, gas)
      if (gasPrice !== undefined) count('ats_transaction_fees_ether', { account }, (gas * Number(gasPrice)) / 1e18)
    },
  }
}
