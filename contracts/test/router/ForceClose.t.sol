// SPDX-License-Identifier: MIT
pragma solidity ^0.8.30;

import {Vm} from "forge-std/Vm.sol";
import {IAccessControl} from "@openzeppelin/contracts/access/IAccessControl.sol";
import {IAgentRegistry} from "../../src/interfaces/IAgentRegistry.sol";
import {IPositionManager} from "../../src/interfaces/IPositionManager.sol";
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
        assertEq(router.tradeCount(agentId), 2);
        assertEq(router.nonces(agentId), 1);
    }

    function test_OnlyTheOperator() public {
        bytes memory refusal = abi.encodeWithSelector(
            IAccessControl.AccessControlUnauthorizedAccount.selector, address(this), router.OPERATOR_ROLE()
        );
        vm.expectRevert(refusal);
        router.forceClose(id);
    }

    function test_OnlyTheAdminNamesTheFloor() public {
        bytes memory refusal = abi.encodeWithSelector(
            IAccessControl.AccessControlUnauthorizedAccount.selector, operator, router.DEFAULT_ADMIN_ROLE()
        );
        vm.prank(operator);
        vm.expectRevert(refusal);
        router.forceCloseWithFloor(id, 0);
    }

    function test_RefusesAnActiveAgent() public {
        _setStatus(IAgentRegistry.AgentStatus.Active);
        vm.prank(operator);
        vm.expectRevert(abi.encodeWithSelector(ITradeRouter.AgentNotSuspended.selector, agentId));
        router.forceClose(id);
        vm.prank(admin);
        vm.expectRevert(abi.encodeWithSelector(ITradeRouter.AgentNotSuspended.selector, agentId));
        router.forceCloseWithFloor(id, 0);
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

    function test_HoldsItAgainstTheLastKnownPrice() public {
        skip(2 hours);
        market.moveTo(address(nvda), USD);
        vm.prank(operator);
        vm.expectRevert(abi.encodeWithSelector(ITradeRouter.ExitFloorNotMet.selector, id, 300, 0));
        router.forceClose(id);
    }

    function test_TheAdminMayAcceptNothing() public {
        _setStatus(IAgentRegistry.AgentStatus.Active);
        ITradeRouter.PositionIntent memory intent = _openIntent(tsla, 1_000);
        intent.maxSlippageBps = 1_000;
        uint256 small = _submit(intent);
        _setStatus(IAgentRegistry.AgentStatus.Suspended);
        skip(2 hours);
        market.moveTo(address(tsla), USD / 1_000);

        vm.startPrank(admin);
        vm.expectRevert(abi.encodeWithSelector(ITradeRouter.SlippageExceeded.selector, 1, 0));
        router.forceCloseWithFloor(small, 1);
        router.forceCloseWithFloor(small, 0);
        assertEq(positions.realizedPnlUsdc(small), -1_000);
    }

    function test_TheAdminMayNameTheFloor() public {
        market.moveTo(address(nvda), 50 * USD);
        uint256 snapshot = vm.snapshotState();
        uint256 before = usdc.balanceOf(address(vault));
        vm.prank(admin);
        router.forceCloseWithFloor(id, 0);
        uint256 proceeds = usdc.balanceOf(address(vault)) - before;
        vm.revertToState(snapshot);

        vm.startPrank(admin);
        vm.expectRevert(abi.encodeWithSelector(ITradeRouter.SlippageExceeded.selector, proceeds + 1, proceeds));
        router.forceCloseWithFloor(id, proceeds + 1);
        router.forceCloseWithFloor(id, proceeds);
        assertEq(positions.getPosition(id).tokenAmount, 0);
    }

    function _forceClose() private {
        vm.prank(operator);
        router.forceClose(id);
    }
}
