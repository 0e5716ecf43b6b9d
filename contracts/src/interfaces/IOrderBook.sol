// SPDX-License-Identifier: MIT
pragma solidity ^0.8.30;

import {IPositionManager} from "./IPositionManager.sol";

/// @title Orders that wait on chain: at a price, behind a peak, in parts, at a time
/// @notice An agent's signer places an order once, and anybody may execute it when it is due. Executing grants nothing: the trade
/// passes through `TradeRouter` with every check of a signed intent at that moment, and its floor is relative to the oracle's
/// price of that moment. The book holds no funds, has no admin, and blocks no reduction, no exit and no stop.
///
/// Ids run from 1 to `orderCount()` and are never used again. Storage holds a hash of an order; `OrderPlaced` has all of it.
/// Prices have the oracle's 8 decimals, USDC amounts 6.
interface IOrderBook {
    enum Side {
        /// Opens a position with the order's exits. Parts after the first add to that position.
        Open,
        Add,
        Reduce
    }

    enum Condition {
        None,
        /// The price is at or below `triggerPrice`
        AtOrBelow,
        /// The price is at or above `triggerPrice`
        AtOrAbove,
        /// The price is `trailBps` or more below the peak, and the peak is at or above `triggerPrice`
        Trailing
    }

    enum OrderStatus {
        Executed,
        /// The order is over by a rule; this call has ended it
        Ended,
        NotDue,
        /// There is no such open order, or the content is not what was placed
        NotOpen,
        /// Due, but the trade was refused; nothing has changed
        Refused
    }

    enum EndReason {
        Filled,
        Cancelled,
        /// A newer order of the agent has the same key
        Replaced,
        Expired,
        /// The owner stopped buying, or has everything sold
        Stopped,
        PositionClosed,
        SignerChanged
    }

    /// @notice What the signer of an agent signs to place an order; fields that an order does not use are 0
    /// @param key 0, or a name: a newer order of the agent with the same key replaces this one while it is open
    /// @param side A `Side`
    /// @param token Also that of the position, where `positionId` names one
    /// @param positionId The position to add to or to reduce; 0 for `Open`
    /// @param usdcAmount What all parts together buy with; 0 for `Reduce`
    /// @param exitBps The share of the position that all parts together sell; 0 for a purchase
    /// @param maxSlippageBps Of a purchase, as in its signed intent; 0 for `Reduce`, which has the slippage of the position
    /// @param exits The ladder of the position that `Open` opens; else empty
    /// @param condition A `Condition`; `Trailing` only for `Reduce`
    /// @param triggerPrice Of `Trailing`: the peak that activates the order, 0 for none
    /// @param trailBps Of `Trailing`, below 10,000; else 0
    /// @param validAfter The first second in which the order may execute; 0 for at once
    /// @param validUntil The last one
    /// @param parts How many times the order executes, from 1
    /// @param interval The least number of seconds from one part to the next; 0 for one part
    /// @param deadline The last second in which the order may be placed
    /// @param nonce The agent's next nonce, the one of its intents
    struct OrderIntent {
        uint256 agentId;
        bytes32 key;
        uint8 side;
        address token;
        uint256 positionId;
        uint256 usdcAmount;
        uint16 exitBps;
        uint16 maxSlippageBps;
        IPositionManager.ExitRule[] exits;
        uint8 condition;
        uint256 triggerPrice;
        uint16 trailBps;
        uint256 validAfter;
        uint256 validUntil;
        uint16 parts;
        uint32 interval;
        uint256 deadline;
        uint256 nonce;
    }

    struct CancelIntent {
        uint256 agentId;
        uint256 orderId;
        uint256 deadline;
        uint256 nonce;
    }

    /// @notice The content of an order, whose hash the book keeps: whoever executes it passes it in
    /// @param signer Who signed it; another signer of the agent ends the order
    /// @param buyEpoch,sellEpoch Those of the agent when the order was placed, see `IAgentRegistry.orderContextOf`
    struct PlacedOrder {
        uint256 orderId;
        address signer;
        uint16 buyEpoch;
        uint16 sellEpoch;
        OrderIntent intent;
    }

    /// @notice What changes while an order is open; all zero for one that is not
    /// @param positionId The position that the order adds to or reduces; 0 before the first part of `Open`
    /// @param partsDone How many parts have been executed
    /// @param nextAt The first second in which the next part may execute
    /// @param placedAt,placedRound Conditions and peaks count prices of later rounds that were not observed before
    /// @param peak The highest price since placing; 0 unless the order is `Trailing`
    struct OrderState {
        uint256 agentId;
        uint256 positionId;
        uint256 partsDone;
        uint256 nextAt;
        uint256 validUntil;
        uint256 placedAt;
        uint256 placedRound;
        uint256 peak;
    }

    /// @param round The oracle's round of the token at this time
    /// @param peak The price that a trailing order starts from: the one in force, unless it is stale
    event OrderPlaced(
        uint256 indexed orderId,
        uint256 indexed agentId,
        bytes32 indexed key,
        PlacedOrder order,
        uint256 round,
        uint256 peak
    );
    /// @notice A part was executed; the router's event of the trade comes before this one, in the same transaction
    /// @param part From 1
    /// @param usdcAmount What a purchase spent, or what the vault keeps of a sale
    event OrderPartExecuted(
        uint256 indexed orderId,
        uint256 indexed agentId,
        uint256 indexed positionId,
        address keeper,
        uint256 part,
        uint256 usdcAmount
    );
    event PeakRaised(uint256 indexed orderId, uint256 price, uint256 round);
    event OrderEnded(uint256 indexed orderId, uint256 indexed agentId, EndReason reason);

    /// @notice A field of `PlaceOrder`, counted from 0 in the typed data, does not fit the order's side or condition
    error InvalidOrder(uint256 field, uint256 value);
    error TooManyOpenOrders(uint256 agentId, uint256 max);
    /// @notice The agent's owner has everything sold: no order is accepted
    error AgentIsClosing(uint256 agentId);
    error OrderNotOpen(uint256 orderId);
    error OrderAgentMismatch(uint256 orderId, uint256 agentId);
    /// @notice The content is not what was placed
    error OrderContentMismatch(uint256 orderId);
    /// @notice The next part is not due before `nextAt`, or its condition is not met by a price from after placing
    error OrderNotDue(uint256 orderId, uint256 nextAt);
    /// @notice Only who may execute intents at the router
    error OnlyExecutor(address caller);
    error OnlySelf(address caller);
    error ZeroAddress();

    /// @notice Places an order; only who holds the router's executor role
    /// @dev Typed data of this contract's domain, `Service OrderBook` version `1`:
    /// `PlaceOrder(uint256 agentId,bytes32 key,uint8 side,address token,uint256 positionId,uint256 usdcAmount,uint16 exitBps,uint16 maxSlippageBps,bytes32 exitsHash,uint8 condition,uint256 triggerPrice,uint16 trailBps,uint256 validAfter,uint256 validUntil,uint16 parts,uint32 interval,uint256 deadline,uint256 nonce)`,
    /// where `exitsHash` is that of the other intents, also of an empty list. The checks, in this order:
    /// `OnlyExecutor`, `ExpiredDeadline`, those of `IAllocationManager.authorize`, `AgentIsClosing`, `DeadlineTooFar` (trade policy),
    /// `InvalidOrder`, `TooManyExitRules`, `PositionNotFound`, `PositionAgentMismatch`, `PositionNotOpen`, `TooManyOpenOrders`.
    /// Everything else is checked when the order executes.
    ///
    /// The open order with the same key ends. Where the agent has `MAX_OPEN_ORDERS`, its expired ones end first.
    function placeOrder(OrderIntent calldata intent, bytes calldata signature) external returns (uint256 orderId);

    /// @notice Ends an open order; only who holds the router's executor role
    /// @dev `CancelOrder(uint256 agentId,uint256 orderId,uint256 deadline,uint256 nonce)`, signed by the agent's signer. The errors:
    /// `OnlyExecutor`, `ExpiredDeadline`, those of `IAllocationManager.authorize` for an intent that does not buy, `OrderNotOpen`,
    /// `OrderAgentMismatch`.
    function cancelOrder(CancelIntent calldata intent, bytes calldata signature) external;

    /// @notice Ends an open order; only the agent's owner or signer (`NotOwnerOrSigner`), without a signature or a nonce
    function cancelOrderBySelf(uint256 orderId) external;

    /// @notice Executes the next part of an order, or ends one that is over by a rule; anyone
    /// @dev An order is over, checked in this order, when
    ///  1. `Expired`: `validUntil` has passed;
    ///  2. `SignerChanged`: another key signs for the agent;
    ///  3. `Stopped`: the owner has everything sold, or has let the agent trade again after that; or of one that buys, the owner
    ///     stopped buying, or has let the agent buy again after that. A mandate that only ran out ends nothing;
    ///  4. `PositionClosed`: the position is closed, also the one that the first part of `Open` opened.
    /// The errors: `OrderNotOpen`, `OrderContentMismatch`, `OrderNotDue`, the oracle's, those of the router's function. A condition
    /// counts a price that is fresh, of a later round than the one at placing, and not observed before. The next part waits for
    /// `interval` from now, so a part that was missed is not made up for.
    ///
    /// Part i of n buys with 1/n of `usdcAmount`, the last one with what is left of it; or sells a share of what is left such that
    /// n parts sell `exitBps` in equal amounts when nothing else sells in between. A sale pays the keeper the bounty of an exit.
    /// @return status `Executed` or `Ended`
    function executeOrder(PlacedOrder calldata order) external returns (OrderStatus status);

    /// @notice Does so for many orders; one that is refused never stops the others. Each gets 3,000,000 gas at most.
    /// @return statuses What happened to each
    /// @return reasons The revert data of each that reverted
    function executeOrders(PlacedOrder[] calldata orders)
        external
        returns (OrderStatus[] memory statuses, bytes[] memory reasons);

    /// @notice Raises the peaks of trailing orders to the oracle's fresh price of this moment, where that is higher; anyone
    /// @dev Skips orders that are not open, do not trail, or whose price is stale or from before placing. Never reverts.
    function raisePeaks(uint256[] calldata orderIds) external;

    /// @notice Whether the book is executing the intent with this digest of the router's domain right now;
    /// `IAllocationManager.authorize` asks
    function isExecuting(bytes32 digest) external view returns (bool);

    function orderCount() external view returns (uint256);
    function orderOf(uint256 orderId) external view returns (OrderState memory);

    /// @notice The hash of an open order's content, `keccak256(abi.encode(PlacedOrder))`; 0 for one that is not open
    function contentHashOf(uint256 orderId) external view returns (bytes32);

    /// @notice The orders that hold a place, those that are over by a rule and that nobody has ended yet included
    function openOrderIdsOf(uint256 agentId) external view returns (uint256[] memory);

    /// @notice The agent's open order with this key; 0 for none
    function orderIdByKey(uint256 agentId, bytes32 key) external view returns (uint256);
    function allocationManager() external view returns (address);
    function agentRegistry() external view returns (address);
    function positionManager() external view returns (address);
    function MAX_OPEN_ORDERS() external view returns (uint256);
}
