// SPDX-License-Identifier: MIT
pragma solidity ^0.8.30;

import {IAgentRegistry} from "../interfaces/IAgentRegistry.sol";
import {IPositionManager} from "../interfaces/IPositionManager.sol";

/// @title Short hashes of what decides about the exits of positions
/// @notice The keeper compares them with those of its rows, and reads the positions that differ. Exists only during an
/// `eth_call`, like ServiceReader.
contract PositionFingerprints {
    uint256 private constant ID_BYTES = 8;

    /// @param positionIds the ids, 8 bytes each
    /// @return fingerprints 8 bytes for each id, in the same order
    function fingerprintsOf(address positionManager, address agentRegistry, bytes calldata positionIds)
        external
        view
        returns (bytes memory fingerprints)
    {
        // Each fingerprint is written as a whole word, so the last one needs room for 24 bytes more.
        fingerprints = new bytes(positionIds.length + 32 - ID_BYTES);
        for (uint256 at; at < positionIds.length; at += ID_BYTES) {
            uint256 positionId = uint64(bytes8(positionIds[at:at + ID_BYTES]));
            bytes32 word = bytes8(_hashOf(positionManager, agentRegistry, positionId));
            assembly ("memory-safe") {
                mstore(add(add(fingerprints, 32), at), word)
            }
        }
        assembly ("memory-safe") {
            mstore(fingerprints, positionIds.length)
        }
    }

    /// @dev A deployment with the protocol's functions alone has no `positionStateOf`, and no mandates. What a failed call
    /// returns is hashed like anything else.
    function _hashOf(address positionManager, address agentRegistry, uint256 positionId)
        private
        view
        returns (bytes32)
    {
        (bool success, bytes memory state) =
            positionManager.staticcall(abi.encodeCall(IPositionManager.positionStateOf, positionId));
        if (success && state.length >= 32) {
            // The first word; the state has at least one.
            // forge-lint: disable-next-line(unsafe-typecast)
            uint256 agentId = uint256(bytes32(state));
            // forge-lint: disable-next-line(unchecked-call)
            (, bytes memory mandate) = agentRegistry.staticcall(abi.encodeCall(IAgentRegistry.mandateStateOf, agentId));
            return keccak256(bytes.concat(state, mandate));
        }
        // forge-lint: disable-next-line(unchecked-call)
        (, bytes memory position) = positionManager.staticcall(abi.encodeCall(IPositionManager.getPosition, positionId));
        // forge-lint: disable-next-line(unchecked-call)
        (, bytes memory rules) = positionManager.staticcall(abi.encodeCall(IPositionManager.getExitRules, positionId));
        return keccak256(bytes.concat(position, rules));
    }
}
