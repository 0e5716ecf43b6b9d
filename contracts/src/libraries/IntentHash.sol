// SPDX-License-Identifier: MIT
pragma solidity ^0.8.30;

import {IPositionManager} from "../interfaces/IPositionManager.sol";
import {ITradeRouter} from "../interfaces/ITradeRouter.sol";

/// @title EIP-712 struct hashes of what agents sign
library IntentHash {
    bytes32 internal constant OPEN_POSITION = keccak256(
        "OpenPosition(uint256 agentId,address vault,address token,uint256 usdcAmount,uint256 minTokenOut,uint16 maxSlippageBps,bytes32 exitsHash,uint256 deadline,uint256 nonce)"
    );
    bytes32 internal constant ADD_TO_POSITION = keccak256(
        "AddToPosition(uint256 agentId,uint256 positionId,uint256 usdcAmount,uint256 minTokenOut,uint16 maxSlippageBps,uint256 deadline,uint256 nonce)"
    );
    bytes32 internal constant REDUCE_POSITION =
        keccak256("ReducePosition(uint256 agentId,uint256 positionId,uint16 exitBps,uint256 deadline,uint256 nonce)");
    bytes32 internal constant UPDATE_EXIT_LADDER = keccak256(
        "UpdateExitLadder(uint256 agentId,uint256 positionId,bytes32 exitsHash,uint256 deadline,uint256 nonce)"
    );

    function hash(ITradeRouter.PositionIntent calldata intent) internal pure returns (bytes32) {
        return keccak256(
            abi.encode(
                OPEN_POSITION,
                intent.agentId,
                intent.vault,
                intent.token,
                intent.usdcAmount,
                intent.minTokenOut,
                intent.maxSlippageBps,
                hashExits(intent.exits),
                intent.deadline,
                intent.nonce
            )
        );
    }

    function hash(ITradeRouter.AddToPositionIntent calldata intent) internal pure returns (bytes32) {
        return keccak256(
            abi.encode(
                ADD_TO_POSITION,
                intent.agentId,
                intent.positionId,
                intent.usdcAmount,
                intent.minTokenOut,
                intent.maxSlippageBps,
                intent.deadline,
                intent.nonce
            )
        );
    }

    function hash(ITradeRouter.ReducePositionIntent calldata intent) internal pure returns (bytes32) {
        return keccak256(
            abi.encode(
                REDUCE_POSITION, intent.agentId, intent.positionId, intent.exitBps, intent.deadline, intent.nonce
            )
        );
    }

    function hash(ITradeRouter.UpdateExitLadderIntent calldata intent) internal pure returns (bytes32) {
        return keccak256(
            abi.encode(
                UPDATE_EXIT_LADDER,
                intent.agentId,
                intent.positionId,
                hashExits(intent.exits),
                intent.deadline,
                intent.nonce
            )
        );
    }

    /// @dev A rule is encoded as its three words, the rules' hashes as a dynamic array: with its offset and length.
    function hashExits(IPositionManager.ExitRule[] calldata exits) internal pure returns (bytes32) {
        bytes32[] memory hashes = new bytes32[](exits.length);
        for (uint256 i; i < exits.length; ++i) {
            hashes[i] = keccak256(abi.encode(exits[i]));
        }
        return keccak256(abi.encode(hashes));
    }
}
