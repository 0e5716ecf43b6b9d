// SPDX-License-Identifier: MIT
pragma solidity ^0.8.30;

import {IERC4626} from "@openzeppelin/contracts/interfaces/IERC4626.sol";

/// @title The capital that agents trade: an ERC-4626 vault over USDC that also holds the tokens bought
/// @notice `totalAssets` is idle USDC plus the ledgered tokens at their last known price and never reverts.
/// Tokens sent here outside of a trade belong to no ledger and are not valued.
interface IMandateVault is IERC4626 {
    event TokenEnabledUpdated(address indexed token, bool enabled);
    event MaxPriceAgeUpdated(uint256 oldMaxPriceAge, uint256 newMaxPriceAge);
    event TradingPausedUpdated(bool paused);
    event LiquidityPausedUpdated(bool paused);
    event FeesUpdated(uint256 depositFeeBps, uint256 withdrawFeeBps, address indexed feeRecipient);
    event PriceOracleUpdated(address indexed previous, address indexed current);
    event TradeRouterUpdated(address indexed previous, address indexed current);

    error TradingPaused();
    error LiquidityPaused();
    /// @notice The books are open: shares cannot be priced in the middle of a trade
    error TradeInProgress();
    error OnlyTradeRouter(address caller);
    error ZeroAddress();
    error InvalidAssetDecimals(uint8 decimals);
    error TokenNotActive(address token);
    error TokenAlreadyEnabled(address token);
    error TokenNotEnabled(address token);
    error AssetNotTradable(address asset);
    error TooManyTokens(uint256 max);
    error FeeTooHigh(uint256 bps, uint256 maxBps);
    error InsufficientLedger(address token, uint256 ledger, uint256 amount);

    /// @notice Adds a token, active in the token registry, to what the vault may buy; only the admin
    function enableToken(address token) external;

    /// @notice Allows or forbids buying a token that was added before; what is held can always be sold; only the admin
    function setTokenEnabled(address token, bool enabled) external;

    /// @notice Sets after how many seconds a price is too old to trade on here; 0 = no limit of the vault; only the admin
    function setMaxPriceAge(uint256 maxPriceAge) external;
    function setTradingPaused(bool paused) external;
    function setLiquidityPaused(bool paused) external;
    function setFees(uint256 depositFeeBps, uint256 withdrawFeeBps, address feeRecipient) external;

    /// @notice Follows the token registry to its present price oracle; anyone may call
    function syncPriceOracle() external;
    function setTradeRouter(address router) external;

    /// @notice Pays USDC to the swap adapter or a keeper's bounty; only the trade router, refused while trading is paused
    function pullAssetsForTrade(address to, uint256 amount) external;

    /// @notice Takes tokens out of the ledger for a sale; only the trade router, refused while trading is paused
    function pullTokenForTrade(address token, address to, uint256 amount) external;

    /// @notice Takes tokens out of the ledger for a force close; only the trade router, whatever is paused
    function pullTokenForForceClose(address token, address to, uint256 amount) external;

    /// @notice Enters bought tokens into the ledger; only the trade router
    /// @return ledger What agents hold of the token in this vault now
    function recordTokenBought(address token, uint256 amount) external returns (uint256 ledger);

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

    /// @notice `buyContextOf` without the question whether the token may be bought
    function sellContextOf(address token)
        external
        view
        returns (address oracle, uint256 maxAge, bool paused, uint8 decimals);

    function vaultName() external view returns (bytes32);
    function tokenRegistry() external view returns (address);
    function priceOracle() external view returns (address);
    function tradeRouter() external view returns (address);
    function assetDecimals() external view returns (uint8);
    function idleAssets() external view returns (uint256);
    function maxPriceAge() external view returns (uint256);

    /// @notice Whether the token may be bought: enabled here and active in the token registry
    function isAllowedToken(address token) external view returns (bool);

    /// @notice The tokens ever enabled, in that order; ask `isAllowedToken` whether one still is
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
