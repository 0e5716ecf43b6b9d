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

    /// @notice What keeps a token from being sold: the issuer paused this token, paused all of its tokens, or blocked an
    /// account that the token passes, or there is less of it than the vault's ledger says
    enum Restriction {
        None,
        TokenPaused,
        Paused,
        Blocked,
        ShortOfLedger
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

    /// @notice Returns what keeps `vault` from selling `amount` of a token now: the token or its issuer paused, the vault,
    /// its swap adapter or the pool blocked, or a balance below `amount`. Never reverts because of the token.
    /// @dev A swap adapter with `poolOf(token)` has the pool checked as well.
    /// @return restriction The first that applies
    /// @return account The token, the blocked account, or the vault that is short
    /// @return transferable How much of `amount` the vault could sell
    function restrictionOf(address token, address vault, uint256 amount)
        external
        view
        returns (Restriction restriction, address account, uint256 transferable);

    /// @notice Returns how many shares one token stands for, with 18 decimals: its own word, or for a wrapper what one
    /// converts to, times the multiplier of its asset. 0 if the token does not say. Never reverts because of the token.
    /// @return multiplier The present one
    /// @return effectiveAt When it changes or has changed, in Unix seconds; 0 if the token does not say
    function multiplierOf(address token) external view returns (uint256 multiplier, uint256 effectiveAt);

    /// @notice Returns how much of `amount` of a token a vault may count on: as much as it can sell, and nothing from a
    /// change of the multiplier until the vault's oracle has a price that was observed at or after it
    function countableOf(address token, address vault, uint256 amount) external view returns (uint256);
    function tokenAt(uint256 index) external view returns (address);
    function tokenCount() external view returns (uint256);
}
