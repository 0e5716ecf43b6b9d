// SPDX-License-Identifier: MIT
pragma solidity ^0.8.30;

/// @title The tokens the protocol knows, and the oracle that prices them
interface ITokenRegistry {
    struct TokenConfig {
        uint8 decimals;
        bool active;
    }

    /// @dev Plain: a token stands for what it always stood for. ScaledUI: one token stands for `uiMultiplier()` shares
    /// (ERC-8056). Wrapper: the ERC-4626 form of a rebasing token.
    enum TokenKind {
        Plain,
        ScaledUI,
        Wrapper
    }

    /// @notice The hours in which the token's share is priced
    enum TokenSession {
        UsEquity24x5,
        UsEquityRegular,
        Continuous
    }

    /// @param powers What the issuer may do, as bits: 1 pause, 2 block, 4 burn, 8 upgrade, 16 only through a timelock
    /// @param issuer The beacon of the token's proxy; the zero address where there is none
    struct TokenDescription {
        TokenKind kind;
        TokenSession session;
        uint8 powers;
        address issuer;
    }

    event TokenRegistered(address indexed token, uint8 decimals);
    event TokenActiveUpdated(address indexed token, bool active);
    event PriceOracleUpdated(address indexed previous, address indexed current);
    event TokenDescribed(address indexed token, TokenDescription description);

    error ZeroAddress();
    error TokenNotListed(address token);
    error TokenAlreadyListed(address token);
    error InvalidTokenDecimals(address token, uint8 decimals);
    error InvalidTokenKind(address token, TokenKind kind);
    error IndexOutOfBounds(uint256 index, uint256 count);

    function setPriceOracle(address oracle) external;

    /// @notice Lists `token` as active, with the decimals it reports
    function registerToken(address token) external;
    function setTokenActive(address token, bool active) external;

    /// @notice Records what a listed token is and what its issuer may do; refuses a kind that the token is not of
    function describeToken(address token, TokenDescription calldata description) external;

    function priceOracle() external view returns (address);
    function isTokenListed(address token) external view returns (bool);
    function isTokenActive(address token) external view returns (bool);
    function tokenDecimals(address token) external view returns (uint8);
    function getTokenConfig(address token) external view returns (TokenConfig memory);

    /// @notice A token that was never described is plain, in the hours of US equities, without an issuer
    function descriptionOf(address token) external view returns (TokenDescription memory);
    function tokenAt(uint256 index) external view returns (address);
    function tokenCount() external view returns (uint256);
}
