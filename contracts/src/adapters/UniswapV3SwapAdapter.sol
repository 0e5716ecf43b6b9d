// SPDX-License-Identifier: MIT
pragma solidity ^0.8.30;

import {AccessControl} from "@openzeppelin/contracts/access/AccessControl.sol";
import {IERC20} from "@openzeppelin/contracts/token/ERC20/IERC20.sol";
import {SafeERC20} from "@openzeppelin/contracts/token/ERC20/utils/SafeERC20.sol";
import {SafeCast} from "@openzeppelin/contracts/utils/math/SafeCast.sol";
import {ISwapAdapter} from "../interfaces/ISwapAdapter.sol";
import {IUniswapV3Factory, IUniswapV3Pool, IUniswapV3SwapCallback} from "../interfaces/IUniswapV3.sol";
import {IUniswapV3SwapAdapter} from "../interfaces/IUniswapV3SwapAdapter.sol";

/// @title Swaps straight at the pool, paying in its callback
/// @dev What the functions do is said in `IUniswapV3SwapAdapter`.
contract UniswapV3SwapAdapter is IUniswapV3SwapAdapter, IUniswapV3SwapCallback, AccessControl {
    using SafeCast for uint256;
    using SafeERC20 for IERC20;

    struct Market {
        address pool;
        uint24 fee;
        bool usdcIsToken0;
    }

    /// @dev One swap, whichever way it goes.
    struct Order {
        address pool;
        address recipient;
        address tokenIn;
        address tokenOut;
        bool zeroForOne;
        uint256 amountIn;
        uint256 minOut;
    }

    /// @dev The ends of Uniswap v3's price range: no limit but the liquidity there is.
    uint160 private constant LOWEST_SQRT_PRICE = 4_295_128_740;
    uint160 private constant HIGHEST_SQRT_PRICE = 1_461_446_703_485_210_103_287_273_052_203_988_822_378_723_970_341;

    /// @inheritdoc IUniswapV3SwapAdapter
    address public immutable tradeRouter;

    /// @inheritdoc IUniswapV3SwapAdapter
    address public immutable factory;

    /// @inheritdoc IUniswapV3SwapAdapter
    address public immutable usdc;

    mapping(address token => Market) private _markets;

    /// @dev The one pool that may call back, what it sells, and what it was paid, while a swap runs.
    address private transient _activePool;
    address private transient _tokenIn;
    uint256 private transient _paid;

    modifier onlyTradeRouter() {
        _checkTradeRouter();
        _;
    }

    constructor(address admin, address tradeRouter_, address factory_, address usdc_) {
        if (admin == address(0) || tradeRouter_ == address(0) || factory_ == address(0) || usdc_ == address(0)) {
            revert ZeroAddress();
        }
        tradeRouter = tradeRouter_;
        factory = factory_;
        usdc = usdc_;
        _grantRole(DEFAULT_ADMIN_ROLE, admin);
    }

    /// @inheritdoc ISwapAdapter
    function swapUsdcForToken(address vault, address token, uint256 usdcIn, uint256 minTokenOut)
        external
        onlyTradeRouter
        returns (uint256 tokenOut)
    {
        Market memory market = _marketOf(token);
        tokenOut = _swap(Order(market.pool, vault, usdc, token, market.usdcIsToken0, usdcIn, minTokenOut));
    }

    /// @inheritdoc ISwapAdapter
    function swapTokenForUsdc(address vault, address token, uint256 tokenIn, uint256 minUsdcOut)
        external
        onlyTradeRouter
        returns (uint256 usdcOut)
    {
        Market memory market = _marketOf(token);
        usdcOut = _swap(Order(market.pool, vault, token, usdc, !market.usdcIsToken0, tokenIn, minUsdcOut));
    }

    /// @inheritdoc IUniswapV3SwapCallback
    function uniswapV3SwapCallback(int256 amount0Delta, int256 amount1Delta, bytes calldata) external {
        if (msg.sender != _activePool) revert OnlyActivePool(msg.sender);

        // Exactly one of the two is owed: the positive one.
        uint256 owed = uint256(amount0Delta > 0 ? amount0Delta : amount1Delta);
        _paid += owed;

        IERC20(_tokenIn).safeTransfer(msg.sender, owed);
    }

    /// @inheritdoc IUniswapV3SwapAdapter
    function setPool(address token, uint24 fee) external onlyRole(DEFAULT_ADMIN_ROLE) {
        if (token == address(0)) revert ZeroAddress();
        address pool = IUniswapV3Factory(factory).getPool(usdc, token, fee);
        if (pool == address(0)) revert PoolNotFound(token, fee);
        (uint160 sqrtPriceX96,,,,,,) = IUniswapV3Pool(pool).slot0();
        if (sqrtPriceX96 == 0) revert PoolNotFound(token, fee);

        _markets[token] = Market(pool, fee, usdc < token);

        emit PoolUpdated(token, pool, fee);
    }

    /// @inheritdoc IUniswapV3SwapAdapter
    function poolOf(address token) external view returns (address) {
        return _markets[token].pool;
    }

    /// @inheritdoc IUniswapV3SwapAdapter
    function poolFeeOf(address token) external view returns (uint24) {
        return _markets[token].fee;
    }

    function _swap(Order memory order) private returns (uint256 received) {
        uint256 before = IERC20(order.tokenOut).balanceOf(order.recipient);
        _activePool = order.pool;
        _tokenIn = order.tokenIn;
        _paid = 0;

        IUniswapV3Pool(order.pool)
            .swap(
                order.recipient,
                order.zeroForOne,
                order.amountIn.toInt256(),
                order.zeroForOne ? LOWEST_SQRT_PRICE : HIGHEST_SQRT_PRICE,
                ""
            );
        _activePool = address(0);

        if (_paid != order.amountIn) revert PartialFill(order.amountIn, _paid);
        received = IERC20(order.tokenOut).balanceOf(order.recipient) - before;
        if (received < order.minOut) revert SlippageExceeded(order.minOut, received);
    }

    function _marketOf(address token) private view returns (Market memory market) {
        market = _markets[token];
        if (market.pool == address(0)) revert PoolNotConfigured(token);
    }

    function _checkTradeRouter() private view {
        if (msg.sender != tradeRouter) revert OnlyTradeRouter(msg.sender);
    }
}
