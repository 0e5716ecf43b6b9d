// SPDX-License-Identifier: MIT
pragma solidity ^0.8.30;

import {Test} from "forge-std/Test.sol";
import {ExitLadder} from "../../src/libraries/ExitLadder.sol";

/// @notice The packed ladder against a plain list
contract ExitLadderTest is Test {
    using ExitLadder for uint256;

    struct Rule {
        int24 trigger;
        uint16 exit;
    }

    function testFuzz_KeepsEveryRule(Rule[5] memory rules, uint256 count) public pure {
        count = bound(count, 0, 5);
        uint256 ladder = _pack(rules, count);
        assertEq(ladder.count(), count);
        assertEq(ladder.next(), 0);
        for (uint256 i; i < count; ++i) {
            assertEq(ladder.triggerBps(i), rules[i].trigger);
            assertEq(ladder.exitBps(i), rules[i].exit);
        }
    }

    function testFuzz_FiringMovesARuleToTheFrontOfThePending(
        Rule[5] memory rules,
        uint256 count,
        uint256[5] memory order
    ) public pure {
        count = bound(count, 1, 5);
        uint256 ladder = _pack(rules, count);
        for (uint256 fired; fired < count; ++fired) {
            uint256 index = bound(order[fired], fired, count - 1);
            ladder = ladder.fire(index);

            Rule memory rule = rules[index];
            for (uint256 i = index; i > fired; --i) {
                rules[i] = rules[i - 1];
            }
            rules[fired] = rule;
            assertEq(ladder.next(), fired + 1);
            assertEq(ladder.count(), count);
            for (uint256 i; i < count; ++i) {
                assertEq(ladder.triggerBps(i), rules[i].trigger);
                assertEq(ladder.exitBps(i), rules[i].exit);
            }
        }
    }

    function testFuzz_KeepsWhatHasFiredForAnUpdate(Rule[5] memory rules, uint256 count, uint256 fired) public pure {
        count = bound(count, 1, 5);
        fired = bound(fired, 0, count);
        uint256 ladder = _pack(rules, count);
        for (uint256 i; i < fired; ++i) {
            ladder = ladder.fire(i);
        }
        uint256 kept = ladder.fired();
        assertEq(kept.count(), fired);
        assertEq(kept.next(), fired);
        for (uint256 i; i < fired; ++i) {
            assertEq(kept.triggerBps(i), rules[i].trigger);
        }
        for (uint256 i = fired; i < 5; ++i) {
            assertEq(kept.triggerBps(i), 0);
            assertEq(kept.exitBps(i), 0);
        }
    }

    // Tightening

    /// @dev At every price on a small grid: the share that the stops leave, rule by rule as a keeper fires them.
    function testFuzz_ProtectsAsWellWhenTheStopsLeaveNoMoreAtAnyPrice(
        Rule[5] memory before,
        Rule[5] memory rules,
        uint256 counts,
        uint256 fired
    ) public pure {
        uint256 previous = _packSmall(before, 1 + counts % 5);
        uint256 ladder = _packSmall(rules, 1 + (counts >> 8) % 5);
        for (uint256 i; i < fired % (1 + counts % 5); ++i) {
            previous = previous.fire(i);
        }
        bool expected = true;
        for (int256 price = -1; price >= -12; --price) {
            if (_left(ladder, price) > _left(previous, price)) expected = false;
        }
        assertEq(ladder.protectsAsWellAs(previous), expected);
    }

    function testFuzz_EveryLadderProtectsAsWellAsItself(Rule[5] memory rules, uint256 count) public pure {
        uint256 ladder = _packSmall(rules, 1 + count % 5);
        assertTrue(ladder.protectsAsWellAs(ladder));
    }

    function test_WhatTightensALadder() public pure {
        uint256 previous = uint256(0).append(-400, 5_000).append(-800, 10_000);
        // Deeper, later, or less at once.
        assertFalse(uint256(0).append(-401, 5_000).append(-800, 10_000).protectsAsWellAs(previous));
        assertFalse(uint256(0).append(-400, 5_000).append(-801, 10_000).protectsAsWellAs(previous));
        assertFalse(uint256(0).append(-400, 4_999).append(-800, 10_000).protectsAsWellAs(previous));
        assertFalse(uint256(0).append(-800, 10_000).protectsAsWellAs(previous));
        assertFalse(uint256(0).append(1_000, 10_000).protectsAsWellAs(previous));
        // The same, nearer, or more at once; two stops for one.
        assertTrue(previous.protectsAsWellAs(previous));
        assertTrue(uint256(0).append(-400, 10_000).protectsAsWellAs(previous));
        assertTrue(uint256(0).append(-100, 5_000).append(-101, 10_000).protectsAsWellAs(previous));
        assertTrue(uint256(0).append(-100, 2_500).append(-400, 3_334).append(-800, 10_000).protectsAsWellAs(previous));
        assertFalse(uint256(0).append(-100, 2_500).append(-400, 3_333).append(-800, 10_000).protectsAsWellAs(previous));
    }

    function test_TakeProfitsAndFiredStopsDoNotCount() public pure {
        uint256 previous = uint256(0).append(1_000, 5_000).append(-800, 10_000);
        assertTrue(uint256(0).append(-800, 10_000).protectsAsWellAs(previous));
        assertTrue(uint256(0).append(10, 1).append(-800, 10_000).protectsAsWellAs(previous));
        assertTrue(uint256(0).append(1_000, 10_000).protectsAsWellAs(uint256(0).append(2_000, 10_000)));
        uint256 fired = uint256(0).append(-400, 5_000).append(-800, 10_000).fire(0);
        assertTrue(fired.fired().append(-800, 10_000).protectsAsWellAs(fired));
        assertFalse(fired.fired().append(-801, 10_000).protectsAsWellAs(fired));
    }

    function _packSmall(Rule[5] memory rules, uint256 count) private pure returns (uint256 ladder) {
        for (uint256 i; i < count; ++i) {
            int24 trigger = int24(int256(bound(uint256(int256(rules[i].trigger) + 2 ** 23), 0, 20))) - 12;
            uint16 exit = rules[i].exit % 3 == 0 ? 10_000 : uint16(bound(rules[i].exit, 1, 10_000));
            ladder = ladder.append(trigger == 0 ? int24(1) : trigger, exit);
        }
    }

    /// @dev In units of 1e-20: five rules divide by 10,000 each.
    function _left(uint256 ladder, int256 price) private pure returns (uint256 left) {
        left = 1e20;
        for (uint256 i = ladder.next(); i < ladder.count(); ++i) {
            if (ladder.triggerBps(i) >= 0 || ladder.triggerBps(i) < price) continue;
            left -= left * ladder.exitBps(i) / 10_000;
        }
    }

    function testFuzz_FindsTheFirstMetRule(Rule[5] memory rules, uint256 from, int24 pnl) public pure {
        from = bound(from, 0, 5);
        uint256 expected = 5;
        for (uint256 i = 5; i > from; --i) {
            int24 trigger = rules[i - 1].trigger;
            if (trigger < 0 ? pnl <= trigger : pnl >= trigger) expected = i - 1;
        }
        assertEq(_pack(rules, 5).firstMet(from, pnl), expected);
    }

    function testFuzz_KnowsWhetherAPendingStopIsMet(Rule[5] memory rules, uint256 fired, int24 pnl) public pure {
        fired = bound(fired, 0, 5);
        uint256 ladder = _pack(rules, 5);
        for (uint256 i; i < fired; ++i) {
            ladder = ladder.fire(i);
        }
        bool expected;
        for (uint256 i = fired; i < 5; ++i) {
            if (rules[i].trigger < 0 && pnl <= rules[i].trigger) expected = true;
        }
        assertEq(ladder.isStopMet(pnl), expected);
    }

    function test_AStopIsMetAtItsTrigger() public pure {
        uint256 ladder = uint256(0).append(-500, 10_000).append(500, 10_000);
        assertFalse(ladder.isStopMet(-499));
        assertTrue(ladder.isStopMet(-500));
        assertFalse(ladder.isStopMet(500));
        assertEq(ladder.firstMet(0, -499), 2);
        assertEq(ladder.firstMet(0, -500), 0);
        assertEq(ladder.firstMet(0, 499), 2);
        assertEq(ladder.firstMet(0, 500), 1);
        assertEq(uint256(0).append(0, 10_000).isStopMet(0), false);
    }

    function _pack(Rule[5] memory rules, uint256 count) private pure returns (uint256 ladder) {
        for (uint256 i; i < count; ++i) {
            ladder = ladder.append(rules[i].trigger, rules[i].exit);
        }
    }
}
