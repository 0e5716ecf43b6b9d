// SPDX-License-Identifier: MIT
pragma solidity ^0.8.30;

import {SafeCast} from "@openzeppelin/contracts/utils/math/SafeCast.sol";
import {TwoStepAdmin} from "./access/TwoStepAdmin.sol";
import {IAllocationManager} from "./interfaces/IAllocationManager.sol";
import {IMandateVault} from "./interfaces/IMandateVault.sol";
import {ITradeRouter} from "./interfaces/ITradeRouter.sol";
import {IVaultTrackRegistry} from "./interfaces/IVaultTrackRegistry.sol";

/// @title Allocations, one storage slot each
/// @dev `IAllocationManager` documents the functions.
contract AllocationManager is IAllocationManager, TwoStepAdmin {
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
        ITradeRouter(tradeRouter).onTrackEntered(agentId);
    }

    /// @inheritdoc IAllocationManager
    function onAgentRemoved(uint256 agentId) external onlyAgentRegistry {
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
    function releaseAllocationByRouter(uint256 agentId, uint256 amount) external onlyTradeRouter {
        Book storage book = _bookOf(agentId);
        _setUsed(book, book.used - amount);
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
    function tradeAllocationOf(uint256 agentId) external view returns (uint256 cap, uint256 used, uint8 status) {
        Book storage book = _books[agentId];
        return (book.cap, book.used, book.status);
    }

    /// @inheritdoc IAllocationManager
    function buyAllocationOf(uint256 agentId, address vault)
        external
        view
        returns (uint256 cap, uint256 used, uint8 status, uint8 capitalMode, uint256 totalCaps)
    {
        Book storage book = _books[agentId];
        return (book.cap, book.used, book.status, book.capitalMode, totalAgentCaps[vault]);
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

    function _isReal(uint8 capitalMode) private pure returns (bool) {
        return capitalMode == uint8(IVaultTrackRegistry.CapitalMode.Real);
    }

    function _checkAgentRegistry() private view {
        if (msg.sender != agentRegistry) revert OnlyAgentRegistry(msg.sender);
    }
}
