// SPDX-License-Identifier: MIT
pragma solidity ^0.8.30;

/// @title Reads of contracts that may fail, burn their gas or return anything
/// @dev A caller cannot starve a read of gas and go on: a 64th of what the read got would be left, less than one read costs.
library BoundedCall {
    /// @dev A beacon proxy's cold read takes 15,000.
    uint256 private constant READ_GAS = 50_000;

    /// @notice Returns the first word that a call returns; 0 where it fails or returns less
    function read(address target, bytes memory data) internal view returns (uint256 word) {
        assembly ("memory-safe") {
            let success := staticcall(READ_GAS, target, add(data, 32), mload(data), 0, 32)
            if and(success, gt(returndatasize(), 31)) { word := mload(0) }
        }
    }

    /// @notice As `read`, of a function without arguments
    function get(address target, bytes4 selector) internal view returns (uint256 word) {
        assembly ("memory-safe") {
            mstore(0, selector)
            let success := staticcall(READ_GAS, target, 0, 4, 0, 32)
            if and(success, gt(returndatasize(), 31)) { word := mload(0) }
        }
    }
}
