// SPDX-License-Identifier: MIT
pragma solidity ^0.8.30;

import {IERC20} from "@openzeppelin/contracts/token/ERC20/IERC20.sol";
import {SafeERC20} from "@openzeppelin/contracts/token/ERC20/utils/SafeERC20.sol";
import {IERC20Metadata} from "@openzeppelin/contracts/token/ERC20/extensions/IERC20Metadata.sol";
import {SafeCast} from "@openzeppelin/contracts/utils/math/SafeCast.sol";
import {TwoStepAdmin} from "../access/TwoStepAdmin.sol";
import {ISwapAdapter} from "../interfaces/ISwapAdapter.sol";
import {IUniswapV3Factory, IUniswapV3Pool, IUniswapV3SwapCallback} from "../interfaces/IUniswapV3.sol";
import {IUniswapV3SwapAdapter} from "../interfaces/IUniswapV3SwapAdapter.sol";
import {PoolPrice} from "../libraries/PoolPrice.sol";
import {PriceMath} from "../libraries/PriceMath.sol";

/// @title Swaps directly at the pool and pays in its callback
/// @dev `ISwapAdapter` and `IUniswapV3SwapAdapter` document the functions.
contract UniswapV3SwapAdapter is IUniswapV3SwapAdapter, IUniswapV3SwapCallback, TwoStepAdmin {
    using SafeCast for uint256;
    using SafeERC20 for IERC20;

    struct Market {
        address pool;
        uint24 fee;
        bool usdcIsToken0;
        uint8 decimals;
        /// @dev Of the first: how many follow
        uint8 others;
    }

    /// @dev One swap in either direction.
    struct Order {
        address pool;
        address recipient;
        address tokenIn;
        address tokenOut;
        bool zeroForOne;
        uint256 amountIn;
        uint160 sqrtPriceLimit;
        uint256 decimals;
    }

    /// @dev For one pool's simulation: an empty one at an absurd price is walked through for millions.
    uint256 private constant QUOTE_GAS = 250_000;

    /// @inheritdoc IUniswapV3SwapAdapter
    address public immutable tradeRouter;

    /// @inheritdoc IUniswapV3SwapAdapter
    address public immutable factory;

    /// @inheritdoc IUniswapV3SwapAdapter
    address public immutable usdc;

    mapping(address token => Market[4]) private _markets;

    /// @dev While a swap runs: the one pool that may call back, the token it is paid in, and how much it was paid.
    address private transient _activePool;
    address private transient _tokenIn;
    uint256 private transient _paid;
    bool private transient _quoting;

    /// @dev The token that this transaction traded last, of those with several pools, and the fee of its pool.
    address private transient _tradedToken;
    uint24 private transient _tradedFee;

    modifier onlyTradeRouter() {
        _checkTradeRouter();
        _;
    }

    constructor(address admin, address tradeRouter_, address factory_, address usdc_) TwoStepAdmin(admin) {
        if (admin == address(0) || tradeRouter_ == address(0) || factory_ == address(0) || usdc_ == address(0)) {
            revert ZeroAddress();
        }
        tradeRouter = tradeRouter_;
        factory = factory_;
        usdc = usdc_;
    }

    /// @inheritdoc ISwapAdapter
    function swapUsdcForToken(address vault, address token, uint256 usdcIn, uint256 minTokenOut)
        external
        onlyTradeRouter
        returns (uint256 tokenOut)
    {
        Order memory order = _bestOrder(vault, token, true, usdcIn, 0);
        tokenOut = _swap(order);
        _checkFill(order, tokenOut, minTokenOut);
    }

    /// @inheritdoc ISwapAdapter
    function swapTokenForUsdc(address vault, address token, uint256 tokenIn, uint256 minUsdcOut)
        external
        onlyTradeRouter
        returns (uint256 usdcOut)
    {
        Order memory order = _bestOrder(vault, token, false, tokenIn, 0);
        usdcOut = _swap(order);
        _checkFill(order, usdcOut, minUsdcOut);
    }

    /// @inheritdoc ISwapAdapter
    function sellTokenUpTo(address vault, address token, uint256 tokenIn, uint256 minPrice)
        external
        onlyTradeRouter
        returns (uint256 sold, uint256 usdcOut)
    {
        Order memory order = _bestOrder(vault, token, false, tokenIn, minPrice);
        if (_isWithinLimit(order)) (sold, usdcOut) = _sellOrNothing(order, minPrice);
        if (sold < tokenIn) IERC20(token).safeTransfer(vault, tokenIn - sold);
    }

    /// @inheritdoc ISwapAdapter
    function quoteUsdcForToken(address token, uint256 usdcIn) external onlyTradeRouter returns (uint256 tokenOut) {
        uint256 paid;
        (paid, tokenOut) = _quote(_bestOrder(address(this), token, true, usdcIn, 0), gasleft());
        if (paid != usdcIn) revert PartialFill(usdcIn, paid);
    }

    /// @inheritdoc ISwapAdapter
    function quoteTokenForUsdc(address token, uint256 tokenIn, uint256 minPrice)
        external
        onlyTradeRouter
        returns (uint256 sold, uint256 usdcOut)
    {
        Order memory order = _bestOrder(address(this), token, false, tokenIn, minPrice);
        if (_isWithinLimit(order)) (sold, usdcOut) = _quote(order, gasleft());
    }

    /// @notice Swaps, and reverts `SlippageExceeded` when that brings less than `minPrice`; only the adapter itself
    function swapAtLeast(Order calldata order, uint256 minPrice) external returns (uint256 sold, uint256 usdcOut) {
        if (msg.sender != address(this)) revert OnlySelf(msg.sender);
        usdcOut = _swap(order);
        sold = _paid;
        uint256 minimum = PriceMath.saleFloor(sold, minPrice, order.decimals);
        // The pool rounds what it pays down by up to a unit.
        if (usdcOut + 1 < minimum) revert SlippageExceeded(minimum, usdcOut);
    }

    /// @notice Runs a swap for a quote: always reverts, with `Quoted` when the pool fills; only the adapter itself
    function swapForQuote(Order calldata order) external {
        if (msg.sender != address(this)) revert OnlySelf(msg.sender);
        if (order.recipient != address(this)) {
            uint256 received = _swap(order);
            revert Quoted(_paid, received);
        }
        // On paper there is nothing to pay with.
        _activePool = order.pool;
        _quoting = true;
        IUniswapV3Pool(order.pool)
            .swap(address(this), order.zeroForOne, order.amountIn.toInt256(), order.sqrtPriceLimit, "");
    }

    /// @inheritdoc IUniswapV3SwapCallback
    function uniswapV3SwapCallback(int256 amount0Delta, int256 amount1Delta, bytes calldata) external {
        if (msg.sender != _activePool) revert OnlyActivePool(msg.sender);

        // Exactly one of the two is owed: the positive one. The other is what the pool pays.
        uint256 owed = uint256(amount0Delta > 0 ? amount0Delta : amount1Delta);
        if (_quoting) revert Quoted(owed, uint256(-(amount0Delta > 0 ? amount1Delta : amount0Delta)));
        _paid += owed;

        if (!IERC20(_tokenIn).trySafeTransfer(msg.sender, owed)) revert PoolNotPaid(_tokenIn, msg.sender);
    }

    /// @inheritdoc IUniswapV3SwapAdapter
    function setPool(address token, uint24 fee) external onlyRole(DEFAULT_ADMIN_ROLE) {
        if (token == address(0)) revert ZeroAddress();
        Market memory market = _marketAt(token, fee);
        _markets[token][0] = market;

        emit PoolUpdated(token, market.pool, fee);
    }

    /// @inheritdoc IUniswapV3SwapAdapter
    function setOtherPools(address token, uint24[3] calldata fees) external onlyRole(DEFAULT_ADMIN_ROLE) {
        uint8 others;
        for (uint256 i; i < fees.length; ++i) {
            if (fees[i] != 0) _markets[token][++others] = _marketAt(token, fees[i]);
        }
        _markets[token][0].others = others;

        emit OtherPoolsUpdated(token, fees);
    }

    /// @inheritdoc IUniswapV3SwapAdapter
    function poolOf(address token) external view returns (address) {
        return _markets[token][0].pool;
    }

    /// @inheritdoc ISwapAdapter
    function poolFeeOf(address token) external view returns (uint24 fee) {
        uint256 others;
        (fee, others) = (_markets[token][0].fee, _markets[token][0].others);
        if (others != 0 && _tradedToken == token) fee = _tradedFee;
    }

    /// @inheritdoc IUniswapV3SwapAdapter
    function poolFeesOf(address token) external view returns (uint24[4] memory fees) {
        for (uint256 i; i <= _markets[token][0].others; ++i) {
            fees[i] = _markets[token][i].fee;
        }
    }

    /// @inheritdoc ISwapAdapter
    function pricesOf(address token, uint32 window) external view returns (uint256 spotPrice, uint256 twapPrice) {
        Market memory market = _markets[token][0];
        if (market.pool == address(0)) revert PoolNotConfigured(token);
        return PoolPrice.pricesOf(IUniswapV3Pool(market.pool), market.usdcIsToken0, market.decimals, window);
    }

    function _swap(Order memory order) private returns (uint256 received) {
        uint256 before = IERC20(order.tokenOut).balanceOf(order.recipient);
        _activePool = order.pool;
        _tokenIn = order.tokenIn;
        _paid = 0;

        IUniswapV3Pool(order.pool)
            .swap(order.recipient, order.zeroForOne, order.amountIn.toInt256(), order.sqrtPriceLimit, "");
        _activePool = address(0);
        received = IERC20(order.tokenOut).balanceOf(order.recipient) - before;
    }

    /// @dev A fill below the price is undone. Any other error is passed on: a caller who gives too little gas must not make an exit
    /// look like one that the pool does not fill.
    function _sellOrNothing(Order memory order, uint256 minPrice) private returns (uint256 sold, uint256 usdcOut) {
        try this.swapAtLeast(order, minPrice) returns (uint256 paid, uint256 received) {
            return (paid, received);
        } catch (bytes memory reason) {
            // The first four bytes are the error's selector.
            // forge-lint: disable-next-line(unsafe-typecast)
            if (bytes4(reason) == SlippageExceeded.selector) return (0, 0);
            assembly ("memory-safe") {
                revert(add(reason, 32), mload(reason))
            }
        }
    }

    /// @dev Nothing moves for good. A quote for a vault is the whole swap, so a pool that an issuer blocks brings nothing.
    function _quote(Order memory order, uint256 gas) private returns (uint256 amountIn, uint256 amountOut) {
        try this.swapForQuote{gas: gas}(order) {
            return (0, 0);
        } catch (bytes memory reason) {
            // The first four bytes are the error's selector.
            // forge-lint: disable-next-line(unsafe-typecast)
            if (reason.length != 68 || bytes4(reason) != Quoted.selector) return (0, 0);
            assembly ("memory-safe") {
                amountIn := mload(add(reason, 36))
                amountOut := mload(add(reason, 68))
            }
        }
    }

    function _checkFill(Order memory order, uint256 received, uint256 minimum) private view {
        if (_paid != order.amountIn) revert PartialFill(order.amountIn, _paid);
        if (received < minimum) revert SlippageExceeded(minimum, received);
    }

    /// @dev A pool refuses a limit that its price is already beyond.
    function _isWithinLimit(Order memory order) private view returns (bool) {
        (uint160 current,,,) = IUniswapV3Pool(order.pool).slot0();
        return order.zeroForOne ? current > order.sqrtPriceLimit : current < order.sqrtPriceLimit;
    }

    /// @dev The order is in the listed pool that brings the most for it.
    /// @param minPrice Of a sale; 0 = no limit
    function _bestOrder(address recipient, address token, bool isBuy, uint256 amountIn, uint256 minPrice)
        private
        returns (Order memory order)
    {
        Market storage market = _markets[token][0];
        (order.zeroForOne, order.decimals) = (market.usdcIsToken0 == isBuy, market.decimals);
        uint256 others = market.others;
        (order.tokenIn, order.tokenOut) = isBuy ? (usdc, token) : (token, usdc);
        (order.recipient, order.amountIn) = (recipient, amountIn);
        _moveTo(order, market, minPrice);
        if (order.pool == address(0)) revert PoolNotConfigured(token);
        if (others != 0) _choosePool(order, token, others, minPrice);
    }

    /// @dev What a simulation brings decides, neither fee, price nor place in the list. Whichever pool it is, the router checks
    /// the floor. A pool that could not bring more without any price impact is not simulated. A caller who gives too little gas
    /// for a simulation has left none for the swap.
    function _choosePool(Order memory order, address token, uint256 others, uint256 minPrice) private {
        Market storage best = _markets[token][0];
        uint256 most;
        for (uint256 i; i <= others; ++i) {
            Market storage market = _markets[token][i];
            _moveTo(order, market, minPrice);
            if (PoolPrice.mostFor(order.pool, order.zeroForOne, order.amountIn, market.fee) <= most) continue;
            (uint256 amountIn, uint256 output) = _quote(order, QUOTE_GAS);
            if (minPrice == 0 && amountIn != order.amountIn) continue;
            if (output > most) (best, most) = (market, output);
        }
        _moveTo(order, best, minPrice);
        (_tradedToken, _tradedFee) = (token, best.fee);
    }

    function _moveTo(Order memory order, Market storage market, uint256 minPrice) private view {
        order.pool = market.pool;
        order.sqrtPriceLimit = minPrice != 0
            ? PoolPrice.sqrtPriceLimit(minPrice, market.fee, !order.zeroForOne, order.decimals)
            : order.zeroForOne ? PoolPrice.LOWEST_SQRT_PRICE : PoolPrice.HIGHEST_SQRT_PRICE;
    }

    function _marketAt(address token, uint24 fee) private view returns (Market memory) {
        address pool = IUniswapV3Factory(factory).getPool(usdc, token, fee);
        if (pool == address(0)) revert PoolNotFound(token, fee);
        (uint160 sqrtPriceX96,,,) = IUniswapV3Pool(pool).slot0();
        if (sqrtPriceX96 == 0) revert PoolNotFound(token, fee);
        return Market(pool, fee, usdc < token, IERC20Metadata(token).decimals(), 0);
    }

    function _checkTradeRouter() private view {
        if (msg.sender != tradeRouter) revert OnlyTradeRouter(msg.sender);
    }
}
