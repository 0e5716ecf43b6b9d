// SPDX-License-Identifier: MIT
pragma solidity ^0.8.30;

import {IOrderBook} from "../interfaces/IOrderBook.sol";
import {IntentHash} from "./IntentHash.sol";

/// @title EIP-712 struct hashes of the orders that agents sign
library OrderHash {
    bytes32 internal constant PLACE_ORDER = keccak256(
        "PlaceOrder(uint256 agentId,bytes32 key,uint8 side,address token,uint256 positionId,uint256 usdcAmount,uint16 exitBps,uint16 maxSlippageBps,bytes32 exitsHash,uint8 condition,uint256 triggerPrice,uint16 trailBps,uint256 validAfter,uint256 validUntil,uint16 parts,uint32 interval,uint256 deadline,uint256 nonce)"
    );
    bytes32 internal constant CANCEL_ORDER =
        keccak256("CancelOrder(uint256 agentId,uint256 orderId,uint256 deadline,uint256 nonce)");

    /// @dev In two halves: nineteen words are too many for the stack.
    function hash(IOrderBook.OrderIntent calldata intent) internal pure returns (bytes32) {
        bytes memory head = abi.encode(
            PLACE_ORDER,
            intent.agentId,
            intent.key,
            intent.side,
            intent.token,
            intent.positionId,
            intent.usdcAmount,
            intent.exitBps,
            intent.maxSlippageBps,
            IntentHash.hashExits(intent.exits)
        );
        bytes memory tail = abi.encode(
            intent.condition,
            intent.triggerPrice,
            intent.trailBps,
            intent.validAfter,
            intent.validUntil,
            intent.parts,
            intent.interval,
            intent.deadline,
            intent.nonce
        );
        return keccak256(bytes.concat(head, tail));
    }

    function hash(IOrderBook.CancelIntent calldata intent) internal pure returns (bytes32) {
        return keccak256(abi.encode(CANCEL_ORDER, intent.agentId, intent.orderId, intent.deadline, intent.nonce));
    }
}
