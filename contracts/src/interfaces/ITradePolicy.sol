// SPDX-License-Identifier: MIT
pragma solidity ^0.8.30;

/// @title The price and size policy that the trade router consults before every swap
/// @notice A policy only tightens: the router checks the track's own limits first, whatever the policy returns, and
/// bounds the slippage of a sale itself. Prices are USD per whole token with 8 decimals.
interface ITradePolicy {
    /// @notice The limits of one vault and track
    /// @param maxEntrySlippageBps The largest `maxSlippageBps` that an open or an add may sign
    /// @param maxExitSlippageBps How far below the oracle's value a sale may end at most
    /// @param exitSlippageStartBps Where the slippage of an exit starts when it becomes due; also the least a reduce gets
    /// @param exitWideningSeconds How long the slippage of a due exit takes from its start to its maximum
    /// @param minTradeUsdc The smallest open, add or partial reduce, in USDC base units; 0 = off
    /// @param maxSpotDeviationBps The largest distance of the pool's price from the oracle's before a swap; 0 = off.
    /// A sale is refused only while the pool is below the oracle: a pool above it pays the vault more.
    /// @param maxTwapDeviationBps The same for the pool's time-weighted price, in both directions; 0 = off
    /// @param twapWindow The length of that average in seconds; the pool's whole history where it is shorter
    /// @param maxDeadlineSeconds How far ahead the deadline of an intent may be, ten minutes at least; 0 = off
    struct Limits {
        uint16 maxEntrySlippageBps;
        uint16 maxExitSlippageBps;
        uint16 exitSlippageStartBps;
        uint32 exitWideningSeconds;
        uint64 minTradeUsdc;
        uint16 maxSpotDeviationBps;
        uint16 maxTwapDeviationBps;
        uint32 twapWindow;
        uint32 maxDeadlineSeconds;
    }

    /// @notice A swap to check
    /// @param price The oracle's, and `observedAt` when that was observed
    /// @param dueSince Since when an exit is due, or an order that a stranger executes; else 0
    struct Market {
        address vault;
        uint256 trackId;
        address adapter;
        address token;
        uint256 price;
        uint256 observedAt;
        uint256 dueSince;
    }

    event LimitsUpdated(address indexed vault, uint256 indexed trackId, Limits limits);
    event TwapRequiredUpdated(address indexed token, bool required);

    error ZeroAddress();
    /// @notice A limit is out of its range; `field` is the position of the field in `Limits`, `bound` what it exceeds or,
    /// for `maxDeadlineSeconds`, falls short of
    error LimitOutOfRange(uint256 field, uint256 value, uint256 bound);
    error SlippageAboveLimit(uint256 slippageBps, uint256 maxSlippageBps);
    error TradeTooSmall(uint256 usdcAmount, uint256 minUsdcAmount);
    error DeadlineTooFar(uint256 deadline, uint256 latestDeadline);
    error SpotPriceDeviation(address token, uint256 spotPrice, uint256 oraclePrice, uint256 maxDeviationBps);
    error TwapDeviation(address token, uint256 twapPrice, uint256 oraclePrice, uint256 maxDeviationBps);
    /// @notice The pool of a token that needs one has no time-weighted price
    error TwapUnavailable(address token);

    /// @notice Sets the limits of a vault and track; only the admin
    function setLimits(address vault, uint256 trackId, Limits calldata limits) external;

    /// @notice Sets whether `token` is traded only while its pool has a time-weighted price; only the admin
    /// @dev Without it a pool that has no history (one observation slot, or younger than a second) is checked by its
    /// spot price alone.
    function setTwapRequired(address token, bool required) external;

    /// @notice Reverts unless an open or an add may go ahead: `DeadlineTooFar`, `SlippageAboveLimit`, `TradeTooSmall`,
    /// `SpotPriceDeviation`, `TwapUnavailable`, `TwapDeviation`, in this order
    /// @return slippageBps The signed one; for a stranger's order at most that of an exit which is due as long
    /// @return fairPrice What waste is measured against: the oracle's price, or where that is older than half the window of the
    /// pool's average, the worse one of both for the agent
    function checkBuy(Market calldata market, uint256 usdcAmount, uint256 maxSlippageBps, uint256 deadline)
        external
        view
        returns (uint256 slippageBps, uint256 fairPrice);

    /// @notice Returns the slippage of a reduce: the signed one, at least the start of an exit's and at most its maximum; for a
    /// stranger's order at most that of an exit which is due as long. And the fair price, as `checkBuy` does.
    /// @dev Reverts `DeadlineTooFar`, `TradeTooSmall` for a part worth less than the smallest trade,
    /// `SpotPriceDeviation`, `TwapUnavailable`, `TwapDeviation`.
    /// @param usdcValue The value of the tokens to sell; `type(uint256).max` when that closes the position
    function checkReduce(Market calldata market, uint256 usdcValue, uint256 signedSlippageBps, uint256 deadline)
        external
        view
        returns (uint256 slippageBps, uint256 fairPrice);

    /// @notice Returns the slippage of an exit that has been due since `dueSince`, and the fair price, as `checkBuy` does
    /// @dev Reverts `SpotPriceDeviation`, `TwapUnavailable`, `TwapDeviation`.
    function checkExit(Market calldata market) external view returns (uint256 slippageBps, uint256 fairPrice);

    /// @notice Returns what a force close is measured against: the pool's average price, however far the spot price is from it now,
    /// and the largest slippage of an exit
    /// @dev Reverts `TwapUnavailable`, and `TwapDeviation` where the oracle still has a price.
    /// @param market `price` is 0 when the oracle's price is stale
    function checkForceClose(Market calldata market) external view returns (uint256 price, uint256 slippageBps);

    /// @notice Reverts `DeadlineTooFar` for a deadline beyond the limit
    function checkDeadline(address vault, uint256 trackId, uint256 deadline) external view;

    /// @notice Returns the slippage of an exit that has been due since `dueSince`, without looking at a pool
    function exitSlippageBps(address vault, uint256 trackId, uint256 dueSince) external view returns (uint256);

    /// @notice Returns the limits that apply: those set, or the default ones
    function limitsOf(address vault, uint256 trackId) external view returns (Limits memory);
    function isTwapRequired(address token) external view returns (bool);
}
