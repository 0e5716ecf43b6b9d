// SPDX-License-Identifier: MIT
pragma solidity ^0.8.30;

import {RequestQueue} from "../../src/RequestQueue.sol";
import {IMandateVault} from "../../src/interfaces/IMandateVault.sol";
import {ITokenRegistry} from "../../src/interfaces/ITokenRegistry.sol";
import {IssuedStock} from "./IssuedStock.sol";

/// @notice Shares of a vault that holds a token whose multiplier changes. Until a price is observed after the change, the
/// last one counts for nothing at the low side, and fully at the high side.
contract CorporateActionsTest is IssuedStock {
    uint256 private constant STAKE = 40_000 * USDC;

    RequestQueue private queue;

    function setUp() public override {
        super.setUp();
        queue = new RequestQueue(address(vault));
        vm.prank(investor);
        vault.approve(address(queue), type(uint256).max);
        _hold(STAKE / 2);
        _hold(STAKE / 2);
        skip(1);
        _setOraclePrice(stock, NVDA_PRICE);
    }

    function test_AnAnnouncedChangeCountsFromItsEffectiveSecondUntilThePriceObservedAtOrAfterIt() public {
        uint256 effectiveAt = block.timestamp + 10 minutes;
        _schedule(4e18, effectiveAt);
        _assertSettled();
        vm.warp(effectiveAt - 1);
        _assertSettled();
        vm.warp(effectiveAt);
        _assertUnsettled();
        _post(effectiveAt - 1);
        _assertUnsettled();
        _post(effectiveAt);
        _assertSettled();
        skip(1);
        _assertSettled();
    }

    function test_AChangeAtOnceCountsInItsOwnBlock() public {
        skip(1);
        _schedule(4e18, block.timestamp);
        _assertUnsettled();
        _setOraclePrice(stock, NVDA_PRICE);
        _assertSettled();
    }

    function test_AScheduleThatIsRepeatedOrReplacedCountsOnce() public {
        uint256 effectiveAt = block.timestamp + 10 minutes;
        _schedule(4e18, effectiveAt);
        _schedule(4e18, effectiveAt);
        _schedule(2e18, effectiveAt + 10 minutes);
        vm.warp(effectiveAt);
        _assertSettled();
        vm.warp(effectiveAt + 10 minutes);
        _assertUnsettled();
        _post(block.timestamp);
        _assertSettled();
    }

    /// @dev Whatever the first price after a split is, who leaves before it gains nothing from those who stay, and who
    /// enters gains nothing unless the token itself is worth more by then.
    function testFuzz_NobodyWhoKnowsOfASplitGainsFromThoseWhoStay(uint256 price, uint256 amount, bool enters) public {
        price = bound(price, NVDA_PRICE / 4, enters ? NVDA_PRICE : NVDA_PRICE * 4);
        amount = bound(amount, 100 * USDC, 10_000 * USDC);
        skip(1);
        _schedule(4e18, block.timestamp);
        uint256 supply = vault.totalSupply();
        uint256 idle = vault.idleAssets();
        if (enters) {
            _deposit(amount);
        } else {
            vm.prank(investor);
            vault.redeem(amount * 1e6, investor, investor);
        }
        skip(1);
        _setOraclePrice(stock, price);
        uint256 worth = vault.totalAssets();
        uint256 otherwise = worth - vault.idleAssets() + idle;
        assertGe((worth + 1) * (supply + 1e6), (otherwise + 1) * (vault.totalSupply() + 1e6));
    }

    function test_TheBreakerClosesAVaultThatHoldsMuchOfItUntilThePriceAfterTheChange() public {
        vm.prank(admin);
        vault.setLiquidityPolicy(IMandateVault.LiquidityPolicy(0, 0, 300, 1 days, 6 hours));
        skip(1);
        _schedule(1.02e18, block.timestamp);
        assertEq(vault.maxDeposit(investor), 0);
        assertEq(vault.maxRedeem(investor), 0);
        vm.expectPartialRevert(IMandateVault.SharePriceJumped.selector);
        vm.prank(investor);
        vault.redeem(WHOLE_SHARE, investor, investor);
        _setOraclePrice(stock, NVDA_PRICE);
        assertGt(vault.maxRedeem(investor), 0);
        _deposit(1_000 * USDC);
    }

    function test_RequestsSettleAtNoPriceFromBeforeTheChange() public {
        vm.prank(investor);
        queue.requestRedeem(1_000 * WHOLE_SHARE, investor, investor);
        skip(1);
        _setOraclePrice(stock, NVDA_PRICE); // observed after the request, and before the change
        skip(1);
        _schedule(4e18, block.timestamp);
        assertEq(queue.settleableBefore(), 0);
        (, uint256 redemptions) = queue.settle(0, 1);
        assertEq(redemptions, 0);
        _setOraclePrice(stock, NVDA_PRICE);
        (, redemptions) = queue.settle(0, 1);
        assertEq(redemptions, 1);
    }

    function test_ASaleByChoiceGoesOnWhileThePriceIsUnsettled() public {
        uint256 position = _open(stock, 1_000 * USDC);
        skip(1);
        _schedule(4e18, block.timestamp);
        assertGt(_submit(_reduceIntent(position, 5_000)), 0);
    }

    /// @dev A caller who gives little gas would hide the change.
    function testFuzz_ACallWithLittleGasNeverPaysMoreThanOneWithEnough(uint256 gasLimit) public {
        skip(1);
        _schedule(4e18, block.timestamp);
        uint256 expected = vault.previewRedeem(1_000 * WHOLE_SHARE);
        gasLimit = bound(gasLimit, 20_000, 600_000);
        vm.prank(investor);
        (bool success, bytes memory paid) =
            address(vault).call{gas: gasLimit}(abi.encodeCall(vault.redeem, (1_000 * WHOLE_SHARE, investor, investor)));
        if (success) assertEq(abi.decode(paid, (uint256)), expected);
    }

    function _post(uint256 observedAt) private {
        address[] memory assets = new address[](1);
        int256[] memory prices = new int256[](1);
        uint64[] memory times = new uint64[](1);
        (assets[0], prices[0], times[0]) = (address(issued), int256(NVDA_PRICE), uint64(observedAt));
        vm.prank(updater);
        oracle.post(assets, prices, times);
    }

    function _assertSettled() private view {
        (uint256 low, uint256 high) = vault.totalAssetsRange();
        assertEq(low, high);
        uint256 ledger = vault.tokenLedger(address(issued));
        assertEq(tokens.countableOf(address(issued), address(vault), ledger), ledger);
    }

    function _assertUnsettled() private view {
        (uint256 low, uint256 high) = vault.totalAssetsRange();
        assertEq(low, vault.idleAssets());
        assertApproxEqAbs(high, low + STAKE, STAKE / 100);
        (ITokenRegistry.Restriction restriction,,) = tokens.restrictionOf(address(issued), address(vault), 1);
        assertEq(uint8(restriction), uint8(ITokenRegistry.Restriction.None), "the issuer restricts nothing");
    }
}
