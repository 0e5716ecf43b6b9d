// SPDX-License-Identifier: MIT
pragma solidity ^0.8.30;

import {IAgentRegistry} from "./IAgentRegistry.sol";

/// @title What an agent's owner signs: ownership, signer, mandate, stop, close all, cancel, first-loss capital
/// @notice Each message is typed data of this contract's own domain and carries the owner's next nonce, `nonces(owner)`.
/// Anybody may relay it. An owner that calls itself needs no signature, so a contract without ERC-1271 can own agents, and uses
/// whatever nonce is next: the one it names is ignored.
///
/// Every message that acts for an owner fails with, in this order: `AgentNotFound` (registry), `ExpiredDeadline`,
/// `InvalidAccountNonce`, `InvalidSignature`. The owner is the present one, so a former owner's messages are void.
interface IOwnerControls {
    /// @notice What an owner lets its agent do; USDC amounts are base units, and 0 sets no limit
    /// @param mode A `MandateMode`
    /// @param maxTradeUsdc The largest open or add
    /// @param maxDailyTurnoverUsdc The most that the agent buys with in 24 hours, counted as the track's limit is
    /// @param maxExposureUsdc The largest cost basis of all open positions together
    /// @param allowedTokens The tokens that the agent may buy; empty for all of its vault's
    /// @param validUntil The last second in which the agent may buy; 0 for no end
    struct Mandate {
        uint8 mode;
        uint256 maxTradeUsdc;
        uint256 maxDailyTurnoverUsdc;
        uint256 maxExposureUsdc;
        address[] allowedTokens;
        uint256 validUntil;
    }

    /// @notice A mandate as it is in force, without the list of tokens; `isTokenAllowed` returns whether one is in it
    /// @param hasTokenList Whether the mandate names tokens
    /// @param closingSince Since when the agent's positions are being closed; 0 while they are not
    /// @param version How many mandates the owner has set; 0 for none
    struct MandateInForce {
        uint8 mode;
        uint256 maxTradeUsdc;
        uint256 maxDailyTurnoverUsdc;
        uint256 maxExposureUsdc;
        bool hasTokenList;
        uint256 validUntil;
        uint256 closingSince;
        uint256 version;
    }

    /// @param to The zero address: the owner withdrew its offer
    event OwnershipOffered(uint256 indexed agentId, address indexed from, address indexed to);
    event MandateUpdated(uint256 indexed agentId, address indexed owner, Mandate mandate);
    /// @notice The agent buys nothing from now on
    /// @param mode The mode now: a stricter one than `ReduceOnly` stays
    event BuyingStopped(uint256 indexed agentId, address indexed owner, uint8 mode);
    /// @notice The agent buys nothing from now on, and anybody may sell its positions with `TradeRouter.executeExits`
    /// @param closingSince When the owner's message was relayed; the floor of a sale widens from its first attempt on
    event CloseAllStarted(uint256 indexed agentId, address indexed owner, uint8 mode, uint256 closingSince);
    /// @notice The owner's mandate lets the agent trade again: what was not sold stays open
    event CloseAllEnded(uint256 indexed agentId, address indexed owner);
    /// @notice The nonces from `fromNonce` to below `untilNonce` are void
    event IntentsCancelled(uint256 indexed agentId, address indexed owner, uint256 fromNonce, uint256 untilNonce);

    /// @notice The owner claims this certificate for its agent
    event CertificateClaimed(
        uint256 indexed agentId, address indexed owner, bytes32 indexed examination, bytes32 certificate
    );

    /// @notice A stop or a close named an agent whose owner has not signed it, or had done so before
    event AgentSkipped(uint256 indexed agentId, address indexed owner);

    error ExpiredDeadline();
    error InvalidAccountNonce(address account, uint256 currentNonce);
    /// @notice A stop or a close works once; an unused one is refused as well when four later ones took effect above its nonce
    error MessageAlreadyUsed(bytes32 digest);
    error InvalidSignature();
    error ZeroAddress();
    error OnlyAgentRegistry(address caller);
    /// @notice A list of agents must have one
    error NoAgents();
    /// @notice The agent's present owner has claimed a certificate of this examination before
    error CertificateAlreadyClaimed(uint256 agentId, bytes32 certificate);
    /// @notice The agent's present owner has offered it to nobody
    error NoOwnershipOffer(uint256 agentId);
    /// @notice A field of a mandate, counted from 0, is larger than `max`; for `allowedTokens` its length is meant
    error MandateOutOfRange(uint256 field, uint256 value, uint256 max);
    /// @notice `untilNonce` must be above the agent's next nonce, by at most `MAX_CANCELLED_NONCES`
    error InvalidCancellation(uint256 agentId, uint256 nextNonce, uint256 untilNonce);
    /// @notice The mandate does not name this token
    error TokenOutsideMandate(uint256 agentId, address token);
    error ExceedsMandateTrade(uint256 agentId, uint256 tradeSize, uint256 max);
    error ExceedsMandateTurnover(uint256 agentId, uint256 turnover, uint256 max);
    error ExceedsMandateExposure(uint256 agentId, uint256 exposure, uint256 max);
    /// @notice The registry says that the mandate has limits, and this contract does not know them: the owner must sign
    /// its mandate again
    error MandateNotFound(uint256 agentId);

    /// @notice Offers an agent to a new owner, who accepts with `acceptOwnership`; the zero address withdraws the offer
    /// @dev `OfferOwnership(uint256 agentId,address newOwner,uint256 nonce,uint256 deadline)`, signed by the owner. A second
    /// offer replaces the first one. An offer ends with the ownership of whoever made it.
    function offerOwnership(
        uint256 agentId,
        address newOwner,
        uint256 nonce,
        uint256 deadline,
        bytes calldata signature
    ) external;

    /// @notice Takes an agent that was offered, its payouts with it, and names the key that trades from now on
    /// @dev `AcceptOwnership(uint256 agentId,address signer,uint256 nonce,uint256 deadline)`, signed by the new owner with
    /// its own nonce. The former signer is refused from then on unless the new owner names it again. The mandate stays
    /// until the new owner sets another.
    function acceptOwnership(uint256 agentId, address signer, uint256 nonce, uint256 deadline, bytes calldata signature)
        external;

    /// @notice Replaces the key that signs the agent's intents: what the former one signed and is not mined is void
    /// @dev `SetSigner(uint256 agentId,address signer,uint256 nonce,uint256 deadline)`
    function setSigner(uint256 agentId, address signer, uint256 nonce, uint256 deadline, bytes calldata signature)
        external;

    /// @notice Replaces the agent's mandate; one in mode `Trade` also ends a close all
    /// @dev `SetMandate(uint256 agentId,uint8 mode,uint256 maxTradeUsdc,uint256 maxDailyTurnoverUsdc,uint256 maxExposureUsdc,address[] allowedTokens,uint256 validUntil,uint256 nonce,uint256 deadline)`.
    /// A mandate only narrows: the track, the trade policy and the pauses hold as without it. It stops no reduction, no
    /// exit and no tighter ladder. `Stopped` also refuses a ladder that protects less than the one it replaces.
    function setMandate(
        uint256 agentId,
        Mandate calldata mandate,
        uint256 nonce,
        uint256 deadline,
        bytes calldata signature
    ) external;

    /// @notice Stops the buying of many agents of one owner; their limits stay
    /// @dev `StopBuying(uint256[] agentIds,uint256 nonce,uint256 deadline)`. It works once, also after another message has used
    /// its nonce, and uses up every nonce up to its own, at most `MAX_CANCELLED_NONCES` ahead. Agents that the signer no longer owns
    /// are left out with `AgentSkipped`.
    function stopBuying(uint256[] calldata agentIds, uint256 nonce, uint256 deadline, bytes calldata signature) external;

    /// @notice Stops the buying of many agents of one owner and has all their positions sold
    /// @dev `CloseAll(uint256[] agentIds,uint256 nonce,uint256 deadline)`. From then on `TradeRouter.executeExit` and
    /// `executeExits` sell whole positions of these agents, whatever their ladders say, at the trade policy's exit
    /// slippage, which widens from the time of this message. A second message does not start it again. Nonce and agents count as in
    /// `stopBuying`.
    function closeAll(uint256[] calldata agentIds, uint256 nonce, uint256 deadline, bytes calldata signature) external;

    /// @notice Voids the agent's intents with nonces below `untilNonce`
    /// @dev `CancelIntents(uint256 agentId,uint256 untilNonce,uint256 nonce,uint256 deadline)`; at most
    /// `MAX_CANCELLED_NONCES` at once.
    function cancelIntents(
        uint256 agentId,
        uint256 untilNonce,
        uint256 nonce,
        uint256 deadline,
        bytes calldata signature
    ) external;

    /// @notice Makes exactly `shares` of the owner's vault shares answer for the agent's losses on real capital
    /// @dev `LockFirstLoss(uint256 agentId,uint256 shares,uint256 nonce,uint256 deadline)`. Fewer than before are refused while
    /// the agent has real capital, but for none once it holds nothing (`IAllocationManager.lockFirstLoss`).
    function lockFirstLoss(uint256 agentId, uint256 shares, uint256 nonce, uint256 deadline, bytes calldata signature)
        external;

    /// @notice Claims the certificate of an examination for an agent; only its owner, directly
    /// @dev The certificate is `keccak256(abi.encode(examination, owner, results))`, so it is of this examination, and the
    /// certificate of another owner is none of this agent. A claim is final, so an agent shows what it was promoted with;
    /// it ends with the ownership of whoever made it.
    /// @param examination The hash of markets, contracts and version, which a track may require
    /// @param results The hash of the result that the certificate states
    function claimCertificate(uint256 agentId, bytes32 examination, bytes32 results) external;

    /// @notice Checks that `registration.owner` agrees to own the agent, and uses up its nonce; only the agent registry
    /// @dev `OwnAgent(address signer,address vault,string name,string metadataURI,bool linkERC8004,uint256 erc8004AgentId,uint256 nonce,uint256 deadline)`
    function useConsent(IAgentRegistry.Registration calldata registration, IAgentRegistry.OwnerConsent calldata consent)
        external;

    /// @notice Reverts unless the limits of the agent's mandate allow a buy; the trade router's ledger asks
    /// @dev The checks, in this order: `MandateNotFound`, `TokenOutsideMandate`, `ExceedsMandateTrade`,
    /// `ExceedsMandateTurnover`, `ExceedsMandateExposure`.
    /// @param turnover What the agent buys with in 24 hours, `usdcAmount` included
    /// @param exposure The cost basis of its open positions, `usdcAmount` included
    function checkBuy(uint256 agentId, address token, uint256 usdcAmount, uint256 turnover, uint256 exposure)
        external
        view;

    function mandateOf(uint256 agentId) external view returns (MandateInForce memory);
    function isTokenAllowed(uint256 agentId, address token) external view returns (bool);

    /// @notice Returns the certificate that the agent's present owner has claimed of an examination; zero for none
    function certificateOf(uint256 agentId, bytes32 examination) external view returns (bytes32);

    /// @return The account that may accept the agent; the zero address when the present owner offers it to nobody
    function pendingOwnerOf(uint256 agentId) external view returns (address);
    function nonces(address owner) external view returns (uint256);
    function agentRegistry() external view returns (address);

    /// @notice Returns the router whose intents `cancelIntents` voids: the one that the allocations know
    function tradeRouter() external view returns (address);

    function MAX_CANCELLED_NONCES() external view returns (uint256);
    function MAX_ALLOWED_TOKENS() external view returns (uint256);
    function OFFER_OWNERSHIP_TYPEHASH() external view returns (bytes32);
    function ACCEPT_OWNERSHIP_TYPEHASH() external view returns (bytes32);
    function SET_SIGNER_TYPEHASH() external view returns (bytes32);
    function SET_MANDATE_TYPEHASH() external view returns (bytes32);
    function STOP_BUYING_TYPEHASH() external view returns (bytes32);
    function CLOSE_ALL_TYPEHASH() external view returns (bytes32);
    function CANCEL_INTENTS_TYPEHASH() external view returns (bytes32);
    function LOCK_FIRST_LOSS_TYPEHASH() external view returns (bytes32);
    function OWN_AGENT_TYPEHASH() external view returns (bytes32);
}
