import { vaultSlug } from '@agent-trading-service/protocol/vault-slug'
import { z } from 'zod'
import { findVault } from '../chain/find-vault.ts'
import { readRequestQueue } from '../chain/read-request-queue.ts'
import { readVaultsAndTokens } from '../chain/read-vaults-and-tokens.ts'
import { present } from '../resources/present.ts'
import { addressOut, amount, asOf, digits, presentAsOf, unixSeconds, usdc } from '../resources/primitives.ts'
import { defineOperation } from './define-operation.ts'
import { vaultParams } from './vaults.ts'

/** Requests of each kind that a response lists. */
const MAX_LISTED = 100

const waiting = {
  requestId: digits('Id of the request, which counts those of its kind'),
  controller: addressOut.describe('Who gets the shares or the USDC, and may cancel'),
  madeAt: unixSeconds('When the request was made'),
}
const depositRequest = z.object({ ...waiting, assets: usdc('What waits') }).meta({ id: 'DepositRequest' })
const redeemRequest = z
  .object({ ...waiting, shares: amount("What waits; the share's base units") })
  .meta({ id: 'RedeemRequest' })

const vaultRequests = z
  .object({
    vaultId: z.string(),
    queue: addressOut.nullable().describe('The contract that takes requests; null if the vault has none'),
    settleableBefore: unixSeconds(
      "Requests made before this time settle now, by anyone's call of settle(); null while none does",
    ).nullable(),
    deposits: z.array(depositRequest).describe('In the order in which they settle; the first 100'),
    redemptions: z.array(redeemRequest).describe('In the order in which they settle; the first 100'),
    omitted: z.int().describe('Requests that are not listed'),
    asOf,
  })
  .meta({ id: 'VaultRequests' })

export const listVaultRequests = defineOperation(
  {
    id: 'listVaultRequests',
    tool: {
      name: 'svc_list_vault_requests',
      set: 'venue',
      description:
        'Lists the deposits and redemptions of a vault that wait for the next price, in their order. Example: {"id":"genesis"}',
    },
    path: '/vaults/{id}/requests',
    tag: 'Vaults',
    summary: 'List waiting deposits and redemptions',
    description:
      "Returns the requests that wait in the vault's queue. While markets are shut, depositors send requestDeposit and requestRedeem to the queue (ERC-7540); a request settles at the first price of each held token that was observed after it, and can be cancelled before.",
    params: vaultParams,
    output: vaultRequests,
    errors: [404, 502],
  },
  async ({ chain }, { id }) => {
    const { registered } = await readVaultsAndTokens(chain)
    const vault = findVault(registered, id)
    const { block, queue } = await readRequestQueue(chain, vault.address, MAX_LISTED)
    return {
      vaultId: vaultSlug(vault),
      queue: queue?.address ?? null,
      settleableBefore: queue?.settleableBefore ? `${queue.settleableBefore}` : null,
      deposits: (queue?.deposits ?? []).map(waits => present(depositRequest, { ...waits, assets: waits.amount })),
      redemptions: (queue?.redemptions ?? []).map(waits => present(redeemRequest, { ...waits, shares: waits.amount })),
      omitted: queue?.omitted ?? 0,
      asOf: presentAsOf(block),
    }
  },
)
