import { certificateHash, resultsHash } from '@agent-trading-service/protocol/certificate-hash'
import { type Hex, zeroHash } from 'viem'
import { privateKeyToAccount } from 'viem/accounts'
import { afterAll, expect, it } from 'vitest'
import { ownerControlsAbi } from '../../contracts-abi/owner-controls.ts'
import { vaultTrackRegistryAbi } from '../../contracts-abi/vault-track-registry.ts'
import { chain, GENESIS, registrationOf } from '../support/actors.ts'
import { call, deployment } from '../support/surfaces.ts'

// A track may require the certificate of an examination before it lets an agent go.

const { accounts, contracts } = deployment
const RESULT = { markets: { hash: 'e1'.repeat(32) } }
const EXAMINATION: Hex = `0x${RESULT.markets.hash}`

const requireExamination = (examination: Hex) =>
  chain.administer({
    address: contracts.VaultTrackRegistry,
    abi: vaultTrackRegistryAbi,
    functionName: 'setRequiredExamination',
    args: [GENESIS, 0n, examination],
  })
afterAll(() => requireExamination(zeroHash))

const blockersOf = async (agentId: string): Promise<[examination: unknown, blockers: string[]]> => {
  const { examination, promotionReadiness } = (await call('getRiskState', { agentId })).body
  return [examination, promotionReadiness.blockers.filter((each: string) => each.startsWith('Examination'))]
}

it('the readiness of an agent names the examination that its track requires, until the owner has claimed a certificate of it', async () => {
  const [owner] = accounts.agents as [(typeof accounts.agents)[number]]
  const registration = await registrationOf(privateKeyToAccount(owner.privateKey))
  const { agentId } = (await call('registerAgent', registration)).body
  expect(await blockersOf(agentId)).toEqual([null, []])

  await requireExamination(EXAMINATION)
  expect(await blockersOf(agentId)).toEqual([
    { required: EXAMINATION, certificate: null },
    [expect.stringMatching(new RegExp(`^ExaminationMissing: .*${EXAMINATION}.*ats claim`))],
  ])

  const claim = {
    address: contracts.OwnerControls as Hex,
    abi: ownerControlsAbi,
    functionName: 'claimCertificate',
    args: [BigInt(agentId), EXAMINATION, resultsHash(RESULT)],
  } as const
  await expect(chain.send(accounts.keeper, claim)).rejects.toThrow('NotAgentOwner')
  await chain.send(owner, claim)
  const certificate = certificateHash(RESULT, owner.address)
  expect(await blockersOf(agentId)).toEqual([{ required: EXAMINATION, certificate }, []])
  await expect(chain.send(owner, claim)).rejects.toThrow('CertificateAlreadyClaimed')
})
