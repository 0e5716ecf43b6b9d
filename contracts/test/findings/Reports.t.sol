// SPDX-License-Identifier: MIT
pragma solidity ^0.8.30;

import {IMandateVault} from "../../src/interfaces/IMandateVault.sol";
import {IPriceOracle} from "../../src/interfaces/IPriceOracle.sol";
import {ITradePolicy} from "../../src/interfaces/ITradePolicy.sol";
import {ITradeRouter} from "../../src/interfaces/ITradeRouter.sol";
import {ReportTest} from "../oracle/ReportTest.sol";
import {Streams} from "../oracle/Streams.sol";

/// @notice Attacks on prices that are signed reports, each as its attacker would run it. The vault takes prices of 15 minutes.
contract ReportAttacksTest is ReportTest {
    uint256 private constant AGE = 15 minutes;
    uint256 private constant AMOUNT = 10_000 * USDC;

    function setUp() public override {
        super.setUp();
        _useDefaultLimits();
        vm.prank(admin);
        vault.setMaxPriceAge(AGE);
        skip(10 minutes);
        _postReport(_report(nvda, NVDA_PRICE));
        skip(1);
    }

    function test_Reports_AStolenUpdaterMovesNoFillNoStopAndNoSharePrice() public {
        uint256 id = _carryOpen(nvda, AMOUNT, _report(nvda, NVDA_PRICE));
        uint256 sharePrice = vault.convertToAssets(1e12);
        (address[] memory assets, int256[] memory prices, uint64[] memory times) =
            (new address[](1), new int256[](1), new uint64[](1));
        for (uint256 i; i < 20; ++i) {
            skip(1 minutes);
            (assets[0], prices[0], times[0]) = (address(nvda), int256(50 * USD), uint64(block.timestamp));
            vm.startPrank(updater);
            oracle.post(assets, prices, times);
            vm.expectRevert(abi.encodeWithSelector(IPriceOracle.NotUpdaterSource.selector, nvda));
            oracle.setPrices(assets, prices);
            vm.stopPrank();
        }
        assertEq(vault.convertToAssets(1e12), sharePrice);
        bytes memory exit = abi.encodeCall(router.executeExit, (id));
        bytes memory report = _report(nvda, NVDA_PRICE);
        vm.expectRevert(abi.encodeWithSelector(ITradeRouter.TriggerNotMet.selector, id));
        _carry(address(router), updater, report, exit);
        uint256 second = _carryOpen(tsla, AMOUNT, _report(tsla, TSLA_PRICE));
        assertApproxEqRel(positions.positionStateOf(second).tokenAmount, 40e8, 0.002e18);
    }

    function test_Reports_AReplayedReportFiresNoStop() public {
        uint256 id = _carryOpen(nvda, AMOUNT, _report(nvda, NVDA_PRICE));
        skip(1);
        bytes memory low = _report(nvda, 90 * USD);
        skip(1);
        _postReport(_report(nvda, NVDA_PRICE));
        bytes memory exit = abi.encodeCall(router.executeExit, (id));
        vm.expectRevert(abi.encodeWithSelector(ITradeRouter.TriggerNotMet.selector, id));
        _carry(address(router), keeper, low, exit);
        (, uint64 observedAt,) = oracle.peekPrice(address(nvda));
        assertEq(observedAt, block.timestamp);
    }

    function test_Reports_AReportOfAnotherFeedMakesNoPriceFresh() public {
        skip(AGE);
        _refuseOpen(
            _report(tsla, NVDA_PRICE),
            abi.encodeWithSelector(IPriceOracle.StalePrice.selector, nvda, block.timestamp - AGE - 1, AGE)
        );
        bytes32 foreign = bytes32(uint256(11) << 240 | 0xBAD);
        _refuseOpen(
            streams.signed(foreign, 100e18, REGULAR_HOURS),
            abi.encodeWithSelector(IPriceOracle.UnknownStream.selector, foreign)
        );
    }

    /// Whoever is first in the block, the trade is made at the newest report, and nobody can make it fail.
    function test_Reports_TheOrderWithinABlockChangesNoFill() public {
        bytes memory older = _report(nvda, 101 * USD);
        skip(1);
        bytes memory newer = _report(nvda, NVDA_PRICE);
        uint256 snapshot = vm.snapshotState();
        uint256 alone = _tokensOf(_carryOpen(nvda, AMOUNT, newer));
        vm.revertToState(snapshot);
        snapshot = vm.snapshotState();
        _postReport(older);
        assertEq(_tokensOf(_carryOpen(nvda, AMOUNT, newer)), alone, "an older one before");
        vm.revertToState(snapshot);
        snapshot = vm.snapshotState();
        _postReport(newer);
        assertEq(_tokensOf(_carryOpen(nvda, AMOUNT, newer)), alone, "the same one before");
        vm.revertToState(snapshot);
        _postReport(newer);
        assertEq(_tokensOf(_carryOpen(nvda, AMOUNT, older)), alone, "the older one in the trade");
        (uint256 price,,) = oracle.peekPrice(address(nvda));
        assertEq(price, NVDA_PRICE);
    }

    /// The executor moves the pool before and after the intent and chooses the report of the last 15 minutes that suits that. It gains
    /// at most what the price moved within the age, bounded by how far the pool may be from that report, and the signed slippage.
    function test_Reports_AnExecutorThatChoosesTheReportGainsAtMostTheMoveWithinTheAgeAndTheSlippage() public {
        uint256[4] memory highs = [uint256(100), 101, 102, 103];
        uint256[2] memory lost;
        for (uint256 i; i < highs.length; ++i) {
            uint256 snapshot = vm.snapshotState();
            skip(1);
            bytes memory old = _report(nvda, highs[i] * USD);
            skip(5 minutes);
            // The market is at 100 again; the executor buys first, up to where the old report still lets the trade through.
            market.moveTo(address(nvda), highs[i] * USD * 10_090 / 10_000);
            lost[i % 2] = _lostBuying(old);
            assertLe(
                lost[i % 2], AMOUNT * ((highs[i] - 100) * 100 + 100 + 5) / 10_000, "the move, the slippage, the fee"
            );
            if (i != 0) assertGt(lost[i % 2], lost[(i + 1) % 2], "an older report lets it take more");
            vm.revertToState(snapshot);
        }
    }

    function test_Reports_TheAgeOfTheAssetBoundsTheChoice() public {
        vm.prank(admin);
        oracle.setAssetConfig(address(nvda), IPriceOracle.AssetConfig(20, 0, 0));
        skip(1);
        bytes memory old = _report(nvda, 101 * USD);
        uint256 observedAt = block.timestamp;
        skip(21);
        _refuseOpen(old, abi.encodeWithSelector(IPriceOracle.StalePrice.selector, nvda, observedAt, 20));
        _carryOpen(nvda, AMOUNT, _report(nvda, NVDA_PRICE));
    }

    function test_Reports_AFeedThatStopsStopsTradesAndRedemptionsAndTheForcerGoesOn() public {
        uint256 id = _carryOpen(nvda, AMOUNT, _report(nvda, NVDA_PRICE));
        bytes memory last = _report(nvda, NVDA_PRICE);
        skip(AGE + 1);
        bytes memory stale =
            abi.encodeWithSelector(IPriceOracle.StalePrice.selector, nvda, block.timestamp - AGE - 1, AGE);
        bytes memory reduction = _reduceCall(id, 5_000);
        vm.expectRevert(stale);
        this.carry(last, reduction);
        // The stream goes on reporting, and no longer sees a price.
        Streams.Report memory halted = streams.report(NVDA_STREAM, 100e18, REGULAR_HOURS);
        halted.seenAt = block.timestamp - AGE - 1;
        last = streams.sign(halted);
        vm.expectRevert(stale);
        this.carry(last, reduction);

        address forcer = makeAddr("forcer");
        bytes32 role = oracle.ORACLE_FORCER_ROLE();
        vm.prank(admin);
        oracle.grantRole(role, forcer);
        vm.prank(forcer);
        oracle.forcePrice(address(nvda), int256(90 * USD));
        market.moveTo(address(nvda), 90 * USD);
        skip(10 minutes);
        vm.prank(forcer);
        oracle.forcePrice(address(nvda), int256(90 * USD));
        _exit(id);
        assertEq(_tokensOf(id), 0);
    }

    function test_Reports_AVerifierThatRevertsStopsNewPricesAndNoTradeAtAFreshOne() public {
        bytes4 verify = streams.proxy().verify.selector;
        vm.mockCallRevert(address(streams.proxy()), abi.encodeWithSelector(verify), "out of order");
        _refuseOpen(
            _report(nvda, NVDA_PRICE),
            abi.encodeWithSelector(IPriceOracle.ReportNotVerified.selector, NVDA_STREAM, bytes("out of order"))
        );
        _open(nvda, AMOUNT);
    }

    function test_Reports_AVerifierThatReturnsGarbageStoresNothing() public {
        bytes4 verify = streams.proxy().verify.selector;
        bytes memory forged = abi.encode(streams.encode(streams.report(NVDA_STREAM, 1e18, REGULAR_HOURS)));
        vm.mockCall(address(streams.proxy()), abi.encodeWithSelector(verify), forged);
        _refuseOpen(
            _report(nvda, NVDA_PRICE),
            abi.encodeWithSelector(IPriceOracle.ReportNotVerified.selector, NVDA_STREAM, forged)
        );
        (uint256 price,,) = oracle.peekPrice(address(nvda));
        assertEq(price, NVDA_PRICE);
    }

    function test_Reports_RefusesInATradeWhatNoMarketStandsBehind() public {
        Streams.Report memory r = streams.report(NVDA_STREAM, 100e18, REGULAR_HOURS);
        r.expiresAt = block.timestamp - 1;
        _refuseOpen(streams.sign(r), abi.encodeWithSelector(IPriceOracle.ReportExpired.selector, nvda, r.expiresAt));
        r = streams.report(NVDA_STREAM, 100e18, REGULAR_HOURS);
        (r.bid, r.ask) = (99e18, 101e18);
        _refuseOpen(streams.sign(r), abi.encodeWithSelector(IPriceOracle.SpreadTooWide.selector, nvda, 200, 50));
        int192[2] memory prices = [int192(0), -100e18];
        for (uint256 i; i < 2; ++i) {
            r = streams.report(NVDA_STREAM, prices[i], REGULAR_HOURS);
            _refuseOpen(streams.sign(r), abi.encodeWithSelector(IPriceOracle.InvalidPrice.selector, nvda, prices[i]));
        }
        uint256[5] memory statuses = [uint256(0), 1, 3, 4, 5]; // unknown, pre-market, post-market, overnight, closed
        for (uint256 i; i < statuses.length; ++i) {
            _refuseOpen(
                streams.signed(NVDA_STREAM, 100e18, statuses[i]),
                abi.encodeWithSelector(IPriceOracle.MarketNotTrading.selector, nvda, statuses[i])
            );
        }
    }

    /// Who deposits chooses among the reports of the age too, and pays the pool's average at least; who redeems gets no more.
    function test_Reports_ADepositorThatChoosesTheReportPaysNoLessThanThePoolsAverage() public {
        vm.startPrank(admin);
        oracle.setSecondOpinion(address(nvda), IPriceOracle.SecondOpinion(address(adapter), 10 minutes));
        vault.setLiquidityPolicy(IMandateVault.LiquidityPolicy(5 minutes, 0, 500, 1 days, 6 hours));
        usdc.mint(investor, 2 * AMOUNT);
        vm.stopPrank();
        vm.prank(investor);
        usdc.approve(address(vault), 2 * AMOUNT);
        _carryOpen(nvda, 2 * AMOUNT, _report(nvda, NVDA_PRICE));
        skip(1);
        bytes memory low = _report(nvda, 98 * USD);
        bytes memory high = _report(nvda, 102 * USD);
        skip(4 minutes);
        bytes memory now_ = _report(nvda, NVDA_PRICE);
        bytes memory deposit = abi.encodeCall(vault.deposit, (AMOUNT, investor));
        bytes memory redeem = abi.encodeCall(vault.redeem, (1_000e12, investor, investor));
        assertLe(_sharesOrAssets(low, deposit), _sharesOrAssets(now_, deposit) + 1e12);
        assertLe(_sharesOrAssets(high, redeem), _sharesOrAssets(now_, redeem) + USDC);
    }

    function _sharesOrAssets(bytes memory report, bytes memory call) private returns (uint256 result) {
        uint256 snapshot = vm.snapshotState();
        result = abi.decode(_carry(address(vault), investor, report, call), (uint256));
        vm.revertToState(snapshot);
    }

    /// @dev What the vault's new tokens are worth less than what it paid, at the market's price of 100.
    function _lostBuying(bytes memory report) private returns (uint256) {
        return AMOUNT - _tokensOf(_carryOpen(nvda, AMOUNT, report)) * 100 / 1e12;
    }

    function _tokensOf(uint256 id) private view returns (uint256) {
        return positions.positionStateOf(id).tokenAmount;
    }

    function _refuseOpen(bytes memory report, bytes memory refusal) private {
        bytes memory call = _openCall(nvda, AMOUNT);
        uint256 nonce = router.nonces(agentId);
        vm.expectRevert(refusal);
        this.carry(report, call);
        assertEq(router.nonces(agentId), nonce, "nonce moved");
    }

    /// @dev A call of its own, which an expected revert ends.
    function carry(bytes calldata report, bytes calldata call) external {
        _carry(address(router), executor, report, call);
    }
}
