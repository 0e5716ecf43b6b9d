// SPDX-License-Identifier: MIT
pragma solidity ^0.8.30;

import {IMandateVault} from "../../src/interfaces/IMandateVault.sol";
import {ITokenRegistry} from "../../src/interfaces/ITokenRegistry.sol";
import {ITradeRouter} from "../../src/interfaces/ITradeRouter.sol";
import {IUniswapV3SwapAdapter} from "../../src/interfaces/IUniswapV3SwapAdapter.sol";
import {IssuedStock} from "./IssuedStock.sol";

/// @notice What an issuer does to a token that the vault holds, and what that does to the vault's shares and sales
contract IssuerPowersTest is IssuedStock {
    uint256 private constant STAKE = 20_000 * USDC;

    uint256 private position;

    function setUp() public override {
        super.setUp();
        position = _open(stock, STAKE);
    }

    // The share price

    function test_ATokenThatTheIssuerPausedCountsForNothingInRedemptionsInTheSameBlock() public {
        _pause(true);
        _assertUnsellable(ITokenRegistry.Restriction.Paused, address(issued));
        _pause(false);
        _assertSellable();
        _pauseToken(true);
        _assertUnsellable(ITokenRegistry.Restriction.TokenPaused, address(issued));
        _pauseToken(false);
        _assertSellable();
    }

    function test_ABlockOfTheVaultItsAdapterOrThePoolCountsTheTokenForNothing() public {
        address[3] memory path = [address(vault), address(adapter), adapter.poolOf(address(issued))];
        for (uint256 i; i < path.length; ++i) {
            _block(path[i], true);
            _assertUnsellable(ITokenRegistry.Restriction.Blocked, path[i]);
            _block(path[i], false);
            _assertSellable();
        }
        _block(investor, true);
        _assertSellable();
    }

    function test_OfABurnedTokenTheLowSideCountsTheBalanceThatIsLeft() public {
        uint256 ledger = vault.tokenLedger(address(issued));
        (uint256 before, uint256 high) = vault.totalAssetsRange();
        _burn(address(vault), ledger / 4);
        (uint256 low, uint256 highAfter) = vault.totalAssetsRange();
        assertEq(highAfter, high, "deposits still pay for all");
        assertApproxEqAbs(before - low, (before - vault.idleAssets()) / 4, 1);
        _assertRestriction(ITokenRegistry.Restriction.ShortOfLedger, address(vault), ledger - ledger / 4);

        // What is left can be sold, so it is worth its price; a donation fills up to the ledger and no further.
        assertGt(_submit(_reduceIntent(position, 5_000)), 0);
        _burn(address(vault), issued.balanceOf(address(vault)));
        (low,) = vault.totalAssetsRange();
        assertEq(low, vault.idleAssets());
        vm.prank(address(market));
        issued.mint(address(vault), 10 * ledger);
        (low, high) = vault.totalAssetsRange();
        assertEq(low, high);
    }

    function test_SharesStillGoInAndOutWhileATokenCannotBeSold() public {
        _pause(true);
        (uint256 low, uint256 high) = vault.totalAssetsRange();
        vm.prank(investor);
        uint256 paid = vault.redeem(1_000 * WHOLE_SHARE, investor, investor);
        assertApproxEqAbs(paid, 1_000 * low / 1e6, 1_000);
        assertLt(paid, 1_000 * high / 1e6);
        _deposit(1_000 * USDC);
    }

    // Tokens that answer badly

    function test_NoAnswerOfAListedTokenBlocksADepositOrARedemption() public {
        bytes[5] memory codes = [
            bytes(hex"fe"), // takes all gas
            hex"5f5ffd", // reverts
            hex"620fffff5ffd", // reverts with a megabyte
            hex"620fffff5ff3", // returns a megabyte of zeros
            hex"00" // returns nothing
        ];
        (, uint256 high) = vault.totalAssetsRange();
        for (uint256 i; i < codes.length; ++i) {
            vm.etch(address(issued), codes[i]);
            uint256 gas = gasleft();
            (uint256 low, uint256 highNow) = vault.totalAssetsRange();
            assertLt(gas - gasleft(), 400_000, "bounded");
            assertEq(highNow, high);
            assertEq(low, vault.idleAssets(), "a balance that cannot be read is none");
            vm.prank(investor);
            vault.redeem(WHOLE_SHARE, investor, investor);
            (, high) = vault.totalAssetsRange();
            _deposit(USDC);
            (, high) = vault.totalAssetsRange();
        }
    }

    function test_AnIssuerThatAnswersBadlyRestrictsNothing() public {
        vm.etch(address(issuer), hex"fe");
        (uint256 low, uint256 high) = vault.totalAssetsRange();
        // The token itself needs its beacon, so its balance cannot be read either.
        assertEq(low, vault.idleAssets());
        assertGt(high, low);
    }

    function test_ATokenWithoutAnIssuerOrPausesCountsFully() public {
        uint256 plain = _open(tsla, 1_000 * USDC);
        _assertSellable();
        assertGt(_submit(_reduceIntent(plain, 10_000)), 0);
    }

    /// @dev A caller who gives little gas would hide a pause, and be paid for what cannot be sold.
    function testFuzz_ACallWithLittleGasNeverPaysMoreThanOneWithEnough(uint256 gasLimit) public {
        _block(adapter.poolOf(address(issued)), true);
        uint256 expected = vault.previewRedeem(1_000 * WHOLE_SHARE);
        gasLimit = bound(gasLimit, 20_000, 600_000);
        vm.prank(investor);
        (bool success, bytes memory paid) =
            address(vault).call{gas: gasLimit}(abi.encodeCall(vault.redeem, (1_000 * WHOLE_SHARE, investor, investor)));
        if (success) assertEq(abi.decode(paid, (uint256)), expected);
    }

    // Sales

    function test_ASaleThatTheIssuerKeepsFromHappeningSaysWhatTheIssuerDid() public {
        _pause(true);
        _refuseSale(ITokenRegistry.Restriction.Paused, address(issued));
        _pause(false);
        _pauseToken(true);
        _refuseSale(ITokenRegistry.Restriction.TokenPaused, address(issued));
        _pauseToken(false);
        _block(address(vault), true);
        _refuseSale(ITokenRegistry.Restriction.Blocked, address(vault));
        _block(address(vault), false);
        _block(address(adapter), true);
        _refuseSale(ITokenRegistry.Restriction.Blocked, address(adapter));
        _block(address(adapter), false);
        _burn(address(vault), 1);
        _refuseSale(ITokenRegistry.Restriction.ShortOfLedger, address(vault));
    }

    function test_ASaleToABlockedPoolNamesThePool() public {
        address pool = adapter.poolOf(address(issued));
        _block(pool, true);
        _refuse(
            _reduceIntent(position, 10_000),
            abi.encodeWithSelector(IUniswapV3SwapAdapter.PoolNotPaid.selector, address(issued), pool)
        );
    }

    function test_AStopOfAPausedTokenFailsWithANameAndFiresOnceThePauseEnds() public {
        skip(1);
        _setOraclePrice(stock, NVDA_PRICE * 91 / 100);
        market.moveTo(address(issued), NVDA_PRICE * 91 / 100);
        _pause(true);
        bytes memory error = _restricted(ITokenRegistry.Restriction.Paused, address(issued));
        vm.expectRevert(error);
        vm.prank(keeper);
        router.executeExit(position);

        uint256[] memory ids = new uint256[](1);
        ids[0] = position;
        (ITradeRouter.ExitStatus[] memory statuses, bytes[] memory reasons) = router.executeExits(ids);
        assertEq(uint8(statuses[0]), uint8(ITradeRouter.ExitStatus.Failed));
        assertEq(reasons[0], error);

        _pause(false);
        assertGt(_exit(position), 0);
    }

    function _restricted(ITokenRegistry.Restriction restriction, address account) private view returns (bytes memory) {
        return
            abi.encodeWithSelector(IMandateVault.TokenRestricted.selector, address(issued), uint8(restriction), account);
    }

    function _refuseSale(ITokenRegistry.Restriction restriction, address account) private {
        _refuse(_reduceIntent(position, 10_000), _restricted(restriction, account));
    }

    function _assertUnsellable(ITokenRegistry.Restriction restriction, address account) private view {
        _assertRestriction(restriction, account, 0);
        (uint256 low, uint256 high) = vault.totalAssetsRange();
        assertEq(low, vault.idleAssets());
        assertApproxEqAbs(high, low + STAKE, STAKE / 100);
        assertLt(vault.previewRedeem(WHOLE_SHARE), vault.previewMint(WHOLE_SHARE));
    }

    function _assertSellable() private view {
        _assertRestriction(ITokenRegistry.Restriction.None, address(0), vault.tokenLedger(address(issued)));
        (uint256 low, uint256 high) = vault.totalAssetsRange();
        assertEq(low, high);
    }

    function _assertRestriction(ITokenRegistry.Restriction restriction, address account, uint256 transferable)
        private
        view
    {
        (ITokenRegistry.Restriction found, address whom, uint256 amount) =
            tokens.restrictionOf(address(issued), address(vault), vault.tokenLedger(address(issued)));
        assertEq(uint8(found), uint8(restriction));
        assertEq(whom, account);
        assertEq(amount, transferable);
    }
}
