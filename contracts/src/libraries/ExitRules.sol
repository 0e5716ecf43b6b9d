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
        _checkShape(rules);
        _checkBounds(rules, policy);

        for (uint256 i; i < rules.length; ++i) {
            // Within 24 bits by the check of bounds.
            // forge-lint: disable-next-line(unsafe-typecast)
            ladder = ladder.append(int24(rules[i].triggerBps), rules[i].exitBps);
        }
        return ladder;
    }

    function _checkShape(IPositionManager.ExitRule[] calldata rules) private pure {
        int256 deepest;
        int256 highest;
        uint256 exitBps;
        for (uint256 i; i < rules.length; ++i) {
            int256 trigger = rules[i].triggerBps;
            exitBps = rules[i].exitBps;
            if (exitBps == 0 || exitBps > PriceMath.BPS) revert ITradeRouter.InvalidExitRules();

            if (rules[i].triggerType == uint8(IPositionManager.TriggerType.StopLoss)) {
                if (trigger >= deepest) revert ITradeRouter.InvalidExitRules();
                deepest = trigger;
            } else if (rules[i].triggerType == uint8(IPositionManager.TriggerType.TakeProfit)) {
                if (trigger <= highest) revert ITradeRouter.InvalidExitRules();
                highest = trigger;
            } else {
                revert ITradeRouter.InvalidExitRules();
            }
        }
        // No rule at all fails here too.
        if (exitBps != PriceMath.BPS) revert ITradeRouter.InvalidExitRules();
    }

    function _checkBounds(IPositionManager.ExitRule[] calldata rules, IVaultTrackRegistry.TradePolicy memory policy)
        private
        pure
    {
        bool hasStopLoss;
        bool hasTakeProfit;
        for (uint256 i; i < rules.length; ++i) {
            int256 trigger = rules[i].triggerBps;
            if (trigger < type(int24).min || trigger > type(int24).max) revert ITradeRouter.ExitRulesOutOfBounds();
            if (trigger < 0) {
                hasStopLoss = true;
                if (_isBeyond(-trigger, policy.maxStopLossBps)) revert ITradeRouter.ExitRulesOutOfBounds();
            } else {
                hasTakeProfit = true;
                if (trigger < int256(uint256(policy.minTakeProfitBps)) || _isBeyond(trigger, policy.maxTakeProfitBps)) {
                    revert ITradeRouter.ExitRulesOutOfBounds();
                }
            }
        }
        if (policy.requireStopLoss && !hasStopLoss || policy.requireTakeProfit && !hasTakeProfit) {
            revert ITradeRouter.ExitRulesOutOfBounds();
        }
    }

    /// @dev A bound of zero is none.
    function _isBeyond(int256 distance, uint32 bound) private pure returns (bool) {
        return bound != 0 && distance > int256(uint256(bound));
    }
}
