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
