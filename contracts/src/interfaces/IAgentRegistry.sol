// SPDX-License-Identifier: MIT
pragma solidity ^0.8.30;

/// @title Agents: their keys, their vault and track, and their ERC-8004 identity
/// @notice Agent ids start at 1 and only grow. Every getter by id reverts `AgentNotFound` for an id never given.
interface IAgentRegistry {
    enum Track {
        Challenge,
        Funded,
        Prime
    }

    enum AgentStatus {
        Draft,
        Active,
        Suspended,
        Failed,
        Graduated,
        Exited
    }

    /// @param owner Holds the agent: may change its metadata, signer, owner and payout recipient
    /// @param signer Signs the trade intents; an EOA or an ERC-1271 contract
    /// @param vault The one vault whose capital the agent trades; never changes
    /// @param track A `Track`, also the track id in the vault track registry
    /// @param status An `AgentStatus`
    /// @param erc8004AgentId Meaningful only while `hasERC8004Identity`: token ids start at 0
    struct Agent {
        address owner;
        address signer;
        address payoutRecipient;
        address vault;
        uint8 track;
        uint8 status;
        string name;
        string metadataURI;
        uint64 createdAt;
        bool hasERC8004Identity;
        uint256 erc8004AgentId;
    }

    /// @notice How far an agent's owner lets it trade, from the loosest mode to the strictest
    enum MandateMode {
        Trade,
        /// Buys nothing
        ReduceOnly,
        /// Buys nothing, and loosens no exit ladder
        Stopped
    }

    /// @notice An agent to register; `SelfRegister` signs all of it but the owner
    struct Registration {
        address owner;
        address vault;
        string name;
        string metadataURI;
        address signer;
        bool linkERC8004;
        uint256 erc8004AgentId;
    }

    /// @notice The owner's signature of `OwnAgent`, typed data of `OwnerControls`
    struct OwnerConsent {
        uint256 nonce;
        uint256 deadline;
        bytes signature;
    }

    event AgentRegistered(
        uint256 indexed agentId,
        address indexed vault,
        address indexed owner,
        address signer,
        string metadataURI,
        uint8 track
    );
    event AgentMetadataUpdated(uint256 indexed agentId, string metadataURI);
    event AgentStatusChanged(uint256 indexed agentId, uint8 oldStatus, uint8 newStatus);
    event AgentSignerUpdated(uint256 indexed agentId, address signer);
    event AgentOwnershipTransferred(uint256 indexed agentId, address indexed from, address indexed to);
    event PayoutRecipientUpdated(uint256 indexed agentId, address indexed payoutRecipient);
    event PromotionCriteriaUpdated(address indexed previous, address indexed current);
    event OwnerControlsUpdated(address indexed previous, address indexed current);
    event OrderBookUpdated(address indexed previous, address indexed current);
    /// @notice Open orders that were placed in an earlier epoch never execute again
    event OrdersVoided(uint256 indexed agentId, uint32 buyEpoch, uint32 saleEpoch);
    event AgentPromoted(uint256 indexed agentId, address indexed vault, uint8 fromTrack, uint8 toTrack);
    event ERC8004IdentityLinked(
        uint256 indexed agentId,
        address indexed erc8004IdentityRegistry,
        uint256 erc8004ChainId,
        uint256 erc8004AgentId,
        address indexed owner
    );
    /// @notice A link whose identity token the agent's owner no longer holds made room for another one
    event ERC8004IdentityUnlinked(uint256 indexed agentId, uint256 erc8004AgentId);

    error AgentNotFound(uint256 agentId);
    error NotAgentOwner(uint256 agentId, address caller);
    error ExpiredDeadline();
    error InvalidSignature();
    error ZeroAddress();
    error VaultNotRegistered(address vault);
    error VaultTrackNotActive(address vault, uint256 trackId);
    error InvalidName(uint256 length);
    error InvalidMetadataURI(uint256 length);
    /// @notice `status` is no `AgentStatus`
    error InvalidAgentStatus(uint8 status);
    /// @notice No operator may move an agent from one to the other
    error IllegalStatusMove(uint256 agentId, uint8 from, uint8 to);
    /// @notice Only an active or a graduated agent is promoted
    error AgentNotPromotable(uint256 agentId, uint8 status);
    /// @notice `track` is not the next one above the agent's own
    error InvalidTrack(uint8 track);
    /// @notice Nobody is promoted before the criteria's contract is known
    error PromotionCriteriaNotSet();
    /// @notice No contract for the owners' messages is set
    error OwnerControlsNotSet();
    error OnlyOwnerControls(address caller);
    /// @notice An agent whose signer owns it is registered with `selfRegisterAgent`
    error OwnerIsSigner(address owner);
    /// @notice The identity token is not held by the agent's owner
    error ERC8004OwnerMismatch(uint256 erc8004AgentId, address expected, address actual);
    /// @notice The identity token is linked to `agentId`, whose owner still holds it, or that agent has a link already
    error ERC8004AlreadyLinked(uint256 erc8004AgentId, uint256 agentId);
    /// @notice An id was given without asking for a link
    error ERC8004IdWithoutLink(uint256 erc8004AgentId);
    /// @notice No identity registry knows this token
    error ERC8004IdentityNotFound(uint256 erc8004AgentId);
    /// @notice The identity token is linked to no agent
    error ERC8004IdentityNotLinked(uint256 erc8004AgentId);

    /// @notice Registers an agent for somebody else; only the registrar role
    /// @dev An agent starts Active on the Challenge track, with an allocation, its owner as payout recipient. The fee is
    /// recorded as prepaid when the fee manager's relayer calls, and is taken from any other caller.
    function registerAgent(
        address owner,
        address vault,
        string calldata name,
        string calldata metadataURI,
        address signer,
        bool linkERC8004,
        uint256 erc8004AgentId
    ) external returns (uint256 agentId);

    /// @notice Registers an agent owned by `signer`, who signed `SelfRegister` with the nonce `nonces(signer)`; anyone
    /// may relay, with the fee as in `registerAgent`. A signer may register several agents.
    function selfRegisterAgent(
        address vault,
        string calldata name,
        string calldata metadataURI,
        address signer,
        bool linkERC8004,
        uint256 erc8004AgentId,
        uint256 deadline,
        bytes calldata signature
    ) external returns (uint256 agentId);

    /// @notice Registers an agent whose signer never owns it; anyone may relay, with the fee as in `registerAgent`
    /// @dev The signer signs `SelfRegister` with the nonce `nonces(signer)`, the owner signs `OwnAgent` with its nonce of
    /// `OwnerControls`. The errors, in this order: `OwnerIsSigner`, `ExpiredDeadline`, `InvalidSignature`,
    /// `OwnerControlsNotSet`, those of `IOwnerControls`, those of a registration.
    function registerOwnedAgent(
        Registration calldata registration,
        uint256 deadline,
        bytes calldata signature,
        OwnerConsent calldata consent
    ) external returns (uint256 agentId);

    /// @notice Links an identity token that the agent's owner holds; only the owner or the registrar role
    /// @dev A link is live while the agent's owner holds the token. An agent has at most one live link and a token at
    /// most one; a dead link gives way to a new one.
    function linkERC8004Identity(uint256 agentId, uint256 erc8004AgentId) external;

    /// @notice Links an identity token for the agent's owner, who signed `LinkERC8004` with the nonce `nonces(owner)`;
    /// anyone may relay
    function linkERC8004IdentityWithSignature(
        uint256 agentId,
        uint256 erc8004AgentId,
        uint256 deadline,
        bytes calldata signature
    ) external;

    /// @notice Only the agent's owner
    function updateAgentMetadata(uint256 agentId, string calldata metadataURI) external;

    /// @notice Replaces the key that signs trade intents; only the agent's owner or its `OwnerControls`. Intents signed by
    /// the old key are void, and so are its orders.
    function setAgentSigner(uint256 agentId, address signer) external;

    /// @notice Gives the agent away, and its payouts with it; only the agent's owner or its `OwnerControls`
    /// @dev The signer stays until the new owner replaces it, its orders end; a link is dead unless the new owner holds the
    /// token.
    function transferAgentOwnership(uint256 agentId, address newOwner) external;

    /// @notice Only the agent's owner
    function setPayoutRecipient(uint256 agentId, address payoutRecipient) external;

    /// @notice Moves an agent to another status; only the operator role
    /// @dev The legal moves; all others revert `IllegalStatusMove`. Draft is not used: registration makes an agent Active.
    /// | from      | to                                   |
    /// |-----------|--------------------------------------|
    /// | Active    | Suspended, Failed, Graduated, Exited |
    /// | Suspended | Active, Failed, Exited               |
    /// | Graduated | Active, Suspended, Failed, Exited    |
    /// Failed and Exited are final and remove the agent's allocation. The other moves leave the allocation as it is,
    /// since nobody but an active agent may buy.
    function setAgentStatus(uint256 agentId, uint8 status) external;

    /// @notice Moves an active or graduated agent to the next track of its vault, where it is active; anyone may call
    /// @dev Refused with the missing criterion of `IPromotionCriteria`, also to the operator, and while the registry is
    /// paused. The caller pays the promotion fee, the agent's owner when the operator calls; the payer must have
    /// approved it to the fee manager.
    function promoteAgent(uint256 agentId, uint8 track) external;

    /// @notice Sets the contract that decides on promotions; only the admin
    function setPromotionCriteria(address criteria) external;

    /// @notice Sets the contract that owners sign messages for; only the admin
    /// @dev Mandates with limits refuse every buy until their owners sign them again for the new contract.
    function setOwnerControls(address controls) external;

    /// @notice Sets the contract whose orders the trade router executes; only the admin
    function setOrderBook(address book) external;

    /// @notice Sets what trading reads of an agent's mandate, a `MandateState`; only `OwnerControls`
    /// @dev A mode that buys nothing ends the orders that buy; closing all ends every order. Neither ends again what was placed
    /// since.
    function setMandateState(uint256 agentId, uint256 state) external;

    /// @notice Returns the contract that owners sign messages for; the zero address before it is set
    function ownerControls() external view returns (address);
    function mandateStateOf(uint256 agentId) external view returns (uint256 state);

    /// @notice Returns the contract whose orders the trade router executes; the zero address before it is set
    function orderBook() external view returns (address);

    /// @notice Returns the agent's vault, and the epochs that an order to buy and one to sell must have been placed in
    function orderContextOf(uint256 agentId) external view returns (address vault, uint32 buyEpoch, uint32 saleEpoch);

    /// @notice Returns the contract that decides on promotions
    function promotionCriteria() external view returns (address);

    /// @notice Refuses registrations and new risk; the operator or the guardian
    function pause() external;

    /// @notice Lifts a pause; only the operator, so that a stolen guardian key cannot
    function unpause() external;

    function getAgent(uint256 agentId) external view returns (Agent memory);
    function ownerOf(uint256 agentId) external view returns (address);

    /// @notice Returns how often the agent got another owner: an offer of ownership holds until the next transfer
    function transferCountOf(uint256 agentId) external view returns (uint256);

    function vaultOf(uint256 agentId) external view returns (address);
    function trackOf(uint256 agentId) external view returns (uint8);

    /// @notice Returns what a sale needs about the agent, from two slots
    function saleContextOf(uint256 agentId)
        external
        view
        returns (address signer, address vault, uint8 track, uint8 status, uint256 mandateState);
    function statusOf(uint256 agentId) external view returns (uint8);
    function signerOf(uint256 agentId) external view returns (address);
    function payoutRecipientOf(uint256 agentId) external view returns (address);

    /// @notice Returns whether an account may void the agent's intents: its signer, its owner, and the contract owners sign for
    function mayCancelFor(uint256 agentId, address account) external view returns (bool);
    function hasERC8004Identity(uint256 agentId) external view returns (bool);

    /// @notice What the router needs about an agent, in one call and at most three cold slots
    function tradeContextOf(uint256 agentId)
        external
        view
        returns (address signer, address vault, uint8 track, uint8 status, uint256 mandateState, bool registryPaused);

    /// @return agentId 0 when the identity token is linked to no agent
    function agentIdByERC8004(uint256 erc8004AgentId) external view returns (uint256 agentId);

    /// @notice The agent that an identity token is linked to, live or not; reverts `ERC8004IdentityNotLinked`
    function getAgentByERC8004(uint256 erc8004AgentId) external view returns (Agent memory);

    /// @notice Whether the agent has a link and its owner holds the identity token now
    function isERC8004OwnerCurrent(uint256 agentId) external view returns (bool);

    /// @notice Whether profit may be paid out to the agent's recipient: it is Active or Graduated, trades real capital on
    /// its track, and its ERC-8004 link, where it has one, is live (an identity that was sold takes its earnings along)
    function isPayoutEligible(uint256 agentId) external view returns (bool);

    /// @notice The EIP-712 digest that `signer` signs to register
    function hashSelfRegister(
        address vault,
        string calldata name,
        string calldata metadataURI,
        address signer,
        bool linkERC8004,
        uint256 erc8004AgentId,
        uint256 nonce,
        uint256 deadline
    ) external view returns (bytes32 digest);

    /// @notice The EIP-712 digest that an agent's owner signs to link an identity token
    function hashLinkERC8004(uint256 agentId, uint256 erc8004AgentId, uint256 nonce, uint256 deadline)
        external
        view
        returns (bytes32 digest);

    function erc8004IdentityRegistry() external view returns (address);
    function erc8004ChainId() external view returns (uint256);
    function nextAgentId() external view returns (uint256);
    function nonces(address signer) external view returns (uint256);
    function paused() external view returns (bool);
    function feeManager() external view returns (address);
    function vaultTrackRegistry() external view returns (address);
    function allocationManager() external view returns (address);
    function SELF_REGISTER_TYPEHASH() external view returns (bytes32);
    function LINK_ERC8004_TYPEHASH() external view returns (bytes32);
}
