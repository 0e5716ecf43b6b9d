// SPDX-License-Identifier: MIT
pragma solidity ^0.8.30;

import {Vm} from "forge-std/Vm.sol";
import {IAccessControl} from "@openzeppelin/contracts/access/IAccessControl.sol";
import {IAgentRegistry} from "../../src/interfaces/IAgentRegistry.sol";
import {IPositionManager} from "../../src/interfaces/IPositionManager.sol";
import {ITradePolicy} from "../../src/interfaces/ITradePolicy.sol";
import {ITradeRouter} from "../../src/interfaces/ITradeRouter.sol";
import {ProtocolTest} from "./ProtocolTest.sol";

contract ForceCloseTest is ProtocolTest {
    uint256 private id;

    function setUp() public override {
        super.setUp();
        id = _open(nvda, 10_000 * USDC);
        _setStatus(IAgentRegistry.AgentStatus.Suspended);
    }

    function test_SellsAllOfASuspendedAgentsPosition() public {
        _setPrice(nvda, 95 * USD);
        skip(5 minutes);
        vm.expectEmit(true, true, true, false, address(router));
        emit ITradeRouter.PositionForceClosed(id, agentId, operator, 0);
        _forceClose();

        IPositionManager.Position memory position = positions.getPosition(id);
        assertEq(position.status, uint8(IPositionManager.PositionStatus.Closed));
        assertEq(position.nextRuleIndex, 0);
        uint256 proceeds = usdc.balanceOf(address(vault)) + 10_000 * USDC - DEPOSITED;
        assertEq(position.realizedPnlUsdc, int256(proceeds) - int256(10_000 * USDC));
        assertEq(router.dailyRealizedPnlUsdc(agentId, _today()), position.realizedPnlUsdc);
        assertEq(allocations.allocationUsed(agentId), 0);
        assertEq(vault.tokenLedger(address(nvda)), 0);
        assertEq(allocations.tradeCount(agentId), 2);
        assertEq(router.nonces(agentId), 1);
    }

    function test_OnlyTheOperator() public {
        bytes memory refusal = abi.encodeWithSelector(
            IAccessControl.AccessControlUnauthorizedAccount.selector, address(this), router.OPERATOR_ROLE()
        );
        vm.expectRevert(refusal);
        router.forceClose(id);
    }

    function test_RefusesAnActiveAgent() public {
        _setStatus(IAgentRegistry.AgentStatus.Active);
        vm.prank(operator);
        vm.expectRevert(abi.encodeWithSelector(ITradeRouter.AgentNotSuspended.selector, agentId));
        router.forceClose(id);
    }

    function test_RefusesAnUnknownAndAClosedPosition() public {
        vm.startPrank(operator);
        vm.expectRevert(abi.encodeWithSelector(IPositionManager.PositionNotFound.selector, 5));
        router.forceClose(5);
        router.forceClose(id);
        vm.expectRevert(abi.encodeWithSelector(ITradeRouter.PositionNotOpen.selector, id));
        router.forceClose(id);
    }

    function test_WorksOnAStalePriceWithEverythingPaused() public {
        skip(30 days);
        _pauseRegistry();
        _pauseTrading(true);
        _forceClose();
        assertEq(positions.getPosition(id).tokenAmount, 0);
    }

    function test_HoldsThePolicysFloor() public {
        market.moveTo(address(nvda), NVDA_PRICE * 9_700 / 10_000);
        vm.prank(operator);
        vm.expectRevert(abi.encodeWithSelector(ITradeRouter.ExitFloorNotMet.selector, id, 300, 0));
        router.forceClose(id);

        market.moveTo(address(nvda), NVDA_PRICE * 9_720 / 10_000);
        _forceClose();
    }

    function test_TellsHowMuchIsLeftWhereThePoolIsThin() public {
        uint256 held = positions.getPosition(id).tokenAmount;
        market.drain(address(nvda));
        market.addLiquidity(address(nvda), NVDA_PRICE, 100_000 * USDC);
        vm.recordLogs();
        vm.prank(operator);
        router.forceClose(id);

        uint256 left = positions.getPosition(id).tokenAmount;
        assertGt(left, 0);
        assertLt(left, held);
        Vm.Log[] memory logs = vm.getRecordedLogs();
        Vm.Log memory last = logs[logs.length - 1];
        assertEq(last.topics[0], ITradeRouter.PositionPartlyForceClosed.selector);
        (, uint256 tokensLeft) = abi.decode(last.data, (uint256, uint256));
        assertEq(tokensLeft, left);
    }

    /// @dev Whoever sees the call coming moves the pool, but not its average.
    function test_Skin05_NobodySandwichesAForceClose() public {
        skip(2 hours);
        for (uint256 i; i < 3; ++i) {
            market.moveTo(address(nvda), NVDA_PRICE * (9_600 - i * 1_500) / 10_000);
            vm.prank(operator);
            vm.expectRevert(abi.encodeWithSelector(ITradeRouter.ExitFloorNotMet.selector, id, 300, 0));
            router.forceClose(id);
        }
        market.moveTo(address(nvda), NVDA_PRICE);
        uint256 before = usdc.balanceOf(address(vault));
        _forceClose();
        assertGt(usdc.balanceOf(address(vault)) - before, 9_700 * USDC);
    }

    /// @dev The oracle is dead, and the pool has found another price for good.
    function test_Skin05_AForceCloseSellsRelativeToThePoolsOwnAverage() public {
        uint256 held = positions.getPosition(id).tokenAmount;
        market.moveTo(address(nvda), 50 * USD);
        skip(2 hours);
        uint256 before = usdc.balanceOf(address(vault));
        _forceClose();
        uint256 proceeds = usdc.balanceOf(address(vault)) - before;
        assertGt(proceeds, held * 50 * USD / 1e20 * 97 / 100);
        assertEq(vault.idleAssets(), before + proceeds);
        assertEq(positions.getPosition(id).tokenAmount, 0);
    }

    /// @dev A hot key that walks a thin pool for the length of the average is stopped by the oracle, where it has a price.
    function test_Skin05_AFreshPriceMustAgreeWithTheAverage() public {
        _useDefaultLimits();
        market.moveTo(address(nvda), NVDA_PRICE * 85 / 100);
        skip(5 minutes);
        vm.prank(operator);
        vm.expectPartialRevert(ITradePolicy.TwapDeviation.selector);
        router.forceClose(id);
        skip(1 hours);
        _forceClose();
        assertEq(positions.getPosition(id).tokenAmount, 0);
    }

    function test_Skin05_AForceCloseNeedsAnAverage() public {
        vm.mockCall(address(adapter), abi.encodeWithSelector(adapter.pricesOf.selector), abi.encode(NVDA_PRICE, 0));
        vm.prank(operator);
        vm.expectRevert(abi.encodeWithSelector(ITradePolicy.TwapUnavailable.selector, address(nvda)));
        router.forceClose(id);
    }

    function _forceClose() private {
        vm.prank(operator);
        router.forceClose(id);
    }
}
