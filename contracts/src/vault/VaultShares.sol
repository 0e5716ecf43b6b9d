// SPDX-License-Identifier: MIT
pragma solidity ^0.8.30;

import {IERC20Metadata} from "@openzeppelin/contracts/token/ERC20/extensions/IERC20Metadata.sol";
import {ERC4626} from "@openzeppelin/contracts/token/ERC20/extensions/ERC4626.sol";
import {Math} from "@openzeppelin/contracts/utils/math/Math.sol";
import {TwoStepAdmin} from "../access/TwoStepAdmin.sol";
import {IMandateVault} from "../interfaces/IMandateVault.sol";

/// @title What the parts of the vault have in common: shares over USDC, an admin, and the terms on which shares are made
/// @dev `IMandateVault` describes the functions.
abstract contract VaultShares is IMandateVault, ERC4626, TwoStepAdmin {
    uint8 internal constant USDC_DECIMALS = 6;

    LiquidityPolicy internal _liquidityPolicy;

    /// @inheritdoc IMandateVault
    function liquidityPolicy() external view returns (LiquidityPolicy memory) {
        return _liquidityPolicy;
    }

    /// @inheritdoc IMandateVault
    function assetDecimals() external pure returns (uint8) {
        return USDC_DECIMALS;
    }

    /// @inheritdoc IERC20Metadata
    function decimals() public view override(ERC4626, IERC20Metadata) returns (uint8) {
        return super.decimals();
    }

    function _sharesFor(uint256 assets, uint256 total, Math.Rounding rounding) internal view returns (uint256) {
        return Math.mulDiv(assets, totalSupply() + 10 ** _decimalsOffset(), total + 1, rounding);
    }

    function _assetsFor(uint256 shares, uint256 total, Math.Rounding rounding) internal view returns (uint256) {
        return Math.mulDiv(shares, total + 1, totalSupply() + 10 ** _decimalsOffset(), rounding);
    }

    /// @dev Six more decimals than USDC: inflating the price of the first share costs a million times what it takes.
    function _decimalsOffset() internal pure override returns (uint8) {
        return 6;
    }
}
