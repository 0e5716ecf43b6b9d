// SPDX-License-Identifier: MIT
pragma solidity ^0.8.30;

import {Timelock} from "../../src/Timelock.sol";
import {IAgentRegistry} from "../../src/interfaces/IAgentRegistry.sol";
import {IAllocationManager} from "../../src/interfaces/IAllocationManager.sol";
import {IMandateVault} from "../../src/interfaces/IMandateVault.sol";
import {IPromotionCriteria} from "../../src/interfaces/IPromotionCriteria.sol";
import {ITradeRouter} from "../../src/interfaces/ITradeRouter.sol";
import {IVaultTrackRegistry} from "../../src/interfaces/IVaultTrackRegistry.sol";
import {IntentDigests} from "../router/IntentDigests.sol";
import {FundedTest} from "./FundedTest.sol";

/// @notice The findings of the audit of the economics, each as its attacker would play it; every test failed before the fix
contract SkinTest is FundedTest {
    function test_Skin01_PromotionNamesTheFirstLossCapitalThatIsMissing() public {
        _proveOnPaper();
        vm.expectRevert(abi.encodeWithSelector(IPromotionCriteria.FirstLossMissing.selector, agentId, 0, REQUIRED));
        agents.promoteAgent(agentId, 1);
        assertFalse(criteria.criteriaOf(agentId).isEligible);

        _depositFor(owner, REQUIRED + 1);
        _lock(vault.balanceOf(owner) / 2);
        uint256 half = criteria.criteriaOf(agentId).firstLossUsdc;
        vm.expectRevert(abi.encodeWithSelector(IPromotionCriteria.FirstLossMissing.selector, agentId, half, REQUIRED));
        agents.promoteAgent(agentId, 1);

        _lock(vault.balanceOf(owner));
        agents.promoteAgent(agentId, 1);
        assertEq(allocations.allocationCap(agentId), FUNDED_CAP);
    }

    function test_Skin01_ARealizedLossIsPaidFromTheLockedSharesBeforeDepositorsBearAny() public {
        _fund(REQUIRED);
        uint256 depositors = vault.convertToAssets(vault.balanceOf(investor));
        uint256 locked = _lockedValue();
        uint256 id = _open(nvda, 20_000 * USDC);
        _setPrice(nvda, 93 * USD);
        skip(5 minutes);
        _setOraclePrice(nvda, 93 * USD);
        assertLt(vault.convertToAssets(vault.balanceOf(investor)), depositors);
        _submit(_reduceIntent(id, 10_000));
        int256 lost = -allocations.trackRecordOf(agentId).realizedPnl;
        assertGt(lost, int256(1_300 * USDC));
        assertGe(vault.convertToAssets(vault.balanceOf(investor)) + 1, depositors);
        assertApproxEqAbs(locked - _lockedValue(), uint256(lost), 10 * USDC);
    }

    function test_Skin01_AGainIsNotTouchedAndALossOfItCostsTheLockNothing() public {
        _fund(REQUIRED);
        (, uint256 shares,,) = allocations.firstLossOf(agentId);
        uint256 id = _open(nvda, 20_000 * USDC);
        _settle(110 * USD);
        _submit(_reduceIntent(id, 10_000));
        int256 gained = allocations.trackRecordOf(agentId).realizedPnl;
        assertGt(gained, 0);
        id = _open(nvda, 10_000 * USDC);
        skip(1);
        _submit(_reduceIntent(id, 10_000));
        assertLt(allocations.trackRecordOf(agentId).realizedPnl, gained);
        (, uint256 left,,) = allocations.firstLossOf(agentId);
        assertEq(left, shares);
    }

    function test_Skin01_TheLockEndsWithTheTrackTheLastPositionAndTheHoldingTime() public {
        IMandateVault.LiquidityPolicy memory policy;
        policy.holdingTime = 1 days;
        vm.prank(admin);
        vault.setLiquidityPolicy(policy);
        _fund(REQUIRED);
        (, uint256 shares,,) = allocations.firstLossOf(agentId);
        skip(2 days);
        _quote(100 * USD);
        assertEq(vault.maxRedeem(owner), vault.balanceOf(owner) - shares);
        uint256 free = vault.balanceOf(owner) - shares;
        vm.prank(owner);
        vm.expectRevert(abi.encodeWithSelector(IMandateVault.SharesLocked.selector, owner, free, free + 1));
        vault.transfer(investor, free + 1);

        uint256 id = _open(nvda, 5_000 * USDC);
        bytes memory bound = abi.encodeWithSelector(IAllocationManager.FirstLossBound.selector, agentId, shares, 0);
        _refuseMessage(_lockCall(0, ownerKey), bound);
        _setStatus(IAgentRegistry.AgentStatus.Exited);
        _refuseMessage(_lockCall(0, ownerKey), bound);
        skip(1);
        vm.prank(operator);
        router.forceClose(id);
        _lock(0);
        uint256 freed = vault.lockedShares(owner);
        assertGt(freed, shares * 99 / 100);
        assertEq(vault.maxRedeem(owner), vault.balanceOf(owner) - freed);
        skip(1 days + 3 hours);
        _quote(100 * USD);
        assertEq(vault.maxRedeem(owner), vault.balanceOf(owner));
    }

    function test_Skin01_TheSameSharesDoNotAnswerForTwoAgents() public {
        _fund(REQUIRED);
        uint256 second = _register(vm.addr(0xBEEF));
        (, uint256 shares,,) = allocations.firstLossOf(agentId);
        uint256 free = vault.balanceOf(owner) - shares;
        agentId = second;
        _refuseMessage(
            _lockCall(shares, ownerKey),
            abi.encodeWithSelector(IMandateVault.InsufficientShares.selector, owner, free, shares)
        );
    }

    function test_Skin01_ANewOwnersLockFreesTheFormerOwnersShares() public {
        _fund(REQUIRED);
        _open(nvda, 5_000 * USDC);
        (, uint256 shares,,) = allocations.firstLossOf(agentId);
        vm.prank(owner);
        agents.transferAgentOwnership(agentId, newOwner);
        _depositFor(newOwner, 2 * REQUIRED);
        _refuseMessage(
            _lockCall(shares - 1, newOwnerKey),
            abi.encodeWithSelector(IAllocationManager.FirstLossBound.selector, agentId, shares, shares - 1)
        );
        _relay(_lockCall(shares, newOwnerKey));
        (address answering,,,) = allocations.firstLossOf(agentId);
        assertEq(answering, newOwner);
        assertEq(vault.firstLossShares(owner), 0);
        assertEq(vault.maxRedeem(owner), vault.balanceOf(owner));
    }

    /// @dev An owner who stakes less than what a position loses at its stop profits from luck at the depositors' expense.
    function test_Skin01_ALockCoversTheDeepestStopAndTheSlippageOfItsExit() public {
        IVaultTrackRegistry.VaultTrackConfig memory config = tracks.getVaultTrackConfig(address(vault), 1);
        config.maxStopLossBps = FIRST_LOSS_BPS - 299;
        _refusePolicy(config, FIRST_LOSS_BPS + 1);
        (config.maxStopLossBps, config.requireStopLoss) = (FIRST_LOSS_BPS - 300, false);
        _refusePolicy(config, 10_000);
        (config.maxStopLossBps, config.requireStopLoss) = (0, true);
        _refusePolicy(config, 10_000);

        IVaultTrackRegistry.RiskTerms memory terms = IVaultTrackRegistry.RiskTerms(FIRST_LOSS_BPS - 1, 0);
        vm.prank(admin);
        vm.expectRevert(
            abi.encodeWithSelector(IVaultTrackRegistry.StopBeyondFirstLoss.selector, FIRST_LOSS_BPS, FIRST_LOSS_BPS - 1)
        );
        tracks.setVaultTrackRiskTerms(address(vault), 1, terms);

        terms.firstLossBps = 0;
        _setTerms(terms);
        _setPolicy(config);
        terms.firstLossBps = 10_000;
        _setTerms(terms);
    }

    function _refusePolicy(IVaultTrackRegistry.VaultTrackConfig memory config, uint256 lossBps) private {
        vm.prank(admin);
        vm.expectRevert(
            abi.encodeWithSelector(IVaultTrackRegistry.StopBeyondFirstLoss.selector, lossBps, FIRST_LOSS_BPS)
        );
        tracks.setVaultTrackConfig(address(vault), config.trackId, config);
    }

    /// @dev A vault that starts agents on real capital gives them a cap with their lock.
    function test_Skin01_AnAgentRegisteredOnRealCapitalGetsItsCapWithTheLock() public {
        vm.startPrank(admin);
        tracks.setVaultTrackCapitalMode(address(vault), 0, 1);
        IVaultTrackRegistry.VaultTrackConfig memory config = tracks.getVaultTrackConfig(address(vault), 0);
        config.maxStopLossBps = FIRST_LOSS_BPS - 300;
        tracks.setVaultTrackConfig(address(vault), 0, config);
        tracks.setVaultTrackRiskTerms(address(vault), 0, IVaultTrackRegistry.RiskTerms(FIRST_LOSS_BPS, 0));
        vm.stopPrank();
        agentId = _register(vm.addr(signerKey));
        assertEq(allocations.allocationCap(agentId), 0);
        _refuse(
            _openIntent(nvda, 1_000 * USDC),
            abi.encodeWithSelector(ITradeRouter.ExceedsAllocationCap.selector, agentId, 1_000 * USDC, 0)
        );
        _depositFor(owner, CAP * FIRST_LOSS_BPS / 10_000 + 1);
        _lock(vault.balanceOf(owner));
        assertEq(allocations.allocationCap(agentId), CAP);
        _open(nvda, 1_000 * USDC);
    }

    /// @dev Each agent sells into its owner's sandwich until a limit stops it; what the vault loses the owners gain.
    function test_Skin01_EighteenAgentsTookAFortuneWithoutFirstLossCapital() public {
        _setTerms(IVaultTrackRegistry.RiskTerms(0, 0));
        assertGt(_eighteenAgents(0), int256(40_000 * USDC));
    }

    function test_Skin01_EighteenAgentsLoseTheirOwnersMoneyWithFirstLossCapital() public {
        assertLe(_eighteenAgents(REQUIRED), 0);
    }

    function test_Skin01_PaperDrawdownCountsOpenPositionsAtEveryTrade() public {
        uint256 id = _open(nvda, 19_000 * USDC);
        _open(tsla, 19_000 * USDC);
        _settle(65 * USD);
        _open(thin, 100 * USDC);
        _settle(106 * USD);
        _submit(_reduceIntent(id, 10_000));
        skip(1 days);
        _quote(106 * USD);
        IPromotionCriteria.Criteria memory c = criteria.criteriaOf(agentId);
        assertGt(c.drawdownBps, c.maxDrawdownBps);
        vm.expectRevert(
            abi.encodeWithSelector(IPromotionCriteria.DrawdownLimitBreached.selector, agentId, c.drawdownBps, 1_000)
        );
        agents.promoteAgent(agentId, 1);
    }

    /// @dev The market rises by a fifth; the agent buys once and sells on the way.
    function test_Skin01_ARisingMarketEarnsNoScore() public {
        uint256 id = _open(nvda, 19_000 * USDC);
        _settle(110 * USD);
        _submit(_reduceIntent(id, 10_000));
        uint256 snapshot = vm.snapshotState();
        _settle(100 * USD);
        assertGt(criteria.scoreOf(agentId), 40);
        vm.revertToState(snapshot);
        _settle(120 * USD);
        assertGt(allocations.trackRecordOf(agentId).realizedPnl, 0);
        assertEq(criteria.scoreOf(agentId), 0);
    }

    function test_Skin01_ARealCapGrowsWithRealizedProfitUpToTheTracksLargest() public {
        _fund(REQUIRED);
        assertEq(allocations.effectiveCapUsdc(agentId), FUNDED_CAP);
        uint256 id = _open(nvda, 40_000 * USDC);
        _settle(110 * USD);
        assertEq(allocations.effectiveCapUsdc(agentId), FUNDED_CAP);
        _submit(_reduceIntent(id, 10_000));
        uint256 gained = uint256(allocations.trackRecordOf(agentId).realizedPnl);
        assertEq(allocations.effectiveCapUsdc(agentId), FUNDED_CAP + gained);
        _open(nvda, FUNDED_CAP + gained / 2);
        IVaultTrackRegistry.VaultTrackConfig memory config = tracks.getVaultTrackConfig(address(vault), 1);
        config.maxAllocation = FUNDED_CAP + 1;
        _setPolicy(config);
        assertEq(allocations.effectiveCapUsdc(agentId), FUNDED_CAP + 1);
    }

    /// @dev A stolen proposer's key schedules a router of its own; everything that moves funds waits for the same delay.
    function test_Skin03_TheGuardianCancelsWhatAStolenProposerKeySchedules() public {
        address guardian = makeAddr("guardian");
        address thief = makeAddr("thief");
        Timelock timelock = _timelockOf(thief, guardian);
        vm.prank(admin);
        vault.beginDefaultAdminTransfer(address(timelock));
        vm.prank(address(timelock));
        vault.acceptDefaultAdminTransfer();

        bytes memory theft = abi.encodeCall(vault.setTradeRouter, (thief));
        vm.prank(thief);
        timelock.schedule(address(vault), 0, theft, 0, 0, 6 days);
        bytes32 id = timelock.hashOperation(address(vault), 0, theft, 0, 0);
        skip(5 days);
        vm.prank(guardian);
        timelock.cancel(id);
        skip(1 days);
        assertFalse(timelock.isOperationReady(id));
        vm.expectRevert();
        timelock.execute(address(vault), 0, theft, 0, 0);
        assertEq(vault.tradeRouter(), address(router));
    }

    /// @dev A stolen guardian's key must not be a weapon: it could cancel every change, its own dismissal included.
    function test_Skin03_AGuardianDoesNotCancelItsOwnDismissal() public {
        address guardian = makeAddr("guardian");
        address proposer = makeAddr("proposer");
        Timelock timelock = _timelockOf(proposer, guardian);
        bytes memory dismissal = abi.encodeCall(timelock.revokeRole, (timelock.CANCELLER_ROLE(), guardian));
        address[] memory targets = new address[](2);
        bytes[] memory calls = new bytes[](2);
        (targets[0], targets[1]) = (address(timelock), address(vault));
        calls[0] = dismissal;
        calls[1] = abi.encodeCall(vault.revokeRole, (vault.GUARDIAN_ROLE(), guardian));
        bytes32 id = _schedule(timelock, proposer, targets, calls);
        vm.prank(guardian);
        vm.expectRevert(abi.encodeWithSelector(Timelock.CannotCancelOwnDismissal.selector, id));
        timelock.cancel(id);

        // A dismissal does not shelter another call.
        calls[1] = abi.encodeCall(vault.setTradeRouter, (proposer));
        id = _schedule(timelock, proposer, targets, calls);
        vm.prank(guardian);
        timelock.cancel(id);
        assertFalse(timelock.isOperation(id));
    }

    /// @dev A stolen proposer's key dismisses a guardian: the other one cancels that, whichever function scheduled it.
    function test_Skin03_EachOfTwoGuardiansCancelsTheOthersDismissal() public {
        address[2] memory guardians = [makeAddr("first guardian"), makeAddr("second guardian")];
        address thief = makeAddr("thief");
        Timelock timelock = _timelockOf(thief, guardians[0]);
        bytes32 canceller = timelock.CANCELLER_ROLE();
        vm.prank(address(timelock));
        timelock.grantRole(canceller, guardians[1]);
        for (uint256 i; i < 2; ++i) {
            bytes memory dismissal = abi.encodeCall(timelock.revokeRole, (canceller, guardians[i]));
            vm.prank(thief);
            timelock.schedule(address(timelock), 0, dismissal, 0, 0, 6 days);
            bytes32 id = timelock.hashOperation(address(timelock), 0, dismissal, 0, 0);
            vm.prank(guardians[i]);
            vm.expectRevert(abi.encodeWithSelector(Timelock.CannotCancelOwnDismissal.selector, id));
            timelock.cancel(id);
            vm.prank(guardians[1 - i]);
            timelock.cancel(id);
            assertFalse(timelock.isOperation(id));
        }
    }

    /// @dev A guardian whose dismissal waits for another operation could cancel that one.
    function test_Skin03_NoOperationWaitsForAnotherOne() public {
        address proposer = makeAddr("proposer");
        Timelock timelock = _timelockOf(proposer, makeAddr("guardian"));
        bytes32 first = keccak256("another operation");
        bytes memory refusal = abi.encodeWithSelector(Timelock.PredecessorNotAllowed.selector, first);
        vm.startPrank(proposer);
        vm.expectRevert(refusal);
        timelock.schedule(address(vault), 0, "", first, 0, 6 days);
        vm.expectRevert(refusal);
        timelock.scheduleBatch(new address[](0), new uint256[](0), new bytes[](0), first, 0, 6 days);
    }

    function _timelockOf(address proposer, address guardian) private returns (Timelock timelock) {
        address[] memory proposers = new address[](1);
        proposers[0] = proposer;
        timelock = new Timelock(6 days, proposers, new address[](1));
        bytes32 canceller = timelock.CANCELLER_ROLE();
        vm.prank(address(timelock));
        timelock.grantRole(canceller, guardian);
    }

    function _schedule(Timelock timelock, address proposer, address[] memory targets, bytes[] memory calls)
        private
        returns (bytes32)
    {
        uint256[] memory values = new uint256[](targets.length);
        vm.prank(proposer);
        timelock.scheduleBatch(targets, values, calls, 0, 0, 6 days);
        return timelock.hashOperationBatch(targets, values, calls, 0, 0);
    }

    function test_Skin07_UnrealizedLossesCountInTheCriteria() public {
        _fund(REQUIRED);
        IVaultTrackRegistry.VaultTrackConfig memory config = tracks.getVaultTrackConfig(address(vault), 1);
        (config.minTrades, config.evaluationPeriod, config.promotionScore) = (0, 0, 0);
        _setPolicy(config);
        uint256 id = _open(nvda, 40_000 * USDC);
        _open(tsla, 1_000 * USDC);
        _settle(80 * USD);
        IPromotionCriteria.Criteria memory c = criteria.criteriaOf(agentId);
        assertLt(c.unrealizedPnlUsdc, -int256(7_900 * USDC));
        assertGt(c.drawdownBps, 1_500);
        assertGt(positions.getPosition(id).tokenAmount, 0);
        assertFalse(c.isEligible);
    }

    function test_Skin11_ANewRouterContinuesLossesDailyFiguresAndNonces() public {
        uint256 id = _open(nvda, 10_000 * USDC);
        _setPrice(nvda, 90 * USD);
        skip(5 minutes);
        _setOraclePrice(nvda, 90 * USD);
        _exit(id);
        bytes memory record = abi.encode(allocations.trackRecordOf(agentId));
        uint256 turnover = router.dailyTurnoverUsdc(agentId, _today());
        int256 lost = router.lifetimeRealizedPnlUsdc(agentId);
        uint256 cap = allocations.effectiveCapUsdc(agentId);
        assertLt(lost, 0);

        vm.startPrank(admin);
        _createRouter();
        allocations.setTradeRouter(address(router));
        vm.stopPrank();
        digests = new IntentDigests(address(router));
        assertEq(abi.encode(allocations.trackRecordOf(agentId)), record);
        assertEq(router.dailyTurnoverUsdc(agentId, _today()), turnover);
        assertEq(router.lifetimeRealizedPnlUsdc(agentId), lost);
        assertEq(allocations.effectiveCapUsdc(agentId), cap);
        assertEq(router.nonces(agentId), 1);
    }

    /// @return profit What the owners took from the vault less what their locked shares lost
    function _eighteenAgents(uint256 firstLoss) private returns (int256 profit) {
        // The agent of the set-up, on real capital, makes room.
        vm.prank(operator);
        agents.setAgentStatus(1, uint8(IAgentRegistry.AgentStatus.Exited));
        for (uint256 i; i < 18; ++i) {
            signerKey = 0xBAD00 + i;
            agentId = _register(vm.addr(signerKey));
            if (firstLoss != 0) {
                _depositFor(owner, firstLoss * 102 / 100);
                _lock(vault.balanceOf(owner) - vault.firstLossShares(owner));
            }
            _forcePromotion();
            for (uint256 round; round < 9; ++round) {
                if (!_tryToOpen(thin, 40_000 * USDC, 100 * USD)) break;
                _sellBelow(positions.positionCount(), 100 * USD);
                skip(1 days);
                _quote(100 * USD);
            }
        }
        // What the vault lost went into the pool, to the owners.
        for (uint256 id = 1; id < agents.nextAgentId(); ++id) {
            if (agents.trackOf(id) == 1) profit -= allocations.trackRecordOf(id).realizedPnl;
        }
        profit -= int256(burnedUsdc);
    }
}
