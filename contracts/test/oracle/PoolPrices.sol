// SPDX-License-Identifier: MIT
pragma solidity ^0.8.30;

/// @title A venue whose prices the test sets
contract PoolPrices {
    uint256 private _spot;
    uint256 private _twap;

    function say(uint256 spot, uint256 twap) external {
        (_spot, _twap) = (spot, twap);
    }

    function pricesOf(address, uint32) external view returns (uint256, uint256) {
        return (_spot, _twap);
    }
}
