// SPDX-License-Identifier: MIT
pragma solidity ^0.8.30;

import {IERC20} from "@openzeppelin/contracts/token/ERC20/IERC20.sol";
import {SafeERC20} from "@openzeppelin/contracts/token/ERC20/utils/SafeERC20.sol";
import {Math} from "@openzeppelin/contracts/utils/math/Math.sol";
import {SafeCast} from "@openzeppelin/contracts/utils/math/SafeCast.sol";
import {IMandateVault} from "../interfaces/IMandateVault.sol";
import {PriceMath} from "../libraries/PriceMath.sol";
import {VaultShares} from "./VaultShares.sol";

/// @title Fees of deposits and withdrawals, which stay in the vault unless a recipient is set
abstract contract ShareFees is VaultShares {
    using Math for uint256;
    using SafeCast for uint256;
    using SafeERC20 for IERC20;

    uint256 private constant MAX_FEE_BPS = 1_000;

    uint16 internal _depositFeeBps;
    uint16 internal _withdrawFeeBps;

    /// @inheritdoc IMandateVault
    address public feeRecipient;

    /// @inheritdoc IMandateVault
    function setFees(uint256 depositFeeBps_, uint256 withdrawFeeBps_, address recipient)
        external
        onlyRole(DEFAULT_ADMIN_ROLE)
    {
        if (depositFeeBps_ > MAX_FEE_BPS) revert FeeTooHigh(depositFeeBps_, MAX_FEE_BPS);
        if (withdrawFeeBps_ > MAX_FEE_BPS) revert FeeTooHigh(withdrawFeeBps_, MAX_FEE_BPS);

        _depositFeeBps = depositFeeBps_.toUint16();
        _withdrawFeeBps = withdrawFeeBps_.toUint16();
        feeRecipient = recipient;

        emit FeesUpdated(depositFeeBps_, withdrawFeeBps_, recipient);
    }

    /// @inheritdoc IMandateVault
    function depositFeeBps() external view returns (uint256) {
        return _depositFeeBps;
    }

    /// @inheritdoc IMandateVault
    function withdrawFeeBps() external view returns (uint256) {
        return _withdrawFeeBps;
    }

    /// @dev A recipient that cannot be paid must not keep anybody from withdrawing.
    /// @return paid What has left the vault
    function _payFee(uint256 fee) internal returns (uint256 paid) {
        address recipient = feeRecipient;
        if (fee == 0 || recipient == address(0)) return 0;
        if (IERC20(asset()).trySafeTransfer(recipient, fee)) return fee;
        emit FeeRetained(recipient, fee);
    }

    /// @dev The fee within an amount that includes it, rounded up.
    function _feeOf(uint256 gross, uint256 feeBps) internal pure returns (uint256) {
        return gross.mulDiv(feeBps, PriceMath.BPS, Math.Rounding.Ceil);
    }

    /// @dev The least amount that leaves `net` after the fee.
    function _grossOf(uint256 net, uint256 feeBps) internal pure returns (uint256) {
        return net.mulDiv(PriceMath.BPS, PriceMath.BPS - feeBps, Math.Rounding.Ceil);
    }
}
