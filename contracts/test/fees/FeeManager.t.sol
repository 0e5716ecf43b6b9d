// SPDX-License-Identifier: MIT
pragma solidity ^0.8.30;

import {IAccessControl} from "@openzeppelin/contracts/access/IAccessControl.sol";
import {IERC20Errors} from "@openzeppelin/contracts/interfaces/draft-IERC6093.sol";
import {Test} from "forge-std/Test.sol";
import {FeeManager} from "../../src/FeeManager.sol";
import {UsdcToken} from "../../src/embedded/UsdcToken.sol";
import {IFeeManager} from "../../src/interfaces/IFeeManager.sol";

contract FeeManagerTest is Test {
    UsdcToken private usdc;
    FeeManager private fees;
    address private treasury = makeAddr("treasury");
    address private registry = makeAddr("registry");
    address private payer = makeAddr("payer");
    address private vault = makeAddr("vault");

    function setUp() public {
        usdc = new UsdcToken(address(this), "USD Coin", "USDC", "2");
        fees = new FeeManager(address(this), address(usdc), treasury);
        fees.setAgentRegistry(registry);
        usdc.mint(payer, 1000e6);
        vm.prank(payer);
        usdc.approve(address(fees), type(uint256).max);
    }

    /// @dev External, since with linked tests an expected revert of `new` itself would end the test.
    function deploy(address admin, address feeAsset, address feeTreasury) external returns (FeeManager) {
        return new FeeManager(admin, feeAsset, feeTreasury);
    }

    function test_StartsFreeAndWithoutARelayer() public view {
        assertEq(fees.feeAsset(), address(usdc));
        assertEq(fees.treasury(), treasury);
        assertEq(fees.agentRegistry(), registry);
        assertEq(fees.registrationFeeRelayer(), address(0));
        assertEq(fees.getRegistrationFee(), 0);
        assertEq(fees.getPromotionFee(vault, 0, 1), 0);
    }

    function test_RefusesZeroAddresses() public {
        vm.expectRevert(IFeeManager.ZeroAddress.selector);
        this.deploy(address(0), address(usdc), treasury);
        vm.expectRevert(IFeeManager.ZeroAddress.selector);
        this.deploy(address(this), address(0), treasury);
        vm.expectRevert(IFeeManager.ZeroAddress.selector);
        this.deploy(address(this), address(usdc), address(0));
        vm.expectRevert(IFeeManager.ZeroAddress.selector);
        fees.setTreasury(address(0));
        vm.expectRevert(IFeeManager.ZeroAddress.selector);
        fees.setAgentRegistry(address(0));
        vm.expectRevert(IFeeManager.ZeroAddress.selector);
        fees.setPromotionFee(address(0), 0, 1, 5e6);
    }

    function test_OnlyTheAdminConfigures() public {
        bytes memory refusal =
            abi.encodeWithSelector(IAccessControl.AccessControlUnauthorizedAccount.selector, payer, bytes32(0));
        vm.startPrank(payer);
        vm.expectRevert(refusal);
        fees.setRegistrationFee(1);
        vm.expectRevert(refusal);
        fees.setPromotionFee(vault, 0, 1, 1);
        vm.expectRevert(refusal);
        fees.setTreasury(payer);
        vm.expectRevert(refusal);
        fees.setRegistrationFeeRelayer(payer);
        vm.expectRevert(refusal);
        fees.setAgentRegistry(payer);
    }

    function test_TellsEachChange() public {
        vm.expectEmit(address(fees));
        emit IFeeManager.RegistrationFeeUpdated(0, 1e6);
        fees.setRegistrationFee(1e6);
        vm.expectEmit(address(fees));
        emit IFeeManager.RegistrationFeeUpdated(1e6, 2e6);
        fees.setRegistrationFee(2e6);
        vm.expectEmit(address(fees));
        emit IFeeManager.PromotionFeeUpdated(vault, 0, 1, 5e6);
        fees.setPromotionFee(vault, 0, 1, 5e6);
        vm.expectEmit(address(fees));
        emit IFeeManager.TreasuryUpdated(treasury, payer);
        fees.setTreasury(payer);
        vm.expectEmit(address(fees));
        emit IFeeManager.RegistrationFeeRelayerUpdated(address(0), payer);
        fees.setRegistrationFeeRelayer(payer);
        vm.expectEmit(address(fees));
        emit IFeeManager.AgentRegistryUpdated(registry, payer);
        fees.setAgentRegistry(payer);
    }

    function test_OnlyTheAgentRegistryCollects() public {
        fees.setRegistrationFee(1e6);
        bytes memory refusal = abi.encodeWithSelector(IFeeManager.OnlyAgentRegistry.selector, address(this));
        vm.expectRevert(refusal);
        fees.payRegistrationFee(payer, 1);
        vm.expectRevert(refusal);
        fees.payRegistrationFeePrepaid(1);
        vm.expectRevert(refusal);
        fees.payPromotionFee(payer, 1, vault, 0, 1);
    }

    function testFuzz_MovesTheRegistrationFeeToTheTreasury(uint256 fee) public {
        fee = bound(fee, 1, 1000e6);
        fees.setRegistrationFee(fee);

        vm.expectEmit(address(fees));
        emit IFeeManager.RegistrationFeePaid(7, payer, fee);
        vm.prank(registry);
        fees.payRegistrationFee(payer, 7);

        assertEq(usdc.balanceOf(treasury), fee);
        assertEq(usdc.balanceOf(payer), 1000e6 - fee);
        assertEq(usdc.balanceOf(address(fees)), 0);
    }

    function test_APrepaidFeeMovesNothing() public {
        fees.setRegistrationFee(3e6);
        vm.expectEmit(address(fees));
        emit IFeeManager.RegistrationFeePrepaid(7, 3e6);
        vm.prank(registry);
        fees.payRegistrationFeePrepaid(7);
        assertEq(usdc.balanceOf(treasury), 0);
    }

    function test_AFeeOfZeroNeedsNoApprovalAndLeavesNoEvent() public {
        vm.recordLogs();
        vm.startPrank(registry);
        fees.payRegistrationFee(treasury, 7);
        fees.payRegistrationFeePrepaid(7);
        fees.payPromotionFee(treasury, 7, vault, 0, 1);
        assertEq(vm.getRecordedLogs().length, 0);
    }

    function test_MovesThePromotionFeeOfThatVaultAndStep() public {
        fees.setPromotionFee(vault, 0, 1, 5e6);
        fees.setPromotionFee(vault, 1, 2, 9e6);
        assertEq(fees.getPromotionFee(vault, 0, 1), 5e6);
        assertEq(fees.getPromotionFee(vault, 0, 2), 0);
        assertEq(fees.getPromotionFee(makeAddr("other vault"), 0, 1), 0);

        vm.expectEmit(address(fees));
        emit IFeeManager.PromotionFeePaid(7, payer, vault, 0, 1, 5e6);
        vm.prank(registry);
        fees.payPromotionFee(payer, 7, vault, 0, 1);
        assertEq(usdc.balanceOf(treasury), 5e6);
    }

    function test_APayerWithoutTheFeePaysNothing() public {
        fees.setRegistrationFee(1001e6);
        vm.expectRevert(abi.encodeWithSelector(IERC20Errors.ERC20InsufficientBalance.selector, payer, 1000e6, 1001e6));
        vm.prank(registry);
        fees.payRegistrationFee(payer, 7);

        vm.expectRevert(
            abi.encodeWithSelector(IERC20Errors.ERC20InsufficientAllowance.selector, address(fees), 0, 1001e6)
        );
        vm.prank(registry);
        fees.payRegistrationFee(treasury, 7);
    }
}
