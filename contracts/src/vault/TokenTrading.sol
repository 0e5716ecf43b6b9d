// SPDX-License-Identifier: MIT
pragma solidity ^0.8.30;

import {IERC20} from "@openzeppelin/contracts/token/ERC20/IERC20.sol";
import {SafeERC20} from "@openzeppelin/contracts/token/ERC20/utils/SafeERC20.sol";
import {SafeCast} from "@openzeppelin/contracts/utils/math/SafeCast.sol";
import {IMandateVault} from "../interfaces/IMandateVault.sol";
import {IPriceOracle} from "../interfaces/IPriceOracle.sol";
import {ITokenRegistry} from "../interfaces/ITokenRegistry.sol";
import {PriceMath} from "../libraries/PriceMath.sol";
import {RouterControl} from "./RouterControl.sol";

/// @title What agents trade: the tokens that the vault may buy, what it holds of each, and what that is worth
abstract contract TokenTrading is RouterControl {
    using SafeCast for uint256;
    using SafeERC20 for IERC20;

    /// @dev One slot, read or written by every trade of the token.
    struct Holding {
        uint128 ledger;
        uint8 decimals;
        uint8 index;
        bool enabled;
        bool writtenOff;
    }

    bytes32 public constant OPERATOR_ROLE = keccak256("OPERATOR_ROLE");
    bytes32 public constant GUARDIAN_ROLE = keccak256("GUARDIAN_ROLE");

    uint256 private constant MAX_TOKENS = 255;

    /// @dev Never a token's bit: keeps the mask's slot from going to zero and back, which costs more gas.
    uint256 internal constant MASK_MARKER = 1 << 255;

    /// @inheritdoc IMandateVault
    address public immutable tokenRegistry;

    mapping(address token => Holding) private _holdings;
    address[] internal _allowedTokens;

    /// @dev Bit i is set while the vault holds some of the token at index i.
    uint256 internal _heldMask = MASK_MARKER;

    /// @inheritdoc IMandateVault
    address public priceOracle;
    uint32 internal _maxPriceAge;

    /// @inheritdoc IMandateVault
    bool public tradingPaused;

    constructor(address tokenRegistry_) {
        if (tokenRegistry_ == address(0)) revert ZeroAddress();
        tokenRegistry = tokenRegistry_;
        _followPriceOracle();
    }

    /// @inheritdoc IMandateVault
    function enableToken(address token) external onlyRole(DEFAULT_ADMIN_ROLE) {
        if (token == asset()) revert AssetNotTradable(token);
        if (!ITokenRegistry(tokenRegistry).isTokenActive(token)) revert TokenNotActive(token);
        if (_isKnown(token)) revert TokenAlreadyEnabled(token);
        uint256 index = _allowedTokens.length;
        if (index == MAX_TOKENS) revert TooManyTokens(MAX_TOKENS);

        _allowedTokens.push(token);
        _holdings[token] = Holding({
            ledger: 0,
            decimals: ITokenRegistry(tokenRegistry).tokenDecimals(token),
            index: index.toUint8(),
            enabled: true,
            writtenOff: false
        });

        emit TokenEnabledUpdated(token, true);
    }

    /// @inheritdoc IMandateVault
    function setTokenEnabled(address token, bool enabled) external onlyRole(DEFAULT_ADMIN_ROLE) {
        if (!_isKnown(token)) revert TokenNotEnabled(token);
        _holdings[token].enabled = enabled;
        emit TokenEnabledUpdated(token, enabled);
    }

    /// @inheritdoc IMandateVault
    function setTokenWrittenOff(address token, bool writtenOff) external onlyRole(DEFAULT_ADMIN_ROLE) {
        if (!_isKnown(token)) revert TokenNotEnabled(token);
        Holding storage holding = _holdings[token];
        emit TokenWrittenOffUpdated(token, writtenOff, holding.ledger, _valueOf(token));
        holding.writtenOff = writtenOff;
    }

    /// @inheritdoc IMandateVault
    function setMaxPriceAge(uint256 maxPriceAge_) external onlyRole(DEFAULT_ADMIN_ROLE) {
        emit MaxPriceAgeUpdated(_maxPriceAge, maxPriceAge_);
        _maxPriceAge = maxPriceAge_.toUint32();
    }

    /// @inheritdoc IMandateVault
    function setTradingPaused(bool paused) external {
        _checkPauser(paused);
        tradingPaused = paused;
        emit TradingPausedUpdated(paused);
    }

    /// @inheritdoc IMandateVault
    function syncPriceOracle() external onlyRole(DEFAULT_ADMIN_ROLE) {
        _followPriceOracle();
    }

    /// @inheritdoc IMandateVault
    function pullAssetsForTrade(address to, uint256 amount) external onlyTradeRouter {
        if (tradingPaused) revert TradingPaused();
        _idle -= amount.toUint96();
        IERC20(asset()).safeTransfer(to, amount);
    }

    /// @inheritdoc IMandateVault
    function pullTokenForTrade(address token, address to, uint256 amount) external onlyTradeRouter {
        if (tradingPaused) revert TradingPaused();
        _pullToken(token, to, amount);
    }

    /// @inheritdoc IMandateVault
    function pullTokenForForceClose(address token, address to, uint256 amount) external onlyTradeRouter {
        _pullToken(token, to, amount);
    }

    /// @inheritdoc IMandateVault
    function recordReceived(address token, uint256 amount) external onlyTradeRouter returns (uint256 ledger) {
        if (token == asset()) return _idle += amount.toUint96();
        Holding storage holding = _holdings[token];
        if (holding.ledger == 0) _heldMask |= _bitOf(holding.index);
        ledger = holding.ledger + amount;
        holding.ledger = ledger.toUint128();
    }

    /// @inheritdoc IMandateVault
    function buyContextOf(address token)
        external
        view
        returns (address oracle, uint256 maxAge, bool paused, uint8 tokenDecimals, bool allowed)
    {
        Holding memory holding = _holdings[token];
        return (priceOracle, _maxPriceAge, tradingPaused, holding.decimals, _isAllowed(token, holding));
    }

    /// @inheritdoc IMandateVault
    function sellContextOf(address token)
        external
        view
        returns (address oracle, uint256 maxAge, bool paused, uint8 tokenDecimals)
    {
        return (priceOracle, _maxPriceAge, tradingPaused, _holdings[token].decimals);
    }

    /// @inheritdoc IMandateVault
    function isAllowedToken(address token) external view returns (bool) {
        return _isAllowed(token, _holdings[token]);
    }

    /// @inheritdoc IMandateVault
    function allowedTokenAt(uint256 index) external view returns (address) {
        return _allowedTokens[index];
    }

    /// @inheritdoc IMandateVault
    function allowedTokenCount() external view returns (uint256) {
        return _allowedTokens.length;
    }

    /// @inheritdoc IMandateVault
    function tokenLedger(address token) external view returns (uint256) {
        return _holdings[token].ledger;
    }

    /// @inheritdoc IMandateVault
    function isTokenWrittenOff(address token) external view returns (bool) {
        return _holdings[token].writtenOff;
    }

    /// @inheritdoc IMandateVault
    function maxPriceAge() external view returns (uint256) {
        return _maxPriceAge;
    }

    function _pullToken(address token, address to, uint256 amount) private {
        Holding storage holding = _holdings[token];
        uint256 ledger = holding.ledger;
        if (amount > ledger) revert InsufficientLedger(token, ledger, amount);

        holding.ledger = (ledger - amount).toUint128();
        if (amount == ledger) _heldMask &= ~_bitOf(holding.index);

        if (!IERC20(token).trySafeTransfer(to, amount)) _revertUnpaid(token, to, amount);
    }

    /// @dev Names what the issuer did, or passes on the token's own error. A sale that succeeds pays for no read.
    function _revertUnpaid(address token, address to, uint256 amount) private {
        (ITokenRegistry.Restriction restriction, address account,) =
            ITokenRegistry(tokenRegistry).restrictionOf(token, address(this), amount);
        if (restriction != ITokenRegistry.Restriction.None) revert TokenRestricted(token, uint8(restriction), account);
        IERC20(token).safeTransfer(to, amount);
    }

    function _isAllowed(address token, Holding memory holding) private view returns (bool) {
        return holding.enabled && !holding.writtenOff && ITokenRegistry(tokenRegistry).isTokenActive(token);
    }

    /// @dev Stopping is for the guardian and the operator, resuming for the operator.
    function _checkPauser(bool paused) internal view {
        if (!paused || !hasRole(GUARDIAN_ROLE, msg.sender)) _checkRole(OPERATOR_ROLE);
    }

    /// @inheritdoc IMandateVault
    function totalAssetsRange() public view returns (uint256 low, uint256 high) {
        low = high = _idle;
        uint256 maxAge = _liquidityPolicy.maxPriceAge;
        if (maxAge == 0 || (_maxPriceAge != 0 && _maxPriceAge < maxAge)) maxAge = _maxPriceAge;
        uint256 held = _heldMask & ~MASK_MARKER;
        for (uint256 i; held != 0; ++i) {
            if (held & 1 != 0) {
                Holding memory holding = _holdings[_allowedTokens[i]];
                if (!holding.writtenOff) {
                    (uint256 lower, uint256 higher) = IPriceOracle(priceOracle).priceRangeOf(_allowedTokens[i], maxAge);
                    low += _sellableValue(_allowedTokens[i], holding, lower);
                    high += PriceMath.usdcValue(holding.ledger, higher, holding.decimals);
                }
            }
            held >>= 1;
        }
    }

    /// @dev The lower value of a token: of as much as the vault can sell at a price from after the last corporate action.
    function _sellableValue(address token, Holding memory holding, uint256 price) private view returns (uint256) {
        if (price == 0) return 0;
        uint256 amount = ITokenRegistry(tokenRegistry).countableOf(token, address(this), holding.ledger);
        return PriceMath.usdcValue(amount, price, holding.decimals);
    }

    function _followPriceOracle() private {
        address current = priceOracle;
        address next = ITokenRegistry(tokenRegistry).priceOracle();
        if (next == address(0)) revert ZeroAddress();
        for (uint256 i; i < _allowedTokens.length; ++i) {
            address token = _allowedTokens[i];
            (,, uint80 offered) = IPriceOracle(next).peekPrice(token);
            uint80 held = _roundAt(current, token);
            if (offered < held) revert OracleRoundsBehind(token, held, offered);
        }
        emit PriceOracleUpdated(current, next);
        priceOracle = next;
    }

    /// @dev An oracle that does not answer must not keep the vault from leaving it.
    function _roundAt(address oracle, address token) private view returns (uint80) {
        try IPriceOracle(oracle).peekPrice(token) returns (uint256, uint64, uint80 round) {
            return round;
        } catch {
            return 0;
        }
    }

    /// @dev USDC that what agents hold of the token counts for.
    function _valueOf(address token) internal view returns (uint256) {
        Holding memory holding = _holdings[token];
        if (holding.writtenOff) return 0;
        (uint256 price,,) = IPriceOracle(priceOracle).peekPrice(token);
        return PriceMath.usdcValue(holding.ledger, price, holding.decimals);
    }

    function _isKnown(address token) private view returns (bool) {
        uint256 index = _holdings[token].index;
        return index < _allowedTokens.length && _allowedTokens[index] == token;
    }

    function _bitOf(uint256 index) private pure returns (uint256) {
        // forge-lint: disable-next-line(incorrect-shift)
        return 1 << index;
    }
}
