// SPDX-License-Identifier: MIT
pragma solidity ^0.8.30;

import {IERC20} from "@openzeppelin/contracts/token/ERC20/IERC20.sol";
import {IERC20Metadata} from "@openzeppelin/contracts/token/ERC20/extensions/IERC20Metadata.sol";
import {ERC20} from "@openzeppelin/contracts/token/ERC20/ERC20.sol";
import {ERC4626} from "@openzeppelin/contracts/token/ERC20/extensions/ERC4626.sol";
import {IERC4626} from "@openzeppelin/contracts/interfaces/IERC4626.sol";
import {Math} from "@openzeppelin/contracts/utils/math/Math.sol";
import {SafeCast} from "@openzeppelin/contracts/utils/math/SafeCast.sol";
import {PriceCarrier} from "./access/PriceCarrier.sol";
import {TwoStepAdmin} from "./access/TwoStepAdmin.sol";
import {IMandateVault} from "./interfaces/IMandateVault.sol";
import {IRequestQueue} from "./interfaces/IRequestQueue.sol";
import {CircuitBreaker} from "./vault/CircuitBreaker.sol";
import {ShareFees} from "./vault/ShareFees.sol";
import {ShareLocks} from "./vault/ShareLocks.sol";
import {TokenTrading} from "./vault/TokenTrading.sol";

/// @title The vault whose capital agents trade
/// @notice Deposits and redemptions. The parts in `vault/` have the rest: trades, fees, locks and the circuit breaker.
/// @dev `IMandateVault` describes the functions.
contract MandateVault is ShareLocks, ShareFees, CircuitBreaker, PriceCarrier {
    using SafeCast for uint256;

    /// @inheritdoc IMandateVault
    bytes32 public immutable vaultName;

    /// @inheritdoc IMandateVault
    /// @dev In the slot of `tradingPaused`, the last one of `TokenTrading`.
    bool public liquidityPaused;

    /// @inheritdoc IMandateVault
    address public requestQueue;

    modifier whenLiquid() {
        _checkLiquid();
        _forgetJump();
        _;
        _anchorSharePrice();
    }

    constructor(
        address admin,
        address asset_,
        string memory name_,
        string memory symbol_,
        bytes32 vaultName_,
        address tokenRegistry_
    ) ERC20(name_, symbol_) ERC4626(IERC20(asset_)) TwoStepAdmin(admin) TokenTrading(tokenRegistry_) {
        if (admin == address(0)) revert ZeroAddress();
        uint8 decimals_ = IERC20Metadata(asset_).decimals();
        if (decimals_ != USDC_DECIMALS) revert InvalidAssetDecimals(decimals_);
        vaultName = vaultName_;
    }

    /// @inheritdoc IMandateVault
    function setLiquidityPaused(bool paused) external {
        _checkPauser(paused);
        liquidityPaused = paused;
        emit LiquidityPausedUpdated(paused);
    }

    /// @inheritdoc IMandateVault
    function setRequestQueue(address queue) external onlyRole(DEFAULT_ADMIN_ROLE) {
        if (queue != address(0) && IRequestQueue(queue).vault() != address(this)) revert InvalidRequestQueue(queue);
        emit RequestQueueUpdated(requestQueue, queue);
        requestQueue = queue;
    }

    /// @inheritdoc IMandateVault
    /// @dev Also shares within their holding time.
    function burnFirstLoss(address owner, uint256 shares) external onlyAllocationManager {
        firstLossShares[owner] -= shares;
        super._update(owner, address(0), shares);
    }

    /// @inheritdoc IERC4626
    function deposit(uint256 assets, address receiver) public override(ERC4626, IERC4626) whenLiquid returns (uint256) {
        return super.deposit(assets, receiver);
    }

    /// @inheritdoc IERC4626
    function mint(uint256 shares, address receiver) public override(ERC4626, IERC4626) whenLiquid returns (uint256) {
        return super.mint(shares, receiver);
    }

    /// @inheritdoc IERC4626
    function withdraw(uint256 assets, address receiver, address owner)
        public
        override(ERC4626, IERC4626)
        whenLiquid
        returns (uint256)
    {
        return super.withdraw(assets, receiver, owner);
    }

    /// @inheritdoc IERC4626
    function redeem(uint256 shares, address receiver, address owner)
        public
        override(ERC4626, IERC4626)
        whenLiquid
        returns (uint256)
    {
        return super.redeem(shares, receiver, owner);
    }

    /// @inheritdoc IERC4626
    function totalAssets() public view override(ERC4626, IERC4626) returns (uint256 total) {
        total = _idle;
        uint256 held = _heldMask & ~MASK_MARKER;
        for (uint256 i; held != 0; ++i) {
            if (held & 1 != 0) {
                total += _valueOf(_allowedTokens[i]);
            }
            held >>= 1;
        }
    }

    /// @inheritdoc IERC4626
    function maxDeposit(address) public view override(ERC4626, IERC4626) returns (uint256) {
        return _isClosed() ? 0 : type(uint96).max - _idle;
    }

    /// @inheritdoc IERC4626
    function maxMint(address receiver) public view override(ERC4626, IERC4626) returns (uint256) {
        return previewDeposit(maxDeposit(receiver));
    }

    /// @inheritdoc IERC4626
    function maxWithdraw(address owner) public view override(ERC4626, IERC4626) returns (uint256) {
        if (_isClosed()) return 0;
        return Math.min(previewRedeem(_availableShares(owner)), _idle - _feeOf(_idle, _withdrawFeeBps));
    }

    /// @inheritdoc IERC4626
    function maxRedeem(address owner) public view override(ERC4626, IERC4626) returns (uint256) {
        if (_isClosed()) return 0;
        (uint256 low,) = totalAssetsRange();
        return Math.min(_availableShares(owner), _sharesFor(_idle, low, Math.Rounding.Floor));
    }

    /// @inheritdoc IERC4626
    function previewDeposit(uint256 assets) public view override(ERC4626, IERC4626) returns (uint256) {
        (, uint256 high) = totalAssetsRange();
        return _sharesFor(assets - _feeOf(assets, _depositFeeBps), high, Math.Rounding.Floor);
    }

    /// @inheritdoc IERC4626
    function previewMint(uint256 shares) public view override(ERC4626, IERC4626) returns (uint256) {
        (, uint256 high) = totalAssetsRange();
        return _grossOf(_assetsFor(shares, high, Math.Rounding.Ceil), _depositFeeBps);
    }

    /// @inheritdoc IERC4626
    function previewWithdraw(uint256 assets) public view override(ERC4626, IERC4626) returns (uint256) {
        (uint256 low,) = totalAssetsRange();
        return _sharesFor(_grossOf(assets, _withdrawFeeBps), low, Math.Rounding.Ceil);
    }

    /// @inheritdoc IERC4626
    function previewRedeem(uint256 shares) public view override(ERC4626, IERC4626) returns (uint256) {
        (uint256 low,) = totalAssetsRange();
        uint256 assets = _assetsFor(shares, low, Math.Rounding.Floor);
        return assets - _feeOf(assets, _withdrawFeeBps);
    }

    /// @dev `assets` is what the caller pays, the fee included.
    function _deposit(address caller, address receiver, uint256 assets, uint256 shares) internal override {
        super._deposit(caller, receiver, assets, shares);
        _lock(receiver, shares);
        _idle += (assets - _payFee(_feeOf(assets, _depositFeeBps))).toUint96();
    }

    /// @dev `assets` is what the receiver gets, the fee left aside.
    function _withdraw(address caller, address receiver, address owner, uint256 assets, uint256 shares)
        internal
        override
    {
        super._withdraw(caller, receiver, owner, assets, shares);
        _idle -= (assets + _payFee(_grossOf(assets, _withdrawFeeBps) - assets)).toUint96();
    }

    function _update(address from, address to, uint256 shares) internal override {
        if (from != address(0)) _checkUnlocked(from, shares);
        super._update(from, to, shares);
    }

    /// @dev Shares are neither made nor redeemed while their price is not known.
    function _isClosed() private view returns (bool jumped) {
        if (liquidityPaused) return true;
        (jumped,,) = _checkSharePrice();
    }

    function _checkLiquid() private view {
        if (liquidityPaused) revert LiquidityPaused();
        _checkNoTrade();
        (bool jumped, uint256 anchor, uint256 price) = _checkSharePrice();
        if (jumped) revert SharePriceJumped(anchor, price, _liquidityPolicy.maxMoveBps);
    }
}
