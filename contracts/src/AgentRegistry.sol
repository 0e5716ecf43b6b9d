// SPDX-License-Identifier: MIT
pragma solidity ^0.8.30;

import {IERC721} from "@openzeppelin/contracts/token/ERC721/IERC721.sol";
import {EIP712} from "@openzeppelin/contracts/utils/cryptography/EIP712.sol";
import {Nonces} from "@openzeppelin/contracts/utils/Nonces.sol";
import {SafeCast} from "@openzeppelin/contracts/utils/math/SafeCast.sol";
import {Pausable} from "@openzeppelin/contracts/utils/Pausable.sol";
import {ReentrancyGuardTransient} from "@openzeppelin/contracts/utils/ReentrancyGuardTransient.sol";
import {PriceCarrier} from "./access/PriceCarrier.sol";
import {TwoStepAdmin} from "./access/TwoStepAdmin.sol";
import {IAgentRegistry} from "./interfaces/IAgentRegistry.sol";
import {IAllocationManager} from "./interfaces/IAllocationManager.sol";
import {IFeeManager} from "./interfaces/IFeeManager.sol";
import {IOwnerControls} from "./interfaces/IOwnerControls.sol";
import {IPromotionCriteria} from "./interfaces/IPromotionCriteria.sol";
import {IVaultTrackRegistry} from "./interfaces/IVaultTrackRegistry.sol";
import {MandateState} from "./libraries/MandateState.sol";
import {Signatures} from "./libraries/Signatures.sol";

/// @title Who may trade: agents, their keys, their vault and track, and their ERC-8004 identity
contract AgentRegistry is
    IAgentRegistry,
    PriceCarrier,
    TwoStepAdmin,
    Pausable,
    EIP712,
    Nonces,
    ReentrancyGuardTransient
{
    using MandateState for uint256;
    using SafeCast for uint256;

    /// @dev What trading reads comes first: `tradeContextOf` costs two slots and the pause flag.
    struct AgentRecord {
        address signer;
        // Of the agent's orders, without the epoch of a stop that is in force (`orderContextOf`)
        uint32 buyEpoch;
        uint32 saleEpoch;
        uint8 track;
        uint8 status;
        bool hasERC8004Identity;
        // Second slot
        address vault;
        // A `MandateState`, for whoever reads the vault
        uint96 mandateState;
        // Third slot and on
        address owner;
        uint32 transfers;
        uint64 createdAt;
        address payoutRecipient;
        uint256 erc8004AgentId;
        string name;
        string metadataURI;
    }

    bytes32 public constant REGISTRAR_ROLE = keccak256("REGISTRAR_ROLE");
    bytes32 public constant OPERATOR_ROLE = keccak256("OPERATOR_ROLE");
    bytes32 public constant GUARDIAN_ROLE = keccak256("GUARDIAN_ROLE");

    /// @inheritdoc IAgentRegistry
    // forgefmt: disable-next-item
    bytes32 public constant SELF_REGISTER_TYPEHASH =
        keccak256("SelfRegister(address vault,string name,string metadataURI,address signer,bool linkERC8004,uint256 erc8004AgentId,uint256 nonce,uint256 deadline)");

    /// @inheritdoc IAgentRegistry
    bytes32 public constant LINK_ERC8004_TYPEHASH =
        keccak256("LinkERC8004(uint256 agentId,uint256 erc8004AgentId,uint256 nonce,uint256 deadline)");

    /// @notice The longest name and metadata URI, in bytes; neither may be empty.
    uint256 public constant MAX_NAME_LENGTH = 128;
    uint256 public constant MAX_METADATA_URI_LENGTH = 2048;

    /// @inheritdoc IAgentRegistry
    address public immutable vaultTrackRegistry;
    /// @inheritdoc IAgentRegistry
    address public immutable allocationManager;
    /// @inheritdoc IAgentRegistry
    address public immutable feeManager;
    /// @inheritdoc IAgentRegistry
    address public immutable erc8004IdentityRegistry;
    /// @inheritdoc IAgentRegistry
    uint256 public immutable erc8004ChainId;

    /// @inheritdoc IAgentRegistry
    uint256 public nextAgentId = 1;

    /// @inheritdoc IAgentRegistry
    address public promotionCriteria;

    /// @inheritdoc IAgentRegistry
    address public ownerControls;

    /// @inheritdoc IAgentRegistry
    address public orderBook;

    /// @inheritdoc IAgentRegistry
    mapping(uint256 erc8004AgentId => uint256 agentId) public agentIdByERC8004;

    mapping(uint256 agentId => AgentRecord) private _agents;

    /// @param admin Receives DEFAULT_ADMIN_ROLE
    /// @param erc8004IdentityRegistry_ On this chain; the zero address where there is none, and then nothing is linked
    constructor(
        address admin,
        address vaultTrackRegistry_,
        address allocationManager_,
        address feeManager_,
        address erc8004IdentityRegistry_
    ) EIP712("Service AgentRegistry", "1") TwoStepAdmin(admin) {
        if (
            admin == address(0) || vaultTrackRegistry_ == address(0) || allocationManager_ == address(0)
                || feeManager_ == address(0)
        ) revert ZeroAddress();
        vaultTrackRegistry = vaultTrackRegistry_;
        allocationManager = allocationManager_;
        feeManager = feeManager_;
        erc8004IdentityRegistry = erc8004IdentityRegistry_;
        erc8004ChainId = block.chainid;
    }

    modifier onlyAgentOwner(uint256 agentId) {
        _checkAgentOwner(agentId);
        _;
    }

    modifier onlyAgentOwnerOrControls(uint256 agentId) {
        if (msg.sender != ownerControls) _checkAgentOwner(agentId);
        _;
    }

    /// @inheritdoc IAgentRegistry
    function registerAgent(
        address owner,
        address vault,
        string calldata name,
        string calldata metadataURI,
        address signer,
        bool linkERC8004,
        uint256 erc8004AgentId
    ) external onlyRole(REGISTRAR_ROLE) whenNotPaused nonReentrant returns (uint256 agentId) {
        return _register(
            Registration({
                owner: owner,
                vault: vault,
                name: name,
                metadataURI: metadataURI,
                signer: signer,
                linkERC8004: linkERC8004,
                erc8004AgentId: erc8004AgentId
            })
        );
    }

    /// @inheritdoc IAgentRegistry
    function selfRegisterAgent(
        address vault,
        string calldata name,
        string calldata metadataURI,
        address signer,
        bool linkERC8004,
        uint256 erc8004AgentId,
        uint256 deadline,
        bytes calldata signature
    ) external whenNotPaused nonReentrant returns (uint256 agentId) {
        Registration memory registration = Registration({
            owner: signer,
            vault: vault,
            name: name,
            metadataURI: metadataURI,
            signer: signer,
            linkERC8004: linkERC8004,
            erc8004AgentId: erc8004AgentId
        });
        _checkDeadline(deadline);
        bytes32 digest = _hashSelfRegister(registration, nonces(registration.signer), deadline);
        _checkSignature(registration.signer, digest, signature);

        _useNonce(registration.signer);
        return _register(registration);
    }

    /// @inheritdoc IAgentRegistry
    function registerOwnedAgent(
        Registration calldata registration,
        uint256 deadline,
        bytes calldata signature,
        OwnerConsent calldata consent
    ) external whenNotPaused nonReentrant returns (uint256 agentId) {
        address signer = registration.signer;
        if (registration.owner == signer) revert OwnerIsSigner(signer);
        _checkDeadline(deadline);
        _checkSignature(signer, _hashSelfRegister(registration, nonces(signer), deadline), signature);
        if (ownerControls == address(0)) revert OwnerControlsNotSet();

        _useNonce(signer);
        IOwnerControls(ownerControls).useConsent(registration, consent);
        return _register(registration);
    }

    /// @inheritdoc IAgentRegistry
    function linkERC8004Identity(uint256 agentId, uint256 erc8004AgentId) external nonReentrant {
        if (_agent(agentId).owner != msg.sender && !hasRole(REGISTRAR_ROLE, msg.sender)) {
            revert NotAgentOwner(agentId, msg.sender);
        }
        _link(agentId, erc8004AgentId);
    }

    /// @inheritdoc IAgentRegistry
    function linkERC8004IdentityWithSignature(
        uint256 agentId,
        uint256 erc8004AgentId,
        uint256 deadline,
        bytes calldata signature
    ) external nonReentrant {
        address owner = _agent(agentId).owner;
        _checkDeadline(deadline);
        bytes32 digest = hashLinkERC8004(agentId, erc8004AgentId, nonces(owner), deadline);
        _checkSignature(owner, digest, signature);

        _useNonce(owner);
        _link(agentId, erc8004AgentId);
    }

    /// @inheritdoc IAgentRegistry
    function updateAgentMetadata(uint256 agentId, string calldata metadataURI) external onlyAgentOwner(agentId) {
        _checkMetadataURI(bytes(metadataURI).length);
        _agents[agentId].metadataURI = metadataURI;
        emit AgentMetadataUpdated(agentId, metadataURI);
    }

    /// @inheritdoc IAgentRegistry
    function setAgentSigner(uint256 agentId, address signer) external onlyAgentOwnerOrControls(agentId) {
        if (signer == address(0)) revert ZeroAddress();
        _agents[agentId].signer = signer;
        _voidOrders(agentId, true);
        emit AgentSignerUpdated(agentId, signer);
    }

    /// @inheritdoc IAgentRegistry
    function transferAgentOwnership(uint256 agentId, address newOwner) external onlyAgentOwnerOrControls(agentId) {
        if (newOwner == address(0)) revert ZeroAddress();
        AgentRecord storage agent = _agents[agentId];
        emit AgentOwnershipTransferred(agentId, agent.owner, newOwner);
        agent.owner = newOwner;
        ++agent.transfers;
        _voidOrders(agentId, true);
        agent.payoutRecipient = newOwner;
        emit PayoutRecipientUpdated(agentId, newOwner);
        IAllocationManager(allocationManager).freeFormerOwner(agentId);
    }

    /// @inheritdoc IAgentRegistry
    function setPayoutRecipient(uint256 agentId, address payoutRecipient) external onlyAgentOwner(agentId) {
        if (payoutRecipient == address(0)) revert ZeroAddress();
        _agents[agentId].payoutRecipient = payoutRecipient;
        emit PayoutRecipientUpdated(agentId, payoutRecipient);
    }

    /// @inheritdoc IAgentRegistry
    function setAgentStatus(uint256 agentId, uint8 status) external onlyRole(OPERATOR_ROLE) nonReentrant {
        AgentRecord storage agent = _agent(agentId);
        if (status > uint8(type(AgentStatus).max)) revert InvalidAgentStatus(status);
        uint8 from = agent.status;
        if (!_isLegalMove(AgentStatus(from), AgentStatus(status))) revert IllegalStatusMove(agentId, from, status);

        agent.status = status;
        emit AgentStatusChanged(agentId, from, status);

        if (_isFinal(AgentStatus(status))) IAllocationManager(allocationManager).onAgentRemoved(agentId);
    }

    /// @inheritdoc IAgentRegistry
    function promoteAgent(uint256 agentId, uint8 track) external whenNotPaused nonReentrant {
        AgentRecord storage agent = _agent(agentId);
        (uint8 from, uint8 status, address vault) = (agent.track, agent.status, agent.vault);
        if (!_isInGoodStanding(status)) revert AgentNotPromotable(agentId, status);
        if (track > uint8(type(Track).max) || track != from + 1) revert InvalidTrack(track);
        _checkVaultTrack(vault, track);
        if (promotionCriteria == address(0)) revert PromotionCriteriaNotSet();
        IPromotionCriteria(promotionCriteria).check(agentId, track);

        agent.track = track;
        emit AgentPromoted(agentId, vault, from, track);
        _voidOrders(agentId, false);
        if (status != uint8(AgentStatus.Active)) {
            agent.status = uint8(AgentStatus.Active);
            emit AgentStatusChanged(agentId, status, uint8(AgentStatus.Active));
        }

        IAllocationManager(allocationManager).onAgentPromoted(agentId, vault, from, track);
        // Nobody else's call spends what the owner has approved.
        address payer = hasRole(OPERATOR_ROLE, msg.sender) ? agent.owner : msg.sender;
        IFeeManager(feeManager).payPromotionFee(payer, agentId, vault, from, track);
    }

    /// @inheritdoc IAgentRegistry
    function setPromotionCriteria(address criteria) external onlyRole(DEFAULT_ADMIN_ROLE) {
        if (criteria == address(0)) revert ZeroAddress();
        emit PromotionCriteriaUpdated(promotionCriteria, criteria);
        promotionCriteria = criteria;
    }

    /// @inheritdoc IAgentRegistry
    function setOwnerControls(address controls) external onlyRole(DEFAULT_ADMIN_ROLE) {
        if (controls == address(0)) revert ZeroAddress();
        emit OwnerControlsUpdated(ownerControls, controls);
        ownerControls = controls;
    }

    /// @inheritdoc IAgentRegistry
    function setMandateState(uint256 agentId, uint256 state) external {
        if (msg.sender != ownerControls) revert OnlyOwnerControls(msg.sender);
        (, uint32 buyEpoch, uint32 saleEpoch) = orderContextOf(agentId);
        _agents[agentId].mandateState = state.toUint96();
        (, uint32 nextBuyEpoch, uint32 nextSaleEpoch) = orderContextOf(agentId);
        // The epoch of a stop is stored when it is lifted, so that stopping writes one slot.
        if (nextBuyEpoch < buyEpoch) _agents[agentId].buyEpoch = buyEpoch;
        if (nextSaleEpoch < saleEpoch) _agents[agentId].saleEpoch = saleEpoch;
        if (nextBuyEpoch > buyEpoch || nextSaleEpoch > saleEpoch) {
            emit OrdersVoided(agentId, nextBuyEpoch, nextSaleEpoch);
        }
    }

    /// @inheritdoc IAgentRegistry
    function setOrderBook(address book) external onlyRole(DEFAULT_ADMIN_ROLE) {
        if (book == address(0)) revert ZeroAddress();
        emit OrderBookUpdated(orderBook, book);
        orderBook = book;
    }

    /// @inheritdoc IAgentRegistry
    function pause() external {
        if (!hasRole(GUARDIAN_ROLE, msg.sender)) _checkRole(OPERATOR_ROLE);
        _pause();
    }

    /// @inheritdoc IAgentRegistry
    function unpause() external onlyRole(OPERATOR_ROLE) {
        _unpause();
    }

    /// @inheritdoc IAgentRegistry
    function getAgent(uint256 agentId) external view returns (Agent memory) {
        return _toAgent(_agent(agentId));
    }

    /// @inheritdoc IAgentRegistry
    function ownerOf(uint256 agentId) external view returns (address) {
        return _agent(agentId).owner;
    }

    /// @inheritdoc IAgentRegistry
    function orderContextOf(uint256 agentId) public view returns (address vault, uint32 buyEpoch, uint32 saleEpoch) {
        AgentRecord storage agent = _agents[agentId];
        address signer;
        uint256 mandate;
        (signer, buyEpoch, saleEpoch) = (agent.signer, agent.buyEpoch, agent.saleEpoch);
        (vault, mandate) = (agent.vault, agent.mandateState);
        if (signer == address(0)) revert AgentNotFound(agentId);
        if (mandate.isStopped()) ++buyEpoch;
        if (mandate.isClosing()) ++saleEpoch;
    }

    /// @inheritdoc IAgentRegistry
    function transferCountOf(uint256 agentId) external view returns (uint256) {
        return _agent(agentId).transfers;
    }

    /// @inheritdoc IAgentRegistry
    function vaultOf(uint256 agentId) external view returns (address) {
        return _agent(agentId).vault;
    }

    /// @inheritdoc IAgentRegistry
    function trackOf(uint256 agentId) external view returns (uint8) {
        return _agent(agentId).track;
    }

    /// @inheritdoc IAgentRegistry
    function statusOf(uint256 agentId) external view returns (uint8) {
        return _agent(agentId).status;
    }

    /// @inheritdoc IAgentRegistry
    function signerOf(uint256 agentId) external view returns (address) {
        return _agent(agentId).signer;
    }

    /// @inheritdoc IAgentRegistry
    function mayCancelFor(uint256 agentId, address account) external view returns (bool) {
        AgentRecord storage agent = _agent(agentId);
        return account == agent.signer || account == agent.owner || account == ownerControls;
    }

    /// @inheritdoc IAgentRegistry
    function payoutRecipientOf(uint256 agentId) external view returns (address) {
        return _agent(agentId).payoutRecipient;
    }

    /// @inheritdoc IAgentRegistry
    function hasERC8004Identity(uint256 agentId) external view returns (bool) {
        return _agent(agentId).hasERC8004Identity;
    }

    /// @inheritdoc IAgentRegistry
    function tradeContextOf(uint256 agentId)
        external
        view
        returns (address signer, address vault, uint8 track, uint8 status, uint256 mandateState, bool registryPaused)
    {
        (signer, vault, track, status, mandateState) = _tradeContextOf(agentId);
        registryPaused = paused();
    }

    /// @inheritdoc IAgentRegistry
    function saleContextOf(uint256 agentId)
        external
        view
        returns (address signer, address vault, uint8 track, uint8 status, uint256 mandateState)
    {
        return _tradeContextOf(agentId);
    }

    /// @inheritdoc IAgentRegistry
    function mandateStateOf(uint256 agentId) external view returns (uint256 state) {
        return _agent(agentId).mandateState;
    }

    /// @inheritdoc IAgentRegistry
    function getAgentByERC8004(uint256 erc8004AgentId) external view returns (Agent memory) {
        uint256 agentId = agentIdByERC8004[erc8004AgentId];
        if (agentId == 0) revert ERC8004IdentityNotLinked(erc8004AgentId);
        return _toAgent(_agents[agentId]);
    }

    /// @inheritdoc IAgentRegistry
    function isERC8004OwnerCurrent(uint256 agentId) external view returns (bool) {
        return _isLinkLive(_agent(agentId));
    }

    /// @inheritdoc IAgentRegistry
    function isPayoutEligible(uint256 agentId) external view returns (bool) {
        AgentRecord storage agent = _agent(agentId);
        return _isInGoodStanding(agent.status)
            && IAllocationManager(allocationManager).capitalModeOf(agentId)
                == uint8(IVaultTrackRegistry.CapitalMode.Real) && (!agent.hasERC8004Identity || _isLinkLive(agent));
    }

    /// @inheritdoc IAgentRegistry
    function hashSelfRegister(
        address vault,
        string calldata name,
        string calldata metadataURI,
        address signer,
        bool linkERC8004,
        uint256 erc8004AgentId,
        uint256 nonce,
        uint256 deadline
    ) external view returns (bytes32 digest) {
        Registration memory registration = Registration({
            owner: signer,
            vault: vault,
            name: name,
            metadataURI: metadataURI,
            signer: signer,
            linkERC8004: linkERC8004,
            erc8004AgentId: erc8004AgentId
        });
        return _hashSelfRegister(registration, nonce, deadline);
    }

    /// @inheritdoc IAgentRegistry
    function hashLinkERC8004(uint256 agentId, uint256 erc8004AgentId, uint256 nonce, uint256 deadline)
        public
        view
        returns (bytes32 digest)
    {
        return _hashTypedDataV4(keccak256(abi.encode(LINK_ERC8004_TYPEHASH, agentId, erc8004AgentId, nonce, deadline)));
    }

    /// @inheritdoc IAgentRegistry
    function nonces(address signer) public view override(IAgentRegistry, Nonces) returns (uint256) {
        return super.nonces(signer);
    }

    /// @inheritdoc IAgentRegistry
    function paused() public view override(IAgentRegistry, Pausable) returns (bool) {
        return super.paused();
    }

    function _register(Registration memory registration) private returns (uint256 agentId) {
        if (registration.owner == address(0) || registration.signer == address(0)) revert ZeroAddress();
        uint256 nameLength = bytes(registration.name).length;
        if (nameLength == 0 || nameLength > MAX_NAME_LENGTH) revert InvalidName(nameLength);
        _checkMetadataURI(bytes(registration.metadataURI).length);
        if (!registration.linkERC8004 && registration.erc8004AgentId != 0) {
            revert ERC8004IdWithoutLink(registration.erc8004AgentId);
        }
        if (!IVaultTrackRegistry(vaultTrackRegistry).isRegisteredVault(registration.vault)) {
            revert VaultNotRegistered(registration.vault);
        }
        uint8 track = uint8(Track.Challenge);
        _checkVaultTrack(registration.vault, track);

        agentId = nextAgentId++;
        AgentRecord storage agent = _agents[agentId];
        agent.signer = registration.signer;
        agent.createdAt = uint64(block.timestamp);
        agent.track = track;
        agent.status = uint8(AgentStatus.Active);
        agent.vault = registration.vault;
        agent.owner = registration.owner;
        agent.payoutRecipient = registration.owner;
        agent.name = registration.name;
        agent.metadataURI = registration.metadataURI;
        emit AgentRegistered(
            agentId, registration.vault, registration.owner, registration.signer, registration.metadataURI, track
        );
        if (registration.linkERC8004) _link(agentId, registration.erc8004AgentId);

        IAllocationManager(allocationManager).onAgentRegistered(agentId, registration.vault, track);
        _payRegistrationFee(agentId);
    }

    function _payRegistrationFee(uint256 agentId) private {
        IFeeManager fees = IFeeManager(feeManager);
        if (msg.sender == fees.registrationFeeRelayer()) fees.payRegistrationFeePrepaid(agentId);
        else fees.payRegistrationFee(msg.sender, agentId);
    }

    function _link(uint256 agentId, uint256 erc8004AgentId) private {
        AgentRecord storage agent = _agents[agentId];
        address owner = agent.owner;
        address holder = _holderOf(erc8004AgentId);
        if (holder == address(0)) revert ERC8004IdentityNotFound(erc8004AgentId);
        if (holder != owner) revert ERC8004OwnerMismatch(erc8004AgentId, owner, holder);
        if (_isLinkLive(agent)) revert ERC8004AlreadyLinked(agent.erc8004AgentId, agentId);
        uint256 previous = agentIdByERC8004[erc8004AgentId];
        if (previous != 0 && _agents[previous].owner == holder) revert ERC8004AlreadyLinked(erc8004AgentId, previous);

        // Both sides of a dead link go, or it would come to life again with a transfer of the token.
        if (previous != 0) _unlink(previous);
        if (agent.hasERC8004Identity) _unlink(agentId);
        agent.hasERC8004Identity = true;
        agent.erc8004AgentId = erc8004AgentId;
        agentIdByERC8004[erc8004AgentId] = agentId;
        emit ERC8004IdentityLinked(agentId, erc8004IdentityRegistry, erc8004ChainId, erc8004AgentId, owner);
    }

    function _unlink(uint256 agentId) private {
        AgentRecord storage agent = _agents[agentId];
        uint256 erc8004AgentId = agent.erc8004AgentId;
        agent.hasERC8004Identity = false;
        agent.erc8004AgentId = 0;
        delete agentIdByERC8004[erc8004AgentId];
        emit ERC8004IdentityUnlinked(agentId, erc8004AgentId);
    }

    /// @dev Reads each of the two slots once.
    function _tradeContextOf(uint256 agentId)
        private
        view
        returns (address signer, address vault, uint8 track, uint8 status, uint256 mandateState)
    {
        AgentRecord storage agent = _agents[agentId];
        (signer, track, status) = (agent.signer, agent.track, agent.status);
        (vault, mandateState) = (agent.vault, agent.mandateState);
        if (signer == address(0)) revert AgentNotFound(agentId);
    }

    /// @param withSales Whether the orders that sell end too, and not only those that buy
    function _voidOrders(uint256 agentId, bool withSales) private {
        AgentRecord storage agent = _agents[agentId];
        (uint32 buyEpoch, uint32 saleEpoch) = (agent.buyEpoch + 1, agent.saleEpoch);
        if (withSales) ++saleEpoch;
        (agent.buyEpoch, agent.saleEpoch) = (buyEpoch, saleEpoch);
        uint256 mandate = agent.mandateState;
        if (mandate.isStopped()) ++buyEpoch;
        if (mandate.isClosing()) ++saleEpoch;
        emit OrdersVoided(agentId, buyEpoch, saleEpoch);
    }

    function _agent(uint256 agentId) private view returns (AgentRecord storage agent) {
        agent = _agents[agentId];
        if (agent.signer == address(0)) revert AgentNotFound(agentId);
    }

    function _toAgent(AgentRecord storage agent) private view returns (Agent memory) {
        return Agent({
            owner: agent.owner,
            signer: agent.signer,
            payoutRecipient: agent.payoutRecipient,
            vault: agent.vault,
            track: agent.track,
            status: agent.status,
            name: agent.name,
            metadataURI: agent.metadataURI,
            createdAt: agent.createdAt,
            hasERC8004Identity: agent.hasERC8004Identity,
            erc8004AgentId: agent.erc8004AgentId
        });
    }

    function _isLinkLive(AgentRecord storage agent) private view returns (bool) {
        return agent.hasERC8004Identity && _holderOf(agent.erc8004AgentId) == agent.owner;
    }

    /// @dev Zero for a token that does not exist, and for every token where there is no identity registry.
    function _holderOf(uint256 erc8004AgentId) private view returns (address) {
        if (erc8004IdentityRegistry == address(0)) return address(0);
        try IERC721(erc8004IdentityRegistry).ownerOf(erc8004AgentId) returns (address holder) {
            return holder;
        } catch {
            return address(0);
        }
    }

    function _hashSelfRegister(Registration memory registration, uint256 nonce, uint256 deadline)
        private
        view
        returns (bytes32)
    {
        return _hashTypedDataV4(
            keccak256(
                abi.encode(
                    SELF_REGISTER_TYPEHASH,
                    registration.vault,
                    keccak256(bytes(registration.name)),
                    keccak256(bytes(registration.metadataURI)),
                    registration.signer,
                    registration.linkERC8004,
                    registration.erc8004AgentId,
                    nonce,
                    deadline
                )
            )
        );
    }

    function _checkAgentOwner(uint256 agentId) private view {
        if (_agent(agentId).owner != msg.sender) revert NotAgentOwner(agentId, msg.sender);
    }

    function _checkVaultTrack(address vault, uint8 track) private view {
        if (!IVaultTrackRegistry(vaultTrackRegistry).isVaultTrackActive(vault, track)) {
            revert VaultTrackNotActive(vault, track);
        }
    }

    function _checkDeadline(uint256 deadline) private view {
        if (block.timestamp > deadline) revert ExpiredDeadline();
    }

    function _checkSignature(address signer, bytes32 digest, bytes calldata signature) private view {
        if (!Signatures.isValid(signer, digest, signature)) revert InvalidSignature();
    }

    function _checkMetadataURI(uint256 length) private pure {
        if (length == 0 || length > MAX_METADATA_URI_LENGTH) revert InvalidMetadataURI(length);
    }

    function _isLegalMove(AgentStatus from, AgentStatus to) private pure returns (bool) {
        if (from == to || to == AgentStatus.Draft || _isFinal(from)) return false;
        return to != AgentStatus.Graduated || from == AgentStatus.Active;
    }

    function _isFinal(AgentStatus status) private pure returns (bool) {
        return status == AgentStatus.Failed || status == AgentStatus.Exited;
    }

    function _isInGoodStanding(uint8 status) private pure returns (bool) {
        return status == uint8(AgentStatus.Active) || status == uint8(AgentStatus.Graduated);
    }
}
