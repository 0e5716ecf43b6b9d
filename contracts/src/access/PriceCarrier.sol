// SPDX-License-Identifier: MIT
pragma solidity ^0.8.30;

import {IPriceCarrier} from "../interfaces/IPriceCarrier.sol";
import {IPriceOracle} from "../interfaces/IPriceOracle.sol";

/// @title Calls that bring their prices along
/// @dev The call is a delegatecall of the contract to itself, so it can do what its sender can do without it and nothing else.
/// The sender names the oracle, because looking it up would cost as much as a write. No contract that trusts this one has
/// a function of `postPrices`' selector, so a wrong address stores no price where one is read, and harms nothing.
/// Assembly, because the router has no room for a decoder: the oracle decodes its two arguments, which are the first ones here.
abstract contract PriceCarrier is IPriceCarrier {
    /// @inheritdoc IPriceCarrier
    function withPrices(bytes[] calldata, address[] calldata, address oracle, bytes calldata call)
        external
        returns (bytes memory)
    {
        bytes4 selector = IPriceOracle.postPrices.selector;
        assembly ("memory-safe") {
            function passOn(failed) {
                if failed {
                    returndatacopy(0, 0, returndatasize())
                    revert(0, returndatasize())
                }
            }
            let data := mload(0x40)
            calldatacopy(data, 0, calldatasize())
            mstore(data, or(selector, shr(32, shl(32, mload(data)))))
            passOn(iszero(call(gas(), oracle, 0, data, calldatasize(), 0, 0)))
            calldatacopy(data, call.offset, call.length)
            passOn(iszero(delegatecall(gas(), address(), data, call.length, 0, 0)))
            mstore(data, 0x20)
            mstore(add(data, 0x20), returndatasize())
            returndatacopy(add(data, 0x40), 0, returndatasize())
            mstore(add(add(data, 0x40), returndatasize()), 0)
            return(data, add(0x40, and(add(returndatasize(), 31), not(31))))
        }
    }
}
