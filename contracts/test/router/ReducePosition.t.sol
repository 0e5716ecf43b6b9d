// SPDX-License-Identifier: MIT
pragma solidity ^0.8.30;

import {IAccessControl} from "@openzeppelin/contracts/access/IAccessControl.sol";
import {IAgentRegistry} from "../../src/interfaces/IAgentRegistry.sol";
import {IPositionManager} from "../../src/interfaces/IPositionManager.sol";
import {IMandateVault} from "../../src/interfaces/IMandateVault.sol";
import {IPriceOracle} from "../../src/interfaces/IPriceOracle.sol";
import {ITradeRouter} from "../../src/interfaces/ITradeRouter.sol";
import {ProtocolTest} from "./ProtocolTest.sol";

contract ReducePositionTest is ProtocolTest {
    uint256 private id;
    uint256 private held;

    function setUp() public override {
        super.setUp();
        id = _open(nvda, 10_000 * USDC);
        held = positions.getPosition(id).tokenAmount;
    }

    function test_SellsAShareAndReleasesItsCost() public {
        uint256 sold = held * 3_000 / 10_000;
        uint256 released = (10_000 * USDC * sold + held - 1) / held;
        vm.expectEmit(address(positions));
        emit IPositionManager.PositionReduced(id, agentId, sold, released);
        vm.expectEmit(true, true, false, false, address(router));
        emit ITradeRouter.PositionReducedFromIntent(id, agentId, 3_000, 0);
        uint256 usdcOut = _submit(_reduceIntent(id, 3_000));

        IPositionManager.Position memory position = positions.getPosition(id);
        assertEq(position.tokenAmount, held - sold);
        assertEq(position.usdcCostBasis, 10_000 * USDC - released);
        assertEq(position.realizedPnlUsdc, int256(usdcOut) - int256(released));
        assertEq(position.status, uint8(IPositionManager.PositionStatus.Open));
        assertEq(usdc.balanceOf(address(vault)), DEPOSITED - 10_000 * USDC + usdcOut);
        assertEq(nvda.balanceOf(address(vault)), held - sold);
    }

    function test_BooksTheProfitToThePositionTheDayAndTheLifetime() public {
        _setPrice(nvda, 120 * USD);
        uint256 usdcOut = _submit(_reduceIntent(id, 5_000));

        int256 pnl = positions.realizedPnlUsdc(id);
        assertEq(pnl, int256(usdcOut) - int256(5_000 * USDC));
        assertEq(router.dailyRealizedPnlUsdc(agentId, _today()), pnl);
        assertEq(router.lifetimeRealizedPnlUsdc(agentId), pnl);
        assertEq(allocations.trackRecordOf(agentId).peakRealizedPnl, uint256(pnl));
        assertEq(allocations.tradeCount(agentId), 2);
        assertEq(allocations.allocationUsed(agentId), 5_000 * USDC);
    }

    function test_ConsumesNoRule() public {
        _submit(_reduceIntent(id, 5_000));
        assertEq(positions.getPosition(id).nextRuleIndex, 0);
        assertEq(abi.encode(positions.getExitRules(id)), abi.encode(_threeRules()));
    }

    function test_AllBpsCloseThePosition() public {
        _setPrice(nvda, 120 * USD);
        _submit(_reduceIntent(id, 5_000));
        int256 first = positions.realizedPnlUsdc(id);
        vm.expectEmit(true, true, false, false, address(positions));
        emit IPositionManager.PositionClosed(id, agentId, 0);
        _submit(_reduceIntent(id, 10_000));

        IPositionManager.Position memory position = positions.getPosition(id);
        assertEq(position.status, uint8(IPositionManager.PositionStatus.Closed));
        assertEq(position.tokenAmount, 0);
        assertEq(position.usdcCostBasis, 0);
        assertEq(position.realizedPnlUsdc, router.lifetimeRealizedPnlUsdc(agentId));
        assertGt(position.realizedPnlUsdc, first);
        assertEq(positions.openPositionId(agentId, address(nvda)), 0);
        assertEq(positions.openPositionCountByAgent(agentId), 0);
        assertEq(allocations.allocationUsed(agentId), 0);
        assertEq(vault.tokenLedger(address(nvda)), 0);
    }

    function test_OnlyTheExecutorSubmits() public {
        ITradeRouter.ReducePositionIntent memory intent = _reduceIntent(id, 1_000);
        bytes memory signature = _sign(signerKey, digests.hashReducePosition(intent));
        bytes memory refusal = abi.encodeWithSelector(
            IAccessControl.AccessControlUnauthorizedAccount.selector, address(this), router.EXECUTOR_ROLE()
        );
        vm.expectRevert(refusal);
        router.reducePosition(intent, signature);
    }

    function test_RefusesAnExpiredDeadlineAndAWrongNonce() public {
        ITradeRouter.ReducePositionIntent memory intent = _reduceIntent(id, 1_000);
        intent.deadline = block.timestamp - 1;
        _refuse(intent, abi.encodeWithSelector(ITradeRouter.ExpiredDeadline.selector));
        intent = _reduceIntent(id, 1_000);
        intent.nonce = 0;
        _refuse(intent, abi.encodeWithSelector(ITradeRouter.InvalidNonce.selector, 1, 0));
    }

    function test_RefusesAnUnknownAClosedAndAnotherAgentsPosition() public {
        _refuse(_reduceIntent(0, 1_000), abi.encodeWithSelector(IPositionManager.PositionNotFound.selector, 0));

        uint256 other = _register(vm.addr(signerKey));
        ITradeRouter.ReducePositionIntent memory intent = _reduceIntent(id, 1_000);
        (intent.agentId, intent.nonce) = (other, 0);
        _refuse(intent, abi.encodeWithSelector(ITradeRouter.PositionAgentMismatch.selector, id, other));

        _submit(_reduceIntent(id, 10_000));
        _refuse(_reduceIntent(id, 10_000), abi.encodeWithSelector(ITradeRouter.PositionNotOpen.selector, id));
    }

    function test_BoundsTheShare() public {
        _refuse(_reduceIntent(id, 0), abi.encodeWithSelector(ITradeRouter.BpsOutOfRange.selector, 0));
        _refuse(_reduceIntent(id, 10_001), abi.encodeWithSelector(ITradeRouter.BpsOutOfRange.selector, 10_001));
        _submit(_reduceIntent(id, 1));
    }

    function test_RefusesWhileTradingIsPaused() public {
        _pauseTrading(true);
        _refuse(_reduceIntent(id, 1_000), abi.encodeWithSelector(IMandateVault.TradingPaused.selector));
    }

    function test_RefusesAStalePrice() public {
        (, uint64 observedAt,) = oracle.peekPrice(address(nvda));
        vm.warp(observedAt + 1 hours + 1);
        _refuse(
            _reduceIntent(id, 1_000),
            abi.encodeWithSelector(IPriceOracle.StalePrice.selector, address(nvda), observedAt, 1 hours)
        );
    }

    /// @dev The pool pays 2 % less than the oracle says: less than the position's 1 %.
    function test_RefusesAFillWorseThanThePositionAllows() public {
        market.moveTo(address(nvda), 98 * USD);
        uint256 floor = held * NVDA_PRICE / 1e20 * 9_900 / 10_000;
        ITradeRouter.ReducePositionIntent memory intent = _reduceIntent(id, 10_000);
        uint256 snapshot = vm.snapshotState();
        market.moveTo(address(nvda), 99 * USD + 20 * USD / 100);
        _submit(intent);
        vm.revertToState(snapshot);

        bytes memory signature = _sign(signerKey, digests.hashReducePosition(intent));
        vm.prank(executor);
        vm.expectPartialRevert(ITradeRouter.SlippageExceeded.selector);
        router.reducePosition(intent, signature);
        assertLt(held * 98 / 1e14, floor);
    }

    /// @dev An agent that may not buy may still lower its risk.
    function test_ASuspendedAgentMaySell() public {
        _setStatus(IAgentRegistry.AgentStatus.Suspended);
        _submit(_reduceIntent(id, 5_000));
        _setStatus(IAgentRegistry.AgentStatus.Failed);
        _submit(_reduceIntent(id, 10_000));
        assertEq(allocations.allocationUsed(agentId), 0);
    }

    function test_ATokenNoLongerAllowedCanBeSold() public {
        vm.prank(admin);
        vault.setTokenEnabled(address(nvda), false);
        vm.prank(operator);
        tokens.setTokenActive(address(nvda), false);
        _submit(_reduceIntent(id, 10_000));
        assertEq(nvda.balanceOf(address(vault)), 0);
    }

    /// @dev One part in ten thousand of 5,000 USDC units is worth less than a unit: it is sold with the rest.
    function test_LeavesNoDust() public {
        _submit(_reduceIntent(id, 10_000));
        ITradeRouter.PositionIntent memory open = _openIntent(nvda, 5_000);
        open.maxSlippageBps = 1_000;
        uint256 small = _submit(open);
        _submit(_reduceIntent(small, 9_999));
        assertEq(positions.getPosition(small).status, uint8(IPositionManager.PositionStatus.Closed));
    }

    function test_RefusesAShareThatRoundsToNothing() public {
        ITradeRouter.PositionIntent memory open = _openIntent(tsla, 5_000);
        open.maxSlippageBps = 1_000;
        uint256 small = _submit(open);
        _refuse(_reduceIntent(small, 1), abi.encodeWithSelector(ITradeRouter.InvalidReduceAmount.selector, small));
    }

    function testFuzz_SalesReleaseAllOfTheCostAndNoMore(uint16[4] memory shares, uint256 price) public {
        price = bound(price, 50 * USD, 200 * USD);
        _setPrice(nvda, price);
        uint256 proceeds;
        for (uint256 i; i < shares.length; ++i) {
            proceeds += _submit(_reduceIntent(id, uint16(bound(shares[i], 1, 9_000))));
            assertEq(allocations.allocationUsed(agentId), positions.getPosition(id).usdcCostBasis);
        }
        proceeds += _submit(_reduceIntent(id, 10_000));

        assertEq(allocations.allocationUsed(agentId), 0);
        assertEq(positions.realizedPnlUsdc(id), int256(proceeds) - int256(10_000 * USDC));
        assertEq(router.lifetimeRealizedPnlUsdc(agentId), positions.realizedPnlUsdc(id));
        assertEq(usdc.balanceOf(address(vault)), DEPOSITED - 10_000 * USDC + proceeds);
    }
}
