// SPDX-License-Identifier: MIT
pragma solidity ^0.8.30;

import {IERC4626} from "@openzeppelin/contracts/interfaces/IERC4626.sol";

/// @title The capital that agents trade: an ERC-4626 vault over USDC that also holds the tokens bought
/// @notice `totalAssets` is idle USDC plus the ledgered tokens at their last known price and never reverts.
/// USDC and tokens sent here other than by deposits and trades are in no ledger and count for nothing.
///
/// Deposits pay the higher, and redemptions get the lower, of what the oracle and the pools say the vault is worth
/// (`PriceOracle.priceRangeOf`); `convertToShares` and `convertToAssets` use `totalAssets`. Both are closed while these two
/// differ by more than the breaker's bound, and while the share price has jumped. Shares redeem, and move, only after a holding
/// time. Deposit and withdrawal fees stay in the vault for the other holders unless a recipient is set.
interface IMandateVault is IERC4626 {
    /// @param maxPriceAge Seconds after which a held token counts for nothing in redemptions; 0 = `maxPriceAge()`
    /// @param holdingTime Seconds that new shares neither redeem nor move; at most an eighth is added (`lockedShares`)
    /// @param maxMoveBps The largest move of the share price within half of `moveWindow`, and the largest distance between what
    /// deposits pay and redemptions get; 0 = no breaker
    /// @param moveWindow Seconds that the breaker looks back
    /// @param moveCooldown Seconds that a jumped share price must hold before shares are made and redeemed at it
    struct LiquidityPolicy {
        uint32 maxPriceAge;
        uint32 holdingTime;
        uint16 maxMoveBps;
        uint32 moveWindow;
        uint32 moveCooldown;
    }

    /// @param older The share price half a window before `newer`
    /// @param newer The share price at `setAt`
    /// @param jumpedTo The price that `checkpointSharePrice` last saw beyond the bound; 0 = none
    /// @param acceptedAt When that price is accepted if it holds until then
    /// @param isOpen Whether the breaker stops deposits and redemptions now
    struct SharePriceBreaker {
        uint256 older;
        uint256 newer;
        uint256 setAt;
        uint256 jumpedTo;
        uint256 acceptedAt;
        bool isOpen;
    }

    event TokenEnabledUpdated(address indexed token, bool enabled);
    event MaxPriceAgeUpdated(uint256 oldMaxPriceAge, uint256 newMaxPriceAge);
    event TradingPausedUpdated(bool paused);
    event LiquidityPausedUpdated(bool paused);
    event FeesUpdated(uint256 depositFeeBps, uint256 withdrawFeeBps, address indexed feeRecipient);
    event PriceOracleUpdated(address indexed previous, address indexed current);
    event TradeRouterUpdated(address indexed previous, address indexed current);
    event RequestQueueUpdated(address indexed previous, address indexed current);
    event LiquidityPolicyUpdated(LiquidityPolicy policy);
    /// @param value What the vault counted for the token before
    event TokenWrittenOffUpdated(address indexed token, bool writtenOff, uint256 ledger, uint256 value);
    /// @notice The recipient could not be paid, so the fee stays in the vault
    event FeeRetained(address indexed recipient, uint256 fee);
    event SharePriceJumpSeen(uint256 anchor, uint256 sharePrice, uint256 acceptedAt);
    event SharePriceJumpAccepted(uint256 sharePrice);
    event SharesLockedUntil(address indexed owner, uint256 shares, uint256 unlocksAt);

    error TradingPaused();
    error LiquidityPaused();
    /// @notice Shares cannot be priced in the middle of a trade
    error TradeInProgress();
    error OnlyTradeRouter(address caller);
    error ZeroAddress();
    error InvalidAssetDecimals(uint8 decimals);
    error TokenNotActive(address token);
    error TokenAlreadyEnabled(address token);
    error TokenNotEnabled(address token);
    error AssetNotTradable(address asset);
    /// @notice The token cannot be sold, because of what its issuer did: an `ITokenRegistry.Restriction`, and whom it meets
    error TokenRestricted(address token, uint8 restriction, address account);
    error TooManyTokens(uint256 max);
    error FeeTooHigh(uint256 bps, uint256 maxBps);
    error InsufficientLedger(address token, uint256 ledger, uint256 amount);
    /// @notice The share price moved further than the policy allows (see `checkpointSharePrice`), or oracle and pools are that
    /// far apart: `anchor` is then what deposits would pay and `sharePrice` what redemptions would get
    error SharePriceJumped(uint256 anchor, uint256 sharePrice, uint256 maxMoveBps);
    error OnlyAllocationManager(address caller);
    /// @notice The owner holds no more shares that do not answer for losses yet
    error InsufficientShares(address owner, uint256 available, uint256 shares);
    /// @notice The other shares of `owner` are within their holding time, or answer for an agent's losses
    error SharesLocked(address owner, uint256 available, uint256 shares);
    /// @notice The queue is not one of this vault
    error InvalidRequestQueue(address queue);
    error InvalidLiquidityPolicy(LiquidityPolicy policy);
    /// @notice The new oracle has not inherited the rounds of the present one
    error OracleRoundsBehind(address token, uint256 held, uint256 offered);

    /// @notice Adds a token, active in the token registry, to what the vault may buy; only the admin
    function enableToken(address token) external;

    /// @notice Allows or forbids buying a token that was added before; what is held can always be sold; only the admin
    function setTokenEnabled(address token, bool enabled) external;

    /// @notice Sets after how many seconds a price is too old to trade on here; 0 = no limit of the vault; only the admin
    function setMaxPriceAge(uint256 maxPriceAge) external;

    /// @notice Stops or resumes trades, except force closes; the guardian may only stop, the operator does both
    function setTradingPaused(bool paused) external;

    /// @notice Stops or resumes deposits and redemptions; the guardian may only stop, the operator does both
    function setLiquidityPaused(bool paused) external;

    /// @notice Sets the fees of deposits and withdrawals; only the admin
    /// @param feeRecipient Who is paid; the zero address leaves the fees to those who hold shares
    function setFees(uint256 depositFeeBps, uint256 withdrawFeeBps, address feeRecipient) external;

    /// @notice Sets when shares are made and redeemed; only the admin. Locks that exist
    /// already keep their end, and the breaker counts from the present share price.
    function setLiquidityPolicy(LiquidityPolicy calldata policy) external;

    /// @notice Names the queue of deposits and redemptions that wait for a price, for those who look for it; only the
    /// admin. The queue has no power here. The zero address names none.
    function setRequestQueue(address queue) external;

    /// @notice Counts a token as worth nothing from now on, or at its price again; only the admin
    /// @dev For a token that has no price any more: it would make deposits dear, or keep them closed. A token written off
    /// is not bought, and what its sale still brings is a gain of those who hold shares then.
    function setTokenWrittenOff(address token, bool writtenOff) external;

    /// @notice Records the present share price, and accepts one that jumped once it has held for the policy's cooldown;
    /// anyone may call
    /// @dev A record of a jump ends when shares are made or redeemed, because the price is back within the bound then, and an
    /// hour after the cooldown.
    function checkpointSharePrice() external;

    /// @notice Follows the token registry to its present price oracle; only the admin
    /// @dev Reverts `OracleRoundsBehind` unless the new oracle continues the rounds of every token ever enabled here.
    function syncPriceOracle() external;

    /// @notice Sets the router that may move the vault's assets; only the admin
    function setTradeRouter(address router) external;

    /// @notice Pays USDC to the swap adapter or a keeper's bounty; only the trade router, refused while trading is paused
    function pullAssetsForTrade(address to, uint256 amount) external;

    /// @notice Takes tokens out of the ledger for a sale; only the trade router, refused while trading is paused
    function pullTokenForTrade(address token, address to, uint256 amount) external;

    /// @notice Takes tokens out of the ledger for a force close; only the trade router, whatever is paused
    function pullTokenForForceClose(address token, address to, uint256 amount) external;

    /// @notice Enters what a trade brought, tokens or USDC, into the ledger; only the trade router
    /// @return ledger What the vault has of it now, by the books
    function recordReceived(address token, uint256 amount) external returns (uint256 ledger);

    /// @notice Keeps shares of `owner`, which answer for an agent's losses, from being redeemed or moved; only the allocation
    /// manager of the router
    function lockFirstLoss(address owner, uint256 shares) external;

    /// @notice Frees such shares: they begin a new holding time; only the allocation manager of the router
    function unlockFirstLoss(address owner, uint256 shares) external;

    /// @notice Burns such shares for a loss, which raises the value of all others; only the allocation manager of the router
    function burnFirstLoss(address owner, uint256 shares) external;

    /// @notice What the router needs to buy a token here, in one call
    /// @return oracle The price oracle
    /// @return maxAge `maxPriceAge()`
    /// @return paused `tradingPaused()`
    /// @return decimals The token's decimals, 0 for a token never enabled
    /// @return allowed `isAllowedToken(token)`
    function buyContextOf(address token)
        external
        view
        returns (address oracle, uint256 maxAge, bool paused, uint8 decimals, bool allowed);

    /// @notice `buyContextOf` without `allowed`
    function sellContextOf(address token)
        external
        view
        returns (address oracle, uint256 maxAge, bool paused, uint8 decimals);

    function vaultName() external view returns (bytes32);
    function tokenRegistry() external view returns (address);
    function priceOracle() external view returns (address);
    function tradeRouter() external view returns (address);
    function requestQueue() external view returns (address);
    function assetDecimals() external view returns (uint8);
    /// @notice USDC that deposits and trades brought and that is not invested; what others sent is not in it
    function idleAssets() external view returns (uint256);
    function liquidityPolicy() external view returns (LiquidityPolicy memory);

    /// @notice What the vault is worth at least, which redemptions get, and at most, which deposits pay: every held token
    /// that is not written off at the lower, and at the higher, of its last price and its pool's average. A token counts
    /// for nothing at the low side, and fully at the high side, while its price is too old or from before a corporate
    /// action, or its issuer keeps the vault from selling it (`ITokenRegistry.countableOf`); of a burned one, the low
    /// side counts the balance that is left.
    function totalAssetsRange() external view returns (uint256 low, uint256 high);

    /// @notice How many shares of `owner` are within their holding time. Shares that come in within an eighth of the
    /// holding time share one lock, which ends an eighth later than the first of them needs. After the holding time was shortened,
    /// new shares stay locked until the owner's older ones are free.
    function lockedShares(address owner) external view returns (uint256);

    /// @notice How many shares of `owner` answer for losses of its agents
    function firstLossShares(address owner) external view returns (uint256);
    function sharePriceBreaker() external view returns (SharePriceBreaker memory);
    function isTokenWrittenOff(address token) external view returns (bool);

    function maxPriceAge() external view returns (uint256);

    /// @notice Whether the token may be bought: enabled here, not written off, and active in the token registry
    function isAllowedToken(address token) external view returns (bool);

    /// @notice The tokens ever enabled, in that order; `isAllowedToken` says whether one still is
    function allowedTokenAt(uint256 index) external view returns (address);
    function allowedTokenCount() external view returns (uint256);

    /// @notice What agents hold of a token in this vault, by the books
    function tokenLedger(address token) external view returns (uint256);
    function liquidityPaused() external view returns (bool);
    function tradingPaused() external view returns (bool);
    function depositFeeBps() external view returns (uint256);
    function withdrawFeeBps() external view returns (uint256);
    function feeRecipient() external view returns (address);
}
