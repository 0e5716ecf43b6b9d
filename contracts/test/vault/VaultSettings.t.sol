// SPDX-License-Identifier: MIT
pragma solidity ^0.8.30;

import {IAccessControl} from "@openzeppelin/contracts/access/IAccessControl.sol";
import {SafeCast} from "@openzeppelin/contracts/utils/math/SafeCast.sol";
import {IMandateVault} from "../../src/interfaces/IMandateVault.sol";
import {ProtocolTest} from "../router/ProtocolTest.sol";

/// @notice What the admin, the operator and the guardian set
contract VaultSettingsTest is ProtocolTest {
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
        vault.setFees(0, 1, address(0));
        assertEq(vault.feeRecipient(), address(0), "the fees stay in the vault");
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

    function test_TheGuardianPausesAndDoesNotUnpause() public {
        address guardian = makeAddr("guardian");
        bytes32 guardianRole = vault.GUARDIAN_ROLE();
        vm.prank(admin);
        vault.grantRole(guardianRole, guardian);

        vm.startPrank(guardian);
        vault.setTradingPaused(true);
        vault.setLiquidityPaused(true);
        assertTrue(vault.tradingPaused());
        assertTrue(vault.liquidityPaused());
        bytes memory notOperator = abi.encodeWithSelector(
            IAccessControl.AccessControlUnauthorizedAccount.selector, guardian, vault.OPERATOR_ROLE()
        );
        vm.expectRevert(notOperator);
        vault.setTradingPaused(false);
        vm.expectRevert(notOperator);
        vault.setLiquidityPaused(false);
        vm.stopPrank();

        vm.startPrank(operator);
        vault.setTradingPaused(false);
        vault.setLiquidityPaused(false);
        assertFalse(vault.tradingPaused());
        assertFalse(vault.liquidityPaused());
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
        vm.expectRevert(notAdmin);
        vault.syncPriceOracle();
        vm.expectRevert(notAdmin);
        vault.setTokenWrittenOff(address(nvda), true);
        IMandateVault.LiquidityPolicy memory policy;
        vm.expectRevert(notAdmin);
        vault.setLiquidityPolicy(policy);
        vm.expectRevert(notOperator);
        vault.setTradingPaused(true);
        vm.expectRevert(notOperator);
        vault.setLiquidityPaused(true);
    }
}
