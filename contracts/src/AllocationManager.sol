// SPDX-License-Identifier: MIT
pragma solidity ^0.8.30;

import {Math} from "@openzeppelin/contracts/utils/math/Math.sol";
import {SafeCast} from "@openzeppelin/contracts/utils/math/SafeCast.sol";
import {TwoStepAdmin} from "./access/TwoStepAdmin.sol";
import {AgentLedger} from "./allocation/AgentLedger.sol";
import {IAgentRegistry} from "./interfaces/IAgentRegistry.sol";
import {IAllocationManager} from "./interfaces/IAllocationManager.sol";
import {IMandateVault} from "./interfaces/IMandateVault.sol";
import {IOrderBook} from "./interfaces/IOrderBook.sol";
import {IOwnerControls} from "./interfaces/IOwnerControls.sol";
import {IPositionManager} from "./interfaces/IPositionManager.sol";
import {ITradeRouter} from "./interfaces/ITradeRouter.sol";
import {IVaultTrackRegistry} from "./interfaces/IVaultTrackRegistry.sol";
import {MandateState} from "./libraries/MandateState.sol";
import {PriceMath} from "./libraries/PriceMath.sol";
import {Signatures} from "./libraries/Signatures.sol";

/// @title Allocations, one storage slot each, and the limits that a track sets
/// @notice The trade router books every intent and trade here, so no replaceable policy can loosen a track. The part in
/// `allocation/` has what agents signed and did.
/// @dev `IAllocationManager` documents the functions.
contract AllocationManager is AgentLedger, TwoStepAdmin {
    using MandateState for uint256;
    using SafeCast for uint256;
    using SafeCast for int256;

    /// @dev One slot, so that a trade reads and writes one. 64 bits hold 18 trillion USDC. `waste` is what
    /// the fills lost beyond what a fair one costs, in cents, 42 million USDC at most; it fades from `age` on.
    struct Book {
        uint64 cap;
        uint64 used;
        uint8 status;
        uint8 trackId;
        uint8 capitalMode;
        uint40 createdAt;
        // Seconds after `createdAt`
        uint32 age;
        uint32 waste;
    }

    /// @dev One slot: whose vault shares answer for an agent's losses.
    struct FirstLoss {
        address owner;
        uint96 shares;
    }

    /// @dev A vault's assets; `total` is read only when idle USDC does not suffice to decide.
    struct Assets {
        uint256 idle;
        uint256 total;
    }

    bytes32 public constant OPERATOR_ROLE = keccak256("OPERATOR_ROLE");

    /// @dev Waste counts for less every day and for nothing after this time.
    uint256 private constant WASTE_WINDOW = 30 days;
    uint256 private constant WASTE_UNIT = 1e4;

    /// @dev No agent's next nonce: with it the router asks for the trade of an order.
    uint256 private constant ORDER_NONCE = type(uint256).max;

    /// @inheritdoc IAllocationManager
    address public immutable vaultTrackRegistry;

    /// @inheritdoc IAllocationManager
    address public agentRegistry;

    /// @inheritdoc IAllocationManager
    address public tradeRouter;

    /// @inheritdoc IAllocationManager
    mapping(address vault => uint256) public totalAgentCaps;

    mapping(uint256 agentId => Book) private _books;
    mapping(uint256 agentId => address) private _vaults;
    mapping(uint256 agentId => FirstLoss) private _firstLosses;

    /// @dev Of the purchase that is under way; 0 where nothing is bounded.
    uint256 private transient _wasteBound;

    modifier onlyAgentRegistry() {
        _checkAgentRegistry();
        _;
    }

    modifier onlyTradeRouter() {
        _checkTradeRouter();
        _;
    }

    constructor(address admin, address vaultTrackRegistry_) TwoStepAdmin(admin) {
        if (admin == address(0) || vaultTrackRegistry_ == address(0)) revert ZeroAddress();
        vaultTrackRegistry = vaultTrackRegistry_;
    }

    /// @inheritdoc IAllocationManager
    function onAgentRegistered(uint256 agentId, address vault, uint256 trackId) external onlyAgentRegistry {
        if (_vaults[agentId] != address(0)) revert AllocationAlreadyExists(agentId);

        uint256 cap = _initialAllocation(vault, trackId);
        uint8 mode = IVaultTrackRegistry(vaultTrackRegistry).capitalModeOf(vault, trackId);
        // Where a first track is on real capital, the owner's lock brings the cap.
        if (_isReal(mode) && _requiredFirstLoss(vault, trackId) != 0) cap = 0;
        _vaults[agentId] = vault;
        _books[agentId] = Book({
            cap: cap.toUint64(),
            used: 0,
            status: uint8(AllocationStatus.Active),
            trackId: trackId.toUint8(),
            capitalMode: mode,
            createdAt: block.timestamp.toUint40(),
            age: 0,
            waste: 0
        });
        if (_isReal(mode)) _addCap(vault, cap);

        emit AllocationCreated(agentId, vault, trackId, cap);
    }

    /// @inheritdoc IAllocationManager
    function onAgentPromoted(uint256 agentId, address vault, uint256, uint256 toTrackId) external onlyAgentRegistry {
        Book storage book = _bookOf(agentId);
        if (_vaults[agentId] != vault) revert VaultMismatch(agentId, _vaults[agentId], vault);
        if (book.status == uint8(AllocationStatus.Removed)) revert AllocationIsRemoved(agentId);

        uint256 newCap = _initialAllocation(vault, toTrackId);
        uint8 mode = IVaultTrackRegistry(vaultTrackRegistry).capitalModeOf(vault, toTrackId);
        if (_isReal(book.capitalMode)) totalAgentCaps[vault] -= book.cap;
        book.trackId = toTrackId.toUint8();
        _setCap(agentId, book, newCap);
        book.capitalMode = mode;
        _setUsed(book, book.used, 0);
        if (_isReal(mode)) _addCap(vault, newCap);
        _enterTrack(agentId);
    }

    /// @inheritdoc IAllocationManager
    function onAgentRemoved(uint256 agentId) external onlyAgentRegistry {
        if (_bookOf(agentId).status == uint8(AllocationStatus.Removed)) return;
        _setStatus(agentId, AllocationStatus.Removed);
    }

    /// @inheritdoc IAllocationManager
    function setAllocationStatus(uint256 agentId, uint8 status) external onlyRole(OPERATOR_ROLE) {
        if (status > uint8(type(AllocationStatus).max)) revert InvalidAllocationStatus(status);
        _setStatus(agentId, AllocationStatus(status));
    }

    /// @inheritdoc IAllocationManager
    function setAllocationUsedByRouter(uint256 agentId, uint256 used) external onlyTradeRouter {
        Book storage book = _bookOf(agentId);
        _setUsed(book, used, _wasteOf(book));
    }

    /// @inheritdoc IAllocationManager
    function authorize(uint256 agentId, uint256 nonce, bytes32 digest, bytes calldata signature, bool isBuy)
        external
        returns (address vault, uint8 track, uint8 status, bool isRestricted, uint256 execution)
    {
        execution = _executionOf(agentId, nonce);
        address signer;
        uint256 mandate;
        bool registryPaused;
        if (isBuy) {
            (signer, vault, track, status, mandate, registryPaused) =
                IAgentRegistry(agentRegistry).tradeContextOf(agentId);
        } else {
            (signer, vault, track, status, mandate) = IAgentRegistry(agentRegistry).saleContextOf(agentId);
        }
        if (execution == 0) {
            _useNonce(agentId, nonce);
            if (!Signatures.isValid(signer, digest, signature)) revert ITradeRouter.InvalidSignature();
        }
        if (!isBuy) {
            isRestricted = mandate.mode() == uint8(IAgentRegistry.MandateMode.Stopped);
        } else {
            if (registryPaused) revert ITradeRouter.RegistryPaused();
            if (status != uint8(IAgentRegistry.AgentStatus.Active)) revert ITradeRouter.AgentNotTradable(agentId);
            if (mandate != 0) isRestricted = _checkMandate(agentId, mandate);
        }
    }

    /// @inheritdoc IAllocationManager
    function cancelNonce(uint256 agentId, uint256 nonce) external onlyTradeRouter {
        _useNonce(agentId, nonce);
    }

    /// @inheritdoc IAllocationManager
    function bookBuy(uint256 agentId, address vault, uint256 trackId, uint256 amount, address limitedToken)
        external
        onlyTradeRouter
        returns (uint8 capitalMode)
    {
        IVaultTrackRegistry.TradePolicy memory limits =
            IVaultTrackRegistry(vaultTrackRegistry).tradePolicyOf(vault, trackId);
        if (!limits.active) revert ITradeRouter.VaultTrackNotActive(vault, trackId);
        Book storage book = _books[agentId];
        if (book.status != uint8(AllocationStatus.Active)) revert ITradeRouter.AllocationNotActive(agentId);

        capitalMode = book.capitalMode;
        if (!_isReal(capitalMode)) _markPaperEquity(agentId);
        (Account memory account, Activity memory activity) = _openAccount(agentId);
        Assets memory assets = Assets(IMandateVault(vault).idleAssets(), 0);
        uint256 used = Math.saturatingAdd(book.used, amount);
        uint256 effective = _effectiveCap(book, vault, activity.realizedPnl, limits.firstLossBps, assets, used);
        if (used > effective) revert ITradeRouter.ExceedsAllocationCap(agentId, used, effective);
        _checkSize(agentId, activity.turnover + amount, vault, amount, limits, assets);
        _checkLosses(agentId, activity, book.cap, limits);
        uint256 waste = _wasteOf(book);
        _wasteBound = _maxWaste(book, activity.peakRealizedPnl, limits.maxWasteBps);
        _checkWaste(agentId, waste);
        // What a fair round trip with the amount costs is no waste.
        waste = Math.saturatingSub(waste, PriceMath.shareOf(amount, limits.maxWasteBps));
        if (_isReal(capitalMode) && assets.idle < amount) {
            revert ITradeRouter.InsufficientIdleAssets(assets.idle, amount);
        }
        if (limitedToken != address(0)) {
            IOwnerControls(IAgentRegistry(agentRegistry).ownerControls())
                .checkBuy(agentId, limitedToken, amount, activity.turnover + amount, used);
        }
        _recordBuy(agentId, account, amount);
        _setUsed(book, used, waste);
    }

    /// @inheritdoc IAllocationManager
    function bookSale(uint256 agentId, SaleFigures calldata sale) external onlyTradeRouter returns (uint256 bounty) {
        Book storage book = _bookOf(agentId);
        bool isReal = _isReal(book.capitalMode);
        if (!isReal) _markPaperEquity(agentId);
        int256 trackPnl;
        (bounty, trackPnl) = _recordSale(agentId, sale.usdcOut, sale.released, sale.wantedBounty, sale.maxBounty);
        uint256 waste = Math.saturatingSub(sale.fairUsdc, sale.usdcOut) + bounty;
        _setUsed(book, book.used - sale.released, _wasteOf(book) + waste);
        if (trackPnl < 0 && isReal) _payLoss(agentId, _lossOf(trackPnl));
    }

    /// @inheritdoc IAllocationManager
    function bookWaste(uint256 agentId, uint256 waste) external onlyTradeRouter {
        Book storage book = _books[agentId];
        waste += book.waste * WASTE_UNIT;
        _checkWaste(agentId, waste);
        book.waste = _toWasteUnits(waste);
    }

    /// @inheritdoc IAllocationManager
    function lockFirstLoss(uint256 agentId, address owner, uint256 shares) external {
        if (msg.sender != IAgentRegistry(agentRegistry).ownerControls()) revert OnlyOwnerControls(msg.sender);
        Book storage book = _bookOf(agentId);
        FirstLoss memory held = _firstLosses[agentId];
        if (shares < held.shares && _isReal(book.capitalMode) && (shares != 0 || _isBound(agentId, book))) {
            revert FirstLossBound(agentId, held.shares, shares);
        }
        // What was lost before is not for this lock to pay.
        if (held.shares == 0) _recordLossPaid(agentId, _lossOf(_trackPnl(agentId)));

        _setFirstLoss(agentId, book, held, owner, shares);
        _grantLockedCap(agentId, book, _vaults[agentId], shares);
    }

    /// @inheritdoc IAllocationManager
    function freeFormerOwner(uint256 agentId) external {
        FirstLoss memory held = _firstLosses[agentId];
        if (held.shares == 0 || held.owner == IAgentRegistry(agentRegistry).ownerOf(agentId)) return;
        Book storage book = _books[agentId];
        if (!_isBound(agentId, book)) _setFirstLoss(agentId, book, held, held.owner, 0);
    }

    /// @inheritdoc IAllocationManager
    function setAgentRegistry(address registry) external onlyRole(DEFAULT_ADMIN_ROLE) {
        if (registry == address(0)) revert ZeroAddress();
        emit AgentRegistryUpdated(agentRegistry, registry);
        agentRegistry = registry;
    }

    /// @inheritdoc IAllocationManager
    function setTradeRouter(address router) external onlyRole(DEFAULT_ADMIN_ROLE) {
        if (router == address(0)) revert ZeroAddress();
        emit TradeRouterUpdated(tradeRouter, router);
        tradeRouter = router;
    }

    /// @inheritdoc IAllocationManager
    function getAllocation(uint256 agentId) external view returns (Allocation memory) {
        Book storage book = _bookOf(agentId);
        return Allocation({
            agentId: agentId,
            vault: _vaults[agentId],
            trackId: book.trackId,
            cap: book.cap,
            used: book.used,
            status: book.status,
            createdAt: book.createdAt,
            updatedAt: uint64(book.createdAt) + book.age
        });
    }

    /// @inheritdoc IAllocationManager
    function allocationCap(uint256 agentId) external view returns (uint256) {
        return _bookOf(agentId).cap;
    }

    /// @inheritdoc IAllocationManager
    function allocationUsed(uint256 agentId) external view returns (uint256) {
        return _bookOf(agentId).used;
    }

    /// @inheritdoc IAllocationManager
    function firstLossOf(uint256 agentId)
        external
        view
        returns (address owner, uint256 shares, uint256 valueUsdc, bool isBound)
    {
        Book storage book = _bookOf(agentId);
        address vault = _vaults[agentId];
        FirstLoss memory held = _firstLosses[agentId];
        return (held.owner, held.shares, IMandateVault(vault).convertToAssets(held.shares), _isBound(agentId, book));
    }

    /// @inheritdoc IAllocationManager
    function requiredFirstLossUsdc(uint256 agentId, uint256 trackId) external view returns (uint256) {
        IVaultTrackRegistry tracks = IVaultTrackRegistry(vaultTrackRegistry);
        address vault = _vaults[agentId];
        return _isReal(tracks.capitalModeOf(vault, trackId)) ? _requiredFirstLoss(vault, trackId) : 0;
    }

    /// @inheritdoc IAllocationManager
    function wasteOf(uint256 agentId) external view returns (uint256 usdc, uint256 maxUsdc, uint256 endsAt) {
        Book storage book = _bookOf(agentId);
        uint256 bps = _riskTermsOf(_vaults[agentId], book.trackId).maxWasteBps;
        return (_wasteOf(book), _maxWaste(book, _peakPnl(agentId), bps), _wasteEndsAt(book));
    }

    /// @inheritdoc IAllocationManager
    function effectiveCapUsdc(uint256 agentId) external view returns (uint256) {
        Book storage book = _bookOf(agentId);
        address vault = _vaults[agentId];
        uint256 firstLossBps = _riskTermsOf(vault, book.trackId).firstLossBps;
        Assets memory assets = Assets(IMandateVault(vault).idleAssets(), 0);
        return _effectiveCap(book, vault, _trackPnl(agentId), firstLossBps, assets, type(uint256).max);
    }

    /// @inheritdoc IAllocationManager
    function capitalModeOf(uint256 agentId) external view returns (uint8) {
        return _bookOf(agentId).capitalMode;
    }

    function _setStatus(uint256 agentId, AllocationStatus status) private {
        Book storage book = _bookOf(agentId);
        uint8 old = book.status;
        if (old == uint8(AllocationStatus.Removed)) revert AllocationIsRemoved(agentId);

        book.status = uint8(status);
        _setUsed(book, book.used, _wasteOf(book));
        if (status == AllocationStatus.Removed && _isReal(book.capitalMode)) {
            totalAgentCaps[_vaults[agentId]] -= book.cap;
        }

        emit AllocationStatusUpdated(agentId, old, uint8(status));
    }

    /// @dev Adjacent assignments are one write of the slot.
    function _setUsed(Book storage book, uint256 used, uint256 waste) private {
        uint64 usedNow = used.toUint64();
        uint32 age = (block.timestamp - book.createdAt).toUint32();
        uint32 units = _toWasteUnits(waste);
        book.used = usedNow;
        book.age = age;
        book.waste = units;
    }

    function _toWasteUnits(uint256 waste) private pure returns (uint32) {
        // forge-lint: disable-next-line(unsafe-typecast): the smaller one fits
        return uint32(Math.min(Math.ceilDiv(waste, WASTE_UNIT), type(uint32).max));
    }

    function _addCap(address vault, uint256 cap) private {
        uint256 caps = totalAgentCaps[vault] + cap;
        uint256 assets = IMandateVault(vault).totalAssets();
        if (caps > assets) revert CapsExceedAssets(vault, caps, assets);
        totalAgentCaps[vault] = caps;
    }

    function _bookOf(uint256 agentId) private view returns (Book storage book) {
        book = _books[agentId];
        if (book.createdAt == 0) revert AllocationNotFound(agentId);
    }

    /// @dev The cap of an agent that was registered on real capital comes with its lock.
    function _grantLockedCap(uint256 agentId, Book storage book, address vault, uint256 shares) private {
        if (book.cap != 0 || !_isReal(book.capitalMode) || book.status == uint8(AllocationStatus.Removed)) return;
        uint256 required = _requiredFirstLoss(vault, book.trackId);
        if (IMandateVault(vault).convertToAssets(shares) < required) return;
        uint256 cap = _initialAllocation(vault, book.trackId);
        _setCap(agentId, book, cap);
        _addCap(vault, cap);
    }

    function _setCap(uint256 agentId, Book storage book, uint256 cap) private {
        emit AllocationCapUpdated(agentId, book.trackId, book.cap, cap);
        book.cap = cap.toUint64();
    }

    /// @dev Pays what the agent has lost on its track, and what has not been paid before, out of the locked shares: those are
    /// burned, which raises the value of all others by as much.
    function _payLoss(uint256 agentId, uint256 loss) private {
        FirstLoss memory held = _firstLosses[agentId];
        if (held.shares == 0) return;
        uint256 due = _recordLossPaid(agentId, loss);
        if (due == 0) return;
        IMandateVault vault = IMandateVault(_vaults[agentId]);
        uint256 shares = Math.min(vault.convertToShares(due), held.shares);
        _firstLosses[agentId].shares = SafeCast.toUint96(held.shares - shares);
        emit FirstLossPaid(agentId, held.owner, shares, due);
        vault.burnFirstLoss(held.owner, shares);
    }

    /// @dev Paper equity counts its open positions at the last prices, at each trade.
    function _markPaperEquity(uint256 agentId) private {
        IPositionManager positions = IPositionManager(ITradeRouter(tradeRouter).positionManager());
        _recordMark(agentId, positions.unrealizedPnlOf(agentId));
    }

    function _setFirstLoss(uint256 agentId, Book storage book, FirstLoss memory held, address owner, uint256 shares)
        private
    {
        address vault = _vaults[agentId];
        if (shares < held.shares) _returnCap(agentId, book, vault);
        _firstLosses[agentId] = FirstLoss(owner, SafeCast.toUint96(shares));
        emit FirstLossUpdated(agentId, owner, shares);
        IMandateVault(vault).unlockFirstLoss(held.owner, held.shares);
        IMandateVault(vault).lockFirstLoss(owner, shares);
    }

    /// @dev A cap that came with a lock goes with it, and comes back with another one.
    function _returnCap(uint256 agentId, Book storage book, address vault) private {
        if (!_isReal(book.capitalMode) || book.status == uint8(AllocationStatus.Removed)) return;
        if (_requiredFirstLoss(vault, book.trackId) == 0) return;
        totalAgentCaps[vault] -= book.cap;
        _setCap(agentId, book, 0);
    }

    /// @dev Whether an agent may still lose real capital.
    function _isBound(uint256 agentId, Book storage book) private view returns (bool) {
        if (!_isReal(book.capitalMode)) return false;
        IPositionManager positions = IPositionManager(ITradeRouter(tradeRouter).positionManager());
        return positions.openPositionCountByAgent(agentId) != 0;
    }

    function _requiredFirstLoss(address vault, uint256 trackId) private view returns (uint256) {
        uint256 bps = _riskTermsOf(vault, trackId).firstLossBps;
        return Math.ceilDiv(_initialAllocation(vault, trackId) * bps, PriceMath.BPS);
    }

    function _riskTermsOf(address vault, uint256 trackId) private view returns (IVaultTrackRegistry.RiskTerms memory) {
        return IVaultTrackRegistry(vaultTrackRegistry).riskTermsOf(vault, trackId);
    }

    function _initialAllocation(address vault, uint256 trackId) private view returns (uint256) {
        return IVaultTrackRegistry(vaultTrackRegistry).getVaultTrackConfig(vault, trackId).initialAllocation;
    }

    /// @dev Reverts unless the caller is the router, or the order book with an intent that is signed. Returns who executes an
    /// order, when the router trades for one.
    function _executionOf(uint256 agentId, uint256 nonce) private view returns (uint256) {
        bool isRouter = msg.sender == tradeRouter;
        if (isRouter && nonce != ORDER_NONCE) return 0;
        address book = IAgentRegistry(agentRegistry).orderBook();
        if (!isRouter && msg.sender != book) revert OnlyTradeRouter(msg.sender);
        return !isRouter || book == address(0) ? 0 : IOrderBook(book).executionOf(agentId);
    }

    /// @return hasLimits Whether the mandate also has limits
    function _checkMandate(uint256 agentId, uint256 mandate) private view returns (bool hasLimits) {
        if (!mandate.isBuyingAllowed(block.timestamp)) {
            revert ITradeRouter.MandateStopsBuying(agentId, mandate.mode().toUint8(), mandate.validUntil());
        }
        return mandate.hasLimits();
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

    function _checkWaste(uint256 agentId, uint256 waste) private view {
        uint256 max = _wasteBound;
        if (max != 0 && waste > max) revert ITradeRouter.ExceedsWaste(agentId, waste, max);
    }

    function _wasteOf(Book storage book) private view returns (uint256) {
        uint256 left = Math.saturatingSub(_wasteEndsAt(book), block.timestamp);
        return book.waste * WASTE_UNIT * left / WASTE_WINDOW;
    }

    function _wasteEndsAt(Book storage book) private view returns (uint256) {
        return uint256(book.createdAt) + book.age + WASTE_WINDOW;
    }

    /// @dev No more than what 32 bits count, so that every cap has a bound.
    function _maxWaste(Book storage book, uint256 peakRealizedPnl, uint256 bps) private view returns (uint256) {
        if (bps == 0) return 0;
        return Math.min(PriceMath.shareOf(book.cap + peakRealizedPnl, bps), (type(uint32).max - 1) * WASTE_UNIT);
    }

    /// @dev The cap less the realized loss, or less the share of it that the loss has taken of the first-loss capital; a real one
    /// grows with the realized profit instead, up to the track's largest. Of a real cap its proportion where the vault's caps
    /// exceed its assets.
    /// @param needed The profit is looked at only where the cap alone is less than this
    function _effectiveCap(
        Book storage book,
        address vault,
        int256 realizedPnl,
        uint256 firstLossBps,
        Assets memory assets,
        uint256 needed
    ) private view returns (uint256 effective) {
        uint256 cap = book.cap;
        uint256 loss = _lossOf(realizedPnl);
        if (loss != 0 && firstLossBps != 0 && _isReal(book.capitalMode)) {
            loss = Math.ceilDiv(loss * PriceMath.BPS, firstLossBps);
        }
        effective = Math.saturatingSub(cap, loss);
        if (needed > effective && realizedPnl > 0 && cap != 0 && _isReal(book.capitalMode)) {
            uint256 largest =
                IVaultTrackRegistry(vaultTrackRegistry).getVaultTrackConfig(vault, book.trackId).maxAllocation;
            effective = Math.max(cap, Math.min(cap + realizedPnl.toUint256(), largest));
        }
        uint256 totalCaps = _isReal(book.capitalMode) ? totalAgentCaps[vault] : 0;
        if (totalCaps <= assets.idle) return effective;
        uint256 total = _totalOf(vault, assets);
        if (totalCaps > total) effective = Math.mulDiv(effective, total, totalCaps);
    }

    function _totalOf(address vault, Assets memory assets) private view returns (uint256) {
        if (assets.total == 0) assets.total = IMandateVault(vault).totalAssets();
        return assets.total;
    }

    function _isReal(uint8 capitalMode) private pure returns (bool) {
        return capitalMode == uint8(IVaultTrackRegistry.CapitalMode.Real);
    }

    function _checkTradeRouter() private view {
        if (msg.sender != tradeRouter) revert OnlyTradeRouter(msg.sender);
    }

    function _checkAgentRegistry() private view {
        if (msg.sender != agentRegistry) revert OnlyAgentRegistry(msg.sender);
    }
}
