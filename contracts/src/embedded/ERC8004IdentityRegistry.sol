// SPDX-License-Identifier: MIT
pragma solidity ^0.8.30;

import {ERC721} from "@openzeppelin/contracts/token/ERC721/ERC721.sol";
import {ERC721URIStorage} from "@openzeppelin/contracts/token/ERC721/extensions/ERC721URIStorage.sol";
import {EIP712} from "@openzeppelin/contracts/utils/cryptography/EIP712.sol";
import {Signatures} from "../libraries/Signatures.sol";

/// @title The ERC-8004 identity registry of the embedded chain
/// @notice The Identity Registry of ERC-8004 (draft, https://eips.ethereum.org/EIPS/eip-8004): an agent is an ERC-721
/// token whose URI is its registration file, with metadata by key and one verified wallet.
/// @dev Ids start at 0, so an id of 0 names an agent and is not "none".
contract ERC8004IdentityRegistry is ERC721URIStorage, EIP712 {
    struct MetadataEntry {
        string metadataKey;
        bytes metadataValue;
    }

    string private constant AGENT_WALLET_KEY = "agentWallet";
    bytes32 private constant AGENT_WALLET_KEY_HASH = keccak256(bytes(AGENT_WALLET_KEY));

    bytes32 public constant AGENT_WALLET_SET_TYPEHASH =
        keccak256("AgentWalletSet(uint256 agentId,address newWallet,address owner,uint256 deadline)");

    /// @notice How far ahead the deadline of a wallet's consent may lie, in seconds.
    uint256 public constant MAX_DEADLINE_DELAY = 5 minutes;

    uint256 private _nextAgentId;
    mapping(uint256 agentId => mapping(string metadataKey => bytes)) private _metadata;

    event Registered(uint256 indexed agentId, string agentURI, address indexed owner);
    event MetadataSet(
        uint256 indexed agentId, string indexed indexedMetadataKey, string metadataKey, bytes metadataValue
    );
    event URIUpdated(uint256 indexed agentId, string newURI, address indexed updatedBy);

    error NotAuthorized(address caller, uint256 agentId);
    error ReservedMetadataKey(string metadataKey);
    error ZeroWallet();
    error ExpiredDeadline(uint256 deadline, uint256 timestamp);
    error DeadlineTooFar(uint256 deadline, uint256 latest);
    error InvalidWalletSignature(address newWallet);

    constructor() ERC721("AgentIdentity", "AGENT") EIP712("ERC8004IdentityRegistry", "1") {}

    /// @notice Registers the caller as an agent without a registration file yet; its wallet is the caller.
    function register() external returns (uint256 agentId) {
        return _register("", new MetadataEntry[](0));
    }

    /// @notice Registers the caller as an agent whose registration file is at `agentURI`.
    function register(string calldata agentURI) external returns (uint256 agentId) {
        return _register(agentURI, new MetadataEntry[](0));
    }

    /// @notice Registers the caller as an agent with a registration file and metadata; "agentWallet" is refused as a key.
    function register(string calldata agentURI, MetadataEntry[] calldata metadata) external returns (uint256 agentId) {
        return _register(agentURI, metadata);
    }

    /// @notice Replaces the address of the registration file.
    function setAgentURI(uint256 agentId, string calldata newURI) external {
        _requireAuthorized(agentId);
        _setTokenURI(agentId, newURI);
        emit URIUpdated(agentId, newURI, msg.sender);
    }

    /// @notice Sets a metadata value; "agentWallet" is refused as a key, since it needs the wallet's consent.
    function setMetadata(uint256 agentId, string calldata metadataKey, bytes calldata metadataValue) external {
        _requireAuthorized(agentId);
        _requireFreeKey(metadataKey);
        _setMetadata(agentId, metadataKey, metadataValue);
    }

    /// @notice Makes `newWallet` the agent's wallet, with its consent: `AgentWalletSet` signed by an account or by a
    /// contract through ERC-1271, valid for at most `MAX_DEADLINE_DELAY`.
    function setAgentWallet(uint256 agentId, address newWallet, uint256 deadline, bytes calldata signature) external {
        address owner = _requireAuthorized(agentId);
        if (newWallet == address(0)) revert ZeroWallet();
        if (block.timestamp > deadline) revert ExpiredDeadline(deadline, block.timestamp);
        if (deadline > block.timestamp + MAX_DEADLINE_DELAY) {
            revert DeadlineTooFar(deadline, block.timestamp + MAX_DEADLINE_DELAY);
        }
        bytes32 digest =
            _hashTypedDataV4(keccak256(abi.encode(AGENT_WALLET_SET_TYPEHASH, agentId, newWallet, owner, deadline)));
        if (!Signatures.isValid(newWallet, digest, signature)) revert InvalidWalletSignature(newWallet);

        _setMetadata(agentId, AGENT_WALLET_KEY, abi.encodePacked(newWallet));
    }

    /// @notice Leaves the agent without a wallet.
    function unsetAgentWallet(uint256 agentId) external {
        _requireAuthorized(agentId);
        _setMetadata(agentId, AGENT_WALLET_KEY, "");
    }

    /// @notice The value of a metadata key, empty when it was never set.
    function getMetadata(uint256 agentId, string calldata metadataKey) external view returns (bytes memory) {
        return _metadata[agentId][metadataKey];
    }

    /// @notice The agent's verified wallet, zero when it has none or the agent is unknown.
    function getAgentWallet(uint256 agentId) external view returns (address) {
        return address(bytes20(_metadata[agentId][AGENT_WALLET_KEY]));
    }

    /// @notice Whether `spender` owns the agent's token or may move it; reverts for an unknown agent.
    function isAuthorizedOrOwner(address spender, uint256 agentId) public view returns (bool) {
        return _isAuthorized(_requireOwned(agentId), spender, agentId);
    }

    /// @dev A wallet consented to serve one owner, so a transfer leaves the agent without a wallet.
    function _update(address to, uint256 tokenId, address auth) internal override returns (address from) {
        from = super._update(to, tokenId, auth);
        if (from != address(0)) _setMetadata(tokenId, AGENT_WALLET_KEY, "");
    }

    function _register(string memory agentURI, MetadataEntry[] memory metadata) private returns (uint256 agentId) {
        agentId = _nextAgentId++;
        if (bytes(agentURI).length != 0) _setTokenURI(agentId, agentURI);
        emit Registered(agentId, agentURI, msg.sender);
        _setMetadata(agentId, AGENT_WALLET_KEY, abi.encodePacked(msg.sender));
        for (uint256 i = 0; i < metadata.length; ++i) {
            _requireFreeKey(metadata[i].metadataKey);
            _setMetadata(agentId, metadata[i].metadataKey, metadata[i].metadataValue);
        }

        // Last, since the receiver may be a contract that is called here.
        _safeMint(msg.sender, agentId);
    }

    function _setMetadata(uint256 agentId, string memory metadataKey, bytes memory metadataValue) private {
        _metadata[agentId][metadataKey] = metadataValue;
        emit MetadataSet(agentId, metadataKey, metadataKey, metadataValue);
    }

    function _requireAuthorized(uint256 agentId) private view returns (address owner) {
        owner = _requireOwned(agentId);
        if (!_isAuthorized(owner, msg.sender, agentId)) revert NotAuthorized(msg.sender, agentId);
    }

    function _requireFreeKey(string memory metadataKey) private pure {
        if (keccak256(bytes(metadataKey)) == AGENT_WALLET_KEY_HASH) revert ReservedMetadataKey(metadataKey);
    }
}
