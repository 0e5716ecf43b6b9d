// SPDX-License-Identifier: MIT
pragma solidity ^0.8.30;

/// @title Who may trade: agents, their keys, their vault and track, and their ERC-8004 identity
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
    event AgentPromoted(uint256 indexed agentId, address indexed vault, uint8 fromTrack, uint8 toTrack);
    event ERC8004IdentityLinked(
        uint256 indexed agentId,
        address indexed erc8004IdentityRegistry,
        uint256 erc8004ChainId,
        uint256 erc8004AgentId,
        address indexed owner
    );

    error AgentNotFound(uint256 agentId);
    error NotAgentOwner(uint256 agentId, address caller);
    error ExpiredDeadline();
    error InvalidSignature();
    error ZeroAddress();
    error VaultNotRegistered(address vault);
    error VaultTrackNotActive(address vault, uint256 trackId);
    error InvalidName(uint256 length);
    error InvalidMetadataURI(uint256 length);
    error InvalidAgentStatus(uint8 status);
    error InvalidTrack(uint8 track);
    /// @notice The identity token is not held by the agent's owner
    error ERC8004OwnerMismatch(uint256 erc8004AgentId, address expected, address actual);
    /// @notice The identity token is linked to `agentId`, whose owner still holds it, or that agent has a link already
    error ERC8004AlreadyLinked(uint256 erc8004AgentId, uint256 agentId);
    /// @notice An id was given without asking for a link
    error ERC8004IdWithoutLink(uint256 erc8004AgentId);
    /// @notice No identity registry knows this token
    error ERC8004IdentityNotFound(uint256 erc8004AgentId);

    /// @notice Registers an agent for somebody else; only the registrar role
    function registerAgent(
        address owner,
        address vault,
        string calldata name,
        string calldata metadataURI,
        address signer,
        bool linkERC8004,
        uint256 erc8004AgentId
    ) external returns (uint256 agentId);

    /// @notice Registers an agent owned by `signer`, who signed `SelfRegister`; anyone may relay
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

    /// @notice Links an identity token that the agent's owner holds; only the owner or the registrar role
    function linkERC8004Identity(uint256 agentId, uint256 erc8004AgentId) external;

    /// @notice Links an identity token for the agent's owner, who signed `LinkERC8004`; anyone may relay
    function linkERC8004IdentityWithSignature(
        uint256 agentId,
        uint256 erc8004AgentId,
        uint256 deadline,
        bytes calldata signature
    ) external;

    function updateAgentMetadata(uint256 agentId, string calldata metadataURI) external;
    function setAgentSigner(uint256 agentId, address signer) external;
    function transferAgentOwnership(uint256 agentId, address newOwner) external;
    function setPayoutRecipient(uint256 agentId, address payoutRecipient) external;
    function setAgentStatus(uint256 agentId, uint8 status) external;
    function promoteAgent(uint256 agentId, uint8 track) external;
    function pause() external;
    function unpause() external;

    function getAgent(uint256 agentId) external view returns (Agent memory);
    function ownerOf(uint256 agentId) external view returns (address);
    function vaultOf(uint256 agentId) external view returns (address);
    function trackOf(uint256 agentId) external view returns (uint8);
    function statusOf(uint256 agentId) external view returns (uint8);
    function signerOf(uint256 agentId) external view returns (address);
    function payoutRecipientOf(uint256 agentId) external view returns (address);
    function hasERC8004Identity(uint256 agentId) external view returns (bool);

    /// @notice What the router needs about an agent, in one call and at most three cold slots
    function tradeContextOf(uint256 agentId)
        external
        view
        returns (address signer, address vault, uint8 track, uint8 status, bool registryPaused);

    /// @return agentId 0 when the identity token is linked to no agent
    function agentIdByERC8004(uint256 erc8004AgentId) external view returns (uint256 agentId);
    function getAgentByERC8004(uint256 erc8004AgentId) external view returns (Agent memory);

    /// @notice Whether the agent has a link and its owner holds the identity token now
    function isERC8004OwnerCurrent(uint256 agentId) external view returns (bool);
    function isPayoutEligible(uint256 agentId) external view returns (bool);

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
