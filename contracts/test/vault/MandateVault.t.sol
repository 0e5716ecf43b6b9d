// SPDX-License-Identifier: MIT
pragma solidity ^0.8.30;

import {IAccessControl} from "@openzeppelin/contracts/access/IAccessControl.sol";
import {SafeCast} from "@openzeppelin/contracts/utils/math/SafeCast.sol";
import {MandateVault} from "../../src/MandateVault.sol";
import {StockToken} from "../../src/embedded/StockToken.sol";
import {IMandateVault} from "../../src/interfaces/IMandateVault.sol";
import {ProtocolTest} from "../router/ProtocolTest.sol";

/// @notice Tokens, settings, and what the router alone may do
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
        vault.recordTokenBought(address(last), 10e18);
        assertEq(vault.totalAssets(), DEPOSITED + 20 * USDC);

        vm.startPrank(admin);
        StockToken one = new StockToken("One", "ONE", 18, admin);
        tokens.registerToken(address(one));
        vm.expectRevert(abi.encodeWithSelector(IMandateVault.TooManyTokens.selector, 255));
        vault.enableToken(address(one));
    }

    // Settings

    function test_TheAdminSetsTheLargestPriceAge() public {
        vm.startPrank(admin);
        vm.expectEmit(address(vault));
        emit IMandateVault.MaxPriceAgeUpdated(1 hours, 0);
        vault.setMaxPriceAge(0);
        assertEq(vault.maxPriceAge(), 0);
        vault.setMaxPriceAge(type(uint32).max);
        vm.expectRevert(
            abi.encodeWithSelector(SafeCast.SafeCastOverflowedUintDowncast.selector, 32, uint256(type(uint32).max) + 1)
        );
        vault.setMaxPriceAge(uint256(type(uint32).max) + 1);
    }

    function test_TheAdminSetsFeesOfUpToTenPercent() public {
        vm.startPrank(admin);
        vm.expectEmit(address(vault));
        emit IMandateVault.FeesUpdated(1_000, 1_000, treasury);
        vault.setFees(1_000, 1_000, treasury);
        assertEq(vault.depositFeeBps(), 1_000);
        assertEq(vault.withdrawFeeBps(), 1_000);
        assertEq(vault.feeRecipient(), treasury);

        vm.expectRevert(abi.encodeWithSelector(IMandateVault.FeeTooHigh.selector, 1_001, 1_000));
        vault.setFees(1_001, 0, treasury);
        vm.expectRevert(abi.encodeWithSelector(IMandateVault.FeeTooHigh.selector, 1_001, 1_000));
        vault.setFees(0, 1_001, treasury);
        vm.expectRevert(IMandateVault.ZeroAddress.selector);
        vault.setFees(0, 1, address(0));
        vault.setFees(0, 0, address(0));
    }

    function test_FollowsTheTokenRegistryToAnotherOracle() public {
        vm.prank(admin);
        tokens.setPriceOracle(address(this));
        assertEq(vault.priceOracle(), address(oracle));
        vm.expectEmit(address(vault));
        emit IMandateVault.PriceOracleUpdated(address(oracle), address(this));
        vault.syncPriceOracle();
        assertEq(vault.priceOracle(), address(this));
    }

    function test_TheAdminReplacesTheRouter() public {
        vm.startPrank(admin);
        vm.expectEmit(address(vault));
        emit IMandateVault.TradeRouterUpdated(address(router), address(this));
        vault.setTradeRouter(address(this));
        assertEq(vault.tradeRouter(), address(this));
        vm.expectRevert(IMandateVault.ZeroAddress.selector);
        vault.setTradeRouter(address(0));
    }

    function test_TheOperatorPauses() public {
        vm.startPrank(operator);
        vm.expectEmit(address(vault));
        emit IMandateVault.TradingPausedUpdated(true);
        vault.setTradingPaused(true);
        vm.expectEmit(address(vault));
        emit IMandateVault.LiquidityPausedUpdated(true);
        vault.setLiquidityPaused(true);
        assertTrue(vault.tradingPaused());
        assertTrue(vault.liquidityPaused());
    }

    function test_NobodyElseSetsAnything() public {
        bytes memory notAdmin = abi.encodeWithSelector(
            IAccessControl.AccessControlUnauthorizedAccount.selector, address(this), vault.DEFAULT_ADMIN_ROLE()
        );
        bytes memory notOperator = abi.encodeWithSelector(
            IAccessControl.AccessControlUnauthorizedAccount.selector, address(this), vault.OPERATOR_ROLE()
        );
        vm.expectRevert(notAdmin);
        vault.enableToken(address(nvda));
        vm.expectRevert(notAdmin);
        vault.setTokenEnabled(address(nvda), false);
        vm.expectRevert(notAdmin);
        vault.setMaxPriceAge(1);
        vm.expectRevert(notAdmin);
        vault.setFees(0, 0, address(0));
        vm.expectRevert(notAdmin);
        vault.setTradeRouter(address(this));
        vm.expectRevert(notOperator);
        vault.setTradingPaused(true);
        vm.expectRevert(notOperator);
        vault.setLiquidityPaused(true);
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
        vault.recordTokenBought(address(nvda), 1);
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

    function _enableFresh() private {
        StockToken token = new StockToken("Fresh", "FRS", 18, admin);
        tokens.registerToken(address(token));
        vault.enableToken(address(token));
    }
}
