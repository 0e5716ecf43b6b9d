// SPDX-License-Identifier: MIT
pragma solidity ^0.8.30;

import {IPositionManager} from "../interfaces/IPositionManager.sol";
import {ExitLadder} from "./ExitLadder.sol";
import {PriceMath} from "./PriceMath.sol";

/// @title When an exit rule fires
library ExitTrigger {
    using ExitLadder for uint256;

    /// @notice Returns the first pending rule, in array order, that fires at this price; the number of rules when none does
    /// @dev A price from before the order fires nothing: its round must be later than the one known when the ladder last
    /// changed or the position last increased, and it must not have been observed before that. The round orders prices
    /// within one second; the time excludes prices that are posted late.
    function dueRule(
        IPositionManager.PositionState memory position,
        uint256 price,
        uint256 updatedAt,
        uint256 round,
        uint256 decimals
    ) internal pure returns (uint256) {
        uint256 ladder = position.ladder;
        if (round <= position.armedRound || updatedAt < position.armedAt) return ladder.count();
        return metRule(position, price, decimals);
    }

    /// @notice Returns the first pending rule that is met at this price, also by a price from before the order; the
    /// number of rules when none is
    function metRule(IPositionManager.PositionState memory position, uint256 price, uint256 decimals)
        internal
        pure
        returns (uint256)
    {
        return position.ladder.firstMet(position.ladder.next(), pnlBps(position, price, decimals));
    }

    function pnlBps(IPositionManager.PositionState memory position, uint256 price, uint256 decimals)
        internal
        pure
        returns (int256)
    {
        return PriceMath.pnlBps(position.tokenAmount, price, position.usdcCostBasis, decimals);
    }
}
