// SPDX-License-Identifier: MIT
pragma solidity ^0.8.30;

import {ISwapAdapter} from "./ISwapAdapter.sol";

/// @title Swaps against one Uniswap v3 pool per token, without a periphery router and without approvals
interface IUniswapV3SwapAdapter is ISwapAdapter {
    event PoolUpdated(address indexed token, address indexed pool, uint24 fee);

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

    /// @notice Trades `token` in the factory's pool with USDC of this fee tier from now on; only the admin
    function setPool(address token, uint24 fee) external;

    function poolOf(address token) external view returns (address);
    function usdc() external view returns (address);
    function factory() external view returns (address);
    function tradeRouter() external view returns (address);
}
