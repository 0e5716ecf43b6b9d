// SPDX-License-Identifier: MIT
pragma solidity ^0.8.30;

import {IERC1271} from "@openzeppelin/contracts/interfaces/IERC1271.sol";
import {ERC721Holder} from "@openzeppelin/contracts/token/ERC721/utils/ERC721Holder.sol";
import {ECDSA} from "@openzeppelin/contracts/utils/cryptography/ECDSA.sol";

/// @title An account with code, the smallest that can own an agent
/// @notice Signs by ERC-1271 with its owner's key and acts by `execute`; holds ERC-721 tokens, so an ERC-8004 identity.
contract SmartAccount is IERC1271, ERC721Holder {
    bytes4 private constant REFUSED = 0xffffffff;

    address public immutable OWNER;

    /// @notice Only `owner` acts for this account.
    error NotOwner(address caller, address owner);

    constructor(address owner_) {
        OWNER = owner_;
    }

    receive() external payable {}

    /// @notice Makes a call as this account; its revert is passed on unchanged.
    function execute(address target, uint256 value, bytes calldata data) external returns (bytes memory returnData) {
        if (msg.sender != OWNER) revert NotOwner(msg.sender, OWNER);

        bool success;
        (success, returnData) = target.call{value: value}(data);
        if (!success) {
            assembly ("memory-safe") {
                revert(add(returnData, 0x20), mload(returnData))
            }
        }
    }

    /// @inheritdoc IERC1271
    function isValidSignature(bytes32 hash, bytes calldata signature) external view returns (bytes4) {
        (address recovered, ECDSA.RecoverError error,) = ECDSA.tryRecoverCalldata(hash, signature);
        return error == ECDSA.RecoverError.NoError && recovered == OWNER ? IERC1271.isValidSignature.selector : REFUSED;
    }
}
