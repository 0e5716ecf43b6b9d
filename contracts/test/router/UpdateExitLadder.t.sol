// SPDX-License-Identifier: MIT
pragma solidity ^0.8.30;

import {IAccessControl} from "@openzeppelin/contracts/access/IAccessControl.sol";
import {IAgentRegistry} from "../../src/interfaces/IAgentRegistry.sol";
import {IPositionManager} from "../../src/interfaces/IPositionManager.sol";
import {ITradeRouter} from "../../src/interfaces/ITradeRouter.sol";
import {IVaultTrackRegistry} from "../../src/interfaces/IVaultTrackRegistry.sol";
import {ProtocolTest} from "./ProtocolTest.sol";

contract UpdateExitLadderTest is ProtocolTest {
    uint256 private id;

    function setUp() public override {
        super.setUp();
        id = _open(nvda, 10_000 * USDC);
    }

    function test_ReplacesThePendingRules() public {
        vm.expectEmit(address(positions));
        emit IPositionManager.PositionExitLadderUpdated(id, agentId, 0);
        vm.expectEmit(address(router));
        emit ITradeRouter.PositionExitLadderUpdatedFromIntent(id, agentId, 0);
        IPositionManager.ExitRule[] memory rules = _ladder(_stop(-300, 5_000), _stop(-600, 10_000));
        _submit(_updateIntent(id, rules));

        assertEq(abi.encode(positions.getExitRules(id)), abi.encode(rules));
        assertEq(router.nonces(agentId), 2);
        assertEq(allocations.tradeCount(agentId), 1);
    }

    function test_KeepsWhatHasFiredInFront() public {
        _setPrice(nvda, 111 * USD);
        _exit(id);
        _submit(_updateIntent(id, _ladder(_take(3_000, 5_000), _stop(-200, 10_000))));

        IPositionManager.ExitRule[] memory rules = positions.getExitRules(id);
        assertEq(rules.length, 3);
        assertEq(abi.encode(rules[0]), abi.encode(_threeRules()[0]));
        assertEq(rules[1].triggerBps, 3_000);
        assertEq(rules[2].triggerBps, -200);
        assertEq(positions.getPosition(id).nextRuleIndex, 1);
        assertEq(positions.getNextExitRule(id).triggerBps, 3_000);
    }

    function test_FiredAndNewStayWithinFive() public {
        _setPrice(nvda, 111 * USD);
        _exit(id);
        IPositionManager.ExitRule[] memory five = new IPositionManager.ExitRule[](5);
        IPositionManager.ExitRule[] memory four = new IPositionManager.ExitRule[](4);
        for (uint256 i; i < 5; ++i) {
            five[i] = _stop(-100 * int256(i + 1), 10_000);
            if (i < 4) four[i] = five[i];
        }
        _refuse(_updateIntent(id, five), abi.encodeWithSelector(ITradeRouter.TooManyExitRules.selector, 6));
        _submit(_updateIntent(id, four));
        assertEq(positions.getExitRules(id).length, 5);
    }

    function test_RefusesARuleThatWouldFireAtOnce() public {
        _setPrice(nvda, 105 * USD);
        int256 pnl = lens.positionPnlBps(id);
        bytes memory refusal = abi.encodeWithSelector(ITradeRouter.PendingRuleAlreadyTriggered.selector, id);
        _refuse(_updateIntent(id, _ladder(_take(pnl, 5_000), _stop(-800, 10_000))), refusal);
        _submit(_updateIntent(id, _ladder(_take(pnl + 1, 5_000), _stop(-800, 10_000))));

        _setPrice(nvda, 95 * USD);
        pnl = lens.positionPnlBps(id);
        _refuse(_updateIntent(id, _ladder(_stop(pnl, 10_000))), refusal);
        _submit(_updateIntent(id, _ladder(_stop(pnl - 1, 10_000))));
    }

    function test_WorksOnAStalePriceAndStillComparesWithIt() public {
        skip(3 days);
        bytes memory refusal = abi.encodeWithSelector(ITradeRouter.PendingRuleAlreadyTriggered.selector, id);
        // The fill was worse than the oracle's price by the pool's fee.
        _refuse(_updateIntent(id, _ladder(_stop(-1, 10_000))), refusal);
        _submit(_updateIntent(id, _ladder(_stop(-300, 10_000))));
    }

    function test_OnlyTheExecutorSubmits() public {
        ITradeRouter.UpdateExitLadderIntent memory intent = _updateIntent(id, _threeRules());
        bytes memory signature = _sign(signerKey, digests.hashUpdateExitLadder(intent));
        bytes memory refusal = abi.encodeWithSelector(
            IAccessControl.AccessControlUnauthorizedAccount.selector, address(this), router.EXECUTOR_ROLE()
        );
        vm.expectRevert(refusal);
        router.updateExitLadder(intent, signature);
    }

    function test_RefusesAnExpiredDeadlineAndAWrongNonce() public {
        ITradeRouter.UpdateExitLadderIntent memory intent = _updateIntent(id, _threeRules());
        intent.deadline = block.timestamp - 1;
        _refuse(intent, abi.encodeWithSelector(ITradeRouter.ExpiredDeadline.selector));
        intent = _updateIntent(id, _threeRules());
        intent.nonce = 7;
        _refuse(intent, abi.encodeWithSelector(ITradeRouter.InvalidNonce.selector, 1, 7));
    }

    function test_RefusesAnUnknownAClosedAndAnotherAgentsPosition() public {
        _refuse(_updateIntent(2, _threeRules()), abi.encodeWithSelector(IPositionManager.PositionNotFound.selector, 2));

        uint256 other = _register(vm.addr(signerKey));
        ITradeRouter.UpdateExitLadderIntent memory intent = _updateIntent(id, _threeRules());
        (intent.agentId, intent.nonce) = (other, 0);
        _refuse(intent, abi.encodeWithSelector(ITradeRouter.PositionAgentMismatch.selector, id, other));

        _submit(_reduceIntent(id, 10_000));
        _refuse(_updateIntent(id, _threeRules()), abi.encodeWithSelector(ITradeRouter.PositionNotOpen.selector, id));
    }

    /// @dev Protection can be changed by whoever may not buy, on a track that is closed.
    function test_ASuspendedAgentOnAnInactiveTrackMayUpdate() public {
        IVaultTrackRegistry.VaultTrackConfig memory policy = _policy();
        policy.active = false;
        _setPolicy(policy);
        _setStatus(IAgentRegistry.AgentStatus.Suspended);
        _submit(_updateIntent(id, _ladder(_stop(-300, 10_000))));
    }
}
