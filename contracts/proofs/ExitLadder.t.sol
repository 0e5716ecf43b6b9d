// SPDX-License-Identifier: MIT
pragma solidity ^0.8.30;

import {Test} from "forge-std/Test.sol";
import {ExitLadder} from "../src/libraries/ExitLadder.sol";

/// @notice The exit ladder, for every word that holds at most five rules
contract ExitLadderProofs is Test {
    using ExitLadder for uint256;

    function check_AFiredRuleMovesToTheFiredOnesAndTheOthersKeepTheirOrder(uint200 rules) public pure {
        for (uint256 count = 1; count <= ExitLadder.MAX_RULES; ++count) {
            for (uint256 next; next < count; ++next) {
                uint256 ladder = uint256(rules) | next << 200 | count << 208;
                for (uint256 index = next; index < count; ++index) {
                    _checkFired(ladder, next, count, index);
                }
            }
        }
    }

    function _checkFired(uint256 ladder, uint256 next, uint256 count, uint256 index) private pure {
        uint256 fired = ladder.fire(index);
        assert(fired.next() == next + 1 && fired.count() == count);
        for (uint256 i; i < ExitLadder.MAX_RULES; ++i) {
            uint256 from = i == next ? index : i > next && i <= index ? i - 1 : i;
            assert(fired.exitBps(i) == ladder.exitBps(from));
            assert(fired.triggerBps(i) == ladder.triggerBps(from));
        }
    }

    function check_AnAppendedRuleIsTheLastAndChangesNoOther(uint256 ladder, int24 trigger, uint16 exit) public pure {
        uint256 count = ladder.count();
        vm.assume(count < ExitLadder.MAX_RULES && ladder.next() <= count && ladder >> 216 == 0);
        vm.assume((ladder & ((uint256(1) << 200) - 1)) >> (count * 40) == 0);
        uint256 longer = ladder.append(trigger, exit);
        assert(longer.count() == count + 1 && longer.next() == ladder.next());
        assert(longer.triggerBps(count) == trigger && longer.exitBps(count) == exit);
        for (uint256 i; i < ExitLadder.MAX_RULES; ++i) {
            if (i == count) continue;
            assert(longer.triggerBps(i) == ladder.triggerBps(i) && longer.exitBps(i) == ladder.exitBps(i));
        }
    }

    function check_AnUpdateKeepsWhatHasFiredAndNothingElse(uint256 ladder) public pure {
        uint256 next = ladder.next();
        vm.assume(next <= ExitLadder.MAX_RULES);
        uint256 kept = ladder.fired();
        assert(kept.next() == next && kept.count() == next);
        for (uint256 i; i < ExitLadder.MAX_RULES; ++i) {
            assert(kept.exitBps(i) == (i < next ? ladder.exitBps(i) : 0));
            assert(kept.triggerBps(i) == (i < next ? ladder.triggerBps(i) : int256(0)));
        }
    }
}
