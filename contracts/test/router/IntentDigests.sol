// SPDX-License-Identifier: MIT
pragma solidity ^0.8.30;

import {IERC5267} from "@openzeppelin/contracts/interfaces/IERC5267.sol";
import {MessageHashUtils} from "@openzeppelin/contracts/utils/cryptography/MessageHashUtils.sol";
import {IPositionManager} from "../../src/interfaces/IPositionManager.sol";
import {ITradeRouter} from "../../src/interfaces/ITradeRouter.sol";
import {IntentHash} from "../../src/libraries/IntentHash.sol";

/// @notice The EIP-712 digests that an agent's signer signs, of the router's own struct hashes
contract IntentDigests {
    using IntentHash for ITradeRouter.PositionIntent;
    using IntentHash for ITradeRouter.AddToPositionIntent;
    using IntentHash for ITradeRouter.ReducePositionIntent;
    using IntentHash for ITradeRouter.UpdateExitLadderIntent;
    using IntentHash for IPositionManager.ExitRule[];

    bytes32 private constant DOMAIN_TYPEHASH =
        keccak256("EIP712Domain(string name,string version,uint256 chainId,address verifyingContract)");

    bytes32 public constant OPEN_POSITION_TYPEHASH = IntentHash.OPEN_POSITION;
    bytes32 public constant ADD_TO_POSITION_TYPEHASH = IntentHash.ADD_TO_POSITION;
    bytes32 public constant REDUCE_POSITION_TYPEHASH = IntentHash.REDUCE_POSITION;
    bytes32 public constant UPDATE_EXIT_LADDER_TYPEHASH = IntentHash.UPDATE_EXIT_LADDER;

    IERC5267 private immutable _router;

    constructor(address router) {
        _router = IERC5267(router);
    }

    function hashOpenPosition(ITradeRouter.PositionIntent calldata intent) external view returns (bytes32) {
        return _digestOf(intent.hash());
    }

    function hashAddToPosition(ITradeRouter.AddToPositionIntent calldata intent) external view returns (bytes32) {
        return _digestOf(intent.hash());
    }

    function hashReducePosition(ITradeRouter.ReducePositionIntent calldata intent) external view returns (bytes32) {
        return _digestOf(intent.hash());
    }

    function hashUpdateExitLadder(ITradeRouter.UpdateExitLadderIntent calldata intent) external view returns (bytes32) {
        return _digestOf(intent.hash());
    }

    function hashExits(IPositionManager.ExitRule[] calldata exits) external pure returns (bytes32) {
        return exits.hashExits();
    }

    function _digestOf(bytes32 structHash) private view returns (bytes32) {
        (, string memory name, string memory version, uint256 chainId, address verifier,,) = _router.eip712Domain();
        bytes32 separator = keccak256(
            abi.encode(DOMAIN_TYPEHASH, keccak256(bytes(name)), keccak256(bytes(version)), chainId, verifier)
        );
        return MessageHashUtils.toTypedDataHash(separator, structHash);
    }
}
