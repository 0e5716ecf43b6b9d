// SPDX-License-Identifier: MIT
pragma solidity ^0.8.30;

import {IERC20} from "@openzeppelin/contracts/token/ERC20/IERC20.sol";
import {EIP712} from "@openzeppelin/contracts/utils/cryptography/EIP712.sol";
import {Math} from "@openzeppelin/contracts/utils/math/Math.sol";
import {SafeCast} from "@openzeppelin/contracts/utils/math/SafeCast.sol";
import {ReentrancyGuardTransient} from "@openzeppelin/contracts/utils/ReentrancyGuardTransient.sol";
import {PriceCarrier} from "./access/PriceCarrier.sol";
import {TwoStepAdmin} from "./access/TwoStepAdmin.sol";
import {IAgentRegistry} from "./interfaces/IAgentRegistry.sol";
import {IAllocationManager} from "./interfaces/IAllocationManager.sol";
import {IMandateVault} from "./interfaces/IMandateVault.sol";
import {IPositionManager} from "./interfaces/IPositionManager.sol";
import {IPriceOracle} from "./interfaces/IPriceOracle.sol";
import {ISwapAdapter} from "./interfaces/ISwapAdapter.sol";
import {ITradePolicy} from "./interfaces/ITradePolicy.sol";
import {ITradeRouter} from "./interfaces/ITradeRouter.sol";
import {IVaultTrackRegistry} from "./interfaces/IVaultTrackRegistry.sol";
import {BoundedCall} from "./libraries/BoundedCall.sol";
import {ExitLadder} from "./libraries/ExitLadder.sol";
import {ExitTrigger} from "./libraries/ExitTrigger.sol";
import {IntentHash} from "./libraries/IntentHash.sol";
import {MandateState} from "./libraries/MandateState.sol";
import {PriceMath} from "./libraries/PriceMath.sol";

/// @title The only contract that moves the capital agents trade with
/// @dev `ITradeRouter` documents the functions and the order of their checks. The vaults, the position book and the
/// allocations hold the state, with nonces and what each agent did.
contract TradeRouter is ITradeRouter, PriceCarrier, TwoStepAdmin, EIP712, ReentrancyGuardTransient {
    using ExitLadder for uint256;
    using ExitTrigger for IPositionManager.PositionState;
    using IntentHash for PositionIntent;
    using IntentHash for AddToPositionIntent;
    using IntentHash for ReducePositionIntent;
    using IntentHash for UpdateExitLadderIntent;
    using MandateState for uint256;
    using SafeCast for uint256;

    /// @dev One slot.
    struct Venue {
        address adapter;
        uint16 keeperBountyBps;
        uint80 maxKeeperBounty;
    }

    /// @dev The agent of an intent, as `IAllocationManager.authorize` returns it; of an order's, who executes it and since when it is
    /// due, if that is a stranger.
    struct Trader {
        address vault;
        uint8 track;
        uint8 status;
        bool isRestricted;
        address keeper;
        uint256 dueSince;
    }

    /// @dev A purchase. The allocation manager fills in the mode.
    struct Buy {
        Trader trader;
        uint256 agentId;
        address token;
        uint256 amount;
        uint256 minTokenOut;
        uint256 maxSlippageBps;
        uint256 deadline;
        uint8 capitalMode;
    }

    /// @dev A sale. `sold` and `usdcOut` are known once it is done; `rule` and `seenAt` are those of an exit, where a `seenAt` of 0
    /// means that nobody has recorded it yet, and `dueSince` also that of an order. The rule of an exit that its owner closes may
    /// be `CLOSE_ALL_RULE`.
    struct Sale {
        uint256 positionId;
        uint256 agentId;
        address vault;
        uint8 track;
        address token;
        bool simulated;
        bool forced;
        bool isClosing;
        uint256 amount;
        uint256 slippageBps;
        uint256 sold;
        uint256 usdcOut;
        uint256 rule;
        uint256 dueSince;
        uint256 seenAt;
    }

    /// @dev A token in a vault, with its price, and the one that waste is measured against.
    struct Quote {
        address oracle;
        uint256 maxAge;
        uint256 price;
        uint256 fairPrice;
        uint256 updatedAt;
        uint256 round;
        uint8 decimals;
    }

    bytes32 public constant EXECUTOR_ROLE = keccak256("EXECUTOR_ROLE");
    bytes32 public constant OPERATOR_ROLE = keccak256("OPERATOR_ROLE");

    /// @dev A sale never ends further below the oracle's value, whatever the policy returns; the admin's own sales aside.
    uint256 private constant MAX_EXIT_SLIPPAGE_BPS = 2_000;

    /// @dev No policy refuses a deadline this near, so an update of a ladder asks it about later ones only.
    uint256 private constant MIN_DEADLINE_BOUND = 10 minutes;

    /// @dev A record of a due exit expires after this time without a confirmation: the price may have recovered.
    uint256 private constant DUE_EXPIRY = 15 minutes;

    /// @dev The shortest time between two records of a due exit.
    uint256 private constant DUE_REFRESH = 1 minutes;

    /// @dev In place of a rule's index, where none is due: an owner closes the position.
    uint256 private constant CLOSE_ALL_RULE = type(uint8).max;

    /// @dev The gas that one exit of a batch may use, more than ten times what one costs: a token that burns all it gets
    /// leaves the others theirs. `executeExit` has no such bound.
    uint256 private constant MAX_EXIT_GAS = 3_000_000;

    /// @dev A pool's fee is in millionths.
    uint256 private constant FEE_UNITS = 1e6;

    IERC20 private immutable _usdc;
    IAgentRegistry private immutable _agents;
    IAllocationManager private immutable _allocations;
    IPositionManager private immutable _positions;
    IVaultTrackRegistry private immutable _tracks;

    Venue private _venue;
    ITradePolicy private _policy;

    constructor(
        address admin,
        address usdc_,
        address agentRegistry_,
        address allocationManager_,
        address positionManager_,
        address vaultTrackRegistry_,
        address tradePolicy_
    ) EIP712("Service TradeRouter", "1") TwoStepAdmin(admin) {
        if (
            admin == address(0) || usdc_ == address(0) || agentRegistry_ == address(0)
                || allocationManager_ == address(0) || positionManager_ == address(0)
                || vaultTrackRegistry_ == address(0) || tradePolicy_ == address(0)
        ) revert ZeroAddress();
        _usdc = IERC20(usdc_);
        _agents = IAgentRegistry(agentRegistry_);
        _allocations = IAllocationManager(allocationManager_);
        _positions = IPositionManager(positionManager_);
        _tracks = IVaultTrackRegistry(vaultTrackRegistry_);
        _policy = ITradePolicy(tradePolicy_);
    }

    /// @inheritdoc ITradeRouter
    function openPosition(PositionIntent calldata intent, bytes calldata signature)
        external
        onlyRole(EXECUTOR_ROLE)
        nonReentrant
        returns (uint256 positionId)
    {
        Trader memory trader = _authorize(intent.agentId, intent.nonce, intent.deadline, intent.hash(), signature, true);
        if (trader.vault != intent.vault) revert VaultMismatch(intent.agentId, trader.vault, intent.vault);
        Buy memory buy = Buy({
            trader: trader,
            agentId: intent.agentId,
            token: intent.token,
            amount: intent.usdcAmount,
            minTokenOut: intent.minTokenOut,
            maxSlippageBps: intent.maxSlippageBps,
            deadline: intent.deadline,
            capitalMode: 0
        });
        Quote memory quote = _checkMarket(buy);
        uint256 ladder = _positions.newLadder(buy.agentId, buy.token, trader.vault, trader.track, intent.exits);
        _bookBuy(buy);
        _fillPrice(buy.token, quote);
        uint256 tokens = _buy(buy, quote);

        positionId = _positions.openPosition(
            IPositionManager.NewPosition({
                agentId: buy.agentId,
                vault: trader.vault,
                token: buy.token,
                tokenAmount: tokens,
                usdcAmount: buy.amount,
                entryPriceUsdc: PriceMath.entryPrice(buy.amount, tokens, quote.decimals),
                maxSlippageBps: buy.maxSlippageBps,
                ladder: ladder,
                priceRound: quote.round,
                capitalMode: buy.capitalMode
            })
        );
        emit PositionOpenedFromIntent(positionId, buy.agentId, trader.vault, buy.token, buy.amount);
    }

    /// @inheritdoc ITradeRouter
    function addToPosition(AddToPositionIntent calldata intent, bytes calldata signature)
        external
        onlyRole(EXECUTOR_ROLE)
        nonReentrant
        returns (uint256 tokensAdded)
    {
        Trader memory trader = _authorize(intent.agentId, intent.nonce, intent.deadline, intent.hash(), signature, true);
        IPositionManager.PositionState memory position = _openStateOf(intent.positionId, intent.agentId);
        Buy memory buy = Buy({
            trader: trader,
            agentId: intent.agentId,
            token: position.token,
            amount: intent.usdcAmount,
            minTokenOut: intent.minTokenOut,
            maxSlippageBps: intent.maxSlippageBps,
            deadline: intent.deadline,
            capitalMode: 0
        });
        Quote memory quote = _checkMarket(buy);
        _bookBuy(buy);
        if (buy.capitalMode != position.capitalMode) {
            revert CapitalModeMismatch(intent.positionId, position.capitalMode);
        }
        _fillPrice(buy.token, quote);
        _checkNothingPending(intent.positionId, position, quote);
        tokensAdded = _buy(buy, quote);

        _positions.increasePosition(
            IPositionManager.Increase({
                positionId: intent.positionId,
                tokensAdded: tokensAdded,
                usdcAdded: buy.amount,
                entryPriceUsdc: PriceMath.entryPrice(
                    position.usdcCostBasis + buy.amount, position.tokenAmount + tokensAdded, quote.decimals
                ),
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
        Trader memory trader =
            _authorize(intent.agentId, intent.nonce, intent.deadline, intent.hash(), signature, false);
        IPositionManager.PositionState memory position = _openStateOf(intent.positionId, intent.agentId);
        if (intent.exitBps == 0 || intent.exitBps > PriceMath.BPS) revert BpsOutOfRange(intent.exitBps);

        Quote memory quote = _sellQuote(trader.vault, position.token);
        Sale memory sale = _saleOf(intent.positionId, position, trader.vault, trader.track);
        sale.amount = _shareOf(position.tokenAmount, intent.exitBps, quote);
        if (sale.amount == 0) revert InvalidReduceAmount(intent.positionId);
        sale.dueSince = trader.dueSince;
        uint256 value = sale.amount == position.tokenAmount ? type(uint256).max : _valueOf(sale.amount, quote);
        (sale.slippageBps, quote.fairPrice) =
            _policy.checkReduce(_marketOf(sale, quote), value, position.maxSlippageBps, intent.deadline);
        sale.slippageBps = Math.min(sale.slippageBps, MAX_EXIT_SLIPPAGE_BPS);
        usdcOut = _sellAll(sale, _floorOf(sale, sale.amount, quote), quote);

        (sale.sold, sale.usdcOut) = (sale.amount, usdcOut);
        address keeper = trader.keeper;
        uint256 bounty = _bookSale(sale, position, quote, keeper == address(0) ? 0 : _bountyOf(sale, quote));
        usdcOut -= bounty;
        _positions.reducePosition(intent.positionId, sale.amount, usdcOut);
        emit PositionReducedFromIntent(intent.positionId, intent.agentId, intent.exitBps, usdcOut);
        if (bounty != 0) IMandateVault(sale.vault).pullAssetsForTrade(keeper, bounty);
    }

    /// @inheritdoc ITradeRouter
    function updateExitLadder(UpdateExitLadderIntent calldata intent, bytes calldata signature)
        external
        onlyRole(EXECUTOR_ROLE)
        nonReentrant
    {
        Trader memory trader =
            _authorize(intent.agentId, intent.nonce, intent.deadline, intent.hash(), signature, false);
        IPositionManager.PositionState memory position = _openStateOf(intent.positionId, intent.agentId);
        if (_isOver(trader.status)) revert AgentNotTradable(intent.agentId);
        _checkNoExitInProgress(intent.positionId, position);
        if (intent.deadline > block.timestamp + MIN_DEADLINE_BOUND) {
            _policy.checkDeadline(trader.vault, trader.track, intent.deadline);
        }
        uint8 nextRuleIndex = _positions.updateExitLadder(
            intent.positionId, intent.exits, trader.vault, trader.track, trader.isRestricted
        );
        emit PositionExitLadderUpdatedFromIntent(intent.positionId, intent.agentId, nextRuleIndex);
    }

    /// @inheritdoc ITradeRouter
    function executeExit(uint256 positionId) external nonReentrant returns (uint256 usdcOut) {
        (, usdcOut) = _executeExit(positionId, msg.sender);
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
            try this.executeExitFor{gas: MAX_EXIT_GAS}(positionIds[i], msg.sender) returns (ExitStatus status) {
                statuses[i] = status;
            } catch (bytes memory reason) {
                statuses[i] = _statusOf(reason);
                reasons[i] = reason;
            }
        }
    }

    /// @notice Executes one exit of a batch in a call of its own, so that it can fail alone; only the router itself
    function executeExitFor(uint256 positionId, address keeper) external returns (ExitStatus status) {
        if (msg.sender != address(this)) revert OnlySelf(msg.sender);
        (status,) = _executeExit(positionId, keeper);
    }

    /// @inheritdoc ITradeRouter
    function forceClose(uint256 positionId) external onlyRole(OPERATOR_ROLE) nonReentrant {
        IPositionManager.PositionState memory position = _openStateOf(positionId, 0);
        (, address vault, uint8 track, uint8 status,) = _agents.saleContextOf(position.agentId);
        if (status == uint8(IAgentRegistry.AgentStatus.Active)) revert AgentNotSuspended(position.agentId);
        Sale memory sale = _saleOf(positionId, position, vault, track);
        (sale.amount, sale.forced) = (position.tokenAmount, true);
        Quote memory quote = _priceIfFresh(vault, position.token);
        (quote.price, sale.slippageBps) = _policy.checkForceClose(_marketOf(sale, quote));
        quote.fairPrice = quote.price;
        _sellUpTo(sale, quote);
        if (sale.sold == 0) revert ExitFloorNotMet(positionId, sale.slippageBps, 0);

        _bookSale(sale, position, quote, 0);
        _positions.reducePosition(positionId, sale.sold, sale.usdcOut);
        if (sale.sold == sale.amount) {
            emit PositionForceClosed(positionId, sale.agentId, msg.sender, sale.usdcOut);
        } else {
            emit PositionPartlyForceClosed(positionId, sale.agentId, msg.sender, sale.usdcOut, sale.amount - sale.sold);
        }
    }

    /// @inheritdoc ITradeRouter
    function cancelNonce(uint256 agentId, uint256 nonce) external {
        if (!_agents.mayCancelFor(agentId, msg.sender)) revert NotOwnerOrSigner(agentId, msg.sender);
        _allocations.cancelNonce(agentId, nonce);
        emit NonceCancelled(agentId, nonce, msg.sender);
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
    function setTradePolicy(address policy) external onlyRole(DEFAULT_ADMIN_ROLE) {
        if (policy == address(0)) revert ZeroAddress();
        emit TradePolicyUpdated(address(_policy), policy);
        _policy = ITradePolicy(policy);
    }

    /// @inheritdoc ITradeRouter
    function nonces(uint256) external view returns (uint256) {
        return _askAllocations();
    }

    /// @inheritdoc ITradeRouter
    function dailyTurnoverUsdc(uint256, uint256) external view returns (uint256) {
        return _askAllocations();
    }

    /// @inheritdoc ITradeRouter
    function dailyRealizedPnlUsdc(uint256, uint256) external view returns (int256) {
        return int256(_askAllocations());
    }

    /// @inheritdoc ITradeRouter
    function lifetimeRealizedPnlUsdc(uint256) external view returns (int256) {
        return int256(_askAllocations());
    }

    /// @inheritdoc ITradeRouter
    function tradePolicy() external view returns (address) {
        return address(_policy);
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

    /// @dev The allocation manager has functions with the same names and arguments.
    function _askAllocations() private view returns (uint256) {
        return BoundedCall.read(address(_allocations), msg.data);
    }

    /// @dev The common head of the four intents: in time, in order, and signed by the agent. Uses up the nonce.
    function _authorize(
        uint256 agentId,
        uint256 nonce,
        uint256 deadline,
        bytes32 structHash,
        bytes calldata signature,
        bool isBuy
    ) private returns (Trader memory trader) {
        if (block.timestamp > deadline) revert ExpiredDeadline();
        uint256 execution;
        (trader.vault, trader.track, trader.status, trader.isRestricted, execution) =
            _allocations.authorize(agentId, nonce, _hashTypedDataV4(structHash), signature, isBuy);
        // forge-lint: disable-next-line(unsafe-typecast): `IOrderBook.executionOf` packs them so
        (trader.keeper, trader.dueSince) = (address(uint160(execution >> 96)), uint40(execution >> 56));
    }

    /// @dev Reverts unless the token may be bought here at all. Fills in the oracle and the token's decimals.
    function _checkMarket(Buy memory buy) private view returns (Quote memory quote) {
        bool paused;
        bool allowed;
        (quote.oracle, quote.maxAge, paused, quote.decimals, allowed) =
            IMandateVault(buy.trader.vault).buyContextOf(buy.token);
        if (paused) revert IMandateVault.TradingPaused();
        if (!allowed) revert TokenNotAllowed(buy.token);
        if (buy.maxSlippageBps > PriceMath.BPS) revert BpsOutOfRange(buy.maxSlippageBps);
        if (buy.amount == 0) revert InvalidTradeAmount(buy.amount);
    }

    function _fillPrice(address token, Quote memory quote) private view {
        (quote.price, quote.updatedAt, quote.round) = IPriceOracle(quote.oracle).freshPrice(token, quote.maxAge);
    }

    /// @dev The allocation manager checks the limits, and asks the agent's mandate where it has some.
    function _bookBuy(Buy memory buy) private {
        Trader memory trader = buy.trader;
        buy.capitalMode = _allocations.bookBuy(
            buy.agentId, trader.vault, trader.track, buy.amount, trader.isRestricted ? buy.token : address(0)
        );
    }

    /// @dev Checks the policy, and buys.
    function _buy(Buy memory buy, Quote memory quote) private returns (uint256 tokens) {
        address adapter = _venue.adapter;
        address vault = buy.trader.vault;
        uint256 slippageBps;
        (slippageBps, quote.fairPrice) = _policy.checkBuy(
            ITradePolicy.Market(
                vault, buy.trader.track, adapter, buy.token, quote.price, quote.updatedAt, buy.trader.dueSince
            ),
            buy.amount,
            buy.maxSlippageBps,
            buy.deadline
        );
        uint256 atOracle = PriceMath.tokensFor(buy.amount, quote.price, quote.decimals);
        uint256 minimum =
            Math.max(buy.minTokenOut, PriceMath.lessBps(atOracle, Math.min(slippageBps, buy.maxSlippageBps)));

        if (_isSimulated(buy.capitalMode)) {
            tokens = Math.min(ISwapAdapter(adapter).quoteUsdcForToken(buy.token, buy.amount), atOracle);
        } else {
            IMandateVault(vault).pullAssetsForTrade(adapter, buy.amount);
            tokens = ISwapAdapter(adapter).swapUsdcForToken(vault, buy.token, buy.amount, minimum);
        }
        if (tokens < minimum || tokens == 0) revert SlippageExceeded(minimum, tokens);
        if (!_isSimulated(buy.capitalMode)) _enter(vault, buy.token, tokens);
        uint256 worth = PriceMath.usdcValue(tokens, quote.fairPrice, quote.decimals);
        uint256 waste = Math.saturatingSub(_afterFee(buy.amount, adapter, buy.token), worth);
        if (waste != 0) _allocations.bookWaste(buy.agentId, waste);
    }

    /// @dev What a trade brought counts only as far as the vault has it.
    function _enter(address vault, address token, uint256 amount) private {
        uint256 ledger = IMandateVault(vault).recordReceived(token, amount);
        uint256 balance = IERC20(token).balanceOf(vault);
        if (ledger > balance) revert LedgerExceedsVaultBalance(token, ledger, balance);
    }

    function _executeExit(uint256 positionId, address keeper) private returns (ExitStatus status, uint256 kept) {
        IPositionManager.PositionState memory position = _openStateOf(positionId, 0);
        (, address vault, uint8 track,, uint256 mandate) = _agents.saleContextOf(position.agentId);
        Quote memory quote = _sellQuote(vault, position.token);
        Sale memory sale = _saleOf(positionId, position, vault, track);
        sale.isClosing = mandate.isClosing();
        _findDueRule(sale, position, quote);
        if (sale.isClosing) sale.amount = position.tokenAmount;
        else if (sale.rule == CLOSE_ALL_RULE) revert TriggerNotMet(positionId);
        bytes memory refusal = _sellWithinPolicy(sale, quote);
        if (sale.sold == 0) {
            _deferExit(sale, refusal);
            return (ExitStatus.Deferred, 0);
        }
        return _bookExit(sale, position, quote, keeper);
    }

    /// @dev Records that the exit is due, so that its floor widens; reverts when that was recorded a moment ago.
    function _deferExit(Sale memory sale, bytes memory refusal) private {
        if (block.timestamp < sale.seenAt + DUE_REFRESH) _revertUnsold(sale, refusal);
        _positions.recordDueExit(sale.positionId, sale.rule, sale.dueSince);
        emit ExitDeferred(sale.positionId, sale.agentId, sale.rule.toUint8(), sale.dueSince, sale.slippageBps);
    }

    function _bookExit(
        Sale memory sale,
        IPositionManager.PositionState memory position,
        Quote memory quote,
        address keeper
    ) private returns (ExitStatus status, uint256 kept) {
        uint256 bounty = _bookSale(sale, position, quote, _bountyOf(sale, quote));
        kept = sale.usdcOut - bounty;
        uint256 left = sale.amount - sale.sold;
        if (left != 0) status = ExitStatus.PartlyExecuted;
        if (sale.isClosing) {
            _positions.reducePosition(sale.positionId, sale.sold, kept);
            if (left != 0) _positions.recordDueExit(sale.positionId, sale.rule, sale.dueSince);
            emit OwnerCloseExecuted(sale.positionId, sale.agentId, keeper, sale.sold, kept, bounty, left);
        } else if (left == 0) {
            (uint8 firedIndex,) = _positions.applyLadderExit(sale.positionId, sale.rule, sale.sold, kept);
            emit ExitExecuted(sale.positionId, sale.agentId, firedIndex, keeper, kept, bounty);
        } else {
            _positions.applyPartialLadderExit(sale.positionId, sale.rule, sale.sold, kept, left, sale.dueSince);
            emit ExitPartlyExecuted(sale.positionId, sale.agentId, sale.rule.toUint8(), keeper, kept, bounty, left);
        }
        if (bounty != 0) IMandateVault(sale.vault).pullAssetsForTrade(keeper, bounty);
    }

    /// @dev Finds the rule that is due, how much it sells, and since when. A rule that has sold a part of its share goes on, whatever
    /// the price is now. A close goes on from what is recorded, of whichever rule.
    function _findDueRule(Sale memory sale, IPositionManager.PositionState memory position, Quote memory quote)
        private
        view
    {
        IPositionManager.DueExit memory due;
        if (position.hasDueExit) due = _positions.dueExitOf(sale.positionId);
        if (due.tokensLeft != 0) {
            sale.rule = due.ruleIndex;
            sale.amount = due.tokensLeft;
        } else {
            sale.rule = position.dueRule(quote.price, quote.updatedAt, quote.round, quote.decimals);
            if (sale.rule == position.ladder.count()) {
                sale.rule = CLOSE_ALL_RULE;
            } else {
                sale.amount = _shareOf(position.tokenAmount, position.ladder.exitBps(sale.rule), quote);
                if (sale.amount == 0) sale.amount = position.tokenAmount;
            }
        }
        sale.dueSince = block.timestamp;
        bool isRecorded = due.ruleIndex == sale.rule || sale.isClosing;
        if (due.since != 0 && isRecorded && block.timestamp <= due.seenAt + DUE_EXPIRY) {
            sale.dueSince = due.since;
            sale.seenAt = due.seenAt;
        }
    }

    /// @dev Sells all of it, or reverts when it brings less than `minimum`.
    function _sellAll(Sale memory sale, uint256 minimum, Quote memory quote) private returns (uint256 usdcOut) {
        address adapter = _venue.adapter;
        if (sale.simulated) {
            (, usdcOut) = ISwapAdapter(adapter).quoteTokenForUsdc(sale.token, sale.amount, 0);
            usdcOut = Math.min(usdcOut, _valueOf(sale.amount, quote));
        } else {
            _pullTokens(sale, adapter);
            usdcOut = ISwapAdapter(adapter).swapTokenForUsdc(sale.vault, sale.token, sale.amount, minimum);
        }
        if (usdcOut < minimum) revert SlippageExceeded(minimum, usdcOut);
        if (!sale.simulated) _enter(sale.vault, address(_usdc), usdcOut);
    }

    /// @dev Sells as much as the venue takes within the policy; nothing, with the reason, when the policy refuses.
    function _sellWithinPolicy(Sale memory sale, Quote memory quote) private returns (bytes memory refusal) {
        try _policy.checkExit(_marketOf(sale, quote)) returns (uint256 slippageBps, uint256 fairPrice) {
            (sale.slippageBps, quote.fairPrice) = (slippageBps, fairPrice);
            _sellUpTo(sale, quote);
        } catch (bytes memory reason) {
            return reason;
        }
    }

    /// @dev Sells as much as the venue takes within the slippage, which it bounds.
    function _sellUpTo(Sale memory sale, Quote memory quote) private {
        address adapter = _venue.adapter;
        sale.slippageBps = Math.min(sale.slippageBps, MAX_EXIT_SLIPPAGE_BPS);
        uint256 minPrice = PriceMath.minPriceOf(quote.price, sale.slippageBps);
        if (sale.simulated) {
            (sale.sold, sale.usdcOut) = ISwapAdapter(adapter).quoteTokenForUsdc(sale.token, sale.amount, minPrice);
            sale.usdcOut = Math.min(sale.usdcOut, _valueOf(sale.sold, quote));
        } else {
            _pullTokens(sale, adapter);
            (sale.sold, sale.usdcOut) =
                ISwapAdapter(adapter).sellTokenUpTo(sale.vault, sale.token, sale.amount, minPrice);
            if (sale.sold < sale.amount) _enter(sale.vault, sale.token, sale.amount - sale.sold);
        }
        // The pool rounds what it pays down by up to a unit.
        uint256 minimum = _floorOf(sale, sale.sold, quote);
        if (sale.usdcOut + 1 < minimum) {
            if (!sale.simulated) revert SlippageExceeded(minimum, sale.usdcOut);
            sale.sold = 0;
        }
        if (sale.usdcOut != 0 && !sale.simulated) _enter(sale.vault, address(_usdc), sale.usdcOut);
    }

    function _pullTokens(Sale memory sale, address adapter) private {
        IMandateVault vault = IMandateVault(sale.vault);
        if (sale.forced) vault.pullTokenForForceClose(sale.token, adapter, sale.amount);
        else vault.pullTokenForTrade(sale.token, adapter, sale.amount);
    }

    /// @return bounty `wantedBounty`, bounded by what keepers may still get for the agent's exits today
    function _bookSale(
        Sale memory sale,
        IPositionManager.PositionState memory position,
        Quote memory quote,
        uint256 wantedBounty
    ) private returns (uint256 bounty) {
        return _allocations.bookSale(
            sale.agentId,
            IAllocationManager.SaleFigures({
                usdcOut: sale.usdcOut,
                fairUsdc: _afterFee(
                    PriceMath.usdcValue(sale.sold, quote.fairPrice, quote.decimals), _venue.adapter, sale.token
                ),
                released: PriceMath.releasedCost(position.usdcCostBasis, sale.sold, position.tokenAmount),
                wantedBounty: wantedBounty,
                maxBounty: _venue.maxKeeperBounty
            })
        );
    }

    /// @dev What the pool leaves of an amount: its fee is no waste.
    function _afterFee(uint256 usdcAmount, address adapter, address token) private view returns (uint256) {
        return usdcAmount * (FEE_UNITS - ISwapAdapter(adapter).poolFeeOf(token)) / FEE_UNITS;
    }

    /// @dev The price is 0 when it is stale.
    function _priceIfFresh(address vault, address token) private view returns (Quote memory quote) {
        (quote.oracle, quote.maxAge,, quote.decimals) = IMandateVault(vault).sellContextOf(token);
        if (IPriceOracle(quote.oracle).isStale(token, quote.maxAge)) return quote;
        (quote.price, quote.updatedAt,) = IPriceOracle(quote.oracle).peekPrice(token);
    }

    function _marketOf(Sale memory sale, Quote memory quote) private view returns (ITradePolicy.Market memory) {
        return ITradePolicy.Market(
            sale.vault, sale.track, _venue.adapter, sale.token, quote.price, quote.updatedAt, sale.dueSince
        );
    }

    function _sellQuote(address vault, address token) private view returns (Quote memory quote) {
        bool paused;
        (quote.oracle, quote.maxAge, paused, quote.decimals) = IMandateVault(vault).sellContextOf(token);
        if (paused) revert IMandateVault.TradingPaused();
        _fillPrice(token, quote);
    }

    /// @param agentId Whose position it must be; 0 = anybody's
    function _openStateOf(uint256 positionId, uint256 agentId)
        private
        view
        returns (IPositionManager.PositionState memory position)
    {
        position = _positions.positionStateOf(positionId);
        if (agentId != 0 && position.agentId != agentId) revert PositionAgentMismatch(positionId, agentId);
        if (position.tokenAmount == 0) revert PositionNotOpen(positionId);
    }

    /// @dev Stricter than protocol.md: an add waits while a pending rule is met, armed or not, so no add postpones a stop.
    function _checkNothingPending(
        uint256 positionId,
        IPositionManager.PositionState memory position,
        Quote memory quote
    ) private view {
        _checkNoExitInProgress(positionId, position);
        if (position.metRule(quote.price, quote.decimals) != position.ladder.count()) {
            revert PendingRuleAlreadyTriggered(positionId);
        }
    }

    function _checkNoExitInProgress(uint256 positionId, IPositionManager.PositionState memory position) private view {
        if (position.hasDueExit && _positions.dueExitOf(positionId).tokensLeft != 0) revert ExitInProgress(positionId);
    }

    /// @dev A keeper never takes what the exit's floor promises the vault. The allocation manager bounds what all keepers together
    /// take for one agent's exits per UTC day by `maxKeeperBounty`: an agent that fires its own exits to farm bounties
    /// gets that much at most, out of its own record. A simulated exit pays nothing.
    function _bountyOf(Sale memory sale, Quote memory quote) private view returns (uint256) {
        if (sale.simulated) return 0;
        uint256 aboveFloor = Math.saturatingSub(sale.usdcOut, _floorOf(sale, sale.sold, quote));
        return Math.min(PriceMath.shareOf(sale.usdcOut, _venue.keeperBountyBps), aboveFloor);
    }

    /// @dev Passes the policy's refusal on, or names the floor that the venue does not meet.
    function _revertUnsold(Sale memory sale, bytes memory refusal) private pure {
        if (refusal.length == 0) revert ExitFloorNotMet(sale.positionId, sale.slippageBps, sale.dueSince);
        assembly ("memory-safe") {
            revert(add(refusal, 32), mload(refusal))
        }
    }

    function _saleOf(uint256 positionId, IPositionManager.PositionState memory position, address vault, uint8 track)
        private
        pure
        returns (Sale memory sale)
    {
        sale.positionId = positionId;
        sale.agentId = position.agentId;
        sale.vault = vault;
        sale.track = track;
        sale.token = position.token;
        sale.simulated = _isSimulated(position.capitalMode);
    }

    /// @dev Returns all of it when the rest would be worth nothing: no dust keeps a position open.
    function _shareOf(uint256 tokens, uint256 exitBps, Quote memory quote) private pure returns (uint256 share) {
        share = PriceMath.shareOf(tokens, exitBps);
        if (_valueOf(tokens - share, quote) == 0) share = tokens;
    }

    function _valueOf(uint256 tokens, Quote memory quote) private pure returns (uint256) {
        return PriceMath.usdcValue(tokens, quote.price, quote.decimals);
    }

    function _floorOf(Sale memory sale, uint256 tokens, Quote memory quote) private pure returns (uint256) {
        return PriceMath.saleFloor(tokens, PriceMath.minPriceOf(quote.price, sale.slippageBps), quote.decimals);
    }

    function _isSimulated(uint8 capitalMode) private pure returns (bool) {
        return capitalMode == uint8(IVaultTrackRegistry.CapitalMode.Simulated);
    }

    function _isOver(uint8 status) private pure returns (bool) {
        return status == uint8(IAgentRegistry.AgentStatus.Failed) || status == uint8(IAgentRegistry.AgentStatus.Exited);
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
