// SPDX-License-Identifier: MIT
pragma solidity ^0.8.30;

import {IAllocationManager} from "../../src/interfaces/IAllocationManager.sol";
import {IPositionManager} from "../../src/interfaces/IPositionManager.sol";
import {IPriceOracle} from "../../src/interfaces/IPriceOracle.sol";
import {IVaultTrackRegistry} from "../../src/interfaces/IVaultTrackRegistry.sol";
import {ProtocolTest} from "../router/ProtocolTest.sol";

contract TradeRouterLensTest is ProtocolTest {
    uint256 private id;

    function setUp() public override {
        super.setUp();
        id = _open(nvda, 10_000 * USDC);
        assertEq(lens.tradeRouter(), address(router));
    }

    function test_MarksAPositionToTheOracle() public {
        IPositionManager.Position memory position = positions.getPosition(id);
        _setOraclePrice(nvda, 120 * USD);
        int256 value = int256(position.tokenAmount * 120 / 1e12);
        assertEq(lens.positionUnrealizedPnlUsdc(id), value - int256(10_000 * USDC));
        assertEq(
            lens.positionPnlBps(id),
            (int256(120 * USD) - int256(position.entryPriceUsdc * 100)) * 10_000 / int256(position.entryPriceUsdc * 100)
        );

        _setOraclePrice(nvda, 80 * USD);
        assertLt(lens.positionPnlBps(id), -1_990);
        assertLt(lens.positionUnrealizedPnlUsdc(id), 0);
    }

    function test_AClosedPositionIsWorthNothingAndNeverDue() public {
        _submit(_reduceIntent(id, 10_000));
        _setOraclePrice(nvda, 50 * USD);
        assertEq(lens.positionPnlBps(id), 0);
        assertEq(lens.positionUnrealizedPnlUsdc(id), 0);
        assertFalse(lens.isTriggerMet(id));
    }

    function test_AnUnknownPositionIsAnError() public {
        bytes memory refusal = abi.encodeWithSelector(IPositionManager.PositionNotFound.selector, 9);
        vm.expectRevert(refusal);
        lens.positionPnlBps(9);
        vm.expectRevert(refusal);
        lens.positionUnrealizedPnlUsdc(9);
        vm.expectRevert(refusal);
        lens.isTriggerMet(9);
        vm.expectRevert(abi.encodeWithSelector(IAllocationManager.AllocationNotFound.selector, 9));
        lens.peakEquityUsdc(9);
    }

    function test_AStalePriceIsAnErrorWhereOneIsNeeded() public {
        (, uint64 observedAt,) = oracle.peekPrice(address(nvda));
        vm.warp(observedAt + 1 hours + 1);
        bytes memory refusal =
            abi.encodeWithSelector(IPriceOracle.StalePrice.selector, address(nvda), observedAt, 1 hours);
        vm.expectRevert(refusal);
        lens.isTriggerMet(id);
        vm.expectRevert(refusal);
        lens.positionPnlBps(id);
        vm.expectRevert(refusal);
        lens.positionUnrealizedPnlUsdc(id);
        vm.expectRevert(refusal);
        lens.currentEquityUsdc(agentId);
        vm.expectRevert(refusal);
        lens.currentDrawdownBps(agentId);
        assertEq(lens.peakEquityUsdc(agentId), CAP);
        assertEq(lens.tradeCount(agentId), 1);
    }

    function test_EquityIsTheCapAndWhatWasMadeOfIt() public {
        uint256 other = _open(tsla, 5_000 * USDC);
        _setPrice(nvda, 120 * USD);
        _submit(_reduceIntent(id, 5_000));
        int256 realized = router.lifetimeRealizedPnlUsdc(agentId);
        int256 expected =
            int256(CAP) + realized + lens.positionUnrealizedPnlUsdc(id) + lens.positionUnrealizedPnlUsdc(other);
        assertEq(lens.currentEquityUsdc(agentId), uint256(expected));
        assertEq(lens.peakEquityUsdc(agentId), CAP + uint256(realized));
        assertEq(lens.currentDrawdownBps(agentId), 0);
    }

    function test_DrawdownIsMeasuredFromThePeak() public {
        _setPrice(nvda, 140 * USD);
        _submit(_reduceIntent(id, 5_000));
        uint256 peak = lens.peakEquityUsdc(agentId);
        _setPrice(nvda, 20 * USD);
        uint256 current = lens.currentEquityUsdc(agentId);
        assertLt(current, peak);
        assertEq(lens.currentDrawdownBps(agentId), (peak - current) * 10_000 / peak);
    }

    /// @dev An agent that holds 10,000 USDC moves to a track that gives 1,000, and loses 9,000.
    function test_EquityEndsAtNothing() public {
        IVaultTrackRegistry.VaultTrackConfig memory policy = _policy();
        (policy.trackId, policy.initialAllocation) = (1, 1_000 * USDC);
        _setPolicy(policy);
        _promote();
        _setPrice(nvda, 10 * USD);
        _submit(_reduceIntent(id, 10_000));

        assertEq(lens.currentEquityUsdc(agentId), 0);
        assertEq(lens.peakEquityUsdc(agentId), 1_000 * USDC);
        assertEq(lens.currentDrawdownBps(agentId), 10_000);
    }

    function test_CountsTradesAndPositions() public {
        _submit(_addIntent(id, 1_000 * USDC));
        _submit(_reduceIntent(id, 5_000));
        _open(tsla, 1_000 * USDC);
        _setPrice(nvda, 90 * USD);
        _exit(id);
        assertEq(lens.tradeCount(agentId), 5);
        assertEq(lens.positionsOpened(agentId), 2);
        assertEq(lens.positionsClosed(agentId), 1);
        assertEq(lens.lifetimeTurnoverUsdc(agentId), 12_000 * USDC);
    }

    function test_AnAgentThatNeverTradedHasItsCap() public {
        uint256 fresh = _register(owner);
        assertEq(lens.currentEquityUsdc(fresh), CAP);
        assertEq(lens.peakEquityUsdc(fresh), CAP);
        assertEq(lens.currentDrawdownBps(fresh), 0);
        assertEq(lens.tradeCount(fresh), 0);
        assertEq(lens.positionsOpened(fresh), 0);
        assertEq(lens.positionsClosed(fresh), 0);
        assertEq(lens.lifetimeTurnoverUsdc(fresh), 0);
    }
}
