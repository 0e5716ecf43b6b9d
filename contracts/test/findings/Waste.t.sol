// SPDX-License-Identifier: MIT
pragma solidity ^0.8.30;

import {StockToken} from "../../src/embedded/StockToken.sol";
import {IAllocationManager} from "../../src/interfaces/IAllocationManager.sol";
import {ITradeRouter} from "../../src/interfaces/ITradeRouter.sol";
import {IVaultTrackRegistry} from "../../src/interfaces/IVaultTrackRegistry.sol";
import {FundedTest} from "./FundedTest.sol";

/// @notice What agents waste is bounded against what they trade, and what they lose against what their owners locked
contract WasteTest is FundedTest {
    uint16 private constant WASTE_BPS = 100;
    uint256 private constant MAX_WASTE = FUNDED_CAP * WASTE_BPS / 10_000;

    function setUp() public override {
        super.setUp();
        _setTerms(IVaultTrackRegistry.RiskTerms(FIRST_LOSS_BPS, WASTE_BPS));
    }

    function test_AnHonestYearOfDailyRoundTripsPassesInAPoolOf100Million() public {
        _tradeAYearHonestly(100_000_000 * USDC, 500);
    }

    function test_AnHonestYearOfDailyRoundTripsPassesInAPoolOf20Million() public {
        _tradeAYearHonestly(20_000_000 * USDC, 500);
    }

    function test_AnHonestYearOfDailyRoundTripsPassesInAPoolOf5Million() public {
        _tradeAYearHonestly(5_000_000 * USDC, 500);
    }

    function test_AnHonestYearOfDailyRoundTripsPassesInAPoolOf100MillionWithTheExamplesFee() public {
        _tradeAYearHonestly(100_000_000 * USDC, 3_000);
    }

    function test_AnHonestYearOfDailyRoundTripsPassesInAPoolOf5MillionWithTheExamplesFee() public {
        _tradeAYearHonestly(5_000_000 * USDC, 3_000);
    }

    /// @dev The market rises every day, so that the record shows a profit while the owner takes most of it.
    function test_AnAgentDoesNotGiveARisingMarketAway() public {
        _fund(REQUIRED);
        uint256 price = 100 * USD;
        uint256 trades;
        uint256 given;
        for (uint256 day; day < 17; ++day) {
            (uint256 before,,) = allocations.wasteOf(agentId);
            if (_tryToOpen(thin, 40_000 * USDC, price)) {
                ++trades;
                _sellBelow(positions.positionCount(), price * 103 / 100);
                (uint256 afterwards,,) = allocations.wasteOf(agentId);
                given += afterwards + 40_000 * USDC / 100 - before;
            }
            price = price * 103 / 100;
            skip(1 days);
            _quote(100 * USD);
            _setOraclePrice(thin, price);
            market.moveTo(address(thin), price);
            skip(10 minutes);
            _quote(100 * USD);
            _setOraclePrice(thin, price);
        }
        assertLt(trades, 8);
        // What a fair trader may lose, the bound, and the round trip that exceeded it; 26,000 USDC were there to be given away.
        assertLe(given, trades * 40_000 * USDC / 100 + MAX_WASTE + 40_000 * USDC * 430 / 10_000);
    }

    function test_BuyingStopsBeyondTheBoundSalesGoOnAndTheWasteFades() public {
        _fund(REQUIRED);
        uint256 id = _open(nvda, 20_000 * USDC);
        _open(tsla, 20_000 * USDC);
        _setTerms(IVaultTrackRegistry.RiskTerms(FIRST_LOSS_BPS, 1));
        _waste(100 * USDC);
        (uint256 waste, uint256 max, uint256 endsAt) = allocations.wasteOf(agentId);
        assertEq(max, FUNDED_CAP / 10_000);
        assertGt(waste, 100 * USDC);
        assertEq(endsAt, block.timestamp + 30 days);
        _refuse(
            _addIntent(id, 1_000 * USDC),
            abi.encodeWithSelector(ITradeRouter.ExceedsWaste.selector, agentId, waste, max)
        );
        skip(1);
        _submit(_reduceIntent(id, 5_000));

        skip(15 days);
        _quote(100 * USD);
        (uint256 half,,) = allocations.wasteOf(agentId);
        assertApproxEqRel(half, waste / 2, 0.2e18);
        skip(15 days);
        _quote(100 * USD);
        (half,,) = allocations.wasteOf(agentId);
        assertEq(half, 0);
        _submit(_addIntent(id, 1_000 * USDC));
    }

    function test_APurchaseTakesOffWhatAFairRoundTripCosts() public {
        _fund(REQUIRED);
        uint256 id = _open(nvda, 10_000 * USDC);
        _waste(100 * USDC);
        (uint256 before,,) = allocations.wasteOf(agentId);
        _submit(_addIntent(id, 1_000 * USDC));
        (uint256 afterwards,,) = allocations.wasteOf(agentId);
        assertApproxEqAbs(before - afterwards, 10 * USDC, USDC / 2);
    }

    function test_ThePoolsFeeIsNoWasteAndAKeepersBountyIs() public {
        _fund(REQUIRED);
        uint256 id = _open(nvda, 10_000 * USDC);
        (uint256 waste,,) = allocations.wasteOf(agentId);
        // In a pool of 50 million, the purchase moves the price by 2 of 10,000 USDC; the fee is 5.
        assertLe(waste, 2.1e6);
        _settle(115 * USD);
        (uint256 before,,) = allocations.wasteOf(agentId);
        uint256 paid = usdc.balanceOf(keeper);
        _exit(id);
        paid = usdc.balanceOf(keeper) - paid;
        assertGt(paid, 4 * USDC);
        (waste,,) = allocations.wasteOf(agentId);
        assertGe(waste, before + paid);
    }

    function test_ABountyCountsInFullAlsoWhereTheFillIsBetterThanAFairOne() public {
        _fund(REQUIRED);
        uint256 id = _open(nvda, 10_000 * USDC);
        _settle(115 * USD);
        market.moveTo(address(nvda), 116 * USD);
        (uint256 before,,) = allocations.wasteOf(agentId);
        _exit(id);
        (uint256 waste,,) = allocations.wasteOf(agentId);
        assertGt(usdc.balanceOf(keeper), 4 * USDC);
        assertApproxEqAbs(waste - before, usdc.balanceOf(keeper), 0.02e6);
    }

    /// @dev The market has risen by 1 %, the oracle says the price of ten minutes ago, and the owner sells to itself below that.
    function test_TenSalesAtAPriceOfTenMinutesAgoAreBookedForWhatTheyTook() public {
        _fund(REQUIRED);
        uint256 id = _open(thin, 40_000 * USDC);
        uint256 held = positions.getPosition(id).tokenAmount;
        market.moveTo(address(thin), 101 * USD);
        skip(10 minutes);
        (uint256 before,,) = allocations.wasteOf(agentId);
        uint256 idle = vault.idleAssets();
        for (uint256 left = 10; left != 0; --left) {
            market.moveTo(address(thin), 99.6e8);
            _submit(_reduceIntent(id, uint16(10_000 / left)));
        }
        market.moveTo(address(thin), 101 * USD);
        (uint256 waste,,) = allocations.wasteOf(agentId);
        uint256 taken = held * 101 / 1e12 - (vault.idleAssets() - idle);
        assertGt(taken, 500 * USDC);
        // The pool's fee is no waste.
        assertGe(waste - before, taken * 9 / 10);
    }

    function test_APurchaseThatAloneExceedsTheBoundIsRefused() public {
        _setTerms(IVaultTrackRegistry.RiskTerms(FIRST_LOSS_BPS, 10));
        _fund(REQUIRED);
        market.moveTo(address(thin), 100.4e8);
        ITradeRouter.PositionIntent memory intent = _openIntent(thin, 20_000 * USDC);
        bytes memory signature = _sign(signerKey, digests.hashOpenPosition(intent));
        vm.prank(executor);
        vm.expectPartialRevert(ITradeRouter.ExceedsWaste.selector);
        router.openPosition(intent, signature);
        market.moveTo(address(thin), 100 * USD);
        _submit(_openIntent(thin, 5_000 * USDC));
    }

    function test_EveryCapHasABoundOfWaste() public {
        uint256 cap = 10_000_000_000 * USDC;
        IVaultTrackRegistry.VaultTrackConfig memory config = tracks.getVaultTrackConfig(address(vault), 0);
        (config.initialAllocation, config.maxAllocation) = (cap, cap);
        _setPolicy(config);
        vm.prank(admin);
        tracks.setVaultTrackRiskTerms(address(vault), 0, IVaultTrackRegistry.RiskTerms(0, WASTE_BPS));
        agentId = _register(vm.addr(signerKey));
        _waste(cap);
        (uint256 waste, uint256 max,) = allocations.wasteOf(agentId);
        _refuse(
            _openIntent(nvda, 1_000 * USDC),
            abi.encodeWithSelector(ITradeRouter.ExceedsWaste.selector, agentId, waste, max)
        );
    }

    /// @dev An agent that loses at its deepest stop and at the widest slippage, as often as it may buy.
    function test_DepositorsPayNothingHoweverOftenAnAgentIsStoppedOut() public {
        IVaultTrackRegistry.VaultTrackConfig memory config = tracks.getVaultTrackConfig(address(vault), 1);
        (config.maxDrawdownBps, config.maxDailyLossBps) = (0, 0);
        _setPolicy(config);
        _setTerms(IVaultTrackRegistry.RiskTerms(FIRST_LOSS_BPS, 0));
        _fund(REQUIRED);
        uint256 depositors = vault.convertToAssets(vault.balanceOf(investor));
        uint256 losses;
        uint256 cap = allocations.effectiveCapUsdc(agentId);
        for (; losses < 40 && cap > 100 * USDC; ++losses) {
            ITradeRouter.PositionIntent memory intent = _openIntent(nvda, cap * 9 / 10);
            intent.exits = _ladder(_stop(-int256(uint256(FIRST_LOSS_BPS - 300)), 10_000));
            uint256 id = _submit(intent);
            _setOraclePrice(nvda, 88.9e8);
            market.moveTo(address(nvda), 85 * USD);
            skip(1);
            _setOraclePrice(nvda, 88.9e8);
            _exit(id);
            skip(15 minutes);
            _quote(88.9e8);
            market.moveTo(address(nvda), 86.4e8);
            _exit(id);
            _settle(100 * USD);
            uint256 left = allocations.effectiveCapUsdc(agentId);
            assertLt(left, cap);
            cap = left;
        }
        assertGt(losses, 2);
        assertGe(vault.convertToAssets(vault.balanceOf(investor)) + USDC, depositors);
    }

    function test_ALossTakesTheSameShareOfTheCapAsOfTheLock() public {
        _fund(REQUIRED);
        uint256 id = _open(nvda, 20_000 * USDC);
        _settle(95 * USD);
        _submit(_reduceIntent(id, 10_000));
        uint256 lost = uint256(-allocations.trackRecordOf(agentId).realizedPnl);
        assertGt(lost, 1_000 * USDC);
        assertApproxEqAbs(allocations.effectiveCapUsdc(agentId), FUNDED_CAP - lost * 10_000 / FIRST_LOSS_BPS, 1);
    }

    /// @dev Books a sale of nothing that should have brought something.
    function _waste(uint256 amount) private {
        vm.prank(address(router));
        allocations.bookSale(agentId, IAllocationManager.SaleFigures(0, amount, 0, 0, 0));
    }

    /// @dev 15,000 USDC are bought and sold every day; the price rises by 2 % in between, and falls back.
    function _tradeAYearHonestly(uint256 depth, uint24 fee) private {
        StockToken token = _newToken("POOL", 18);
        market.setFee(address(token), fee);
        _listWithDepth(token, 100 * USD, depth);
        _fund(REQUIRED);
        for (uint256 day; day < 365; ++day) {
            _moveTo(token, 100 * USD);
            uint256 id = _open(token, 15_000 * USDC);
            _moveTo(token, 102 * USD);
            _submit(_reduceIntent(id, 10_000));
            skip(1 days);
        }
        assertEq(allocations.trackRecordOf(agentId).trades, 730);
    }

    function _moveTo(StockToken token, uint256 price) private {
        market.moveTo(address(token), price);
        _setOraclePrice(token, price);
        skip(1);
    }
}
