// SPDX-License-Identifier: MIT
pragma solidity ^0.8.30;

import {IERC20} from "@openzeppelin/contracts/token/ERC20/IERC20.sol";
import {SafeERC20} from "@openzeppelin/contracts/token/ERC20/utils/SafeERC20.sol";
import {TwoStepAdmin} from "./access/TwoStepAdmin.sol";
import {IFeeManager} from "./interfaces/IFeeManager.sol";

/// @title What registration and promotion cost, and where it goes
/// @notice Holds nothing: a fee goes from the payer, who approved this contract, straight to the treasury.
/// @dev A fee of zero is not collected and leaves no event.
contract FeeManager is IFeeManager, TwoStepAdmin {
    using SafeERC20 for IERC20;

    /// @inheritdoc IFeeManager
    address public immutable feeAsset;

    /// @inheritdoc IFeeManager
    address public treasury;

    /// @inheritdoc IFeeManager
    address public registrationFeeRelayer;

    /// @inheritdoc IFeeManager
    address public agentRegistry;

    uint256 private _registrationFee;
    mapping(address vault => mapping(uint256 fromTrackId => mapping(uint256 toTrackId => uint256 fee))) private
        _promotionFees;

    modifier onlyAgentRegistry() {
        _checkAgentRegistry();
        _;
    }

    /// @param admin Receives DEFAULT_ADMIN_ROLE
    constructor(address admin, address feeAsset_, address treasury_) TwoStepAdmin(admin) {
        if (admin == address(0) || feeAsset_ == address(0) || treasury_ == address(0)) revert ZeroAddress();
        feeAsset = feeAsset_;
        treasury = treasury_;
        emit TreasuryUpdated(address(0), treasury_);
    }

    /// @inheritdoc IFeeManager
    function setRegistrationFee(uint256 fee) external onlyRole(DEFAULT_ADMIN_ROLE) {
        emit RegistrationFeeUpdated(_registrationFee, fee);
        _registrationFee = fee;
    }

    /// @inheritdoc IFeeManager
    function setPromotionFee(address vault, uint256 fromTrackId, uint256 toTrackId, uint256 fee)
        external
        onlyRole(DEFAULT_ADMIN_ROLE)
    {
        if (vault == address(0)) revert ZeroAddress();
        _promotionFees[vault][fromTrackId][toTrackId] = fee;
        emit PromotionFeeUpdated(vault, fromTrackId, toTrackId, fee);
    }

    /// @inheritdoc IFeeManager
    function setTreasury(address treasury_) external onlyRole(DEFAULT_ADMIN_ROLE) {
        if (treasury_ == address(0)) revert ZeroAddress();
        emit TreasuryUpdated(treasury, treasury_);
        treasury = treasury_;
    }

    /// @inheritdoc IFeeManager
    function setRegistrationFeeRelayer(address relayer) external onlyRole(DEFAULT_ADMIN_ROLE) {
        emit RegistrationFeeRelayerUpdated(registrationFeeRelayer, relayer);
        registrationFeeRelayer = relayer;
    }

    /// @inheritdoc IFeeManager
    function setAgentRegistry(address registry) external onlyRole(DEFAULT_ADMIN_ROLE) {
        if (registry == address(0)) revert ZeroAddress();
        emit AgentRegistryUpdated(agentRegistry, registry);
        agentRegistry = registry;
    }

    /// @inheritdoc IFeeManager
    function payRegistrationFee(address payer, uint256 agentId) external onlyAgentRegistry {
        uint256 fee = _registrationFee;
        if (fee == 0) return;

        emit RegistrationFeePaid(agentId, payer, fee);
        IERC20(feeAsset).safeTransferFrom(payer, treasury, fee);
    }

    /// @inheritdoc IFeeManager
    function payRegistrationFeePrepaid(uint256 agentId) external onlyAgentRegistry {
        uint256 fee = _registrationFee;
        if (fee == 0) return;

        emit RegistrationFeePrepaid(agentId, fee);
    }

    /// @inheritdoc IFeeManager
    function payPromotionFee(address payer, uint256 agentId, address vault, uint256 fromTrackId, uint256 toTrackId)
        external
        onlyAgentRegistry
    {
        uint256 fee = _promotionFees[vault][fromTrackId][toTrackId];
        if (fee == 0) return;

        emit PromotionFeePaid(agentId, payer, vault, fromTrackId, toTrackId, fee);
        IERC20(feeAsset).safeTransferFrom(payer, treasury, fee);
    }

    /// @inheritdoc IFeeManager
    function getRegistrationFee() external view returns (uint256) {
        return _registrationFee;
    }

    /// @inheritdoc IFeeManager
    function getPromotionFee(address vault, uint256 fromTrackId, uint256 toTrackId) external view returns (uint256) {
        return _promotionFees[vault][fromTrackId][toTrackId];
    }

    function _checkAgentRegistry() private view {
        if (msg.sender != agentRegistry) revert OnlyAgentRegistry(msg.sender);
    }
}
