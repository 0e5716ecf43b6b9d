// SPDX-License-Identifier: MIT
pragma solidity ^0.8.30;

import {Math} from "@openzeppelin/contracts/utils/math/Math.sol";
import {TwoStepAdmin} from "./access/TwoStepAdmin.sol";
import {ISwapAdapter} from "./interfaces/ISwapAdapter.sol";
import {ITradePolicy} from "./interfaces/ITradePolicy.sol";

/// @title The slippage, size, price and deadline policy of each vault and track
/// @dev `ITradePolicy` documents the functions. A vault and track without limits of its own gets the default ones.
contract TradePolicy is ITradePolicy, TwoStepAdmin {
    uint256 private constant BPS = 10_000;

    /// @notice The bounds of what the admin may set
    uint256 public constant MAX_ENTRY_SLIPPAGE_BPS = 1_000;
    uint256 public constant MAX_EXIT_SLIPPAGE_BPS = 2_000;
    uint256 public constant MAX_WIDENING_SECONDS = 1 days;
    uint256 public constant MAX_TWAP_WINDOW = 1 hours;

    /// @notice The least bound of deadlines; the router does not ask about nearer ones when a ladder is updated
    uint256 public constant MIN_DEADLINE_SECONDS = 10 minutes;

    /// @dev One slot each. Limits without an exit slippage were never set.
    mapping(address vault => mapping(uint256 trackId => Limits)) private _limits;

    /// @inheritdoc ITradePolicy
    mapping(address token => bool) public isTwapRequired;

    constructor(address admin) TwoStepAdmin(admin) {
        if (admin == address(0)) revert ZeroAddress();
    }

    /// @inheritdoc ITradePolicy
    function setLimits(address vault, uint256 trackId, Limits calldata limits) external onlyRole(DEFAULT_ADMIN_ROLE) {
        _checkMax(0, limits.maxEntrySlippageBps, MAX_ENTRY_SLIPPAGE_BPS);
        _checkMax(1, limits.maxExitSlippageBps, MAX_EXIT_SLIPPAGE_BPS);
        // An exit that must bring the oracle's full value can never be filled.
        if (limits.maxExitSlippageBps == 0) revert LimitOutOfRange(1, 0, MAX_EXIT_SLIPPAGE_BPS);
        _checkMax(2, limits.exitSlippageStartBps, limits.maxExitSlippageBps);
        _checkMax(3, limits.exitWideningSeconds, MAX_WIDENING_SECONDS);
        _checkMax(5, limits.maxSpotDeviationBps, BPS);
        _checkMax(6, limits.maxTwapDeviationBps, BPS);
        _checkMax(7, limits.twapWindow, MAX_TWAP_WINDOW);
        if (limits.maxDeadlineSeconds != 0 && limits.maxDeadlineSeconds < MIN_DEADLINE_SECONDS) {
            revert LimitOutOfRange(8, limits.maxDeadlineSeconds, MIN_DEADLINE_SECONDS);
        }

        _limits[vault][trackId] = limits;
        emit LimitsUpdated(vault, trackId, limits);
    }

    /// @inheritdoc ITradePolicy
    function setTwapRequired(address token, bool required) external onlyRole(DEFAULT_ADMIN_ROLE) {
        isTwapRequired[token] = required;
        emit TwapRequiredUpdated(token, required);
    }

    /// @inheritdoc ITradePolicy
    function checkBuy(Market calldata market, uint256 usdcAmount, uint256 maxSlippageBps, uint256 deadline)
        external
        view
        returns (uint256 slippageBps, uint256 fairPrice)
    {
        Limits memory limits = _limits[market.vault][market.trackId];
        if (limits.maxExitSlippageBps == 0) limits = _defaultLimits();
        _checkDeadline(limits, deadline);
        if (maxSlippageBps > limits.maxEntrySlippageBps) {
            revert SlippageAboveLimit(maxSlippageBps, limits.maxEntrySlippageBps);
        }
        if (usdcAmount < limits.minTradeUsdc) revert TradeTooSmall(usdcAmount, limits.minTradeUsdc);
        return (_slippage(market, limits, maxSlippageBps), _checkPrices(market, limits, true));
    }

    /// @inheritdoc ITradePolicy
    function checkReduce(Market calldata market, uint256 usdcValue, uint256 signedSlippageBps, uint256 deadline)
        external
        view
        returns (uint256 slippageBps, uint256 fairPrice)
    {
        Limits memory limits = _limits[market.vault][market.trackId];
        if (limits.maxExitSlippageBps == 0) limits = _defaultLimits();
        _checkDeadline(limits, deadline);
        if (usdcValue < limits.minTradeUsdc) revert TradeTooSmall(usdcValue, limits.minTradeUsdc);
        slippageBps = Math.min(Math.max(signedSlippageBps, limits.exitSlippageStartBps), limits.maxExitSlippageBps);
        return (_slippage(market, limits, slippageBps), _checkPrices(market, limits, false));
    }

    /// @inheritdoc ITradePolicy
    function checkExit(Market calldata market) external view returns (uint256 slippageBps, uint256 fairPrice) {
        Limits memory limits = _limits[market.vault][market.trackId];
        if (limits.maxExitSlippageBps == 0) limits = _defaultLimits();
        fairPrice = _checkPrices(market, limits, false);
        slippageBps = _exitSlippage(limits, market.dueSince);
    }

    /// @inheritdoc ITradePolicy
    function checkForceClose(Market calldata market) external view returns (uint256 price, uint256 slippageBps) {
        Limits memory limits = _limitsOf(market.vault, market.trackId);
        uint32 window = limits.twapWindow == 0 ? _defaultLimits().twapWindow : limits.twapWindow;
        (, price) = ISwapAdapter(market.adapter).pricesOf(market.token, window);
        if (price == 0) revert TwapUnavailable(market.token);
        uint256 max = limits.maxTwapDeviationBps;
        if (max != 0 && market.price != 0 && _isBeyond(price, market.price, max)) {
            revert TwapDeviation(market.token, price, market.price, max);
        }
        return (price, limits.maxExitSlippageBps);
    }

    /// @inheritdoc ITradePolicy
    function checkDeadline(address vault, uint256 trackId, uint256 deadline) external view {
        _checkDeadline(_limitsOf(vault, trackId), deadline);
    }

    /// @inheritdoc ITradePolicy
    function exitSlippageBps(address vault, uint256 trackId, uint256 dueSince) external view returns (uint256) {
        return _exitSlippage(_limitsOf(vault, trackId), dueSince);
    }

    /// @inheritdoc ITradePolicy
    function limitsOf(address vault, uint256 trackId) external view returns (Limits memory) {
        return _limitsOf(vault, trackId);
    }

    /// @dev Returns the fair price.
    function _checkPrices(Market calldata market, Limits memory limits, bool isBuy)
        private
        view
        returns (uint256 fair)
    {
        fair = market.price;
        uint256 maxSpot = limits.maxSpotDeviationBps;
        uint256 maxTwap = limits.maxTwapDeviationBps;
        uint32 window = maxTwap == 0 ? 0 : limits.twapWindow;
        if (maxSpot == 0 && window == 0) return fair;

        (uint256 spot, uint256 twap) = ISwapAdapter(market.adapter).pricesOf(market.token, window);
        if (maxSpot != 0 && (isBuy || spot < market.price) && _isBeyond(spot, market.price, maxSpot)) {
            revert SpotPriceDeviation(market.token, spot, market.price, maxSpot);
        }
        if (window == 0) return fair;
        if (twap == 0) {
            if (isTwapRequired[market.token]) revert TwapUnavailable(market.token);
        } else if (_isBeyond(twap, market.price, maxTwap)) {
            revert TwapDeviation(market.token, twap, market.price, maxTwap);
        } else if (block.timestamp > market.observedAt + window / 2) {
            // The average is half a window old in the mean: it knows more than an older price.
            fair = isBuy ? Math.min(fair, twap) : Math.max(fair, twap);
        }
    }

    /// @dev Of a stranger's order at most that of an exit, so that moving the pool before and after brings it no more.
    function _slippage(Market calldata market, Limits memory limits, uint256 signedBps) private view returns (uint256) {
        return market.dueSince == 0 ? signedBps : Math.min(signedBps, _exitSlippage(limits, market.dueSince));
    }

    /// @dev The checks of a trade do this themselves: a struct that a function returns is zeroed first.
    function _limitsOf(address vault, uint256 trackId) private view returns (Limits memory limits) {
        limits = _limits[vault][trackId];
        if (limits.maxExitSlippageBps == 0) limits = _defaultLimits();
    }

    function _defaultLimits() private pure returns (Limits memory) {
        return Limits({
            maxEntrySlippageBps: 100,
            maxExitSlippageBps: 300,
            exitSlippageStartBps: 50,
            exitWideningSeconds: 15 minutes,
            minTradeUsdc: 1e6,
            maxSpotDeviationBps: 300,
            maxTwapDeviationBps: 1_000,
            twapWindow: 5 minutes,
            maxDeadlineSeconds: 30 days
        });
    }

    function _checkDeadline(Limits memory limits, uint256 deadline) private view {
        if (limits.maxDeadlineSeconds == 0) return;
        uint256 latest = block.timestamp + limits.maxDeadlineSeconds;
        if (deadline > latest) revert DeadlineTooFar(deadline, latest);
    }

    /// @dev Grows linearly from the start to the maximum.
    function _exitSlippage(Limits memory limits, uint256 dueSince) private view returns (uint256) {
        uint256 elapsed = block.timestamp - dueSince;
        if (elapsed >= limits.exitWideningSeconds) return limits.maxExitSlippageBps;
        uint256 range = limits.maxExitSlippageBps - limits.exitSlippageStartBps;
        return limits.exitSlippageStartBps + range * elapsed / limits.exitWideningSeconds;
    }

    function _isBeyond(uint256 price, uint256 oraclePrice, uint256 maxBps) private pure returns (bool) {
        uint256 distance = price > oraclePrice ? price - oraclePrice : oraclePrice - price;
        return distance * BPS > oraclePrice * maxBps;
    }

    function _checkMax(uint256 field, uint256 value, uint256 max) private pure {
        if (value > max) revert LimitOutOfRange(field, value, max);
    }
}
