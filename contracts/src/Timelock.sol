// SPDX-License-Identifier: MIT
pragma solidity ^0.8.30;

import {TimelockController} from "@openzeppelin/contracts/governance/TimelockController.sol";

/// @title The admin of every contract: what it does is public for `getMinDelay()` seconds before it happens
/// @notice OpenZeppelin's TimelockController that administers itself: its roles and its delay change only through it.
contract Timelock is TimelockController {
    /// @param minDelay Seconds between scheduling an operation and executing it
    /// @param proposers Schedule and cancel operations
    /// @param executors Execute operations that are due; the zero address stands for anybody
    constructor(uint256 minDelay, address[] memory proposers, address[] memory executors)
        TimelockController(minDelay, proposers, executors, address(0))
    {}
}
