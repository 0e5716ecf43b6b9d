// SPDX-License-Identifier: MIT
pragma solidity ^0.8.30;

import {Math} from "@openzeppelin/contracts/utils/math/Math.sol";
import {SafeCast} from "@openzeppelin/contracts/utils/math/SafeCast.sol";
import {TwoStepAdmin} from "./access/TwoStepAdmin.sol";
import {AgentLedger} from "./allocation/AgentLedger.sol";
import {IAgentRegistry} from "./interfaces/IAgentRegistry.sol";
import {IAllocationManager} from "./interfaces/IAllocationManager.sol";
import {IMandateVault} from "./interfaces/IMandateVault.sol";
import {IOwnerControls} from "./interfaces/IOwnerControls.sol";
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

    /// @dev One slot, so that a trade reads and writes one. 80 bits hold 10^18 USDC.
    struct Book {
        uint80 cap;
        uint80 used;
        uint8 status;
        uint8 trackId;
        uint8 capitalMode;
        uint40 createdAt;
        // Seconds after `createdAt`
        uint32 age;
    }

    /// @dev A vault's assets; `total` is read only when idle USDC does not suffice to decide.
    struct Assets {
        uint256 idle;
        uint256 total;
    }

    bytes32 public constant OPERATOR_ROLE = keccak256("OPERATOR_ROLE");

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

    modifier onlyAgentRegistry() {
        _checkAgentRegistry();
        _;
    }

    modifier onlyTradeRouter() {
        if (msg.sender != tradeRouter) revert OnlyTradeRouter(msg.sender);
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
        _vaults[agentId] = vault;
        _books[agentId] = Book({
            cap: cap.toUint80(),
            used: 0,
            status: uint8(AllocationStatus.Active),
            trackId: trackId.toUint8(),
            capitalMode: mode,
            createdAt: block.timestamp.toUint40(),
            age: 0
        });
        if (_isReal(mode)) _addCap(vault, cap);

        emit AllocationCreated(agentId, vault, trackId, cap);
    }

    /// @inheritdoc IAllocationManager
    function onAgentPromoted(uint256 agentId, address vault, uint256, uint256 toTrackId) external onlyAgentRegistry {
        Book storage book = _bookOf(agentId);
        if (_vaults[agentId] != vault) revert VaultMismatch(agentId, _vaults[agentId], vault);
        if (book.status == uint8(AllocationStatus.Removed)) revert AllocationIsRemoved(agentId);

        uint256 oldCap = book.cap;
        uint256 newCap = _initialAllocation(vault, toTrackId);
        uint8 mode = IVaultTrackRegistry(vaultTrackRegistry).capitalModeOf(vault, toTrackId);
        if (_isReal(book.capitalMode)) totalAgentCaps[vault] -= oldCap;
        book.cap = newCap.toUint80();
        book.trackId = toTrackId.toUint8();
        book.capitalMode = mode;
        _touch(book);
        if (_isReal(mode)) _addCap(vault, newCap);

        emit AllocationCapUpdated(agentId, toTrackId, oldCap, newCap);
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
        _setUsed(_bookOf(agentId), used);
    }

    /// @inheritdoc IAllocationManager
    function authorize(uint256 agentId, uint256 nonce, bytes32 digest, bytes calldata signature, bool isBuy)
        external
        onlyTradeRouter
        returns (address vault, uint8 track, uint8 status, bool isRestricted)
    {
        IAgentRegistry agents = IAgentRegistry(agentRegistry);
        address signer;
        uint256 mandate;
        bool registryPaused;
        if (isBuy) (signer, vault, track, status, mandate, registryPaused) = agents.tradeContextOf(agentId);
        else (signer, vault, track, status, mandate) = agents.saleContextOf(agentId);
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

    /// @inheritdoc IAllocationManager
    function cancelNonce(uint256 agentId, uint256 nonce, address by) external onlyTradeRouter {
        IAgentRegistry agents = IAgentRegistry(agentRegistry);
        (address signer,,,,) = agents.saleContextOf(agentId);
        if (by != signer && by != agents.ownerOf(agentId) && by != agents.ownerControls()) {
            revert ITradeRouter.NotOwnerOrSigner(agentId, by);
        }
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

        (Account memory account, Activity memory activity) = _openAccount(agentId);
        Assets memory assets = Assets(IMandateVault(vault).idleAssets(), 0);
        capitalMode = book.capitalMode;
        uint256 used = Math.saturatingAdd(book.used, amount);
        uint256 effective = _effectiveCap(book, vault, activity.realizedPnl, assets);
        if (used > effective) revert ITradeRouter.ExceedsAllocationCap(agentId, used, effective);
        _checkSize(agentId, activity.turnover + amount, vault, amount, limits, assets);
        _checkLosses(agentId, activity, book.cap, limits);
        if (_isReal(capitalMode) && assets.idle < amount) {
            revert ITradeRouter.InsufficientIdleAssets(assets.idle, amount);
        }
        if (limitedToken != address(0)) {
            IOwnerControls(IAgentRegistry(agentRegistry).ownerControls())
                .checkBuy(agentId, limitedToken, amount, activity.turnover + amount, used);
        }
        _recordBuy(agentId, account, amount);
        _setUsed(book, used);
    }

    /// @inheritdoc IAllocationManager
    function bookSale(uint256 agentId, uint256 usdcOut, uint256 released, uint256 wantedBounty, uint256 maxBounty)
        external
        onlyTradeRouter
        returns (uint256 bounty)
    {
        Book storage book = _bookOf(agentId);
        _setUsed(book, book.used - released);
        (bounty,) = _recordSale(agentId, usdcOut, released, wantedBounty, maxBounty);
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
    function effectiveCapUsdc(uint256 agentId) external view returns (uint256) {
        Book storage book = _bookOf(agentId);
        address vault = _vaults[agentId];
        return _effectiveCap(book, vault, _trackPnl(agentId), Assets(IMandateVault(vault).idleAssets(), 0));
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
        _touch(book);
        if (status == AllocationStatus.Removed && _isReal(book.capitalMode)) {
            totalAgentCaps[_vaults[agentId]] -= book.cap;
        }

        emit AllocationStatusUpdated(agentId, old, uint8(status));
    }

    /// @dev Adjacent assignments are one write of the slot.
    function _setUsed(Book storage book, uint256 used) private {
        uint80 stored = used.toUint80();
        uint32 age = (block.timestamp - book.createdAt).toUint32();
        book.used = stored;
        book.age = age;
    }

    function _addCap(address vault, uint256 cap) private {
        uint256 caps = totalAgentCaps[vault] + cap;
        uint256 assets = IMandateVault(vault).totalAssets();
        if (caps > assets) revert CapsExceedAssets(vault, caps, assets);
        totalAgentCaps[vault] = caps;
    }

    function _touch(Book storage book) private {
        book.age = (block.timestamp - book.createdAt).toUint32();
    }

    function _bookOf(uint256 agentId) private view returns (Book storage book) {
        book = _books[agentId];
        if (book.createdAt == 0) revert AllocationNotFound(agentId);
    }

    function _initialAllocation(address vault, uint256 trackId) private view returns (uint256) {
        return IVaultTrackRegistry(vaultTrackRegistry).getVaultTrackConfig(vault, trackId).initialAllocation;
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

    /// @dev The cap less the realized loss; of a real cap its proportion where the vault's caps exceed its assets.
    function _effectiveCap(Book storage book, address vault, int256 realizedPnl, Assets memory assets)
        private
        view
        returns (uint256 effective)
    {
        effective = Math.saturatingSub(book.cap, _lossOf(realizedPnl));
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

    function _checkAgentRegistry() private view {
        if (msg.sender != agentRegistry) revert OnlyAgentRegistry(msg.sender);
    }
}
