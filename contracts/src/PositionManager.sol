// SPDX-License-Identifier: MIT
pragma solidity ^0.8.30;

import {Math} from "@openzeppelin/contracts/utils/math/Math.sol";
import {SafeCast} from "@openzeppelin/contracts/utils/math/SafeCast.sol";
import {TwoStepAdmin} from "./access/TwoStepAdmin.sol";
import {IAgentRegistry} from "./interfaces/IAgentRegistry.sol";
import {IMandateVault} from "./interfaces/IMandateVault.sol";
import {IPositionManager} from "./interfaces/IPositionManager.sol";
import {IPriceOracle} from "./interfaces/IPriceOracle.sol";
import {ITradeRouter} from "./interfaces/ITradeRouter.sol";
import {IVaultTrackRegistry} from "./interfaces/IVaultTrackRegistry.sol";
import {ExitLadder} from "./libraries/ExitLadder.sol";
import {ExitRules} from "./libraries/ExitRules.sol";
import {ExitTrigger} from "./libraries/ExitTrigger.sol";
import {OpenBook} from "./libraries/OpenBook.sol";
import {PriceMath} from "./libraries/PriceMath.sol";

/// @title Positions, three storage slots each
/// @dev `IPositionManager` documents the functions.
contract PositionManager is IPositionManager, TwoStepAdmin {
    using ExitLadder for uint256;
    using ExitRules for uint256;
    using ExitTrigger for PositionState;
    using OpenBook for OpenBook.Book;
    using SafeCast for uint256;
    using SafeCast for int256;

    /// @dev Three slots: amounts, ladder, terms. A partial sale writes the first one only. 64 bits hold 18 trillion USDC.
    struct Record {
        uint128 tokenAmount;
        uint64 usdcCostBasis;
        int64 realizedPnlUsdc;
        uint256 ladder;
        uint64 entryPriceUsdc;
        uint32 agentId;
        uint16 tokenIndex;
        uint16 maxSlippageBps;
        uint40 openedAt;
        uint40 armedAt;
        uint32 armedRound;
        bool simulated;
        bool hasDueExit;
    }

    /// @dev One slot: the most that an agent ever held of a token, and what that cost.
    struct Holding {
        uint128 tokens;
        uint64 cost;
    }

    /// @inheritdoc IPositionManager
    address public immutable agentRegistry;

    /// @inheritdoc IPositionManager
    address public immutable vaultTrackRegistry;

    /// @inheritdoc IPositionManager
    address public tradeRouter;

    uint64 private _positionCount;
    uint16 private _tokenCount;
    mapping(uint256 positionId => Record) private _records;
    mapping(uint256 agentId => OpenBook.Book) private _openBooks;
    mapping(uint256 positionId => DueExit) private _dueExits;

    /// @dev What a paper agent would hold of a token if it had sold nothing since it entered its track.
    mapping(uint256 agentId => mapping(uint256 trackId => mapping(uint256 tokenIndex => Holding))) private _holdings;

    /// @dev A position refers to its token by a number from 1: 16 bits instead of 160.
    mapping(address token => uint16) private _tokenIndexes;
    mapping(uint256 tokenIndex => address) private _tokens;

    modifier onlyTradeRouter() {
        _checkTradeRouter();
        _;
    }

    constructor(address admin, address agentRegistry_, address vaultTrackRegistry_) TwoStepAdmin(admin) {
        if (admin == address(0) || agentRegistry_ == address(0) || vaultTrackRegistry_ == address(0)) {
            revert ZeroAddress();
        }
        agentRegistry = agentRegistry_;
        vaultTrackRegistry = vaultTrackRegistry_;
    }

    /// @inheritdoc IPositionManager
    function openPosition(NewPosition calldata entry) external onlyTradeRouter returns (uint256 positionId) {
        positionId = ++_positionCount;
        uint16 tokenIndex = _tokenIndexFor(entry.token);
        bool simulated = entry.capitalMode == uint8(IVaultTrackRegistry.CapitalMode.Simulated);

        _records[positionId] = Record({
            tokenAmount: entry.tokenAmount.toUint128(),
            usdcCostBasis: entry.usdcAmount.toUint64(),
            realizedPnlUsdc: 0,
            ladder: entry.ladder,
            entryPriceUsdc: entry.entryPriceUsdc.toUint64(),
            agentId: entry.agentId.toUint32(),
            tokenIndex: tokenIndex,
            maxSlippageBps: entry.maxSlippageBps.toUint16(),
            openedAt: block.timestamp.toUint40(),
            armedAt: block.timestamp.toUint40(),
            armedRound: entry.priceRound.toUint32(),
            simulated: simulated,
            hasDueExit: false
        });
        _openBooks[entry.agentId].add(positionId.toUint32(), tokenIndex);
        if (simulated) {
            _rememberHolding(entry.agentId, tokenIndex, entry.tokenAmount, entry.tokenAmount, entry.usdcAmount);
        }

        emit PositionOpened(
            positionId,
            entry.agentId,
            entry.vault,
            entry.token,
            entry.tokenAmount,
            entry.entryPriceUsdc,
            entry.usdcAmount
        );
        if (simulated) emit PositionSimulated(positionId, entry.agentId);
    }

    /// @inheritdoc IPositionManager
    function increasePosition(Increase calldata entry) external onlyTradeRouter {
        Record storage record = _records[entry.positionId];
        uint128 tokenAmount = (record.tokenAmount + entry.tokensAdded).toUint128();
        uint64 usdcCostBasis = (record.usdcCostBasis + entry.usdcAdded).toUint64();
        uint64 entryPriceUsdc = entry.entryPriceUsdc.toUint64();
        uint40 armedAt = block.timestamp.toUint40();
        uint32 armedRound = entry.priceRound.toUint32();
        // Adjacent assignments to one slot are one write.
        record.tokenAmount = tokenAmount;
        record.usdcCostBasis = usdcCostBasis;
        record.entryPriceUsdc = entryPriceUsdc;
        record.armedAt = armedAt;
        record.armedRound = armedRound;
        _clearDueExit(record, entry.positionId);
        if (record.simulated) {
            _rememberHolding(record.agentId, record.tokenIndex, tokenAmount, entry.tokensAdded, entry.usdcAdded);
        }

        emit PositionIncreased(
            entry.positionId, record.agentId, entry.tokensAdded, entry.usdcAdded, entry.entryPriceUsdc
        );
    }

    /// @inheritdoc IPositionManager
    function reducePosition(uint256 positionId, uint256 tokenSold, uint256 usdcProceeds) external onlyTradeRouter {
        Record storage record = _records[positionId];
        uint256 agentId = record.agentId;
        (uint256 released, bool closed) = _release(record, tokenSold, usdcProceeds);

        if (record.hasDueExit) _limitDueExit(record, positionId);

        emit PositionReduced(positionId, agentId, tokenSold, released);
        if (closed) _close(positionId, agentId, record.realizedPnlUsdc);
    }

    /// @inheritdoc IPositionManager
    function applyLadderExit(uint256 positionId, uint256 ruleIndex, uint256 tokenSold, uint256 usdcProceeds)
        external
        onlyTradeRouter
        returns (uint8 firedIndex, uint256 released)
    {
        Record storage record = _records[positionId];
        uint256 agentId = record.agentId;
        uint256 ladder = record.ladder;
        firedIndex = ladder.next().toUint8();
        record.ladder = ladder.fire(ruleIndex);
        _clearDueExit(record, positionId);
        bool closed;
        (released, closed) = _release(record, tokenSold, usdcProceeds);

        emit PositionLadderExitApplied(positionId, agentId, firedIndex, tokenSold, released);
        if (closed) _close(positionId, agentId, record.realizedPnlUsdc);
    }

    /// @inheritdoc IPositionManager
    function applyPartialLadderExit(
        uint256 positionId,
        uint256 ruleIndex,
        uint256 tokenSold,
        uint256 usdcProceeds,
        uint256 tokensLeft,
        uint256 dueSince
    ) external onlyTradeRouter returns (uint256 released) {
        Record storage record = _records[positionId];
        uint256 agentId = record.agentId;
        (released,) = _release(record, tokenSold, usdcProceeds);
        _setDueExit(record, positionId, ruleIndex, tokensLeft, dueSince);

        emit PositionLadderExitPartlyApplied(positionId, agentId, ruleIndex.toUint8(), tokenSold, released, tokensLeft);
    }

    /// @inheritdoc IPositionManager
    function recordDueExit(uint256 positionId, uint256 ruleIndex, uint256 dueSince) external onlyTradeRouter {
        Record storage record = _records[positionId];
        _setDueExit(record, positionId, ruleIndex, _dueExits[positionId].tokensLeft, dueSince);

        emit PositionExitDue(positionId, record.agentId, ruleIndex.toUint8(), dueSince);
    }

    /// @inheritdoc IPositionManager
    function updateExitLadder(
        uint256 positionId,
        ExitRule[] calldata rules,
        address vault,
        uint256 trackId,
        bool mustTighten
    ) external onlyTradeRouter returns (uint8 nextRuleIndex) {
        Record storage record = _records[positionId];
        (uint256 ladder, uint256 priceRound) = _replaceLadder(positionId, rules, vault, trackId, mustTighten);
        record.ladder = ladder;
        record.armedAt = block.timestamp.toUint40();
        record.armedRound = priceRound.toUint32();
        _clearDueExit(record, positionId);

        nextRuleIndex = ladder.next().toUint8();
        emit PositionExitLadderUpdated(positionId, record.agentId, nextRuleIndex);
    }

    /// @inheritdoc IPositionManager
    function setTradeRouter(address router) external onlyRole(DEFAULT_ADMIN_ROLE) {
        if (router == address(0)) revert ZeroAddress();
        emit TradeRouterUpdated(tradeRouter, router);
        tradeRouter = router;
    }

    /// @inheritdoc IPositionManager
    function getPosition(uint256 positionId) external view returns (Position memory) {
        Record storage record = _recordOf(positionId);
        uint256 agentId = record.agentId;
        return Position({
            positionId: positionId,
            agentId: agentId,
            vault: IAgentRegistry(agentRegistry).vaultOf(agentId),
            token: _tokenOf(record),
            tokenAmount: record.tokenAmount,
            entryPriceUsdc: record.entryPriceUsdc,
            usdcCostBasis: record.usdcCostBasis,
            maxSlippageBps: record.maxSlippageBps,
            status: uint8(record.tokenAmount == 0 ? PositionStatus.Closed : PositionStatus.Open),
            nextRuleIndex: record.ladder.next().toUint8(),
            openedAt: record.openedAt,
            realizedPnlUsdc: record.realizedPnlUsdc
        });
    }

    /// @inheritdoc IPositionManager
    function getExitRules(uint256 positionId) external view returns (ExitRule[] memory rules) {
        uint256 ladder = _recordOf(positionId).ladder;
        rules = new ExitRule[](ladder.count());
        for (uint256 i; i < rules.length; ++i) {
            rules[i] = _ruleAt(ladder, i);
        }
    }

    /// @inheritdoc IPositionManager
    function getNextExitRule(uint256 positionId) external view returns (ExitRule memory) {
        uint256 ladder = _recordOf(positionId).ladder;
        if (ladder.next() == ladder.count()) revert NoPendingExitRule(positionId);
        return _ruleAt(ladder, ladder.next());
    }

    /// @inheritdoc IPositionManager
    function getOpenPositionIds(uint256 agentId) external view returns (uint256[] memory) {
        return _openBooks[agentId].ids();
    }

    /// @inheritdoc IPositionManager
    function openPositionCountByAgent(uint256 agentId) external view returns (uint256) {
        return _openBooks[agentId].length();
    }

    /// @inheritdoc IPositionManager
    function openPositionId(uint256 agentId, address token) public view returns (uint256) {
        return _openBooks[agentId].idOf(_tokenIndexes[token]);
    }

    /// @inheritdoc IPositionManager
    function agentTokenBalance(uint256 agentId, address token) external view returns (uint256) {
        Record storage record = _records[openPositionId(agentId, token)];
        return record.simulated ? 0 : record.tokenAmount;
    }

    /// @inheritdoc IPositionManager
    function totalTokenLedger(address token) external view returns (uint256 total) {
        IVaultTrackRegistry vaults = IVaultTrackRegistry(vaultTrackRegistry);
        uint256 count = vaults.vaultCount();
        for (uint256 i; i < count; ++i) {
            total += IMandateVault(vaults.vaultAt(i)).tokenLedger(token);
        }
    }

    /// @inheritdoc IPositionManager
    function realizedPnlUsdc(uint256 positionId) external view returns (int256) {
        return _recordOf(positionId).realizedPnlUsdc;
    }

    /// @inheritdoc IPositionManager
    function positionCount() external view returns (uint256) {
        return _positionCount;
    }

    /// @inheritdoc IPositionManager
    function positionsOpenedByAgent(uint256 agentId) external view returns (uint256) {
        return _openBooks[agentId].opened();
    }

    /// @inheritdoc IPositionManager
    function positionsClosedByAgent(uint256 agentId) external view returns (uint256) {
        return _openBooks[agentId].closed();
    }

    /// @inheritdoc IPositionManager
    function unrealizedPnlOf(uint256 agentId) external view returns (int256 pnl) {
        uint256[] memory ids = _openBooks[agentId].ids();
        if (ids.length == 0) return 0;
        address vault = IAgentRegistry(agentRegistry).vaultOf(agentId);
        for (uint256 i; i < ids.length; ++i) {
            Record storage record = _records[ids[i]];
            uint256 value = _lastValueOf(vault, _tokenOf(record), record.tokenAmount);
            pnl += value.toInt256() - int256(uint256(record.usdcCostBasis));
        }
    }

    /// @inheritdoc IPositionManager
    function holdingPnlOf(uint256 agentId, uint256 trackId) external view returns (int256 pnl) {
        address vault = IAgentRegistry(agentRegistry).vaultOf(agentId);
        for (uint256 index = 1; index <= _tokenCount; ++index) {
            Holding memory holding = _holdings[agentId][trackId][index];
            if (holding.tokens == 0) continue;
            uint256 value = _lastValueOf(vault, _tokens[index], holding.tokens);
            // A token that fell does not hide what holding another one would have made.
            pnl += Math.saturatingSub(value, holding.cost).toInt256();
        }
    }

    /// @inheritdoc IPositionManager
    function newLadder(uint256 agentId, address token, address vault, uint256 trackId, ExitRule[] calldata rules)
        external
        view
        returns (uint256 ladder)
    {
        if (openPositionId(agentId, token) != 0) revert ITradeRouter.PositionAlreadyOpen(agentId, token);
        IVaultTrackRegistry.TradePolicy memory limits =
            IVaultTrackRegistry(vaultTrackRegistry).tradePolicyOf(vault, trackId);
        if (!limits.active) revert ITradeRouter.VaultTrackNotActive(vault, trackId);
        return uint256(0).extend(rules, limits);
    }

    /// @inheritdoc IPositionManager
    function positionStateOf(uint256 positionId) public view returns (PositionState memory) {
        Record storage record = _recordOf(positionId);
        address token = _tokenOf(record);
        uint8 capitalMode = _capitalModeOf(record);
        return PositionState({
            agentId: record.agentId,
            token: token,
            tokenAmount: record.tokenAmount,
            usdcCostBasis: record.usdcCostBasis,
            maxSlippageBps: record.maxSlippageBps,
            ladder: record.ladder,
            armedAt: record.armedAt,
            armedRound: record.armedRound,
            capitalMode: capitalMode,
            hasDueExit: record.hasDueExit
        });
    }

    /// @inheritdoc IPositionManager
    function capitalModeOf(uint256 positionId) external view returns (uint8) {
        return _capitalModeOf(_recordOf(positionId));
    }

    /// @inheritdoc IPositionManager
    function dueExitOf(uint256 positionId) external view returns (DueExit memory) {
        _recordOf(positionId);
        return _dueExits[positionId];
    }

    /// @dev A purchase that goes beyond the most the agent ever held raises it by the excess, at the price of this purchase.
    function _rememberHolding(uint256 agentId, uint16 tokenIndex, uint256 held, uint256 tokensAdded, uint256 usdcAdded)
        private
    {
        Holding storage holding = _holdings[agentId][IAgentRegistry(agentRegistry).trackOf(agentId)][tokenIndex];
        uint256 most = holding.tokens;
        if (held <= most) return;
        uint256 added = Math.min(held - most, tokensAdded);
        holding.tokens = held.toUint128();
        holding.cost = (holding.cost + Math.ceilDiv(usdcAdded * added, tokensAdded)).toUint64();
    }

    function _lastValueOf(address vault, address token, uint256 tokens) private view returns (uint256) {
        (address oracle,,, uint8 decimals) = IMandateVault(vault).sellContextOf(token);
        (uint256 price,,) = IPriceOracle(oracle).peekPrice(token);
        return PriceMath.usdcValue(tokens, price, decimals);
    }

    /// @dev The ladder after `rules` replace the pending ones, and the oracle's round of the token.
    function _replaceLadder(
        uint256 positionId,
        ExitRule[] calldata rules,
        address vault,
        uint256 trackId,
        bool mustTighten
    ) private view returns (uint256 ladder, uint256 round) {
        PositionState memory position = positionStateOf(positionId);
        ladder = position.ladder.fired()
            .extend(rules, IVaultTrackRegistry(vaultTrackRegistry).tradePolicyOf(vault, trackId));
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

    function _release(Record storage record, uint256 tokenSold, uint256 usdcProceeds)
        private
        returns (uint256 released, bool closed)
    {
        uint256 held = record.tokenAmount;
        uint256 cost = record.usdcCostBasis;
        released = PriceMath.releasedCost(cost, tokenSold, held);
        closed = tokenSold == held;

        uint128 tokensLeft = (held - tokenSold).toUint128();
        uint64 costLeft = (cost - released).toUint64();
        int64 pnl = (int256(record.realizedPnlUsdc) + usdcProceeds.toInt256() - released.toInt256()).toInt64();
        // Adjacent assignments are one write of the slot.
        record.tokenAmount = tokensLeft;
        record.usdcCostBasis = costLeft;
        record.realizedPnlUsdc = pnl;
    }

    function _setDueExit(
        Record storage record,
        uint256 positionId,
        uint256 ruleIndex,
        uint256 tokensLeft,
        uint256 dueSince
    ) private {
        record.hasDueExit = true;
        _dueExits[positionId] = DueExit({
            since: dueSince.toUint40(),
            seenAt: block.timestamp.toUint40(),
            ruleIndex: ruleIndex.toUint8(),
            tokensLeft: tokensLeft.toUint128()
        });
    }

    function _clearDueExit(Record storage record, uint256 positionId) private {
        if (!record.hasDueExit) return;
        record.hasDueExit = false;
        delete _dueExits[positionId];
    }

    /// @dev What a rule still has to sell is never more than the position holds.
    function _limitDueExit(Record storage record, uint256 positionId) private {
        if (record.tokenAmount == 0) {
            _clearDueExit(record, positionId);
        } else if (_dueExits[positionId].tokensLeft > record.tokenAmount) {
            _dueExits[positionId].tokensLeft = record.tokenAmount;
        }
    }

    function _close(uint256 positionId, uint256 agentId, int256 pnl) private {
        _openBooks[agentId].remove(positionId);
        emit PositionClosed(positionId, agentId, pnl);
    }

    function _tokenIndexFor(address token) private returns (uint16 index) {
        index = _tokenIndexes[token];
        if (index == 0) {
            index = ++_tokenCount;
            _tokenIndexes[token] = index;
            _tokens[index] = token;
        }
    }

    function _recordOf(uint256 positionId) private view returns (Record storage) {
        if (positionId == 0 || positionId > _positionCount) revert PositionNotFound(positionId);
        return _records[positionId];
    }

    function _tokenOf(Record storage record) private view returns (address) {
        return _tokens[record.tokenIndex];
    }

    function _capitalModeOf(Record storage record) private view returns (uint8) {
        return
            uint8(record.simulated ? IVaultTrackRegistry.CapitalMode.Simulated : IVaultTrackRegistry.CapitalMode.Real);
    }

    function _ruleAt(uint256 ladder, uint256 index) private pure returns (ExitRule memory) {
        int256 trigger = ladder.triggerBps(index);
        return ExitRule({
            triggerType: uint8(trigger < 0 ? TriggerType.StopLoss : TriggerType.TakeProfit),
            triggerBps: trigger,
            exitBps: ladder.exitBps(index).toUint16()
        });
    }

    function _checkTradeRouter() private view {
        if (msg.sender != tradeRouter) revert OnlyTradeRouter(msg.sender);
    }
}
