// SPDX-License-Identifier: MIT
pragma solidity ^0.8.30;

import {ERC8004IdentityRegistry} from "./ERC8004IdentityRegistry.sol";

/// @title The ERC-8004 reputation registry of the embedded chain
/// @notice The Reputation Registry of ERC-8004 (draft, https://eips.ethereum.org/EIPS/eip-8004): anybody but the agent's own
/// side gives feedback, a signed fixed-point number with two tags and a file.
/// @dev Feedback of a client about an agent is numbered from 1. What only the events carry is not stored.
contract ERC8004ReputationRegistry {
    struct Feedback {
        int128 value;
        uint8 valueDecimals;
        bool isRevoked;
        string tag1;
        string tag2;
    }

    uint8 private constant MAX_DECIMALS = 18;

    ERC8004IdentityRegistry private immutable IDENTITIES;

    mapping(uint256 agentId => mapping(address client => Feedback[])) private _feedback;
    mapping(uint256 agentId => address[]) private _clients;

    event NewFeedback(
        uint256 indexed agentId,
        address indexed clientAddress,
        uint64 feedbackIndex,
        int128 value,
        uint8 valueDecimals,
        string indexed indexedTag1,
        string tag1,
        string tag2,
        string endpoint,
        string feedbackURI,
        bytes32 feedbackHash
    );
    event FeedbackRevoked(uint256 indexed agentId, address indexed clientAddress, uint64 indexed feedbackIndex);

    error SelfFeedback(uint256 agentId, address client);
    error TooManyDecimals(uint8 valueDecimals);
    error UnknownFeedback(uint256 agentId, address client, uint64 feedbackIndex);
    error AlreadyRevoked(uint256 agentId, address client, uint64 feedbackIndex);

    constructor(ERC8004IdentityRegistry identities) {
        IDENTITIES = identities;
    }

    /// @notice Records feedback about an agent that exists and that the caller neither owns nor may move.
    function giveFeedback(
        uint256 agentId,
        int128 value,
        uint8 valueDecimals,
        string calldata tag1,
        string calldata tag2,
        string calldata endpoint,
        string calldata feedbackURI,
        bytes32 feedbackHash
    ) external {
        if (valueDecimals > MAX_DECIMALS) revert TooManyDecimals(valueDecimals);
        if (IDENTITIES.isAuthorizedOrOwner(msg.sender, agentId)) revert SelfFeedback(agentId, msg.sender);

        Feedback memory given = Feedback(value, valueDecimals, false, tag1, tag2);
        _announce(agentId, _record(agentId, given), given, endpoint, feedbackURI, feedbackHash);
    }

    /// @notice Withdraws feedback of the caller.
    function revokeFeedback(uint256 agentId, uint64 feedbackIndex) external {
        Feedback storage given = _at(agentId, msg.sender, feedbackIndex);
        if (given.isRevoked) revert AlreadyRevoked(agentId, msg.sender, feedbackIndex);
        given.isRevoked = true;
        emit FeedbackRevoked(agentId, msg.sender, feedbackIndex);
    }

    /// @notice The registry of the identities that feedback is about.
    function getIdentityRegistry() external view returns (address) {
        return address(IDENTITIES);
    }

    /// @notice The index of a client's newest feedback about an agent, 0 without any.
    function getLastIndex(uint256 agentId, address clientAddress) external view returns (uint64) {
        return uint64(_feedback[agentId][clientAddress].length);
    }

    /// @notice The clients that gave an agent feedback.
    function getClients(uint256 agentId) external view returns (address[] memory) {
        return _clients[agentId];
    }

    /// @notice One feedback, also if it was revoked.
    function readFeedback(uint256 agentId, address clientAddress, uint64 feedbackIndex)
        external
        view
        returns (int128 value, uint8 valueDecimals, string memory tag1, string memory tag2, bool isRevoked)
    {
        Feedback storage given = _at(agentId, clientAddress, feedbackIndex);
        return (given.value, given.valueDecimals, given.tag1, given.tag2, given.isRevoked);
    }

    function _record(uint256 agentId, Feedback memory given) private returns (uint64 feedbackIndex) {
        Feedback[] storage all = _feedback[agentId][msg.sender];
        if (all.length == 0) _clients[agentId].push(msg.sender);
        all.push(given);
        return uint64(all.length);
    }

    /// @dev Apart from `giveFeedback`, because the stack has no room for all of it at once.
    function _announce(
        uint256 agentId,
        uint64 feedbackIndex,
        Feedback memory given,
        string calldata endpoint,
        string calldata feedbackURI,
        bytes32 feedbackHash
    ) private {
        emit NewFeedback(
            agentId,
            msg.sender,
            feedbackIndex,
            given.value,
            given.valueDecimals,
            given.tag1,
            given.tag1,
            given.tag2,
            endpoint,
            feedbackURI,
            feedbackHash
        );
    }

    function _at(uint256 agentId, address client, uint64 feedbackIndex) private view returns (Feedback storage) {
        Feedback[] storage given = _feedback[agentId][client];
        if (feedbackIndex == 0 || feedbackIndex > given.length) revert UnknownFeedback(agentId, client, feedbackIndex);
        return given[feedbackIndex - 1];
    }
}
