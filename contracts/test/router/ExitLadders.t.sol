// SPDX-License-Identifier: MIT
pragma solidity ^0.8.30;

import {IPositionManager} from "../../src/interfaces/IPositionManager.sol";
import {ITradeRouter} from "../../src/interfaces/ITradeRouter.sol";
import {IVaultTrackRegistry} from "../../src/interfaces/IVaultTrackRegistry.sol";
import {ProtocolTest} from "./ProtocolTest.sol";

/// @notice Which ladders an open takes; an update takes the same ones
contract ExitLaddersTest is ProtocolTest {
    bytes private invalid = abi.encodePacked(ITradeRouter.InvalidExitRules.selector);
    bytes private outOfBounds = abi.encodePacked(ITradeRouter.ExitRulesOutOfBounds.selector);

    function test_RefusesNoRules() public {
        _refuseLadder(new IPositionManager.ExitRule[](0), invalid);
    }

    function test_TakesFiveRulesAndRefusesSix() public {
        IPositionManager.ExitRule[] memory six = new IPositionManager.ExitRule[](6);
        for (uint256 i; i < 6; ++i) {
            six[i] = _stop(-100 * int256(i + 1), 10_000);
        }
        _refuseLadder(six, abi.encodeWithSelector(ITradeRouter.TooManyExitRules.selector, 6));

        IPositionManager.ExitRule[] memory five = new IPositionManager.ExitRule[](5);
        for (uint256 i; i < 5; ++i) {
            five[i] = six[i];
        }
        _accept(five);
    }

    function test_BoundsTheSharesOfARule() public {
        _refuseLadder(_ladder(_take(1_000, 0), _stop(-800, 10_000)), invalid);
        _refuseLadder(_ladder(_take(1_000, 10_001), _stop(-800, 10_000)), invalid);
        _accept(_ladder(_take(1_000, 1), _stop(-800, 10_000)));
    }

    function test_TheLastRuleSellsEverything() public {
        _refuseLadder(_ladder(_stop(-800, 9_999)), invalid);
        _refuseLadder(_ladder(_stop(-800, 10_000), _take(1_000, 9_999)), invalid);
        _accept(_ladder(_stop(-800, 10_000)));
    }

    function test_ARuleHasOneOfTwoKinds() public {
        IPositionManager.ExitRule[] memory rules = _ladder(_stop(-800, 10_000));
        rules[0].triggerType = 2;
        _refuseLadder(rules, invalid);
    }

    function test_TheSignOfATriggerMustFitItsKind() public {
        _refuseLadder(_ladder(_stop(0, 10_000)), invalid);
        _refuseLadder(_ladder(_stop(1, 10_000)), invalid);
        _refuseLadder(_ladder(_take(0, 10_000), _stop(-800, 10_000)), invalid);
        _refuseLadder(_ladder(_take(-1, 10_000), _stop(-800, 10_000)), invalid);
        _accept(_ladder(_stop(-1, 10_000)));
    }

    function test_StopsGoStrictlyDeeper() public {
        _refuseLadder(_ladder(_stop(-500, 5_000), _stop(-500, 10_000)), invalid);
        _refuseLadder(_ladder(_stop(-500, 5_000), _take(1_000, 5_000), _stop(-499, 10_000)), invalid);
        _accept(_ladder(_stop(-500, 5_000), _take(1_000, 5_000), _stop(-501, 10_000)));
    }

    function test_TakesGoStrictlyHigher() public {
        _refuseLadder(_ladder(_take(1_000, 5_000), _take(1_000, 5_000), _stop(-500, 10_000)), invalid);
        _refuseLadder(_ladder(_take(1_000, 5_000), _stop(-500, 5_000), _take(999, 10_000)), invalid);
        _requireNoStop();
        _accept(_ladder(_take(1_000, 5_000), _stop(-500, 5_000), _take(1_001, 10_000)));
    }

    function test_HoldsTheDeepestStopToTheBps() public {
        _refuseLadder(_ladder(_stop(-2_001, 10_000)), outOfBounds);
        _accept(_ladder(_stop(-2_000, 10_000)));
    }

    function test_HoldsTheNearestTakeToTheBps() public {
        _refuseLadder(_ladder(_take(99, 5_000), _stop(-500, 10_000)), outOfBounds);
        _accept(_ladder(_take(100, 5_000), _stop(-500, 10_000)));
    }

    function test_HoldsTheFarthestTakeToTheBps() public {
        _refuseLadder(_ladder(_take(10_001, 5_000), _stop(-500, 10_000)), outOfBounds);
        _accept(_ladder(_take(10_000, 5_000), _stop(-500, 10_000)));
    }

    function test_BoundsOfZeroAreNone() public {
        IVaultTrackRegistry.VaultTrackConfig memory policy = _policy();
        (policy.maxStopLossBps, policy.minTakeProfitBps, policy.maxTakeProfitBps) = (0, 0, 0);
        _setPolicy(policy);
        _accept(_ladder(_take(1, 5_000), _take(8_388_607, 5_000), _stop(-8_388_608, 10_000)));
    }

    function test_NoTriggerIsWiderThanItsStorage() public {
        IVaultTrackRegistry.VaultTrackConfig memory policy = _policy();
        (policy.maxStopLossBps, policy.minTakeProfitBps, policy.maxTakeProfitBps) = (0, 0, 10_000_000);
        _setPolicy(policy);
        _refuseLadder(_ladder(_stop(-8_388_609, 10_000)), outOfBounds);
        _refuseLadder(_ladder(_take(8_388_608, 5_000), _stop(-500, 10_000)), outOfBounds);
        _refuseLadder(_ladder(_stop(type(int256).min, 10_000)), outOfBounds);
        _refuseLadder(_ladder(_take(type(int256).max, 5_000), _stop(-500, 10_000)), outOfBounds);
    }

    function test_ARequiredStopSellsEverything() public {
        _refuseLadder(_ladder(_stop(-500, 9_999), _take(1_000, 10_000)), outOfBounds);
        _refuseLadder(_ladder(_stop(-400, 5_000), _stop(-500, 9_999), _take(1_000, 10_000)), outOfBounds);
        _accept(_ladder(_stop(-400, 5_000), _stop(-500, 10_000), _take(1_000, 10_000)));
    }

    function test_ATrackMayRequireAStop() public {
        _refuseLadder(_ladder(_take(1_000, 10_000)), outOfBounds);
        _requireNoStop();
        _accept(_ladder(_take(1_000, 10_000)));
    }

    function test_ATrackMayRequireATake() public {
        IVaultTrackRegistry.VaultTrackConfig memory policy = _policy();
        policy.requireTakeProfit = true;
        _setPolicy(policy);
        _refuseLadder(_ladder(_stop(-500, 10_000)), outOfBounds);
        _accept(_ladder(_stop(-500, 10_000), _take(1_000, 10_000)));
    }

    function test_ShapeComesBeforeBounds() public {
        _refuseLadder(_ladder(_stop(-3_000, 5_000), _stop(-3_000, 10_000)), invalid);
        _refuseLadder(_ladder(_stop(-3_000, 9_999)), invalid);
    }

    function test_AnUpdateIsHeldToTheSameRules() public {
        uint256 id = _open(nvda, 1_000 * USDC);
        _refuse(_updateIntent(id, new IPositionManager.ExitRule[](0)), invalid);
        _refuse(_updateIntent(id, _ladder(_stop(-800, 9_999))), invalid);
        _refuse(_updateIntent(id, _ladder(_stop(-2_001, 10_000))), outOfBounds);
        _refuse(_updateIntent(id, _ladder(_take(1_000, 10_000))), outOfBounds);
    }

    function _requireNoStop() private {
        IVaultTrackRegistry.VaultTrackConfig memory policy = _policy();
        policy.requireStopLoss = false;
        _setPolicy(policy);
    }

    function _refuseLadder(IPositionManager.ExitRule[] memory rules, bytes memory error) private {
        ITradeRouter.PositionIntent memory intent = _openIntent(nvda, 1_000 * USDC);
        intent.exits = rules;
        _refuse(intent, error);
    }

    function _accept(IPositionManager.ExitRule[] memory rules) private {
        ITradeRouter.PositionIntent memory intent = _openIntent(nvda, 1_000 * USDC);
        intent.exits = rules;
        uint256 id = _submit(intent);
        assertEq(abi.encode(positions.getExitRules(id)), abi.encode(rules));
    }
}
