// SPDX-License-Identifier: MIT
pragma solidity ^0.8.30;

import {ECDSA} from "@openzeppelin/contracts/utils/cryptography/ECDSA.sol";
import {EIP712} from "@openzeppelin/contracts/utils/cryptography/EIP712.sol";
import {SignatureChecker} from "@openzeppelin/contracts/utils/cryptography/SignatureChecker.sol";
import {SafeCast} from "@openzeppelin/contracts/utils/math/SafeCast.sol";
import {PriceCarrier} from "./access/PriceCarrier.sol";
import {IAgentRegistry} from "./interfaces/IAgentRegistry.sol";
import {IAllocationManager} from "./interfaces/IAllocationManager.sol";
import {IOwnerControls} from "./interfaces/IOwnerControls.sol";
import {ITradeRouter} from "./interfaces/ITradeRouter.sol";
import {MandateState} from "./libraries/MandateState.sol";
import {Signatures} from "./libraries/Signatures.sol";

/// @title The owner above the agent: what it signs, and the limits of its mandates
/// @dev `IOwnerControls` documents the functions. The registry holds the owner, the signer and the part of a mandate that
/// every trade reads (`MandateState`); this contract holds the limits, the offers and the owners' nonces. It has no admin.
contract OwnerControls is IOwnerControls, PriceCarrier, EIP712 {
    using MandateState for uint256;
    using SafeCast for uint256;

    /// @dev One slot, so that a buy reads it and at most one more. 64 bits hold 18 trillion USDC.
    struct Limits {
        uint64 maxTradeUsdc;
        uint64 maxDailyTurnoverUsdc;
        uint64 maxExposureUsdc;
        uint32 version;
        bool hasTokenList;
    }

    /// @dev One slot, which every message writes: the next nonce, and the last three stops and closes. Each has 64 bits: 48 of its
    /// digest, and the lowest 16 of the nonce after it. What is forgotten was signed below `remembersFrom`, and is refused by that.
    struct Messages {
        uint32 nonce;
        uint32 remembersFrom;
        uint192 stops;
    }

    /// @dev An offer ends with the next transfer, also when the agent comes back to the owner who made it.
    struct Offer {
        address to;
        uint32 transfers;
    }

    /// @inheritdoc IOwnerControls
    bytes32 public constant OFFER_OWNERSHIP_TYPEHASH =
        keccak256("OfferOwnership(uint256 agentId,address newOwner,uint256 nonce,uint256 deadline)");

    /// @inheritdoc IOwnerControls
    bytes32 public constant ACCEPT_OWNERSHIP_TYPEHASH =
        keccak256("AcceptOwnership(uint256 agentId,address signer,uint256 nonce,uint256 deadline)");

    /// @inheritdoc IOwnerControls
    bytes32 public constant SET_SIGNER_TYPEHASH =
        keccak256("SetSigner(uint256 agentId,address signer,uint256 nonce,uint256 deadline)");

    /// @inheritdoc IOwnerControls
    // forgefmt: disable-next-item
    bytes32 public constant SET_MANDATE_TYPEHASH =
        keccak256("SetMandate(uint256 agentId,uint8 mode,uint256 maxTradeUsdc,uint256 maxDailyTurnoverUsdc,uint256 maxExposureUsdc,address[] allowedTokens,uint256 validUntil,uint256 nonce,uint256 deadline)");

    /// @inheritdoc IOwnerControls
    bytes32 public constant STOP_BUYING_TYPEHASH =
        keccak256("StopBuying(uint256[] agentIds,uint256 nonce,uint256 deadline)");

    /// @inheritdoc IOwnerControls
    bytes32 public constant CLOSE_ALL_TYPEHASH =
        keccak256("CloseAll(uint256[] agentIds,uint256 nonce,uint256 deadline)");

    /// @inheritdoc IOwnerControls
    bytes32 public constant CANCEL_INTENTS_TYPEHASH =
        keccak256("CancelIntents(uint256 agentId,uint256 untilNonce,uint256 nonce,uint256 deadline)");

    /// @inheritdoc IOwnerControls
    bytes32 public constant LOCK_FIRST_LOSS_TYPEHASH =
        keccak256("LockFirstLoss(uint256 agentId,uint256 shares,uint256 nonce,uint256 deadline)");

    /// @inheritdoc IOwnerControls
    // forgefmt: disable-next-item
    bytes32 public constant OWN_AGENT_TYPEHASH =
        keccak256("OwnAgent(address signer,address vault,string name,string metadataURI,bool linkERC8004,uint256 erc8004AgentId,uint256 nonce,uint256 deadline)");

    /// @inheritdoc IOwnerControls
    uint256 public constant MAX_CANCELLED_NONCES = 64;

    /// @inheritdoc IOwnerControls
    uint256 public constant MAX_ALLOWED_TOKENS = 64;

    /// @dev Enough for a wallet that verifies a passkey's signature in Solidity.
    uint256 private constant CONTRACT_SIGNATURE_GAS = 500_000;

    uint192 private constant MARK = type(uint48).max;

    IAgentRegistry private immutable _agents;

    mapping(uint256 agentId => Limits) private _limits;
    mapping(uint256 agentId => Offer) private _offers;

    mapping(address owner => Messages) private _messages;

    /// @dev A new mandate starts an empty list under its own version: nothing has to be deleted.
    mapping(uint256 agentId => mapping(uint256 version => mapping(address token => bool))) private _allowedTokens;

    mapping(uint256 agentId => mapping(uint256 transfers => mapping(bytes32 examination => bytes32))) private
        _certificates;

    constructor(address agentRegistry_) EIP712("Service OwnerControls", "1") {
        if (agentRegistry_ == address(0)) revert ZeroAddress();
        _agents = IAgentRegistry(agentRegistry_);
    }

    /// @inheritdoc IOwnerControls
    function offerOwnership(
        uint256 agentId,
        address newOwner,
        uint256 nonce,
        uint256 deadline,
        bytes calldata signature
    ) external {
        address owner = _agents.ownerOf(agentId);
        bytes32 structHash = keccak256(abi.encode(OFFER_OWNERSHIP_TYPEHASH, agentId, newOwner, nonce, deadline));
        _authorize(owner, structHash, nonce, deadline, signature);
        _offers[agentId] = Offer(newOwner, _agents.transferCountOf(agentId).toUint32());
        emit OwnershipOffered(agentId, owner, newOwner);
    }

    /// @inheritdoc IOwnerControls
    function acceptOwnership(uint256 agentId, address signer, uint256 nonce, uint256 deadline, bytes calldata signature)
        external
    {
        address newOwner = pendingOwnerOf(agentId);
        if (newOwner == address(0)) revert NoOwnershipOffer(agentId);
        bytes32 structHash = keccak256(abi.encode(ACCEPT_OWNERSHIP_TYPEHASH, agentId, signer, nonce, deadline));
        _authorize(newOwner, structHash, nonce, deadline, signature);
        delete _offers[agentId];
        _agents.transferAgentOwnership(agentId, newOwner);
        _agents.setAgentSigner(agentId, signer);
    }

    /// @inheritdoc IOwnerControls
    function setSigner(uint256 agentId, address signer, uint256 nonce, uint256 deadline, bytes calldata signature)
        external
    {
        bytes32 structHash = keccak256(abi.encode(SET_SIGNER_TYPEHASH, agentId, signer, nonce, deadline));
        _authorize(_agents.ownerOf(agentId), structHash, nonce, deadline, signature);
        _agents.setAgentSigner(agentId, signer);
    }

    /// @inheritdoc IOwnerControls
    function setMandate(
        uint256 agentId,
        Mandate calldata mandate,
        uint256 nonce,
        uint256 deadline,
        bytes calldata signature
    ) external {
        address owner = _agents.ownerOf(agentId);
        _authorize(owner, _hashMandate(agentId, mandate, nonce, deadline), nonce, deadline, signature);
        _checkMandate(mandate);

        uint256 closingSince = _agents.mandateStateOf(agentId).closingSince();
        if (mandate.mode == uint8(IAgentRegistry.MandateMode.Trade) && closingSince != 0) {
            closingSince = 0;
            emit CloseAllEnded(agentId, owner);
        }
        bool hasLimits = _storeLimits(agentId, mandate);
        _agents.setMandateState(agentId, MandateState.pack(mandate.mode, mandate.validUntil, closingSince, hasLimits));
        emit MandateUpdated(agentId, owner, mandate);
    }

    /// @inheritdoc IOwnerControls
    function stopBuying(uint256[] calldata agentIds, uint256 nonce, uint256 deadline, bytes calldata signature)
        external
    {
        address[] memory owners = _authorizeForAll(STOP_BUYING_TYPEHASH, agentIds, nonce, deadline, signature);
        for (uint256 i; i < agentIds.length; ++i) {
            if (owners[i] == address(0)) continue;
            uint256 state = _agents.mandateStateOf(agentIds[i]);
            uint8 mode = _stop(agentIds[i], state, state.closingSince());
            emit BuyingStopped(agentIds[i], owners[i], mode);
        }
    }

    /// @inheritdoc IOwnerControls
    function closeAll(uint256[] calldata agentIds, uint256 nonce, uint256 deadline, bytes calldata signature) external {
        address[] memory owners = _authorizeForAll(CLOSE_ALL_TYPEHASH, agentIds, nonce, deadline, signature);
        for (uint256 i; i < agentIds.length; ++i) {
            if (owners[i] == address(0)) continue;
            uint256 state = _agents.mandateStateOf(agentIds[i]);
            uint256 since = state.closingSince();
            if (since == 0) since = block.timestamp;
            uint8 mode = _stop(agentIds[i], state, since);
            emit CloseAllStarted(agentIds[i], owners[i], mode, since);
        }
    }

    /// @inheritdoc IOwnerControls
    function cancelIntents(
        uint256 agentId,
        uint256 untilNonce,
        uint256 nonce,
        uint256 deadline,
        bytes calldata signature
    ) external {
        address owner = _agents.ownerOf(agentId);
        bytes32 structHash = keccak256(abi.encode(CANCEL_INTENTS_TYPEHASH, agentId, untilNonce, nonce, deadline));
        _authorize(owner, structHash, nonce, deadline, signature);

        ITradeRouter router = ITradeRouter(tradeRouter());
        uint256 first = router.nonces(agentId);
        if (untilNonce <= first || untilNonce - first > MAX_CANCELLED_NONCES) {
            revert InvalidCancellation(agentId, first, untilNonce);
        }
        for (uint256 next = first; next < untilNonce; ++next) {
            router.cancelNonce(agentId, next);
        }
        emit IntentsCancelled(agentId, owner, first, untilNonce);
    }

    /// @inheritdoc IOwnerControls
    function lockFirstLoss(uint256 agentId, uint256 shares, uint256 nonce, uint256 deadline, bytes calldata signature)
        external
    {
        address owner = _agents.ownerOf(agentId);
        bytes32 structHash = keccak256(abi.encode(LOCK_FIRST_LOSS_TYPEHASH, agentId, shares, nonce, deadline));
        _authorize(owner, structHash, nonce, deadline, signature);
        IAllocationManager(_agents.allocationManager()).lockFirstLoss(agentId, owner, shares);
    }

    /// @inheritdoc IOwnerControls
    function claimCertificate(uint256 agentId, bytes32 examination, bytes32 results) external {
        if (msg.sender != _agents.ownerOf(agentId)) revert IAgentRegistry.NotAgentOwner(agentId, msg.sender);
        bytes32 held = certificateOf(agentId, examination);
        if (held != 0) revert CertificateAlreadyClaimed(agentId, held);

        bytes32 certificate = keccak256(abi.encode(examination, msg.sender, results));
        _certificates[agentId][_agents.transferCountOf(agentId)][examination] = certificate;
        emit CertificateClaimed(agentId, msg.sender, examination, certificate);
    }

    /// @inheritdoc IOwnerControls
    function useConsent(IAgentRegistry.Registration calldata registration, IAgentRegistry.OwnerConsent calldata consent)
        external
    {
        if (msg.sender != address(_agents)) revert OnlyAgentRegistry(msg.sender);
        bytes32 structHash = keccak256(
            abi.encode(
                OWN_AGENT_TYPEHASH,
                registration.signer,
                registration.vault,
                keccak256(bytes(registration.name)),
                keccak256(bytes(registration.metadataURI)),
                registration.linkERC8004,
                registration.erc8004AgentId,
                consent.nonce,
                consent.deadline
            )
        );
        _authorize(registration.owner, structHash, consent.nonce, consent.deadline, consent.signature);
    }

    /// @notice Returns whether a contract accepts a signature (ERC-1271), in a call of its own that may run out of gas
    function isSignedByContract(address owner, bytes32 digest, bytes calldata signature) external view returns (bool) {
        return SignatureChecker.isValidERC1271SignatureNowCalldata(owner, digest, signature);
    }

    /// @inheritdoc IOwnerControls
    function checkBuy(uint256 agentId, address token, uint256 usdcAmount, uint256 turnover, uint256 exposure)
        external
        view
    {
        Limits memory limits = _limits[agentId];
        if (limits.version == 0) revert MandateNotFound(agentId);
        if (limits.hasTokenList && !_allowedTokens[agentId][limits.version][token]) {
            revert TokenOutsideMandate(agentId, token);
        }
        if (_isBeyond(usdcAmount, limits.maxTradeUsdc)) {
            revert ExceedsMandateTrade(agentId, usdcAmount, limits.maxTradeUsdc);
        }
        if (_isBeyond(turnover, limits.maxDailyTurnoverUsdc)) {
            revert ExceedsMandateTurnover(agentId, turnover, limits.maxDailyTurnoverUsdc);
        }
        if (_isBeyond(exposure, limits.maxExposureUsdc)) {
            revert ExceedsMandateExposure(agentId, exposure, limits.maxExposureUsdc);
        }
    }

    /// @inheritdoc IOwnerControls
    function mandateOf(uint256 agentId) external view returns (MandateInForce memory) {
        uint256 state = _agents.mandateStateOf(agentId);
        Limits memory limits = _limits[agentId];
        return MandateInForce({
            mode: state.mode().toUint8(),
            maxTradeUsdc: limits.maxTradeUsdc,
            maxDailyTurnoverUsdc: limits.maxDailyTurnoverUsdc,
            maxExposureUsdc: limits.maxExposureUsdc,
            hasTokenList: limits.hasTokenList,
            validUntil: state.validUntil(),
            closingSince: state.closingSince(),
            version: limits.version
        });
    }

    /// @inheritdoc IOwnerControls
    function isTokenAllowed(uint256 agentId, address token) external view returns (bool) {
        Limits memory limits = _limits[agentId];
        return !limits.hasTokenList || _allowedTokens[agentId][limits.version][token];
    }

    /// @inheritdoc IOwnerControls
    function certificateOf(uint256 agentId, bytes32 examination) public view returns (bytes32) {
        return _certificates[agentId][_agents.transferCountOf(agentId)][examination];
    }

    /// @inheritdoc IOwnerControls
    function agentRegistry() external view returns (address) {
        return address(_agents);
    }

    /// @inheritdoc IOwnerControls
    function pendingOwnerOf(uint256 agentId) public view returns (address) {
        Offer memory offer = _offers[agentId];
        return offer.transfers == _agents.transferCountOf(agentId) ? offer.to : address(0);
    }

    /// @inheritdoc IOwnerControls
    function tradeRouter() public view returns (address) {
        return IAllocationManager(_agents.allocationManager()).tradeRouter();
    }

    /// @inheritdoc IOwnerControls
    function nonces(address owner) public view returns (uint256) {
        return _messages[owner].nonce;
    }

    function _authorize(address owner, bytes32 structHash, uint256 nonce, uint256 deadline, bytes calldata signature)
        private
    {
        if (block.timestamp > deadline) revert ExpiredDeadline();
        if (msg.sender == owner) {
            // A call of its own takes effect in the block that mines it, whatever an older message has done to the nonce.
            ++_messages[owner].nonce;
            return;
        }
        uint256 expected = nonces(owner);
        if (nonce != expected) revert InvalidAccountNonce(owner, expected);
        ++_messages[owner].nonce;
        if (!Signatures.isValid(owner, _hashTypedDataV4(structHash), signature)) revert InvalidSignature();
    }

    /// @dev A stop must take effect whatever else has happened to its nonce or to one of its agents: its digest counts, once
    /// per owner, and an agent whose owner has not signed it is left out. It uses up every nonce up to its own, so that it voids
    /// older messages with these.
    /// @return owners The owner of each agent; zero for one that is left out
    function _authorizeForAll(
        bytes32 typehash,
        uint256[] calldata agentIds,
        uint256 nonce,
        uint256 deadline,
        bytes calldata signature
    ) private returns (address[] memory owners) {
        if (agentIds.length == 0) revert NoAgents();
        if (block.timestamp > deadline) revert ExpiredDeadline();
        bytes32 digest =
            _hashTypedDataV4(keccak256(abi.encode(typehash, keccak256(abi.encodePacked(agentIds)), nonce, deadline)));
        owners = _ownersWhoSigned(agentIds, digest, nonce, signature);
        address last;
        for (uint256 i; i < owners.length; ++i) {
            address owner = owners[i];
            if (owner == address(0) || owner == last) continue;
            last = owner;
            _useStop(owner, digest, nonce);
        }
    }

    function _useStop(address owner, bytes32 digest, uint256 nonce) private {
        Messages memory messages = _messages[owner];
        uint32 next = messages.nonce;
        if (nonce >= next && nonce <= uint256(next) + MAX_CANCELLED_NONCES) next = nonce.toUint32() + 1;
        else if (owner == msg.sender) ++next;
        if (!_isRemembered(messages, digest)) {
            // forge-lint: disable-start(unsafe-typecast)
            if (messages.stops >> 128 != 0) {
                uint16 age;
                unchecked {
                    age = uint16(next) - uint16(messages.stops >> 128);
                }
                messages.remembersFrom = next - age;
            }
            messages.stops = messages.stops << 64 | _mark(digest) << 16 | uint16(next);
            // forge-lint: disable-end(unsafe-typecast)
        }
        messages.nonce = next;
        _messages[owner] = messages;
    }

    function _ownersWhoSigned(uint256[] calldata agentIds, bytes32 digest, uint256 nonce, bytes calldata signature)
        private
        returns (address[] memory owners)
    {
        (address recovered,,) = ECDSA.tryRecoverCalldata(digest, signature);
        owners = new address[](agentIds.length);
        address last;
        bool isSigned;
        uint256 count;
        for (uint256 i; i < agentIds.length; ++i) {
            address owner = _agents.ownerOf(agentIds[i]);
            if (owner != last) (last, isSigned) = (owner, _isSignedBy(owner, recovered, digest, nonce, signature));
            if (isSigned) {
                owners[i] = owner;
                ++count;
            } else {
                emit AgentSkipped(agentIds[i], owner);
            }
        }
        if (count != 0) return owners;
        Messages memory messages = _messages[recovered];
        if (_isRemembered(messages, digest) || nonce < messages.remembersFrom) revert MessageAlreadyUsed(digest);
        revert InvalidSignature();
    }

    /// @dev A contract that owns one of the agents must not void the message of the others' owner by using up the gas.
    function _isSignedBy(address owner, address recovered, bytes32 digest, uint256 nonce, bytes calldata signature)
        private
        view
        returns (bool)
    {
        if (owner == msg.sender) return true;
        Messages memory messages = _messages[owner];
        if (nonce < messages.remembersFrom || nonce > messages.nonce + MAX_CANCELLED_NONCES) return false;
        if (_isRemembered(messages, digest)) return false;
        if (owner == recovered) return true;
        if (owner.code.length == 0) return false;
        try this.isSignedByContract{gas: CONTRACT_SIGNATURE_GAS}(owner, digest, signature) returns (bool isSigned) {
            return isSigned;
        } catch {
            return false;
        }
    }

    /// @dev A stricter mode stays.
    function _stop(uint256 agentId, uint256 state, uint256 closingSince) private returns (uint8 mode) {
        mode = state.mode().toUint8();
        if (mode == uint8(IAgentRegistry.MandateMode.Trade)) mode = uint8(IAgentRegistry.MandateMode.ReduceOnly);
        _agents.setMandateState(agentId, MandateState.pack(mode, state.validUntil(), closingSince, state.hasLimits()));
    }

    function _storeLimits(uint256 agentId, Mandate calldata mandate) private returns (bool hasLimits) {
        uint32 version = _limits[agentId].version + 1;
        bool hasTokenList = mandate.allowedTokens.length != 0;
        _limits[agentId] = Limits({
            maxTradeUsdc: mandate.maxTradeUsdc.toUint64(),
            maxDailyTurnoverUsdc: mandate.maxDailyTurnoverUsdc.toUint64(),
            maxExposureUsdc: mandate.maxExposureUsdc.toUint64(),
            version: version,
            hasTokenList: hasTokenList
        });
        for (uint256 i; i < mandate.allowedTokens.length; ++i) {
            _allowedTokens[agentId][version][mandate.allowedTokens[i]] = true;
        }
        return hasTokenList || mandate.maxTradeUsdc | mandate.maxDailyTurnoverUsdc | mandate.maxExposureUsdc != 0;
    }

    function _hashMandate(uint256 agentId, Mandate calldata mandate, uint256 nonce, uint256 deadline)
        private
        pure
        returns (bytes32)
    {
        return keccak256(
            abi.encode(
                SET_MANDATE_TYPEHASH,
                agentId,
                mandate.mode,
                mandate.maxTradeUsdc,
                mandate.maxDailyTurnoverUsdc,
                mandate.maxExposureUsdc,
                keccak256(abi.encodePacked(mandate.allowedTokens)),
                mandate.validUntil,
                nonce,
                deadline
            )
        );
    }

    function _checkMandate(Mandate calldata mandate) private pure {
        _checkMax(0, mandate.mode, uint256(type(IAgentRegistry.MandateMode).max));
        _checkMax(1, mandate.maxTradeUsdc, type(uint64).max);
        _checkMax(2, mandate.maxDailyTurnoverUsdc, type(uint64).max);
        _checkMax(3, mandate.maxExposureUsdc, type(uint64).max);
        _checkMax(4, mandate.allowedTokens.length, MAX_ALLOWED_TOKENS);
        _checkMax(5, mandate.validUntil, MandateState.MAX_TIME);
    }

    function _isRemembered(Messages memory messages, bytes32 digest) private pure returns (bool) {
        uint192 mark = _mark(digest);
        uint192 stops = messages.stops >> 16;
        return stops & MARK == mark || stops >> 64 & MARK == mark || stops >> 128 == mark;
    }

    function _mark(bytes32 digest) private pure returns (uint192) {
        // forge-lint: disable-next-line(unsafe-typecast)
        return uint192(uint256(digest)) & MARK;
    }

    function _checkMax(uint256 field, uint256 value, uint256 max) private pure {
        if (value > max) revert MandateOutOfRange(field, value, max);
    }

    function _isBeyond(uint256 value, uint256 max) private pure returns (bool) {
        return max != 0 && value > max;
    }
}
