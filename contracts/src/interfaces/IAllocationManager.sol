// SPDX-License-Identifier: MIT
pragma solidity ^0.8.30;

/// @title How much of a vault's capital each agent may hold at cost, and how much it holds
/// @notice Amounts are USDC base units. `used` is the cost basis of the agent's open positions, to the unit.
interface IAllocationManager {
    enum AllocationStatus {
        Active,
        Paused,
        Removed
    }

    /// @param status An `AllocationStatus`
    struct Allocation {
        uint256 agentId;
        address vault;
        uint256 trackId;
        uint256 cap;
        uint256 used;
        uint8 status;
        uint64 createdAt;
        uint64 updatedAt;
    }

    event AllocationCreated(uint256 indexed agentId, address indexed vault, uint256 indexed trackId, uint256 cap);
    event AllocationCapUpdated(uint256 indexed agentId, uint256 indexed trackId, uint256 oldCap, uint256 newCap);
    event AllocationStatusUpdated(uint256 indexed agentId, uint8 oldStatus, uint8 newStatus);
    event AgentRegistryUpdated(address indexed previous, address indexed current);
    event TradeRouterUpdated(address indexed previous, address indexed current);

    error AllocationNotFound(uint256 agentId);
    error AllocationAlreadyExists(uint256 agentId);
    error AllocationIsRemoved(uint256 agentId);
    error InvalidAllocationStatus(uint8 status);
    error VaultMismatch(uint256 agentId, address expected, address provided);
    error OnlyAgentRegistry(address caller);
    error OnlyTradeRouter(address caller);
    error ZeroAddress();
    /// @notice The real caps of a vault must not exceed its assets
    error CapsExceedAssets(address vault, uint256 caps, uint256 assets);

    /// @notice Creates the agent's allocation with the track's initial allocation as cap; only the agent registry
    /// @dev The allocation keeps the capital mode that the vault's track has at this time. A real cap beyond what the
    /// vault's assets leave is refused with `CapsExceedAssets`.
    function onAgentRegistered(uint256 agentId, address vault, uint256 trackId) external;

    /// @notice Moves the allocation to `toTrackId` with that track's initial allocation as cap; only the agent registry
    /// @dev What is used already stays used, even above a smaller cap: it only blocks further buys. The allocation takes
    /// the capital mode of the new track, and the router starts a new record for the agent.
    function onAgentPromoted(uint256 agentId, address vault, uint256 fromTrackId, uint256 toTrackId) external;

    /// @notice Removes the allocation for good: nothing more may be bought, exits go on; only the agent registry
    function onAgentRemoved(uint256 agentId) external;

    /// @notice Pauses or resumes an allocation; only the operator role. Removed is final.
    function setAllocationStatus(uint256 agentId, uint8 status) external;

    /// @notice Writes the cost basis of the agent's open positions; only the trade router, which alone knows it
    function setAllocationUsedByRouter(uint256 agentId, uint256 used) external;

    /// @notice Takes the cost basis of what was sold off what the agent uses; only the trade router
    function releaseAllocationByRouter(uint256 agentId, uint256 amount) external;

    function setAgentRegistry(address registry) external;
    function setTradeRouter(address router) external;

    function getAllocation(uint256 agentId) external view returns (Allocation memory);
    function allocationCap(uint256 agentId) external view returns (uint256);
    function allocationUsed(uint256 agentId) external view returns (uint256);

    /// @notice Returns the allocation's cap, use and status, from one slot; all zero for an unknown agent
    function tradeAllocationOf(uint256 agentId) external view returns (uint256 cap, uint256 used, uint8 status);

    /// @notice Returns the allocation with the vault's sum of caps; all zero for an unknown agent
    function buyAllocationOf(uint256 agentId, address vault)
        external
        view
        returns (uint256 cap, uint256 used, uint8 status, uint8 capitalMode, uint256 totalCaps);

    /// @notice Returns the `CapitalMode` that the agent trades with: the one its track had when the agent entered it
    function capitalModeOf(uint256 agentId) external view returns (uint8);

    /// @notice Returns the caps of all real allocations of a vault that are not removed; simulated ones do not count
    function totalAgentCaps(address vault) external view returns (uint256);
    function agentRegistry() external view returns (address);
    function tradeRouter() external view returns (address);
    function vaultTrackRegistry() external view returns (address);
}
