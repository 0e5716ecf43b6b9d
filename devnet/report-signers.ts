import { type Address, type Hex, keccak256, toHex } from 'viem'
import { privateKeyToAccount } from 'viem/accounts'

/** How many signers of price reports may lie on the embedded chain; one more signs each report, as on public chains. */
const FAULTS = 5

/** The keys of the signers: worth nothing, and published with this code. */
export const reportSignerKeys: Hex[] = Array.from({ length: 3 * FAULTS + 1 }, (_, index) =>
  keccak256(toHex(`price report signer ${index}`)),
)

/** What the verifier of the embedded chain is configured with. The digest names the configuration in each report. */
export const reportConfig: { digest: Hex; faults: number; signers: Address[] } = {
  digest: keccak256(toHex('price reports of the embedded chain')),
  faults: FAULTS,
  signers: reportSignerKeys.map(key => privateKeyToAccount(key).address),
}
