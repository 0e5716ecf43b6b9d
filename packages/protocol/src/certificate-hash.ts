import { type Address, encodeAbiParameters, type Hex, keccak256, sha256, stringToBytes } from 'viem'

/** The part of an examination's result that its certificate's hash names: the hash of markets and contracts. */
type Result = { markets: { hash: string } }

/** Returns the hash of a result, which has what the agent, the runs and the statistics are. */
export const resultsHash = (result: Result): Hex => sha256(stringToBytes(JSON.stringify(result)))

/**
 * Returns the hash of the certificate of a result for the agents of an owner, as `claimCertificate` of
 * OwnerControls computes it: so it is of this examination, and no certificate of another owner.
 */
export const certificateHash = (result: Result, owner: Address): Hex =>
  keccak256(
    encodeAbiParameters(
      [{ type: 'bytes32' }, { type: 'address' }, { type: 'bytes32' }],
      [`0x${result.markets.hash}`, owner, resultsHash(result)],
    ),
  )
