// SPDX-License-Identifier: MIT
pragma solidity ^0.8.30;

import {Test} from "forge-std/Test.sol";
import {MandateVault} from "../src/MandateVault.sol";
import {PriceOracle} from "../src/PriceOracle.sol";
import {TokenRegistry} from "../src/TokenRegistry.sol";
import {UsdcToken} from "../src/embedded/UsdcToken.sol";
import {IMandateVault} from "../src/interfaces/IMandateVault.sol";

/// @notice A vault over USDC that the test may mint
abstract contract VaultUnderTest is Test {
    UsdcToken internal usdc;
    MandateVault internal vault;

    function _deployVault(uint256 feeBps, uint32 holdingTime) internal {
        usdc = new UsdcToken(address(this), "USD Coin", "USDC", "2");
        usdc.grantRole(usdc.MINTER_ROLE(), address(this));
        TokenRegistry tokens = new TokenRegistry(address(this), address(new PriceOracle(address(this))));
        vault = new MandateVault(address(this), address(usdc), "Genesis", "gUSDC", "genesis", address(tokens));
        vault.setFees(feeBps, feeBps, address(0));
        vault.setLiquidityPolicy(IMandateVault.LiquidityPolicy(0, holdingTime, 0, 0, 0));
    }

    function _deposit(address holder, uint256 amount) internal {
        usdc.mint(holder, amount);
        vm.startPrank(holder);
        usdc.approve(address(vault), amount);
        vault.deposit(amount, holder);
        vm.stopPrank();
    }
}
