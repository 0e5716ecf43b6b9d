// SPDX-License-Identifier: MIT
pragma solidity ^0.8.30;

import {Test} from "forge-std/Test.sol";
import {IAccessControl} from "@openzeppelin/contracts/access/IAccessControl.sol";
import {PriceOracle} from "../../src/PriceOracle.sol";
import {ScaledStockToken} from "../../src/embedded/ScaledStockToken.sol";
import {StockIssuer} from "../../src/embedded/StockIssuer.sol";
import {UsdcToken} from "../../src/embedded/UsdcToken.sol";
import {IPriceOracle} from "../../src/interfaces/IPriceOracle.sol";
import {Chainlink} from "./Chainlink.sol";
import {PushFeed} from "./PushFeed.sol";
import {IVerifierSetup, Streams} from "./Streams.sol";

interface IFluxAggregator {
    function changeOracles(
        address[] memory removed,
        address[] memory added,
        address[] memory addedAdmins,
        uint32 minSubmissions,
        uint32 maxSubmissions,
        uint32 restartDelay
    ) external;
    function submit(uint256 roundId, int256 submission) external;
}

/// @notice The sources of prices, with Chainlink's own verifier
contract PriceSourcesTest is Test, Chainlink {
    bytes32 private constant V8 = bytes32(uint256(8) << 240 | 1);
    bytes32 private constant V10 = bytes32(uint256(10) << 240 | 1);
    bytes32 private constant REGULAR = bytes32(uint256(11) << 240 | 1);
    bytes32 private constant EXTENDED = bytes32(uint256(11) << 240 | 2);
    bytes32 private constant OVERNIGHT = bytes32(uint256(11) << 240 | 3);
    bytes32 private constant CRYPTO = bytes32(uint256(3) << 240 | 1);
    uint256 private constant START = 1_800_000_000;
    uint256 private constant OPEN = 2;

    PriceOracle private oracle;
    Streams private streams;
    StockIssuer private issuer;
    ScaledStockToken private stock;
    address private nvda;
    address private aapl = makeAddr("AAPL");
    address private updater = makeAddr("updater");
    address private forcer = makeAddr("forcer");
    address private stranger = makeAddr("stranger");

    function setUp() public {
        vm.warp(START);
        oracle = new PriceOracle(address(this));
        oracle.grantRole(oracle.ORACLE_UPDATER_ROLE(), updater);
        oracle.grantRole(oracle.ORACLE_FORCER_ROLE(), forcer);
        streams = new Streams(1);
        oracle.setVerifier(address(streams.proxy()));
        issuer = new StockIssuer(address(new ScaledStockToken()), address(this));
        stock = ScaledStockToken(issuer.deploy("NVIDIA", "NVDA"));
        nvda = address(stock);
    }

    // Sources

    function test_OnlyTheAdminSetsSourcesAndTheVerifier() public {
        bytes memory notAdmin =
            abi.encodeWithSelector(IAccessControl.AccessControlUnauthorizedAccount.selector, updater, bytes32(0));
        vm.startPrank(updater);
        vm.expectRevert(notAdmin);
        oracle.setSource(nvda, _reports(V8, false));
        vm.expectRevert(notAdmin);
        oracle.setVerifier(address(1));
    }

    function test_TellsTheSourceOfAnAsset() public {
        assertEq(uint8(oracle.sourceOf(nvda).kind), uint8(IPriceOracle.SourceKind.Updater));
        IPriceOracle.Source memory source = _day(0);
        vm.expectEmit(address(oracle));
        emit IPriceOracle.SourceUpdated(nvda, source);
        oracle.setSource(nvda, source);
        assertEq(abi.encode(oracle.sourceOf(nvda)), abi.encode(source));
        assertEq(oracle.assetOfStream(REGULAR), nvda);
        assertEq(oracle.assetOfStream(OVERNIGHT), nvda);
        assertEq(oracle.verifier(), address(streams.proxy()));

        oracle.setSource(nvda, _updater());
        assertEq(oracle.assetOfStream(OVERNIGHT), address(0));
    }

    function test_RefusesASourceThatCouldNotWork() public {
        IPriceOracle.Source memory source = _reports(CRYPTO, false);
        _refuseSource(nvda, source, abi.encodeWithSelector(IPriceOracle.UnknownSchema.selector, CRYPTO));

        bytes memory invalid = abi.encodeWithSelector(IPriceOracle.InvalidSource.selector, nvda);
        source.feedIds = new bytes32[](0);
        _refuseSource(nvda, source, invalid);
        source.feedIds = new bytes32[](4);
        _refuseSource(nvda, source, invalid);
        source = _reports(V8, false);
        source.maxSpreadBps = 1;
        _refuseSource(nvda, source, invalid);
        source = _day(0);
        source.feedIds[1] = V8;
        _refuseSource(nvda, source, invalid);
        source = _updater();
        source.feedIds = new bytes32[](1);
        _refuseSource(nvda, source, invalid);
        source = _updater();
        source.kind = IPriceOracle.SourceKind.Feed;
        _refuseSource(nvda, source, invalid);
        source.aggregator = address(new PushFeed(19));
        _refuseSource(nvda, source, invalid);
        _refuseSource(address(0), _updater(), abi.encodeWithSelector(IPriceOracle.ZeroAddress.selector));

        oracle.setSource(nvda, _reports(V8, false));
        _refuseSource(aapl, _reports(V8, false), abi.encodeWithSelector(IPriceOracle.StreamTaken.selector, V8, nvda));
        oracle.setSource(nvda, _reports(V8, false));
        _refuseSource(aapl, _reports(V10, true), abi.encodeWithSelector(IPriceOracle.MultiplierUnknown.selector, aapl));
        source.aggregator = makeAddr("no contract");
        vm.expectRevert();
        oracle.setSource(nvda, source);
        vm.expectRevert();
        oracle.setVerifier(makeAddr("no contract"));
    }

    function test_TheUpdaterHasNoPowerOverAnotherSource() public {
        oracle.setSource(nvda, _reports(V8, false));
        _post(streams.signed(V8, 120e18, OPEN));
        skip(10);

        vm.startPrank(updater);
        bytes memory refusal = abi.encodeWithSelector(IPriceOracle.NotUpdaterSource.selector, nvda);
        vm.expectRevert(refusal);
        oracle.setPrice(nvda, 121e8);
        (address[] memory assets, int256[] memory prices) = (new address[](2), new int256[](2));
        (assets[0], assets[1], prices[0], prices[1]) = (aapl, nvda, 50e8, 121e8);
        vm.expectRevert(refusal);
        oracle.setPrices(assets, prices);
        uint64[] memory times = new uint64[](2);
        times[0] = times[1] = uint64(block.timestamp);
        vm.expectEmit(address(oracle));
        emit IPriceOracle.PriceSkipped(nvda, 121e8, times[1], IPriceOracle.SkipReason.OtherSource);
        oracle.post(assets, prices, times);
        vm.stopPrank();
        _assertPrice(nvda, 120e8, START, 1);
        _assertPrice(aapl, 50e8, START + 10, 1);

        vm.prank(forcer);
        oracle.forcePrice(nvda, 60e8);
        _assertPrice(nvda, 60e8, START + 10, 2);
    }

    function test_AChangedSourceKeepsTheLastPriceUntilItHasANewerOne() public {
        vm.prank(updater);
        oracle.setPrice(nvda, 100e8);
        oracle.setSource(nvda, _reports(V8, false));
        _assertPrice(nvda, 100e8, START, 1);
        skip(1);
        _post(streams.signed(V8, 200e18, OPEN));
        _assertPrice(nvda, 200e8, START + 1, 2);

        oracle.setAssetConfig(nvda, IPriceOracle.AssetConfig(0, 1_000, 1 hours));
        oracle.setSource(nvda, _updater());
        vm.startPrank(updater);
        oracle.setPrice(nvda, 220e8);
        vm.expectRevert(abi.encodeWithSelector(IPriceOracle.DeviationTooLarge.selector, nvda, 200e8, 221e8, 1_000));
        oracle.setPrice(nvda, 221e8);
    }

    function test_AnOracleThatContinuesAnotherDoesNotHandItsPricesBackToTheUpdater() public {
        oracle.setSource(nvda, _day(50));
        PriceOracle next = new PriceOracle(address(this));
        address[] memory assets = new address[](2);
        (assets[0], assets[1]) = (aapl, nvda);
        vm.expectRevert(abi.encodeWithSelector(IPriceOracle.InvalidSource.selector, nvda));
        next.inheritFrom(address(oracle), assets);
        next.setSource(nvda, _day(0));
        vm.expectRevert(abi.encodeWithSelector(IPriceOracle.InvalidSource.selector, nvda));
        next.inheritFrom(address(oracle), assets);
        next.setSource(nvda, _day(50));
        next.inheritFrom(address(oracle), assets);

        vm.mockCallRevert(address(oracle), abi.encodeWithSelector(oracle.sourceOf.selector), "");
        new PriceOracle(address(this)).inheritFrom(address(oracle), assets);
    }

    // Reports

    function test_AnyAccountPostsAReport() public {
        oracle.setSource(nvda, _reports(V8, false));
        vm.expectEmit(address(oracle));
        emit IPriceOracle.PriceUpdated(nvda, 123.45678901e8, uint64(START), 1);
        _post(streams.signed(V8, 123.456789019e18, OPEN));
        _assertPrice(nvda, 123.45678901e8, START, 1);
        (uint256 price,,) = oracle.freshPrice(nvda, 60);
        assertEq(price, 123.45678901e8);
    }

    function test_PostsReportsOfSeveralAssetsAtOnce() public {
        oracle.setSource(nvda, _reports(V8, false));
        oracle.setSource(aapl, _reports(V10, false));
        bytes[] memory payloads = new bytes[](2);
        payloads[0] = streams.signed(V8, 120e18, OPEN);
        payloads[1] = streams.signed(V10, 270e18, OPEN);
        vm.prank(stranger);
        oracle.postReports(payloads);
        _assertPrice(nvda, 120e8, START, 1);
        _assertPrice(aapl, 270e8, START, 1);
    }

    function test_TakesTheOneThatSignersOfAnyNumberSigned() public {
        for (uint8 f = 2; f <= 10; f += 4) {
            streams = new Streams(f);
            oracle.setVerifier(address(streams.proxy()));
            oracle.setSource(nvda, _reports(V8, false));
            skip(1);
            _post(streams.signed(V8, 120e18 + int192(int8(f)), OPEN));
            (, uint64 updatedAt,) = oracle.peekPrice(nvda);
            assertEq(updatedAt, block.timestamp);
        }
    }

    function test_AReportThatIsNotNewerIsSkippedBeforeItsSignaturesAreChecked() public {
        oracle.setSource(nvda, _reports(V8, false));
        Streams.Report memory r = streams.report(V8, 120e18, OPEN);
        skip(10);
        bytes memory payload = streams.sign(r);
        _post(payload);

        vm.expectCall(address(streams.proxy()), "", 0);
        _expectSkip(nvda, V8, START);
        _post(payload);
        r.observedAt -= 1;
        r.price = 0;
        _expectSkip(nvda, V8, START - 1);
        _post(streams.sign(r));
        _assertPrice(nvda, 120e8, START, 1);
    }

    function test_AForcedPriceStandsUntilANewerReport() public {
        oracle.setSource(nvda, _reports(V8, false));
        Streams.Report memory r = streams.report(V8, 120e18, OPEN);
        vm.prank(forcer);
        oracle.forcePrice(nvda, 60e8);
        _post(streams.sign(r));
        _assertPrice(nvda, 60e8, START, 1);
        skip(1);
        _post(streams.signed(V8, 61e18, OPEN));
        _assertPrice(nvda, 61e8, START + 1, 2);
    }

    function test_TheDeviationBoundIsTheUpdatersAlone() public {
        oracle.setSource(nvda, _reports(V8, false));
        oracle.setAssetConfig(nvda, IPriceOracle.AssetConfig(0, 100, 1 hours));
        _post(streams.signed(V8, 120e18, OPEN));
        skip(1);
        _post(streams.signed(V8, 60e18, OPEN));
        _assertPrice(nvda, 60e8, START + 1, 2);
    }

    function test_RefusesAnExpiredReportWhichTheVerifierTakes() public {
        oracle.setSource(nvda, _reports(V8, false));
        Streams.Report memory r = streams.report(V8, 120e18, OPEN);
        r.expiresAt = START + 60;
        skip(61);
        bytes memory payload = streams.sign(r);
        streams.proxy().verify(payload, "");
        _refuse(payload, abi.encodeWithSelector(IPriceOracle.ReportExpired.selector, nvda, START + 60));
        rewind(1);
        _post(payload);
        _assertPrice(nvda, 120e8, START, 1);
    }

    function test_RefusesAReportFromTheFuture() public {
        oracle.setSource(nvda, _reports(V8, false));
        Streams.Report memory r = streams.report(V8, 120e18, OPEN);
        (r.observedAt, r.seenAt) = (START + 6, START + 6);
        _refuse(streams.sign(r), abi.encodeWithSelector(IPriceOracle.PriceFromFuture.selector, nvda, START + 6));
        (r.observedAt, r.seenAt) = (START + 5, START + 5);
        _post(streams.sign(r));
        _assertPrice(nvda, 120e8, START, 1);
    }

    function test_RefusesAPriceThatIsNotPositiveOrDoesNotFit() public {
        oracle.setSource(nvda, _reports(V8, false));
        int192[5] memory bad = [int192(0), -1, -120e18, 9_999_999_999, type(int192).max];
        for (uint256 i; i < bad.length; ++i) {
            _refuse(
                streams.signed(V8, bad[i], OPEN),
                abi.encodeWithSelector(IPriceOracle.InvalidPrice.selector, nvda, bad[i])
            );
        }
        _post(streams.signed(V8, 1e10, OPEN));
        _assertPrice(nvda, 1, START, 1);
    }

    function test_RefusesAReportOfAStreamThatIsNoAssets() public {
        oracle.setSource(nvda, _reports(V8, false));
        _refuse(streams.signed(V10, 1e18, OPEN), abi.encodeWithSelector(IPriceOracle.UnknownStream.selector, V10));
        _refuse(streams.signed(CRYPTO, 1e18, OPEN), abi.encodeWithSelector(IPriceOracle.UnknownStream.selector, CRYPTO));
        oracle.setSource(nvda, _reports(V10, false));
        _refuse(streams.signed(V8, 1e18, OPEN), abi.encodeWithSelector(IPriceOracle.UnknownStream.selector, V8));
    }

    function test_RefusesAReportOfATokenWhoseSourceIsAnother() public {
        bytes memory unknown = abi.encodeWithSelector(IPriceOracle.UnknownStream.selector, V8);
        oracle.setSource(nvda, _reports(V8, false));
        oracle.setSource(nvda, _updater());
        _refuse(streams.signed(V8, 1e18, OPEN), unknown);
        oracle.setSource(nvda, _feed(new PushFeed(8), false));
        _refuse(streams.signed(V8, 1e18, OPEN), unknown);
    }

    function test_AListThatRepeatsPricesVerifiesEachOnceAndItsSenderPays() public {
        PushFeed feed = new PushFeed(8);
        feed.say(270e8, START);
        oracle.setSource(nvda, _reports(V8, false));
        oracle.setSource(aapl, _feed(feed, false));
        bytes[] memory payloads = new bytes[](300);
        address[] memory feeds = new address[](300);
        payloads[0] = streams.signed(V8, 120e18, OPEN);
        for (uint256 i; i < 300; ++i) {
            (payloads[i], feeds[i]) = (payloads[0], aapl);
        }
        vm.expectCall(address(streams.proxy()), abi.encodeWithSelector(streams.proxy().verify.selector), 1);
        uint256 left = gasleft();
        oracle.postPrices(payloads, feeds);
        assertLt(left - gasleft(), 600 * 20_000);
        _assertPrice(nvda, 120e8, START, 1);
        _assertPrice(aapl, 270e8, START, 1);
    }

    function test_BytesAfterTheEnvelopeChangeNothing() public {
        oracle.setSource(nvda, _reports(V8, false));
        _post(bytes.concat(streams.signed(V8, 120e18, OPEN), new bytes(100_000)));
        _assertPrice(nvda, 120e8, START, 1);
    }

    function test_RefusesWhatIsNoReport() public {
        oracle.setSource(nvda, _reports(V8, false));
        bytes memory malformed = abi.encodeWithSelector(IPriceOracle.MalformedReport.selector);
        bytes memory report = streams.encode(streams.report(V8, 120e18, OPEN));
        _refuse("", malformed);
        _refuse(new bytes(0xe0), malformed);
        _refuse(bytes.concat(new bytes(30), hex"01"), malformed);
        _refuse(streams.signBytes(bytes.concat(report, bytes32(0))), malformed);
        _refuse(streams.signBytes(abi.encode(V8)), malformed);
        _refuse(streams.signBytes("V8"), malformed);
        // A report that ends with its envelope, and one that would end a word after it
        bytes memory ends = bytes.concat(new bytes(0x60), abi.encode(0xe0), new bytes(0x60), abi.encode(9 * 32), report);
        vm.expectPartialRevert(IPriceOracle.ReportNotVerified.selector);
        _post(ends);
        assembly ("memory-safe") {
            mstore(ends, sub(mload(ends), 0x20))
        }
        _refuse(ends, malformed);
        bytes memory payload = streams.signBytes(report);
        for (uint256 i; i < 4; ++i) {
            bytes memory broken = bytes.concat(payload);
            uint256 at = i < 2 ? type(uint256).max - i * 31 : broken.length - 31 + (i - 2) * 31;
            assembly ("memory-safe") {
                mstore(add(broken, 0x80), at)
            }
            _refuse(broken, malformed);
        }
    }

    /// Every value of every schema's market status, and values that no schema has
    function test_TakesAReportInTheStatusesOfItsStreamAlone() public {
        oracle.setSource(nvda, _day(0));
        oracle.setSource(aapl, _reports(V8, false));
        address tsla = makeAddr("TSLA");
        oracle.setSource(tsla, _reports(V10, false));
        uint256[9] memory statuses = [uint256(0), 1, 2, 3, 4, 5, 6, 255, type(uint32).max];
        for (uint256 i; i < statuses.length; ++i) {
            uint256 status = statuses[i];
            _checkStatus(aapl, V8, status, status == 2);
            _checkStatus(tsla, V10, status, status == 2);
            _checkStatus(nvda, REGULAR, status, status == 2);
            _checkStatus(nvda, EXTENDED, status, status == 1 || status == 3);
            _checkStatus(nvda, OVERNIGHT, status, status == 4);
        }
    }

    function test_RefusesAWideSpread() public {
        oracle.setSource(nvda, _day(50));
        Streams.Report memory r = streams.report(REGULAR, 100e18, OPEN);
        (r.bid, r.ask) = (99.75e18, 100.25e18 + 1);
        _refuse(streams.sign(r), abi.encodeWithSelector(IPriceOracle.SpreadTooWide.selector, nvda, 51, 50));
        (r.bid, r.ask) = (0, 100e18);
        _refuse(streams.sign(r), abi.encodeWithSelector(IPriceOracle.InvalidPrice.selector, nvda, 0));
        (r.bid, r.ask) = (100e18, 99.9e18);
        _refuse(streams.sign(r), abi.encodeWithSelector(IPriceOracle.InvalidPrice.selector, nvda, int256(100e18)));
        (r.bid, r.ask) = (99.75e18, 100.25e18);
        _post(streams.sign(r));
        _assertPrice(nvda, 100e8, START, 1);

        oracle.setSource(nvda, _day(0));
        skip(1);
        r = streams.report(REGULAR, 101e18, OPEN);
        (r.bid, r.ask) = (0, 0);
        _post(streams.sign(r));
        _assertPrice(nvda, 101e8, START + 1, 2);
    }

    /// A halt shows in nothing else: the report is new, the price is not.
    function test_APriceThatNoLongerChangesGrowsOldWhileTheMarketIsOpen() public {
        oracle.setSource(nvda, _day(0));
        oracle.setAssetConfig(nvda, IPriceOracle.AssetConfig(60, 0, 0));
        _post(streams.signed(REGULAR, 100e18, OPEN));
        skip(61);
        Streams.Report memory r = streams.report(REGULAR, 100e18, OPEN);
        r.seenAt = START + 1;
        _post(streams.sign(r));
        _assertPrice(nvda, 100e8, START + 1, 2);
        oracle.freshPrice(nvda, 60);
        skip(1);
        vm.expectRevert(abi.encodeWithSelector(IPriceOracle.StalePrice.selector, nvda, START + 1, 60));
        oracle.freshPrice(nvda, 60);
        r = streams.report(REGULAR, 100e18, OPEN);
        r.seenAt = START + 1;
        _expectSkip(nvda, REGULAR, START + 1);
        _post(streams.sign(r));
    }

    // The basis of a price

    function test_AShareIsMultipliedByTheTokensOwnMultiplierAndATokenIsNot() public {
        stock.updateMultiplier(1.5e18);
        oracle.setSource(nvda, _reports(V10, true));
        Streams.Report memory r = streams.report(V10, 100e18, OPEN);
        r.tokenPrice = 151e18;
        _post(streams.sign(r));
        _assertPrice(nvda, 150e8, START, 1);

        oracle.setSource(nvda, _reports(V10, false));
        skip(1);
        r = streams.report(V10, 100e18, OPEN);
        r.tokenPrice = 151e18;
        _post(streams.sign(r));
        _assertPrice(nvda, 151e8, START + 1, 2);
    }

    function test_RefusesAShareOfBeforeTheMultiplierChanged() public {
        oracle.setSource(nvda, _reports(V8, true));
        stock.updateMultiplier(4e18, START + 100);
        skip(99);
        bytes memory before = streams.signed(V8, 400e18, OPEN);
        skip(1);
        _refuse(
            before, abi.encodeWithSelector(IPriceOracle.PriceBeforeMultiplier.selector, nvda, START + 99, START + 100)
        );
        rewind(1);
        _post(before);
        _assertPrice(nvda, 400e8, START + 99, 1);
        skip(1);
        _post(streams.signed(V8, 100e18, OPEN));
        _assertPrice(nvda, 400e8, START + 100, 2);
    }

    /// A share trades split from pre-market on, hours before the token is.
    function test_RefusesAShareThatHasSplitBeforeItsTokenHas() public {
        oracle.setSource(nvda, _reports(V8, true));
        _post(streams.signed(V8, 400e18, OPEN));
        stock.updateMultiplier(4e18, START + 100);
        skip(1);
        bytes memory ahead =
            abi.encodeWithSelector(IPriceOracle.PriceAheadOfMultiplier.selector, nvda, int256(100e18), START + 100);
        _refuse(streams.signed(V8, 100e18, OPEN), ahead);
        _refuse(
            streams.signed(V8, 199e18, OPEN),
            abi.encodeWithSelector(IPriceOracle.PriceAheadOfMultiplier.selector, nvda, int256(199e18), START + 100)
        );
        _post(streams.signed(V8, 201e18, OPEN));
        skip(1);
        _post(streams.signed(V8, 400e18, OPEN));
        _assertPrice(nvda, 400e8, START + 2, 3);
        skip(1);
        _refuse(streams.signed(V8, 100e18, OPEN), ahead);
        vm.prank(forcer);
        oracle.forcePrice(nvda, 399e8);
        skip(97);
        _post(streams.signed(V8, 100e18, OPEN));
        _assertPrice(nvda, 400e8, START + 100, 5);

        stock.updateMultiplier(0.4e18, START + 200);
        skip(1);
        _refuse(
            streams.signed(V8, 1000e18, OPEN),
            abi.encodeWithSelector(IPriceOracle.PriceAheadOfMultiplier.selector, nvda, int256(1000e18), START + 200)
        );
        _post(streams.signed(V8, 101e18, OPEN));
        skip(99);
        _post(streams.signed(V8, 1000e18, OPEN));
        _assertPrice(nvda, 400e8, START + 200, 7);
    }

    function test_ADividendThatIsAnnouncedBoundsNoPriceAndNorDoesASplitTheFirst() public {
        oracle.setSource(nvda, _reports(V8, true));
        stock.updateMultiplier(4e18, START + 100);
        _post(streams.signed(V8, 100e18, OPEN));
        skip(100);
        _post(streams.signed(V8, 100e18, OPEN));
        stock.updateMultiplier(4.9e18, START + 200);
        skip(1);
        _post(streams.signed(V8, 10e18, OPEN));
        _assertPrice(nvda, 40e8, START + 101, 3);
    }

    function test_RefusesAShareOfATokenThatDoesNotTellItsMultiplier() public {
        oracle.setSource(nvda, _reports(V8, true));
        bytes memory payload = streams.signed(V8, 100e18, OPEN);
        bytes memory unknown = abi.encodeWithSelector(IPriceOracle.MultiplierUnknown.selector, nvda);
        vm.mockCallRevert(nvda, abi.encodeCall(stock.uiMultiplier, ()), "");
        _refuse(payload, unknown);
        vm.mockCall(nvda, abi.encodeCall(stock.uiMultiplier, ()), abi.encode(0));
        _refuse(payload, unknown);
        vm.mockCall(nvda, abi.encodeCall(stock.uiMultiplier, ()), abi.encode(type(uint256).max));
        _refuse(payload, unknown);
        vm.clearMockedCalls();
        vm.etch(nvda, hex"fe"); // burns all the gas that it gets
        uint256 left = gasleft();
        _refuse(payload, unknown);
        assertLt(left - gasleft(), 300_000);
    }

    // The verifier

    function test_RefusesAReportThatTheVerifierRefusesAndPassesItsReasonOn() public {
        oracle.setSource(nvda, _reports(V8, false));
        bytes memory payload = streams.signed(V8, 120e18, OPEN);
        payload[0x100 + 8 * 32 - 1] = 0x01; // the price: one base unit more
        _refuse(
            payload,
            abi.encodeWithSelector(
                IPriceOracle.ReportNotVerified.selector, V8, abi.encodeWithSignature("BadVerification()")
            )
        );
        (IVerifierSetup verifier, bytes32 digest) = (streams.verifier(), streams.DIGEST());
        vm.prank(address(streams));
        verifier.deactivateConfig(digest);
        _refuse(
            streams.signed(V8, 120e18, OPEN),
            abi.encodeWithSelector(
                IPriceOracle.ReportNotVerified.selector, V8, abi.encodeWithSignature("DigestInactive(bytes32)", digest)
            )
        );
    }

    function test_AVerifierThatReturnsAnythingElseThanTheReportHasNotVerifiedIt() public {
        oracle.setSource(nvda, _reports(V8, false));
        Streams.Report memory r = streams.report(V8, 120e18, OPEN);
        bytes memory payload = streams.sign(r);
        r.price = 1e18;
        bytes[4] memory garbage = [bytes(""), abi.encode(true), abi.encode(""), abi.encode(streams.encode(r))];
        for (uint256 i; i < garbage.length; ++i) {
            vm.mockCall(address(streams.proxy()), abi.encodeWithSelector(streams.proxy().verify.selector), garbage[i]);
            _refuse(payload, abi.encodeWithSelector(IPriceOracle.ReportNotVerified.selector, V8, garbage[i]));
        }
        vm.clearMockedCalls();
        _post(payload);
    }

    function test_WithoutAVerifierNoReportIsTaken() public {
        PriceOracle fresh = new PriceOracle(address(this));
        fresh.setSource(nvda, _reports(V8, false));
        bytes[] memory payloads = new bytes[](1);
        payloads[0] = streams.signed(V8, 120e18, OPEN);
        vm.expectRevert(abi.encodeWithSelector(IPriceOracle.ReportNotVerified.selector, V8, ""));
        fresh.postReports(payloads);
    }

    function test_VerifiesWithAFeeManagerToWhomTheSubscriptionPaysNothing() public {
        oracle.setSource(nvda, _reports(V8, false));
        UsdcToken link = new UsdcToken(address(this), "USD Coin", "USDC", "2");
        streams.chargeFees(address(link), makeAddr("WETH"), address(oracle));
        _post(streams.signed(V8, 120e18, OPEN));
        _assertPrice(nvda, 120e8, START, 1);
    }

    function test_AFeeManagerThatWantsToBePaidRefusesTheReport() public {
        oracle.setSource(nvda, _reports(V8, false));
        UsdcToken link = new UsdcToken(address(this), "USD Coin", "USDC", "2");
        streams.chargeFees(address(link), makeAddr("WETH"), stranger);
        bytes[] memory payloads = new bytes[](1);
        payloads[0] = streams.signed(V8, 120e18, OPEN);
        vm.expectPartialRevert(IPriceOracle.ReportNotVerified.selector);
        oracle.postReports(payloads);
        // What the oracle happens to hold pays for nobody's report.
        link.mint(address(oracle), 10e18);
        vm.expectPartialRevert(IPriceOracle.ReportNotVerified.selector);
        oracle.postReports(payloads);
        assertEq(link.balanceOf(address(oracle)), 10e18);
    }

    // Push feeds

    function test_CopiesAPushFeedInItsOwnDecimals() public {
        uint8[4] memory decimals = [0, 6, 8, 18];
        for (uint256 i; i < decimals.length; ++i) {
            PushFeed feed = new PushFeed(decimals[i]);
            oracle.setSource(nvda, _feed(feed, false));
            skip(1);
            feed.say(int256(123 * 10 ** decimals[i]), block.timestamp);
            _sync(nvda);
            _assertPrice(nvda, 123e8, block.timestamp, uint80(i + 1));
        }
    }

    function test_ReadsChainlinksOwnPushFeedThroughItsProxy() public {
        address flux = _create(
            "FluxAggregator", abi.encode(makeAddr("LINK"), 0, 60, address(0), 1, type(int128).max, 8, "NVDA / USD")
        );
        address proxy = _create("EACAggregatorProxy", abi.encode(flux, address(0)));
        address[] memory node = new address[](1);
        node[0] = stranger;
        IFluxAggregator(flux).changeOracles(new address[](0), node, node, 1, 1, 0);
        vm.prank(stranger);
        IFluxAggregator(flux).submit(1, 181.25e8);
        skip(3 hours);
        oracle.setSource(nvda, _feed(PushFeed(proxy), false));
        _sync(nvda);
        _assertPrice(nvda, 181.25e8, START, 1);
        vm.prank(stranger);
        IFluxAggregator(flux).submit(2, 182e8);
        _sync(nvda);
        _assertPrice(nvda, 182e8, START + 3 hours, 2);
    }

    function test_APushFeedGrowsOldWithItsLastUpdate() public {
        PushFeed feed = new PushFeed(8);
        oracle.setSource(nvda, _feed(feed, false));
        feed.say(120e8, START - 18 hours);
        _sync(nvda);
        _assertPrice(nvda, 120e8, START - 18 hours, 1);
        oracle.freshPrice(nvda, 86_400);
        vm.expectRevert(abi.encodeWithSelector(IPriceOracle.StalePrice.selector, nvda, START - 18 hours, 900));
        oracle.freshPrice(nvda, 900);

        vm.expectEmit(address(oracle));
        emit IPriceOracle.PriceSkipped(nvda, 120e8, uint64(START - 18 hours), IPriceOracle.SkipReason.NotNewer);
        _sync(nvda);
    }

    function test_RefusesAPushFeedWithoutAPriceOrFromTheFuture() public {
        PushFeed feed = new PushFeed(8);
        oracle.setSource(nvda, _feed(feed, false));
        feed.say(0, START);
        _refuseSync(nvda, abi.encodeWithSelector(IPriceOracle.InvalidPrice.selector, nvda, 0));
        feed.say(-1, START);
        _refuseSync(nvda, abi.encodeWithSelector(IPriceOracle.InvalidPrice.selector, nvda, -1));
        feed.say(type(int256).max, START);
        _refuseSync(nvda, abi.encodeWithSelector(IPriceOracle.InvalidPrice.selector, nvda, type(int256).max));
        feed.say(1e8, START + 6);
        _refuseSync(nvda, abi.encodeWithSelector(IPriceOracle.PriceFromFuture.selector, nvda, START + 6));
        _refuseSync(aapl, abi.encodeWithSelector(IPriceOracle.NotFeedSource.selector, aapl));
        feed.fallSilent();
        _refuseSync(nvda, abi.encodeWithSelector(PushFeed.Silent.selector));
        assertTrue(oracle.isStale(nvda, 0));
    }

    function test_RefusesAPushFeedWhileItsIssuerAdvisesAgainstIt() public {
        PushFeed feed = new PushFeed(8);
        oracle.setSource(nvda, _feed(feed, false));
        feed.say(120e8, START);
        stock.setOraclePaused(true);
        _refuseSync(nvda, abi.encodeWithSelector(IPriceOracle.FeedPaused.selector, nvda));
        stock.setOraclePaused(false);
        _sync(nvda);
        _assertPrice(nvda, 120e8, START, 1);
    }

    function test_MultipliesAPushFeedOfAShare() public {
        PushFeed feed = new PushFeed(8);
        oracle.setSource(nvda, _feed(feed, true));
        stock.updateMultiplier(2e18);
        feed.say(60e8, START);
        _sync(nvda);
        _assertPrice(nvda, 120e8, START, 1);
        _assertRange(120e8, 120e8); // the feed is no second opinion on itself
    }

    /// The lower and the higher of all that is known is what shares are redeemed and made at.
    function test_APushFeedBesideReportsIsASecondOpinionForShares() public {
        PushFeed feed = new PushFeed(6);
        IPriceOracle.Source memory source = _reports(V8, false);
        source.aggregator = address(feed);
        oracle.setSource(nvda, source);
        _post(streams.signed(V8, 120e18, OPEN));
        feed.say(119e6, START - 20 hours);
        _assertRange(119e8, 120e8);
        feed.say(121e6, START - 20 hours);
        _assertRange(120e8, 121e8);
        _refuseSync(nvda, abi.encodeWithSelector(IPriceOracle.NotFeedSource.selector, nvda));

        feed.say(0, START);
        _assertRange(120e8, 120e8);
        feed.say(119e6, START - 25 hours);
        _assertRange(119e8, 120e8);
        feed.say(119e6, START - 25 hours - 1);
        _assertRange(120e8, 120e8);
        feed.fallSilent();
        _assertRange(120e8, 120e8);
    }

    function test_PostsReportsAndFeedsInOneCall() public {
        PushFeed feed = new PushFeed(8);
        oracle.setSource(nvda, _feed(feed, false));
        oracle.setSource(aapl, _reports(V8, false));
        feed.say(120e8, START);
        bytes[] memory payloads = new bytes[](1);
        payloads[0] = streams.signed(V8, 270e18, OPEN);
        address[] memory feeds = new address[](1);
        feeds[0] = nvda;
        oracle.postPrices(payloads, feeds);
        _assertPrice(nvda, 120e8, START, 1);
        _assertPrice(aapl, 270e8, START, 1);
    }

    function _assertRange(uint256 low, uint256 high) private view {
        (uint256 heldLow, uint256 heldHigh) = oracle.priceRangeOf(nvda, 60);
        assertEq(heldLow, low);
        assertEq(heldHigh, high);
    }

    function _checkStatus(address asset, bytes32 feedId, uint256 status, bool isTrading) private {
        skip(1);
        bytes memory payload = streams.signed(feedId, 120e18, status);
        if (!isTrading) {
            _refuse(payload, abi.encodeWithSelector(IPriceOracle.MarketNotTrading.selector, asset, status));
            return;
        }
        _post(payload);
        (, uint64 updatedAt,) = oracle.peekPrice(asset);
        assertEq(updatedAt, block.timestamp);
    }

    function _updater() private pure returns (IPriceOracle.Source memory source) {}

    function _reports(bytes32 feedId, bool isShare) private pure returns (IPriceOracle.Source memory source) {
        source.kind = IPriceOracle.SourceKind.Reports;
        source.feedIds = new bytes32[](1);
        source.feedIds[0] = feedId;
        source.isSharePrice = isShare;
    }

    function _day(uint16 maxSpreadBps) private pure returns (IPriceOracle.Source memory source) {
        source = _reports(REGULAR, false);
        source.feedIds = new bytes32[](3);
        (source.feedIds[0], source.feedIds[1], source.feedIds[2]) = (REGULAR, EXTENDED, OVERNIGHT);
        source.maxSpreadBps = maxSpreadBps;
    }

    function _feed(PushFeed feed, bool isShare) private pure returns (IPriceOracle.Source memory source) {
        source.kind = IPriceOracle.SourceKind.Feed;
        source.aggregator = address(feed);
        source.isSharePrice = isShare;
    }

    function _post(bytes memory payload) private {
        bytes[] memory payloads = new bytes[](1);
        payloads[0] = payload;
        vm.prank(stranger);
        oracle.postReports(payloads);
    }

    function _refuse(bytes memory payload, bytes memory refusal) private {
        vm.expectRevert(refusal);
        _post(payload);
    }

    function _sync(address asset) private {
        address[] memory assets = new address[](1);
        assets[0] = asset;
        vm.prank(stranger);
        oracle.syncFeeds(assets);
    }

    function _refuseSync(address asset, bytes memory refusal) private {
        vm.expectRevert(refusal);
        _sync(asset);
    }

    function _refuseSource(address asset, IPriceOracle.Source memory source, bytes memory refusal) private {
        vm.expectRevert(refusal);
        oracle.setSource(asset, source);
    }

    function _expectSkip(address asset, bytes32 feedId, uint256 observedAt) private {
        vm.expectEmit(address(oracle));
        emit IPriceOracle.ReportSkipped(asset, feedId, uint64(observedAt));
    }

    function _assertPrice(address asset, uint256 price, uint256 observedAt, uint80 round) private view {
        (uint256 held, uint64 heldAt, uint80 heldRound) = oracle.peekPrice(asset);
        assertEq(held, price);
        assertEq(heldAt, observedAt);
        assertEq(heldRound, round);
    }
}
