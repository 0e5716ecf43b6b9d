// SPDX-License-Identifier: MIT
pragma solidity ^0.8.30;

import {IAllocationManager} from "../../src/interfaces/IAllocationManager.sol";
import {ITradeRouter} from "../../src/interfaces/ITradeRouter.sol";
import {IVaultTrackRegistry} from "../../src/interfaces/IVaultTrackRegistry.sol";
import {FundedTest} from "./FundedTest.sol";

/// @notice First-loss shares are free when nothing can be lost any more, and pay what is lost while they are locked
contract LocksTest is FundedTest {
    function test_AnOwnerWhoseAgentHoldsNothingFreesTheSharesForTheCap() public {
        _fund(REQUIRED);
        (, uint256 shares,,) = allocations.firstLossOf(agentId);
        uint256 id = _open(nvda, 5_000 * USDC);
        _refuseMessage(_lockCall(0, ownerKey), _bound(shares, 0));
        skip(1);
        _submit(_reduceIntent(id, 10_000));
        (, shares,,) = allocations.firstLossOf(agentId);
        _refuseMessage(_lockCall(shares - 1, ownerKey), _bound(shares, shares - 1));

        _lock(0);
        assertEq(vault.firstLossShares(owner), 0);
        assertEq(allocations.allocationCap(agentId), 0);
        assertEq(vault.tradeRouter(), address(router));
        assertEq(allocations.totalAgentCaps(address(vault)), CAP);
        _refuse(
            _openIntent(nvda, 1_000 * USDC),
            abi.encodeWithSelector(ITradeRouter.ExceedsAllocationCap.selector, agentId, 1_000 * USDC, 0)
        );

        _lock(shares);
        assertEq(allocations.allocationCap(agentId), FUNDED_CAP);
        _open(nvda, 1_000 * USDC);
    }

    function test_NobodyFreesTheSharesOfThePresentOwner() public {
        _fund(REQUIRED);
        (, uint256 shares,,) = allocations.firstLossOf(agentId);
        allocations.freeFormerOwner(agentId);
        assertEq(vault.firstLossShares(owner), shares);
    }

    function test_AnOwnerFreesTheSharesOfAnAgentThatHasLeft() public {
        _fund(REQUIRED);
        vm.prank(operator);
        allocations.setAllocationStatus(agentId, uint8(IAllocationManager.AllocationStatus.Removed));
        _lock(0);
        assertEq(vault.firstLossShares(owner), 0);
        assertEq(allocations.totalAgentCaps(address(vault)), CAP);
    }

    function test_ATransferFreesTheLockOfAnAgentOnPaper() public {
        _depositFor(owner, REQUIRED);
        _lock(vault.balanceOf(owner));
        vm.prank(owner);
        agents.transferAgentOwnership(agentId, newOwner);
        (, uint256 shares,,) = allocations.firstLossOf(agentId);
        assertEq(shares, 0);
        assertEq(vault.firstLossShares(owner), 0);
    }

    function test_ATransferFreesTheLockOfAnAgentThatHoldsNothingAndTakesItsCap() public {
        _fund(REQUIRED);
        vm.prank(owner);
        agents.transferAgentOwnership(agentId, newOwner);
        assertEq(vault.firstLossShares(owner), 0);
        assertEq(allocations.allocationCap(agentId), 0);
        _depositFor(newOwner, 2 * REQUIRED);
        _relay(_lockCall(vault.balanceOf(newOwner), newOwnerKey));
        assertEq(allocations.allocationCap(agentId), FUNDED_CAP);
    }

    function test_AFormerOwnersLockAnswersForOpenPositionsUntilTheyAreSold() public {
        _fund(REQUIRED);
        uint256 id = _open(nvda, 5_000 * USDC);
        vm.prank(owner);
        agents.transferAgentOwnership(agentId, newOwner);
        (address answering, uint256 shares,, bool isBound) = allocations.firstLossOf(agentId);
        assertEq(answering, owner);
        assertTrue(isBound);
        assertEq(vault.firstLossShares(owner), shares);
        skip(1);
        allocations.freeFormerOwner(agentId);
        assertEq(vault.firstLossShares(owner), shares);
        _submit(_reduceIntent(id, 10_000));
        allocations.freeFormerOwner(agentId);
        assertEq(vault.firstLossShares(owner), 0);
    }

    function test_ALockPaysOnlyWhatIsLostWhileItIsThere() public {
        _setTerms(IVaultTrackRegistry.RiskTerms(0, 0));
        _proveOnPaper();
        agents.promoteAgent(agentId, 1);
        uint256 id = _open(nvda, 20_000 * USDC);
        _settle(95 * USD);
        _submit(_reduceIntent(id, 10_000));
        int256 lost = allocations.trackRecordOf(agentId).realizedPnl;
        assertLt(lost, -int256(1_000 * USDC));

        _depositFor(owner, 3_000 * USDC);
        _lock(vault.balanceOf(owner));
        uint256 locked = _lockedValue();
        id = _open(nvda, 10_000 * USDC);
        _settle(94.5e8);
        _submit(_reduceIntent(id, 10_000));
        uint256 lostSince = uint256(lost - allocations.trackRecordOf(agentId).realizedPnl);
        assertApproxEqAbs(locked - _lockedValue(), lostSince, 2 * USDC);
    }

    function test_ATokenThatFellDoesNotHideWhatHoldingAnotherOneWouldHaveMade() public {
        _open(nvda, 10_000 * USDC);
        _open(tsla, 10_000 * USDC);
        int256 both = positions.holdingPnlOf(agentId, 0);
        assertEq(both, 0);
        _setOraclePrice(tsla, TSLA_PRICE * 8 / 10);
        _setOraclePrice(nvda, 110 * USD);
        assertApproxEqAbs(positions.holdingPnlOf(agentId, 0), int256(1_000 * USDC), 20 * USDC);
    }

    function _bound(uint256 locked, uint256 shares) private view returns (bytes memory) {
        return abi.encodeWithSelector(IAllocationManager.FirstLossBound.selector, agentId, locked, shares);
    }
}
