// SPDX-License-Identifier: MIT
pragma solidity ^0.8.30;

/// @title How much of a vault's capital each agent may hold at cost, how much it holds, and what it signed and did
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

    /// @notice What an agent did since it entered its track
    /// @param enteredAt 0 for the track that the agent was registered on
    /// @param peakRealizedPnl The highest realized PnL after any sale, at least 0
    /// @param worstDrawdown The largest fall of the realized PnL below that peak, as of the end of any UTC day and now
    /// @param worstDayLoss The largest loss realized within one UTC day
    struct TrackRecord {
        uint64 enteredAt;
        uint256 trades;
        int256 realizedPnl;
        uint256 peakRealizedPnl;
        uint256 worstDrawdown;
        uint256 worstDayLoss;
    }

    /// @notice What a sale brought
    /// @param usdcOut The proceeds
    /// @param fairUsdc What the oracle says the tokens were worth, less the pool's fee
    /// @param released The cost basis of what was sold
    /// @param wantedBounty What a keeper is to get for it
    /// @param maxBounty What keepers get for the agent's exits per UTC day at most
    struct SaleFigures {
        uint256 usdcOut;
        uint256 fairUsdc;
        uint256 released;
        uint256 wantedBounty;
        uint256 maxBounty;
    }

    event AllocationCreated(uint256 indexed agentId, address indexed vault, uint256 indexed trackId, uint256 cap);
    event AllocationCapUpdated(uint256 indexed agentId, uint256 indexed trackId, uint256 oldCap, uint256 newCap);
    event AllocationStatusUpdated(uint256 indexed agentId, uint8 oldStatus, uint8 newStatus);
    /// @param shares How many vault shares of `owner` answer for the agent's losses now
    event FirstLossUpdated(uint256 indexed agentId, address indexed owner, uint256 shares);
    /// @notice Locked shares paid a loss of the agent: they are burned, and depositors bear what they do not cover
    event FirstLossPaid(uint256 indexed agentId, address indexed owner, uint256 shares, uint256 lossUsdc);
    event AgentRegistryUpdated(address indexed previous, address indexed current);
    event TradeRouterUpdated(address indexed previous, address indexed current);

    error AllocationNotFound(uint256 agentId);
    error AllocationAlreadyExists(uint256 agentId);
    error AllocationIsRemoved(uint256 agentId);
    error InvalidAllocationStatus(uint8 status);
    error VaultMismatch(uint256 agentId, address expected, address provided);
    error OnlyAgentRegistry(address caller);
    error OnlyTradeRouter(address caller);
    error OnlyOwnerControls(address caller);
    error ZeroAddress();
    /// @notice No less than `locked` shares answer for an agent on real capital, or none once it holds no position
    error FirstLossBound(uint256 agentId, uint256 locked, uint256 shares);
    /// @notice The real caps of a vault must not exceed its assets
    error CapsExceedAssets(address vault, uint256 caps, uint256 assets);

    /// @notice Creates the agent's allocation with the track's initial allocation as cap; only the agent registry
    /// @dev The allocation keeps the capital mode that the vault's track has at this time. A real cap beyond what the
    /// vault's assets leave is refused with `CapsExceedAssets`.
    function onAgentRegistered(uint256 agentId, address vault, uint256 trackId) external;

    /// @notice Moves the allocation to `toTrackId` with that track's initial allocation as cap; only the agent registry
    /// @dev What is used already stays used, even above a smaller cap: it only blocks further buys. The allocation takes
    /// the capital mode of the new track, and the agent starts a new record.
    function onAgentPromoted(uint256 agentId, address vault, uint256 fromTrackId, uint256 toTrackId) external;

    /// @notice Removes the allocation for good, if it is not yet: nothing more may be bought, exits go on; only the agent registry
    function onAgentRemoved(uint256 agentId) external;

    /// @notice Frees what a former owner locked, if the agent holds no real position, and takes the cap back that came with it
    /// @dev The agent registry calls it with each transfer; any account may afterwards.
    function freeFormerOwner(uint256 agentId) external;

    /// @notice Pauses or resumes an allocation; only the operator role. Removed is final.
    function setAllocationStatus(uint256 agentId, uint8 status) external;

    /// @notice Writes the cost basis of the agent's open positions; only the trade router, which alone knows it
    function setAllocationUsedByRouter(uint256 agentId, uint256 used) external;

    /// @notice Checks that the agent's signer signed `digest` with the agent's next nonce, and uses up the nonce; only the
    /// trade router, and the order book for what places and cancels
    /// @dev The nonce 2^256 - 1 from the router asks for a trade of the order that the order book executes at this moment: its
    /// signer signed it before, so neither nonce nor signature is checked again.
    /// The errors: `AgentNotFound` (registry), `InvalidNonce`, `InvalidSignature`; for a buy also `RegistryPaused`,
    /// `AgentNotTradable`, `MandateStopsBuying`.
    /// @param isBuy Whether the intent buys: a pause of the registry and the agent's status and mandate stop those alone
    /// @return vault The agent's vault
    /// @return track The agent's track
    /// @return status The agent's status
    /// @return isRestricted Of a buy, whether the mandate has limits; of another intent, whether it lets the agent loosen no ladder
    /// @return execution Of an order's trade, `IOrderBook.executionOf`; 0 for a signed intent
    function authorize(uint256 agentId, uint256 nonce, bytes32 digest, bytes calldata signature, bool isBuy)
        external
        returns (address vault, uint8 track, uint8 status, bool isRestricted, uint256 execution);

    /// @notice Uses up the agent's next nonce; only the trade router
    function cancelNonce(uint256 agentId, uint256 nonce) external;

    /// @notice Checks a buy against the limits and books it, also in `used`; only the trade router
    /// @dev The checks, in this order: `VaultTrackNotActive`, `AllocationNotActive`, `ExceedsAllocationCap`,
    /// `ExceedsMaxTradeSize`, `ExceedsDailyTurnover`, `ExceedsDailyLoss`, `ExceedsMaxDrawdown`, `ExceedsWaste`,
    /// `InsufficientIdleAssets`, those of `IOwnerControls.checkBuy`. Idle USDC is a part of all assets: a check that passes
    /// on it alone needs no valuation of the vault's tokens.
    /// @param limitedToken The token, where the agent's mandate has limits; else the zero address
    /// @return capitalMode The `CapitalMode` that the agent trades with
    function bookBuy(uint256 agentId, address vault, uint256 trackId, uint256 amount, address limitedToken)
        external
        returns (uint8 capitalMode);

    /// @notice Books a sale, and takes the cost basis of what was sold off `used`; only the trade router
    /// @dev Call it before the position changes: a paper agent's drawdown counts it at the last price. What a real agent
    /// has lost on its track is paid out of its first-loss capital.
    /// @return bounty What the keeper gets; the agent realizes the rest of `usdcOut`
    function bookSale(uint256 agentId, SaleFigures calldata sale) external returns (uint256 bounty);

    /// @notice Counts what a purchase lost against the oracle's price beyond the pool's fee; only the trade router, after `bookBuy`
    function bookWaste(uint256 agentId, uint256 waste) external;

    /// @notice Makes exactly `shares` of `owner` answer for the agent's losses on real capital; only `OwnerControls`
    /// @dev Of an agent on real capital, fewer shares are refused with `FirstLossBound`; none are accepted once it holds no
    /// position, and give its cap back. Shares that are freed begin a new holding time. The shares of a former owner are freed by
    /// a lock of at least as many. An agent on real capital without a cap gets it with the lock, which pays what is lost from
    /// then on.
    function lockFirstLoss(uint256 agentId, address owner, uint256 shares) external;

    function setAgentRegistry(address registry) external;
    function setTradeRouter(address router) external;

    function getAllocation(uint256 agentId) external view returns (Allocation memory);
    function allocationCap(uint256 agentId) external view returns (uint256);
    function allocationUsed(uint256 agentId) external view returns (uint256);

    /// @notice Returns whose shares answer for the agent's losses, how many, their present value, and whether the agent
    /// holds a real position, which binds them
    function firstLossOf(uint256 agentId)
        external
        view
        returns (address owner, uint256 shares, uint256 valueUsdc, bool isBound);

    /// @notice Returns what the agent's owner must lock before the agent trades on a track of its vault; 0 for nothing
    function requiredFirstLossUsdc(uint256 agentId, uint256 trackId) external view returns (uint256);

    /// @notice Returns what the agent's fills have lost beyond what fair ones cost, and from where on it buys nothing more
    /// @dev What a fill loses against the oracle's price beyond the pool's fee counts, with a keeper's bounty. A purchase takes
    /// `maxWasteBps` of its amount off, for what a fair round trip costs, and the rest fades evenly within 30 days.
    /// @return usdc What counts now
    /// @return maxUsdc `maxWasteBps` of the cap and the peak of the realized PnL; 0 where nothing is bounded
    /// @return endsAt When nothing of it counts any more, if the agent trades no more
    function wasteOf(uint256 agentId) external view returns (uint256 usdc, uint256 maxUsdc, uint256 endsAt);

    /// @notice Returns the cap that the agent's buys are checked against: a real one grows with the profit realized on the
    /// track, one to one, up to the track's `maxAllocation`, and ends where a loss has used up the first-loss capital
    function effectiveCapUsdc(uint256 agentId) external view returns (uint256);

    /// @notice Returns what the agent did since it entered its track
    function trackRecordOf(uint256 agentId) external view returns (TrackRecord memory);
    function nonces(uint256 agentId) external view returns (uint256);
    function dailyTurnoverUsdc(uint256 agentId, uint256 day) external view returns (uint256);
    function dailyRealizedPnlUsdc(uint256 agentId, uint256 day) external view returns (int256);
    function lifetimeRealizedPnlUsdc(uint256 agentId) external view returns (int256);
    function lifetimeTurnoverUsdc(uint256 agentId) external view returns (uint256);
    function tradeCount(uint256 agentId) external view returns (uint256);

    /// @notice Returns the `CapitalMode` that the agent trades with: the one its track had when the agent entered it
    function capitalModeOf(uint256 agentId) external view returns (uint8);

    /// @notice Returns the caps of all real allocations of a vault that are not removed; simulated ones do not count
    function totalAgentCaps(address vault) external view returns (uint256);
    function agentRegistry() external view returns (address);
    function tradeRouter() external view returns (address);
    function vaultTrackRegistry() external view returns (address);
}
