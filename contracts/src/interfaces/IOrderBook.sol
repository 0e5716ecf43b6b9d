// SPDX-License-Identifier: MIT
pragma solidity ^0.8.30;

import {IPositionManager} from "./IPositionManager.sol";

/// @title Orders: intents of an agent's signer that wait for a price or a time
/// @notice An order is placed by its signature and executed by anybody. Executing grants nothing: the trade router checks each
/// part as it checks a signed intent of that moment. Prices are the oracle's, with 8 decimals; times are unix seconds.
interface IOrderBook {
    enum Side {
        /// Opens a position; later parts add to it
        Open,
        Add,
        Reduce
    }

    enum Condition {
        /// Only the time: `validAfter`, then every `interval`
        None,
        AtOrBelow,
        AtOrAbove,
        /// `trailBps` below the highest price since placing; only a reduction
        Trailing
    }

    /// @notice Why an order has ended before its last part
    enum OrderEnd {
        Cancelled,
        /// By a newer order with the same key
        Replaced,
        Expired,
        /// By a stop, a promotion, a new signer or a new owner
        Voided,
        PositionClosed
    }

    /// @notice What the signer signs as `PlaceOrder`, the exits as their hash
    /// @param side A `Side`
    /// @param token The token to buy, or that of the position
    /// @param positionId 0 for a new position
    /// @param usdcAmount What all parts of a purchase spend together; 0 for a reduction
    /// @param exitBps The share of the position that all parts sell together; 0 for a purchase
    /// @param exits The exit ladder of a new position; else empty
    /// @param maxSlippageBps Of a purchase, against the oracle's price when it executes; a reduction has its position's
    /// @param condition A `Condition`
    /// @param price The condition's price; for a trailing stop the price that activates it, 0 for at once
    /// @param trailBps The distance of a trailing stop; else 0
    /// @param parts 1 to 100 parts of equal size
    /// @param interval At least this time from one part to the next; 0 for a single part
    /// @param key Replaces the agent's open order with the same key; 0 replaces none
    /// @param deadline Until when the order may be placed
    struct Order {
        uint256 agentId;
        uint8 side;
        address token;
        uint256 positionId;
        uint256 usdcAmount;
        uint16 exitBps;
        IPositionManager.ExitRule[] exits;
        uint16 maxSlippageBps;
        uint8 condition;
        uint256 price;
        uint16 trailBps;
        uint256 validAfter;
        uint256 validUntil;
        uint8 parts;
        uint256 interval;
        uint256 key;
        uint256 deadline;
        uint256 nonce;
    }

    struct CancelOrderIntent {
        uint256 agentId;
        bytes32 orderId;
        uint256 deadline;
        uint256 nonce;
    }

    /// @notice What changes about an open order; all 0 before it is placed and after it has ended
    /// @param peak The highest price that a trailing stop has seen; 0 before its activation
    /// @param positionId The position that the order trades; 0 before it has opened one
    /// @param epoch The agent's order epoch when it was placed (`IAgentRegistry.orderContextOf`)
    /// @param nextAt When the next part is due
    struct OrderState {
        uint96 peak;
        uint32 positionId;
        uint32 epoch;
        uint40 placedAt;
        uint40 nextAt;
        uint8 partsDone;
    }

    event OrderPlaced(
        bytes32 indexed orderId, uint256 indexed agentId, uint256 indexed positionId, Order order, uint256 peak
    );
    /// @param part From 1 to the order's `parts`; the last one ends the order
    /// @param amount Tokens bought, or the USDC that the vault keeps
    event OrderExecuted(
        bytes32 indexed orderId,
        uint256 indexed agentId,
        uint256 positionId,
        uint256 part,
        uint256 amount,
        address keeper
    );
    /// @param since From when on the slippage of strangers widens
    event OrderDue(bytes32 indexed orderId, uint256 indexed agentId, uint256 since);
    event OrderPeakRaised(bytes32 indexed orderId, uint256 indexed agentId, uint256 peak);
    event OrderEnded(bytes32 indexed orderId, uint256 indexed agentId, OrderEnd reason);

    /// @notice `field` counts from 0 in the struct
    error InvalidOrder(uint256 field, uint256 value);
    error TooManyOpenOrders(uint256 agentId, uint256 max);
    error PositionTokenMismatch(uint256 positionId, address expected, address provided);
    /// @notice The order was never placed with this content, or it has ended
    error OrderNotOpen(bytes32 orderId);
    /// @notice The owner's stop, a promotion, a new signer or a new owner ended the order
    error OrderIsVoid(bytes32 orderId);
    error OrderExpired(bytes32 orderId, uint256 validUntil);
    error OrderNotDue(bytes32 orderId, uint256 dueAt);
    /// @notice The price is on the other side of the trigger; a trigger of 0 is a trailing stop that is not active yet
    error ConditionNotMet(bytes32 orderId, uint256 price, uint256 trigger);
    /// @notice The order waits for a price observed after it was placed
    error PriceBeforeOrder(bytes32 orderId, uint256 observedAt, uint256 placedAt);
    error OnlySelf(address caller);
    error ZeroAddress();

    /// @notice Places an order that the agent's signer signed; anyone may send it
    /// @dev The checks: those of every intent's head, for a purchase also `RegistryPaused`, `AgentNotTradable` and
    /// `MandateStopsBuying`; `DeadlineTooFar`, `InvalidOrder`, `PositionNotFound`, `PositionAgentMismatch`, `PositionNotOpen`,
    /// `PositionTokenMismatch`, `TooManyOpenOrders`. Limits and prices are checked when it executes.
    /// @return orderId The digest that was signed
    function placeOrder(Order calldata order, bytes calldata signature) external returns (bytes32 orderId);

    /// @notice Ends an open order of the agent; anyone may send what the signer signed as `CancelOrder`
    function cancelOrder(CancelOrderIntent calldata intent, bytes calldata signature) external;

    /// @notice Executes the part that is due; anyone. A reduction pays the bounty of an exit, a purchase none.
    /// @dev The checks: `OrderNotOpen`, `OrderIsVoid`, `OrderExpired`, `OrderNotDue`, `PriceBeforeOrder`,
    /// `ConditionNotMet`; then those of the router's `openPosition`, `addToPosition` or `reducePosition` without the signature,
    /// which refuse a price that is not fresh. A refusal changes nothing: the order stays due. An executor that holds the router's
    /// role trades at the signed slippage. Whoever does not hold it may move the pool before and after, so it gets the policy's
    /// slippage of exits, if that is less: it begins at `exitSlippageStartBps` and widens from `recordDueOrders` on.
    /// @return amount Tokens bought, or the USDC that the vault keeps
    function executeOrder(Order calldata order) external returns (uint256 amount);

    /// @notice Executes the parts that are due of many orders; an order that is refused never stops the others
    /// @dev Each order gets 3,000,000 gas at most; `executeOrder` gives all there is.
    /// @return executed Whether each executed
    /// @return reasons The revert data of each that did not
    function executeOrders(Order[] calldata orders) external returns (bool[] memory executed, bytes[] memory reasons);

    /// @notice Records that parts are due at a fresh price, so that the slippage of strangers widens; anyone. Skips all others.
    /// @dev A record that nobody confirms for 15 minutes starts over, as that of an exit does. One a minute is enough.
    function recordDueOrders(Order[] calldata orders) external;

    /// @notice Raises the peaks of trailing stops to the oracle's present price; anyone
    /// @dev Skips what is not an open trailing stop below a fresh price that was observed after it was placed.
    function raisePeaks(Order[] calldata orders) external;

    /// @notice Ends the orders that can never execute again, which makes room for others; anyone. Skips all others.
    /// @dev Void orders hold no place: for them it clears storage only.
    function endDeadOrders(Order[] calldata orders) external;

    /// @notice Returns what an order waits for: the error with which its own checks or the oracle's refuse it, empty when none does
    /// @dev The router's checks are seen by a simulated `executeOrder`.
    function waitsFor(Order calldata order) external view returns (bytes memory);

    /// @notice Reverts with what the order waits for
    function checkOrder(Order calldata order) external view;

    /// @notice Returns the state of an open order; all 0 before it is placed and after it has ended
    function orderStateOf(uint256 agentId, bytes32 orderId) external view returns (OrderState memory);

    /// @notice Returns the EIP-712 digest that the signer signs, which is the order's id
    function hashOrder(Order calldata order) external view returns (bytes32);
    function hashCancelOrder(CancelOrderIntent calldata intent) external view returns (bytes32);

    /// @notice Returns the latest order with a key, which may have ended since
    function orderIdOf(uint256 agentId, uint256 key) external view returns (bytes32);

    /// @notice Returns how many orders the agent has open, without void ones
    function openOrderCount(uint256 agentId) external view returns (uint256);

    /// @notice Returns who executes an order of the agent at this moment; 0 when nobody does
    /// @dev The keeper in the upper 160 bits, then in 40 bits since when the order is due, or 0 for an executor of the router.
    function executionOf(uint256 agentId) external view returns (uint256);
    function agentRegistry() external view returns (address);

    /// @notice Returns the router that executes orders: the allocation manager's
    function tradeRouter() external view returns (address);
    function PLACE_ORDER_TYPEHASH() external view returns (bytes32);
    function CANCEL_ORDER_TYPEHASH() external view returns (bytes32);
    function MAX_OPEN_ORDERS() external view returns (uint256);
}
