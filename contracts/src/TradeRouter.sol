// SPDX-License-Identifier: MIT
pragma solidity ^0.8.30;

import {AccessControl} from "@openzeppelin/contracts/access/AccessControl.sol";
import {IERC20} from "@openzeppelin/contracts/token/ERC20/IERC20.sol";
import {EIP712} from "@openzeppelin/contracts/utils/cryptography/EIP712.sol";
import {Math} from "@openzeppelin/contracts/utils/math/Math.sol";
import {SafeCast} from "@openzeppelin/contracts/utils/math/SafeCast.sol";
import {ReentrancyGuardTransient} from "@openzeppelin/contracts/utils/ReentrancyGuardTransient.sol";
import {IAgentRegistry} from "./interfaces/IAgentRegistry.sol";
import {IAllocationManager} from "./interfaces/IAllocationManager.sol";
import {IMandateVault} from "./interfaces/IMandateVault.sol";
import {IPositionManager} from "./interfaces/IPositionManager.sol";
import {IPriceOracle} from "./interfaces/IPriceOracle.sol";
import {ISwapAdapter} from "./interfaces/ISwapAdapter.sol";
import {ITradeRouter} from "./interfaces/ITradeRouter.sol";
import {IVaultTrackRegistry} from "./interfaces/IVaultTrackRegistry.sol";
import {ExitLadder} from "./libraries/ExitLadder.sol";
import {ExitRules} from "./libraries/ExitRules.sol";
import {ExitTrigger} from "./libraries/ExitTrigger.sol";
import {IntentHash} from "./libraries/IntentHash.sol";
import {PriceMath} from "./libraries/PriceMath.sol";
import {Signatures} from "./libraries/Signatures.sol";

/// @title The one door through which agents' capital moves
/// @dev What the functions do, and in which order they check, is said in `ITradeRouter`. State is kept by the vaults,
/// the position book and the allocations; the router itself keeps nonces and what each agent did per day and in all.
contract TradeRouter is ITradeRouter, AccessControl, EIP712, ReentrancyGuardTransient {
    using ExitLadder for uint256;
    using ExitRules for uint256;
    using ExitTrigger for IPositionManager.PositionState;
    using IntentHash for PositionIntent;
    using IntentHash for AddToPositionIntent;
    using IntentHash for ReducePositionIntent;
    using IntentHash for UpdateExitLadderIntent;
    using IntentHash for IPositionManager.ExitRule[];
    using SafeCast for uint256;
    using SafeCast for int256;

    /// @dev One slot.
    struct Venue {
        address adapter;
        uint16 keeperBountyBps;
        uint80 maxKeeperBounty;
    }

    /// @dev One slot, written by every call of the agent: its nonce, its trades, and what it did on its last trading day.
    /// 64 bits hold 18 trillion USDC.
    struct Account {
        uint32 nonce;
        uint32 trades;
        uint32 day;
        uint64 turnover;
        int64 realizedPnl;
    }

    /// @dev One slot: the days before the last trading day, and the peak of the lifetime PnL after any trade.
    struct History {
        uint64 turnover;
        int64 realizedPnl;
        uint64 peakRealizedPnl;
    }

    /// @dev One slot per agent and past trading day.
    struct Day {
        uint64 turnover;
        int64 realizedPnl;
    }

    /// @dev What the registry says about the agent of an intent.
    struct Trader {
        address signer;
        address vault;
        uint8 track;
        uint8 status;
        bool registryPaused;
    }

    /// @dev A purchase on its way.
    struct Buy {
        uint256 agentId;
        address vault;
        address token;
        uint256 amount;
        uint256 minTokenOut;
        uint256 maxSlippageBps;
        address oracle;
        uint256 maxAge;
    }

    /// @dev A token in a vault, with its price.
    struct Quote {
        uint256 price;
        uint256 updatedAt;
        uint256 round;
        uint8 decimals;
    }

    bytes32 public constant EXECUTOR_ROLE = keccak256("EXECUTOR_ROLE");
    bytes32 public constant OPERATOR_ROLE = keccak256("OPERATOR_ROLE");

    /// @inheritdoc ITradeRouter
    bytes32 public constant OPEN_POSITION_TYPEHASH = IntentHash.OPEN_POSITION;

    /// @inheritdoc ITradeRouter
    bytes32 public constant ADD_TO_POSITION_TYPEHASH = IntentHash.ADD_TO_POSITION;

    /// @inheritdoc ITradeRouter
    bytes32 public constant REDUCE_POSITION_TYPEHASH = IntentHash.REDUCE_POSITION;

    /// @inheritdoc ITradeRouter
    bytes32 public constant UPDATE_EXIT_LADDER_TYPEHASH = IntentHash.UPDATE_EXIT_LADDER;

    /// @dev How far below a fresh price a force close may sell when the operator names no floor.
    uint256 private constant FORCE_CLOSE_SLIPPAGE_BPS = 2_000;

    IERC20 private immutable _usdc;
    IAgentRegistry private immutable _agents;
    IAllocationManager private immutable _allocations;
    IPositionManager private immutable _positions;
    IVaultTrackRegistry private immutable _tracks;

    Venue private _venue;
    mapping(uint256 agentId => Account) private _accounts;
    mapping(uint256 agentId => History) private _histories;
    mapping(uint256 agentId => mapping(uint256 day => Day)) private _pastDays;

    constructor(
        address admin,
        address usdc_,
        address agentRegistry_,
        address allocationManager_,
        address positionManager_,
        address vaultTrackRegistry_
    ) EIP712("Service TradeRouter", "1") {
        if (
            admin == address(0) || usdc_ == address(0) || agentRegistry_ == address(0)
                || allocationManager_ == address(0) || positionManager_ == address(0)
                || vaultTrackRegistry_ == address(0)
        ) revert ZeroAddress();
        _usdc = IERC20(usdc_);
        _agents = IAgentRegistry(agentRegistry_);
        _allocations = IAllocationManager(allocationManager_);
        _positions = IPositionManager(positionManager_);
        _tracks = IVaultTrackRegistry(vaultTrackRegistry_);
        _grantRole(DEFAULT_ADMIN_ROLE, admin);
    }

    /// @inheritdoc ITradeRouter
    function openPosition(PositionIntent calldata intent, bytes calldata signature)
        external
        onlyRole(EXECUTOR_ROLE)
        nonReentrant
        returns (uint256 positionId)
    {
        Trader memory trader = _authorize(intent.agentId, intent.nonce, intent.deadline, intent.hash(), signature);
        _checkTradable(intent.agentId, trader);
        if (trader.vault != intent.vault) revert VaultMismatch(intent.agentId, trader.vault, intent.vault);
        Buy memory buy = Buy({
            agentId: intent.agentId,
            vault: intent.vault,
            token: intent.token,
            amount: intent.usdcAmount,
            minTokenOut: intent.minTokenOut,
            maxSlippageBps: intent.maxSlippageBps,
            oracle: address(0),
            maxAge: 0
        });
        Quote memory quote;
        IVaultTrackRegistry.TradePolicy memory policy = _checkMarket(buy, quote, trader.track);
        uint256 ladder = uint256(0).extend(intent.exits, policy);
        if (_positions.openPositionId(buy.agentId, buy.token) != 0) {
            revert PositionAlreadyOpen(buy.agentId, buy.token);
        }
        uint256 tokens = _buy(buy, quote, policy);

        positionId = _positions.openPosition(
            IPositionManager.NewPosition({
                agentId: buy.agentId,
                vault: buy.vault,
                token: buy.token,
                tokenAmount: tokens,
                usdcAmount: buy.amount,
                entryPriceUsdc: PriceMath.entryPrice(buy.amount, tokens, quote.decimals),
                maxSlippageBps: buy.maxSlippageBps,
                ladder: ladder,
                priceRound: quote.round
            })
        );
        emit PositionOpenedFromIntent(positionId, buy.agentId, buy.vault, buy.token, buy.amount);
    }

    /// @inheritdoc ITradeRouter
    function addToPosition(AddToPositionIntent calldata intent, bytes calldata signature)
        external
        onlyRole(EXECUTOR_ROLE)
        nonReentrant
        returns (uint256 tokensAdded)
    {
        Trader memory trader = _authorize(intent.agentId, intent.nonce, intent.deadline, intent.hash(), signature);
        _checkTradable(intent.agentId, trader);
        IPositionManager.PositionState memory position = _openStateOf(intent.positionId, intent.agentId);
        Buy memory buy = Buy({
            agentId: intent.agentId,
            vault: trader.vault,
            token: position.token,
            amount: intent.usdcAmount,
            minTokenOut: intent.minTokenOut,
            maxSlippageBps: intent.maxSlippageBps,
            oracle: address(0),
            maxAge: 0
        });
        Quote memory quote;
        IVaultTrackRegistry.TradePolicy memory policy = _checkMarket(buy, quote, trader.track);
        tokensAdded = _buy(buy, quote, policy);

        _positions.increasePosition(
            IPositionManager.Increase({
                positionId: intent.positionId,
                tokensAdded: tokensAdded,
                usdcAdded: buy.amount,
                entryPriceUsdc: PriceMath.entryPrice(
                    position.usdcCostBasis + buy.amount, position.tokenAmount + tokensAdded, quote.decimals
                ),
                maxSlippageBps: Math.max(position.maxSlippageBps, buy.maxSlippageBps),
                priceRound: quote.round
            })
        );
        emit PositionIncreasedFromIntent(intent.positionId, buy.agentId, buy.amount, tokensAdded);
    }

    /// @inheritdoc ITradeRouter
    function reducePosition(ReducePositionIntent calldata intent, bytes calldata signature)
        external
        onlyRole(EXECUTOR_ROLE)
        nonReentrant
        returns (uint256 usdcOut)
    {
        Trader memory trader = _authorize(intent.agentId, intent.nonce, intent.deadline, intent.hash(), signature);
        IPositionManager.PositionState memory position = _openStateOf(intent.positionId, intent.agentId);
        if (intent.exitBps == 0 || intent.exitBps > PriceMath.BPS) revert BpsOutOfRange(intent.exitBps);

        Quote memory quote = _sellQuote(trader.vault, position.token);
        uint256 sold = _shareOf(position.tokenAmount, intent.exitBps, quote);
        if (sold == 0) revert InvalidReduceAmount(intent.positionId);
        usdcOut = _sell(trader.vault, position.token, sold, _floorOf(sold, quote, position.maxSlippageBps));

        uint256 released = _positions.reducePosition(intent.positionId, sold, usdcOut);
        _bookSale(intent.agentId, usdcOut, released);
        emit PositionReducedFromIntent(intent.positionId, intent.agentId, intent.exitBps, usdcOut);
    }

    /// @inheritdoc ITradeRouter
    function updateExitLadder(UpdateExitLadderIntent calldata intent, bytes calldata signature)
        external
        onlyRole(EXECUTOR_ROLE)
        nonReentrant
    {
        Trader memory trader = _authorize(intent.agentId, intent.nonce, intent.deadline, intent.hash(), signature);
        IPositionManager.PositionState memory position = _openStateOf(intent.positionId, intent.agentId);
        uint256 ladder = position.ladder.fired().extend(intent.exits, _tracks.tradePolicyOf(trader.vault, trader.track));

        // The last known price, however old: protection can be changed while the market is closed.
        (uint256 price,, uint256 round) =
            IPriceOracle(IMandateVault(trader.vault).priceOracle()).peekPrice(position.token);
        int256 pnlBps = PriceMath.pnlBps(price, position.entryPriceUsdc);
        if (ladder.firstMet(ladder.next(), pnlBps) != ladder.count()) {
            revert PendingRuleAlreadyTriggered(intent.positionId);
        }

        _positions.updateExitLadder(intent.positionId, ladder, round);
        emit PositionExitLadderUpdatedFromIntent(intent.positionId, intent.agentId, ladder.next().toUint8());
    }

    /// @inheritdoc ITradeRouter
    function executeExit(uint256 positionId) external nonReentrant returns (uint256 usdcOut) {
        return _executeExit(positionId, msg.sender);
    }

    /// @inheritdoc ITradeRouter
    function executeExits(uint256[] calldata positionIds)
        external
        nonReentrant
        returns (ExitStatus[] memory statuses, bytes[] memory reasons)
    {
        statuses = new ExitStatus[](positionIds.length);
        reasons = new bytes[](positionIds.length);
        for (uint256 i; i < positionIds.length; ++i) {
            try this.executeExitFor(positionIds[i], msg.sender) {
                statuses[i] = ExitStatus.Executed;
            } catch (bytes memory reason) {
                statuses[i] = _statusOf(reason);
                reasons[i] = reason;
            }
        }
    }

    /// @notice One exit of a batch: a call of its own, so that it can fail alone; only the router itself
    function executeExitFor(uint256 positionId, address keeper) external {
        if (msg.sender != address(this)) revert OnlySelf(msg.sender);
        _executeExit(positionId, keeper);
    }

    /// @inheritdoc ITradeRouter
    function forceClose(uint256 positionId) external onlyRole(OPERATOR_ROLE) nonReentrant {
        IPositionManager.PositionState memory position = _openStateOf(positionId);
        address vault = _checkSuspended(position.agentId);
        (address oracle, uint256 maxAge,, uint8 decimals) = IMandateVault(vault).sellContextOf(position.token);
        uint256 floor = 1;
        if (!IPriceOracle(oracle).isStale(position.token, maxAge)) {
            (uint256 price,,) = IPriceOracle(oracle).peekPrice(position.token);
            floor =
                PriceMath.lessBps(PriceMath.usdcValue(position.tokenAmount, price, decimals), FORCE_CLOSE_SLIPPAGE_BPS);
        }
        _forceClose(positionId, position, vault, floor);
    }

    /// @inheritdoc ITradeRouter
    function forceCloseWithFloor(uint256 positionId, uint256 minUsdcOut) external onlyRole(OPERATOR_ROLE) nonReentrant {
        IPositionManager.PositionState memory position = _openStateOf(positionId);
        _forceClose(positionId, position, _checkSuspended(position.agentId), minUsdcOut);
    }

    /// @inheritdoc ITradeRouter
    function setKeeperBounty(uint256 bps, uint256 max) external onlyRole(DEFAULT_ADMIN_ROLE) {
        if (bps > PriceMath.BPS) revert BpsOutOfRange(bps);
        _venue.keeperBountyBps = bps.toUint16();
        _venue.maxKeeperBounty = max.toUint80();
        emit KeeperBountyUpdated(bps, max);
    }

    /// @inheritdoc ITradeRouter
    function setSwapAdapter(address adapter) external onlyRole(DEFAULT_ADMIN_ROLE) {
        if (adapter == address(0)) revert ZeroAddress();
        emit SwapAdapterUpdated(_venue.adapter, adapter);
        _venue.adapter = adapter;
    }

    /// @inheritdoc ITradeRouter
    function nonces(uint256 agentId) external view returns (uint256) {
        return _accounts[agentId].nonce;
    }

    /// @inheritdoc ITradeRouter
    function dailyTurnoverUsdc(uint256 agentId, uint256 day) external view returns (uint256) {
        Account storage account = _accounts[agentId];
        return day == account.day ? account.turnover : _pastDays[agentId][day].turnover;
    }

    /// @inheritdoc ITradeRouter
    function dailyRealizedPnlUsdc(uint256 agentId, uint256 day) external view returns (int256) {
        Account storage account = _accounts[agentId];
        return day == account.day ? account.realizedPnl : _pastDays[agentId][day].realizedPnl;
    }

    /// @inheritdoc ITradeRouter
    function lifetimeRealizedPnlUsdc(uint256 agentId) external view returns (int256) {
        return int256(_histories[agentId].realizedPnl) + _accounts[agentId].realizedPnl;
    }

    /// @inheritdoc ITradeRouter
    function lifetimeTurnoverUsdc(uint256 agentId) external view returns (uint256) {
        return uint256(_histories[agentId].turnover) + _accounts[agentId].turnover;
    }

    /// @inheritdoc ITradeRouter
    function peakRealizedPnlUsdc(uint256 agentId) external view returns (uint256) {
        return _histories[agentId].peakRealizedPnl;
    }

    /// @inheritdoc ITradeRouter
    function tradeCount(uint256 agentId) external view returns (uint256) {
        return _accounts[agentId].trades;
    }

    /// @inheritdoc ITradeRouter
    function tradeInProgress() external view returns (bool) {
        return _reentrancyGuardEntered();
    }

    /// @inheritdoc ITradeRouter
    function keeperBountyBps() external view returns (uint256) {
        return _venue.keeperBountyBps;
    }

    /// @inheritdoc ITradeRouter
    function maxKeeperBounty() external view returns (uint256) {
        return _venue.maxKeeperBounty;
    }

    /// @inheritdoc ITradeRouter
    function usdc() external view returns (address) {
        return address(_usdc);
    }

    /// @inheritdoc ITradeRouter
    function agentRegistry() external view returns (address) {
        return address(_agents);
    }

    /// @inheritdoc ITradeRouter
    function allocationManager() external view returns (address) {
        return address(_allocations);
    }

    /// @inheritdoc ITradeRouter
    function positionManager() external view returns (address) {
        return address(_positions);
    }

    /// @inheritdoc ITradeRouter
    function swapAdapter() external view returns (address) {
        return _venue.adapter;
    }

    /// @inheritdoc ITradeRouter
    function vaultTrackRegistry() external view returns (address) {
        return address(_tracks);
    }

    /// @inheritdoc ITradeRouter
    function hashOpenPosition(PositionIntent calldata intent) external view returns (bytes32) {
        return _hashTypedDataV4(intent.hash());
    }

    /// @inheritdoc ITradeRouter
    function hashAddToPosition(AddToPositionIntent calldata intent) external view returns (bytes32) {
        return _hashTypedDataV4(intent.hash());
    }

    /// @inheritdoc ITradeRouter
    function hashReducePosition(ReducePositionIntent calldata intent) external view returns (bytes32) {
        return _hashTypedDataV4(intent.hash());
    }

    /// @inheritdoc ITradeRouter
    function hashUpdateExitLadder(UpdateExitLadderIntent calldata intent) external view returns (bytes32) {
        return _hashTypedDataV4(intent.hash());
    }

    /// @inheritdoc ITradeRouter
    function hashExits(IPositionManager.ExitRule[] calldata exits) external pure returns (bytes32) {
        return exits.hashExits();
    }

    /// @dev The common head of the four intents: in time, in order, and signed by the agent. Uses up the nonce.
    function _authorize(uint256 agentId, uint256 nonce, uint256 deadline, bytes32 structHash, bytes calldata signature)
        private
        returns (Trader memory trader)
    {
        if (block.timestamp > deadline) revert ExpiredDeadline();
        (trader.signer, trader.vault, trader.track, trader.status, trader.registryPaused) =
            _agents.tradeContextOf(agentId);
        uint32 expected = _accounts[agentId].nonce;
        if (nonce != expected) revert InvalidNonce(expected, nonce);
        if (!Signatures.isValid(trader.signer, _hashTypedDataV4(structHash), signature)) revert InvalidSignature();

        _accounts[agentId].nonce = expected + 1;
    }

    function _checkTradable(uint256 agentId, Trader memory trader) private pure {
        if (trader.registryPaused) revert RegistryPaused();
        if (trader.status != uint8(IAgentRegistry.AgentStatus.Active)) revert AgentNotTradable(agentId);
    }

    /// @dev Whether the token may be bought here at all. Fills in the oracle and the token's decimals.
    function _checkMarket(Buy memory buy, Quote memory quote, uint8 track)
        private
        view
        returns (IVaultTrackRegistry.TradePolicy memory policy)
    {
        bool paused;
        bool allowed;
        (buy.oracle, buy.maxAge, paused, quote.decimals, allowed) = IMandateVault(buy.vault).buyContextOf(buy.token);
        if (paused) revert IMandateVault.TradingPaused();
        policy = _tracks.tradePolicyOf(buy.vault, track);
        if (!policy.active) revert VaultTrackNotActive(buy.vault, track);
        if (!allowed) revert TokenNotAllowed(buy.token);
        if (buy.maxSlippageBps > PriceMath.BPS) revert BpsOutOfRange(buy.maxSlippageBps);
        if (buy.amount == 0) revert InvalidTradeAmount(buy.amount);
    }

    /// @dev Checks the limits, books the purchase, and buys.
    function _buy(Buy memory buy, Quote memory quote, IVaultTrackRegistry.TradePolicy memory policy)
        private
        returns (uint256 tokens)
    {
        Account memory account = _accountToday(buy.agentId);
        uint256 used = _checkLimits(buy, account, policy);
        (quote.price, quote.updatedAt, quote.round) = IPriceOracle(buy.oracle).freshPrice(buy.token, buy.maxAge);
        uint256 minimum = Math.max(
            buy.minTokenOut,
            PriceMath.lessBps(PriceMath.tokensFor(buy.amount, quote.price, quote.decimals), buy.maxSlippageBps)
        );

        _allocations.setAllocationUsedByRouter(buy.agentId, used);
        account.turnover += buy.amount.toUint64();
        ++account.trades;
        _accounts[buy.agentId] = account;

        address adapter = _venue.adapter;
        IMandateVault(buy.vault).pullAssetsForTrade(adapter, buy.amount);
        tokens = ISwapAdapter(adapter).swapUsdcForToken(buy.vault, buy.token, buy.amount, minimum);
        if (tokens < minimum || tokens == 0) revert SlippageExceeded(minimum, tokens);
        uint256 ledger = IMandateVault(buy.vault).recordTokenBought(buy.token, tokens);
        uint256 balance = IERC20(buy.token).balanceOf(buy.vault);
        if (ledger > balance) revert LedgerExceedsVaultBalance(buy.token, ledger, balance);
    }

    /// @dev Idle assets are a part of all assets: what passes on them alone needs no valuation of the vault's tokens.
    /// @return used What the agent will use after the purchase
    function _checkLimits(Buy memory buy, Account memory account, IVaultTrackRegistry.TradePolicy memory policy)
        private
        view
        returns (uint256 used)
    {
        uint256 cap;
        uint8 status;
        (cap, used, status) = _allocations.tradeAllocationOf(buy.agentId);
        if (status != uint8(IAllocationManager.AllocationStatus.Active)) revert AllocationNotActive(buy.agentId);
        used = Math.saturatingAdd(used, buy.amount);
        if (used > cap) revert ExceedsAllocationCap(buy.agentId, used, cap);

        uint256 idle = _usdc.balanceOf(buy.vault);
        uint256 assets = idle;
        if (buy.amount > _bpsOf(assets, policy.maxTradeSizeBps)) {
            assets = IMandateVault(buy.vault).totalAssets();
            uint256 max = _bpsOf(assets, policy.maxTradeSizeBps);
            if (buy.amount > max) revert ExceedsMaxTradeSize(buy.amount, max);
        }

        uint256 turnover = account.turnover + buy.amount;
        if (policy.maxDailyTurnoverBps != 0 && turnover > _bpsOf(assets, policy.maxDailyTurnoverBps)) {
            if (assets == idle) assets = IMandateVault(buy.vault).totalAssets();
            uint256 max = _bpsOf(assets, policy.maxDailyTurnoverBps);
            if (turnover > max) revert ExceedsDailyTurnover(buy.agentId, turnover, max);
        }

        if (policy.maxDailyLossBps != 0) {
            uint256 loss = account.realizedPnl < 0 ? uint256(-int256(account.realizedPnl)) : 0;
            uint256 max = _bpsOf(cap, policy.maxDailyLossBps);
            if (loss >= max) revert ExceedsDailyLoss(buy.agentId, loss, max);
        }
        if (idle < buy.amount) revert InsufficientIdleAssets(idle, buy.amount);
    }

    function _executeExit(uint256 positionId, address keeper) private returns (uint256 usdcOut) {
        IPositionManager.PositionState memory position = _openStateOf(positionId);
        address vault = _agents.vaultOf(position.agentId);
        Quote memory quote = _sellQuote(vault, position.token);
        uint256 rule = position.dueRule(quote.price, quote.updatedAt, quote.round);
        if (rule == position.ladder.count()) revert TriggerNotMet(positionId);

        uint256 sold = _shareOf(position.tokenAmount, position.ladder.exitBps(rule), quote);
        if (sold == 0) sold = position.tokenAmount;
        uint256 minimum = _floorOf(sold, quote, position.maxSlippageBps);
        usdcOut = _sell(vault, position.token, sold, minimum);
        uint256 bounty = _bountyOf(usdcOut, minimum);
        usdcOut -= bounty;

        (uint8 firedIndex, uint256 released) = _positions.applyLadderExit(positionId, rule, sold, usdcOut);
        _bookSale(position.agentId, usdcOut, released);
        if (bounty != 0) IMandateVault(vault).pullAssetsForTrade(keeper, bounty);
        emit ExitExecuted(positionId, position.agentId, firedIndex, keeper, usdcOut, bounty);
    }

    function _forceClose(
        uint256 positionId,
        IPositionManager.PositionState memory position,
        address vault,
        uint256 floor
    ) private {
        address adapter = _venue.adapter;
        IMandateVault(vault).pullTokenForForceClose(position.token, adapter, position.tokenAmount);
        uint256 usdcOut = ISwapAdapter(adapter).swapTokenForUsdc(vault, position.token, position.tokenAmount, floor);
        if (usdcOut < floor) revert SlippageExceeded(floor, usdcOut);

        uint256 released = _positions.reducePosition(positionId, position.tokenAmount, usdcOut);
        _bookSale(position.agentId, usdcOut, released);
        emit PositionForceClosed(positionId, position.agentId, msg.sender, usdcOut);
    }

    function _sell(address vault, address token, uint256 amount, uint256 minimum) private returns (uint256 usdcOut) {
        address adapter = _venue.adapter;
        IMandateVault(vault).pullTokenForTrade(token, adapter, amount);
        usdcOut = ISwapAdapter(adapter).swapTokenForUsdc(vault, token, amount, minimum);
        if (usdcOut < minimum) revert SlippageExceeded(minimum, usdcOut);
    }

    function _bookSale(uint256 agentId, uint256 usdcOut, uint256 released) private {
        _allocations.setAllocationUsedByRouter(agentId, _allocations.allocationUsed(agentId) - released);

        Account memory account = _accountToday(agentId);
        int256 pnl = account.realizedPnl + usdcOut.toInt256() - released.toInt256();
        account.realizedPnl = pnl.toInt64();
        ++account.trades;
        _accounts[agentId] = account;

        int256 lifetime = _histories[agentId].realizedPnl + pnl;
        if (lifetime > int256(uint256(_histories[agentId].peakRealizedPnl))) {
            _histories[agentId].peakRealizedPnl = lifetime.toUint256().toUint64();
        }
    }

    /// @dev The agent's account with the books of an earlier trading day closed and those of today opened.
    function _accountToday(uint256 agentId) private returns (Account memory account) {
        account = _accounts[agentId];
        uint256 today = _today();
        if (account.day == today) return account;

        if (account.turnover != 0 || account.realizedPnl != 0) {
            _pastDays[agentId][account.day] = Day(account.turnover, account.realizedPnl);
            History storage history = _histories[agentId];
            history.turnover += account.turnover;
            history.realizedPnl += account.realizedPnl;
        }
        account.day = today.toUint32();
        account.turnover = 0;
        account.realizedPnl = 0;
    }

    function _sellQuote(address vault, address token) private view returns (Quote memory quote) {
        address oracle;
        uint256 maxAge;
        bool paused;
        (oracle, maxAge, paused, quote.decimals) = IMandateVault(vault).sellContextOf(token);
        if (paused) revert IMandateVault.TradingPaused();
        (quote.price, quote.updatedAt, quote.round) = IPriceOracle(oracle).freshPrice(token, maxAge);
    }

    function _openStateOf(uint256 positionId, uint256 agentId)
        private
        view
        returns (IPositionManager.PositionState memory position)
    {
        position = _positions.positionStateOf(positionId);
        if (position.agentId != agentId) revert PositionAgentMismatch(positionId, agentId);
        if (position.tokenAmount == 0) revert PositionNotOpen(positionId);
    }

    function _openStateOf(uint256 positionId) private view returns (IPositionManager.PositionState memory position) {
        position = _positions.positionStateOf(positionId);
        if (position.tokenAmount == 0) revert PositionNotOpen(positionId);
    }

    function _checkSuspended(uint256 agentId) private view returns (address vault) {
        uint8 status;
        (, vault,, status,) = _agents.tradeContextOf(agentId);
        if (status != uint8(IAgentRegistry.AgentStatus.Suspended)) revert AgentNotSuspended(agentId);
    }

    /// @dev A keeper never takes what the position's own floor promises the vault.
    function _bountyOf(uint256 proceeds, uint256 minimum) private view returns (uint256) {
        Venue storage venue = _venue;
        uint256 bounty = Math.min(_bpsOf(proceeds, venue.keeperBountyBps), venue.maxKeeperBounty);
        return Math.min(bounty, proceeds - minimum);
    }

    function _today() private view returns (uint256) {
        return block.timestamp / 1 days;
    }

    /// @dev All of it when what would be left is worth nothing: no dust keeps a position open.
    function _shareOf(uint256 tokens, uint256 exitBps, Quote memory quote) private pure returns (uint256 share) {
        share = _bpsOf(tokens, exitBps);
        if (PriceMath.usdcValue(tokens - share, quote.price, quote.decimals) == 0) share = tokens;
    }

    function _floorOf(uint256 tokens, Quote memory quote, uint256 slippageBps) private pure returns (uint256) {
        return PriceMath.lessBps(PriceMath.usdcValue(tokens, quote.price, quote.decimals), slippageBps);
    }

    function _bpsOf(uint256 amount, uint256 bps) private pure returns (uint256) {
        return amount * bps / PriceMath.BPS;
    }

    function _statusOf(bytes memory reason) private pure returns (ExitStatus) {
        // The first four bytes are the error's selector; the rest are its values.
        // forge-lint: disable-next-line(unsafe-typecast)
        bytes4 selector = bytes4(reason);
        if (selector == TriggerNotMet.selector) return ExitStatus.NotDue;
        if (
            selector == IPriceOracle.StalePrice.selector || selector == IPriceOracle.TokenNotQuoted.selector
                || selector == IPriceOracle.SequencerDown.selector
                || selector == IPriceOracle.SequencerGracePeriod.selector
        ) return ExitStatus.StalePrice;
        if (selector == IMandateVault.TradingPaused.selector) return ExitStatus.Paused;
        if (selector == PositionNotOpen.selector || selector == IPositionManager.PositionNotFound.selector) {
            return ExitStatus.NotOpen;
        }
        return ExitStatus.Failed;
    }
}
