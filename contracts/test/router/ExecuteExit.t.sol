// SPDX-License-Identifier: MIT
pragma solidity ^0.8.30;

import {IAgentRegistry} from "../../src/interfaces/IAgentRegistry.sol";
import {IMandateVault} from "../../src/interfaces/IMandateVault.sol";
import {IPositionManager} from "../../src/interfaces/IPositionManager.sol";
import {IPriceOracle} from "../../src/interfaces/IPriceOracle.sol";
import {ISequencerUptimeFeed} from "../../src/interfaces/IChainlinkFeed.sol";
import {ITradeRouter} from "../../src/interfaces/ITradeRouter.sol";
import {ProtocolTest} from "./ProtocolTest.sol";

/// @notice An uptime feed that says what it is told
contract SequencerFeed is ISequencerUptimeFeed {
    int256 private answer;
    uint256 private startedAt;

    function set(int256 answer_, uint256 startedAt_) external {
        (answer, startedAt) = (answer_, startedAt_);
    }

    function latestRoundData() external view returns (uint80, int256, uint256, uint256, uint80) {
        return (1, answer, startedAt, startedAt, 1);
    }
}

contract ExecuteExitTest is ProtocolTest {
    uint256 private id;
    uint256 private held;

    function setUp() public override {
        super.setUp();
        id = _open(nvda, 10_000 * USDC);
        held = positions.getPosition(id).tokenAmount;
    }

    function test_FiresADueRule() public {
        _setPrice(nvda, 111 * USD);
        assertTrue(lens.isTriggerMet(id));
        vm.expectEmit(true, true, false, false, address(positions));
        emit IPositionManager.PositionLadderExitApplied(id, agentId, 0, 0, 0);
        vm.expectEmit(true, true, true, false, address(router));
        emit ITradeRouter.ExitExecuted(id, agentId, 0, keeper, 0, 0);
        uint256 usdcOut = _exit(id);

        IPositionManager.Position memory position = positions.getPosition(id);
        assertEq(position.tokenAmount, held - held / 2);
        assertEq(position.nextRuleIndex, 1);
        assertEq(position.usdcCostBasis, 5_000 * USDC);
        assertEq(position.realizedPnlUsdc, int256(usdcOut) - int256(5_000 * USDC));
        assertEq(router.dailyRealizedPnlUsdc(agentId, _today()), position.realizedPnlUsdc);
        assertEq(allocations.tradeCount(agentId), 2);
        assertEq(router.nonces(agentId), 1);
        assertFalse(lens.isTriggerMet(id));
    }

    function test_AStopBehindTakesFires() public {
        _setPrice(nvda, 91 * USD);
        _exit(id);
        IPositionManager.Position memory position = positions.getPosition(id);
        assertEq(position.status, uint8(IPositionManager.PositionStatus.Closed));
        assertEq(position.nextRuleIndex, 1);
        assertLt(position.realizedPnlUsdc, 0);
    }

    /// @dev The fired rule moves in front of the pending ones, which keep their order.
    function test_TheFiredRuleMovesToNextRuleIndex() public {
        _submit(_updateIntent(id, _ladder(_take(1_000, 5_000), _stop(-300, 5_000), _stop(-800, 10_000))));
        _setPrice(nvda, 95 * USD);
        _exit(id);

        IPositionManager.ExitRule[] memory rules = positions.getExitRules(id);
        assertEq(rules[0].triggerBps, -300);
        assertEq(rules[1].triggerBps, 1_000);
        assertEq(rules[2].triggerBps, -800);
        assertEq(positions.getPosition(id).nextRuleIndex, 1);

        _setPrice(nvda, 112 * USD);
        _exit(id);
        rules = positions.getExitRules(id);
        assertEq(rules[0].triggerBps, -300);
        assertEq(rules[1].triggerBps, 1_000);
        assertEq(positions.getPosition(id).nextRuleIndex, 2);
    }

    function test_OneCallFiresOneRuleTheFirstInOrder() public {
        _setPrice(nvda, 130 * USD);
        _exit(id);
        assertEq(positions.getPosition(id).nextRuleIndex, 1);
        assertEq(positions.getExitRules(id)[0].triggerBps, 1_000);
        assertTrue(lens.isTriggerMet(id));
        _exit(id);
        assertEq(positions.getPosition(id).nextRuleIndex, 2);
        assertEq(positions.getPosition(id).tokenAmount, held - held / 2 - (held - held / 2) / 2);
    }

    function test_AStopFiresAtItsTriggerAndNotABpsAbove() public {
        _submit(_updateIntent(id, _ladder(_stop(-500, 10_000))));
        uint256 boundary = uint256(10_000 * USDC) * 1e20 * 9_500 / (held * 10_000);
        _setPrice(nvda, boundary + 1);
        _expectNotDue();
        _setPrice(nvda, boundary);
        _exit(id);
    }

    function test_ATakeFiresAtItsTriggerAndNotABpsBelow() public {
        uint256 boundary = uint256(10_000 * USDC) * 1e20 * 11_000 / (held * 10_000) + 1;
        _setPrice(nvda, boundary - 1);
        _expectNotDue();
        _setPrice(nvda, boundary);
        _exit(id);
    }

    // Only a price observed after the order

    function test_APriceFromBeforeTheOpenDoesNotFire() public {
        _submit(_reduceIntent(id, 10_000));
        // The pool is 3 % dearer than the oracle, so the oracle's price is below a stop of 2 % from the start.
        market.moveTo(address(nvda), 103 * USD);
        ITradeRouter.PositionIntent memory intent = _openIntent(nvda, 10_000 * USDC);
        intent.maxSlippageBps = 500;
        intent.exits = _ladder(_stop(-200, 10_000));
        id = _submit(intent);
        assertLt(lens.positionPnlBps(id), -200);
        _expectNotDue();

        _setOraclePrice(nvda, NVDA_PRICE);
        _exit(id);
    }

    function test_APriceOfTheSameSecondButLaterFires() public {
        _submit(_updateIntent(id, _ladder(_stop(-300, 10_000))));
        _setOraclePrice(nvda, 95 * USD);
        market.moveTo(address(nvda), 95 * USD);
        _exit(id);
    }

    function test_LateNewsFromBeforeTheOrderDoesNotFire() public {
        skip(60);
        uint64 before = uint64(block.timestamp - 10);
        _submit(_updateIntent(id, _ladder(_stop(-300, 10_000))));
        _post(90 * USD, before);
        market.moveTo(address(nvda), 90 * USD);
        (, uint64 observedAt,) = oracle.peekPrice(address(nvda));
        assertEq(observedAt, before);
        _expectNotDue();

        _post(90 * USD, uint64(block.timestamp));
        _exit(id);
    }

    /// @dev The add itself, at a pool dearer than the oracle, meets the stop: the next price fires it.
    function test_AnAddDisarmsTheLadderUntilTheNextPrice() public {
        _submit(_updateIntent(id, _ladder(_stop(-100, 10_000))));
        market.moveTo(address(nvda), 103 * USD);
        ITradeRouter.AddToPositionIntent memory intent = _addIntent(id, 10_000 * USDC);
        intent.maxSlippageBps = 500;
        _submit(intent);
        assertLt(lens.positionPnlBps(id), -100);
        _expectNotDue();
        _setPrice(nvda, NVDA_PRICE);
        _exit(id);
    }

    function test_LateNewsFromBeforeAnAddDoesNotFire() public {
        skip(60);
        _submit(_addIntent(id, 100 * USDC));
        _post(90 * USD, uint64(block.timestamp - 1));
        market.moveTo(address(nvda), 90 * USD);
        _expectNotDue();
        _post(90 * USD, uint64(block.timestamp));
        _exit(id);
    }

    function test_AReduceLeavesTheLadderArmed() public {
        _setPrice(nvda, 111 * USD);
        _submit(_reduceIntent(id, 1_000));
        _exit(id);
    }

    // Refusals

    function test_RefusesAnUnknownAndAClosedPosition() public {
        vm.expectRevert(abi.encodeWithSelector(IPositionManager.PositionNotFound.selector, 7));
        router.executeExit(7);
        _submit(_reduceIntent(id, 10_000));
        vm.expectRevert(abi.encodeWithSelector(ITradeRouter.PositionNotOpen.selector, id));
        router.executeExit(id);
    }

    function test_RefusesWhatIsNotDue() public {
        _setPrice(nvda, 101 * USD);
        _expectNotDue();
    }

    function test_RefusesWhileTradingIsPaused() public {
        _setPrice(nvda, 111 * USD);
        _pauseTrading(true);
        vm.expectRevert(IMandateVault.TradingPaused.selector);
        router.executeExit(id);
    }

    function test_RefusesAStalePrice() public {
        _setPrice(nvda, 111 * USD);
        uint256 observedAt = block.timestamp;
        skip(1 hours + 1);
        vm.expectRevert(abi.encodeWithSelector(IPriceOracle.StalePrice.selector, address(nvda), observedAt, 1 hours));
        router.executeExit(id);
    }

    function test_DefersAFillWorseThanTheFloor() public {
        _setPrice(nvda, 111 * USD);
        market.moveTo(address(nvda), 109 * USD);
        assertEq(_exit(id), 0);
        assertEq(positions.getPosition(id).tokenAmount, held);
        vm.expectPartialRevert(ITradeRouter.ExitFloorNotMet.selector);
        router.executeExit(id);
    }

    function test_FiresForASuspendedAgent() public {
        _setStatus(IAgentRegistry.AgentStatus.Suspended);
        _setPrice(nvda, 90 * USD);
        _exit(id);
        assertEq(positions.getPosition(id).tokenAmount, 0);
    }

    // The bounty

    function test_PaysTheKeeperAShareOfTheProceeds() public {
        vm.prank(admin);
        router.setKeeperBounty(10, 100 * USDC);
        _setPrice(nvda, 111 * USD);
        uint256 usdcOut = _exit(id);

        uint256 bounty = usdc.balanceOf(keeper);
        assertEq(bounty, (usdcOut + bounty) * 10 / 10_000);
        assertEq(usdc.balanceOf(address(vault)), DEPOSITED - 10_000 * USDC + usdcOut);
    }

    function test_PaysNoMoreThanTheMaximum() public {
        vm.prank(admin);
        router.setKeeperBounty(100, 3 * USDC);
        _setPrice(nvda, 111 * USD);
        _exit(id);
        assertEq(usdc.balanceOf(keeper), 3 * USDC);
    }

    /// @dev A keeper who may take everything takes what is above the position's floor.
    function test_PaysNothingOutOfThePositionsFloor() public {
        vm.prank(admin);
        router.setKeeperBounty(10_000, 1_000_000 * USDC);
        _setPrice(nvda, 111 * USD);
        uint256 sold = held / 2;
        uint256 floor = (sold - 1) * (111 * USD * 9_950 / 10_000) / 1e20;
        assertEq(_exit(id), floor);
        assertGt(usdc.balanceOf(keeper), 0);
    }

    function test_WithoutABountyThereIsNone() public {
        vm.prank(admin);
        router.setKeeperBounty(0, 0);
        _setPrice(nvda, 111 * USD);
        _exit(id);
        assertEq(usdc.balanceOf(keeper), 0);
    }

    // Batches

    function test_ABatchTellsWhatHappenedToEach() public {
        uint256 calm = _open(tsla, 5_000 * USDC);
        _setPrice(nvda, 111 * USD);
        uint256[] memory ids = new uint256[](4);
        (ids[0], ids[1], ids[2], ids[3]) = (id, calm, 99, 0);
        vm.prank(keeper);
        (ITradeRouter.ExitStatus[] memory statuses, bytes[] memory reasons) = router.executeExits(ids);

        assertEq(uint8(statuses[0]), uint8(ITradeRouter.ExitStatus.Executed));
        assertEq(reasons[0], "");
        assertEq(uint8(statuses[1]), uint8(ITradeRouter.ExitStatus.NotDue));
        assertEq(reasons[1], abi.encodeWithSelector(ITradeRouter.TriggerNotMet.selector, calm));
        assertEq(uint8(statuses[2]), uint8(ITradeRouter.ExitStatus.NotOpen));
        assertEq(uint8(statuses[3]), uint8(ITradeRouter.ExitStatus.NotOpen));
        assertEq(usdc.balanceOf(keeper), 5 * USDC);
        assertEq(positions.getPosition(id).nextRuleIndex, 1);
    }

    function test_ABatchFiresOneRuleForEachMention() public {
        _setPrice(nvda, 130 * USD);
        uint256[] memory ids = new uint256[](3);
        (ids[0], ids[1], ids[2]) = (id, id, id);
        (ITradeRouter.ExitStatus[] memory statuses,) = router.executeExits(ids);
        assertEq(uint8(statuses[1]), uint8(ITradeRouter.ExitStatus.Executed));
        assertEq(uint8(statuses[2]), uint8(ITradeRouter.ExitStatus.NotDue));
        assertEq(positions.getPosition(id).nextRuleIndex, 2);
    }

    function test_ABatchNamesPausesStalePricesClosedPositionsAndFailures() public {
        _setPrice(nvda, 111 * USD);
        _pauseTrading(true);
        _expectStatus(ITradeRouter.ExitStatus.Paused);
        _pauseTrading(false);

        market.moveTo(address(nvda), 100 * USD);
        _exit(id);
        _expectStatus(ITradeRouter.ExitStatus.Failed);

        skip(1 hours + 1);
        _expectStatus(ITradeRouter.ExitStatus.StalePrice);

        _setPrice(nvda, 100 * USD);
        _submit(_reduceIntent(id, 10_000));
        _expectStatus(ITradeRouter.ExitStatus.NotOpen);
    }

    function test_ABatchTakesAFallenSequencerForAStalePrice() public {
        _setPrice(nvda, 111 * USD);
        SequencerFeed feed = new SequencerFeed();
        vm.prank(admin);
        oracle.setSequencerFeed(address(feed), 10 minutes);
        feed.set(1, block.timestamp);
        _expectStatus(ITradeRouter.ExitStatus.StalePrice);

        feed.set(0, block.timestamp);
        skip(10 minutes - 1);
        _expectStatus(ITradeRouter.ExitStatus.StalePrice);
        skip(1);
        _exit(id);
    }

    function test_ATokenThatBurnsAllGasStopsNoOtherExitOfItsBatch() public {
        uint256 other = _open(tsla, 5_000 * USDC);
        _setPrice(nvda, 111 * USD);
        _setPrice(tsla, 555 * USD);
        vm.etch(address(nvda), hex"5b600056"); // an endless loop
        uint256[] memory ids = new uint256[](3);
        (ids[0], ids[1], ids[2]) = (id, id, other);
        (ITradeRouter.ExitStatus[] memory statuses,) = router.executeExits{gas: 10_000_000}(ids);

        assertEq(uint8(statuses[0]), uint8(ITradeRouter.ExitStatus.Failed));
        assertEq(uint8(statuses[1]), uint8(ITradeRouter.ExitStatus.Failed));
        assertEq(uint8(statuses[2]), uint8(ITradeRouter.ExitStatus.Executed));
    }

    function test_OnlyTheRouterCallsForOneOfABatch() public {
        vm.expectRevert(abi.encodeWithSelector(ITradeRouter.OnlySelf.selector, address(this)));
        router.executeExitFor(id, address(this));
    }

    function testFuzz_NoKeeperTakesWhatTheFloorPromises(uint256 bps, uint256 max, uint256 price) public {
        bps = bound(bps, 0, 10_000);
        max = bound(max, 0, type(uint80).max);
        price = bound(price, 111 * USD, 250 * USD);
        vm.prank(admin);
        router.setKeeperBounty(bps, max);
        _setPrice(nvda, price);
        uint256 usdcOut = _exit(id);

        uint256 bounty = usdc.balanceOf(keeper);
        assertLe(bounty, max);
        assertLe(bounty, (usdcOut + bounty) * bps / 10_000);
        assertGe(usdcOut, held / 2 * price / 1e20 * 9_950 / 10_000);
    }

    function _expectNotDue() private {
        assertFalse(lens.isTriggerMet(id));
        vm.expectRevert(abi.encodeWithSelector(ITradeRouter.TriggerNotMet.selector, id));
        router.executeExit(id);
    }

    function _expectStatus(ITradeRouter.ExitStatus expected) private {
        uint256[] memory ids = new uint256[](1);
        ids[0] = id;
        (ITradeRouter.ExitStatus[] memory statuses, bytes[] memory reasons) = router.executeExits(ids);
        assertEq(uint8(statuses[0]), uint8(expected));
        assertGt(reasons[0].length, 3);
    }

    function _post(uint256 price, uint64 observedAt) private {
        address[] memory assets = new address[](1);
        int256[] memory prices = new int256[](1);
        uint64[] memory times = new uint64[](1);
        (assets[0], prices[0], times[0]) = (address(nvda), int256(price), observedAt);
        vm.prank(updater);
        oracle.post(assets, prices, times);
    }
}
