// SPDX-License-Identifier: MIT
pragma solidity ^0.8.30;

import {Test} from "forge-std/Test.sol";
import {BlockUptimeFeed} from "../../src/BlockUptimeFeed.sol";
import {PriceOracle} from "../../src/PriceOracle.sol";
import {IPriceOracle} from "../../src/interfaces/IPriceOracle.sol";

/// @notice A chain of ten blocks a second, whose gaps nobody reports
contract BlockUptimeFeedTest is Test {
    uint256 private constant BLOCKS_A_SECOND = 10;
    uint256 private constant MAX_BLOCK_MS = 110;
    uint256 private constant MAX_GAP = 60;
    uint256 private constant GRACE = 10 minutes;

    BlockUptimeFeed private feed;
    PriceOracle private oracle;
    address private nvda = makeAddr("NVDA");
    address private updater = makeAddr("updater");

    function setUp() public {
        vm.warp(1_800_000_000);
        vm.roll(1_000_000);
        feed = new BlockUptimeFeed(MAX_BLOCK_MS, MAX_GAP);
        oracle = new PriceOracle(address(this));
        oracle.grantRole(oracle.ORACLE_UPDATER_ROLE(), updater);
        oracle.setSequencerFeed(address(feed), GRACE);
        _run(GRACE);
        _post();
    }

    function test_ABusyOrIdleChainThatMakesBlocksIsUp() public {
        uint256 since = _upSince();
        for (uint256 i; i < 20; ++i) {
            _run(30 + i * 60);
            _post();
            oracle.freshPrice(nvda, 0);
        }
        _run(30 days);
        oracle.freshPrice(nvda, 0);
        assertEq(_upSince(), since);
    }

    function test_AGapNeedsNobodyToReportIt() public {
        skip(MAX_GAP + 1);
        assertEq(_upSince(), block.timestamp);
        vm.expectRevert(abi.encodeWithSelector(IPriceOracle.SequencerGracePeriod.selector, block.timestamp + GRACE));
        oracle.freshPrice(nvda, 0);
        assertTrue(oracle.isStale(nvda, 0));
    }

    function test_APostAfterAGapBeginsTheGracePeriod() public {
        (uint256 from,,) = feed.last();
        skip(5 minutes);
        vm.expectEmit(address(feed));
        emit BlockUptimeFeed.GapSeen(from, 5 minutes);
        _post();
        uint256 until = block.timestamp + GRACE;
        _run(GRACE - 1);
        vm.expectRevert(abi.encodeWithSelector(IPriceOracle.SequencerGracePeriod.selector, until));
        oracle.freshPrice(nvda, 0);
        _run(1);
        oracle.freshPrice(nvda, 0);
    }

    function test_AnyAccountBeginsTheGracePeriodWithoutAPrice() public {
        skip(5 minutes);
        vm.prank(makeAddr("stranger"));
        oracle.postPrices(new bytes[](0), new address[](0));
        _run(GRACE);
        oracle.freshPrice(nvda, 0);
    }

    function test_AShortGapIsNone() public {
        skip(MAX_GAP);
        oracle.freshPrice(nvda, 0);
        _post();
        _run(1);
        oracle.freshPrice(nvda, 0);
    }

    /// What it does not see: blocks that are faster than the bound make up for a gap.
    function test_ALongIdleTimeHidesAGapOfATenthOfIt() public {
        _run(1 hours);
        skip(6 minutes);
        oracle.freshPrice(nvda, 0);
        skip(MAX_GAP + 1);
        vm.expectPartialRevert(IPriceOracle.SequencerGracePeriod.selector);
        oracle.freshPrice(nvda, 0);
    }

    function test_CountsTheBlocksOfArbitrumNotTheEstimateOfEthereums() public {
        address arbSys = address(100);
        bytes memory call = abi.encodeWithSignature("arbBlockNumber()");
        vm.mockCall(arbSys, call, abi.encode(5_000));
        feed = new BlockUptimeFeed(MAX_BLOCK_MS, MAX_GAP);
        vm.clearMockedCalls();
        vm.mockCall(arbSys, call, abi.encode(5_000 + BLOCKS_A_SECOND * 100));
        skip(100);
        assertEq(_upSince(), block.timestamp - 100);
        skip(MAX_GAP + 11);
        assertEq(_upSince(), block.timestamp);
    }

    function test_WritesAtMostTwiceInTheLengthOfAGap() public {
        (uint256 at,,) = feed.last();
        _run(MAX_GAP / 2);
        feed.observe();
        (uint256 still,,) = feed.last();
        assertEq(still, at);
        _run(1);
        feed.observe();
        (uint256 timestamp, uint256 number,) = feed.last();
        assertEq(timestamp, block.timestamp);
        assertEq(number, block.number);
    }

    function test_RefusesACadenceOfNothing() public {
        vm.expectRevert(abi.encodeWithSelector(BlockUptimeFeed.InvalidCadence.selector, 0, 60));
        this.deploy(0, 60);
        vm.expectRevert(abi.encodeWithSelector(BlockUptimeFeed.InvalidCadence.selector, 100, 0));
        this.deploy(100, 0);
    }

    function deploy(uint256 maxBlockMs, uint256 maxGap) external {
        new BlockUptimeFeed(maxBlockMs, maxGap);
    }

    function _run(uint256 elapsed) private {
        skip(elapsed);
        vm.roll(block.number + elapsed * BLOCKS_A_SECOND);
    }

    function _post() private {
        (address[] memory assets, int256[] memory prices, uint64[] memory times) =
            (new address[](1), new int256[](1), new uint64[](1));
        (assets[0], prices[0], times[0]) = (nvda, 100e8, uint64(block.timestamp));
        vm.prank(updater);
        oracle.post(assets, prices, times);
    }

    function _upSince() private view returns (uint256 startedAt) {
        int256 answer;
        (, answer, startedAt,,) = feed.latestRoundData();
        assertEq(answer, 0);
    }
}
