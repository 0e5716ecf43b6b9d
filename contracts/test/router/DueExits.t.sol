// SPDX-License-Identifier: MIT
pragma solidity ^0.8.30;

import {StockToken} from "../../src/embedded/StockToken.sol";
import {IAgentRegistry} from "../../src/interfaces/IAgentRegistry.sol";
import {IPositionManager} from "../../src/interfaces/IPositionManager.sol";
import {ISwapAdapter} from "../../src/interfaces/ISwapAdapter.sol";
import {ITradePolicy} from "../../src/interfaces/ITradePolicy.sol";
import {ITradeRouter} from "../../src/interfaces/ITradeRouter.sol";
import {ITradeRouterLens} from "../../src/interfaces/ITradeRouterLens.sol";
import {ProtocolTest} from "./ProtocolTest.sol";

/// @notice Exits that the pool does not fill at once
contract DueExitsTest is ProtocolTest {
    uint256 private id;
    uint256 private held;

    function setUp() public override {
        super.setUp();
        id = _open(nvda, 20_000 * USDC);
        held = positions.getPosition(id).tokenAmount;
        _setPrice(nvda, 91 * USD);
    }

    function test_AnExitBelowItsFloorIsRecordedAndSellsNothing() public {
        _pool(9_900);
        vm.expectEmit(address(positions));
        emit IPositionManager.PositionExitDue(id, agentId, 2, block.timestamp);
        vm.expectEmit(address(router));
        emit ITradeRouter.ExitDeferred(id, agentId, 2, block.timestamp, 50);
        assertEq(_exit(id), 0);

        assertEq(positions.getPosition(id).tokenAmount, held);
        assertEq(nvda.balanceOf(address(vault)), held);
        assertEq(vault.tokenLedger(address(nvda)), held);
        IPositionManager.DueExit memory due = positions.dueExitOf(id);
        assertEq(due.since, block.timestamp);
        assertEq(due.seenAt, block.timestamp);
        assertEq(due.ruleIndex, 2);
        assertEq(due.tokensLeft, 0);
        assertEq(allocations.tradeCount(agentId), 1);
    }

    function test_AgainAMomentLaterItIsAnError() public {
        _pool(9_900);
        uint256 since = block.timestamp;
        _exit(id);
        skip(59);
        uint256 slippage = 50 + uint256(250) * 59 / 900;
        vm.expectRevert(abi.encodeWithSelector(ITradeRouter.ExitFloorNotMet.selector, id, slippage, since));
        router.executeExit(id);
        skip(1);
        _exit(id);
        assertEq(positions.dueExitOf(id).since, since);
        assertEq(positions.dueExitOf(id).seenAt, since + 60);
    }

    function test_TheFloorWidensUntilThePoolFills() public {
        _pool(9_850);
        uint256 since = block.timestamp;
        _exit(id);
        uint256 sold;
        for (uint256 i; i < 15 && sold == 0; ++i) {
            skip(60);
            _exit(id);
            sold = held - positions.getPosition(id).tokenAmount;
        }
        assertEq(block.timestamp - since, 7 minutes);
    }

    function test_ARecordThatNobodyConfirmedStartsOver() public {
        _pool(9_900);
        _exit(id);
        skip(15 minutes + 1);
        uint256 since = block.timestamp;
        _exit(id);
        assertEq(positions.dueExitOf(id).since, since);
        assertEq(positions.getPosition(id).tokenAmount, held);
    }

    function test_ARecordIsGoodForItsWholeTime() public {
        _pool(9_900);
        _exit(id);
        skip(15 minutes);
        _exit(id);
        assertEq(positions.getPosition(id).tokenAmount, 0);
    }

    function test_APriceThatRecoversIsNotDue() public {
        _pool(9_900);
        _exit(id);
        _setPrice(nvda, 99 * USD);
        vm.expectRevert(abi.encodeWithSelector(ITradeRouter.TriggerNotMet.selector, id));
        router.executeExit(id);
    }

    function test_ARecordOfWhatSoldNothingHoldsUpNoLaterAdd() public {
        _pool(9_900);
        _exit(id);
        _setPrice(nvda, 99 * USD);
        assertEq(positions.dueExitOf(id).tokensLeft, 0);
        assertGt(_submit(_addIntent(id, 1_000 * USDC)), 0);
    }

    function test_HoldsTheFloorWhateverTheVenueReports() public {
        vm.mockCall(
            address(adapter),
            abi.encodeWithSelector(ISwapAdapter.sellTokenUpTo.selector),
            abi.encode(held, held * 90 / 1e14)
        );
        vm.expectPartialRevert(ITradeRouter.SlippageExceeded.selector);
        router.executeExit(id);
    }

    function test_ARefusalOfThePolicyIsRecordedToo() public {
        ITradePolicy.Limits memory limits = _wideLimits();
        limits.maxSpotDeviationBps = 300;
        _setLimits(limits);
        _pool(9_500);
        _exit(id);
        assertEq(positions.dueExitOf(id).since, block.timestamp);
        (uint256 spot,) = adapter.pricesOf(address(nvda), 0);
        vm.expectRevert(
            abi.encodeWithSelector(ITradePolicy.SpotPriceDeviation.selector, address(nvda), spot, 91 * USD, 300)
        );
        router.executeExit(id);
    }

    // Partial fills

    function test_APartialFillLeavesTheRestDue() public {
        uint256 sold = _partialExit();
        IPositionManager.Position memory position = positions.getPosition(id);
        assertEq(position.tokenAmount, held - sold);
        assertEq(position.nextRuleIndex, 0);
        assertEq(positions.dueExitOf(id).tokensLeft, held - sold);
        assertEq(positions.dueExitOf(id).ruleIndex, 2);
        assertEq(nvda.balanceOf(address(vault)), held - sold);
        assertEq(vault.tokenLedger(address(nvda)), held - sold);
        assertEq(allocations.allocationUsed(agentId), position.usdcCostBasis);
        assertEq(router.dailyRealizedPnlUsdc(agentId, _today()), position.realizedPnlUsdc);
        assertEq(allocations.tradeCount(agentId), 2);
    }

    function test_NoUnitOfAPartialFillIsSoldBelowTheFloor() public {
        uint256 before = usdc.balanceOf(address(vault));
        uint256 sold = _partialExit();
        uint256 kept = usdc.balanceOf(address(vault)) - before;
        assertGe(kept + 1, sold * 91 * USD / 1e20 * 9_950 / 10_000);
    }

    function test_TheRestIsSoldWhateverThePriceIsThen() public {
        _partialExit();
        _setPrice(nvda, 105 * USD);
        _deepen();
        assertTrue(lens.isTriggerMet(id));
        _exit(id);
        IPositionManager.Position memory position = positions.getPosition(id);
        assertEq(position.tokenAmount, 0);
        assertEq(position.nextRuleIndex, 1);
        assertEq(positions.dueExitOf(id).since, 0);
    }

    function test_ARuleOfAShareIsConsumedWhenItsShareIsSold() public {
        _setPrice(nvda, 111 * USD);
        _thinOut(111 * USD);
        _exit(id);
        uint256 left = positions.dueExitOf(id).tokensLeft;
        assertGt(left, 0);
        assertEq(held - positions.getPosition(id).tokenAmount + left, held / 2);
        _setPrice(nvda, 111 * USD);
        _deepen();
        _exit(id);
        assertEq(positions.getPosition(id).tokenAmount, held - held / 2);
        assertEq(positions.getPosition(id).nextRuleIndex, 1);
    }

    function test_AnExitInProgressComesBeforeAddsAndUpdates() public {
        _partialExit();
        _setPrice(nvda, 99 * USD);
        _refuse(_addIntent(id, 100 * USDC), abi.encodeWithSelector(ITradeRouter.ExitInProgress.selector, id));
        _refuse(
            _updateIntent(id, _ladder(_stop(-1_500, 10_000))),
            abi.encodeWithSelector(ITradeRouter.ExitInProgress.selector, id)
        );
    }

    function test_AReduceTakesFromTheRest() public {
        _partialExit();
        _setPrice(nvda, 91 * USD);
        _deepen();
        _submit(_reduceIntent(id, 5_000));
        assertEq(positions.dueExitOf(id).tokensLeft, positions.getPosition(id).tokenAmount);
        _submit(_reduceIntent(id, 10_000));
        assertEq(positions.dueExitOf(id).since, 0);
    }

    function test_ABatchTellsPartialAndDeferredExits() public {
        uint256[] memory ids = new uint256[](1);
        ids[0] = id;
        _pool(9_900);
        (ITradeRouter.ExitStatus[] memory statuses,) = router.executeExits(ids);
        assertEq(uint8(statuses[0]), uint8(ITradeRouter.ExitStatus.Deferred));
        _thinOut(91 * USD);
        (statuses,) = router.executeExits(ids);
        assertEq(uint8(statuses[0]), uint8(ITradeRouter.ExitStatus.PartlyExecuted));
    }

    function test_AKeeperIsPaidForWhatIsSold() public {
        uint256 before = usdc.balanceOf(address(vault));
        _partialExit();
        uint256 kept = usdc.balanceOf(address(vault)) - before;
        uint256 bounty = usdc.balanceOf(keeper);
        assertGt(bounty, 0);
        assertLe(bounty, (kept + bounty) / 1_000);
    }

    // Dust: a pool takes its fee in whole units of the token

    /// @dev A rest that no pool buys at the floor would block the stop after it forever.
    function testFuzz_AnExitSellsAnyDustOfACoarseToken(uint256 units, uint256 price) public {
        uint256 dust = _dust(units);
        _setPrice(tsla, bound(price, TSLA_PRICE * 2, TSLA_PRICE * 50));
        uint256 before = positions.getPosition(dust).tokenAmount;
        uint256 floor = lens.exitStateOf(dust).floorUsdc;
        assertGe(_exit(dust) + 1, floor);
        assertEq(positions.getPosition(dust).tokenAmount, before - before / 10_000);
        assertEq(positions.getPosition(dust).nextRuleIndex, 1);
    }

    function testFuzz_AReduceSellsAnyDustOfACoarseToken(uint256 units, uint256 price) public {
        uint256 dust = _dust(units);
        _setPrice(tsla, bound(price, TSLA_PRICE * 2, TSLA_PRICE * 50));
        uint256 before = positions.getPosition(dust).tokenAmount;
        _submit(_reduceIntent(dust, 1));
        assertEq(positions.getPosition(dust).tokenAmount, before - before / 10_000);
    }

    /// @dev Here a unit is worth a hundred dollars, which no sale gives away. The pool keeps one of three for its fee.
    function test_Skin10_AnExitThatThePoolRoundsTooFarSellsNothingAndIsDue() public {
        StockToken shares = _newToken("SHRS", 0);
        _listWithDepth(shares, 100 * USD, 100_000 * USDC);
        ITradeRouter.PositionIntent memory open = _openIntent(shares, 310 * USDC);
        open.maxSlippageBps = 1_000;
        uint256 few = _submit(open);
        assertEq(positions.getPosition(few).tokenAmount, 3);
        uint256 before = vault.idleAssets();
        _setPrice(shares, 125 * USD);
        assertEq(_exit(few), 0);
        assertTrue(positions.positionStateOf(few).hasDueExit);
        assertEq(positions.getPosition(few).tokenAmount, 3);
        assertEq(shares.balanceOf(address(vault)), 3);
        assertEq(vault.idleAssets(), before);
    }

    // What the lens shows

    function test_TheLensShowsWhatAnExitWouldDo() public {
        ITradeRouterLens.ExitState memory state = lens.exitStateOf(id);
        assertTrue(state.isDue);
        assertEq(state.ruleIndex, 2);
        assertEq(state.dueSince, 0);
        assertEq(state.tokensToSell, held);
        assertEq(state.slippageBps, 50);
        assertEq(state.floorUsdc, (held - 1) * (91 * USD * 9_950 / 10_000) / 1e20);

        _pool(9_900);
        _exit(id);
        skip(450);
        state = lens.exitStateOf(id);
        assertEq(state.dueSince, block.timestamp - 450);
        assertEq(state.slippageBps, 175);
        skip(451);
        assertEq(lens.exitStateOf(id).dueSince, 0);

        uint256 sold = _partialExit();
        assertEq(lens.exitStateOf(id).tokensToSell, held - sold);
        _setPrice(nvda, 91 * USD);
        _deepen();
        _exit(id);
        assertFalse(lens.exitStateOf(id).isDue);
    }

    // Force closes

    function test_AForceCloseSellsWhatThePoolTakes() public {
        _setStatus(IAgentRegistry.AgentStatus.Failed);
        _thinOut(91 * USD);
        skip(5 minutes);
        vm.prank(operator);
        router.forceClose(id);
        uint256 left = positions.getPosition(id).tokenAmount;
        assertGt(left, 0);
        assertLt(left, held);
        assertEq(nvda.balanceOf(address(vault)), left);
        _setPrice(nvda, 91 * USD);
        _deepen();
        skip(5 minutes);
        vm.prank(operator);
        router.forceClose(id);
        assertEq(positions.getPosition(id).tokenAmount, 0);
    }

    function test_AForceCloseHasThePolicysFloorFromTheStart() public {
        _setStatus(IAgentRegistry.AgentStatus.Suspended);
        skip(5 minutes);
        _pool(9_690);
        vm.prank(operator);
        vm.expectRevert(abi.encodeWithSelector(ITradeRouter.ExitFloorNotMet.selector, id, 300, 0));
        router.forceClose(id);
        _pool(9_800);
        vm.prank(operator);
        router.forceClose(id);
        assertEq(positions.getPosition(id).tokenAmount, 0);
    }

    /// @dev A pool of 20,000 USDC, which takes a part of the position at the floor.
    function _partialExit() private returns (uint256 sold) {
        _thinOut(91 * USD);
        uint256 before = positions.getPosition(id).tokenAmount;
        _exit(id);
        sold = before - positions.getPosition(id).tokenAmount;
        assertGt(sold, 0);
        assertLt(sold, before);
    }

    function _thinOut(uint256 price) private {
        market.moveTo(address(nvda), price);
        market.drain(address(nvda));
        market.addLiquidity(address(nvda), price, 200_000 * USDC);
    }

    function _deepen() private {
        (uint256 price,,) = oracle.peekPrice(address(nvda));
        market.addLiquidity(address(nvda), price, POOL_DEPTH);
    }

    /// @dev A position of which one part in ten thousand is a few units.
    function _dust(uint256 units) private returns (uint256) {
        ITradeRouter.PositionIntent memory open = _openIntent(tsla, bound(units, 1, 500) * 25_100);
        open.exits = _ladder(_take(5_000, 1), _stop(-800, 10_000));
        return _submit(open);
    }

    function _pool(uint256 bps) private {
        market.moveTo(address(nvda), 91 * USD * bps / 10_000);
    }
}
