// SPDX-License-Identifier: MIT
pragma solidity ^0.8.30;

import {BlockUptimeFeed} from "../../src/BlockUptimeFeed.sol";
import {ScaledStockToken} from "../../src/embedded/ScaledStockToken.sol";
import {StockIssuer} from "../../src/embedded/StockIssuer.sol";
import {StockToken} from "../../src/embedded/StockToken.sol";
import {UsdcToken} from "../../src/embedded/UsdcToken.sol";
import {ReportTest} from "../oracle/ReportTest.sol";

/// @notice What a trade costs its sender that brings a signed report, next to the same trade at a price that was posted
/// before. Whole transactions, as in `RouterGasTest`, kept in snapshots/ReportGas.json.
/// forge-config: default.isolate = true
contract ReportGasTest is ReportTest {
    uint8 private constant SIX_SIGNATURES = 5;
    uint8 private constant ELEVEN_SIGNATURES = 10;
    bytes32 private constant SHARE_STREAM = bytes32(uint256(11) << 240 | 3);

    function setUp() public override {
        super.setUp();
        (uint256 mine, uint256 key) = (agentId, signerKey);
        signerKey = 0xB0B;
        agentId = _register(vm.addr(signerKey));
        _submit(_reduceIntent(_open(nvda, 5_000 * USDC), 1_000));
        (agentId, signerKey) = (mine, key);
        _open(tsla, 1_000 * USDC);
        _useDefaultLimits();
        _useReports(SIX_SIGNATURES);
        skip(5 minutes);
        _postReport(_report(nvda, NVDA_PRICE));
        skip(1);
    }

    function test_AnOpenWithAReport() public {
        uint256 plain = _plainOpen(nvda);
        uint256 used = _openWith(_report(nvda, NVDA_PRICE));
        _record("openPosition, 3 rules, with a report of 6 signatures", used);
        assertLe(used * 100, plain * 130, "more than 30 % more");
    }

    function test_AnOpenWithAReportThatIsNotNeeded() public {
        uint256 used = _openWith(_oldReport());
        _record("openPosition, 3 rules, with a report that is not newer", used);
    }

    function test_AnOpenWithAReportOfElevenSignatures() public {
        _useReports(ELEVEN_SIGNATURES);
        _record("openPosition, 3 rules, with a report of 11 signatures", _openWith(_report(nvda, NVDA_PRICE)));
    }

    function test_AnOpenWithAFeeManager() public {
        streams.chargeFees(address(new UsdcToken(admin, "USD Coin", "USDC", "2")), makeAddr("WETH"), address(oracle));
        uint256 plain = _plainOpen(nvda);
        uint256 used = _openWith(_report(nvda, NVDA_PRICE));
        _record("openPosition, 3 rules, with a report, past a fee manager", used);
        assertLe(used * 100, plain * 130, "more than 30 % more");
    }

    function test_AnOpenOnAChainWithoutAnUptimeFeed() public {
        BlockUptimeFeed feed = new BlockUptimeFeed(1_000, 10 minutes);
        vm.prank(admin);
        oracle.setSequencerFeed(address(feed), 0);
        _record("openPosition, 3 rules, with a report, a block count", _openWith(_report(nvda, NVDA_PRICE)));
    }

    function test_AnOpenOfAStockWithAReportOfItsShare() public {
        StockIssuer issuer = new StockIssuer(address(new ScaledStockToken()), address(this));
        StockToken stock = StockToken(issuer.deploy("Apple", "AAPL"));
        ScaledStockToken(address(stock)).updateMultiplier(1.001e18);
        issuer.transferOwnership(address(market));
        _list(stock, 200.2e8);
        signerKey = 0xB0B;
        agentId = 2;
        _submit(_reduceIntent(_open(stock, 5_000 * USDC), 1_000));
        (agentId, signerKey) = (1, 0xA11CE);
        vm.prank(admin);
        oracle.setSource(address(stock), _reportsOf(SHARE_STREAM, true));
        skip(5 minutes);
        _postReport(streams.signed(SHARE_STREAM, 200e18, REGULAR_HOURS));
        skip(1);

        uint256 plain = _plainOpen(stock);
        bytes memory call = _openCall(stock, 10_000 * USDC);
        _carry(address(router), executor, streams.signed(SHARE_STREAM, 200e18, REGULAR_HOURS), call);
        uint256 used = _lastCall();
        _record("openPosition, 3 rules, of a stock", plain);
        _record("openPosition, 3 rules, of a stock, with a report of its share", used);
        assertLe(used * 100, plain * 130, "more than 30 % more");
    }

    function test_AnExitWithAReport() public {
        uint256 id = _carryOpen(nvda, 5_000 * USDC, _report(nvda, NVDA_PRICE));
        vm.prank(admin);
        usdc.mint(keeper, 1);
        market.moveTo(address(nvda), 111 * USD);
        skip(5 minutes);
        _postReport(_report(nvda, 111 * USD));
        skip(1);
        uint256 snapshot = vm.snapshotState();
        _exit(id);
        uint256 plain = _lastCall();
        vm.revertToState(snapshot);
        _carry(address(router), keeper, _report(nvda, 111 * USD), abi.encodeCall(router.executeExit, (id)));
        uint256 used = _lastCall();
        _record("executeExit, half, with a report of 6 signatures", used);
        assertLe(used * 100, plain * 135, "more than 35 % more");
    }

    function test_AReportAlone() public {
        _postReport(_report(nvda, NVDA_PRICE));
        _record("postReports, one of 6 signatures", _lastCall());
    }

    function _plainOpen(StockToken token) private returns (uint256 used) {
        uint256 snapshot = vm.snapshotState();
        _open(token, 10_000 * USDC);
        used = _lastCall();
        vm.revertToState(snapshot);
    }

    function _openWith(bytes memory report) private returns (uint256) {
        bytes memory call = _openCall(nvda, 10_000 * USDC);
        _carry(address(router), executor, report, call);
        return _lastCall();
    }

    function _oldReport() private returns (bytes memory report) {
        rewind(2);
        report = _report(nvda, NVDA_PRICE);
        skip(2);
    }

    function _record(string memory name, uint256 used) private {
        vm.snapshotValue("ReportGas", name, used);
    }

    function _lastCall() private view returns (uint256) {
        return vm.lastCallGas().gasTotalUsed;
    }
}
