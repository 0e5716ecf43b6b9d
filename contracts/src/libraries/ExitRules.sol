// SPDX-License-Identifier: MIT
pragma solidity ^0.8.30;

import {IPositionManager} from "../interfaces/IPositionManager.sol";
import {ITradeRouter} from "../interfaces/ITradeRouter.sol";
import {IVaultTrackRegistry} from "../interfaces/IVaultTrackRegistry.sol";
import {ExitLadder} from "./ExitLadder.sol";
import {PriceMath} from "./PriceMath.sol";

/// @title The exit ladders that an agent may sign
library ExitRules {
    using ExitLadder for uint256;

    /// @dev Stricter than protocol.md: a required stop-loss counts only when the stop-losses together sell everything.
    /// Each sells a share of what the ones before it left, so one of them must sell all.
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
            // A trigger that does not fit in 24 bits is out of bounds.
            // forge-lint: disable-next-line(unsafe-typecast)
            ladder = ladder.append(int24(trigger), exitBps);
        }

        // An empty list fails here too.
        if (exitBps != PriceMath.BPS) revert ITradeRouter.InvalidExitRules();
        if (
            outOfBounds || policy.requireStopLoss && !_doStopsSellAll(rules) || policy.requireTakeProfit && highest == 0
        ) {
            revert ITradeRouter.ExitRulesOutOfBounds();
        }
        return ladder;
    }

    function _doStopsSellAll(IPositionManager.ExitRule[] calldata rules) private pure returns (bool) {
        for (uint256 i; i < rules.length; ++i) {
            bool isStop = rules[i].triggerType == uint8(IPositionManager.TriggerType.StopLoss);
            if (isStop && rules[i].exitBps == PriceMath.BPS) return true;
        }
        return false;
    }

    /// @dev A bound of zero is off. A trigger that does not fit in its 24 stored bits is always out of bounds.
    function _isOutOfBounds(int256 trigger, IVaultTrackRegistry.TradePolicy memory policy) private pure returns (bool) {
        if (trigger < type(int24).min || trigger > type(int24).max) return true;
        int256 deepest = int256(uint256(policy.maxStopLossBps));
        int256 lowest = int256(uint256(policy.minTakeProfitBps));
        int256 highest = int256(uint256(policy.maxTakeProfitBps));
        if (trigger < 0) return deepest != 0 && -trigger > deepest;
        return trigger < lowest || (highest != 0 && trigger > highest);
    }
}
