// SPDX-License-Identifier: MIT
pragma solidity ^0.8.30;

import {StockToken} from "../../src/embedded/StockToken.sol";
import {IAgentRegistry} from "../../src/interfaces/IAgentRegistry.sol";
import {IMandateVault} from "../../src/interfaces/IMandateVault.sol";
import {IPositionManager} from "../../src/interfaces/IPositionManager.sol";
import {ITradePolicy} from "../../src/interfaces/ITradePolicy.sol";
import {ITradeRouter} from "../../src/interfaces/ITradeRouter.sol";
import {IVaultTrackRegistry} from "../../src/interfaces/IVaultTrackRegistry.sol";
import {ProtocolTest} from "../router/ProtocolTest.sol";

/// @notice The attacks of the audit, each as its attacker would run it; every test failed before the fix
contract AttacksTest is ProtocolTest {
    uint256 private constant THIN = 1_000_000 * USDC;
    uint256 private constant EMBEDDED_CAP = 5_000 * USDC;

    StockToken private thin;

    function setUp() public override {
        super.setUp();
        _useDefaultLimits();
        thin = _newToken("THIN", 18);
        _listWithDepth(thin, 100 * USD, THIN);
        skip(10 minutes);
        _setOraclePrice(thin, 100 * USD);
        _setOraclePrice(nvda, NVDA_PRICE);
        skip(1);
    }

    /// @dev Sells borrowed tokens, fires the exit, buys back: with every depth of the first sale, at once and later.
    function test_Finding01_AnOwnerTakesAtMostThePolicysSlippageFromTheVault() public {
        uint256[5] memory pushes = [uint256(9_000), 320, 290, 100, 40];
        for (uint256 i; i < pushes.length; ++i) {
            for (uint256 wait; wait <= 20 minutes; wait += 20 minutes) {
                uint256 snapshot = vm.snapshotState();
                assertLe(_sandwichedExit(pushes[i], wait), 20_000 * USDC * 430 / 10_000);
                vm.revertToState(snapshot);
            }
        }
    }

    function test_Finding01_SixtySybilsTakeNothing() public {
        vm.prank(admin);
        tracks.setTrackType(IVaultTrackRegistry.TrackType(0, "CHALLENGE", 0, true));
        uint256 before = vault.totalAssets();
        for (uint256 i; i < 60; ++i) {
            signerKey = 0xBAD + i;
            agentId = _register(vm.addr(signerKey));
            _sandwichedExit(9_000, 0);
        }
        assertEq(positions.positionCount(), 60);
        assertEq(vault.totalAssets(), before);
        assertEq(usdc.balanceOf(address(vault)), before);
    }

    /// @dev The embedded chain's second vault starts agents on real capital, with small caps.
    function test_Finding01_OnTheEmbeddedChainAnAgentTakesAtMostTheSlippageOfItsCap() public {
        _useEmbeddedChainsTerms();
        uint256[5] memory pushes = [uint256(9_000), 320, 290, 100, 40];
        for (uint256 i; i < pushes.length; ++i) {
            for (uint256 wait; wait <= 20 minutes; wait += 20 minutes) {
                uint256 snapshot = vm.snapshotState();
                assertLe(_sandwichedExit(pushes[i], wait), EMBEDDED_CAP * 430 / 10_000);
                vm.revertToState(snapshot);
            }
        }
    }

    function test_Finding01_OnTheEmbeddedChainRepetitionEndsAtTheDrawdownLimit() public {
        _useEmbeddedChainsTerms();
        uint256 lost;
        for (uint256 day; day < 30; ++day) {
            lost += _sandwichedExit(290, 20 minutes);
            skip(1 days);
            _setOraclePrice(thin, 100 * USD);
        }
        assertGt(lost, 0);
        assertLe(lost, EMBEDDED_CAP * 1_500 / 10_000 + EMBEDDED_CAP * 430 / 10_000);
    }

    function test_Finding01_AnAddDoesNotLoosenTheFloorOfThePosition() public {
        ITradeRouter.PositionIntent memory open = _openIntent(nvda, 10_000 * USDC);
        open.maxSlippageBps = 20;
        uint256 id = _submit(open);
        skip(1);
        ITradeRouter.AddToPositionIntent memory add = _addIntent(id, 1 * USDC);
        add.maxSlippageBps = 10_000;
        _try(add);
        add = _addIntent(id, 1 * USDC);
        add.maxSlippageBps = 100;
        _try(add);
        assertEq(positions.getPosition(id).maxSlippageBps, 20);
    }

    function test_Finding01_ASuspendedAgentDoesNotSellForAFraction() public {
        uint256 id = _openAsLooseAsAccepted(19_000 * USDC);
        _setStatus(IAgentRegistry.AgentStatus.Suspended);
        skip(1);
        market.moveTo(address(thin), 5 * USD);
        uint256 before = usdc.balanceOf(address(vault));
        uint256 cost = positions.getPosition(id).usdcCostBasis;
        _try(_reduceIntent(id, 10_000));
        market.moveTo(address(thin), 100 * USD);
        cost -= positions.getPosition(id).usdcCostBasis;
        assertGe(usdc.balanceOf(address(vault)) - before, cost * 95 / 100);
    }

    /// @dev A flash-loaned sandwich around an exit at the default slippage of 1 %.
    function test_Finding02_AKeeperGetsNoMoreThanTheTightFloorOfAnExitInOneTransaction() public {
        uint256 id = _open(thin, 5_000 * USDC);
        _setPrice(thin, 91 * USD);
        skip(5 minutes);
        _setOraclePrice(thin, 91 * USD);
        uint256 value = positions.getPosition(id).tokenAmount * 91 * USD / 1e20;
        market.moveTo(address(thin), 91 * USD * 9_960 / 10_000);
        uint256 before = usdc.balanceOf(address(vault));
        _tryExit(id);
        uint256 sold = value - positions.getPosition(id).tokenAmount * 91 * USD / 1e20;
        assertGe(usdc.balanceOf(address(vault)) - before + 1, sold * 9_950 / 10_000);
    }

    /// @dev The agent adds a little after each price, and the stop waits for the next one.
    function test_Finding03_AnAddDoesNotPostponeAStop() public {
        ITradeRouter.PositionIntent memory open = _openIntent(nvda, 10_000 * USDC);
        open.exits = _ladder(_stop(-500, 10_000));
        uint256 id = _submit(open);
        for (uint256 i = 1; i <= 6; ++i) {
            skip(60);
            _setOraclePrice(nvda, NVDA_PRICE - i * 3 * USD);
            market.moveTo(address(nvda), NVDA_PRICE - i * 3 * USD);
            _try(_addIntent(id, 10_000));
            _try(_addIntent(id, 1 * USDC));
            _tryExit(id);
        }
        assertEq(positions.getPosition(id).tokenAmount, 0);
    }

    function test_Finding03_AnUpdateDoesNotMoveAStopThatIsMet() public {
        ITradeRouter.PositionIntent memory open = _openIntent(nvda, 10_000 * USDC);
        open.exits = _ladder(_stop(-500, 10_000));
        uint256 id = _submit(open);
        _setPrice(nvda, 94 * USD);
        _refuse(
            _updateIntent(id, _ladder(_stop(-1_500, 10_000))),
            abi.encodeWithSelector(ITradeRouter.PendingRuleAlreadyTriggered.selector, id)
        );
    }

    function test_Finding04_TheOperatorClosesForAFailedAgent() public {
        _closeInStatus(IAgentRegistry.AgentStatus.Failed);
    }

    function test_Finding04_TheOperatorClosesForAnExitedAgent() public {
        _closeInStatus(IAgentRegistry.AgentStatus.Exited);
    }

    function test_Finding04_TheOperatorClosesForAGraduatedAgent() public {
        _closeInStatus(IAgentRegistry.AgentStatus.Graduated);
    }

    function test_Finding04_AFailedAgentDoesNotRewriteItsLadder() public {
        uint256 id = _open(nvda, 10_000 * USDC);
        _setStatus(IAgentRegistry.AgentStatus.Failed);
        _refuse(
            _updateIntent(id, _ladder(_stop(-1_900, 10_000))),
            abi.encodeWithSelector(ITradeRouter.AgentNotTradable.selector, agentId)
        );
    }

    /// @dev One hot key sells everything into its own sandwich.
    function test_Finding07_TheOperatorDoesNotForceCloseWithoutAFloor() public {
        uint256 id = _open(thin, 5_000 * USDC);
        _setStatus(IAgentRegistry.AgentStatus.Suspended);
        skip(1);
        market.moveTo(address(thin), 1 * USD);
        uint256 before = usdc.balanceOf(address(vault));
        vm.startPrank(operator);
        (bool isClosed,) = address(router).call(abi.encodeCall(router.forceClose, (id)));
        vm.stopPrank();
        assertFalse(isClosed);
        assertEq(usdc.balanceOf(address(vault)), before);
    }

    function test_Finding10_AStopOfAPositionWithoutSlippageFills() public {
        // The pool is a little cheaper than the oracle, so that a purchase without slippage fills.
        market.moveTo(address(nvda), NVDA_PRICE * 9_985 / 10_000);
        ITradeRouter.PositionIntent memory open = _openIntent(nvda, 10_000 * USDC);
        open.maxSlippageBps = 0;
        uint256 id = _submit(open);
        _setPrice(nvda, 91 * USD);
        _tryExit(id);
        assertEq(positions.getPosition(id).tokenAmount, 0);
    }

    /// @dev The pool has lost most of its depth: a stop sells what the pool takes, again and again.
    function test_Finding10_AStopSellsWhatThePoolTakes() public {
        uint256 id = _open(thin, 5_000 * USDC);
        uint256 held = positions.getPosition(id).tokenAmount;
        market.drain(address(thin));
        market.addLiquidity(address(thin), 100 * USD, 50_000 * USDC);
        _setPrice(thin, 91 * USD);
        skip(5 minutes);
        _setOraclePrice(thin, 91 * USD);
        _tryExit(id);
        assertLt(positions.getPosition(id).tokenAmount, held);
        for (uint256 i; i < 20; ++i) {
            skip(60);
            market.moveTo(address(thin), 91 * USD);
            _setOraclePrice(thin, 91 * USD);
            _tryExit(id);
        }
        assertEq(positions.getPosition(id).tokenAmount, 0);
        assertEq(positions.getPosition(id).nextRuleIndex, 1);
    }

    function test_Finding11_AStopOfOneBpsIsNoStopLoss() public {
        ITradeRouter.PositionIntent memory open = _openIntent(nvda, 10_000 * USDC);
        open.exits = _ladder(_stop(-500, 1), _take(10_000, 10_000));
        _refuse(open, abi.encodeWithSelector(ITradeRouter.ExitRulesOutOfBounds.selector));
    }

    function test_Finding12_ATokenCheaperThanAUsdcUnitIsStoppedOut() public {
        StockToken cheap = _cheap(50);
        ITradeRouter.PositionIntent memory open = _openIntent(cheap, 10_000 * USDC);
        open.exits = _ladder(_stop(-800, 10_000));
        uint256 id = _submit(open);
        _setPrice(cheap, 45);
        skip(5 minutes);
        _setOraclePrice(cheap, 45);
        assertLe(lens.positionPnlBps(id), -800);
        _tryExit(id);
        assertLt(positions.getPosition(id).tokenAmount * 45 / 1e20, 5_000 * USDC);
    }

    function test_Finding12_ATokenOfAFewUsdcUnitsTakesNoProfitOnNoMove() public {
        StockToken cheap = _cheap(199);
        ITradeRouter.PositionIntent memory open = _openIntent(cheap, 10_000 * USDC);
        open.exits = _ladder(_take(2_000, 10_000), _stop(-800, 10_000));
        uint256 id = _submit(open);
        skip(1);
        _setOraclePrice(cheap, 199);
        assertFalse(lens.isTriggerMet(id));
        assertLt(lens.positionPnlBps(id), 100);
    }

    function test_Finding13_TheExecutorDoesNotPayForDust() public {
        uint256 id = _open(nvda, 10_000 * USDC);
        for (uint256 i; i < 50; ++i) {
            _try(_addIntent(id, 10_000));
        }
        assertEq(allocations.tradeCount(agentId), 1);
        skip(1);
        _try(_reduceIntent(id, 1));
        assertEq(positions.getPosition(id).usdcCostBasis > 9_998 * USDC, true);
    }

    /// @dev Loses a tenth of its cap, twice; the limit of the track is a tenth.
    function test_Finding14_ADrawdownBeyondTheLimitSuspendsBuying() public {
        vm.prank(admin);
        router.setKeeperBounty(0, 0);
        for (uint256 i; i < 8 && _try(_openIntent(nvda, 19_000 * USDC)); ++i) {
            uint256 id = positions.positionCount();
            _setPrice(nvda, NVDA_PRICE * 90 / 100);
            _tryExit(id);
            vm.warp((_today() + 2) * DAY);
            _setPrice(nvda, NVDA_PRICE);
        }
        assertLe(-router.lifetimeRealizedPnlUsdc(agentId), int256(CAP / 10 + 20_000 * USDC / 10));
    }

    function test_Finding14_ACapShrinksWithRealizedLosses() public {
        uint256 id = _open(nvda, 19_000 * USDC);
        _setPrice(nvda, NVDA_PRICE * 88 / 100);
        skip(5 minutes);
        _setOraclePrice(nvda, NVDA_PRICE * 88 / 100);
        _tryExit(id);
        uint256 loss = uint256(-router.lifetimeRealizedPnlUsdc(agentId));
        assertGt(loss, 2_000 * USDC);
        vm.warp((_today() + 2) * DAY);
        _setPrice(nvda, NVDA_PRICE);
        _setPrice(tsla, TSLA_PRICE);
        skip(5 minutes);
        _setOraclePrice(nvda, NVDA_PRICE);
        _setOraclePrice(tsla, TSLA_PRICE);
        _open(nvda, 19_000 * USDC);
        _open(tsla, 19_000 * USDC);
        skip(1);
        _try(_addIntent(positions.openPositionId(agentId, address(nvda)), 12_000 * USDC));
        assertLe(allocations.allocationUsed(agentId), CAP - loss);
    }

    /// @dev A deposit raises what one trade may buy, to at most the agent's cap, but it does not pass: it stays for the
    /// holding time, pays both fees, and bears its share of the loss.
    function test_FindingLow_ADepositThatRaisesTheTradeSizeCostsMoreThanTheTradeTakes() public {
        vm.startPrank(admin);
        vault.setFees(10, 10, address(0));
        vault.setLiquidityPolicy(IMandateVault.LiquidityPolicy(0, 1 days, 0, 0, 0));
        usdc.mint(address(this), 2_000_000 * USDC);
        vm.stopPrank();
        _refuse(
            _openIntent(nvda, MAX_TRADE + 1),
            abi.encodeWithSelector(ITradeRouter.ExceedsMaxTradeSize.selector, MAX_TRADE + 1, MAX_TRADE)
        );

        usdc.approve(address(vault), 2_000_000 * USDC);
        uint256 shares = vault.deposit(2_000_000 * USDC, address(this));
        uint256 id = _open(nvda, CAP);
        assertEq(vault.maxRedeem(address(this)), 0);
        vm.expectRevert(abi.encodeWithSelector(IMandateVault.SharesLocked.selector, address(this), 0, shares));
        vault.transfer(investor, shares);

        skip(1);
        _setOraclePrice(nvda, NVDA_PRICE);
        _submit(_reduceIntent(id, 10_000));
        skip(1 days + 1 days / 8);
        vault.redeem(vault.maxRedeem(address(this)), address(this), address(this));
        // The trade could take the policy's slippage of what it was larger, twice.
        uint256 paid = 2_000_000 * USDC - usdc.balanceOf(address(this));
        assertGt(paid, (CAP - MAX_TRADE) * 430 / 10_000);
    }

    function test_FindingLow_AnAgentsExitsDoNotFarmBounties() public {
        for (uint256 i; i < 20; ++i) {
            ITradeRouter.PositionIntent memory open = _openIntent(nvda, 5_000 * USDC);
            open.exits = _ladder(_stop(-1, 10_000));
            if (!_try(open)) break;
            skip(1);
            _setOraclePrice(nvda, NVDA_PRICE);
            _tryExit(positions.positionCount());
            skip(1);
        }
        assertLe(usdc.balanceOf(keeper), 5 * USDC);
    }

    /// @dev The whole day's turnover before midnight, and again after it.
    function test_FindingLow_MidnightDoesNotDoubleTheTurnover() public {
        vm.warp((_today() + 1) * DAY - 10);
        _setOraclePrice(nvda, NVDA_PRICE);
        skip(1);
        _buyAndSellUntilRefused();
        vm.warp((_today() + 1) * DAY + 10);
        _setOraclePrice(nvda, NVDA_PRICE);
        skip(1);
        _buyAndSellUntilRefused();
        uint256 turnover = router.dailyTurnoverUsdc(agentId, _today()) + router.dailyTurnoverUsdc(agentId, _today() - 1);
        assertLe(turnover, MAX_TURNOVER * 101 / 100);
    }

    function _buyAndSellUntilRefused() private {
        for (uint256 i; i < 8 && _try(_openIntent(nvda, 19_000 * USDC)); ++i) {
            skip(1);
            assertTrue(_try(_reduceIntent(positions.positionCount(), 10_000)));
        }
    }

    function _closeInStatus(IAgentRegistry.AgentStatus status) private {
        uint256 id = _open(nvda, 10_000 * USDC);
        skip(1);
        _setStatus(status);
        vm.prank(operator);
        router.forceClose(id);
        assertEq(positions.getPosition(id).tokenAmount, 0);
    }

    /// @return lost How much less the vault is worth afterwards, at the oracle's price
    function _sandwichedExit(uint256 pushBps, uint256 wait) private returns (uint256 lost) {
        uint256 before = vault.totalAssets();
        uint256 id = _openAsLooseAsAccepted(20_000 * USDC);
        if (id == 0) return 0;
        skip(1);
        _setOraclePrice(thin, 100 * USD);
        market.moveTo(address(thin), 100 * USD * (10_000 - pushBps) / 10_000);
        _tryExit(id);
        if (wait != 0) {
            skip(wait / 2);
            _setOraclePrice(thin, 100 * USD);
            _tryExit(id);
            skip(wait / 2);
            _setOraclePrice(thin, 100 * USD);
            _tryExit(id);
        }
        market.moveTo(address(thin), 100 * USD);
        uint256 assets = vault.totalAssets();
        return before > assets ? before - assets : 0;
    }

    /// @dev The terms of the vault `frontier` in devnet/seed-config.ts.
    function _useEmbeddedChainsTerms() private {
        IVaultTrackRegistry.VaultTrackConfig memory config = _policy();
        config.initialAllocation = EMBEDDED_CAP;
        config.maxAllocation = 2 * EMBEDDED_CAP;
        config.maxDrawdownBps = 1_500;
        config.maxTradeSizeBps = 100;
        config.maxDailyTurnoverBps = 2_500;
        config.maxDailyLossBps = 400;
        config.maxStopLossBps = 7_500;
        _setPolicy(config);
        ITradePolicy.Limits memory limits = _defaultLimits();
        limits.exitWideningSeconds = 10;
        limits.maxTwapDeviationBps = 3_000;
        limits.twapWindow = 2;
        limits.maxDeadlineSeconds = 0;
        _setLimits(limits);
        agentId = _register(vm.addr(++signerKey));
    }

    /// @return 0 when the agent may not buy
    function _openAsLooseAsAccepted(uint256 amount) private returns (uint256) {
        ITradeRouter.PositionIntent memory intent = _openIntent(thin, amount);
        intent.exits = _ladder(_stop(-1, 10_000));
        intent.maxSlippageBps = 10_000;
        if (!_try(intent)) {
            intent.maxSlippageBps = 100;
            intent.usdcAmount = 5_000 * USDC;
            if (!_try(intent)) return 0;
        }
        return positions.positionCount();
    }

    function _cheap(uint256 price) private returns (StockToken cheap) {
        cheap = _newToken("CHP", 18);
        _listWithDepth(cheap, price, POOL_DEPTH);
        skip(10 minutes);
        _setOraclePrice(cheap, price);
        skip(1);
    }

    function _tryExit(uint256 id) private {
        vm.prank(keeper);
        (bool success,) = address(router).call(abi.encodeCall(router.executeExit, (id)));
        success;
    }

    function _try(ITradeRouter.PositionIntent memory intent) private returns (bool success) {
        bytes memory signature = _sign(signerKey, _digest(intent));
        vm.prank(executor);
        (success,) = address(router).call(abi.encodeCall(router.openPosition, (intent, signature)));
    }

    function _try(ITradeRouter.AddToPositionIntent memory intent) private returns (bool success) {
        bytes memory signature = _sign(signerKey, _digest(intent));
        vm.prank(executor);
        (success,) = address(router).call(abi.encodeCall(router.addToPosition, (intent, signature)));
    }

    function _try(ITradeRouter.ReducePositionIntent memory intent) private returns (bool success) {
        bytes memory signature = _sign(signerKey, _digest(intent));
        vm.prank(executor);
        (success,) = address(router).call(abi.encodeCall(router.reducePosition, (intent, signature)));
    }
}
