// SPDX-License-Identifier: MIT
pragma solidity ^0.8.30;

import {IAccessControl} from "@openzeppelin/contracts/access/IAccessControl.sol";
import {TradePolicy} from "../../src/TradePolicy.sol";
import {ITradePolicy} from "../../src/interfaces/ITradePolicy.sol";
import {ITradeRouter} from "../../src/interfaces/ITradeRouter.sol";
import {PoolPrices} from "../oracle/PoolPrices.sol";
import {ProtocolTest} from "../router/ProtocolTest.sol";

contract TradePolicyTest is ProtocolTest {
    function setUp() public override {
        super.setUp();
        _useDefaultLimits();
        skip(10 minutes);
        _setOraclePrice(nvda, NVDA_PRICE);
    }

    function test_AVaultAndTrackWithoutLimitsHasTheDefaultOnes() public view {
        assertEq(abi.encode(tradePolicy.limitsOf(address(1), 7)), abi.encode(_defaultLimits()));
    }

    function test_TheAdminSetsLimits() public {
        ITradePolicy.Limits memory limits = _defaultLimits();
        limits.maxExitSlippageBps = 500;
        vm.expectEmit(address(tradePolicy));
        emit ITradePolicy.LimitsUpdated(address(vault), 0, limits);
        _setLimits(limits);
        assertEq(abi.encode(tradePolicy.limitsOf(address(vault), 0)), abi.encode(limits));
        assertEq(tradePolicy.limitsOf(address(vault), 1).maxExitSlippageBps, 300);
    }

    function test_NobodyElseSetsAnything() public {
        bytes memory refusal = abi.encodeWithSelector(
            IAccessControl.AccessControlUnauthorizedAccount.selector, address(this), tradePolicy.DEFAULT_ADMIN_ROLE()
        );
        vm.expectRevert(refusal);
        tradePolicy.setLimits(address(vault), 0, _defaultLimits());
        vm.expectRevert(refusal);
        tradePolicy.setTwapRequired(address(nvda), true);
    }

    function test_RefusesLimitsOutOfRange() public {
        uint256[6] memory fields = [uint256(0), 1, 2, 3, 5, 6];
        uint256[6] memory maxima = [uint256(1_000), 2_000, 300, 1 days, 10_000, 10_000];
        for (uint256 i; i < fields.length; ++i) {
            _setLimits(_with(fields[i], maxima[i]));
            _refuseLimits(fields[i], maxima[i] + 1, maxima[i]);
        }
        _setLimits(_with(7, 1 hours));
        _refuseLimits(7, 1 hours + 1, 1 hours);
        _setLimits(_with(8, 10 minutes));
        _setLimits(_with(8, 0));
        _refuseLimits(8, 10 minutes - 1, 10 minutes);
    }

    function test_RefusesAnExitSlippageOfNothing() public {
        ITradePolicy.Limits memory limits = _defaultLimits();
        limits.exitSlippageStartBps = 0;
        limits.maxExitSlippageBps = 0;
        vm.prank(admin);
        vm.expectRevert(abi.encodeWithSelector(ITradePolicy.LimitOutOfRange.selector, 1, 0, 2_000));
        tradePolicy.setLimits(address(vault), 0, limits);
    }

    function test_RefusesToBeWithoutAnAdmin() public {
        vm.expectRevert(ITradePolicy.ZeroAddress.selector);
        this.deploy(address(0));
    }

    /// @dev A call of its own: a creation that reverts after `expectRevert` would end the whole test as passed.
    function deploy(address owner) external {
        new TradePolicy(owner);
    }

    // Buys

    function test_RefusesMoreSlippageThanTheLimit() public {
        ITradeRouter.PositionIntent memory intent = _openIntent(nvda, 1_000 * USDC);
        intent.maxSlippageBps = 101;
        _refuse(intent, abi.encodeWithSelector(ITradePolicy.SlippageAboveLimit.selector, 101, 100));
        intent.maxSlippageBps = 10_000;
        _refuse(intent, abi.encodeWithSelector(ITradePolicy.SlippageAboveLimit.selector, 10_000, 100));
        intent.maxSlippageBps = 100;
        uint256 id = _submit(intent);

        ITradeRouter.AddToPositionIntent memory add = _addIntent(id, 1_000 * USDC);
        add.maxSlippageBps = 101;
        _refuse(add, abi.encodeWithSelector(ITradePolicy.SlippageAboveLimit.selector, 101, 100));
    }

    function test_RefusesATradeBelowTheSmallest() public {
        _refuse(
            _openIntent(nvda, 1 * USDC - 1), abi.encodeWithSelector(ITradePolicy.TradeTooSmall.selector, 1e6 - 1, 1e6)
        );
        uint256 id = _open(nvda, 1 * USDC);
        _refuse(_addIntent(id, 1 * USDC - 1), abi.encodeWithSelector(ITradePolicy.TradeTooSmall.selector, 1e6 - 1, 1e6));
    }

    function test_APartialReduceHasASmallestSizeAndAWholeOneHasNone() public {
        uint256 id = _open(nvda, 10 * USDC);
        skip(1);
        ITradeRouter.ReducePositionIntent memory intent = _reduceIntent(id, 999);
        uint256 value = positions.getPosition(id).tokenAmount * 999 / 10_000 * NVDA_PRICE / 1e20;
        _refuse(intent, abi.encodeWithSelector(ITradePolicy.TradeTooSmall.selector, value, 1e6));
        _submit(_reduceIntent(id, 9_000));
        _submit(_reduceIntent(id, 10_000));
        assertEq(positions.getPosition(id).tokenAmount, 0);
    }

    function test_RefusesADeadlineTooFarAhead() public {
        uint256 latest = block.timestamp + 30 days;
        ITradeRouter.PositionIntent memory intent = _openIntent(nvda, 1_000 * USDC);
        intent.deadline = latest + 1;
        _refuse(intent, abi.encodeWithSelector(ITradePolicy.DeadlineTooFar.selector, latest + 1, latest));
        intent.deadline = latest;
        uint256 id = _submit(intent);

        ITradeRouter.AddToPositionIntent memory add = _addIntent(id, 1_000 * USDC);
        add.deadline = type(uint256).max;
        _refuse(add, abi.encodeWithSelector(ITradePolicy.DeadlineTooFar.selector, type(uint256).max, latest));
        ITradeRouter.ReducePositionIntent memory reduce = _reduceIntent(id, 5_000);
        reduce.deadline = latest + 1;
        _refuse(reduce, abi.encodeWithSelector(ITradePolicy.DeadlineTooFar.selector, latest + 1, latest));
        ITradeRouter.UpdateExitLadderIntent memory update = _updateIntent(id, _threeRules());
        update.deadline = latest + 1;
        _refuse(update, abi.encodeWithSelector(ITradePolicy.DeadlineTooFar.selector, latest + 1, latest));
    }

    function test_RefusesABuyWhileThePoolIsTooFarFromTheOracle() public {
        market.moveTo(address(nvda), NVDA_PRICE * 9_690 / 10_000);
        ITradeRouter.PositionIntent memory intent = _openIntent(nvda, 1_000 * USDC);
        (uint256 spot,) = adapter.pricesOf(address(nvda), 0);
        _refuse(
            intent,
            abi.encodeWithSelector(ITradePolicy.SpotPriceDeviation.selector, address(nvda), spot, NVDA_PRICE, 300)
        );
        market.moveTo(address(nvda), NVDA_PRICE * 9_701 / 10_000);
        _submit(intent);
    }

    function test_RefusesABuyWhileTheAverageIsTooFarFromTheOracle() public {
        market.moveTo(address(nvda), NVDA_PRICE * 11_200 / 10_000);
        skip(5 minutes);
        market.moveTo(address(nvda), NVDA_PRICE);
        _setOraclePrice(nvda, NVDA_PRICE);
        (, uint256 twap) = adapter.pricesOf(address(nvda), 5 minutes);
        assertApproxEqRel(twap, NVDA_PRICE * 11_200 / 10_000, 2e14);
        _refuse(
            _openIntent(nvda, 1_000 * USDC),
            abi.encodeWithSelector(ITradePolicy.TwapDeviation.selector, address(nvda), twap, NVDA_PRICE, 1_000)
        );
        skip(5 minutes);
        _open(nvda, 1_000 * USDC);
    }

    function test_APoolWithoutHistoryTradesUnlessTheTokenNeedsIt() public {
        vm.mockCallRevert(adapter.poolOf(address(nvda)), abi.encodeWithSignature("observe(uint32[])"), "OLD");
        vm.mockCall(
            adapter.poolOf(address(nvda)),
            abi.encodeWithSignature("observations(uint256)"),
            abi.encode(block.timestamp, 0, 0, true)
        );
        vm.prank(admin);
        tradePolicy.setTwapRequired(address(nvda), true);
        _refuse(
            _openIntent(nvda, 1_000 * USDC),
            abi.encodeWithSelector(ITradePolicy.TwapUnavailable.selector, address(nvda))
        );
        vm.prank(admin);
        tradePolicy.setTwapRequired(address(nvda), false);
        _open(nvda, 1_000 * USDC);
    }

    function test_ALimitOfZeroIsOff() public {
        ITradePolicy.Limits memory limits = _defaultLimits();
        limits.maxSpotDeviationBps = 0;
        limits.maxTwapDeviationBps = 0;
        limits.minTradeUsdc = 0;
        limits.maxDeadlineSeconds = 0;
        _setLimits(limits);
        market.moveTo(address(nvda), NVDA_PRICE * 80 / 100);
        ITradeRouter.PositionIntent memory intent = _openIntent(nvda, 10);
        intent.deadline = type(uint256).max;
        _submit(intent);
    }

    // Sales

    function test_AReduceKeepsTheSignedSlippageWithinTheLimits() public view {
        ITradePolicy.Market memory m =
            ITradePolicy.Market(address(vault), 0, address(adapter), address(nvda), NVDA_PRICE, block.timestamp, 0);
        assertEq(_reduceSlippage(m, 0), 50);
        assertEq(_reduceSlippage(m, 50), 50);
        assertEq(_reduceSlippage(m, 51), 51);
        assertEq(_reduceSlippage(m, 300), 300);
        assertEq(_reduceSlippage(m, 10_000), 300);
    }

    function test_AStrangersOrderGetsAtMostTheSlippageOfAnExit() public {
        ITradePolicy.Market memory m = ITradePolicy.Market(
            address(vault), 0, address(adapter), address(nvda), NVDA_PRICE, block.timestamp, block.timestamp
        );
        skip(450);
        assertEq(_reduceSlippage(m, 0), 50);
        assertEq(_reduceSlippage(m, 100), 100);
        assertEq(_reduceSlippage(m, 300), 175);
        (uint256 slippage,) = tradePolicy.checkBuy(m, 1e6, 20, 0);
        assertEq(slippage, 20);
        m.dueSince = block.timestamp;
        (slippage,) = tradePolicy.checkBuy(m, 1e6, 100, 0);
        assertEq(slippage, 50);
        m.dueSince = 0;
        (slippage,) = tradePolicy.checkBuy(m, 1e6, 100, 0);
        assertEq(slippage, 100);
    }

    function test_TheFairPriceOfAnOldPriceIsTheWorseOneOfItAndThePoolsAverage() public {
        PoolPrices pool = new PoolPrices();
        ITradePolicy.Market memory m = ITradePolicy.Market(
            address(vault), 0, address(pool), address(nvda), 100 * USD, block.timestamp, block.timestamp
        );
        pool.say(100 * USD, 101 * USD);
        skip(150);
        assertEq(_fairPriceOfSale(m), 100 * USD);
        skip(1);
        assertEq(_fairPriceOfSale(m), 101 * USD);
        assertEq(_fairPriceOfBuy(m), 100 * USD);
        pool.say(100 * USD, 99 * USD);
        assertEq(_fairPriceOfSale(m), 100 * USD);
        assertEq(_fairPriceOfBuy(m), 99 * USD);
        pool.say(100 * USD, 0);
        assertEq(_fairPriceOfBuy(m), 100 * USD);
    }

    function test_TheSlippageOfAnExitWidensFromItsStartToItsMaximum() public {
        uint256 since = block.timestamp;
        assertEq(tradePolicy.exitSlippageBps(address(vault), 0, since), 50);
        skip(450);
        assertEq(tradePolicy.exitSlippageBps(address(vault), 0, since), 175);
        skip(449);
        assertEq(tradePolicy.exitSlippageBps(address(vault), 0, since), 299);
        skip(1);
        assertEq(tradePolicy.exitSlippageBps(address(vault), 0, since), 300);
        assertEq(tradePolicy.exitSlippageBps(address(vault), 0, 0), 300);
    }

    function test_WithoutWideningAnExitHasItsMaximumAtOnce() public {
        _setLimits(_with(3, 0));
        assertEq(tradePolicy.exitSlippageBps(address(vault), 0, block.timestamp), 300);
    }

    function test_ASaleIsRefusedOnlyWhileThePoolIsBelowTheOracle() public {
        uint256 id = _open(nvda, 1_000 * USDC);
        skip(1);
        market.moveTo(address(nvda), NVDA_PRICE * 9_690 / 10_000);
        (uint256 spot,) = adapter.pricesOf(address(nvda), 0);
        _refuse(
            _reduceIntent(id, 5_000),
            abi.encodeWithSelector(ITradePolicy.SpotPriceDeviation.selector, address(nvda), spot, NVDA_PRICE, 300)
        );
        market.moveTo(address(nvda), NVDA_PRICE * 10_900 / 10_000);
        _submit(_reduceIntent(id, 5_000));
    }

    /// @dev 3 % for the spot price and 10 % for the average, to the unit.
    function test_APriceAtItsBoundIsWithinIt() public {
        PoolPrices pool = new PoolPrices();
        ITradePolicy.Market memory m = ITradePolicy.Market(
            address(vault), 0, address(pool), address(nvda), 100 * USD, block.timestamp, block.timestamp
        );
        pool.say(103 * USD, 110 * USD);
        tradePolicy.checkBuy(m, 1e6, 0, 0);
        pool.say(97 * USD, 90 * USD);
        tradePolicy.checkBuy(m, 1e6, 0, 0);
        tradePolicy.checkExit(m);

        pool.say(103 * USD + 1, 100 * USD);
        vm.expectPartialRevert(ITradePolicy.SpotPriceDeviation.selector);
        tradePolicy.checkBuy(m, 1e6, 0, 0);
        pool.say(97 * USD - 1, 100 * USD);
        vm.expectPartialRevert(ITradePolicy.SpotPriceDeviation.selector);
        tradePolicy.checkExit(m);
        pool.say(100 * USD, 110 * USD + 1);
        vm.expectPartialRevert(ITradePolicy.TwapDeviation.selector);
        tradePolicy.checkBuy(m, 1e6, 0, 0);
        pool.say(100 * USD, 90 * USD - 1);
        vm.expectPartialRevert(ITradePolicy.TwapDeviation.selector);
        tradePolicy.checkExit(m);
    }

    function test_EachOfTheTwoPricesIsBoundedWithoutTheOther() public {
        PoolPrices pool = new PoolPrices();
        ITradePolicy.Market memory m = ITradePolicy.Market(
            address(vault), 0, address(pool), address(nvda), 100 * USD, block.timestamp, block.timestamp
        );
        pool.say(104 * USD, 111 * USD);
        _setLimits(_with(6, 0));
        vm.expectPartialRevert(ITradePolicy.SpotPriceDeviation.selector);
        tradePolicy.checkBuy(m, 1e6, 0, 0);
        _setLimits(_with(5, 0));
        vm.expectPartialRevert(ITradePolicy.TwapDeviation.selector);
        tradePolicy.checkBuy(m, 1e6, 0, 0);
    }

    function test_APolicyDoesNotLoosenTheRoutersOwnBound() public {
        uint256 id = _open(nvda, 1_000 * USDC);
        LoosePolicy loose = new LoosePolicy();
        vm.prank(admin);
        router.setTradePolicy(address(loose));
        _setPrice(nvda, 91 * USD);
        market.moveTo(address(nvda), 91 * USD * 79 / 100);
        _exit(id);
        assertGt(positions.getPosition(id).tokenAmount, 0);
        vm.expectPartialRevert(ITradeRouter.SlippageExceeded.selector);
        this.reduceAll(id);
    }

    function reduceAll(uint256 id) external {
        _submit(_reduceIntent(id, 10_000));
    }

    function _reduceSlippage(ITradePolicy.Market memory m, uint256 signed) private view returns (uint256 slippage) {
        (slippage,) = tradePolicy.checkReduce(m, 1e6, signed, 0);
    }

    function _fairPriceOfSale(ITradePolicy.Market memory m) private view returns (uint256 reduction) {
        (, reduction) = tradePolicy.checkReduce(m, 1e6, 100, 0);
        (, uint256 ofExit) = tradePolicy.checkExit(m);
        assertEq(reduction, ofExit);
    }

    function _fairPriceOfBuy(ITradePolicy.Market memory m) private view returns (uint256 fair) {
        (, fair) = tradePolicy.checkBuy(m, 1e6, 100, 0);
    }

    function _with(uint256 field, uint256 value) private pure returns (ITradePolicy.Limits memory limits) {
        limits = _defaultLimits();
        if (field == 0) limits.maxEntrySlippageBps = uint16(value);
        if (field == 1) limits.maxExitSlippageBps = uint16(value);
        if (field == 2) limits.exitSlippageStartBps = uint16(value);
        if (field == 3) limits.exitWideningSeconds = uint32(value);
        if (field == 5) limits.maxSpotDeviationBps = uint16(value);
        if (field == 6) limits.maxTwapDeviationBps = uint16(value);
        if (field == 7) limits.twapWindow = uint32(value);
        if (field == 8) limits.maxDeadlineSeconds = uint32(value);
    }

    function _refuseLimits(uint256 field, uint256 value, uint256 max) private {
        vm.prank(admin);
        vm.expectRevert(abi.encodeWithSelector(ITradePolicy.LimitOutOfRange.selector, field, value, max));
        tradePolicy.setLimits(address(vault), 0, _with(field, value));
    }
}

/// @notice A policy that allows everything
contract LoosePolicy {
    function checkExit(ITradePolicy.Market calldata) external pure returns (uint256, uint256) {
        return (10_000, 0);
    }

    function checkReduce(ITradePolicy.Market calldata, uint256, uint256, uint256)
        external
        pure
        returns (uint256, uint256)
    {
        return (10_000, 0);
    }
}
