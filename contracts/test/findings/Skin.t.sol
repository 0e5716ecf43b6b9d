// SPDX-License-Identifier: MIT
pragma solidity ^0.8.30;

import {Timelock} from "../../src/Timelock.sol";
import {StockToken} from "../../src/embedded/StockToken.sol";
import {IAgentRegistry} from "../../src/interfaces/IAgentRegistry.sol";
import {IAllocationManager} from "../../src/interfaces/IAllocationManager.sol";
import {IMandateVault} from "../../src/interfaces/IMandateVault.sol";
import {IPromotionCriteria} from "../../src/interfaces/IPromotionCriteria.sol";
import {ITradeRouter} from "../../src/interfaces/ITradeRouter.sol";
import {IVaultTrackRegistry} from "../../src/interfaces/IVaultTrackRegistry.sol";
import {OwnerTest} from "../owner/OwnerTest.sol";
import {IntentDigests} from "../router/IntentDigests.sol";

/// @notice The findings of the audit of the economics, each as its attacker would play it; every test failed before the fix
contract SkinTest is OwnerTest {
    uint256 private constant FUNDED_CAP = 50_000 * USDC;
    uint16 private constant FIRST_LOSS_BPS = 1_400;
    uint256 private constant REQUIRED = FUNDED_CAP * FIRST_LOSS_BPS / 10_000;

    IPromotionCriteria private criteria;
    StockToken private thin;
    uint256 private burnedUsdc;

    function setUp() public override {
        super.setUp();
        criteria = IPromotionCriteria(agents.promotionCriteria());
        thin = _token("THIN", 100 * USD, 10_000_000 * USDC);
        IVaultTrackRegistry.VaultTrackConfig memory config = _policy();
        (config.minTrades, config.evaluationPeriod, config.promotionScore) = (2, 1 days, 40);
        config.maxDailyTurnoverBps = 10_000;
        _setPolicy(config);
        config.trackId = 1;
        config.initialAllocation = FUNDED_CAP;
        config.maxAllocation = 2 * FUNDED_CAP;
        config.maxTradeSizeBps = 10_000;
        config.maxStopLossBps = FIRST_LOSS_BPS - 300;
        _setPolicy(config);
        vm.startPrank(admin);
        tracks.setVaultTrackCapitalMode(address(vault), 0, 0);
        tradePolicy.setLimits(address(vault), 0, _defaultLimits());
        tradePolicy.setLimits(address(vault), 1, _defaultLimits());
        vm.stopPrank();
        _setTerms(IVaultTrackRegistry.RiskTerms(FIRST_LOSS_BPS, 0, 0));
        agentId = _register(vm.addr(signerKey));
        skip(10 minutes);
        _quote(100 * USD);
        skip(1);
    }

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

        IVaultTrackRegistry.RiskTerms memory terms = IVaultTrackRegistry.RiskTerms(FIRST_LOSS_BPS - 1, 0, 0);
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
        tracks.setVaultTrackRiskTerms(address(vault), 0, IVaultTrackRegistry.RiskTerms(FIRST_LOSS_BPS, 0, 0));
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
        _setTerms(IVaultTrackRegistry.RiskTerms(0, 0, 0));
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

    /// @dev The market rises every day, so that the record shows a profit while the owner takes most of it.
    function test_Skin02_AnAgentDoesNotGiveARisingMarketAway() public {
        _setTerms(IVaultTrackRegistry.RiskTerms(FIRST_LOSS_BPS, 50, 300));
        _fund(REQUIRED);
        uint256 price = 100 * USD;
        uint256 given;
        for (uint256 day; day < 17; ++day) {
            (, uint256 before) = allocations.executionCostOf(agentId);
            if (_tryToOpen(thin, 40_000 * USDC, price)) _sellBelow(positions.positionCount(), price * 103 / 100);
            (, uint256 afterwards) = allocations.executionCostOf(agentId);
            given += afterwards - before;
            price = price * 103 / 100;
            skip(1 days);
            _quote(100 * USD);
            _setOraclePrice(thin, price);
            market.moveTo(address(thin), price);
            skip(10 minutes);
            _quote(100 * USD);
            _setOraclePrice(thin, price);
        }
        // At most the budget, and what the last trade within it may still give away on both sides.
        assertLe(given, FUNDED_CAP * 300 / 10_000 + 40_000 * USDC * 430 / 10_000);
        (, uint256 onTrack) = allocations.executionCostOf(agentId);
        assertEq(onTrack, given);
    }

    function test_Skin02_BuyingStopsBeyondTheBudgetOfTheDayAndOfTheTrackAndSalesGoOn() public {
        _setTerms(IVaultTrackRegistry.RiskTerms(FIRST_LOSS_BPS, 5, 20));
        _fund(REQUIRED);
        uint256 id = _open(nvda, 20_000 * USDC);
        _open(tsla, 20_000 * USDC);
        (uint256 today,) = allocations.executionCostOf(agentId);
        assertGt(today, 0);
        skip(1);
        _submit(_reduceIntent(id, 5_000));
        (today,) = allocations.executionCostOf(agentId);
        _refuse(
            _addIntent(id, 1_000 * USDC),
            abi.encodeWithSelector(ITradeRouter.ExceedsDailyCost.selector, agentId, today, FUNDED_CAP * 5 / 10_000)
        );
        _submit(_reduceIntent(id, 5_000));

        skip(1 days);
        _quote(100 * USD);
        (today,) = allocations.executionCostOf(agentId);
        assertEq(today, 0);
        _submit(_addIntent(id, 1_000 * USDC));
        _setTerms(IVaultTrackRegistry.RiskTerms(FIRST_LOSS_BPS, 0, 5));
        (, uint256 onTrack) = allocations.executionCostOf(agentId);
        _refuse(
            _addIntent(id, 1_000 * USDC),
            abi.encodeWithSelector(ITradeRouter.ExceedsTrackCost.selector, agentId, onTrack, FUNDED_CAP * 5 / 10_000)
        );
        _submit(_reduceIntent(id, 10_000));
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

    /// @dev The promotion of an agent that luck has favoured on paper.
    function _forcePromotion() private {
        vm.mockCall(address(criteria), abi.encodeWithSelector(criteria.check.selector), "");
        agents.promoteAgent(agentId, 1);
        vm.clearMockedCalls();
    }

    /// @dev Buys after the owner has pushed the pool up to the policy's bound.
    function _tryToOpen(StockToken token, uint256 amount, uint256 price) private returns (bool success) {
        market.moveTo(address(token), price * 10_045 / 10_000);
        ITradeRouter.PositionIntent memory intent = _openIntent(token, amount);
        bytes memory signature = _sign(signerKey, digests.hashOpenPosition(intent));
        vm.prank(executor);
        (success,) = address(router).call(abi.encodeCall(router.openPosition, (intent, signature)));
        market.moveTo(address(token), price);
        skip(10 minutes);
        _quote(100 * USD);
        _setOraclePrice(token, price);
        skip(1);
    }

    /// @dev Sells after the owner has pushed the pool down to the policy's bound.
    function _sellBelow(uint256 id, uint256 price) private {
        market.moveTo(address(thin), price);
        skip(10 minutes);
        _quote(100 * USD);
        _setOraclePrice(thin, price);
        uint256 locked = vault.firstLossShares(owner);
        market.moveTo(address(thin), price * 9_955 / 10_000);
        uint256 worth = vault.convertToAssets(1e24);
        _submit(_reduceIntent(id, 10_000));
        burnedUsdc += (locked - vault.firstLossShares(owner)) * worth / 1e24;
        market.moveTo(address(thin), price);
    }

    function _proveOnPaper() private {
        uint256 id = _open(nvda, 19_000 * USDC);
        _settle(110 * USD);
        _submit(_reduceIntent(id, 10_000));
        _settle(100 * USD);
        skip(1 days);
        _quote(100 * USD);
    }

    /// @dev An agent on real capital whose owner has locked a little more than required.
    function _fund(uint256 required) private {
        _depositFor(owner, 2 * required);
        _lock(vault.convertToShares(required * 101 / 100));
        _proveOnPaper();
        agents.promoteAgent(agentId, 1);
    }

    function _lock(uint256 shares) private {
        _relay(_lockCall(shares, ownerKey));
    }

    function _lockCall(uint256 shares, uint256 key) private view returns (bytes memory) {
        bytes memory message = abi.encode(
            keccak256("LockFirstLoss(uint256 agentId,uint256 shares,uint256 nonce,uint256 deadline)"),
            agentId,
            shares,
            _nonce(),
            _soon()
        );
        return abi.encodeCall(controls.lockFirstLoss, (agentId, shares, _nonce(), _soon(), _signMessage(key, message)));
    }

    function _lockedValue() private view returns (uint256 value) {
        (,, value,) = allocations.firstLossOf(agentId);
    }

    function _depositFor(address receiver, uint256 amount) private {
        vm.prank(admin);
        usdc.mint(receiver, amount);
        vm.startPrank(receiver);
        usdc.approve(address(vault), amount);
        vault.deposit(amount, receiver);
        vm.stopPrank();
    }

    function _setTerms(IVaultTrackRegistry.RiskTerms memory terms) private {
        vm.prank(admin);
        tracks.setVaultTrackRiskTerms(address(vault), 1, terms);
    }

    /// @dev Fresh prices; NVDA's at `price`.
    function _quote(uint256 price) private {
        _setOraclePrice(nvda, price);
        _setOraclePrice(tsla, TSLA_PRICE);
        _setOraclePrice(thin, 100 * USD);
    }

    /// @dev NVDA moves, and its pool's average has followed.
    function _settle(uint256 price) private {
        _setPrice(nvda, price);
        skip(10 minutes);
        _quote(price);
        skip(1);
    }
}
