// SPDX-License-Identifier: MIT
pragma solidity ^0.8.30;

import {IERC20} from "@openzeppelin/contracts/token/ERC20/IERC20.sol";
import {Math} from "@openzeppelin/contracts/utils/math/Math.sol";
import {SafeCast} from "@openzeppelin/contracts/utils/math/SafeCast.sol";
import {IAgentRegistry} from "./interfaces/IAgentRegistry.sol";
import {IAllocationManager} from "./interfaces/IAllocationManager.sol";
import {IMandateVault} from "./interfaces/IMandateVault.sol";
import {IOwnerControls} from "./interfaces/IOwnerControls.sol";
import {IPositionManager} from "./interfaces/IPositionManager.sol";
import {IPriceOracle} from "./interfaces/IPriceOracle.sol";
import {ITradeRouter} from "./interfaces/ITradeRouter.sol";
import {IVaultTrackRegistry} from "./interfaces/IVaultTrackRegistry.sol";
import {ExitLadder} from "./libraries/ExitLadder.sol";
import {ExitRules} from "./libraries/ExitRules.sol";
import {ExitTrigger} from "./libraries/ExitTrigger.sol";
import {MandateState} from "./libraries/MandateState.sol";
import {PriceMath} from "./libraries/PriceMath.sol";
import {Signatures} from "./libraries/Signatures.sol";

/// @title What each agent signed and did, and the limits that its track sets
/// @notice The trade router creates this contract and books every intent and trade in it, so no replaceable policy can
/// loosen a track. `ITradeRouter` documents the figures; USDC amounts have 6 decimals.
contract AgentLedger {
    using ExitLadder for uint256;
    using ExitRules for uint256;
    using ExitTrigger for IPositionManager.PositionState;
    using MandateState for uint256;
    using SafeCast for uint256;
    using SafeCast for int256;

    /// @dev One slot, written by every call of the agent: its nonce, its trades, and what it did on its last trading day.
    /// 64 bits hold 18 trillion USDC. `bounty` is what keepers got for its exits on that day, in 0.0001 USDC.
    struct Account {
        uint32 nonce;
        uint32 trades;
        uint32 day;
        uint64 turnover;
        int64 realizedPnl;
        uint32 bounty;
    }

    /// @dev One slot, all that a buy reads of the past: the agent's present track without its last trading day, and the
    /// trading day before that one, in whole USDC rounded up. 56 bits hold 36 billion USDC, signed.
    struct History {
        uint56 turnover;
        int56 realizedPnl;
        uint56 peakRealizedPnl;
        uint24 day;
        uint32 dayTurnover;
        uint32 dayLoss;
    }

    /// @dev One slot, written by a promotion: the agent's earlier tracks.
    struct Archive {
        uint64 turnover;
        int64 realizedPnl;
        uint32 trades;
        uint40 enteredAt;
    }

    /// @dev One slot per agent and past trading day. The worst figures are those of the track until the end of the day.
    struct Day {
        uint64 turnover;
        int64 realizedPnl;
        uint64 worstDrawdown;
        uint64 worstDayLoss;
    }

    /// @dev What a buy is measured against: the track's realized PnL and its peak, and yesterday's part of the last 24
    /// hours.
    struct Activity {
        int256 realizedPnl;
        uint256 peakRealizedPnl;
        uint256 turnover;
        uint256 loss;
    }

    /// @dev A vault's assets; `total` is read only when idle USDC does not suffice to decide.
    struct Assets {
        uint256 idle;
        uint256 total;
    }

    /// @dev `Account.bounty` counts 0.0001 USDC.
    uint256 private constant BOUNTY_UNIT = 100;
    uint256 private constant WHOLE_USDC = 1e6;

    address private immutable _router;
    IERC20 private immutable _usdc;
    IAgentRegistry private immutable _agents;
    IAllocationManager private immutable _allocations;
    IVaultTrackRegistry private immutable _tracks;

    mapping(uint256 agentId => Account) private _accounts;
    mapping(uint256 agentId => History) private _histories;
    mapping(uint256 agentId => Archive) private _archives;
    mapping(uint256 agentId => mapping(uint256 day => Day)) private _pastDays;

    error OnlyTradeRouter(address caller);

    modifier onlyTradeRouter() {
        if (msg.sender != _router) revert OnlyTradeRouter(msg.sender);
        _;
    }

    constructor(address usdc, address agentRegistry, address allocationManager, address vaultTrackRegistry) {
        _router = msg.sender;
        _usdc = IERC20(usdc);
        _agents = IAgentRegistry(agentRegistry);
        _allocations = IAllocationManager(allocationManager);
        _tracks = IVaultTrackRegistry(vaultTrackRegistry);
    }

    /// @notice Checks that the agent's signer signed `digest` with the agent's next nonce, and uses up the nonce
    /// @dev The errors: `AgentNotFound` (registry), `InvalidNonce`, `InvalidSignature`; for a buy also `RegistryPaused`,
    /// `AgentNotTradable`, `MandateStopsBuying`.
    /// @param isBuy Whether the intent buys: a pause of the registry and the agent's status and mandate stop those alone
    /// @return vault The agent's vault
    /// @return track The agent's track
    /// @return status The agent's status
    /// @return isRestricted Of a buy, whether the mandate has limits; of another intent, whether the mandate lets it loosen
    /// no ladder
    function authorize(uint256 agentId, uint256 nonce, bytes32 digest, bytes calldata signature, bool isBuy)
        external
        onlyTradeRouter
        returns (address vault, uint8 track, uint8 status, bool isRestricted)
    {
        address signer;
        uint256 mandate;
        bool registryPaused;
        if (isBuy) (signer, vault, track, status, mandate, registryPaused) = _agents.tradeContextOf(agentId);
        else (signer, vault, track, status, mandate) = _agents.saleContextOf(agentId);
        _useNonce(agentId, nonce);
        if (!Signatures.isValid(signer, digest, signature)) revert ITradeRouter.InvalidSignature();
        if (!isBuy) {
            isRestricted = mandate.mode() == uint8(IAgentRegistry.MandateMode.Stopped);
        } else {
            if (registryPaused) revert ITradeRouter.RegistryPaused();
            if (status != uint8(IAgentRegistry.AgentStatus.Active)) revert ITradeRouter.AgentNotTradable(agentId);
            if (mandate != 0) isRestricted = _checkMandate(agentId, mandate);
        }
    }

    /// @notice Uses up the agent's next nonce for its owner, its signer, or the contract that owners sign messages for
    function cancelNonce(uint256 agentId, uint256 nonce, address by) external onlyTradeRouter {
        (address signer,,,,) = _agents.saleContextOf(agentId);
        if (by != signer && by != _agents.ownerOf(agentId) && by != _agents.ownerControls()) {
            revert ITradeRouter.NotOwnerOrSigner(agentId, by);
        }
        _useNonce(agentId, nonce);
    }

    /// @notice Checks an open against the track and the limits, and books it
    /// @dev The checks: `VaultTrackNotActive`, those of `ExitRules`, those of `bookBuy`.
    /// @param limitedToken The token, where the agent's mandate has limits; else the zero address
    /// @return used What the agent uses of its cap after the buy
    /// @return capitalMode The `CapitalMode` that the agent trades with
    /// @return ladder The packed rules
    function bookOpen(
        uint256 agentId,
        address vault,
        uint256 trackId,
        uint256 amount,
        address limitedToken,
        IPositionManager.ExitRule[] calldata rules
    ) external onlyTradeRouter returns (uint256 used, uint8 capitalMode, uint256 ladder) {
        IVaultTrackRegistry.TradePolicy memory limits = _tracks.tradePolicyOf(vault, trackId);
        if (!limits.active) revert ITradeRouter.VaultTrackNotActive(vault, trackId);
        ladder = uint256(0).extend(rules, limits);
        (used, capitalMode) = _bookBuy(agentId, vault, amount, limitedToken, limits);
    }

    /// @notice Checks a buy against the limits and books it
    /// @dev The checks, in this order: `VaultTrackNotActive`, `AllocationNotActive`, `ExceedsAllocationCap`,
    /// `ExceedsMaxTradeSize`, `ExceedsDailyTurnover`, `ExceedsDailyLoss`, `ExceedsMaxDrawdown`,
    /// `InsufficientIdleAssets`, those of `IOwnerControls.checkBuy`. Idle USDC is a part of all assets: a check that passes
    /// on it alone needs no valuation of the vault's tokens.
    /// @param limitedToken The token, where the agent's mandate has limits; else the zero address
    /// @return used What the agent uses of its cap after the buy
    /// @return capitalMode The `CapitalMode` that the agent trades with
    function bookBuy(uint256 agentId, address vault, uint256 trackId, uint256 amount, address limitedToken)
        external
        onlyTradeRouter
        returns (uint256 used, uint8 capitalMode)
    {
        IVaultTrackRegistry.TradePolicy memory limits = _tracks.tradePolicyOf(vault, trackId);
        if (!limits.active) revert ITradeRouter.VaultTrackNotActive(vault, trackId);
        return _bookBuy(agentId, vault, amount, limitedToken, limits);
    }

    /// @notice Books a sale
    /// @param usdcOut What it brought
    /// @param released The cost basis of what was sold
    /// @param wantedBounty What a keeper is to get for it
    /// @param maxBounty What keepers get for the agent's exits per UTC day at most
    /// @return bounty What the keeper gets; the agent realizes the rest of `usdcOut`
    function bookSale(uint256 agentId, uint256 usdcOut, uint256 released, uint256 wantedBounty, uint256 maxBounty)
        external
        onlyTradeRouter
        returns (uint256 bounty)
    {
        Account memory account = _accounts[agentId];
        if (account.day != _today()) _startDay(agentId, account, _histories[agentId]);
        if (wantedBounty != 0) {
            bounty = Math.min(wantedBounty, Math.saturatingSub(maxBounty, account.bounty * BOUNTY_UNIT));
            account.bounty += Math.ceilDiv(bounty, BOUNTY_UNIT).toUint32();
        }
        int256 pnl = account.realizedPnl + (usdcOut - bounty).toInt256() - released.toInt256();
        account.realizedPnl = pnl.toInt64();
        ++account.trades;
        _accounts[agentId] = account;

        History storage history = _histories[agentId];
        int256 total = history.realizedPnl + pnl;
        if (total > int256(uint256(history.peakRealizedPnl))) {
            history.peakRealizedPnl = total.toUint256().toUint56();
        }
    }

    /// @notice Starts a new track record
    function enterTrack(uint256 agentId) external onlyTradeRouter {
        History memory history = _histories[agentId];
        Account memory account = _accounts[agentId];
        Archive storage archive = _archives[agentId];
        archive.turnover += history.turnover;
        archive.realizedPnl += history.realizedPnl + account.realizedPnl;
        archive.trades = account.trades;
        archive.enteredAt = block.timestamp.toUint40();

        // The last trading day stays in the account and counts later: its PnL is taken off in advance.
        history.turnover = 0;
        history.realizedPnl = int256(-account.realizedPnl).toInt56();
        history.peakRealizedPnl = 0;
        _histories[agentId] = history;
        Day storage last = _pastDays[agentId][history.day];
        last.worstDrawdown = 0;
        last.worstDayLoss = 0;
    }

    /// @notice Returns the ladder of a position after `rules` replace its pending ones
    /// @dev The checks, in this order: those of `ExitRules`, `MandateForbidsLooserLadder`, `PendingRuleAlreadyTriggered`.
    /// @param mustTighten Whether the new rules must protect at least as well as the pending ones
    /// @return ladder The packed rules, the fired ones first
    /// @return round The oracle's round of the token
    function replaceLadder(
        uint256 positionId,
        IPositionManager.PositionState memory position,
        IPositionManager.ExitRule[] calldata rules,
        address vault,
        uint256 trackId,
        bool mustTighten
    ) external view returns (uint256 ladder, uint256 round) {
        ladder = position.ladder.fired().extend(rules, _tracks.tradePolicyOf(vault, trackId));
        if (mustTighten && !ladder.protectsAsWellAs(position.ladder)) {
            revert ITradeRouter.MandateForbidsLooserLadder(positionId);
        }

        // The last known price, however old: protection can be changed while the market is closed.
        (address oracle,,, uint8 decimals) = IMandateVault(vault).sellContextOf(position.token);
        uint256 price;
        (price,, round) = IPriceOracle(oracle).peekPrice(position.token);
        int256 pnlBps = position.pnlBps(price, decimals);
        if (ladder.firstMet(ladder.next(), pnlBps) != ladder.count() || position.ladder.isStopMet(pnlBps)) {
            revert ITradeRouter.PendingRuleAlreadyTriggered(positionId);
        }
    }

    function nonces(uint256 agentId) external view returns (uint256) {
        return _accounts[agentId].nonce;
    }

    function dailyTurnoverUsdc(uint256 agentId, uint256 day) external view returns (uint256) {
        Account storage account = _accounts[agentId];
        return day == account.day ? account.turnover : _pastDays[agentId][day].turnover;
    }

    function dailyRealizedPnlUsdc(uint256 agentId, uint256 day) external view returns (int256) {
        Account storage account = _accounts[agentId];
        return day == account.day ? account.realizedPnl : _pastDays[agentId][day].realizedPnl;
    }

    function lifetimeRealizedPnlUsdc(uint256 agentId) external view returns (int256) {
        return _archives[agentId].realizedPnl + _trackPnl(agentId, _accounts[agentId]);
    }

    function lifetimeTurnoverUsdc(uint256 agentId) external view returns (uint256) {
        return uint256(_archives[agentId].turnover) + _histories[agentId].turnover + _accounts[agentId].turnover;
    }

    function tradeCount(uint256 agentId) external view returns (uint256) {
        return _accounts[agentId].trades;
    }

    function trackRecordOf(uint256 agentId) external view returns (ITradeRouter.TrackRecord memory) {
        History memory history = _histories[agentId];
        Account memory account = _accounts[agentId];
        Archive memory archive = _archives[agentId];
        Day memory last = _pastDays[agentId][history.day];
        int256 realizedPnl = _trackPnl(agentId, account);
        return ITradeRouter.TrackRecord({
            enteredAt: archive.enteredAt,
            trades: account.trades - archive.trades,
            realizedPnl: realizedPnl,
            peakRealizedPnl: history.peakRealizedPnl,
            worstDrawdown: Math.max(last.worstDrawdown, _drawdown(history.peakRealizedPnl, realizedPnl)),
            worstDayLoss: Math.max(last.worstDayLoss, _lossOf(account.realizedPnl))
        });
    }

    function effectiveCapOf(uint256 agentId, address vault) external view returns (uint256) {
        (uint256 cap,,, uint8 mode, uint256 totalCaps) = _allocations.buyAllocationOf(agentId, vault);
        return _effectiveCap(
            cap,
            _trackPnl(agentId, _accounts[agentId]),
            _isReal(mode) ? totalCaps : 0,
            vault,
            Assets(_usdc.balanceOf(vault), 0)
        );
    }

    function _bookBuy(
        uint256 agentId,
        address vault,
        uint256 amount,
        address limitedToken,
        IVaultTrackRegistry.TradePolicy memory limits
    ) private returns (uint256 used, uint8 capitalMode) {
        Account memory account = _accounts[agentId];
        History memory history = _histories[agentId];
        if (account.day != _today()) _startDay(agentId, account, history);
        Activity memory activity = _activityOf(account, history);
        Assets memory assets = Assets(_usdc.balanceOf(vault), 0);
        uint256 cap;
        (cap, used, capitalMode) = _checkAllocation(agentId, activity.realizedPnl, vault, amount, assets);
        _checkSize(agentId, activity.turnover + amount, vault, amount, limits, assets);
        _checkLosses(agentId, activity, cap, limits);
        if (_isReal(capitalMode) && assets.idle < amount) {
            revert ITradeRouter.InsufficientIdleAssets(assets.idle, amount);
        }
        if (limitedToken != address(0)) {
            IOwnerControls(_agents.ownerControls())
                .checkBuy(agentId, limitedToken, amount, activity.turnover + amount, used);
        }

        account.turnover += amount.toUint64();
        ++account.trades;
        _accounts[agentId] = account;
    }

    function _useNonce(uint256 agentId, uint256 nonce) private {
        Account storage account = _accounts[agentId];
        uint32 expected = account.nonce;
        if (nonce != expected) revert ITradeRouter.InvalidNonce(expected, nonce);
        account.nonce = expected + 1;
    }

    /// @return hasLimits Whether the mandate also has limits
    function _checkMandate(uint256 agentId, uint256 mandate) private view returns (bool hasLimits) {
        if (!mandate.isBuyingAllowed(block.timestamp)) {
            revert ITradeRouter.MandateStopsBuying(agentId, mandate.mode().toUint8(), mandate.validUntil());
        }
        return mandate.hasLimits();
    }

    /// @dev Closes the account's last trading day and starts today's.
    function _startDay(uint256 agentId, Account memory account, History memory history) private {
        if (account.turnover != 0 || account.realizedPnl != 0) _closeDay(agentId, account, history);
        account.day = _today().toUint32();
        account.turnover = 0;
        account.realizedPnl = 0;
        account.bounty = 0;
    }

    function _closeDay(uint256 agentId, Account memory account, History memory history) private {
        uint64 worstDrawdown;
        uint64 worstDayLoss;
        if (history.day != 0) {
            Day storage before = _pastDays[agentId][history.day];
            (worstDrawdown, worstDayLoss) = (before.worstDrawdown, before.worstDayLoss);
        }
        uint64 loss = _lossOf(account.realizedPnl).toUint64();
        history.turnover = (uint256(history.turnover) + account.turnover).toUint56();
        history.realizedPnl = (int256(history.realizedPnl) + account.realizedPnl).toInt56();
        history.day = uint256(account.day).toUint24();
        history.dayTurnover = Math.ceilDiv(account.turnover, WHOLE_USDC).toUint32();
        history.dayLoss = Math.ceilDiv(loss, WHOLE_USDC).toUint32();
        _histories[agentId] = history;

        uint256 drawdown = _drawdown(history.peakRealizedPnl, history.realizedPnl);
        if (drawdown > worstDrawdown) worstDrawdown = drawdown.toUint64();
        if (loss > worstDayLoss) worstDayLoss = loss;
        _pastDays[agentId][account.day] = Day(account.turnover, account.realizedPnl, worstDrawdown, worstDayLoss);
    }

    /// @dev Today's figures, and of yesterday's the part that lies within the last 24 hours, as if it was spread evenly
    /// over the day: midnight does not give a second day's limits at once. Stricter than protocol.md.
    function _activityOf(Account memory account, History memory history)
        private
        view
        returns (Activity memory activity)
    {
        activity.realizedPnl = int256(history.realizedPnl) + account.realizedPnl;
        activity.peakRealizedPnl = history.peakRealizedPnl;
        activity.turnover = account.turnover;
        activity.loss = _lossOf(account.realizedPnl);
        if (history.day + 1 == account.day) {
            uint256 remaining = 1 days - block.timestamp % 1 days;
            activity.turnover += history.dayTurnover * WHOLE_USDC * remaining / 1 days;
            activity.loss += history.dayLoss * WHOLE_USDC * remaining / 1 days;
        }
    }

    function _checkAllocation(uint256 agentId, int256 realizedPnl, address vault, uint256 amount, Assets memory assets)
        private
        view
        returns (uint256 cap, uint256 used, uint8 mode)
    {
        uint256 totalCaps;
        uint8 status;
        (cap, used, status, mode, totalCaps) = _allocations.buyAllocationOf(agentId, vault);
        if (status != uint8(IAllocationManager.AllocationStatus.Active)) {
            revert ITradeRouter.AllocationNotActive(agentId);
        }
        used = Math.saturatingAdd(used, amount);
        uint256 effective = _effectiveCap(cap, realizedPnl, _isReal(mode) ? totalCaps : 0, vault, assets);
        if (used > effective) revert ITradeRouter.ExceedsAllocationCap(agentId, used, effective);
    }

    function _checkSize(
        uint256 agentId,
        uint256 turnover,
        address vault,
        uint256 amount,
        IVaultTrackRegistry.TradePolicy memory limits,
        Assets memory assets
    ) private view {
        if (amount > PriceMath.shareOf(assets.idle, limits.maxTradeSizeBps)) {
            uint256 max = PriceMath.shareOf(_totalOf(vault, assets), limits.maxTradeSizeBps);
            if (amount > max) revert ITradeRouter.ExceedsMaxTradeSize(amount, max);
        }
        if (limits.maxDailyTurnoverBps == 0) return;
        if (turnover > PriceMath.shareOf(assets.idle, limits.maxDailyTurnoverBps)) {
            uint256 max = PriceMath.shareOf(_totalOf(vault, assets), limits.maxDailyTurnoverBps);
            if (turnover > max) revert ITradeRouter.ExceedsDailyTurnover(agentId, turnover, max);
        }
    }

    function _checkLosses(
        uint256 agentId,
        Activity memory activity,
        uint256 cap,
        IVaultTrackRegistry.TradePolicy memory limits
    ) private pure {
        if (limits.maxDailyLossBps != 0) {
            uint256 max = PriceMath.shareOf(cap, limits.maxDailyLossBps);
            if (activity.loss >= max) revert ITradeRouter.ExceedsDailyLoss(agentId, activity.loss, max);
        }
        if (limits.maxDrawdownBps == 0) return;
        uint256 fall = _drawdown(activity.peakRealizedPnl, activity.realizedPnl);
        uint256 peak = cap + activity.peakRealizedPnl;
        if (fall * PriceMath.BPS > peak * limits.maxDrawdownBps) {
            uint256 drawdownBps = peak == 0 ? PriceMath.BPS : Math.ceilDiv(fall * PriceMath.BPS, peak);
            revert ITradeRouter.ExceedsMaxDrawdown(agentId, drawdownBps, limits.maxDrawdownBps);
        }
    }

    /// @dev The cap less the realized loss, in proportion where the vault's caps exceed its assets.
    function _effectiveCap(uint256 cap, int256 realizedPnl, uint256 totalCaps, address vault, Assets memory assets)
        private
        view
        returns (uint256 effective)
    {
        effective = Math.saturatingSub(cap, _lossOf(realizedPnl));
        if (totalCaps <= assets.idle) return effective;
        uint256 total = _totalOf(vault, assets);
        if (totalCaps > total) effective = Math.mulDiv(effective, total, totalCaps);
    }

    function _totalOf(address vault, Assets memory assets) private view returns (uint256) {
        if (assets.total == 0) assets.total = IMandateVault(vault).totalAssets();
        return assets.total;
    }

    function _trackPnl(uint256 agentId, Account memory account) private view returns (int256) {
        return int256(_histories[agentId].realizedPnl) + account.realizedPnl;
    }

    function _today() private view returns (uint256) {
        return block.timestamp / 1 days;
    }

    function _drawdown(uint256 peak, int256 realizedPnl) private pure returns (uint256) {
        int256 fall = peak.toInt256() - realizedPnl;
        return fall > 0 ? fall.toUint256() : 0;
    }

    function _lossOf(int256 pnl) private pure returns (uint256) {
        return pnl < 0 ? (-pnl).toUint256() : 0;
    }

    function _isReal(uint8 capitalMode) private pure returns (bool) {
        return capitalMode == uint8(IVaultTrackRegistry.CapitalMode.Real);
    }
}
