// SPDX-License-Identifier: MIT
pragma solidity ^0.8.30;

import {IPositionManager} from "../interfaces/IPositionManager.sol";
import {ITradeRouter} from "../interfaces/ITradeRouter.sol";
import {IVaultTrackRegistry} from "../interfaces/IVaultTrackRegistry.sol";
import {ExitLadder} from "./ExitLadder.sol";
import {PriceMath} from "./PriceMath.sol";

/// @title What an agent may sign as an exit ladder
library ExitRules {
    using ExitLadder for uint256;

    /// @notice Appends `rules` to the fired ones of a ladder, after checking the count, the shape of the whole and the
    /// track's bounds, in that order
    function extend(
        uint256 ladder,
        IPositionManager.ExitRule[] calldata rules,
        IVaultTrackRegistry.TradePolicy memory policy
    ) internal pure returns (uint256) {
        uint256 total = ladder.count() + rules.length;
        if (total > ExitLadder.MAX_RULES) revert ITradeRouter.TooManyExitRules(total);

        int256 deepest;
        int256 highest;
        uint16 exitBps;
        bool outOfBounds;
        for (uint256 i; i < rules.length; ++i) {
            IPositionManager.ExitRule calldata rule = rules[i];
            int256 trigger = rule.triggerBps;
            exitBps = rule.exitBps;
            if (exitBps == 0 || exitBps > PriceMath.BPS) revert ITradeRouter.InvalidExitRules();

            if (rule.triggerType == uint8(IPositionManager.TriggerType.StopLoss)) {
                if (trigger >= deepest) revert ITradeRouter.InvalidExitRules();
                deepest = trigger;
            } else if (rule.triggerType == uint8(IPositionManager.TriggerType.TakeProfit)) {
                if (trigger <= highest) revert ITradeRouter.InvalidExitRules();
                highest = trigger;
            } else {
                revert ITradeRouter.InvalidExitRules();
            }
            if (_isOutOfBounds(trigger, policy)) outOfBounds = true;
            // What 24 bits do not hold is out of bounds.
            // forge-lint: disable-next-line(unsafe-typecast)
            ladder = ladder.append(int24(trigger), exitBps);
        }

        // No rule at all fails here too.
        if (exitBps != PriceMath.BPS) revert ITradeRouter.InvalidExitRules();
        if (outOfBounds || policy.requireStopLoss && deepest == 0 || policy.requireTakeProfit && highest == 0) {
            revert ITradeRouter.ExitRulesOutOfBounds();
        }
        return ladder;
    }

    /// @dev A bound of zero is none. A trigger that its 24 stored bits would not hold is out of bounds in any case.
    function _isOutOfBounds(int256 trigger, IVaultTrackRegistry.TradePolicy memory policy) private pure returns (bool) {
        if (trigger < type(int24).min || trigger > type(int24).max) return true;
        int256 deepest = int256(uint256(policy.maxStopLossBps));
        int256 lowest = int256(uint256(policy.minTakeProfitBps));
        int256 highest = int256(uint256(policy.maxTakeProfitBps));
        if (trigger < 0) return deepest != 0 && -trigger > deepest;
        return trigger < lowest || (highest != 0 && trigger > highest);
    }
}
