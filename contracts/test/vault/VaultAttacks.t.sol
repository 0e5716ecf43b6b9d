// SPDX-License-Identifier: MIT
pragma solidity ^0.8.30;

import {PriceOracle} from "../../src/PriceOracle.sol";
import {StockToken} from "../../src/embedded/StockToken.sol";
import {ProtocolTest} from "../router/ProtocolTest.sol";

/// @notice The attacks on the vault and its prices that an audit found, each played through from the attacker's side
/// @dev What protects against them is called by signature, so that the same file plays the attacks against contracts that
/// do not have it: all of them succeed there.
contract VaultAttacksTest is ProtocolTest {
    address private attacker = makeAddr("attacker");
    address private seller = makeAddr("where the vault's tokens come from");

    function setUp() public override {
        super.setUp();
        vm.startPrank(admin);
        vault.setMaxPriceAge(1 days);
        _ifThere(address(oracle), abi.encodeWithSignature("setAssetConfig(address,uint32,uint32)", nvda, 1 days, 2_000));
        _ifThere(
            address(oracle),
            abi.encodeWithSignature("setAssetConfig(address,(uint32,uint32,uint24))", nvda, 1 days, 2_000, 1 hours)
        );
        _ifThere(
            address(vault),
            abi.encodeWithSignature(
                "setLiquidityPolicy((uint32,uint32,uint16,uint32,uint32))", 15 minutes, 1 days, 500, 1 days, 6 hours
            )
        );
        _ifThere(address(vault), abi.encodeCall(vault.setFees, (10, 10, address(0))));
        vm.stopPrank();
        skip(2 days); // what the investor deposited is no longer within its holding time
        _setOraclePrice(nvda, NVDA_PRICE);
        _setOraclePrice(tsla, TSLA_PRICE);
    }

    /// A price half a day old is about to be replaced by one everybody knows.
    function test_Finding05_NobodyTakesAKnownPriceMoveFromTheOtherHolders() public {
        _hold(nvda, 400_000 * USDC, NVDA_PRICE);
        skip(12 hours);
        _fund(attacker, 9_000_000 * USDC);

        _tryDeposit(attacker, 9_000_000 * USDC);
        _setOraclePrice(nvda, NVDA_PRICE * 103 / 100);
        _tryRedeemAll(attacker);

        assertLe(usdc.balanceOf(attacker), 9_000_000 * USDC, "profit");
        assertGe(vault.convertToAssets(vault.balanceOf(investor)), 1_011_900 * USDC, "the gain is the investor's");
    }

    /// With prices of minutes there is less to know than the fees cost, and the shares are locked meanwhile.
    function test_Finding05_AMoveOfMinutesDoesNotPayForTheFees() public {
        _hold(nvda, 400_000 * USDC, NVDA_PRICE);
        skip(10 minutes);
        _fund(attacker, 9_000_000 * USDC);

        _tryDeposit(attacker, 9_000_000 * USDC);
        _setOraclePrice(nvda, NVDA_PRICE * 1_004 / 1_000);
        _tryRedeemAll(attacker);
        _tryMove(attacker, makeAddr("another of the attacker's"));
        assertLe(usdc.balanceOf(attacker), 9_000_000 * USDC, "profit at once");

        skip(2 days);
        _setOraclePrice(nvda, NVDA_PRICE * 1_004 / 1_000);
        _tryRedeemAll(attacker);
        assertLe(usdc.balanceOf(attacker), 9_000_000 * USDC, "profit after the holding time");
    }

    /// Whoever has the updater's key raises the price as often as they like within one block, and redeems.
    function test_Finding06_AStolenUpdaterKeyDoesNotWalkThePrice() public {
        _hold(nvda, 20_000 * USDC, NVDA_PRICE);
        vm.prank(investor);
        vault.transfer(attacker, 1_000e12);

        _walk(114);
        (uint256 price,,) = oracle.peekPrice(address(nvda));
        assertLe(price, NVDA_PRICE * 12 / 10, "the price moved more than the bound");
        _tryRedeemAll(attacker);
        assertLe(usdc.balanceOf(attacker), 1_010 * USDC, "redeemed at the walked price");
    }

    /// The key is used for a day, at the pace that the bound allows.
    function test_Finding06_AShareThatJumpsIsNotRedeemed() public {
        _hold(nvda, 400_000 * USDC, NVDA_PRICE);
        vm.prank(investor);
        vault.transfer(attacker, 1_000e12);

        for (uint256 hour; hour < 24; ++hour) {
            _walk(3);
            _ifThere(address(vault), abi.encodeWithSignature("checkpointSharePrice()"));
            _tryRedeemAll(attacker);
            skip(1 hours);
        }
        assertLe(usdc.balanceOf(attacker), 1_050 * USDC, "redeemed beyond the breaker's bound");
    }

    function test_Finding07_TheAdminDoesNotMakeAnotherAccountAdminWithoutItsConsent() public {
        bytes32 role = vault.DEFAULT_ADMIN_ROLE();
        vm.prank(admin);
        _ifThere(address(vault), abi.encodeCall(vault.grantRole, (role, attacker)));
        assertFalse(vault.hasRole(role, attacker));
    }

    function test_Finding08_AnOracleMigrationSilencesNoExit() public {
        for (uint256 i; i < 5; ++i) {
            _setPrice(nvda, NVDA_PRICE);
        }
        uint256 id = _open(nvda, 1_000 * USDC);

        vm.startPrank(admin);
        PriceOracle next = new PriceOracle(admin);
        next.grantRole(next.ORACLE_UPDATER_ROLE(), updater);
        address[] memory assets = new address[](2);
        (assets[0], assets[1]) = (address(nvda), address(tsla));
        _ifThere(address(next), abi.encodeWithSignature("inheritFrom(address,address[])", oracle, assets));
        tokens.setPriceOracle(address(next));
        _ifThere(address(vault), abi.encodeWithSignature("syncPriceOracle()"));
        vm.stopPrank();
        assertEq(vault.priceOracle(), address(next));

        oracle = next;
        _setPrice(nvda, NVDA_PRICE * 90 / 100);
        vm.prank(keeper);
        router.executeExit(id);
        assertEq(positions.getPosition(id).tokenAmount, 0, "stopped out");
    }

    function test_Finding09_DustInADeadTokenDoesNotFreezeRedemptions() public {
        _hold(tsla, 1 * USDC, TSLA_PRICE);
        skip(30 days);
        assertGt(vault.maxRedeem(investor), 0);
        vm.prank(investor);
        vault.redeem(1_000e12, investor, investor);
    }

    /// The registry already names an oracle that has no prices yet: whoever brings the vault there buys shares cheaply.
    function test_Low_AStrangerDoesNotChooseWhenTheVaultChangesItsOracle() public {
        _hold(nvda, 400_000 * USDC, NVDA_PRICE);
        address next = address(new PriceOracle(admin));
        vm.prank(admin);
        tokens.setPriceOracle(next);

        vm.prank(attacker);
        _ifThere(address(vault), abi.encodeWithSignature("syncPriceOracle()"));
        assertEq(vault.priceOracle(), address(oracle));
        assertGe(vault.totalAssets(), 999_000 * USDC);
    }

    function test_Low_AFeeRecipientThatCannotBePaidBlocksNoWithdrawal() public {
        vm.prank(admin);
        vault.setFees(100, 100, treasury);
        bytes4 transfer = usdc.transfer.selector;
        vm.mockCallRevert(address(usdc), abi.encodeWithSelector(transfer, treasury), "blocked");

        vm.prank(investor);
        vault.redeem(1_000e12, investor, investor);
        assertGe(usdc.balanceOf(investor), 989 * USDC);
        _deposit(1_000 * USDC);
    }

    /// @dev A call that contracts without the function refuse.
    function _ifThere(address target, bytes memory call) private {
        (bool success,) = target.call(call);
        success; // both outcomes are fine
    }

    /// @dev The vault holds `token` for `amount` of USDC, as after a trade.
    function _hold(StockToken token, uint256 amount, uint256 price) private {
        uint256 bought = amount * 100 * 10 ** token.decimals() / price;
        vm.prank(admin);
        token.mint(address(vault), bought);
        vm.startPrank(address(router));
        vault.pullAssetsForTrade(seller, amount);
        vault.recordReceived(address(token), bought);
        vm.stopPrank();
    }

    function _walk(uint256 steps) private {
        for (uint256 i; i < steps; ++i) {
            (uint256 price,,) = oracle.peekPrice(address(nvda));
            vm.prank(updater);
            _ifThere(address(oracle), abi.encodeCall(oracle.setPrice, (address(nvda), int256(price * 12 / 10))));
        }
        (uint256 held,,) = oracle.peekPrice(address(nvda));
        vm.prank(updater);
        _ifThere(address(oracle), abi.encodeCall(oracle.setPrice, (address(nvda), int256(held))));
    }

    function _fund(address account, uint256 amount) private {
        vm.prank(admin);
        usdc.mint(account, amount);
        vm.prank(account);
        usdc.approve(address(vault), amount);
    }

    function _tryDeposit(address account, uint256 amount) private {
        vm.prank(account);
        _ifThere(address(vault), abi.encodeCall(vault.deposit, (amount, account)));
    }

    function _tryRedeemAll(address account) private {
        uint256 shares = vault.maxRedeem(account);
        if (shares == 0) return;
        vm.prank(account);
        _ifThere(address(vault), abi.encodeCall(vault.redeem, (shares, account, account)));
    }

    function _tryMove(address from, address to) private {
        uint256 shares = vault.balanceOf(from);
        vm.prank(from);
        _ifThere(address(vault), abi.encodeCall(vault.transfer, (to, shares)));
        assertEq(vault.balanceOf(to), 0, "moved around the holding time");
    }
}
