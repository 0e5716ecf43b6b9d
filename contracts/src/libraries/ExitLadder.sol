// SPDX-License-Identifier: MIT
pragma solidity ^0.8.30;

/// @title An exit ladder in one word
/// @notice Bits 0..199 hold five rules of 40 bits (16 of `exitBps`, 24 of the signed `triggerBps`), bits 200..207 the
/// index of the first pending rule, bits 208..215 the number of rules. The sign of a
/// trigger gives its kind, so the kind is not stored.
/// @dev Indexes are at most five, so their bits' positions are computed without overflow checks.
library ExitLadder {
    uint256 internal constant MAX_RULES = 5;

    uint256 private constant ONE = 1;
    uint256 private constant BPS = 10_000;

    /// @dev A whole position; the shares that `MAX_RULES` rules leave of it are exact.
    uint256 private constant WHOLE = BPS ** MAX_RULES;
    uint256 private constant RULE_BITS = 40;
    uint256 private constant EXIT_BITS = 16;
    uint256 private constant NEXT_AT = 200;
    uint256 private constant COUNT_AT = 208;

    /// @notice Returns the index of the first pending rule: how many have fired
    function next(uint256 ladder) internal pure returns (uint256) {
        return (ladder >> NEXT_AT) & 0xff;
    }

    function count(uint256 ladder) internal pure returns (uint256) {
        return (ladder >> COUNT_AT) & 0xff;
    }

    function triggerBps(uint256 ladder, uint256 index) internal pure returns (int256) {
        unchecked {
            // The cast cuts the word down to the 24 bits of the trigger.
            // forge-lint: disable-next-line(unsafe-typecast)
            return int24(uint24(ladder >> (index * RULE_BITS + EXIT_BITS)));
        }
    }

    function exitBps(uint256 ladder, uint256 index) internal pure returns (uint256) {
        unchecked {
            return (ladder >> (index * RULE_BITS)) & 0xffff;
        }
    }

    /// @notice Returns the ladder with one more rule at its end
    function append(uint256 ladder, int24 trigger, uint16 exit) internal pure returns (uint256) {
        // The cast keeps the trigger's bits, sign included.
        // forge-lint: disable-next-line(unsafe-typecast)
        uint256 rule = uint256(uint24(trigger)) << EXIT_BITS | exit;
        return (ladder | rule << (count(ladder) * RULE_BITS)) + (ONE << COUNT_AT);
    }

    /// @notice Returns the fired rules alone, in the order in which they fired; an update appends its rules to them
    function fired(uint256 ladder) internal pure returns (uint256) {
        uint256 n = next(ladder);
        return (ladder & ((ONE << (n * RULE_BITS)) - 1)) | n << NEXT_AT | n << COUNT_AT;
    }

    /// @notice Returns the ladder after the pending rule at `index` fired: it moves to `next`, the others keep their order
    function fire(uint256 ladder, uint256 index) internal pure returns (uint256) {
        unchecked {
            uint256 start = next(ladder) * RULE_BITS;
            uint256 end = index * RULE_BITS;
            uint256 rule = (ladder >> end) & ((ONE << RULE_BITS) - 1);
            uint256 between = (ladder >> start) & ((ONE << (end - start)) - 1);
            uint256 untouched = ladder & ~(((ONE << (end - start + RULE_BITS)) - 1) << start);
            return (untouched | rule << start | between << (start + RULE_BITS)) + (ONE << NEXT_AT);
        }
    }

    /// @notice Returns whether a pending stop-loss is met at `pnlBps`
    function isStopMet(uint256 ladder, int256 pnlBps) internal pure returns (bool) {
        uint256 end = count(ladder);
        for (uint256 index = next(ladder); index < end; ++index) {
            int256 trigger = triggerBps(ladder, index);
            if (trigger < 0 && pnlBps <= trigger) return true;
        }
        return false;
    }

    /// @notice Returns whether the pending stop-losses leave at most as much of the position, at every price, as those of
    /// `previous`: each of its stops is replaced by stops at the same price or earlier that together sell as much
    /// @dev What stops leave changes only at their triggers, and grows with the price, so the triggers of `previous` decide.
    /// Take-profits do not count: without one more is held, and what is held the stops sell.
    function protectsAsWellAs(uint256 ladder, uint256 previous) internal pure returns (bool) {
        uint256 end = count(previous);
        for (uint256 index = next(previous); index < end; ++index) {
            int256 trigger = triggerBps(previous, index);
            if (trigger < 0 && _leftAt(ladder, trigger) > _leftAt(previous, trigger)) return false;
        }
        return true;
    }

    /// @notice Returns the first pending rule from `from` on that is met at `pnlBps`, `count` when none is
    function firstMet(uint256 ladder, uint256 from, int256 pnlBps) internal pure returns (uint256 index) {
        uint256 end = count(ladder);
        for (index = from; index < end; ++index) {
            int256 trigger = triggerBps(ladder, index);
            if (trigger < 0 ? pnlBps <= trigger : pnlBps >= trigger) break;
        }
    }

    /// @dev The part of `WHOLE` that is left once every pending stop-loss that is met at `pnlBps` has fired.
    function _leftAt(uint256 ladder, int256 pnlBps) private pure returns (uint256 left) {
        left = WHOLE;
        uint256 end = count(ladder);
        for (uint256 index = next(ladder); index < end; ++index) {
            int256 trigger = triggerBps(ladder, index);
            if (trigger < 0 && pnlBps <= trigger) left = left / BPS * (BPS - exitBps(ladder, index));
        }
    }
}
