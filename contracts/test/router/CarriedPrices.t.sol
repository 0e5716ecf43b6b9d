// SPDX-License-Identifier: MIT
pragma solidity ^0.8.30;

import {IAccessControl} from "@openzeppelin/contracts/access/IAccessControl.sol";
import {RequestQueue} from "../../src/RequestQueue.sol";
import {IMandateVault} from "../../src/interfaces/IMandateVault.sol";
import {IOrderBook} from "../../src/interfaces/IOrderBook.sol";
import {IPriceCarrier} from "../../src/interfaces/IPriceCarrier.sol";
import {IPriceOracle} from "../../src/interfaces/IPriceOracle.sol";
import {ITradeRouter} from "../../src/interfaces/ITradeRouter.sol";
import {IVaultTrackRegistry} from "../../src/interfaces/IVaultTrackRegistry.sol";
import {PushFeed} from "../oracle/PushFeed.sol";
import {ReportTest} from "../oracle/ReportTest.sol";

/// @notice Calls that bring the prices that they need
contract CarriedPricesTest is ReportTest {
    /// @dev Every price is stale: whatever succeeds has brought its own.
    function setUp() public override {
        super.setUp();
        skip(2 hours);
    }

    function test_EveryContractThatNeedsAPriceCarriesItToTheOracle() public {
        RequestQueue queue = new RequestQueue(address(vault));
        address[6] memory carriers =
            [address(router), address(orderBook), address(controls), address(agents), address(vault), address(queue)];
        for (uint256 i; i < carriers.length; ++i) {
            skip(1);
            bytes memory call = abi.encodeCall(
                IPriceCarrier.withPrices, (new bytes[](0), new address[](0), address(oracle), _anyRead(carriers[i]))
            );
            _carry(carriers[i], keeper, _report(nvda, NVDA_PRICE), call);
            (, uint64 observedAt,) = oracle.peekPrice(address(nvda));
            assertEq(observedAt, block.timestamp);
        }
    }

    function test_AnIntentOpensAtTheReportThatItsRelayerBrings() public {
        _refuse(
            _openIntent(nvda, 5_000 * USDC),
            abi.encodeWithSelector(IPriceOracle.StalePrice.selector, nvda, block.timestamp - 2 hours - 1, 1 hours)
        );
        uint256 id = _carryOpen(nvda, 5_000 * USDC, _report(nvda, NVDA_PRICE));
        assertEq(id, 1);
        assertEq(positions.positionStateOf(id).tokenAmount, _boughtAt(100));
    }

    function test_ReturnsWhatTheCallReturnsAndPassesItsErrorsOn() public {
        bytes memory call = _openCall(nvda, 5_000 * USDC);
        bytes[] memory reports = new bytes[](1);
        reports[0] = _report(nvda, NVDA_PRICE);
        vm.expectRevert(
            abi.encodeWithSelector(
                IAccessControl.AccessControlUnauthorizedAccount.selector, keeper, router.EXECUTOR_ROLE()
            )
        );
        vm.prank(keeper);
        router.withPrices(reports, new address[](0), address(oracle), call);
        vm.prank(executor);
        vm.expectRevert();
        router.withPrices(reports, new address[](0), address(oracle), "");

        reports[0] = streams.signed(NVDA_STREAM, 100e18, 5);
        vm.expectRevert(abi.encodeWithSelector(IPriceOracle.MarketNotTrading.selector, nvda, 5));
        vm.prank(executor);
        router.withPrices(reports, new address[](0), address(oracle), call);

        reports = new bytes[](0);
        bytes memory returned =
            router.withPrices(reports, new address[](0), address(oracle), abi.encodeCall(router.nonces, (agentId)));
        assertEq(returned, abi.encode(0));
        assertEq(
            router.withPrices(reports, new address[](0), address(oracle), abi.encodeCall(router.eip712Domain, ())),
            _domain()
        );
    }

    function test_AWrongOracleStoresNoPriceThatIsReadAndHarmsNothing() public {
        bytes[] memory reports = new bytes[](1);
        reports[0] = _report(nvda, NVDA_PRICE);
        bytes memory call = _openCall(nvda, 5_000 * USDC);
        address[8] memory wrong = [
            makeAddr("nobody"),
            address(vault),
            address(allocations),
            address(positions),
            address(adapter),
            address(usdc),
            address(agents),
            address(router)
        ];
        for (uint256 i; i < wrong.length; ++i) {
            vm.expectRevert();
            vm.prank(executor);
            router.withPrices(reports, new address[](0), wrong[i], call);
        }
        assertTrue(oracle.isStale(address(nvda), 1 hours));
    }

    function test_ACallMakesNoCallThatItsSenderMayNotMake() public {
        bytes[] memory none = new bytes[](0);
        vm.expectRevert(abi.encodeWithSelector(ITradeRouter.OnlySelf.selector, keeper));
        vm.prank(keeper);
        router.withPrices(
            none,
            new address[](0),
            address(oracle),
            abi.encodeWithSignature("executeExitFor(uint256,address)", 1, keeper)
        );
        vm.expectRevert(
            abi.encodeWithSelector(IAccessControl.AccessControlUnauthorizedAccount.selector, keeper, bytes32(0))
        );
        vm.prank(keeper);
        router.withPrices(none, new address[](0), address(oracle), abi.encodeCall(router.setSwapAdapter, (keeper)));
        vm.expectRevert(abi.encodeWithSelector(IMandateVault.OnlyTradeRouter.selector, keeper));
        vm.prank(keeper);
        vault.withPrices(none, new address[](0), address(oracle), abi.encodeCall(vault.pullAssetsForTrade, (keeper, 1)));
    }

    function test_OneCallBringsSeveralTokensAndPushFeeds() public {
        PushFeed feed = new PushFeed(8);
        IPriceOracle.Source memory source;
        (source.kind, source.aggregator) = (IPriceOracle.SourceKind.Feed, address(feed));
        vm.prank(admin);
        oracle.setSource(address(tsla), source);
        feed.say(int256(TSLA_PRICE), block.timestamp);
        bytes[] memory reports = new bytes[](1);
        reports[0] = _report(nvda, NVDA_PRICE);
        address[] memory feeds = new address[](1);
        feeds[0] = address(tsla);
        bytes memory inner = abi.encodeCall(
            router.withPrices, (reports, new address[](0), address(oracle), _openCall(tsla, 5_000 * USDC))
        );
        vm.prank(executor);
        router.withPrices(reports, feeds, address(oracle), inner);
        assertEq(positions.positionCount(), 1);
        assertFalse(oracle.isStale(address(nvda), 1));
    }

    function test_AddsReductionsAndExitsBringTheirPrices() public {
        uint256 id = _carryOpen(nvda, 5_000 * USDC, _report(nvda, NVDA_PRICE));
        skip(2 hours);
        ITradeRouter.AddToPositionIntent memory addition = _addIntent(id, 1_000 * USDC);
        bytes memory call =
            abi.encodeCall(router.addToPosition, (addition, _sign(signerKey, digests.hashAddToPosition(addition))));
        _carry(address(router), executor, _report(nvda, NVDA_PRICE), call);
        skip(2 hours);
        _carry(address(router), executor, _report(nvda, NVDA_PRICE), _reduceCall(id, 5_000));
        skip(2 hours);
        market.moveTo(address(nvda), 90 * USD);
        _carry(address(router), keeper, _report(nvda, 90 * USD), abi.encodeCall(router.executeExit, (id)));
        assertEq(positions.positionStateOf(id).tokenAmount, 0);
        assertGt(usdc.balanceOf(keeper), 0, "the bounty is the keeper's");
    }

    function test_OrdersAndPeaksBringTheirPrices() public {
        uint256 id = _carryOpen(nvda, 5_000 * USDC, _report(nvda, NVDA_PRICE));
        IOrderBook.Order memory order = _trail(id, 500);
        bytes32 orderId = _place(order);
        skip(2 hours);
        IOrderBook.Order[] memory orders = new IOrderBook.Order[](1);
        orders[0] = order;
        _carry(address(orderBook), keeper, _report(nvda, 110 * USD), abi.encodeCall(orderBook.raisePeaks, (orders)));
        assertEq(orderBook.orderStateOf(agentId, orderId).peak, 110 * USD);
        skip(2 hours);
        market.moveTo(address(nvda), 104 * USD);
        _carry(address(orderBook), keeper, _report(nvda, 104 * USD), abi.encodeCall(orderBook.executeOrder, (order)));
        assertEq(positions.positionStateOf(id).tokenAmount, 0);
    }

    function test_DepositsRedemptionsAndCheckpointsBringTheirPrices() public {
        _carryOpen(nvda, 20_000 * USDC, _report(nvda, NVDA_PRICE));
        vm.startPrank(admin);
        vault.setLiquidityPolicy(IMandateVault.LiquidityPolicy(5 minutes, 0, 100, 1 days, 6 hours));
        usdc.mint(investor, 1_000 * USDC);
        vm.stopPrank();
        skip(2 hours);
        vm.prank(investor);
        usdc.approve(address(vault), 1_000 * USDC);
        assertEq(vault.maxDeposit(investor), 0, "2 % of the vault have no fresh price");
        bytes memory call = abi.encodeCall(vault.deposit, (1_000 * USDC, investor));
        uint256 shares = abi.decode(_carry(address(vault), investor, _report(nvda, NVDA_PRICE), call), (uint256));
        assertGt(shares, 0);
        skip(2 hours);
        call = abi.encodeCall(vault.redeem, (shares, investor, investor));
        _carry(address(vault), investor, _report(nvda, NVDA_PRICE), call);
        assertApproxEqAbs(usdc.balanceOf(investor), 1_000 * USDC, 2);
        skip(2 days);
        _carry(address(vault), keeper, _report(nvda, NVDA_PRICE), abi.encodeCall(vault.checkpointSharePrice, ()));
        assertEq(vault.sharePriceBreaker().setAt, block.timestamp);
    }

    function test_APromotionBringsThePricesThatItsCriteriaRead() public {
        IVaultTrackRegistry.VaultTrackConfig memory config = tracks.getVaultTrackConfig(address(vault), 0);
        (config.minTrades, config.evaluationPeriod, config.promotionScore) = (0, 0, 0);
        (config.maxDrawdownBps, config.maxDailyLossBps) = (0, 0);
        _setPolicy(config);
        config.trackId = 1;
        _setPolicy(config);
        _carry(address(agents), keeper, _report(nvda, NVDA_PRICE), abi.encodeCall(agents.promoteAgent, (agentId, 1)));
        assertEq(agents.trackOf(agentId), 1);
    }

    /// @dev A read that the contract has without arguments.
    function _anyRead(address target) private view returns (bytes memory) {
        if (target == address(router)) return abi.encodeCall(router.usdc, ());
        if (target == address(vault)) return abi.encodeCall(vault.asset, ());
        if (target == address(orderBook) || target == address(controls)) {
            return abi.encodeWithSignature("agentRegistry()");
        }
        return abi.encodeWithSignature(target == address(agents) ? "feeManager()" : "vault()");
    }

    function _boughtAt(uint256 dollars) private view returns (uint256 tokens) {
        tokens = positions.positionStateOf(1).tokenAmount;
        assertApproxEqRel(tokens, 5_000e18 / dollars, 0.002e18);
    }

    function _domain() private view returns (bytes memory) {
        (bool success, bytes memory data) = address(router).staticcall(abi.encodeCall(router.eip712Domain, ()));
        assertTrue(success);
        return data;
    }
}
