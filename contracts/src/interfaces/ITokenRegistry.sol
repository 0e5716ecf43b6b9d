// SPDX-License-Identifier: MIT
pragma solidity ^0.8.30;

/// @title The tokens the protocol knows, and the oracle that prices them
interface ITokenRegistry {
    struct TokenConfig {
        uint8 decimals;
        bool active;
    }

    event TokenRegistered(address indexed token, uint8 decimals);
    event TokenActiveUpdated(address indexed token, bool active);
    event PriceOracleUpdated(address indexed previous, address indexed current);

    error ZeroAddress();
    error TokenNotListed(address token);
    error TokenAlreadyListed(address token);
    error InvalidTokenDecimals(address token, uint8 decimals);
    error IndexOutOfBounds(uint256 index, uint256 count);

    function setPriceOracle(address oracle) external;

    /// @notice Lists `token` as active, with the decimals it reports
    function registerToken(address token) external;
    function setTokenActive(address token, bool active) external;

    function priceOracle() external view returns (address);
    function isTokenListed(address token) external view returns (bool);
    function isTokenActive(address token) external view returns (bool);
    function tokenDecimals(address token) external view returns (uint8);
    function getTokenConfig(address token) external view returns (TokenConfig memory);
    function tokenAt(uint256 index) external view returns (address);
    function tokenCount() external view returns (uint256);
}
