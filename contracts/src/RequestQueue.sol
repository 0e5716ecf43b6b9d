// SPDX-License-Identifier: MIT
pragma solidity ^0.8.30;

import {IERC20} from "@openzeppelin/contracts/token/ERC20/IERC20.sol";
import {SafeERC20} from "@openzeppelin/contracts/token/ERC20/utils/SafeERC20.sol";
import {Math} from "@openzeppelin/contracts/utils/math/Math.sol";
import {SafeCast} from "@openzeppelin/contracts/utils/math/SafeCast.sol";
import {PriceCarrier} from "./access/PriceCarrier.sol";
import {IMandateVault} from "./interfaces/IMandateVault.sol";
import {IPriceOracle} from "./interfaces/IPriceOracle.sol";
import {IRequestQueue} from "./interfaces/IRequestQueue.sol";
import {PriceMath} from "./libraries/PriceMath.sol";

/// @title Deposits and redemptions of one vault that wait for the next price
/// @notice Has no owner and no setting. It deposits and redeems as any account does, so the vault's fees, holding time,
/// pause and breaker hold for requests too.
contract RequestQueue is IRequestQueue, PriceCarrier {
    using Math for uint256;
    using SafeCast for uint256;
    using SafeERC20 for IERC20;

    /// @notice The smallest request, in USDC: settling a smaller one would cost others more than it is worth
    uint256 public constant MIN_ASSETS = 10e6;

    /// @notice How far what a deposit pays and what a redemption gets may differ when requests settle. The vault itself
    /// accepts more, but who deposits or redeems there sees the price first.
    uint256 public constant MAX_SPREAD_BPS = 100;

    /// @dev A line of requests in their order; those before `head` are done.
    struct Line {
        uint256 head;
        Request[] requests;
    }

    IMandateVault private immutable _vault;
    IERC20 private immutable _asset;

    Line private _deposits;
    Line private _redemptions;

    /// @inheritdoc IRequestQueue
    mapping(address controller => uint256) public claimableAssets;

    constructor(address vault_) {
        if (vault_ == address(0)) revert ZeroAddress();
        _vault = IMandateVault(vault_);
        _asset = IERC20(IMandateVault(vault_).asset());
        _asset.forceApprove(vault_, type(uint256).max);
    }

    /// @inheritdoc IRequestQueue
    function requestDeposit(uint256 assets, address controller, address owner) external returns (uint256 requestId) {
        if (assets < MIN_ASSETS) revert RequestTooSmall(assets, MIN_ASSETS);
        requestId = _append(_deposits, assets, controller, owner);
        emit DepositRequest(controller, owner, requestId, msg.sender, assets);

        _asset.safeTransferFrom(owner, address(this), assets);
    }

    /// @inheritdoc IRequestQueue
    function requestRedeem(uint256 shares, address controller, address owner) external returns (uint256 requestId) {
        uint256 assets = _vault.convertToAssets(shares);
        if (assets < MIN_ASSETS) revert RequestTooSmall(assets, MIN_ASSETS);
        requestId = _append(_redemptions, shares, controller, owner);
        emit RedeemRequest(controller, owner, requestId, msg.sender, shares);

        IERC20(address(_vault)).safeTransferFrom(owner, address(this), shares);
    }

    /// @inheritdoc IRequestQueue
    function cancelDepositRequest(uint256 requestId, address controller) external {
        uint256 assets = _cancel(_deposits, requestId, controller);
        emit DepositRequestCanceled(controller, requestId, assets);
        _asset.safeTransfer(controller, assets);
    }

    /// @inheritdoc IRequestQueue
    function cancelRedeemRequest(uint256 requestId, address controller) external {
        uint256 shares = _cancel(_redemptions, requestId, controller);
        emit RedeemRequestCanceled(controller, requestId, shares);
        IERC20(address(_vault)).safeTransfer(controller, shares);
    }

    /// @inheritdoc IRequestQueue
    function settle(uint256 maxDeposits, uint256 maxRedemptions)
        external
        returns (uint256 deposits, uint256 redemptions)
    {
        uint256 before = settleableBefore();
        deposits = _settleDeposits(maxDeposits, before);
        redemptions = _settleRedemptions(maxRedemptions, before);
    }

    /// @inheritdoc IRequestQueue
    function claimAssets(address controller) external returns (uint256 assets) {
        assets = claimableAssets[controller];
        claimableAssets[controller] = 0;
        emit AssetsClaimed(controller, assets);
        _asset.safeTransfer(controller, assets);
    }

    /// @inheritdoc IRequestQueue
    function pendingDepositRequest(uint256 requestId, address controller) external view returns (uint256) {
        return _pending(_deposits, requestId, controller);
    }

    /// @inheritdoc IRequestQueue
    function pendingRedeemRequest(uint256 requestId, address controller) external view returns (uint256) {
        return _pending(_redemptions, requestId, controller);
    }

    /// @inheritdoc IRequestQueue
    function depositRequest(uint256 requestId) external view returns (Request memory) {
        return _deposits.requests[requestId - 1];
    }

    /// @inheritdoc IRequestQueue
    function redeemRequest(uint256 requestId) external view returns (Request memory) {
        return _redemptions.requests[requestId - 1];
    }

    /// @inheritdoc IRequestQueue
    function heads() external view returns (uint256, uint256, uint256, uint256) {
        return
            (_deposits.head + 1, _deposits.requests.length + 1, _redemptions.head + 1, _redemptions.requests.length + 1);
    }

    /// @inheritdoc IRequestQueue
    function vault() external view returns (address) {
        return address(_vault);
    }

    /// @inheritdoc IRequestQueue
    function settleableBefore() public view returns (uint256 before) {
        if (_vault.maxDeposit(address(this)) == 0 || !_isVerified()) return 0;
        before = block.timestamp;
        IPriceOracle oracle = IPriceOracle(_vault.priceOracle());
        uint256 maxAge = _maxPriceAge();
        for (uint256 i = _vault.allowedTokenCount(); i != 0; --i) {
            address token = _vault.allowedTokenAt(i - 1);
            if (_vault.tokenLedger(token) == 0 || _vault.isTokenWrittenOff(token)) continue;
            // It counts for nothing and fully, so the spread bounds what it may be worth: dust stops nothing.
            if (oracle.isStale(token, maxAge)) continue;
            (, uint64 observedAt,) = oracle.peekPrice(token);
            before = Math.min(before, observedAt);
        }
    }

    function _append(Line storage line, uint256 amount, address controller, address owner)
        private
        returns (uint256 requestId)
    {
        if (owner != msg.sender) revert NotOwner(owner, msg.sender);
        if (controller == address(0)) revert ZeroAddress();
        line.requests.push(Request(controller, block.timestamp.toUint40(), amount.toUint128()));
        return line.requests.length;
    }

    function _cancel(Line storage line, uint256 requestId, address controller) private returns (uint256 amount) {
        if (controller != msg.sender) revert NotController(controller, msg.sender);
        amount = _pending(line, requestId, controller);
        if (amount == 0) revert RequestNotPending(requestId);
        line.requests[requestId - 1].amount = 0;
    }

    function _settleDeposits(uint256 max, uint256 before) private returns (uint256 settled) {
        uint256 at = _deposits.head;
        uint256 end = Math.min(_deposits.requests.length, at.saturatingAdd(max));
        for (; at < end; ++at) {
            Request memory request = _deposits.requests[at];
            if (request.amount == 0) continue;
            if (request.madeAt >= before) break;

            _deposits.requests[at].amount = 0;
            ++settled;
            uint256 shares = _vault.deposit(request.amount, request.controller);
            emit DepositRequestSettled(request.controller, at + 1, request.amount, shares);
        }
        _deposits.head = at;
    }

    /// @dev Stops at the first redemption that idle USDC does not cover: no later one passes it.
    function _settleRedemptions(uint256 max, uint256 before) private returns (uint256 settled) {
        uint256 at = _redemptions.head;
        uint256 end = Math.min(_redemptions.requests.length, at.saturatingAdd(max));
        for (; at < end; ++at) {
            Request memory request = _redemptions.requests[at];
            if (request.amount == 0) continue;
            // What leaves widens the spread of what stays.
            if (request.madeAt >= before || !_isVerified()) break;
            uint256 shares = Math.min(request.amount, _vault.maxRedeem(address(this)));
            uint256 left = request.amount - shares;
            if (shares == 0 || (left != 0 && _vault.previewRedeem(shares) < MIN_ASSETS)) break;

            _redemptions.requests[at].amount = left.toUint128();
            ++settled;
            uint256 assets = _vault.redeem(shares, address(this), address(this));
            emit RedeemRequestSettled(request.controller, at + 1, shares, assets, left);
            // A controller that cannot be paid must not keep the others waiting.
            if (!_asset.trySafeTransfer(request.controller, assets)) {
                claimableAssets[request.controller] += assets;
                emit PayoutHeld(request.controller, at + 1, assets);
            }
            if (left != 0) break;
        }
        _redemptions.head = at;
    }

    function _isVerified() private view returns (bool) {
        (uint256 low, uint256 high) = _vault.totalAssetsRange();
        return (high - low) * PriceMath.BPS <= high * MAX_SPREAD_BPS;
    }

    /// @dev The age that the vault itself accepts when it prices shares.
    function _maxPriceAge() private view returns (uint256) {
        uint256 own = _vault.liquidityPolicy().maxPriceAge;
        uint256 limit = _vault.maxPriceAge();
        return own == 0 || (limit != 0 && limit < own) ? limit : own;
    }

    function _pending(Line storage line, uint256 requestId, address controller) private view returns (uint256) {
        if (requestId == 0 || requestId > line.requests.length) return 0;
        Request memory request = line.requests[requestId - 1];
        return request.controller == controller ? request.amount : 0;
    }
}
