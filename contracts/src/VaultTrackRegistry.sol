// SPDX-License-Identifier: MIT
pragma solidity ^0.8.30;

import {Math} from "@openzeppelin/contracts/utils/math/Math.sol";
import {TwoStepAdmin} from "./access/TwoStepAdmin.sol";
import {IMandateVault} from "./interfaces/IMandateVault.sol";
import {ITradePolicy} from "./interfaces/ITradePolicy.sol";
import {ITradeRouter} from "./interfaces/ITradeRouter.sol";
import {IVaultTrackRegistry} from "./interfaces/IVaultTrackRegistry.sol";

/// @title Which vaults exist, which tracks they offer, and the risk policy of each
/// @notice A configuration reads back exactly as it was set; values that do not fit their storage are refused.
contract VaultTrackRegistry is IVaultTrackRegistry, TwoStepAdmin {
    uint256 private constant BPS = 10_000;

    /// @notice A day's turnover of a hundred times the vault's assets, beyond which a bound is none.
    uint256 public constant MAX_TURNOVER_BPS = 100 * BPS;

    /// @notice A gain of a thousand times the entry, beyond which a bound is none.
    uint256 public constant MAX_TAKE_PROFIT_BPS = 1000 * BPS;

    /// @notice The allocation manager keeps caps in 64 bits: 18 trillion USDC.
    uint256 public constant MAX_ALLOCATION = type(uint64).max;

    /// @notice Each vault costs a write when a track type is switched on or off, so their number is bounded.
    uint256 public constant MAX_VAULTS = 256;

    struct StoredTrackType {
        bytes32 name;
        uint8 capitalMode;
        bool active;
        bool exists;
    }

    /// @dev `policy` is one slot and all that a trade reads; its `active` says that both the configuration and the track
    /// type are.
    struct StoredConfig {
        TradePolicy policy;
        // Second slot
        bool exists;
        bool active;
        // A `CapitalMode` plus one; 0 = the track type's
        uint8 ownCapitalMode;
        // Third slot
        uint96 initialAllocation;
        uint96 maxAllocation;
        uint64 evaluationPeriod;
        // Fourth slot
        uint128 minTrades;
        uint128 promotionScore;
    }

    address[] private _vaults;
    mapping(address vault => bool registered) private _registered;
    mapping(uint256 trackId => StoredTrackType) private _trackTypes;
    mapping(address vault => mapping(uint256 trackId => StoredConfig)) private _configs;

    /// @inheritdoc IVaultTrackRegistry
    mapping(address vault => mapping(uint256 trackId => bytes32 examination)) public requiredExaminationOf;

    /// @param admin Receives DEFAULT_ADMIN_ROLE
    constructor(address admin) TwoStepAdmin(admin) {
        if (admin == address(0)) revert ZeroAddress();
    }

    /// @inheritdoc IVaultTrackRegistry
    function registerVault(address vault) external onlyRole(DEFAULT_ADMIN_ROLE) {
        if (vault == address(0)) revert ZeroAddress();
        if (_registered[vault]) revert VaultAlreadyRegistered(vault);
        if (_vaults.length == MAX_VAULTS) revert TooManyVaults(MAX_VAULTS);

        _registered[vault] = true;
        _vaults.push(vault);
        emit VaultRegistered(vault);
    }

    /// @inheritdoc IVaultTrackRegistry
    function setTrackType(TrackType calldata trackType) external onlyRole(DEFAULT_ADMIN_ROLE) {
        uint256 trackId = trackType.trackId;
        // An agent keeps its track in 8 bits.
        if (trackId > type(uint8).max) revert InvalidTrackId(trackId);
        if (trackType.capitalMode > uint8(type(CapitalMode).max)) revert InvalidCapitalMode(trackType.capitalMode);

        _trackTypes[trackId] = StoredTrackType({
            name: trackType.name, capitalMode: trackType.capitalMode, active: trackType.active, exists: true
        });
        uint256 count = _vaults.length;
        for (uint256 i = 0; i < count; ++i) {
            StoredConfig storage stored = _configs[_vaults[i]][trackId];
            if (stored.exists) stored.policy.active = stored.active && trackType.active;
        }
        emit TrackTypeUpdated(trackId, trackType.name, trackType.capitalMode, trackType.active);
    }

    /// @inheritdoc IVaultTrackRegistry
    function setVaultTrackConfig(address vault, uint256 trackId, VaultTrackConfig calldata config)
        external
        onlyRole(DEFAULT_ADMIN_ROLE)
    {
        if (!_registered[vault]) revert VaultNotRegistered(vault);
        if (!_trackTypes[trackId].exists) revert TrackTypeNotFound(trackId);
        if (config.vault != vault || config.trackId != trackId) revert ConfigMismatch(config.vault, config.trackId);
        _checkRanges(config);

        StoredConfig storage stored = _configs[vault][trackId];
        TradePolicy memory held = stored.policy;
        stored.exists = true;
        stored.active = config.active;
        // forge-lint: disable-start(unsafe-typecast): _checkRanges has bounded every one of them
        stored.policy = TradePolicy({
            maxTradeSizeBps: uint16(config.maxTradeSizeBps),
            maxDailyTurnoverBps: uint32(config.maxDailyTurnoverBps),
            maxDailyLossBps: uint16(config.maxDailyLossBps),
            maxStopLossBps: uint32(config.maxStopLossBps),
            minTakeProfitBps: uint32(config.minTakeProfitBps),
            maxTakeProfitBps: uint32(config.maxTakeProfitBps),
            requireStopLoss: config.requireStopLoss,
            requireTakeProfit: config.requireTakeProfit,
            active: config.active && _trackTypes[trackId].active,
            maxDrawdownBps: uint16(config.maxDrawdownBps),
            firstLossBps: held.firstLossBps,
            maxWasteBps: held.maxWasteBps
        });
        stored.initialAllocation = uint96(config.initialAllocation);
        stored.maxAllocation = uint96(config.maxAllocation);
        stored.evaluationPeriod = uint64(config.evaluationPeriod);
        stored.minTrades = uint128(config.minTrades);
        stored.promotionScore = uint128(config.promotionScore);
        // forge-lint: disable-end(unsafe-typecast)
        _checkStop(vault, trackId, stored.policy);
        emit VaultTrackConfigUpdated(vault, trackId, config);
    }

    /// @inheritdoc IVaultTrackRegistry
    function setVaultTrackCapitalMode(address vault, uint256 trackId, uint8 capitalMode)
        external
        onlyRole(DEFAULT_ADMIN_ROLE)
    {
        _config(vault, trackId);
        if (capitalMode > uint8(type(CapitalMode).max)) revert InvalidCapitalMode(capitalMode);
        _configs[vault][trackId].ownCapitalMode = capitalMode + 1;
        emit VaultTrackCapitalModeUpdated(vault, trackId, capitalMode);
    }

    /// @inheritdoc IVaultTrackRegistry
    function setVaultTrackRiskTerms(address vault, uint256 trackId, RiskTerms calldata terms)
        external
        onlyRole(DEFAULT_ADMIN_ROLE)
    {
        TradePolicy storage policy = _config(vault, trackId).policy;
        _checkMax(0, terms.firstLossBps, BPS);
        _checkMax(1, terms.maxWasteBps, BPS);
        policy.firstLossBps = terms.firstLossBps;
        policy.maxWasteBps = terms.maxWasteBps;
        _checkStop(vault, trackId, policy);
        emit VaultTrackRiskTermsUpdated(vault, trackId, terms);
    }

    /// @inheritdoc IVaultTrackRegistry
    function setRequiredExamination(address vault, uint256 trackId, bytes32 examination)
        external
        onlyRole(DEFAULT_ADMIN_ROLE)
    {
        _config(vault, trackId);
        requiredExaminationOf[vault][trackId] = examination;
        emit RequiredExaminationUpdated(vault, trackId, examination);
    }

    /// @inheritdoc IVaultTrackRegistry
    function vaultCount() external view returns (uint256) {
        return _vaults.length;
    }

    /// @inheritdoc IVaultTrackRegistry
    function vaultAt(uint256 index) external view returns (address) {
        if (index >= _vaults.length) revert IndexOutOfBounds(index, _vaults.length);
        return _vaults[index];
    }

    /// @inheritdoc IVaultTrackRegistry
    function isRegisteredVault(address vault) external view returns (bool) {
        return _registered[vault];
    }

    /// @inheritdoc IVaultTrackRegistry
    function getTrackType(uint256 trackId) external view returns (TrackType memory) {
        StoredTrackType storage stored = _trackTypes[trackId];
        if (!stored.exists) revert TrackTypeNotFound(trackId);
        return TrackType({trackId: trackId, name: stored.name, capitalMode: stored.capitalMode, active: stored.active});
    }

    /// @inheritdoc IVaultTrackRegistry
    function getVaultTrackConfig(address vault, uint256 trackId) external view returns (VaultTrackConfig memory) {
        StoredConfig memory stored = _config(vault, trackId);
        return VaultTrackConfig({
            vault: vault,
            trackId: trackId,
            initialAllocation: stored.initialAllocation,
            maxAllocation: stored.maxAllocation,
            maxDrawdownBps: stored.policy.maxDrawdownBps,
            maxTradeSizeBps: stored.policy.maxTradeSizeBps,
            maxDailyTurnoverBps: stored.policy.maxDailyTurnoverBps,
            maxDailyLossBps: stored.policy.maxDailyLossBps,
            evaluationPeriod: stored.evaluationPeriod,
            minTrades: stored.minTrades,
            promotionScore: stored.promotionScore,
            active: stored.active,
            maxStopLossBps: stored.policy.maxStopLossBps,
            minTakeProfitBps: stored.policy.minTakeProfitBps,
            maxTakeProfitBps: stored.policy.maxTakeProfitBps,
            requireStopLoss: stored.policy.requireStopLoss,
            requireTakeProfit: stored.policy.requireTakeProfit
        });
    }

    /// @inheritdoc IVaultTrackRegistry
    function isVaultTrackActive(address vault, uint256 trackId) external view returns (bool) {
        return _configs[vault][trackId].policy.active;
    }

    /// @inheritdoc IVaultTrackRegistry
    function capitalModeOf(address vault, uint256 trackId) external view returns (uint8) {
        uint8 own = _config(vault, trackId).ownCapitalMode;
        return own == 0 ? _trackTypes[trackId].capitalMode : own - 1;
    }

    /// @inheritdoc IVaultTrackRegistry
    function riskTermsOf(address vault, uint256 trackId) external view returns (RiskTerms memory) {
        TradePolicy memory policy = _config(vault, trackId).policy;
        return RiskTerms(policy.firstLossBps, policy.maxWasteBps);
    }

    /// @inheritdoc IVaultTrackRegistry
    function tradePolicyOf(address vault, uint256 trackId) external view returns (TradePolicy memory) {
        return _configs[vault][trackId].policy;
    }

    function _config(address vault, uint256 trackId) private view returns (StoredConfig storage stored) {
        stored = _configs[vault][trackId];
        if (!stored.exists) revert VaultTrackNotConfigured(vault, trackId);
    }

    /// @dev Where a lock is asked for, it covers what a position loses at its stop and to its exit's slippage: an owner who
    /// stakes less than depositors do profits from luck. A position without a stop loses all.
    function _checkStop(address vault, uint256 trackId, TradePolicy memory policy) private view {
        if (policy.firstLossBps == 0) return;
        address limits = ITradeRouter(IMandateVault(vault).tradeRouter()).tradePolicy();
        uint256 stop = policy.requireStopLoss && policy.maxStopLossBps != 0 ? policy.maxStopLossBps : BPS;
        uint256 loss = Math.min(stop + ITradePolicy(limits).limitsOf(vault, trackId).maxExitSlippageBps, BPS);
        if (loss > policy.firstLossBps) revert StopBeyondFirstLoss(loss, policy.firstLossBps);
    }

    /// @dev The first number of each line is the position of the field in `VaultTrackConfig`, from 0.
    function _checkRanges(VaultTrackConfig calldata config) private pure {
        _checkMax(2, config.initialAllocation, config.maxAllocation);
        _checkMax(3, config.maxAllocation, MAX_ALLOCATION);
        _checkMax(4, config.maxDrawdownBps, BPS);
        // A track that lets nothing be bought is an inactive one.
        if (config.maxTradeSizeBps == 0) revert ConfigValueOutOfRange(5, 0, BPS);
        _checkMax(5, config.maxTradeSizeBps, BPS);
        _checkMax(6, config.maxDailyTurnoverBps, MAX_TURNOVER_BPS);
        _checkMax(7, config.maxDailyLossBps, BPS);
        _checkMax(8, config.evaluationPeriod, type(uint64).max);
        _checkMax(9, config.minTrades, type(uint128).max);
        _checkMax(10, config.promotionScore, type(uint128).max);
        _checkMax(12, config.maxStopLossBps, BPS);
        if (config.maxTakeProfitBps != 0) _checkMax(13, config.minTakeProfitBps, config.maxTakeProfitBps);
        _checkMax(13, config.minTakeProfitBps, MAX_TAKE_PROFIT_BPS);
        _checkMax(14, config.maxTakeProfitBps, MAX_TAKE_PROFIT_BPS);
    }

    function _checkMax(uint256 field, uint256 value, uint256 max) private pure {
        if (value > max) revert ConfigValueOutOfRange(field, value, max);
    }
}
