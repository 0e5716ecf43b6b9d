// SPDX-License-Identifier: MIT
pragma solidity ^0.8.30;

/// @title Which vaults exist, which tracks they offer, and the risk policy of each
interface IVaultTrackRegistry {
    enum CapitalMode {
        Simulated,
        Real
    }

    struct TrackType {
        uint256 trackId;
        bytes32 name;
        uint8 capitalMode;
        bool active;
    }

    /// @param initialAllocation USDC base units an agent may hold at cost when it enters the track
    /// @param maxAllocation The most the track ever gives, in USDC base units
    /// @param maxDrawdownBps How far an agent's realized equity may fall below its peak before it may buy no more; 0 = off.
    /// Stricter than protocol.md, which stores the figure without a check.
    /// @param maxTradeSizeBps Of the vault's total assets, per open or add
    /// @param maxDailyTurnoverBps Of the vault's total assets, bought per UTC day; 0 = off
    /// @param maxDailyLossBps Of the agent's allocation cap, realized per UTC day; 0 = off
    /// @param evaluationPeriod Seconds
    /// @param maxStopLossBps The deepest stop-loss; 0 = no bound
    /// @param minTakeProfitBps The nearest take-profit; 0 = no bound
    /// @param maxTakeProfitBps The farthest take-profit; 0 = no bound
    struct VaultTrackConfig {
        address vault;
        uint256 trackId;
        uint256 initialAllocation;
        uint256 maxAllocation;
        uint256 maxDrawdownBps;
        uint256 maxTradeSizeBps;
        uint256 maxDailyTurnoverBps;
        uint256 maxDailyLossBps;
        uint256 evaluationPeriod;
        uint256 minTrades;
        uint256 promotionScore;
        bool active;
        uint256 maxStopLossBps;
        uint256 minTakeProfitBps;
        uint256 maxTakeProfitBps;
        bool requireStopLoss;
        bool requireTakeProfit;
    }

    /// @notice The part of a configuration that every trade is checked against, in one storage slot
    /// @param active The configuration is active and so is its track type
    /// @param firstLossBps Of the initial allocation, what an agent's owner locks before the agent trades real capital, and
    /// out of which the agent's realized losses are paid; 0 = off
    /// @param maxWasteBps Of what an agent buys, what its fills may lose beyond the pool's fee; and once more, of the cap and
    /// the peak of the realized PnL, within any 30 days, before it may buy no more; 0 = off
    struct TradePolicy {
        uint16 maxTradeSizeBps;
        uint32 maxDailyTurnoverBps;
        uint16 maxDailyLossBps;
        uint32 maxStopLossBps;
        uint32 minTakeProfitBps;
        uint32 maxTakeProfitBps;
        bool requireStopLoss;
        bool requireTakeProfit;
        bool active;
        uint16 maxDrawdownBps;
        uint16 firstLossBps;
        uint16 maxWasteBps;
    }

    /// @notice The two limits of a `TradePolicy` that protocol.md's configuration lacks
    struct RiskTerms {
        uint16 firstLossBps;
        uint16 maxWasteBps;
    }

    event VaultRegistered(address indexed vault);
    event VaultTrackConfigUpdated(address indexed vault, uint256 indexed trackId, VaultTrackConfig config);
    event TrackTypeUpdated(uint256 indexed trackId, bytes32 name, uint8 capitalMode, bool active);
    event VaultTrackRiskTermsUpdated(address indexed vault, uint256 indexed trackId, RiskTerms terms);
    /// @notice A vault runs a track on other capital than the track type says
    event VaultTrackCapitalModeUpdated(address indexed vault, uint256 indexed trackId, uint8 capitalMode);
    /// @notice Agents leave the track with a certificate of this examination; zero: of none
    event RequiredExaminationUpdated(address indexed vault, uint256 indexed trackId, bytes32 examination);

    error ZeroAddress();
    error VaultNotRegistered(address vault);
    error VaultAlreadyRegistered(address vault);
    error TooManyVaults(uint256 max);
    error IndexOutOfBounds(uint256 index, uint256 count);
    error TrackTypeNotFound(uint256 trackId);
    error VaultTrackNotConfigured(address vault, uint256 trackId);
    error InvalidTrackId(uint256 trackId);
    error InvalidCapitalMode(uint8 capitalMode);
    /// @notice The configuration's own vault or track differs from the ones it is set for
    error ConfigMismatch(address vault, uint256 trackId);
    /// @notice A value is out of its range; `field` is the position of the field in `VaultTrackConfig`
    error ConfigValueOutOfRange(uint256 field, uint256 value, uint256 max);
    /// @notice A position can lose more, its deepest stop and the slippage of its exit, than the first-loss capital covers
    error StopBeyondFirstLoss(uint256 lossBps, uint256 firstLossBps);

    function registerVault(address vault) external;
    function setTrackType(TrackType calldata trackType) external;
    function setVaultTrackConfig(address vault, uint256 trackId, VaultTrackConfig calldata config) external;

    /// @notice Sets a track's first-loss capital and its bound of waste; only the admin
    function setVaultTrackRiskTerms(address vault, uint256 trackId, RiskTerms calldata terms) external;

    /// @notice Sets the capital mode of one vault's track, in place of the track type's; only the admin
    /// @dev It applies to agents that enter the track afterwards: an agent keeps the mode that it entered with.
    function setVaultTrackCapitalMode(address vault, uint256 trackId, uint8 capitalMode) external;

    /// @notice Names the examination whose certificate a promotion from the track requires, zero for none; only the admin
    /// @param examination The hash of its markets, the contracts and the version, so that an author cannot choose easier ones
    function setRequiredExamination(address vault, uint256 trackId, bytes32 examination) external;

    function vaultCount() external view returns (uint256);
    function vaultAt(uint256 index) external view returns (address);
    function isRegisteredVault(address vault) external view returns (bool);
    function getTrackType(uint256 trackId) external view returns (TrackType memory);
    function getVaultTrackConfig(address vault, uint256 trackId) external view returns (VaultTrackConfig memory);
    function isVaultTrackActive(address vault, uint256 trackId) external view returns (bool);

    /// @notice Returns the `CapitalMode` that agents enter the vault's track with
    function capitalModeOf(address vault, uint256 trackId) external view returns (uint8);

    function riskTermsOf(address vault, uint256 trackId) external view returns (RiskTerms memory);

    /// @notice Returns the examination whose certificate a promotion from the track requires; zero where none is
    function requiredExaminationOf(address vault, uint256 trackId) external view returns (bytes32);

    /// @notice The policy that trades are checked against; all zero (so inactive) where nothing is configured
    function tradePolicyOf(address vault, uint256 trackId) external view returns (TradePolicy memory);
}
