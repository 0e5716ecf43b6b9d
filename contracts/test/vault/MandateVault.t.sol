// SPDX-License-Identifier: MIT
pragma solidity ^0.8.30;

import {MandateVault} from "../../src/MandateVault.sol";
import {StockToken} from "../../src/embedded/StockToken.sol";
import {IMandateVault} from "../../src/interfaces/IMandateVault.sol";
import {ProtocolTest} from "../router/ProtocolTest.sol";

/// @notice Tokens, valuation, and what the router alone may do
contract MandateVaultTest is ProtocolTest {
    function test_TellsWhatItIs() public view {
        assertEq(vault.vaultName(), "genesis");
        assertEq(vault.name(), "Genesis");
        assertEq(vault.symbol(), "gUSDC");
        assertEq(vault.asset(), address(usdc));
        assertEq(vault.assetDecimals(), 6);
        assertEq(vault.decimals(), 12);
        assertEq(vault.tokenRegistry(), address(tokens));
        assertEq(vault.priceOracle(), address(oracle));
        assertEq(vault.tradeRouter(), address(router));
        assertEq(vault.maxPriceAge(), 1 hours);
        assertEq(vault.idleAssets(), DEPOSITED);
        assertFalse(vault.tradingPaused());
        assertFalse(vault.liquidityPaused());
    }

    /// @dev A call of its own: a creation that reverts after `expectRevert` would end the whole test as passed.
    function deploy(address owner, address notional, address registry) external {
        new MandateVault(owner, notional, "A", "A", "a", registry);
    }

    function test_RefusesToBeWiredToNothingAndToAnotherNotional() public {
        vm.expectRevert(IMandateVault.ZeroAddress.selector);
        this.deploy(address(0), address(usdc), address(tokens));
        vm.expectRevert(IMandateVault.ZeroAddress.selector);
        this.deploy(admin, address(usdc), address(0));
        vm.expectRevert(abi.encodeWithSelector(IMandateVault.InvalidAssetDecimals.selector, 18));
        this.deploy(admin, address(nvda), address(tokens));
    }

    // Tokens

    function test_ListsTheTokensEverEnabled() public {
        assertEq(vault.allowedTokenCount(), 2);
        assertEq(vault.allowedTokenAt(0), address(nvda));
        assertEq(vault.allowedTokenAt(1), address(tsla));
        assertTrue(vault.isAllowedToken(address(nvda)));

        vm.startPrank(admin);
        vm.expectEmit(address(vault));
        emit IMandateVault.TokenEnabledUpdated(address(nvda), false);
        vault.setTokenEnabled(address(nvda), false);
        assertFalse(vault.isAllowedToken(address(nvda)));
        assertEq(vault.allowedTokenCount(), 2);
        vault.setTokenEnabled(address(nvda), true);
        assertTrue(vault.isAllowedToken(address(nvda)));
    }

    function test_AllowsNoTokenThatTheRegistrySwitchedOff() public {
        vm.prank(operator);
        tokens.setTokenActive(address(nvda), false);
        assertFalse(vault.isAllowedToken(address(nvda)));
    }

    function test_EnablesOnlyActiveTokensOnceAndNeverItsAsset() public {
        StockToken fresh = new StockToken("Fresh", "FRS", 18, admin);
        vm.startPrank(admin);
        vm.expectRevert(abi.encodeWithSelector(IMandateVault.TokenNotActive.selector, address(fresh)));
        vault.enableToken(address(fresh));
        vm.expectRevert(abi.encodeWithSelector(IMandateVault.TokenAlreadyEnabled.selector, address(nvda)));
        vault.enableToken(address(nvda));
        vm.expectRevert(abi.encodeWithSelector(IMandateVault.AssetNotTradable.selector, address(usdc)));
        vault.enableToken(address(usdc));
        vm.expectRevert(abi.encodeWithSelector(IMandateVault.TokenNotEnabled.selector, address(fresh)));
        vault.setTokenEnabled(address(fresh), true);
    }

    function test_TakesTwoHundredAndFiftyFiveTokensAndNoMore() public {
        vm.startPrank(admin);
        for (uint256 i = 2; i < 255; ++i) {
            _enableFresh();
        }
        assertEq(vault.allowedTokenCount(), 255);
        StockToken last = StockToken(vault.allowedTokenAt(254));
        vm.stopPrank();
        vm.prank(updater);
        oracle.setPrice(address(last), int256(2 * USD));
        vm.prank(address(router));
        vault.recordReceived(address(last), 10e18);
        assertEq(vault.totalAssets(), DEPOSITED + 20 * USDC);

        vm.startPrank(admin);
        StockToken one = new StockToken("One", "ONE", 18, admin);
        tokens.registerToken(address(one));
        vm.expectRevert(abi.encodeWithSelector(IMandateVault.TooManyTokens.selector, 255));
        vault.enableToken(address(one));
    }

    // The router's calls

    function test_OnlyTheRouterMovesAnything() public {
        bytes memory refusal = abi.encodeWithSelector(IMandateVault.OnlyTradeRouter.selector, address(this));
        vm.expectRevert(refusal);
        vault.pullAssetsForTrade(address(this), 1);
        vm.expectRevert(refusal);
        vault.pullTokenForTrade(address(nvda), address(this), 1);
        vm.expectRevert(refusal);
        vault.pullTokenForForceClose(address(nvda), address(this), 1);
        vm.expectRevert(refusal);
        vault.recordReceived(address(nvda), 1);
    }

    function test_PausedTradingStopsTheRouterButNotAForceClose() public {
        uint256 id = _open(nvda, 1_000 * USDC);
        uint256 held = positions.getPosition(id).tokenAmount;
        _pauseTrading(true);
        vm.startPrank(address(router));
        vm.expectRevert(IMandateVault.TradingPaused.selector);
        vault.pullAssetsForTrade(address(this), 1);
        vm.expectRevert(IMandateVault.TradingPaused.selector);
        vault.pullTokenForTrade(address(nvda), address(this), 1);
        vault.pullTokenForForceClose(address(nvda), address(this), held);
        assertEq(nvda.balanceOf(address(this)), held);
    }

    function test_GivesNoTokensThatNoAgentHolds() public {
        uint256 id = _open(nvda, 1_000 * USDC);
        uint256 held = positions.getPosition(id).tokenAmount;
        vm.prank(admin);
        nvda.mint(address(vault), 5e18);

        vm.startPrank(address(router));
        vm.expectRevert(
            abi.encodeWithSelector(IMandateVault.InsufficientLedger.selector, address(nvda), held, held + 1)
        );
        vault.pullTokenForTrade(address(nvda), address(this), held + 1);
        vm.expectRevert(
            abi.encodeWithSelector(IMandateVault.InsufficientLedger.selector, address(nvda), held, held + 1)
        );
        vault.pullTokenForForceClose(address(nvda), address(this), held + 1);
        vault.pullTokenForTrade(address(nvda), address(this), held);
        assertEq(vault.tokenLedger(address(nvda)), 0);
    }

    // Valuation

    function test_ValuesIdleUsdcAndWhatAgentsHoldAtTheLastPrice() public {
        uint256 id = _open(nvda, 10_000 * USDC);
        uint256 held = positions.getPosition(id).tokenAmount;
        _setOraclePrice(nvda, 140 * USD);
        assertEq(vault.totalAssets(), DEPOSITED - 10_000 * USDC + held * 140 / 1e12);

        skip(30 days);
        assertEq(vault.totalAssets(), DEPOSITED - 10_000 * USDC + held * 140 / 1e12);
        vm.prank(operator);
        tokens.setTokenActive(address(nvda), false);
        assertEq(vault.totalAssets(), DEPOSITED - 10_000 * USDC + held * 140 / 1e12);
    }

    function test_DoesNotValueTokensThatWereSentHere() public {
        vm.prank(admin);
        nvda.mint(address(vault), 1_000e18);
        assertEq(vault.totalAssets(), DEPOSITED);
    }

    function test_ForgetsATokenThatWasSold() public {
        uint256 first = _open(nvda, 10_000 * USDC);
        uint256 second = _open(tsla, 10_000 * USDC);
        _submit(_reduceIntent(first, 10_000));
        uint256 held = positions.getPosition(second).tokenAmount;
        assertEq(vault.totalAssets(), usdc.balanceOf(address(vault)) + held * 250 / 100);
        _submit(_reduceIntent(second, 10_000));
        assertEq(vault.totalAssets(), usdc.balanceOf(address(vault)));
    }

    function test_ATokenWrittenOffIsWorthNothingUntilItIsTakenBack() public {
        uint256 id = _open(nvda, 10_000 * USDC);
        uint256 held = positions.getPosition(id).tokenAmount;
        uint256 value = held * 100 / 1e12;
        vm.startPrank(admin);
        vm.expectEmit(address(vault));
        emit IMandateVault.TokenWrittenOffUpdated(address(nvda), true, held, value);
        vault.setTokenWrittenOff(address(nvda), true);
        assertTrue(vault.isTokenWrittenOff(address(nvda)));
        assertEq(vault.totalAssets(), DEPOSITED - 10_000 * USDC);
        assertFalse(vault.isAllowedToken(address(nvda)), "not bought");
        assertEq(vault.tokenLedger(address(nvda)), held, "still held");

        vm.expectEmit(address(vault));
        emit IMandateVault.TokenWrittenOffUpdated(address(nvda), false, held, 0);
        vault.setTokenWrittenOff(address(nvda), false);
        assertEq(vault.totalAssets(), DEPOSITED - 10_000 * USDC + value);
        assertTrue(vault.isAllowedToken(address(nvda)));
        vm.expectRevert(abi.encodeWithSelector(IMandateVault.TokenNotEnabled.selector, address(usdc)));
        vault.setTokenWrittenOff(address(usdc), true);
    }

    function test_WhatATokenWrittenOffStillBringsIsAGain() public {
        uint256 id = _open(nvda, 10_000 * USDC);
        vm.prank(admin);
        vault.setTokenWrittenOff(address(nvda), true);
        uint256 before = vault.totalAssets();
        _submit(_reduceIntent(id, 10_000));
        assertGt(vault.totalAssets(), before + 9_900 * USDC);
    }

    function _enableFresh() private {
        StockToken token = new StockToken("Fresh", "FRS", 18, admin);
        tokens.registerToken(address(token));
        vault.enableToken(address(token));
    }
}
