// SPDX-License-Identifier: MIT
pragma solidity ^0.8.30;

import {IPositionManager} from "../interfaces/IPositionManager.sol";
import {ExitLadder} from "./ExitLadder.sol";
import {PriceMath} from "./PriceMath.sol";

/// @title When an exit rule fires
library ExitTrigger {
    using ExitLadder for uint256;

    /// @notice The first pending rule, in array order, that is met at this price; the number of rules when none is
    /// @dev Nobody is stopped out by a price from before the order: the price must be of a later round than the one
    /// known when the ladder last changed or the position last increased, and observed no earlier than that. The round
    /// decides within one second, the time decides about late news.
    function dueRule(IPositionManager.PositionState memory position, uint256 price, uint256 updatedAt, uint256 round)
        internal
        pure
        returns (uint256)
    {
        uint256 ladder = position.ladder;
        if (round <= position.armedRound || updatedAt < position.armedAt) return ladder.count();
        return ladder.firstMet(ladder.next(), PriceMath.pnlBps(price, position.entryPriceUsdc));
    }
}
