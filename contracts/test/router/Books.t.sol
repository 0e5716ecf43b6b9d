// SPDX-License-Identifier: MIT
pragma solidity ^0.8.30;

import {ProtocolTest} from "./ProtocolTest.sol";

/// @notice What the router remembers of an agent over days
contract BooksTest is ProtocolTest {
    function test_EachDayHasItsOwnFiguresAndTheyStay() public {
        uint256 first = _today();
        uint256 id = _open(nvda, 10_000 * USDC);
        _setPrice(nvda, 110 * USD);
        _submit(_reduceIntent(id, 5_000));
        int256 firstPnl = router.dailyRealizedPnlUsdc(agentId, first);
        assertGt(firstPnl, 0);

        _nextDay();
        assertEq(router.dailyRealizedPnlUsdc(agentId, _today()), 0);
        _setPrice(nvda, 95 * USD);
        _submit(_addIntent(id, 1_000 * USDC));
        _submit(_reduceIntent(id, 10_000));

        assertEq(router.dailyTurnoverUsdc(agentId, first), 10_000 * USDC);
        assertEq(router.dailyRealizedPnlUsdc(agentId, first), firstPnl);
        assertEq(router.dailyTurnoverUsdc(agentId, first + 1), 1_000 * USDC);
        int256 secondPnl = router.dailyRealizedPnlUsdc(agentId, first + 1);
        assertLt(secondPnl, 0);
        assertEq(router.lifetimeRealizedPnlUsdc(agentId), firstPnl + secondPnl);
        assertEq(allocations.lifetimeTurnoverUsdc(agentId), 11_000 * USDC);
        assertEq(allocations.trackRecordOf(agentId).peakRealizedPnl, uint256(firstPnl));
        assertEq(allocations.tradeCount(agentId), 4);
    }

    function test_DaysWithoutATradeAreEmpty() public {
        uint256 first = _today();
        uint256 id = _open(nvda, 10_000 * USDC);
        vm.warp((first + 5) * DAY);
        _setPrice(nvda, 100 * USD);
        _submit(_reduceIntent(id, 10_000));

        assertEq(router.dailyTurnoverUsdc(agentId, first), 10_000 * USDC);
        for (uint256 day = first + 1; day < first + 5; ++day) {
            assertEq(router.dailyTurnoverUsdc(agentId, day), 0);
            assertEq(router.dailyRealizedPnlUsdc(agentId, day), 0);
        }
        assertEq(router.dailyTurnoverUsdc(agentId, first + 5), 0);
        assertLt(router.dailyRealizedPnlUsdc(agentId, first + 5), 0);
        assertEq(router.dailyRealizedPnlUsdc(agentId, first + 6), 0);
    }

    function test_AnUpdateOfALadderLeavesTheDayAlone() public {
        uint256 first = _today();
        uint256 id = _open(nvda, 10_000 * USDC);
        _nextDay();
        _submit(_updateIntent(id, _ladder(_stop(-500, 10_000))));
        assertEq(router.dailyTurnoverUsdc(agentId, first), 10_000 * USDC);
        assertEq(router.dailyTurnoverUsdc(agentId, first + 1), 0);
        assertEq(allocations.lifetimeTurnoverUsdc(agentId), 10_000 * USDC);
    }

    function test_ThePeakFollowsNewHighsOnly() public {
        uint256 id = _open(nvda, 10_000 * USDC);
        _setPrice(nvda, 90 * USD);
        _submit(_reduceIntent(id, 2_000));
        assertEq(allocations.trackRecordOf(agentId).peakRealizedPnl, 0);

        _setPrice(nvda, 150 * USD);
        _submit(_reduceIntent(id, 5_000));
        uint256 peak = uint256(router.lifetimeRealizedPnlUsdc(agentId));
        assertEq(allocations.trackRecordOf(agentId).peakRealizedPnl, peak);

        _nextDay();
        _setPrice(nvda, 80 * USD);
        _submit(_reduceIntent(id, 5_000));
        assertEq(allocations.trackRecordOf(agentId).peakRealizedPnl, peak);

        _setPrice(nvda, 300 * USD);
        _submit(_reduceIntent(id, 10_000));
        assertEq(allocations.trackRecordOf(agentId).peakRealizedPnl, uint256(router.lifetimeRealizedPnlUsdc(agentId)));
        assertGt(allocations.trackRecordOf(agentId).peakRealizedPnl, peak);
    }

    function testFuzz_DaysAddUpToTheLifetime(uint8[6] memory gaps, uint256[6] memory amounts) public {
        uint256 first = _today();
        uint256 id = _open(nvda, 5_000 * USDC);
        uint256 turnover = 5_000 * USDC;
        for (uint256 i; i < gaps.length; ++i) {
            vm.warp(block.timestamp + (gaps[i] % 3) * DAY);
            _setPrice(nvda, (100 + i) * USD);
            uint256 amount = bound(amounts[i], USDC, 5_000 * USDC);
            _submit(_addIntent(id, amount));
            turnover += amount;
            _submit(_reduceIntent(id, 3_000));
        }

        uint256 sum;
        int256 pnl;
        for (uint256 day = first; day <= _today(); ++day) {
            sum += router.dailyTurnoverUsdc(agentId, day);
            pnl += router.dailyRealizedPnlUsdc(agentId, day);
        }
        assertEq(sum, turnover);
        assertEq(allocations.lifetimeTurnoverUsdc(agentId), turnover);
        assertEq(pnl, router.lifetimeRealizedPnlUsdc(agentId));
        assertEq(pnl, positions.realizedPnlUsdc(id));
    }

    function _nextDay() private {
        vm.warp((_today() + 1) * DAY);
    }
}
