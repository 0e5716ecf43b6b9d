// SPDX-License-Identifier: MIT
pragma solidity ^0.8.30;

import {IAgentRegistry} from "../../src/interfaces/IAgentRegistry.sol";
import {IAllocationManager} from "../../src/interfaces/IAllocationManager.sol";
import {IPromotionCriteria} from "../../src/interfaces/IPromotionCriteria.sol";
import {ITradeRouter} from "../../src/interfaces/ITradeRouter.sol";
import {IVaultTrackRegistry} from "../../src/interfaces/IVaultTrackRegistry.sol";
import {ProtocolTest} from "../router/ProtocolTest.sol";

/// @notice From paper to real capital: open to anybody once the criteria hold
contract PromotionTest is ProtocolTest {
    uint256 private constant PERIOD = 7 days;
    uint256 private constant FUNDED_CAP = 100_000 * USDC;

    IPromotionCriteria private criteria;

    function setUp() public override {
        super.setUp();
        IVaultTrackRegistry.VaultTrackConfig memory config = _policy();
        config.evaluationPeriod = PERIOD;
        config.minTrades = 4;
        config.promotionScore = 70;
        _setPolicy(config);
        config.trackId = 1;
        config.initialAllocation = FUNDED_CAP;
        config.maxAllocation = FUNDED_CAP;
        _setPolicy(config);
        vm.startPrank(admin);
        tracks.setVaultTrackCapitalMode(address(vault), 0, 0);
        tradePolicy.setLimits(address(vault), 1, _wideLimits());
        vm.stopPrank();
        agentId = _register(vm.addr(signerKey));
        criteria = IPromotionCriteria(agents.promotionCriteria());
    }

    function test_AnybodyPromotesAnAgentThatProvedItselfOnPaper() public {
        _earn();
        IPromotionCriteria.Criteria memory c = criteria.criteriaOf(agentId);
        assertTrue(c.isEligible);
        assertEq(c.trades, 4);
        assertEq(c.toTrack, 1);
        assertEq(c.openPositions, 0);
        assertGe(c.score, 70);

        vm.expectEmit(address(agents));
        emit IAgentRegistry.AgentPromoted(agentId, address(vault), 0, 1);
        vm.prank(makeAddr("anybody"));
        agents.promoteAgent(agentId, 1);
        assertEq(agents.trackOf(agentId), 1);
        assertEq(allocations.capitalModeOf(agentId), 1);
        assertEq(allocations.allocationCap(agentId), FUNDED_CAP);
        assertEq(allocations.totalAgentCaps(address(vault)), CAP + FUNDED_CAP);
        assertTrue(agents.isPayoutEligible(agentId));

        uint256 before = usdc.balanceOf(address(vault));
        _open(nvda, 1_000 * USDC);
        assertEq(usdc.balanceOf(address(vault)), before - 1_000 * USDC);
        assertEq(positions.capitalModeOf(positions.positionCount()), 1);
    }

    function test_APromotionStartsANewRecordAndKeepsTheOldOne() public {
        _earn();
        int256 pnl = router.lifetimeRealizedPnlUsdc(agentId);
        uint256 turnover = allocations.lifetimeTurnoverUsdc(agentId);
        uint256 trades = allocations.tradeCount(agentId);
        int256 today = router.dailyRealizedPnlUsdc(agentId, _today());
        agents.promoteAgent(agentId, 1);

        IAllocationManager.TrackRecord memory done = allocations.trackRecordOf(agentId);
        assertEq(done.enteredAt, block.timestamp);
        assertEq(done.trades, 0);
        assertEq(done.realizedPnl, 0);
        assertEq(done.peakRealizedPnl, 0);
        assertEq(done.worstDrawdown, 0);
        assertEq(lens.peakEquityUsdc(agentId), FUNDED_CAP);
        assertEq(lens.currentEquityUsdc(agentId), FUNDED_CAP);
        assertEq(router.lifetimeRealizedPnlUsdc(agentId), pnl);
        assertEq(allocations.lifetimeTurnoverUsdc(agentId), turnover);
        assertEq(allocations.tradeCount(agentId), trades);
        assertEq(router.dailyRealizedPnlUsdc(agentId, _today()), today);

        vm.warp((_today() + 1) * DAY);
        _setPrice(nvda, NVDA_PRICE);
        _submit(_reduceIntent(_open(nvda, 1_000 * USDC), 10_000));
        int256 loss = router.dailyRealizedPnlUsdc(agentId, _today());
        assertLt(loss, 0);
        assertEq(allocations.trackRecordOf(agentId).realizedPnl, loss);
        assertEq(router.lifetimeRealizedPnlUsdc(agentId), pnl + loss);
        assertEq(allocations.effectiveCapUsdc(agentId), FUNDED_CAP - uint256(-loss));
    }

    function test_TooFewTrades() public {
        skip(PERIOD);
        _refusePromotion(abi.encodeWithSelector(IPromotionCriteria.TooFewTrades.selector, agentId, 0, 4));
    }

    function test_ThePeriodIsNotOver() public {
        uint256 endsAt = block.timestamp + PERIOD;
        _win(10);
        _win(10);
        _refusePromotion(abi.encodeWithSelector(IPromotionCriteria.EvaluationPeriodNotOver.selector, agentId, endsAt));
        vm.warp(endsAt);
        agents.promoteAgent(agentId, 1);
    }

    function test_TheScoreIsTooLow() public {
        _win(1);
        _win(1);
        skip(PERIOD);
        uint256 score = criteria.scoreOf(agentId);
        assertGt(score, 40);
        _refusePromotion(abi.encodeWithSelector(IPromotionCriteria.ScoreTooLow.selector, agentId, score, 70));
    }

    function test_TheDrawdownLimitWasBreached() public {
        for (uint256 i; i < 3; ++i) {
            uint256 id = _open(nvda, 19_000 * USDC);
            _setPrice(nvda, NVDA_PRICE * 90 / 100);
            _submit(_reduceIntent(id, 10_000));
            vm.warp((_today() + 2) * DAY);
            _setPrice(nvda, NVDA_PRICE);
        }
        skip(PERIOD);
        IPromotionCriteria.Criteria memory c = criteria.criteriaOf(agentId);
        assertGt(c.drawdownBps, 1_000);
        _refusePromotion(
            abi.encodeWithSelector(IPromotionCriteria.DrawdownLimitBreached.selector, agentId, c.drawdownBps, 1_000)
        );
    }

    /// @dev The loss of one day beyond the limit, more than made good on other days.
    function test_TheDailyLossLimitWasBreached() public {
        IVaultTrackRegistry.VaultTrackConfig memory config = tracks.getVaultTrackConfig(address(vault), 0);
        config.maxDailyLossBps = 100;
        _setPolicy(config);
        uint256 id = _open(nvda, 19_000 * USDC);
        _setPrice(nvda, NVDA_PRICE * 96 / 100);
        _submit(_reduceIntent(id, 10_000));
        uint256 loss = uint256(-router.dailyRealizedPnlUsdc(agentId, _today()));
        vm.warp((_today() + 2) * DAY);
        _setPrice(nvda, NVDA_PRICE);
        _win(30);
        _win(1);
        skip(PERIOD);
        _refusePromotion(
            abi.encodeWithSelector(IPromotionCriteria.DailyLossLimitBreached.selector, agentId, loss, CAP / 100)
        );
    }

    function test_AnOpenPositionOnPaperBlocks() public {
        _earn();
        uint256 id = _open(nvda, 1_000 * USDC);
        _refusePromotion(abi.encodeWithSelector(IPromotionCriteria.OpenPositionsOfOtherMode.selector, agentId, 1));
        skip(1);
        _submit(_reduceIntent(id, 10_000));
        agents.promoteAgent(agentId, 1);
    }

    function test_TheOperatorCannotPromoteWithoutTheCriteriaEither() public {
        vm.prank(operator);
        vm.expectRevert(abi.encodeWithSelector(IPromotionCriteria.TooFewTrades.selector, agentId, 0, 4));
        agents.promoteAgent(agentId, 1);
    }

    function test_TheVaultsAssetsBoundTheSumOfCaps() public {
        _earn();
        uint256 assets = CAP + FUNDED_CAP - 1;
        vm.mockCall(address(vault), abi.encodeWithSignature("totalAssets()"), abi.encode(assets));
        _refusePromotion(
            abi.encodeWithSelector(
                IAllocationManager.CapsExceedAssets.selector, address(vault), CAP + FUNDED_CAP, assets
            )
        );
    }

    function test_ARegistrationOnRealCapitalIsBoundToo() public {
        vm.prank(admin);
        tracks.setVaultTrackCapitalMode(address(vault), 0, 1);
        uint256 free = DEPOSITED / CAP - 1;
        for (uint256 i; i < free; ++i) {
            _register(owner);
        }
        vm.prank(admin);
        vm.expectRevert(
            abi.encodeWithSelector(
                IAllocationManager.CapsExceedAssets.selector, address(vault), DEPOSITED + CAP, DEPOSITED
            )
        );
        agents.registerAgent(owner, address(vault), "Momentum", "ipfs://agent", owner, false, 0);
    }

    /// @dev Half of the assets leave: every cap counts half.
    function test_CapsCountInProportionWhileTheyExceedTheAssets() public {
        vm.prank(admin);
        tracks.setVaultTrackCapitalMode(address(vault), 0, 1);
        for (uint256 i = 1; i < DEPOSITED / CAP; ++i) {
            agentId = _register(vm.addr(signerKey));
        }
        assertEq(allocations.effectiveCapUsdc(agentId), CAP);
        vm.prank(address(router));
        vault.pullAssetsForTrade(address(1), DEPOSITED / 2);
        assertEq(allocations.effectiveCapUsdc(agentId), CAP / 2);
        _open(nvda, 9_000 * USDC);
        _open(tsla, 9_000 * USDC);
        _refuse(
            _addIntent(1, 8_000 * USDC),
            abi.encodeWithSelector(
                ITradeRouter.ExceedsAllocationCap.selector,
                agentId,
                26_000 * USDC,
                allocations.effectiveCapUsdc(agentId)
            )
        );
    }

    function test_APausedRegistryPromotesNobody() public {
        _earn();
        _pauseRegistry();
        vm.expectRevert(abi.encodeWithSignature("EnforcedPause()"));
        agents.promoteAgent(agentId, 1);
    }

    function test_WithoutCriteriaNobodyIsPromoted() public {
        vm.prank(admin);
        vm.expectRevert(IAgentRegistry.ZeroAddress.selector);
        agents.setPromotionCriteria(address(0));
    }

    function test_ThePromoterPaysTheFee() public {
        _earn();
        vm.startPrank(admin);
        fees.setPromotionFee(address(vault), 0, 1, 5 * USDC);
        usdc.mint(address(this), 5 * USDC);
        usdc.mint(owner, 5 * USDC);
        vm.stopPrank();
        vm.prank(owner);
        usdc.approve(address(fees), 5 * USDC);
        usdc.approve(address(fees), 5 * USDC);
        agents.promoteAgent(agentId, 1);
        assertEq(usdc.balanceOf(address(this)), 0);
        assertEq(usdc.balanceOf(owner), 5 * USDC);
    }

    function test_TheScoreCountsReturnAndDrawdown() public {
        assertEq(criteria.scoreOf(agentId), 0);
        uint256 id = _open(nvda, 10_000 * USDC);
        _setPrice(nvda, 110 * USD);
        _submit(_reduceIntent(id, 10_000));
        assertEq(criteria.scoreOf(agentId), 0);
        _setPrice(nvda, NVDA_PRICE);
        uint256 returnBps = uint256(router.lifetimeRealizedPnlUsdc(agentId)) * 10_000 / CAP;
        assertEq(criteria.scoreOf(agentId), 60 * returnBps / 500 + 40);

        vm.warp((_today() + 2) * DAY);
        _setPrice(nvda, 100 * USD);
        id = _open(nvda, 10_000 * USDC);
        _setPrice(nvda, 95 * USD);
        _submit(_reduceIntent(id, 10_000));
        returnBps = uint256(router.lifetimeRealizedPnlUsdc(agentId)) * 10_000 / CAP;
        IPromotionCriteria.Criteria memory c = criteria.criteriaOf(agentId);
        assertGt(c.drawdownBps, 90);
        assertEq(c.score, 60 * returnBps / 500 + 40 * (1_000 - c.drawdownBps) / 1_000);
    }

    function _earn() private {
        _win(20);
        _win(10);
        skip(PERIOD);
        _setOraclePrice(nvda, NVDA_PRICE);
    }

    /// @dev Two trades that earn about `percent` of 10,000 USDC.
    function _win(uint256 percent) private {
        uint256 id = _open(nvda, 10_000 * USDC);
        _setPrice(nvda, NVDA_PRICE * (100 + percent) / 100);
        _submit(_reduceIntent(id, 10_000));
        _setPrice(nvda, NVDA_PRICE);
        skip(1);
    }

    function _refusePromotion(bytes memory error) private {
        vm.expectRevert(error);
        agents.promoteAgent(agentId, 1);
    }
}
