// SPDX-License-Identifier: MIT
pragma solidity ^0.8.30;

import {Vm} from "forge-std/Vm.sol";
import {StockToken} from "../../src/embedded/StockToken.sol";
import {IAgentRegistry} from "../../src/interfaces/IAgentRegistry.sol";
import {IOwnerControls} from "../../src/interfaces/IOwnerControls.sol";
import {ITradePolicy} from "../../src/interfaces/ITradePolicy.sol";
import {ITradeRouter} from "../../src/interfaces/ITradeRouter.sol";
import {ITradeRouterLens} from "../../src/interfaces/ITradeRouterLens.sol";
import {IVaultTrackRegistry} from "../../src/interfaces/IVaultTrackRegistry.sol";
import {OwnerTest} from "./OwnerTest.sol";

contract CloseAllTest is OwnerTest {
    uint256 private constant PRICE = 100 * USD;

    StockToken[] private stocks;

    function test_AnybodySellsAWholePositionOnceTheOwnerClosesAll() public {
        uint256 id = _open(nvda, 10_000 * USDC);
        skip(1);
        vm.prank(keeper);
        vm.expectRevert(abi.encodeWithSelector(ITradeRouter.TriggerNotMet.selector, id));
        router.executeExit(id);
        vm.expectEmit(address(controls));
        emit IOwnerControls.CloseAllStarted(agentId, owner, REDUCE_ONLY, block.timestamp);
        _closeAll();

        uint256 held = positions.getPosition(id).tokenAmount;
        uint256 before = usdc.balanceOf(address(vault));
        vm.recordLogs();
        uint256 kept = _exit(id);
        (uint256 sold, uint256 out, uint256 bounty, uint256 left) = _lastSale();
        assertEq(sold, held);
        assertEq(out, kept);
        assertEq(left, 0);
        assertEq(usdc.balanceOf(address(vault)), before + kept);
        assertEq(usdc.balanceOf(keeper), bounty);
        assertEq(positions.openPositionCountByAgent(agentId), 0);
        assertEq(allocations.allocationUsed(agentId), 0);
        assertEq(router.lifetimeRealizedPnlUsdc(agentId), positions.realizedPnlUsdc(id));
    }

    function test_TheAgentBuysNothingMeanwhile() public {
        uint256 id = _open(nvda, 10_000 * USDC);
        skip(1);
        _closeAll();
        bytes memory refusal = abi.encodeWithSelector(ITradeRouter.MandateStopsBuying.selector, agentId, REDUCE_ONLY, 0);
        _refuse(_openIntent(tsla, 1_000 * USDC), refusal);
        _refuse(_addIntent(id, 1_000 * USDC), refusal);
        _submit(_reduceIntent(id, 5_000));
        _submit(_updateIntent(id, _ladder(_stop(-100, 10_000))));
        _exit(id);
        assertEq(positions.openPositionCountByAgent(agentId), 0);
    }

    /// @dev While the market is shut nobody sells, so nobody may find the floor wide open afterwards.
    function test_TheFloorWidensFromTheFirstAttemptAtAFreshPriceAndNotFromTheMessage() public {
        uint256 id = _open(nvda, 10_000 * USDC);
        skip(1);
        _closeAll();
        skip(60 hours);
        vm.expectRevert();
        router.executeExit(id);
        _setOraclePrice(nvda, PRICE);
        market.moveTo(address(nvda), PRICE * 9_850 / 10_000);
        assertEq(lens.exitStateOf(id).slippageBps, 50);
        uint256 since = block.timestamp;
        router.executeExit(id);
        assertEq(positions.dueExitOf(id).since, since);
        vm.expectRevert(abi.encodeWithSelector(ITradeRouter.ExitFloorNotMet.selector, id, 50, since));
        router.executeExit(id);
        skip(450);
        _closeAll();
        ITradeRouterLens.ExitState memory state = lens.exitStateOf(id);
        assertTrue(state.isDue);
        assertTrue(lens.isTriggerMet(id));
        assertEq(state.ruleIndex, lens.CLOSE_ALL_RULE());
        assertEq(state.dueSince, since);
        assertEq(state.slippageBps, 175);
        assertEq(state.tokensToSell, positions.getPosition(id).tokenAmount);
        _exit(id);
        assertFalse(lens.exitStateOf(id).isDue);
        assertFalse(lens.isTriggerMet(id));
    }

    /// @dev An owner who ends a close all and starts another would keep the floor tight for ever.
    function test_ClosingAgainAndAgainPostponesNoStopThatIsDue() public {
        uint256 id = _open(nvda, 10_000 * USDC);
        _setPrice(nvda, 91 * USD);
        market.moveTo(address(nvda), 91 * USD * 9_850 / 10_000);
        router.executeExit(id);
        uint256 since = block.timestamp;
        assertEq(positions.dueExitOf(id).since, since);
        for (uint256 i = 1; positions.getPosition(id).tokenAmount != 0; ++i) {
            assertLt(i, 6, "postponed");
            skip(2 minutes);
            _setOraclePrice(nvda, 91 * USD);
            _setMandate(_mandate(TRADE));
            _closeAll();
            assertEq(lens.exitStateOf(id).dueSince, since);
            assertEq(lens.exitStateOf(id).ruleIndex, lens.CLOSE_ALL_RULE());
            router.executeExit(id);
        }
        assertEq(positions.openPositionCountByAgent(agentId), 0);
    }

    /// @dev A rule that becomes due meanwhile has no tighter floor than the close all, and leaves its record to the exit.
    function test_ARuleThatBecomesDueMeanwhileDoesNotTightenTheFloor() public {
        uint256 id = _open(nvda, 10_000 * USDC);
        skip(1);
        _closeAll();
        uint256 since = block.timestamp;
        market.moveTo(address(nvda), PRICE * 9_850 / 10_000);
        router.executeExit(id);
        skip(10 minutes);
        _setPrice(nvda, 91 * USD);
        market.moveTo(address(nvda), 91 * USD * 9_850 / 10_000);
        assertEq(lens.exitStateOf(id).dueSince, since);
        _exit(id);
        assertEq(positions.getPosition(id).tokenAmount, 0);
        assertEq(positions.dueExitOf(id).since, 0);
    }

    function test_NothingIsEverSoldBelowThePolicysFloor() public {
        uint256 id = _open(nvda, 10_000 * USDC);
        _closeAll();
        market.moveTo(address(nvda), PRICE * 9_690 / 10_000);
        uint256 since = block.timestamp;
        for (uint256 i; i < 3; ++i) {
            router.executeExit(id);
            skip(10 minutes);
        }
        router.executeExit(id);
        vm.expectRevert(abi.encodeWithSelector(ITradeRouter.ExitFloorNotMet.selector, id, 300, since));
        router.executeExit(id);
        ITradePolicy.Limits memory limits = _wideLimits();
        limits.maxSpotDeviationBps = 300;
        _setLimits(limits);
        (uint256 spot,) = adapter.pricesOf(address(nvda), 0);
        vm.expectRevert(
            abi.encodeWithSelector(ITradePolicy.SpotPriceDeviation.selector, address(nvda), spot, PRICE, 300)
        );
        router.executeExit(id);
    }

    function test_AnExitThatIsPartlySoldGoesOnAsACloseAll() public {
        uint256 id = _open(nvda, 20_000 * USDC);
        _setPrice(nvda, 91 * USD);
        _thinOut(nvda, 91 * USD, 200_000 * USDC);
        _exit(id);
        assertGt(positions.dueExitOf(id).tokensLeft, 0);
        _closeAll();
        market.addLiquidity(address(nvda), 91 * USD, POOL_DEPTH);
        market.moveTo(address(nvda), 91 * USD);
        _exit(id);
        assertEq(positions.getPosition(id).tokenAmount, 0);
        assertEq(positions.dueExitOf(id).since, 0);
    }

    function test_AMandateInModeTradeEndsIt() public {
        uint256 id = _open(nvda, 10_000 * USDC);
        skip(1);
        _closeAll();
        _setMandate(_mandate(REDUCE_ONLY));
        assertGt(controls.mandateOf(agentId).closingSince, 0);
        vm.expectEmit(address(controls));
        emit IOwnerControls.CloseAllEnded(agentId, owner);
        _setMandate(_mandate(TRADE));
        assertEq(controls.mandateOf(agentId).closingSince, 0);
        vm.expectRevert(abi.encodeWithSelector(ITradeRouter.TriggerNotMet.selector, id));
        router.executeExit(id);
        _submit(_addIntent(id, 1_000 * USDC));
    }

    function test_PositionsOnPaperAreClosedToo() public {
        vm.prank(admin);
        tracks.setVaultTrackCapitalMode(address(vault), 0, uint8(IVaultTrackRegistry.CapitalMode.Simulated));
        agentId = _register(vm.addr(signerKey));
        uint256 id = _open(nvda, 10_000 * USDC);
        skip(1);
        _closeAll();
        vm.recordLogs();
        _exit(id);
        (uint256 sold,, uint256 bounty, uint256 left) = _lastSale();
        assertGt(sold, 0);
        assertEq(bounty + left, 0);
        assertEq(usdc.balanceOf(address(vault)), DEPOSITED);
        assertEq(positions.openPositionCountByAgent(agentId), 0);
    }

    function test_ASuspendedAndAFailedAgentIsClosedToo() public {
        uint256 id = _open(nvda, 10_000 * USDC);
        _open(tsla, 10_000 * USDC);
        skip(1);
        _setStatus(IAgentRegistry.AgentStatus.Suspended);
        _closeAll();
        _exit(id);
        _setStatus(IAgentRegistry.AgentStatus.Failed);
        _exit(id + 1);
        assertEq(positions.openPositionCountByAgent(agentId), 0);
    }

    /// @dev Twenty positions in pools that take a tenth of one at a time; somebody arbitrages each pool back within a
    /// minute. One price is stale and one pool is empty for a while.
    function test_TwentyPositionsAreClosedInThinPoolsAndEachIsReported() public {
        uint256[] memory ids = _openTwenty();
        uint256[] memory held = new uint256[](20);
        for (uint256 i; i < 20; ++i) {
            held[i] = positions.getPosition(ids[i]).tokenAmount;
            _thinOut(stocks[i], PRICE, 20_000 * USDC);
        }
        market.drain(address(stocks[4]));
        vm.prank(admin);
        vault.setMaxPriceAge(10 minutes);
        _closeAll();

        uint256 rounds;
        uint256 sales;
        while (positions.openPositionCountByAgent(agentId) != 0) {
            assertLt(++rounds, 60);
            skip(60);
            for (uint256 i; i < 20; ++i) {
                if (i != 7) _setOraclePrice(stocks[i], PRICE);
                if (i != 4 || rounds > 20) market.moveTo(address(stocks[i]), PRICE);
            }
            if (rounds == 20) _thinOut(stocks[4], PRICE, 20_000 * USDC);
            if (rounds == 30) _setOraclePrice(stocks[7], PRICE);
            sales += _closeInBatches(ids, held, rounds);
        }
        for (uint256 i; i < 20; ++i) {
            assertEq(held[i], 0, "a sale was not reported");
            assertEq(stocks[i].balanceOf(address(vault)), 0);
        }
        assertEq(allocations.allocationUsed(agentId), 0);
        emit log_named_uint("rounds of a minute", rounds);
        emit log_named_uint("sales", sales);
        emit log_named_int("realized, USDC base units of 40,000", router.lifetimeRealizedPnlUsdc(agentId));
    }

    /// @dev Three batches of seven; what fails stops nothing. Takes what each event reports off `held`.
    function _closeInBatches(uint256[] memory ids, uint256[] memory held, uint256 round) private returns (uint256 n) {
        uint256 value = vault.totalAssets();
        for (uint256 start; start < 20; start += 7) {
            uint256[] memory batch = new uint256[](start + 7 > 20 ? 20 - start : 7);
            for (uint256 i; i < batch.length; ++i) {
                batch[i] = ids[start + i];
            }
            vm.recordLogs();
            vm.prank(keeper);
            (ITradeRouter.ExitStatus[] memory statuses,) = router.executeExits(batch);
            for (uint256 i; i < batch.length; ++i) {
                _checkStatus(start + i, held, statuses[i], round);
            }
            n += _takeReported(held);
        }
        assertGe(vault.totalAssets() + 40_000 * USDC * 310 / 10_000, value);
    }

    function _checkStatus(uint256 index, uint256[] memory held, ITradeRouter.ExitStatus status, uint256 round)
        private
        pure
    {
        if (held[index] == 0) assertEq(uint8(status), uint8(ITradeRouter.ExitStatus.NotOpen));
        if (index == 4 && round < 20) assertEq(uint8(status), uint8(ITradeRouter.ExitStatus.Deferred));
        if (index == 7 && round > 10 && round < 30) {
            assertEq(uint8(status), uint8(ITradeRouter.ExitStatus.StalePrice));
        }
    }

    function _takeReported(uint256[] memory held) private returns (uint256 count) {
        Vm.Log[] memory logs = vm.getRecordedLogs();
        for (uint256 i; i < logs.length; ++i) {
            if (logs[i].topics[0] != ITradeRouter.OwnerCloseExecuted.selector) continue;
            (uint256 sold, uint256 out, uint256 bounty, uint256 left) =
                abi.decode(logs[i].data, (uint256, uint256, uint256, uint256));
            uint256 index = uint256(logs[i].topics[1]) - 1;
            assertGe(out + bounty + 1, sold * PRICE / 1e20 * 9_700 / 10_000, "below the floor");
            held[index] -= sold;
            assertEq(held[index], left);
            ++count;
        }
    }

    function _openTwenty() private returns (uint256[] memory ids) {
        ids = new uint256[](20);
        for (uint256 i; i < 20; ++i) {
            stocks.push(_token(string.concat("T", vm.toString(i)), PRICE, POOL_DEPTH));
        }
        skip(1);
        for (uint256 i; i < 20; ++i) {
            ids[i] = _open(stocks[i], 2_000 * USDC);
        }
    }

    function _thinOut(StockToken token, uint256 price, uint256 depth) private {
        if (market.poolOf(address(token)).liquidity() != 0) {
            market.moveTo(address(token), price);
            market.drain(address(token));
        }
        market.addLiquidity(address(token), price, depth);
    }

    function _lastSale() private returns (uint256 sold, uint256 out, uint256 bounty, uint256 left) {
        Vm.Log[] memory logs = vm.getRecordedLogs();
        for (uint256 i; i < logs.length; ++i) {
            if (logs[i].topics[0] == ITradeRouter.OwnerCloseExecuted.selector) {
                (sold, out, bounty, left) = abi.decode(logs[i].data, (uint256, uint256, uint256, uint256));
            }
        }
    }
}
