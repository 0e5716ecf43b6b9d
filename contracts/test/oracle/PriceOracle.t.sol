// SPDX-License-Identifier: MIT
pragma solidity ^0.8.30;

import {IAccessControl} from "@openzeppelin/contracts/access/IAccessControl.sol";
import {Test} from "forge-std/Test.sol";
import {PriceOracle} from "../../src/PriceOracle.sol";
import {IPriceOracle} from "../../src/interfaces/IPriceOracle.sol";
import {PoolPrices} from "./PoolPrices.sol";
import {UptimeFeed} from "./UptimeFeed.sol";

contract PriceOracleTest is Test {
    int256 private constant MAX_PRICE = int256(uint256(type(uint96).max));
    uint64 private constant START = 1_000_000;

    PriceOracle private oracle;
    address private updater = makeAddr("updater");
    address private forcer = makeAddr("forcer");
    address private nvda = makeAddr("NVDA");
    address private aapl = makeAddr("AAPL");

    function setUp() public {
        vm.warp(START);
        oracle = new PriceOracle(address(this));
        oracle.grantRole(oracle.ORACLE_UPDATER_ROLE(), updater);
        oracle.grantRole(oracle.ORACLE_FORCER_ROLE(), forcer);
    }

    /// @dev External, since with linked tests an expected revert of `new` itself would end the test.
    function deploy(address admin) external returns (PriceOracle) {
        return new PriceOracle(admin);
    }

    function test_AnAssetNeverQuotedHasNoPrice() public {
        vm.expectRevert(abi.encodeWithSelector(IPriceOracle.TokenNotQuoted.selector, nvda));
        oracle.latestRoundData(nvda);
        vm.expectRevert(abi.encodeWithSelector(IPriceOracle.TokenNotQuoted.selector, nvda));
        oracle.freshPrice(nvda, 0);
        assertTrue(oracle.isStale(nvda, 0));
        (uint256 price, uint64 updatedAt, uint80 roundId) = oracle.peekPrice(nvda);
        assertEq(price + updatedAt + roundId, 0);
        assertEq(oracle.decimals(nvda), 8);
    }

    function testFuzz_AnswersWhatWasSetAsAChainlinkFeedWould(uint96 given, uint32 elapsed) public {
        given = uint96(bound(given, 1, type(uint96).max));
        int256 price = int256(uint256(given));
        vm.expectEmit(address(oracle));
        emit IPriceOracle.PriceUpdated(nvda, price, START, 1);
        _set(nvda, price);
        skip(elapsed);

        (uint80 roundId, int256 answer, uint256 startedAt, uint256 updatedAt, uint80 answeredInRound) =
            oracle.latestRoundData(nvda);
        assertEq(roundId, 1);
        assertEq(answer, price);
        assertEq(startedAt, START);
        assertEq(updatedAt, START);
        assertEq(answeredInRound, 1);
        _assertPeek(nvda, given, START, 1);
        (uint256 fresh, uint64 freshAt, uint80 freshRound) = oracle.freshPrice(nvda, 0);
        assertEq(fresh, given);
        assertEq(freshAt, START);
        assertEq(freshRound, 1);
    }

    function test_ARoundIsOneMoreThanTheLastEvenWithinOneSecond() public {
        _set(nvda, 100e8);
        _set(nvda, 101e8);
        _assertPeek(nvda, 101e8, START, 2);
        _set(aapl, 5e8);
        _assertPeek(aapl, 5e8, START, 1);
    }

    function test_RefusesAPriceThatIsNotPositiveOrTooLarge() public {
        int256[4] memory bad = [int256(0), -1, MAX_PRICE + 1, type(int256).min];
        for (uint256 i = 0; i < bad.length; ++i) {
            bytes memory refusal = abi.encodeWithSelector(IPriceOracle.InvalidPrice.selector, nvda, bad[i]);
            vm.expectRevert(refusal);
            _set(nvda, bad[i]);
            vm.expectRevert(refusal);
            vm.prank(forcer);
            oracle.forcePrice(nvda, bad[i]);
        }
    }

    function test_TakesTheSmallestAndTheLargestPrice() public {
        _set(nvda, 1);
        _assertPeek(nvda, 1, START, 1);
        _set(nvda, MAX_PRICE);
        _assertPeek(nvda, type(uint96).max, START, 2);
    }

    function test_ABatchSetsAllOrNone() public {
        _configure(aapl, 0, 1000);
        _set(aapl, 100e8);
        (address[] memory assets, int256[] memory prices) = _pair(nvda, 120e8, aapl, 111e8);

        vm.expectRevert(abi.encodeWithSelector(IPriceOracle.DeviationTooLarge.selector, aapl, 100e8, 111e8, 1000));
        vm.prank(updater);
        oracle.setPrices(assets, prices);
        _assertPeek(nvda, 0, 0, 0);

        prices[1] = 110e8;
        vm.prank(updater);
        oracle.setPrices(assets, prices);
        _assertPeek(nvda, 120e8, START, 1);
        _assertPeek(aapl, 110e8, START, 2);
    }

    function test_RefusesArraysOfDifferentLengths() public {
        address[] memory assets = new address[](2);
        vm.startPrank(updater);
        vm.expectRevert(abi.encodeWithSelector(IPriceOracle.LengthMismatch.selector, 2, 1));
        oracle.setPrices(assets, new int256[](1));
        vm.expectRevert(abi.encodeWithSelector(IPriceOracle.LengthMismatch.selector, 2, 3));
        oracle.post(assets, new int256[](3), new uint64[](2));
        vm.expectRevert(abi.encodeWithSelector(IPriceOracle.LengthMismatch.selector, 2, 1));
        oracle.post(assets, new int256[](2), new uint64[](1));
    }

    function test_ABatchMovesAnAssetOnce() public {
        (address[] memory assets, int256[] memory prices) = _pair(nvda, 120e8, nvda, 121e8);
        vm.expectRevert(abi.encodeWithSelector(IPriceOracle.DuplicateAsset.selector, nvda));
        vm.prank(updater);
        oracle.setPrices(assets, prices);

        uint64[] memory observedAt = new uint64[](2);
        (observedAt[0], observedAt[1]) = (START - 2, START - 1);
        vm.expectEmit(address(oracle));
        emit IPriceOracle.PriceSkipped(nvda, 121e8, START - 1, IPriceOracle.SkipReason.DuplicateInBatch);
        vm.prank(updater);
        oracle.post(assets, prices, observedAt);
        _assertPeek(nvda, 120e8, START - 2, 1);

        // The next batch may, in the same transaction too.
        _post(nvda, 121e8, START - 1);
        _assertPeek(nvda, 121e8, START - 1, 2);
    }

    function testFuzz_AMoveUpToTheBoundIsTakenAndOneBeyondIsNot(uint96 held, uint16 boundBps, bool up) public {
        held = uint96(bound(held, 1e4, 1e20));
        boundBps = uint16(bound(boundBps, 1, 9999));
        _configure(nvda, 0, boundBps);
        _set(nvda, int256(uint256(held)));

        int256 price = int256(uint256(held));
        int256 move = price * int256(uint256(boundBps)) / 10_000;
        int256 beyond = up ? price + move + 1 : price - move - 1;
        vm.assume(beyond != 0);
        vm.expectRevert(abi.encodeWithSelector(IPriceOracle.DeviationTooLarge.selector, nvda, held, beyond, boundBps));
        _set(nvda, beyond);

        int256 within = up ? price + move : price - move;
        _set(nvda, within);
        (, int256 answer,,,) = oracle.latestRoundData(nvda);
        assertEq(answer, within);
    }

    function test_TheFirstPriceAndABoundOfZeroAreNotBounded() public {
        _configure(nvda, 0, 1);
        _set(nvda, 100e8);
        _configure(nvda, 0, 0);
        _set(nvda, 100_000e8);
        _set(nvda, 1);
        _assertPeek(nvda, 1, START, 3);
    }

    function test_ALargerMoveNeedsTheForcer() public {
        _configure(nvda, 60, 500);
        _set(nvda, 100e8);

        vm.expectEmit(address(oracle));
        emit IPriceOracle.PriceUpdated(nvda, 10e8, START, 2);
        vm.expectEmit(address(oracle));
        emit IPriceOracle.PriceForced(nvda, 10e8, 2, forcer);
        vm.prank(forcer);
        oracle.forcePrice(nvda, 10e8);
        _assertPeek(nvda, 10e8, START, 2);
        assertEq(oracle.maxDeviationBpsOf(nvda), 500, "the bound stays");
        assertEq(oracle.maxAgeOf(nvda), 60, "the window stays");
    }

    function test_EachRoleHasItsOwnFunctions() public {
        bytes memory notUpdater = abi.encodeWithSelector(
            IAccessControl.AccessControlUnauthorizedAccount.selector, forcer, oracle.ORACLE_UPDATER_ROLE()
        );
        bytes memory notForcer = abi.encodeWithSelector(
            IAccessControl.AccessControlUnauthorizedAccount.selector, updater, oracle.ORACLE_FORCER_ROLE()
        );
        bytes memory notAdmin =
            abi.encodeWithSelector(IAccessControl.AccessControlUnauthorizedAccount.selector, updater, bytes32(0));

        vm.startPrank(forcer);
        vm.expectRevert(notUpdater);
        oracle.setPrice(nvda, 1);
        vm.expectRevert(notUpdater);
        oracle.setPrices(new address[](0), new int256[](0));
        vm.expectRevert(notUpdater);
        oracle.post(new address[](0), new int256[](0), new uint64[](0));

        vm.startPrank(updater);
        vm.expectRevert(notForcer);
        oracle.forcePrice(nvda, 1);
        vm.expectRevert(notAdmin);
        oracle.setAssetConfig(nvda, IPriceOracle.AssetConfig(1, 1, 1));
        vm.expectRevert(notAdmin);
        oracle.setSecondOpinion(nvda, IPriceOracle.SecondOpinion(address(0), 0));
        vm.expectRevert(notAdmin);
        oracle.inheritFrom(address(oracle), new address[](0));
        vm.expectRevert(notAdmin);
        oracle.setSequencerFeed(address(0), 0);
    }

    function test_PostHoldsTheTimeOfTheObservation() public {
        vm.expectEmit(address(oracle));
        emit IPriceOracle.PriceUpdated(nvda, 120e8, START - 40, 1);
        _post(nvda, 120e8, START - 40);
        _assertPeek(nvda, 120e8, START - 40, 1);
    }

    function test_PostSkipsWhatIsNotNewer() public {
        _post(nvda, 120e8, START - 40);
        _expectSkip(nvda, 121e8, START - 40, IPriceOracle.SkipReason.NotNewer);
        _post(nvda, 121e8, START - 40);
        _expectSkip(nvda, 121e8, START - 41, IPriceOracle.SkipReason.NotNewer);
        _post(nvda, 121e8, START - 41);
        _expectSkip(aapl, 121e8, 0, IPriceOracle.SkipReason.NotNewer);
        _post(aapl, 121e8, 0);
        _assertPeek(nvda, 120e8, START - 40, 1);

        _post(nvda, 121e8, START - 39);
        _assertPeek(nvda, 121e8, START - 39, 2);
    }

    function test_PostTakesAClockFiveSecondsAheadAndHoldsItAsNow() public {
        _expectSkip(nvda, 120e8, START + 6, IPriceOracle.SkipReason.FromFuture);
        _post(nvda, 120e8, START + 6);
        _expectSkip(nvda, 120e8, type(uint64).max, IPriceOracle.SkipReason.FromFuture);
        _post(nvda, 120e8, type(uint64).max);
        _assertPeek(nvda, 0, 0, 0);

        _post(nvda, 120e8, START + 5);
        _assertPeek(nvda, 120e8, START, 1);
    }

    function test_PostSkipsABadPriceForThatAssetAlone() public {
        _configure(aapl, 0, 1000);
        _set(aapl, 100e8);
        skip(10);
        (address[] memory assets, int256[] memory prices) = _pair(aapl, 111e8, nvda, 120e8);
        uint64[] memory observedAt = new uint64[](2);
        (observedAt[0], observedAt[1]) = (START + 5, START + 5);

        _expectSkip(aapl, 111e8, START + 5, IPriceOracle.SkipReason.DeviationTooLarge);
        vm.prank(updater);
        oracle.post(assets, prices, observedAt);
        _assertPeek(aapl, 100e8, START, 1);
        _assertPeek(nvda, 120e8, START + 5, 1);

        int256[3] memory bad = [int256(0), -1, MAX_PRICE + 1];
        for (uint256 i = 0; i < bad.length; ++i) {
            _expectSkip(nvda, bad[i], START + 6, IPriceOracle.SkipReason.InvalidPrice);
            _post(nvda, bad[i], START + 6);
        }
        _assertPeek(nvda, 120e8, START + 5, 1);
    }

    /// Whatever is posted, nothing reverts and what is held only grows newer, within the bound.
    function testFuzz_PostNeverRevertsAndNeverGoesBack(
        int256[8] calldata prices,
        uint64[8] calldata observedAt,
        bool[8] calldata isNvda
    ) public {
        _configure(nvda, 0, 1000);
        address[] memory assets = new address[](8);
        int256[] memory given = new int256[](8);
        uint64[] memory times = new uint64[](8);
        for (uint256 i = 0; i < 8; ++i) {
            assets[i] = isNvda[i] ? nvda : aapl;
            given[i] = i % 2 == 0 ? prices[i] : bound(prices[i], 90e8, 110e8);
            times[i] = i % 3 == 0 ? observedAt[i] : START - 100 + observedAt[i] % 111;
        }
        _set(nvda, 100e8);

        vm.prank(updater);
        oracle.post(assets, given, times);

        (uint256 price, uint64 updatedAt, uint80 roundId) = oracle.peekPrice(nvda);
        assertLe(roundId, 2);
        assertGe(updatedAt, START);
        assertLe(updatedAt, block.timestamp);
        assertGe(price, 90e8);
        assertLe(price, 110e8);
    }

    function test_ThePriceIsStaleAfterTheSmallerWindowAndNotBefore() public {
        _configure(nvda, 100, 0);
        _set(nvda, 120e8);

        vm.warp(START + 60);
        assertFalse(oracle.isStale(nvda, 60));
        oracle.freshPrice(nvda, 60);
        vm.warp(START + 61);
        assertTrue(oracle.isStale(nvda, 60));
        vm.expectRevert(abi.encodeWithSelector(IPriceOracle.StalePrice.selector, nvda, START, 60));
        oracle.freshPrice(nvda, 60);

        vm.warp(START + 100);
        oracle.freshPrice(nvda, 0);
        oracle.freshPrice(nvda, type(uint256).max);
        vm.warp(START + 101);
        assertTrue(oracle.isStale(nvda, 0));
        vm.expectRevert(abi.encodeWithSelector(IPriceOracle.StalePrice.selector, nvda, START, 100));
        oracle.freshPrice(nvda, 0);
        vm.expectRevert(abi.encodeWithSelector(IPriceOracle.StalePrice.selector, nvda, START, 100));
        oracle.freshPrice(nvda, type(uint256).max);

        _assertPeek(nvda, 120e8, START, 1);
        (, int256 answer,,,) = oracle.latestRoundData(nvda);
        assertEq(answer, 120e8, "Chainlink's reader judges the age itself");
    }

    function test_WithoutAnyWindowAPriceHoldsForever() public {
        _set(nvda, 120e8);
        skip(10 * 365 days);
        assertFalse(oracle.isStale(nvda, 0));
        oracle.freshPrice(nvda, 0);
    }

    function testFuzz_ConfiguresAnAssetWithoutTouchingItsPrice(uint32 maxAge, uint32 maxDeviationBps, uint24 window)
        public
    {
        vm.assume((maxDeviationBps == 0) == (window == 0));
        _set(nvda, 120e8);
        vm.expectEmit(address(oracle));
        emit IPriceOracle.AssetConfigUpdated(nvda, maxAge, maxDeviationBps, window);
        oracle.setAssetConfig(nvda, IPriceOracle.AssetConfig(maxAge, maxDeviationBps, window));
        assertEq(oracle.maxAgeOf(nvda), maxAge);
        assertEq(oracle.maxDeviationBpsOf(nvda), maxDeviationBps);
        assertEq(oracle.assetConfig(nvda).maxAge, maxAge);
        assertEq(oracle.assetConfig(nvda).maxDeviationBps, maxDeviationBps);
        assertEq(oracle.assetConfig(nvda).deviationWindow, window);
        _assertPeek(nvda, 120e8, START, 1);
    }

    function test_ABoundNeedsAWindowAndAWindowABound() public {
        vm.expectRevert(abi.encodeWithSelector(IPriceOracle.InvalidDeviationBound.selector, nvda, 100, 0));
        oracle.setAssetConfig(nvda, IPriceOracle.AssetConfig(0, 100, 0));
        vm.expectRevert(abi.encodeWithSelector(IPriceOracle.InvalidDeviationBound.selector, nvda, 0, 60));
        oracle.setAssetConfig(nvda, IPriceOracle.AssetConfig(0, 0, 60));
    }

    // The bound per time

    function test_ManySmallMovesGetNoFurtherThanOne() public {
        _configure(nvda, 0, 1_000);
        _set(nvda, 100e8);
        for (uint256 i = 1; i <= 10; ++i) {
            skip(1 minutes);
            _set(nvda, 100e8 + int256(i) * 1e8);
        }
        vm.expectRevert(abi.encodeWithSelector(IPriceOracle.DeviationTooLarge.selector, nvda, 100e8, 111e8, 1_000));
        _set(nvda, 111e8);
        skip(1);
        _expectSkip(nvda, 111e8, uint64(block.timestamp), IPriceOracle.SkipReason.DeviationTooLarge);
        _post(nvda, 111e8, uint64(block.timestamp));
        _set(nvda, 90e8);
    }

    function test_TheBoundLooksBackHalfAWindowAtLeast() public {
        _configure(nvda, 0, 1_000);
        _set(nvda, 100e8);
        skip(1 hours);
        _set(nvda, 100e8);
        skip(29 minutes);
        _set(nvda, 110e8);
        // The anchors move to 100 and 110: the price from before the move still counts.
        skip(1 minutes);
        vm.expectRevert(abi.encodeWithSelector(IPriceOracle.DeviationTooLarge.selector, nvda, 100e8, 120e8, 1_000));
        _set(nvda, 120e8);
        _set(nvda, 110e8);
        skip(29 minutes + 59);
        vm.expectRevert(abi.encodeWithSelector(IPriceOracle.DeviationTooLarge.selector, nvda, 100e8, 121e8, 1_000));
        _set(nvda, 121e8);
        skip(1);
        _set(nvda, 121e8);
    }

    function test_AfterAQuietWindowTheBoundCountsFromTheHeldPrice() public {
        _configure(nvda, 0, 1_000);
        _set(nvda, 100e8);
        _set(nvda, 110e8);
        skip(1 hours);
        _set(nvda, 121e8);
        vm.expectRevert(abi.encodeWithSelector(IPriceOracle.DeviationTooLarge.selector, nvda, 110e8, 98e8, 1_000));
        _set(nvda, 98e8);
    }

    function test_AForcedPriceIsWhereTheBoundCountsFrom() public {
        _configure(nvda, 0, 1_000);
        _set(nvda, 100e8);
        _set(nvda, 105e8);
        vm.prank(forcer);
        oracle.forcePrice(nvda, 50e8);
        _set(nvda, 55e8);
        vm.expectRevert(abi.encodeWithSelector(IPriceOracle.DeviationTooLarge.selector, nvda, 50e8, 56e8, 1_000));
        _set(nvda, 56e8);
    }

    /// Whatever the updater posts within half a window, it stays within the bound of where the price stood.
    function testFuzz_NoSeriesOfUpdatesLeavesTheBound(uint256 seed, uint8 updates) public {
        _configure(nvda, 0, 500);
        _set(nvda, 100e8);
        skip(1 hours);
        for (uint256 i; i < updates; ++i) {
            (uint256 held,,) = oracle.peekPrice(nvda);
            seed = uint256(keccak256(abi.encode(seed)));
            skip(seed % 3 == 0 ? 30 minutes / (uint256(updates) + 1) : 0);
            vm.prank(updater);
            try oracle.setPrice(nvda, int256(held * (9_400 + (seed >> 8) % 1_200) / 10_000)) {} catch {}
        }
        (uint256 price,,) = oracle.peekPrice(nvda);
        assertGe(price, 95e8);
        assertLe(price, 105e8);
    }

    // Second opinion

    function test_SharesArePricedWithThePriceAndThePoolsAverage() public {
        _set(nvda, 100e8);
        _assertRange(0, 100e8, 100e8, "nothing to compare with");
        PoolPrices pool = new PoolPrices();
        pool.say(100e8, 97e8);
        vm.expectEmit(address(oracle));
        emit IPriceOracle.SecondOpinionUpdated(nvda, address(pool), 300);
        oracle.setSecondOpinion(nvda, IPriceOracle.SecondOpinion(address(pool), 300));
        assertEq(oracle.secondOpinionOf(nvda).source, address(pool));
        assertEq(oracle.secondOpinionOf(nvda).twapWindow, 300);

        _assertRange(0, 97e8, 100e8, "the pool is lower");
        pool.say(100e8, 103e8);
        _assertRange(0, 100e8, 103e8, "the pool is higher");
        pool.say(110e8, 0);
        _assertRange(0, 100e8, 110e8, "a pool without a history counts with its price");
        skip(61);
        _assertRange(60, 0, 110e8, "a stale price counts for nothing at least");
        pool.say(type(uint256).max, type(uint256).max);
        _assertRange(0, 100e8, type(uint96).max, "no pool makes a value overflow");
        vm.mockCallRevert(address(pool), abi.encodeWithSelector(pool.pricesOf.selector), "broken");
        _assertRange(0, 0, 100e8, "a pool that does not answer");
        oracle.freshPrice(nvda, 0);

        oracle.setSecondOpinion(nvda, IPriceOracle.SecondOpinion(address(0), 0));
        _assertRange(0, 100e8, 100e8, "no second opinion any more");
    }

    function _assertRange(uint256 maxAge, uint256 low, uint256 high, string memory reason) private view {
        (uint256 lower, uint256 higher) = oracle.priceRangeOf(nvda, maxAge);
        assertEq(lower, low, reason);
        assertEq(higher, high, reason);
    }

    function test_RefusesASecondOpinionThatKnowsNoPrice() public {
        vm.expectRevert();
        oracle.setSecondOpinion(nvda, IPriceOracle.SecondOpinion(address(oracle), 300));
    }

    // Migration

    function test_InheritsPricesAndRounds() public {
        for (uint256 i; i < 7; ++i) {
            _set(nvda, 100e8);
        }
        PriceOracle next = new PriceOracle(address(this));
        next.grantRole(next.ORACLE_UPDATER_ROLE(), updater);
        vm.expectEmit(address(next));
        emit IPriceOracle.PriceInherited(nvda, 100e8, START, 7, address(oracle));
        next.inheritFrom(address(oracle), _assets());
        oracle = next;
        _assertPeek(nvda, 100e8, START, 7);
        _assertPeek(aapl, 0, 0, 0);
        _set(nvda, 101e8);
        _assertPeek(nvda, 101e8, START, 8);
    }

    function test_KeepsANewerPriceOfItsOwnAndTheHigherRound() public {
        PriceOracle next = new PriceOracle(address(this));
        next.grantRole(next.ORACLE_UPDATER_ROLE(), updater);
        _set(nvda, 100e8);
        _set(nvda, 100e8);
        _set(aapl, 50e8);
        skip(10);
        vm.startPrank(updater);
        next.setPrice(nvda, 102e8);
        next.setPrice(aapl, 51e8);
        next.setPrice(aapl, 52e8);
        vm.stopPrank();
        next.inheritFrom(address(oracle), _assets());
        oracle = next;
        _assertPeek(nvda, 102e8, START + 10, 2);
        _assertPeek(aapl, 52e8, START + 10, 2);
    }

    /// An inherited price is where the bound counts from: a migration is no way around it.
    function test_TheBoundHoldsAcrossAMigration() public {
        _set(nvda, 100e8);
        PriceOracle next = new PriceOracle(address(this));
        next.grantRole(next.ORACLE_UPDATER_ROLE(), updater);
        next.inheritFrom(address(oracle), _assets());
        oracle = next;
        _configure(nvda, 0, 1_000);
        vm.expectRevert(abi.encodeWithSelector(IPriceOracle.DeviationTooLarge.selector, nvda, 100e8, 111e8, 1_000));
        _set(nvda, 111e8);
    }

    function test_RefusesTheZeroAddress() public {
        vm.expectRevert(IPriceOracle.ZeroAddress.selector);
        this.deploy(address(0));
        vm.expectRevert(IPriceOracle.ZeroAddress.selector);
        oracle.setAssetConfig(address(0), IPriceOracle.AssetConfig(1, 1, 1));
    }

    function test_NoPriceIsFreshWhileTheSequencerIsDown() public {
        UptimeFeed feed = _feed(0, START - 2 days);
        oracle.freshPrice(nvda, 0);

        feed.say(1, START);
        assertTrue(oracle.isStale(nvda, 0));
        vm.expectRevert(IPriceOracle.SequencerDown.selector);
        oracle.freshPrice(nvda, 0);
        _assertPeek(nvda, 120e8, START, 1);
    }

    function test_AfterTheSequencerComesBackAGracePeriodPasses() public {
        UptimeFeed feed = _feed(0, START - 2 days);
        feed.say(0, START);
        vm.warp(START + 3599);
        assertTrue(oracle.isStale(nvda, 0));
        vm.expectRevert(abi.encodeWithSelector(IPriceOracle.SequencerGracePeriod.selector, START + 3600));
        oracle.freshPrice(nvda, 0);

        vm.warp(START + 3600);
        assertFalse(oracle.isStale(nvda, 0));
        oracle.freshPrice(nvda, 0);
    }

    function test_AFeedThatKnowsNothingOrIsSilentCountsAsDown() public {
        UptimeFeed feed = _feed(0, 0);
        assertTrue(oracle.isStale(nvda, 0));
        vm.expectRevert(IPriceOracle.SequencerDown.selector);
        oracle.freshPrice(nvda, 0);

        feed.fallSilent();
        assertTrue(oracle.isStale(nvda, 0));
        vm.expectRevert(IPriceOracle.SequencerDown.selector);
        oracle.freshPrice(nvda, 0);
    }

    function test_TheSequencerCheckIsSwitchedOnAndOff() public {
        (address feed, uint256 gracePeriod) = oracle.sequencerFeed();
        assertEq(feed, address(0));
        assertEq(gracePeriod, 0);

        UptimeFeed uptime = _feed(1, START);
        (feed, gracePeriod) = oracle.sequencerFeed();
        assertEq(feed, address(uptime));
        assertEq(gracePeriod, 3600);

        vm.expectEmit(address(oracle));
        emit IPriceOracle.SequencerFeedUpdated(address(0), 0);
        oracle.setSequencerFeed(address(0), 0);
        oracle.freshPrice(nvda, 0);
    }

    function test_RefusesAFeedThatDoesNotAnswerAndAGracePeriodOfMoreThanADay() public {
        vm.expectRevert();
        oracle.setSequencerFeed(nvda, 0);
        vm.expectRevert(abi.encodeWithSelector(IPriceOracle.GracePeriodTooLong.selector, 1 days + 1, 1 days));
        oracle.setSequencerFeed(address(0), 1 days + 1);
        oracle.setSequencerFeed(address(0), 1 days);
    }

    function test_AFreshPriceCostsTwoSlots() public {
        _configure(nvda, 60, 500);
        _set(nvda, 120e8);
        vm.record();
        oracle.freshPrice(nvda, 60);
        (bytes32[] memory reads,) = vm.accesses(address(oracle));
        bytes32 other = reads[0];
        for (uint256 i = 1; i < reads.length; ++i) {
            if (reads[i] == reads[0]) continue;
            if (other == reads[0]) other = reads[i];
            assertEq(reads[i], other);
        }
    }

    function _feed(int256 answer, uint256 startedAt) private returns (UptimeFeed feed) {
        _set(nvda, 120e8);
        feed = new UptimeFeed();
        feed.say(answer, startedAt);
        vm.expectEmit(address(oracle));
        emit IPriceOracle.SequencerFeedUpdated(address(feed), 3600);
        oracle.setSequencerFeed(address(feed), 3600);
    }

    function _configure(address asset, uint32 maxAge, uint32 maxDeviationBps) private {
        uint24 window = maxDeviationBps == 0 ? 0 : 1 hours;
        oracle.setAssetConfig(asset, IPriceOracle.AssetConfig(maxAge, maxDeviationBps, window));
    }

    function _assets() private view returns (address[] memory assets) {
        assets = new address[](2);
        (assets[0], assets[1]) = (nvda, aapl);
    }

    function _set(address asset, int256 price) private {
        vm.prank(updater);
        oracle.setPrice(asset, price);
    }

    function _post(address asset, int256 price, uint64 observedAt) private {
        address[] memory assets = new address[](1);
        int256[] memory prices = new int256[](1);
        uint64[] memory times = new uint64[](1);
        (assets[0], prices[0], times[0]) = (asset, price, observedAt);
        vm.prank(updater);
        oracle.post(assets, prices, times);
    }

    function _expectSkip(address asset, int256 price, uint64 observedAt, IPriceOracle.SkipReason reason) private {
        vm.expectEmit(address(oracle));
        emit IPriceOracle.PriceSkipped(asset, price, observedAt, reason);
    }

    function _assertPeek(address asset, uint256 price, uint256 updatedAt, uint256 roundId) private view {
        (uint256 heldPrice, uint64 heldAt, uint80 heldRound) = oracle.peekPrice(asset);
        assertEq(heldPrice, price, "price");
        assertEq(heldAt, updatedAt, "updatedAt");
        assertEq(heldRound, roundId, "roundId");
    }

    function _pair(address first, int256 firstPrice, address second, int256 secondPrice)
        private
        pure
        returns (address[] memory assets, int256[] memory prices)
    {
        assets = new address[](2);
        prices = new int256[](2);
        (assets[0], assets[1]) = (first, second);
        (prices[0], prices[1]) = (firstPrice, secondPrice);
    }
}
