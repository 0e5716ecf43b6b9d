// SPDX-License-Identifier: MIT
pragma solidity ^0.8.30;

import {ISwapAdapter} from "./ISwapAdapter.sol";

/// @title Swaps against the listed Uniswap v3 pools of a token, without a periphery router and without approvals
/// @notice Each swap runs in the pool that a simulation in the same call shows to bring the most; no other pool is used.
interface IUniswapV3SwapAdapter is ISwapAdapter {
    event PoolUpdated(address indexed token, address indexed pool, uint24 fee);
    event OtherPoolsUpdated(address indexed token, uint24[3] fees);

    error OnlyTradeRouter(address caller);
    error OnlyActivePool(address caller);
    error ZeroAddress();
    /// @notice The factory has no initialized pool of USDC and `token` with this fee
    error PoolNotFound(address token, uint24 fee);
    error PoolNotConfigured(address token);
    /// @notice `sellTokenUpTo` and the quotes run inside the adapter
    error OnlySelf(address caller);
    /// @notice Carries what a quote would move out of the pool's callback; never leaves the adapter
    error Quoted(uint256 amountIn, uint256 amountOut);
    /// @notice The pool ran out of liquidity before everything was sold
    error PartialFill(uint256 amountIn, uint256 amountFilled);
    /// @notice The token refused its transfer to the pool: its issuer paused it, or blocked the adapter or the pool
    error PoolNotPaid(address token, address pool);

    /// @notice Trades `token` in the factory's pool with USDC of this fee tier alone from now on; only the admin
    /// @dev The prices that policy and oracle read are those of this pool.
    function setPool(address token, uint24 fee) external;

    /// @notice Trades `token` in the pools of these fee tiers as well, 0 for none, in place of those set before; only the
    /// admin
    function setOtherPools(address token, uint24[3] calldata fees) external;

    function poolOf(address token) external view returns (address);

    /// @notice Returns the fee tiers of the pools in which a token trades, first the one whose prices count; zeros follow
    function poolFeesOf(address token) external view returns (uint24[4] memory fees);
    function usdc() external view returns (address);
    function factory() external view returns (address);
    function tradeRouter() external view returns (address);
}
