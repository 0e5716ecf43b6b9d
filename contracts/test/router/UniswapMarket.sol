// SPDX-License-Identifier: MIT
pragma solidity ^0.8.30;

import {IERC20} from "@openzeppelin/contracts/token/ERC20/IERC20.sol";
import {Math} from "@openzeppelin/contracts/utils/math/Math.sol";
import {CommonBase} from "forge-std/Base.sol";
import {StdCheats} from "forge-std/StdCheats.sol";
import {IUniswapV3Factory, IUniswapV3Pool, IUniswapV3SwapCallback} from "../../src/interfaces/IUniswapV3.sol";

interface IUniswapV3FactoryOwner is IUniswapV3Factory {
    function createPool(address tokenA, address tokenB, uint24 fee) external returns (address pool);
}

interface IUniswapV3PoolSetup is IUniswapV3Pool {
    function initialize(uint160 sqrtPriceX96) external;
    function mint(address recipient, int24 tickLower, int24 tickUpper, uint128 amount, bytes calldata data)
        external
        returns (uint256 amount0, uint256 amount1);
    function burn(int24 tickLower, int24 tickUpper, uint128 amount) external returns (uint256, uint256);
    function increaseObservationCardinalityNext(uint16 observationCardinalityNext) external;
    function token0() external view returns (address);
    function token1() external view returns (address);
    function liquidity() external view returns (uint128);
}

interface IMintable is IERC20 {
    function mint(address to, uint256 amount) external;
    function decimals() external view returns (uint8);
}

/// @notice Real Uniswap v3 from its published bytecode, and a market maker that provides liquidity and trades the pools to
/// a price. It holds the minter role of the tokens.
contract UniswapMarket is CommonBase, StdCheats, IUniswapV3SwapCallback {
    uint24 public constant FEE = 500;
    /// @dev A multiple of the tick spacing of both fees
    int24 private constant LOWEST_TICK = -887_220;
    int24 private constant HIGHEST_TICK = 887_220;

    IUniswapV3FactoryOwner public immutable factory;
    address public immutable usdc;

    mapping(address token => uint24) private _fees;

    constructor(address usdc_) {
        usdc = usdc_;
        factory = IUniswapV3FactoryOwner(
            deployCode(
                "../node_modules/@uniswap/v3-core/artifacts/contracts/UniswapV3Factory.sol/UniswapV3Factory.json"
            )
        );
    }

    /// @notice Sets the fee of the pool that is created for `token`
    function setFee(address token, uint24 fee) external {
        _fees[token] = fee;
    }

    /// @notice Creates the pool at `price` (8 decimals) with about `usdcDepth` on either side, over the whole range
    function createPool(address token, uint256 price, uint256 usdcDepth) external returns (address) {
        IUniswapV3PoolSetup pool = IUniswapV3PoolSetup(factory.createPool(usdc, token, feeOf(token)));
        pool.initialize(sqrtPriceOf(token, price));
        pool.increaseObservationCardinalityNext(32);
        if (usdcDepth != 0) addLiquidity(token, price, usdcDepth);
        return address(pool);
    }

    function addLiquidity(address token, uint256 price, uint256 usdcDepth) public {
        uint256 tokens = usdcDepth * 100 * 10 ** IMintable(token).decimals() / price;
        uint128 amount = uint128(Math.sqrt(tokens * usdcDepth));
        poolOf(token).mint(address(this), LOWEST_TICK, HIGHEST_TICK, amount, "");
    }

    /// @notice Takes all liquidity out
    function drain(address token) external {
        IUniswapV3PoolSetup pool = poolOf(token);
        pool.burn(LOWEST_TICK, HIGHEST_TICK, pool.liquidity());
    }

    /// @notice Trades the pool to `price`
    function moveTo(address token, uint256 price) external {
        IUniswapV3PoolSetup pool = poolOf(token);
        uint160 target = sqrtPriceOf(token, price);
        (uint160 current,,,) = pool.slot0();
        if (current != target) pool.swap(address(this), target < current, type(int128).max, target, "");
    }

    /// @notice A swap and nothing else
    function swapExactly(address pool, bool zeroForOne, uint256 amountIn, uint160 limit, address recipient) external {
        IUniswapV3Pool(pool).swap(recipient, zeroForOne, int256(amountIn), limit, "");
    }

    function poolOf(address token) public view returns (IUniswapV3PoolSetup) {
        return IUniswapV3PoolSetup(factory.getPool(usdc, token, feeOf(token)));
    }

    function feeOf(address token) public view returns (uint24) {
        return _fees[token] == 0 ? FEE : _fees[token];
    }

    function sqrtPriceOf(address token, uint256 price) public view returns (uint160) {
        uint256 usdcUnits = price;
        uint256 tokenUnits = 100 * 10 ** IMintable(token).decimals();
        (uint256 amount1, uint256 amount0) = usdc < token ? (tokenUnits, usdcUnits) : (usdcUnits, tokenUnits);
        return uint160(Math.sqrt(Math.mulDiv(amount1, 1 << 128, amount0)) << 32);
    }

    function uniswapV3MintCallback(uint256 amount0, uint256 amount1, bytes calldata) external {
        _pay(IUniswapV3PoolSetup(msg.sender).token0(), amount0);
        _pay(IUniswapV3PoolSetup(msg.sender).token1(), amount1);
    }

    function uniswapV3SwapCallback(int256 amount0, int256 amount1, bytes calldata) external {
        if (amount0 > 0) _pay(IUniswapV3PoolSetup(msg.sender).token0(), uint256(amount0));
        else _pay(IUniswapV3PoolSetup(msg.sender).token1(), uint256(amount1));
    }

    function _pay(address token, uint256 amount) private {
        if (amount == 0) return;
        uint256 held = IMintable(token).balanceOf(address(this));
        if (held < amount) IMintable(token).mint(address(this), amount - held);
        IMintable(token).transfer(msg.sender, amount);
    }
}
