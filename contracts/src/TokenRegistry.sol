// SPDX-License-Identifier: MIT
pragma solidity ^0.8.30;

import {IERC4626} from "@openzeppelin/contracts/interfaces/IERC4626.sol";
import {IERC20Metadata} from "@openzeppelin/contracts/token/ERC20/extensions/IERC20Metadata.sol";
import {TwoStepAdmin} from "./access/TwoStepAdmin.sol";
import {IMandateVault} from "./interfaces/IMandateVault.sol";
import {IPriceOracle} from "./interfaces/IPriceOracle.sol";
import {ITokenRegistry} from "./interfaces/ITokenRegistry.sol";
import {ITradeRouter} from "./interfaces/ITradeRouter.sol";
import {IUniswapV3SwapAdapter} from "./interfaces/IUniswapV3SwapAdapter.sol";
import {BoundedCall} from "./libraries/BoundedCall.sol";
import {TokenRestrictions} from "./libraries/TokenRestrictions.sol";

/// @title The tokens the protocol knows, and the oracle that prices them
/// @notice A token stays listed for good, so that what an agent still holds of it keeps its decimals and its price;
/// an inactive one is no longer bought.
contract TokenRegistry is ITokenRegistry, TwoStepAdmin {
    bytes32 public constant OPERATOR_ROLE = keccak256("OPERATOR_ROLE");

    /// @notice Beyond these decimals a value in USDC would lose its digits.
    uint8 public constant MAX_DECIMALS = 18;

    uint256 private constant ONE_SHARE = 1e18;
    bytes4 private constant UI_MULTIPLIER = bytes4(keccak256("uiMultiplier()"));
    bytes4 private constant EFFECTIVE_AT = bytes4(keccak256("effectiveAt()"));

    /// @dev One slot; `listed` tells a token of 0 decimals from one that is not listed.
    struct Listing {
        uint8 decimals;
        bool active;
        bool listed;
    }

    /// @inheritdoc ITokenRegistry
    address public priceOracle;

    address[] private _tokens;
    mapping(address token => Listing) private _listings;
    mapping(address token => TokenDescription) private _descriptions;

    /// @param admin Receives DEFAULT_ADMIN_ROLE
    constructor(address admin, address priceOracle_) TwoStepAdmin(admin) {
        if (admin == address(0) || priceOracle_ == address(0)) revert ZeroAddress();
        priceOracle = priceOracle_;
        emit PriceOracleUpdated(address(0), priceOracle_);
    }

    /// @inheritdoc ITokenRegistry
    function setPriceOracle(address oracle) external onlyRole(DEFAULT_ADMIN_ROLE) {
        if (oracle == address(0)) revert ZeroAddress();
        emit PriceOracleUpdated(priceOracle, oracle);
        priceOracle = oracle;
    }

    /// @inheritdoc ITokenRegistry
    function registerToken(address token) external onlyRole(DEFAULT_ADMIN_ROLE) {
        if (token == address(0)) revert ZeroAddress();
        if (_listings[token].listed) revert TokenAlreadyListed(token);
        uint8 decimals = IERC20Metadata(token).decimals();
        if (decimals > MAX_DECIMALS) revert InvalidTokenDecimals(token, decimals);

        _tokens.push(token);
        _listings[token] = Listing({decimals: decimals, active: true, listed: true});
        emit TokenRegistered(token, decimals);
    }

    /// @inheritdoc ITokenRegistry
    function setTokenActive(address token, bool active) external onlyRole(OPERATOR_ROLE) {
        _listing(token).active = active;
        emit TokenActiveUpdated(token, active);
    }

    /// @inheritdoc ITokenRegistry
    function describeToken(address token, TokenDescription calldata description) external onlyRole(DEFAULT_ADMIN_ROLE) {
        if (!_listings[token].listed) revert TokenNotListed(token);

        _descriptions[token] = description;
        (uint256 multiplier,) = multiplierOf(token);
        if (description.kind != TokenKind.Plain && multiplier == 0) revert InvalidTokenKind(token, description.kind);
        emit TokenDescribed(token, description);
    }

    /// @inheritdoc ITokenRegistry
    function isTokenListed(address token) external view returns (bool) {
        return _listings[token].listed;
    }

    /// @inheritdoc ITokenRegistry
    function isTokenActive(address token) external view returns (bool) {
        return _listings[token].active;
    }

    /// @inheritdoc ITokenRegistry
    function tokenDecimals(address token) external view returns (uint8) {
        return _listing(token).decimals;
    }

    /// @inheritdoc ITokenRegistry
    function getTokenConfig(address token) external view returns (TokenConfig memory) {
        Listing storage listing = _listing(token);
        return TokenConfig({decimals: listing.decimals, active: listing.active});
    }

    /// @inheritdoc ITokenRegistry
    function descriptionOf(address token) external view returns (TokenDescription memory) {
        return _descriptions[token];
    }

    /// @inheritdoc ITokenRegistry
    function multiplierOf(address token) public view returns (uint256 multiplier, uint256 effectiveAt) {
        address scaled = _scaled(token);
        multiplier = BoundedCall.get(scaled, UI_MULTIPLIER);
        effectiveAt = BoundedCall.get(scaled, EFFECTIVE_AT);
        if (scaled == token) return (multiplier, effectiveAt);

        uint256 unit = 10 ** _listings[token].decimals;
        uint256 rate = BoundedCall.read(token, abi.encodeCall(IERC4626.convertToAssets, (unit)));
        uint256 power = BoundedCall.read(scaled, abi.encodeCall(IERC20Metadata.decimals, ()));
        if (multiplier == 0) multiplier = ONE_SHARE;
        bool isReadable = rate <= type(uint128).max && multiplier <= type(uint128).max && power <= MAX_DECIMALS;
        multiplier = isReadable ? rate * multiplier / 10 ** power : 0;
    }

    /// @inheritdoc ITokenRegistry
    function countableOf(address token, address vault, uint256 amount) external view returns (uint256 countable) {
        uint256 changedAt = BoundedCall.get(_scaled(token), EFFECTIVE_AT);
        if (changedAt != 0 && changedAt <= block.timestamp) {
            (, uint64 observedAt,) = IPriceOracle(IMandateVault(vault).priceOracle()).peekPrice(token);
            if (observedAt < changedAt) return 0;
        }
        (,, countable) = restrictionOf(token, vault, amount);
    }

    /// @inheritdoc ITokenRegistry
    function restrictionOf(address token, address vault, uint256 amount)
        public
        view
        returns (Restriction restriction, address account, uint256 transferable)
    {
        address issuer = _descriptions[token].issuer;
        address[3] memory path = [vault, address(0), address(0)];
        if (issuer != address(0)) {
            address router = _addressOf(vault, abi.encodeCall(IMandateVault.tradeRouter, ()));
            path[1] = _addressOf(router, abi.encodeCall(ITradeRouter.swapAdapter, ()));
            path[2] = _addressOf(path[1], abi.encodeCall(IUniswapV3SwapAdapter.poolOf, (token)));
        }
        return TokenRestrictions.check(token, issuer, path, amount);
    }

    /// @inheritdoc ITokenRegistry
    function tokenAt(uint256 index) external view returns (address) {
        if (index >= _tokens.length) revert IndexOutOfBounds(index, _tokens.length);
        return _tokens[index];
    }

    /// @inheritdoc ITokenRegistry
    function tokenCount() external view returns (uint256) {
        return _tokens.length;
    }

    /// @dev The token that says the multiplier: of a wrapper, its asset.
    function _scaled(address token) private view returns (address) {
        if (_descriptions[token].kind != TokenKind.Wrapper) return token;
        return _addressOf(token, abi.encodeCall(IERC4626.asset, ()));
    }

    function _addressOf(address target, bytes memory data) private view returns (address) {
        return address(uint160(BoundedCall.read(target, data)));
    }

    function _listing(address token) private view returns (Listing storage listing) {
        listing = _listings[token];
        if (!listing.listed) revert TokenNotListed(token);
    }
}
